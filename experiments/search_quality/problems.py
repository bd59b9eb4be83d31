"""Problems small enough for an exact front: the knobs that matter most, with the values around the device's own.

The rule is the same for every model and device, so that any scenario can be asked about: of several widths the widest
whose designs can be enumerated. The named problems are those that the figures in `docs/search.md` are of.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from autotune.problem import HARDWARE_GROUP, Knob
from autotune.problem_spec import ProblemSpec, problem_spec
from autotune.run_settings import RunSettings
from autotune.space import SPLITS, space_of
from compiler.linear import LinearShape
from configs.knobs import base_knobs

Values = tuple[int | str, ...]
MOST_DESIGNS = 1 << 23  # legal or not, with one design of an operator on the host
# How many values, nearest to the device's own, each hardware knob keeps; all others stay as they are.
HARDWARE: Mapping[str, int] = MappingProxyType(
    {
        "channels": 4,
        "banks_per_channel": 5,
        "row_bytes": 3,
        "lanes": 3,
        "column_bytes": 3,
        "rows_per_subarray": 2,
        "host_link": 2,
    }
)
FIXED_HARDWARE: Mapping[str, int] = MappingProxyType({"global_buffer_bytes": 4096})
SCHEDULE: Mapping[str, Values] = MappingProxyType(
    {
        "segment_columns": (16,),
        "registers": (32,),
        "order": ("reload",),
        "merged": (1,),
        "preactivate": (1,),
        "token_blocks": (1,),
        "context_segment_columns": (16,),
    }
)


@dataclass(frozen=True, slots=True)
class Width:
    """How much of the splits is kept, whether the hardware knobs keep all values, and of how many operators.

    Those with fewer weights than the first so many keep one split.
    """

    splits: Values
    token_splits: Values
    all_hardware: bool = False
    operators: int | None = None

    @property
    def split(self) -> int | str:
        """The one split of the smaller operators."""
        return self.splits[len(self.splits) // 2]


WIDTHS = (
    Width(SPLITS, SPLITS, all_hardware=True),
    Width((1, 2, 8, 32, 64), (1, 4, 16, 32, 64), all_hardware=True),
    Width((1, 8, 64), (4, 32)),
    Width((1, 8, 64), (4, 32), operators=5),
)


@dataclass(frozen=True, slots=True)
class Named:
    """A problem by name: its settings and why it is among them."""

    settings: RunSettings
    reason: str


NAMED: Mapping[str, Named] = MappingProxyType(
    {
        "dense": Named(RunSettings("llama", context=4096, devices="auto"), "a dense model, the default of the tool"),
        "long-context": Named(
            RunSettings("qwen3-8b", context=32768, devices="auto", kv="fp8"),
            "grouped queries, a long narrow cache",
        ),
        "moe": Named(
            RunSettings("mixtral-8x7b", context=8192, devices="auto", weights="int4", kv="fp8"), "a mixture of experts"
        ),
        "narrow": Named(
            RunSettings("mistral-7b", context=8192, devices="auto", weights="int8", kv="fp8"), "narrow formats"
        ),
    }
)


def small_problem(settings: RunSettings) -> ProblemSpec:
    """Return the small problem of a scenario; as many vectors as possible share an open row."""
    spec = problem_spec(settings)
    knobs = space_of(spec.workload.schedulables, {}, spec.base).knobs
    chosen: dict[str, Values] = {}
    for width in WIDTHS:
        smaller = _smaller_operators(spec, width)
        chosen = {knob.label: _kept(knob, spec, width, smaller) for knob in knobs}
        if _designs(knobs, chosen) <= MOST_DESIGNS:
            break
    return replace(spec, restrictions=chosen)


def _smaller_operators(spec: ProblemSpec, width: Width) -> frozenset[str]:
    """Return the linear operators that keep one split."""
    linear = [shape for shape in spec.workload.schedulables if isinstance(shape, LinearShape)]
    by_size = sorted(linear, key=lambda shape: -shape.outputs * shape.inputs)
    return frozenset(shape.name for shape in by_size[width.operators :]) if width.operators else frozenset()


def _designs(knobs: tuple[Knob, ...], chosen: Mapping[str, Values]) -> int:
    """Return how many designs there are when an operator on the host has no other knobs, legal or not."""
    total = 1
    for group in dict.fromkeys(knob.group for knob in knobs):
        count = 1
        for knob in knobs:
            count *= len(chosen[knob.label]) if knob.group == group and knob.name != "place" else 1
        total *= count if group == HARDWARE_GROUP else count + 1
    return total


def _kept(knob: Knob, spec: ProblemSpec, width: Width, smaller: frozenset[str]) -> Values:
    """Return the values that a knob keeps."""
    if knob.group == HARDWARE_GROUP:
        own = getattr(base_knobs(spec.base), knob.name)
        if knob.name in FIXED_HARDWARE:
            fixed = FIXED_HARDWARE[knob.name]
            return (fixed,) if fixed in knob.values else (own,)
        if width.all_hardware and knob.name in HARDWARE:
            return knob.values
        return _nearest(knob.values, own, HARDWARE.get(knob.name, 1))
    if knob.name.endswith("reuse"):
        return knob.values[-1:]
    if knob.name == "reduction_split":
        return (width.split,) if knob.group in smaller else width.splits
    asked = width.token_splits if knob.name == "token_split" else SCHEDULE.get(knob.name, knob.values)
    return tuple(value for value in asked if value in knob.values) or knob.values[:1]


def _nearest(values: Values, own: int | str, count: int) -> Values:
    """Return the values nearest to the own one in the order of the knob, the later of two that are equally near."""
    place = values.index(own)
    order = sorted(range(len(values)), key=lambda index: (abs(index - place), -index))
    return tuple(values[index] for index in sorted(order[:count]))
