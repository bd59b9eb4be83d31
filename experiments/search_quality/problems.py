"""Problems small enough for an exact front: the knobs that matter most, with the values around the device's own.

The rule is the same for every model and device, so that any scenario can be asked about; the named problems are those
that the figures in `docs/search.md` are of.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from autotune.problem import HARDWARE_GROUP, Knob
from autotune.problem_spec import ProblemSpec, problem_spec
from autotune.run_settings import RunSettings
from autotune.space import space_of
from configs.knobs import base_knobs

Values = tuple[int | str, ...]
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
        "reduction_split": (1, 8, 64),
        "segment_columns": (16,),
        "registers": (32,),
        "order": ("reload",),
        "merged": (1,),
        "preactivate": (1,),
        "token_split": (4, 32),
        "token_blocks": (1,),
        "context_segment_columns": (16,),
    }
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
        "moe": Named(RunSettings("mixtral-8x7b", context=4096, devices="auto"), "a mixture of experts"),
        "other-device": Named(
            RunSettings("mistral-7b", "attacc", context=8192, devices="auto"), "another device family"
        ),
    }
)


def small_problem(settings: RunSettings) -> ProblemSpec:
    """Return the small problem of a scenario; as many vectors as possible share an open row."""
    spec = problem_spec(settings)
    restrictions: dict[str, Values] = {}
    for knob in space_of(spec.workload.schedulables, {}, spec.base).knobs:
        restrictions[knob.label] = _kept(knob, getattr(base_knobs(spec.base), knob.name, None))
    return replace(spec, restrictions=restrictions)


def _kept(knob: Knob, own: int | str | None) -> Values:
    """Return the values that a knob keeps."""
    if knob.group == HARDWARE_GROUP:
        assert own is not None
        if knob.name in FIXED_HARDWARE:
            fixed = FIXED_HARDWARE[knob.name]
            return (fixed,) if fixed in knob.values else (own,)
        return _nearest(knob.values, own, HARDWARE.get(knob.name, 1))
    if knob.name.endswith("reuse"):
        return knob.values[-1:]
    wanted = tuple(value for value in SCHEDULE.get(knob.name, knob.values) if value in knob.values)
    return wanted or knob.values[:1]


def _nearest(values: Values, own: int | str, count: int) -> Values:
    """Return the values nearest to the own one in the order of the knob, the later of two that are equally near."""
    place = values.index(own)
    order = sorted(range(len(values)), key=lambda index: (abs(index - place), -index))
    return tuple(values[index] for index in sorted(order[:count]))
