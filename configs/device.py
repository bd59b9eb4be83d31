"""The description of a device: organisation, timing table, processing unit, energy, area, link, host, dispatcher.

A device is one YAML file in `configs/hardware` that reads like the standard's tables; unknown keys are refused. The
constants carry their sources as comments in the file and, where an assumption is made, in `assumptions`.
"""

import difflib
import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from configs.errors import UserError
from configs.expression import evaluate

HARDWARE_FOLDER = Path(__file__).parent / "hardware"

MOST_CYCLES = 1_000_000
PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Record(BaseModel):
    """A frozen section of the file; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class Organisation(Record):
    """The DRAM arrays of one device; `column_bytes` is what one column access delivers."""

    channels: PositiveInt
    bank_groups: PositiveInt
    banks_per_group: PositiveInt
    rows: PositiveInt
    row_bytes: PositiveInt
    column_bytes: PositiveInt
    burst_bytes: PositiveInt = Field(description="bytes the external data bus moves in nBL cycles")

    @model_validator(mode="after")
    def _columns_fill_rows(self) -> "Organisation":
        if self.row_bytes % self.column_bytes:
            raise ValueError(f"row_bytes {self.row_bytes} is not a multiple of column_bytes {self.column_bytes}")
        return self

    @property
    def banks(self) -> int:
        """Banks of one channel."""
        return self.bank_groups * self.banks_per_group

    @property
    def columns(self) -> int:
        """Column accesses in one row."""
        return self.row_bytes // self.column_bytes

    @property
    def capacity_bytes(self) -> int:
        """Bytes of one device."""
        return self.channels * self.banks * self.rows * self.row_bytes


class ProcessingUnit(Record):
    """The multiply-accumulate unit beside each bank, and the buffer all units of a channel share."""

    lanes: PositiveInt
    accumulators: PositiveInt
    global_buffer_bytes: PositiveInt
    value_bytes: PositiveInt
    arithmetic: Literal["bf16-products-fp32-tree-fp32-accumulate-bf16-readout"]


class Energy(Record):
    """Energy per event in pJ and standby power in mW, all of one `basis`: maxima and typicals are never mixed."""

    basis: str
    activate_precharge_pj: PositiveFloat
    column_read_pj: PositiveFloat
    column_write_pj: PositiveFloat
    all_bank_mac_pj: PositiveFloat
    mac_multiply_share: Annotated[float, Field(ge=0, le=1)]
    global_buffer_access_pj: PositiveFloat
    data_bus_pj_per_bit: PositiveFloat
    link_pj_per_bit: PositiveFloat
    controller_column_pj: PositiveFloat
    controller_command_pj: PositiveFloat
    retention_ms: PositiveFloat
    typical_row_factor: Annotated[float, Field(gt=0, le=1)]
    typical_column_factor: Annotated[float, Field(gt=0, le=1)]
    standby_active_mw: PositiveFloat
    standby_precharged_mw: PositiveFloat
    standby_array_share: Annotated[float, Field(ge=0, le=1)]


class Band(Record):
    """An uncertain constant: low, nominal and high."""

    low: PositiveFloat
    nominal: PositiveFloat
    high: PositiveFloat

    @model_validator(mode="after")
    def _is_ordered(self) -> "Band":
        if not self.low <= self.nominal <= self.high:
            raise ValueError(f"low {self.low}, nominal {self.nominal}, high {self.high} are not in rising order")
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
    bandwidth_gb_per_s: PositiveFloat
    latency_ns: Amount


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


class Constraint(Record):
    """`following` may issue no earlier than `cycles` after the `window`-th last `preceding`, at the given level."""

    level: Literal["channel", "bankgroup", "bank"]
    preceding: tuple[str, ...]
    following: tuple[str, ...]
    cycles: str
    window: PositiveInt = 1

    @model_validator(mode="before")
    @classmethod
    def _from_row(cls, row: Any) -> Any:
        """Accept the table's compact form: [level, preceding, following, cycles, window?]."""
        if not isinstance(row, list):
            return row
        if len(row) not in (4, 5):
            raise ValueError(f"a constraint row has 4 or 5 cells, this one {len(row)}: {row}")
        cells = {
            "level": row[0],
            "preceding": str(row[1]).split(),
            "following": str(row[2]).split(),
            "cycles": str(row[3]),
        }
        return cells | ({"window": row[4]} if len(row) == 5 else {})


class Device(Record):
    """One device of a system, with everything the compiler and the simulator need to know of it."""

    name: str
    family: str
    title: str
    clock_ps: PositiveInt
    organisation: Organisation
    unit: ProcessingUnit
    timing: dict[str, int]
    constraints: tuple[Constraint, ...]
    refresh: bool
    energy: Energy | None = None
    area: Area | None = None
    power: Power | None = None
    link: Link | None = None
    host: Host | None = None
    dispatcher: Dispatcher | None = None
    assumptions: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _expressions_resolve(self) -> "Device":
        for name, cycles in self.timing.items():
            if not 0 <= cycles <= MOST_CYCLES:
                raise ValueError(f"timing {name} is {cycles}, outside 0 to {MOST_CYCLES} cycles")
        for constraint in self.constraints:
            evaluate(constraint.cycles, self.timing)
        return self

    def fingerprint(self) -> str:
        """Return the sha256 of the canonical JSON of every field."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def nanoseconds(self, cycles: int) -> float:
        """Convert cycles of this device's clock to ns: the one place where this happens."""
        return cycles * self.clock_ps / 1000


def built_in_devices() -> tuple[str, ...]:
    """Return the names of the devices that come with the project, sorted."""
    return tuple(sorted(path.stem for path in HARDWARE_FOLDER.glob("*.yaml")))


def load_device(name_or_path: str) -> Device:
    """Read a built-in device by name or any device file by path; raises UserError for a bad name, key or value."""
    import yaml

    path = Path(name_or_path)
    if name_or_path in built_in_devices():
        path = HARDWARE_FOLDER / f"{name_or_path}.yaml"
    elif path.suffix not in (".yaml", ".yml"):
        raise _unknown_device(name_or_path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
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
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the top level"
        found = repr(first["input"])
        raise UserError(
            where=f"{path.name}, key {place}",
            expected=first["msg"],
            found=found if len(found) < 80 else f"{found[:77]}...",
            way_out="the built-in files in configs/hardware show every key",
        ) from error


def _unknown_device(name: str) -> UserError:
    close = difflib.get_close_matches(name, built_in_devices(), n=1)
    hint = f"did you mean {close[0]}?" if close else "give one of these names or the path of a .yaml file"
    return UserError(
        where="--hardware",
        expected=f"one of {', '.join(built_in_devices())}",
        found=repr(name),
        way_out=hint,
    )
