"""GPUs as fixed points of comparison: their figures and published decode measurements, each with source and confidence.

All of it is one file, `configs/gpus.yaml`; unknown keys are refused. `autotune.reference_points` turns it into points.
"""

from enum import StrEnum
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from configs.device_mistakes import InconsistentDevice, mistake, nearest
from configs.errors import UserError
from configs.number_format import NumberFormat
from configs.record import PositiveFloat, PositiveInt, Record

GPU_FILE = Path(__file__).parent / "gpus.yaml"
LOOK = "configs/gpus.yaml shows every key"


class Confidence(StrEnum):
    """How far a figure can be trusted."""

    HIGH = "high"  # stated by the vendor or by whoever measured it, and read there
    MEDIUM = "medium"  # read in a second hand that names the first
    LOW = "low"  # an assumption


class Sourced(Record):
    """A figure, where it was read, and how far it can be trusted."""

    value: PositiveFloat
    source: str
    confidence: Confidence


class SourcedRange(Record):
    """The lowest and the highest of several measurements."""

    low: PositiveFloat
    high: PositiveFloat
    source: str
    confidence: Confidence

    @model_validator(mode="after")
    def _is_ordered(self) -> "SourcedRange":
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self


class Gpu(Record):
    """One GPU with its board; the silicon is that of the logic die and of the DRAM dies of its stacks."""

    name: str
    title: str
    memory_bandwidth_gb_per_s: Sourced
    memory_gib: Sourced
    bf16_tflops: Sourced = Field(description="dense")
    board_power_w: Sourced
    decode_power_w: SourcedRange | None = None
    logic_mm2: Sourced
    dram_dies: Sourced
    dram_die_mm2: Sourced

    @property
    def area_mm2(self) -> float:
        """Silicon of the logic die and the DRAM dies."""
        return self.logic_mm2.value + self.dram_dies.value * self.dram_die_mm2.value


class MeasuredDecode(Record):
    """A published measurement: tokens per second of all sequences while they are decoded, at a mean context.

    `reported_gb_per_s` is what the source itself says the weights were read at; `power_limit_w` is what the board was
    limited to.
    """

    gpu: str
    model: str
    weights: NumberFormat
    batch: PositiveInt
    context: PositiveInt
    tokens_per_s: PositiveFloat
    reported_gb_per_s: PositiveFloat | None = None
    power_limit_w: PositiveFloat | None = None
    software: str
    source: str
    confidence: Confidence
    note: str = ""

    @property
    def step_ns(self) -> float:
        """Time in which every sequence gets a token."""
        return self.batch / self.tokens_per_s * 1e9


class GpuReferences(Record):
    """The file: GPUs and what was measured on them."""

    gpus: tuple[Gpu, ...] = Field(min_length=1)
    measured: tuple[MeasuredDecode, ...] = ()
    assumptions: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_are_known(self) -> "GpuReferences":
        names = [gpu.name for gpu in self.gpus]
        if len(names) > len(set(names)):
            found = f"{max(names, key=names.count)} twice"
            raise InconsistentDevice(place="gpus", expected="every name once", found=found, way_out=LOOK)
        for item in self.measured:
            if item.gpu not in names:
                expected, way_out = f"one of {', '.join(names)}", nearest(item.gpu, names) or LOOK
                raise InconsistentDevice(place="measured.gpu", expected=expected, found=item.gpu, way_out=way_out)
        return self

    def gpu(self, name: str) -> Gpu:
        """Return a GPU by name; raises KeyError."""
        return {gpu.name: gpu for gpu in self.gpus}[name]


def load_gpus(path: Path = GPU_FILE) -> GpuReferences:
    """Read the GPUs; raises UserError for a file that cannot be read, a bad key or a bad value."""
    import yaml

    from configs.yaml_text import load_yaml

    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            where=path.name,
            expected="a readable file of GPUs",
            found=error.strerror or "an unreadable file",
            way_out="check the path",
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        found = " ".join(str(error).split())
        raise UserError(where=path.name, expected="a YAML file", found=found, way_out="mend the file") from error
    try:
        return GpuReferences.model_validate(content)
    except ValidationError as error:
        raise mistake(path.name, GpuReferences, error) from error
