"""Recomputes the fitted numbers of `configs/laws.yaml` from the figures in `experiments/data`.

    python -m experiments.fit_laws            # print them
    python -m experiments.fit_laws --check    # compare with the file; exit code 1 where they differ

A fitted number is named by its place in the file. Whatever is not named here is a published figure or an assumption,
and the file says which. An exponent is how strongly one source follows a curve of another: the least-squares slope of
the one's logarithm over the other's, through a common point.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from math import log, log2
from pathlib import Path
from statistics import mean, median

import numpy as np
import yaml

from autotune.exit_codes import ANSWER_IS_NO, run_to_exit_code
from configs.laws import LawConstants, law_constants

DATA = Path(__file__).parent / "data"
KIB = 1024
GIGABITS = 8  # of every swept die
SMALLEST_SUBARRAY_ROWS, LARGEST_SUBARRAY_ROWS = 512, 2048  # what the knob offers
Table = list[dict[str, str]]
Points = dict[int, float]


def read_table(name: str) -> Table:
    """Return the rows of one table of `experiments/data`."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def figures() -> dict[str, float]:
    """Return the single figures by name."""
    return {row["name"]: float(row["value"]) for row in read_table("figures")}


def sweep(name: str, knob: str, *quantities: str) -> Points:
    """Return the sum of some columns of a CACTI sweep by the values of another, rising."""
    rows = [row for row in read_table("cacti_sweeps") if row["sweep"] == name]
    return dict(sorted((_knob(row, knob), sum(float(row[each]) for each in quantities)) for row in rows))


def _knob(row: Mapping[str, str], knob: str) -> int:
    """Return a column as an integer; rows per subarray follow from the stripes of a bank."""
    if knob != "rows_per_subarray":
        return int(row[knob])
    rows = GIGABITS * 2**30 // (int(row["banks"]) * int(row["row_bytes"]) * 8)
    return rows // int(row["bitline_stripes"])


def line(points: Points) -> tuple[float, float]:
    """Return constant and slope of the least-squares line."""
    slope, constant = np.polyfit(list(points), list(points.values()), 1)
    return float(constant), float(slope)


def exponent(curve: Points, other: Points) -> float:
    """Return how strongly another source follows a curve from their first common point on."""
    first, *rest = [point for point in curve if point in other]
    x = np.log([curve[point] / curve[first] for point in rest])
    y = np.log([other[point] / other[first] for point in rest])
    return float(x @ y / (x @ x))


def fitted() -> dict[str, float]:
    """Return every fitted number by its place in the file."""
    return {**_pages(), **_banks(), **_subarrays(), **_jedec(), **_logic(), **_ecc()}


def _curve(name: str, points: Points, **exponents: float) -> dict[str, float]:
    places = {f"curves.{name}.points.{point}": float(f"{value:.6g}") for point, value in points.items()}
    return places | {f"curves.{name}.exponent.{case}": round(value, 4) for case, value in exponents.items()}


def _band(name: str, **values: float) -> dict[str, float]:
    return {f"bands.{name}.value.{case}": round(value, 4) for case, value in values.items()}


def _pages() -> dict[str, float]:
    rcd, activate = sweep("page", "row_bytes", "rcd_ns"), page_activate()
    same_mats = sweep("page-same-mats", "row_bytes", "rcd_ns")
    proportional = {row_bytes: float(row_bytes) for row_bytes in activate}
    return {
        **_curve("page_rcd", rcd, high=exponent(rcd, same_mats)),
        **_curve(
            "page_activate", activate, low=min(datasheet_exponents().values()), high=exponent(activate, proportional)
        ),
        **_curve("page_area", sweep("page", "row_bytes", "area_mm2")),
    }


def page_activate() -> Points:
    """Return activate and precharge in nJ by row bytes, on the line through the sweep rounded to three decimals."""
    swept = sweep("page", "row_bytes", "activate_nj", "precharge_nj")
    constant, slope = line({point // KIB: value for point, value in swept.items()})
    return {point: round(round(constant, 3) + round(slope, 3) * point / KIB, 3) for point in swept}


def datasheet_exponents() -> dict[str, float]:
    """Return by die how strongly its datasheet currents follow the curve from rows of 1 KiB to rows of 2 KiB."""
    by_die: dict[str, list[float]] = {}
    for _, small, large in datasheet_pairs():
        curve = page_activate()
        growth = log(float(large["activate_precharge_pj"]) / float(small["activate_precharge_pj"]))
        die = f"{small['standard']} {small['gigabits']} Gb"
        by_die.setdefault(die, []).append(growth / log(curve[2 * KIB] / curve[KIB]))
    return {die: mean(values) for die, values in by_die.items()}


def datasheet_pairs() -> list[tuple[str, dict[str, str], dict[str, str]]]:
    """Return die, x8 and x16 part of equal density, clock and tRCD."""

    def die(row: dict[str, str]) -> tuple[str, str, str, str]:
        return row["standard"], row["gigabits"], row["clock_ns"], row["rcd_cycles"]

    pairs = []
    for key, group in groupby(sorted(read_table("datasheet_activation"), key=die), key=die):
        small, large = sorted(group, key=lambda row: int(row["row_bytes"]))
        pairs.append((" ".join(key), small, large))
    return pairs


def _banks() -> dict[str, float]:
    columns = {"rcd": ("rcd_ns",), "activate": ("activate_nj", "precharge_nj"), "read": ("read_nj",)}
    places: dict[str, float] = {}
    for name, quantities in columns.items():
        curve, shorter_rows = (sweep(banks, "banks", *quantities) for banks in ("banks-2k", "banks-1k"))
        places |= _curve(f"bank_{name}", curve, high=exponent(curve, shorter_rows))
    return places


def _subarrays() -> dict[str, float]:
    places: dict[str, float] = {}
    for name in ("rcd", "ras", "rp"):
        curve = sweep("subarray", "rows_per_subarray", f"{name}_ns")
        low, nominal, high = bitline_exponents(name)
        places |= _curve(f"subarray_{name}", curve, low=low, nominal=nominal, high=high)
    activate = sweep("subarray", "rows_per_subarray", "activate_nj", "precharge_nj")
    places |= _curve("subarray_activate", activate)
    share, published = stripe_share(SMALLEST_SUBARRAY_ROWS), figures()
    return places | _curve(
        "subarray_area",
        sweep("subarray", "rows_per_subarray", "area_mm2"),
        low=published["stripe_share_low"] / share,
        high=published["stripe_share_high"] / share,
    )


def bitline_exponents(name: str) -> tuple[float, float, float]:
    """Return the least, middle and greatest of three estimates of how a timing follows its curve.

    As swept; and as two bitlengths of TL-DRAM have it, whole and near segment, continued as a line and as a power.
    """
    curve = sweep("subarray", "rows_per_subarray", f"{name}_ns")
    swept = log(curve[LARGEST_SUBARRAY_ROWS] / curve[SMALLEST_SUBARRAY_ROWS])
    low, middle, high = sorted([1.0, log(_on_line(name)) / swept, log(_on_power(name)) / swept])
    return low, middle, high


def bitline_ns(name: str, rows: int) -> float:
    """Return a timing of TL-DRAM at a bitlength, on the line through its two, relative to its whole bitline."""
    of = figures()
    short, long = of[f"{name}_short"] / of[f"{name}_long"], 1.0
    slope = (long - short) / (of["cells_long"] - of["cells_short"])
    return long + slope * (rows - of["cells_long"])


def _on_line(name: str) -> float:
    return bitline_ns(name, LARGEST_SUBARRAY_ROWS) / bitline_ns(name, SMALLEST_SUBARRAY_ROWS)


def _on_power(name: str) -> float:
    of = figures()
    power = log(of[f"{name}_long"] / of[f"{name}_short"]) / log(of["cells_long"] / of["cells_short"])
    return float((LARGEST_SUBARRAY_ROWS / SMALLEST_SUBARRAY_ROWS) ** power)


def stripe_share(rows_per_subarray: int) -> float:
    """Return the share of the swept die that falls with longer bitlines: sense-amplifier stripes."""
    area = sweep("subarray", "rows_per_subarray", "area_mm2")
    slope, constant = np.polyfit([1 / rows for rows in area], list(area.values()), 1)
    stripes = float(slope) / rows_per_subarray
    return stripes / (float(constant) + stripes)


def _jedec() -> dict[str, float]:
    of = figures()
    spacings = [
        log2(float(row[f"{name}_2k"]) / float(row[f"{name}_1k"]))
        for row in read_table("ddr4_spacing")
        for name in ("rrd_s", "rrd_l", "faw")
    ]
    refreshes = [of[f"rfc_{gigabits}gb"] for gigabits in (2, 4, 8, 16)]
    steps = [log2(after / before) for before, after in pairwise(refreshes)]
    return {
        **_band(
            "activate_spacing_exponent",
            low=min(spacings),
            nominal=log2(of["faw_2k"] / of["faw_1k"]),
            high=max(spacings),
        ),
        **_band(
            "refresh_density_exponent",
            low=min(steps),
            nominal=log2(of["rfc_16gb"] / of["rfc_4gb"]) / 2,
            high=max(steps),
        ),
    }


def _logic() -> dict[str, float]:
    of, clock = figures(), clock_exponents()
    width, height = (of["cell_area"] / of["cell_aspect"]) ** 0.5, (of["cell_area"] * of["cell_aspect"]) ** 0.5
    pitch = of["port_pitch"]
    registers, beside = accumulator_shares()
    return {
        **_band("unit_clock_exponent", low=min(clock), nominal=median(clock), high=max(clock)),
        **_band(
            "buffer_port_share",
            nominal=(height + 2 * pitch) * (width + pitch) / of["cell_area"] - 1,
            high=(height + 2 * pitch) * (width + 2 * pitch) / of["cell_area"] - 1,
        ),
        **_band("accumulator_share", low=registers, nominal=beside),
    }


def clock_exponents() -> list[float]:
    """Return how the area of multipliers and adders grows with their clock, by halving of the period."""
    area = {(row["circuit"], float(row["period_ns"])): float(row["um2"]) for row in read_table("logic_area")}
    return [log2(um2 / area[name, 2 * period]) for (name, period), um2 in area.items() if (name, 2 * period) in area]


def accumulator_shares() -> tuple[float, float]:
    """Return the accumulators' share of a unit: 32 of 32 bits beside 16 fp32 adders and bf16 multipliers; AttAcc's.

    A multiplier's area is taken by the square of its significand, 8 of 24 bits.
    """
    of = figures()
    area = {row["circuit"]: float(row["um2"]) for row in read_table("logic_area") if row["period_ns"] == "1"}
    registers = 32 * 32 * area["register-bit"]
    arithmetic = 16 * (area["add-fp32"] + area["multiply-fp32"] * (8 / 24) ** 2)
    accumulators = of["attacc_accumulators"] * of["attacc_accumulator"]
    units = of["attacc_units"] * of["attacc_unit"]
    return registers / (registers + arithmetic), accumulators / (accumulators + units)


def _ecc() -> dict[str, float]:
    of = figures()
    fast, slow = (of[f"cl_with_ecc_{bin_}_ns"] - of["cl_without_ecc_ns"] for bin_ in ("fast", "slow"))
    return _band("ecc_decode_ns", low=fast, nominal=(fast + slow) / 2, high=slow)


def written(constants: LawConstants) -> dict[str, float]:
    """Return every number of curves and bands in the file by its place."""
    numbers: dict[str, float] = {}
    for name, curve in constants.curves.items():
        numbers |= {f"curves.{name}.points.{point}": value for point, value in curve.points.items()}
        numbers |= {f"curves.{name}.exponent.{case}": value for case, value in curve.exponent}
    for name, band in constants.bands.items():
        numbers |= {f"bands.{name}.value.{case}": value for case, value in band.value}
    return numbers


def differences(fit: Mapping[str, float], file: Mapping[str, float]) -> list[str]:
    """Return a line for every fitted number that the file has otherwise, and for every point that was not fitted."""
    lines = [
        f"{place}: fitted {fit[place]:g}, in the file {file.get(place)}" for place in fit if _differ(fit, file, place)
    ]
    return lines + [f"{place}: in the file, not fitted" for place in file if ".points." in place and place not in fit]


def _differ(fit: Mapping[str, float], file: Mapping[str, float], place: str) -> bool:
    return place not in file or abs(fit[place] - file[place]) > 1e-6 * abs(fit[place])


def nested(places: Mapping[str, float]) -> dict[str, dict[str, dict[str, dict[int | str, float]]]]:
    """Return numbers by place as the file nests them."""
    tree: dict[str, dict[str, dict[str, dict[int | str, float]]]] = {}
    for place, value in places.items():
        kind, name, part, leaf = place.split(".")
        branch = tree.setdefault(kind, {}).setdefault(name, {}).setdefault(part, {})
        branch[int(leaf) if leaf.isdecimal() else leaf] = value
    return tree


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the fitted part of the file, or compare it with the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the file; exit code 1 where it differs")
    fit = fitted()
    if not parser.parse_args(arguments).check:
        print(yaml.safe_dump(nested(fit), sort_keys=False, default_flow_style=None, width=120), end="")
        return
    found = differences(fit, written(law_constants()))
    _print_lines(found or [f"configs/laws.yaml holds all {len(fit)} fitted numbers"])
    if found:
        sys.exit(ANSWER_IS_NO)


def _print_lines(lines: Iterable[str]) -> None:
    for each in lines:
        print(each)


if __name__ == "__main__":
    run_to_exit_code(main)
