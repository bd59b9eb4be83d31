"""What the scaling laws say against every outside figure we have, with the deviation of each.

    python -m experiments.law_fidelity

A law carries a base's own constant to another knob value; the anchor is what a sweep, a datasheet or a die has there.
Low and high are the law's bands. Rows of another technology than the base show what a law cannot know; their errors
are large and stand in the table. A deviation that is required to be small has its limit in the last column.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from autotune.exit_codes import run_to_exit_code
from configs.device import Area, Device, Energy, load_device
from configs.laws import CASES, law_constants
from experiments.fit_laws import (
    KIB,
    Points,
    bitline_ns,
    datasheet_pairs,
    figures,
    line,
    read_table,
    stripe_share,
    sweep,
)

SLOPE_LIMIT = 0.1
SWEPT_ROWS = (1024, 2048, 4096, 8192)
LONGER_BITLINES = (1024, 2048)
DDR3_1066_NS = 1.875
AIM_UNITS_PER_DIE = 32  # two channels of 16 banks
DIE_WIDTH = 0.05  # of the plain die per capacity, each way: the one width in which area claims hold
Range = tuple[float, float, float]  # low, nominal, high


@dataclass(frozen=True, slots=True)
class Row:
    """One figure by law and by anchor; `limit` is what its deviation must keep, where anything is required."""

    section: str
    what: str
    unit: str
    law: Range
    anchor: float
    limit: float | None = None

    @property
    def deviation(self) -> float:
        """Nominal law over anchor, minus one."""
        return self.law[1] / self.anchor - 1

    @property
    def inside(self) -> bool:
        """Whether the anchor lies between the law's low and high."""
        return min(self.law) <= self.anchor * (1 + 1e-9) and self.anchor <= max(self.law) * (1 + 1e-9)

    @property
    def kept(self) -> bool:
        """Whether the deviation keeps its limit."""
        return self.limit is None or abs(self.deviation) <= self.limit


@dataclass(frozen=True, slots=True)
class RowBase:
    """A technology whose row energy is known at one page."""

    name: str
    row_bytes: int
    activate_pj: float


def exact(value: float) -> Range:
    """Return the range of a value without a band."""
    return value, value, value


def carried(own_value: float, curve: str, value: int, own: int) -> Range:
    """Return a constant of a base at another knob value, in all cases."""
    low, nominal, high = (own_value * float(law_constants().ratio(curve, value, own, case)) for case in CASES)
    return low, nominal, high


def scaled(law: Range, factor: float) -> Range:
    """Return a range times a factor."""
    return law[0] * factor, law[1] * factor, law[2] * factor


def rows() -> tuple[Row, ...]:
    """Return every row of the table."""
    return (
        *row_energy_slopes(),
        *row_energies(),
        *other_technologies(),
        *timing_by_page(),
        *by_banks(),
        *by_subarray(),
        *spacing_and_refresh(),
        *dies(),
        *units(),
    )


def row_bases() -> tuple[RowBase, ...]:
    """Return the technologies that the law of row energy is applied to."""
    of, aim = figures(), energy_of(load_device("gddr6-aim"))
    return (
        RowBase("GDDR6-AiM", 2048, aim.activate_precharge_pj),
        RowBase("HBM2", 1024, of["hbm2_activate"]),
        RowBase("HBM2 (datasheet)", 1024, of["hbm2_activate_datasheet"]),
        RowBase("LPDDR4", 2048, of["lpddr4_activate"]),
    )


def energy_of(device: Device) -> Energy:
    """Return the energy section of a device that has one."""
    assert device.energy is not None
    return device.energy


def swept_row_energy() -> Points:
    """Return what CACTI takes to open and close a row, in nJ by row bytes, as swept."""
    return sweep("page", "row_bytes", "activate_nj", "precharge_nj")


def row_energy_slopes() -> Iterable[Row]:
    """Yield pJ per KiB of row from 1 to 8 KiB by base, against CACTI's slope at the base's own energy and page."""
    swept = swept_row_energy()
    for base in row_bases():
        anchor = slope(swept) * base.activate_pj / swept[base.row_bytes]
        law = [
            slope({size: carried(base.activate_pj, "page_activate", size, base.row_bytes)[case] for size in SWEPT_ROWS})
            for case in range(len(CASES))
        ]
        yield Row("row energy, slope", f"{base.name}, 1-8 KiB", "pJ/KiB", (law[0], law[1], law[2]), anchor, SLOPE_LIMIT)


def slope(points: Points) -> float:
    """Return the least-squares slope per KiB of row."""
    return line({size // KIB: value for size, value in points.items()})[1]


def row_energies() -> Iterable[Row]:
    """Yield the row energy of each base at every swept page against CACTI's, scaled to meet at the base's own."""
    swept = swept_row_energy()
    for base in row_bases():
        for size in other_pages(base.row_bytes):
            law = carried(base.activate_pj, "page_activate", size, base.row_bytes)
            anchor = base.activate_pj * swept[size] / swept[base.row_bytes]
            yield Row("row energy", f"{base.name} at {size // KIB} KiB", "pJ", law, anchor)


def other_technologies() -> Iterable[Row]:
    """Yield what the law makes of one technology's row energy for another's page, against the other's own figure."""
    aim, hbm2, hbm2_datasheet, lpddr4 = row_bases()
    typical = energy_of(load_device("gddr6-aim")).typical_row_factor.nominal
    for base, target in ((aim, hbm2_datasheet), (aim, lpddr4), (hbm2_datasheet, aim), (hbm2_datasheet, lpddr4)):
        law = carried(base.activate_pj, "page_activate", target.row_bytes, base.row_bytes)
        yield Row("row energy, other technology", f"{base.name} to {target.name}", "pJ", law, target.activate_pj)
    law = scaled(carried(aim.activate_pj, "page_activate", hbm2.row_bytes, aim.row_bytes), typical)
    yield Row("row energy, other technology", "GDDR6-AiM, typical, to HBM2", "pJ", law, hbm2.activate_pj)
    for die, small, large in datasheet_pairs():
        law = carried(float(small["activate_precharge_pj"]), "page_activate", 2048, 1024)
        what = f"{die.split()[0]} {small['gigabits']} Gb {small['clock_ns']} ns x8 to x16"
        yield Row("row energy, x8 to x16", what, "pJ", law, float(large["activate_precharge_pj"]))


def timing_by_page() -> Iterable[Row]:
    """Yield tRCD and tRC of CACTI's 2 KiB device at other pages; tRC is the row cycle plus what tRCD grows by."""
    rcd, rc = sweep("page", "row_bytes", "rcd_ns"), sweep("page", "row_bytes", "rc_ns")
    same_mats = sweep("page-same-mats", "row_bytes", "rcd_ns")
    for size in other_pages(2048):
        yield Row(
            "tRCD by page", f"CACTI at {size // KIB} KiB", "ns", carried(rcd[2048], "page_rcd", size, 2048), rcd[size]
        )
    for size in other_pages(1024):
        law = carried(same_mats[1024], "page_rcd", size, 1024)
        yield Row("tRCD by page", f"CACTI, mats held, at {size // KIB} KiB", "ns", law, same_mats[size])
    for size in other_pages(2048):
        low, nominal, high = (rc[2048] + value - rcd[2048] for value in carried(rcd[2048], "page_rcd", size, 2048))
        yield Row("tRC by page", f"CACTI at {size // KIB} KiB", "ns", (low, nominal, high), rc[size])


def other_pages(own: int) -> tuple[int, ...]:
    """Return the swept pages but a base's own."""
    return tuple(size for size in SWEPT_ROWS if size != own)


def by_banks() -> Iterable[Row]:
    """Yield the laws over banks, which stem from rows of 2 KiB, against the sweep with rows of 1 KiB."""
    rows_of: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("rcd", "ns", ("rcd_ns",)),
        ("activate", "nJ", ("activate_nj", "precharge_nj")),
        ("read", "nJ", ("read_nj",)),
    )
    for name, unit, quantities in rows_of:
        swept = sweep("banks-1k", "banks", *quantities)
        for banks in (4, 8, 32, 64):
            law = carried(swept[16], f"bank_{name}", banks, 16)
            yield Row(f"{name} by banks", f"CACTI, 1 KiB rows, {banks} banks", unit, law, swept[banks])


def by_subarray() -> Iterable[Row]:
    """Yield timing, energy and stripes over rows per subarray, against the sweep and the line through TL-DRAM."""
    for name in ("rcd", "ras", "rp"):
        swept = sweep("subarray", "rows_per_subarray", f"{name}_ns")
        for size in LONGER_BITLINES:
            law = carried(1.0, f"subarray_{name}", size, 512)
            yield Row(f"{name} by subarray", f"CACTI, {size} rows", "of 512", law, swept[size] / swept[512])
            yield Row(f"{name} by subarray", f"TL-DRAM's line, {size} rows", "of 512", law, bitline_ns(name, size))
    for size in LONGER_BITLINES:
        yield from _row_cycle(size)
    energy = sweep("subarray", "rows_per_subarray", "activate_nj", "precharge_nj")
    area = sweep("subarray", "rows_per_subarray", "area_mm2")
    for size in LONGER_BITLINES:
        law = carried(energy[512], "subarray_activate", size, 512)
        yield Row("row energy by subarray", f"CACTI, {size} rows", "nJ", law, energy[size])
    for size in LONGER_BITLINES:
        law = carried(area[512], "subarray_area", size, 512)
        yield Row("area by subarray", f"CACTI, {size} rows", "mm2", law, area[size])
    low, high = (100 * figures()[f"stripe_share_{case}"] for case in ("low", "high"))
    share = 100 * stripe_share(512)
    yield Row("sense-amplifier share", "published, to CACTI at 512 rows", "%", (low, (low + high) / 2, high), share)


def _row_cycle(size: int) -> Iterable[Row]:
    """Yield tRC, as tRAS and tRP of TL-DRAM's whole bitline, or of CACTI's, are carried to more rows."""
    of = figures()
    ras, rp = (sweep("subarray", "rows_per_subarray", f"{name}_ns") for name in ("ras", "rp"))
    sources = (
        ("CACTI", ras[512], rp[512], ras[size] + rp[size]),
        (
            "TL-DRAM's line",
            DDR3_1066_NS * of["ras_long"],
            DDR3_1066_NS * of["rp_long"],
            DDR3_1066_NS * (of["ras_long"] * bitline_ns("ras", size) + of["rp_long"] * bitline_ns("rp", size)),
        ),
    )
    for source, own_ras, own_rp, anchor in sources:
        restored, closed = carried(own_ras, "subarray_ras", size, 512), carried(own_rp, "subarray_rp", size, 512)
        low, nominal, high = (each + other for each, other in zip(restored, closed, strict=True))
        yield Row("tRC by subarray", f"{source}, {size} rows", "ns", (low, nominal, high), anchor)


def spacing_and_refresh() -> Iterable[Row]:
    """Yield tFAW of DDR4 from rows of 1 to 2 KiB, of other devices from the AiM device's, and tRFC by density."""
    low, nominal, high = (law_constants().band("activate_spacing_exponent", case) for case in CASES)
    for row in read_table("ddr4_spacing"):
        small = float(row["faw_1k"])
        law = small * 2**low, small * 2**nominal, small * 2**high
        yield Row("tFAW, 1 to 2 KiB", f"DDR4-{row['mt_per_s']}", "cycles", law, float(row["faw_2k"]))
    aim = load_device("gddr6-aim")
    own = aim.nanoseconds(aim.timing["nFAW"])
    for name in ("hbm2", "hbm3", "lpddr5"):
        other = load_device(name)
        ratio = other.organisation.row_bytes / aim.organisation.row_bytes
        law = own * ratio**low, own * ratio**nominal, own * ratio**high
        anchor = other.nanoseconds(other.timing["nFAW"] * other.ticks_per_clock)
        yield Row("tFAW, other technology", f"GDDR6-AiM to {name}", "ns", law, anchor)
    of = figures()
    low, nominal, high = (law_constants().band("refresh_density_exponent", case) for case in CASES)
    for gigabits in (2, 4, 16):
        ratio = gigabits / 8
        law = of["rfc_8gb"] * ratio**low, of["rfc_8gb"] * ratio**nominal, of["rfc_8gb"] * ratio**high
        yield Row("tRFC by density", f"DDR4 8 Gb to {gigabits} Gb", "ns", law, of[f"rfc_{gigabits}gb"])


def aim_area() -> Area:
    """Return the area section of the AiM device."""
    area = load_device("gddr6-aim").area
    assert area is not None
    return area


def dies() -> Iterable[Row]:
    """Yield the plain 8 Gb die of the AiM device against published dies, per 8 Gb."""
    of, area = figures(), aim_area()
    law = tuple(area.dram_mm2_per_gib.at(case) for case in CASES)
    band = law[0], law[1], law[2]
    yield Row("plain die, per 8 Gb", "GDDR6, its own figure", "mm2", band, of["gddr6_die"], DIE_WIDTH)
    for name, anchor in (
        ("LPDDR5", of["lpddr5_die"] / 2),
        ("DDR5", of["ddr5_die"]),
        ("HBM2, smallest", of["hbm2_die_low"]),
        ("HBM2, largest", of["hbm2_die_high"]),
        ("HBM3", of["hbm3_die"] / 2),
    ):
        yield Row("plain die, other technology", f"GDDR6 to {name}", "mm2", band, anchor)


def units() -> Iterable[Row]:
    """Yield units: AttAcc's share of an HBM3 die, the unit's band against published units."""
    of, area = figures(), aim_area()
    shares = [law_constants().band("accumulator_share", case) for case in CASES]
    multipliers = of["attacc_units"] * of["attacc_unit"] / of["hbm3_die"]
    low, nominal, high = (100 * multipliers / (1 - share) for share in shares)
    yield Row("units of a die", "AttAcc on HBM3", "%", (low, nominal, high), 100 * of["attacc_share"], DIE_WIDTH)
    of_die = [100 * AIM_UNITS_PER_DIE * area.unit_mm2.at(case) / of["gddr6_die"] for case in CASES]
    yield Row("units of a die", "AiM, unverified", "%", (of_die[0], of_die[1], of_die[2]), 100 * of["aim_share"])
    law = tuple(area.unit_mm2.at(case) for case in CASES)
    band = law[0], law[1], law[2]
    for name, anchor in (
        ("AttAcc", of["attacc_unit"]),
        ("HBM-PIM", of["hbm_pim_unit"]),
        ("HBM-PIM, another reading", of["hbm_pim_unit_other"]),
    ):
        yield Row("one unit", f"AiM to {name}", "mm2", band, anchor)


def table(found: Iterable[Row]) -> str:
    """Return the rows as text."""
    numbers = "".join(f"{name:>9}" for name in ("law", "low", "high", "anchor"))
    lines = [f"{'section':30}{'what':34}{numbers}  {'unit':7}{'deviation':>10}  in band  limit"]
    for row in found:
        numbers = "".join(f"{short(value):>9}" for value in (row.law[1], row.law[0], row.law[2], row.anchor))
        limit = "" if row.limit is None else f"{row.limit:.0%} {'kept' if row.kept else 'BROKEN'}"
        lines.append(
            f"{row.section:30}{row.what:34}{numbers}  {row.unit:7}{row.deviation:>+10.1%}  "
            f"{'yes' if row.inside else 'no':7}  {limit}".rstrip()
        )
    return "\n".join(lines)


def short(value: float) -> str:
    """Return a number with four digits that count."""
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def main() -> None:
    """Print the table."""
    print(table(rows()))
    print(
        f"\nArea: one width, {DIE_WIDTH:.0%} of the plain die each way, and only for the base device's own technology."
    )


if __name__ == "__main__":
    run_to_exit_code(main)
