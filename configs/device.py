"""The description of a device: organisation, timing table, processing unit, energy, area, link, host, dispatcher.

A device is one YAML file in `configs/hardware` that reads like the standard's tables; unknown keys are refused. The
constants carry their sources as comments in the file and, where an assumption is made, in `assumptions`.
"""

import difflib
import hashlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from configs.commands import COMMAND_NAMES
from configs.constraint import Constraint, LevelName
from configs.device_mistakes import InconsistentDevice, mistake, nearest
from configs.errors import UserError
from configs.expression import evaluate
from configs.laws import Band as AnyBand
from configs.microkernel_units import ARITHMETIC as FP16_THROUGHOUT
from configs.microkernel_units import contradictions
from configs.number_format import NumberFormat
from configs.record import Amount, PositiveFloat, PositiveInt, Record
from configs.refresh import Refresh, RefreshPolicy
from configs.structure import Structure

HARDWARE_FOLDER = Path(__file__).parent / "hardware"

MICROKERNEL_EXAMPLE = "compare with configs/hardware/hbm-pim.yaml"
MOST_CYCLES = 1_000_000
MOST_BANKS = 1024  # of a channel
MOST_ROWS = 1 << 24
MOST_BUSES = 2


class Organisation(Record):
    """The DRAM arrays of one device; `column_bytes` is what one column access delivers."""

    channels: PositiveInt
    pseudo_channels: PositiveInt = Field(1, description="of one channel")
    ranks: PositiveInt = Field(1, description="of one pseudo channel; the stack ids of HBM")
    bank_groups: PositiveInt = Field(description="of one rank")
    banks_per_group: PositiveInt
    rows: PositiveInt
    row_bytes: PositiveInt
    column_bytes: PositiveInt
    burst_bytes: PositiveInt = Field(description="bytes the external data bus moves in nBL cycles")
    row_buffers: Literal[1, 2] = Field(1, description="of a bank; units multiply from the second while a row is opened")

    @model_validator(mode="after")
    def _columns_fill_rows(self) -> "Organisation":
        if self.banks > MOST_BANKS or self.rows > MOST_ROWS:
            raise ValueError(
                f"a channel has at most {MOST_BANKS} banks of {MOST_ROWS} rows, this one {self.banks} of {self.rows}"
            )
        if self.row_bytes % self.column_bytes:
            raise ValueError(f"row_bytes {self.row_bytes} is not a multiple of column_bytes {self.column_bytes}")
        return self

    @property
    def banks(self) -> int:
        """Banks of one channel."""
        return self.pseudo_channels * self.ranks * self.bank_groups * self.banks_per_group

    @property
    def banks_below(self) -> tuple[int, int, int, int, int]:
        """Banks of one channel, pseudo channel, rank, bank group and bank; banks are numbered in this order."""
        rank = self.bank_groups * self.banks_per_group
        return self.banks, self.ranks * rank, rank, self.banks_per_group, 1

    @property
    def columns(self) -> int:
        """Column accesses in one row."""
        return self.row_bytes // self.column_bytes

    @property
    def capacity_bytes(self) -> int:
        """Bytes of one device."""
        return self.channels * self.banks * self.rows * self.row_bytes


class ProcessingUnit(Record):
    """The multiply-accumulate unit beside each bank, and the buffer all units of a channel share.

    `formats` are those of stored values that it multiplies with bf16 inputs; `value_bytes` are those of an input. One
    command multiplies a column with up to `vectors_per_multiply` vectors of the global buffer.
    """

    lanes: PositiveInt
    accumulators: PositiveInt
    global_buffer_bytes: PositiveInt
    value_bytes: PositiveInt
    arithmetic: Literal["bf16-products-fp32-tree-fp32-accumulate-bf16-readout", "fp16-after-every-operation"]
    formats: Annotated[tuple[NumberFormat, ...], Field(min_length=1)] = (NumberFormat.BF16,)
    vectors_per_multiply: PositiveInt = 1
    microkernel_words: Annotated[int, Field(ge=0)] = Field(
        default=0, description="instructions that units keep and run on column accesses; 0: a command says what to do"
    )


class Band(AnyBand):
    """An uncertain constant above zero: low, nominal and high."""

    low: PositiveFloat


class Basis(StrEnum):
    """Which currents a figure rests on."""

    DATASHEET = "datasheet"  # maximum currents, which no part of any device exceeds
    TYPICAL = "typical"  # currents as measured on average parts


class Energy(Record):
    """Energy per event in pJ and standby power in mW, all of one `basis`: maxima and typicals are never mixed.

    The typical factors say what share of each datasheet current is drawn; `mac_multiply_share` is the part of the
    all-bank multiply that is no DRAM current but logic. Global buffer, data bus, link, controller and PHY do not come
    from datasheet currents and are the same on both bases.
    """

    basis: Basis
    activate_precharge_pj: PositiveFloat
    column_read_pj: PositiveFloat
    column_write_pj: PositiveFloat
    all_bank_mac_pj: PositiveFloat
    row_move_pj: Amount = Field(default=0, description="one row of one bank to its second row buffer, where it has one")
    mac_multiply_share: Annotated[float, Field(ge=0, le=1)]
    global_buffer_access_pj: PositiveFloat
    data_bus_pj_per_bit: PositiveFloat
    link_pj_per_bit: PositiveFloat
    controller_column_pj: PositiveFloat
    phy_command_pj: PositiveFloat
    retention_ms: PositiveFloat
    standby_active_mw: PositiveFloat
    standby_precharged_mw: PositiveFloat
    standby_array_share: Annotated[float, Field(ge=0, le=1)]
    typical_row_factor: Band
    typical_column_factor: Band
    typical_standby_factor: Band

    @model_validator(mode="after")
    def _typical_is_no_more_than_the_maximum(self) -> "Energy":
        for name in ("typical_row_factor", "typical_column_factor", "typical_standby_factor"):
            if getattr(self, name).high > 1:
                raise ValueError(f"{name} reaches {getattr(self, name).high}: a typical current above the maximum")
        return self


class Area(Record):
    """Silicon areas in mm² of DRAM dies, each a band."""

    dram_mm2_per_gib: Band
    unit_mm2: Band
    bank_periphery_mm2: Band
    channel_interface_mm2: Band
    global_buffer_mm2_per_kib: Band
    dies: PositiveInt


class Power(Record):
    """What limits simultaneous work: activation charge over time, and the all-bank multiply rate."""

    activation_budget_bytes_per_cycle: PositiveFloat
    mac_cap_w_per_channel: PositiveFloat


class Link(Record):
    """The link between host and device: two independent directions, each a first-in-first-out server."""

    name: str
    bandwidth_gb_per_s: Annotated[float, Field(ge=0.001, le=1e6)]
    latency_ns: Annotated[float, Field(ge=0, le=1e9)]


class Host(Record):
    """The processor that runs what has no lowering for the device."""

    name: str
    memory_bandwidth_gb_per_s: PositiveFloat
    vector_gflops: PositiveFloat
    matrix_gflops: PositiveFloat
    launch_ns: Amount
    power_w: PositiveFloat


class Dispatcher(Record):
    """Feeds instructions to the channels; one instruction covers a run of equal commands on consecutive columns."""

    instructions_per_cycle: PositiveFloat
    instruction_bytes: PositiveInt
    sequencer_loop_depth: Annotated[int, Field(ge=0)]


class Device(Record):
    """One device of a system, with everything the compiler and the simulator need to know of it."""

    name: str
    family: str
    title: str
    clock_ps: PositiveInt
    organisation: Organisation
    structure: Structure = Structure()
    processing_unit: ProcessingUnit | None = Field(None, alias="unit")
    timing: dict[str, Annotated[int, Field(strict=True)]]
    ticks_per_clock: PositiveInt = Field(1, description="a tick is the grid on which commands issue")
    command_ticks: dict[str, PositiveInt] = Field({}, description="ticks a command holds its bus, where more than 1")
    command_buses: dict[str, str] = Field({}, description="commands by bus, at most two; one not named is on the first")
    scopes: dict[str, LevelName] = Field({}, description="what a command addresses, where not what its kind says")
    constraints: tuple[Constraint, ...]
    refresh_constraints: tuple[Constraint, ...] = Field(
        (), description="rows for a controller that refreshes by itself"
    )
    refresh: Refresh
    energy: Energy | None = None
    area: Area | None = None
    power: Power | None = None
    link: Link | None = None
    host: Host | None = None
    dispatcher: Dispatcher | None = None
    assumptions: tuple[str, ...] = ()
    knobs: tuple[str, ...] = Field((), description="the hardware knobs that may change; none named: all of them")

    @model_validator(mode="after")
    def _expressions_resolve(self) -> "Device":
        for name, cycles in self.timing.items():
            if not 0 <= cycles <= MOST_CYCLES:
                raise InconsistentDevice(
                    place=f"timing.{name}", expected=f"0 to {MOST_CYCLES} cycles", found=str(cycles)
                )
        if not self.timing.get("nBL"):
            expected = "nBL, the clocks of a burst on the data bus"
            raise InconsistentDevice(place="timing", expected=expected, found="none")
        for constraint in (*self.constraints, *self.refresh_constraints):
            try:
                cycles = evaluate(constraint.cycles, self.timing)
                if not -MOST_CYCLES <= cycles <= MOST_CYCLES:
                    raise ValueError(f"'{constraint.cycles}' is {cycles}, beyond {MOST_CYCLES} cycles")
            except ValueError as error:
                expected = "sums, products and max of names of the timing section"
                raise InconsistentDevice(place="constraints", expected=expected, found=str(error)) from error
        return self

    @model_validator(mode="after")
    def _commands_are_known(self) -> "Device":
        if len(self.command_buses) > MOST_BUSES:
            found = ", ".join(self.command_buses)
            raise InconsistentDevice(place="command_buses", expected=f"at most {MOST_BUSES} buses", found=found)
        buses = [name for names in self.command_buses.values() for name in names.split()]
        if len(buses) > len(set(buses)):
            found = f"{max(buses, key=buses.count)} twice"
            raise InconsistentDevice(place="command_buses", expected="every command once", found=found)
        rows = (*self.constraints, *self.refresh_constraints)
        named = {
            "constraints": [name for row in rows for name in (*row.preceding, *row.following)],
            "command_buses": buses,
            "command_ticks": list(self.command_ticks),
            "scopes": list(self.scopes),
        }
        for place, names in named.items():
            for name in names:
                if name not in COMMAND_NAMES:
                    expected, way_out = "commands of the instruction set", nearest(name, COMMAND_NAMES)
                    raise InconsistentDevice(place=place, expected=expected, found=name, way_out=way_out)
        return self

    @model_validator(mode="after")
    def _refresh_is_possible(self) -> "Device":
        if not self.refresh:
            return self
        per_bank = self.refresh.policy is RefreshPolicy.PER_BANK
        command, name = ("REFpb", "nRFCpb") if per_bank else ("REFab", "nRFC")
        if not any(command in (*row.preceding, *row.following) for row in self.constraints):
            expected = f"rows of {command}, which {self.refresh.policy} issues"
            raise InconsistentDevice(place="refresh", expected=expected, found="none in constraints")
        named = {item for row in self.constraints for item in (*row.preceding, *row.following)}
        for needed in ("PRE" if per_bank else "PREA", "ACT1" if "ACT1" in named else "ACT"):
            if needed not in named:
                expected = f"rows of {needed}, with which the controller closes and opens rows around a refresh"
                raise InconsistentDevice(place="refresh", expected=expected, found="none in constraints")
        for needed in ("nREFI", name):
            if not self.timing.get(needed):
                expected = f"timing {needed}, which {self.refresh.policy} needs"
                raise InconsistentDevice(place="refresh", expected=expected, found="none")
        interval = self.refresh_interval_cycles
        if self.timing[name] * self.ticks_per_clock >= interval:
            expected = f"less than the refresh interval, {interval // self.ticks_per_clock}"
            raise InconsistentDevice(place=f"timing.{name}", expected=expected, found=str(self.timing[name]))
        return self

    @model_validator(mode="after")
    def _knobs_are_known(self) -> "Device":
        from configs.knobs import HARDWARE_KNOBS  # declared on top of devices

        known = [knob.name for knob in HARDWARE_KNOBS]
        for name in self.knobs:
            if name not in known:
                expected, way_out = f"some of {', '.join(known)}", nearest(name, known)
                raise InconsistentDevice(place="knobs", expected=expected, found=name, way_out=way_out)
        return self

    @model_validator(mode="after")
    def _units_are_what_their_instruction_set_says(self) -> "Device":
        if self.processing_unit is None:
            return self
        if self.processing_unit.microkernel_words:
            for place, expected, found in contradictions(self):
                raise InconsistentDevice(place=place, expected=expected, found=found, way_out=MICROKERNEL_EXAMPLE)
        elif self.processing_unit.arithmetic == FP16_THROUGHOUT:
            expected = "the arithmetic of units in lock-step, or microkernel_words"
            raise InconsistentDevice(place="unit.arithmetic", expected=expected, found=FP16_THROUGHOUT)
        return self

    @property
    def refresh_interval_cycles(self) -> int:
        """Cycles in which every bank is due for one refresh: nREFI, half of it when hot."""
        return self.timing["nREFI"] * self.ticks_per_clock // (2 if self.refresh.hot else 1)

    @property
    def active_constraints(self) -> tuple[Constraint, ...]:
        """The rows that hold: all of them where the controller refreshes by itself, else those of the table alone."""
        return (*self.constraints, *self.refresh_constraints) if self.refresh else self.constraints

    @property
    def unit(self) -> ProcessingUnit:
        """The processing unit; raises ValueError for plain DRAM."""
        if self.processing_unit is None:
            raise ValueError(f"{self.name} is plain DRAM: it has no processing units")
        return self.processing_unit

    @property
    def cycle_ps(self) -> float:
        """What the simulator counts as one cycle: a tick of the clock."""
        return self.clock_ps / self.ticks_per_clock

    def fingerprint(self) -> str:
        """Return the sha256 of the canonical JSON of every field."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def nanoseconds(self, cycles: int) -> float:
        """Convert cycles of this device's clock to ns: the one place where this happens."""
        return cycles * self.cycle_ps / 1000


def built_in_devices() -> tuple[str, ...]:
    """Return the names of the devices that come with the project, sorted."""
    return tuple(sorted(path.stem for path in HARDWARE_FOLDER.glob("*.yaml")))


def load_device(name_or_path: str) -> Device:
    """Read a built-in device by name or any device file by path; raises UserError for a bad name, key or value."""
    import yaml

    from configs.yaml_text import load_yaml

    path = Path(name_or_path)
    if name_or_path in built_in_devices():
        path = HARDWARE_FOLDER / f"{name_or_path}.yaml"
    elif path.suffix not in (".yaml", ".yml"):
        raise _unknown_device(name_or_path)
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            where=f"--hardware {name_or_path}",
            expected="a readable device file",
            found=error.strerror or "an unreadable file",
            way_out="check the path",
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(
            where=str(path),
            expected="a YAML file",
            found=" ".join(str(error).split()),
            way_out="mend the file",
        ) from error
    return _validated(path, content)


def _validated(path: Path, content: object) -> Device:
    try:
        return Device.model_validate(content)
    except ValidationError as error:
        raise mistake(path.name, Device, error) from error


def _unknown_device(name: str) -> UserError:
    close = difflib.get_close_matches(name, built_in_devices(), n=1)
    hint = f"did you mean {close[0]}?" if close else "give one of these names or the path of a .yaml file"
    return UserError(
        where="--hardware",
        expected=f"one of {', '.join(built_in_devices())}",
        found=repr(name),
        way_out=hint,
    )
