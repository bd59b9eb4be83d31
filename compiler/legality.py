"""Which schedules a device can run, in closed form, and why not, with amounts.

Each rule is one row of a table: what a schedule needs, what the device has. The same rows serve whole arrays of
candidates (`illegal`) and the explanation of a single one (`reasons`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.attention import AttentionShape, key_columns
from compiler.geometry import ceil_div, packing
from compiler.hand_kernels import KERNELS
from compiler.hbm_pim.geometry import MOST_GROUPS
from compiler.linear import LinearShape
from compiler.schedule import GENERATED, AttentionSchedule, LinearSchedule, LoopOrder, Place, PoolShape
from configs.device import Device
from configs.microkernel_units import BANKS_OF_UNIT, REGISTERS
from configs.number_format import INPUT_BITS, Storage

NO_SPILLS = "a microkernel has no way to take partial sums back"
ONE_VECTOR = "{needed} vectors share a row, but a microkernel takes {available} at a time"


@dataclass(frozen=True, slots=True)
class Rule:
    """`needed` may not exceed `available`; the text names both by {needed} and {available}."""

    name: str
    needed: Any
    available: Any
    text: str


def unit_values(device: Device) -> dict[str, tuple[int | str, ...]]:
    """Return the values that schedule knobs of any task can have at all on a device, where its units decide them."""
    if not device.unit.microkernel_words:
        return {}
    return {
        "*.segment_columns": (REGISTERS,),
        "*.context_segment_columns": (REGISTERS,),
        "*.registers": (REGISTERS,),
        "*.reuse": (1,),
        "*.score_reuse": (1,),
        "*.context_reuse": (1,),
        "*.order": (str(LoopOrder.RELOAD),),
    }


def linear_rules(shape: LinearShape, schedule: LinearSchedule, pool: PoolShape) -> tuple[Rule, ...]:
    """Return the rules of a linear operator on the units."""
    split, reuse = schedule.reduction_split, schedule.reuse
    total = ceil_div(ceil_div(shape.inputs, split), pool.lanes)
    segment = np.minimum(schedule.segment_columns, total)
    packed = packing(shape.storage, pool)
    row_columns = pool.columns * packed.per_column
    return (
        *_microkernel_rules(shape, ceil_div(shape.outputs, np.maximum(pool.channels // split, 1)), pool),
        *_fixed_rules(reuse, schedule.segment_columns, schedule.registers, pool),
        Rule("order", (schedule.order == LoopOrder.SPILL) & pool.runs_microkernels, 0, NO_SPILLS),
        *_scale_rules(shape, split, np.where(segment < total, segment, 0), pool),
        Rule("reduction split", pool.channels % split, 0, "{needed} of the channels are left over by the split"),
        Rule(
            "reduction split",
            split,
            ceil_div(shape.inputs, pool.lanes),
            "a split of {needed} is more than the {available} columns of the input",
        ),
        Rule(
            "row",
            packed.stored(segment),
            row_columns,
            "a segment of {needed} columns is wider than a row of {available}",
        ),
        Rule(
            "global buffer",
            reuse * segment,
            pool.buffer_columns,
            "needs {needed} columns of global buffer, the device has {available}",
        ),
        Rule(
            "registers", reuse, schedule.registers, "{needed} vectors share a row, but {available} registers are used"
        ),
        Rule(
            "registers", schedule.registers, pool.accumulators, "needs {needed} accumulators, the unit has {available}"
        ),
        Rule("reuse", shape.vectors % reuse, 0, "{needed} of the vectors are left over by the reuse"),
    )


def _fixed_rules(reuse: Any, segment: Any, registers: Any, pool: PoolShape) -> tuple[Rule, ...]:
    """Return that a schedule has what registers fix, where units run microkernels."""
    if not pool.runs_microkernels:
        return ()
    whole = "{needed} of the " + str(REGISTERS)
    return (
        Rule("reuse", reuse, 1, ONE_VECTOR),
        Rule("segment", np.abs(REGISTERS - segment), 0, whole + " columns that inputs have registers for are not used"),
        Rule("registers", np.abs(REGISTERS - registers), 0, whole + " registers of sums are not used"),
    )


def _microkernel_rules(shape: LinearShape | AttentionShape, outputs: Any, pool: PoolShape) -> tuple[Rule, ...]:
    """Return what registers and rows of results ask, where units run microkernels."""
    if not pool.runs_microkernels:
        return ()
    groups = ceil_div(ceil_div(outputs, pool.banks), REGISTERS)
    narrow = "units multiply values of 16 bits, those stored have {needed} less"
    results = "a vector has {needed} groups of results on a channel, there are rows for {available}"
    return (
        Rule("format", INPUT_BITS - shape.storage.bits, 0, narrow),
        Rule("results", groups, MOST_GROUPS, results),
    )


def _scale_rules(shape: LinearShape, split: Any, cut: Any, pool: PoolShape) -> tuple[Rule, ...]:
    """Return the rules of weights whose scales lie in rows; `cut` is the length of segments where there are several."""
    group = shape.storage.group
    if not group:
        return ()
    over_by_part = np.where(split > 1, ceil_div(shape.inputs, split) % group, 0)
    over_by_segment = cut % packing(shape.storage, pool).group
    sharing = "the values that share a scale"
    latched = "its scales lie in rows, and units that multiply from second row buffers take none from there"
    return (
        Rule("row buffers", np.where(pool.latched, 1, 0), 0, latched),
        Rule("scale group", group % pool.lanes, 0, f"{{needed}} of {sharing} are left over by the lanes"),
        Rule("scale group", over_by_part, 0, f"{{needed}} inputs of a part are left over by {sharing}"),
        Rule("scale group", over_by_segment, 0, f"{{needed}} columns of a segment are left over by {sharing}"),
    )


def attention_rules(shape: AttentionShape, schedule: AttentionSchedule, pool: PoolShape) -> tuple[Rule, ...]:
    """Return the rules of an attention operator on the units."""
    split, score, context = schedule.token_split, schedule.score_reuse, schedule.context_reuse
    key, segment = key_columns(shape, pool), schedule.context_segment_columns
    row_columns = pool.columns * packing(shape.storage, pool).per_column
    tokens = ceil_div(ceil_div(shape.tokens, split), schedule.token_blocks)
    block = np.lcm(pool.banks * REGISTERS, BANKS_OF_UNIT * pool.lanes * REGISTERS)
    return (
        *_microkernel_rules(shape, np.maximum(ceil_div(tokens, block) * block, shape.head_dim), pool),
        *_fixed_rules(np.maximum(score, context), segment, schedule.registers, pool),
        Rule("token split", pool.channels % split, 0, "{needed} of the channels are left over by the token split"),
        Rule("token split", split, shape.tokens, "a token split of {needed} is more than the {available} tokens"),
        Rule("row", key, row_columns, "a key of {needed} columns is wider than a row of {available}"),
        Rule("row", segment, row_columns, "a segment of {needed} columns is wider than a row of {available}"),
        Rule(
            "global buffer",
            np.maximum(score * key, context * segment),
            pool.buffer_columns,
            "needs {needed} columns of global buffer, the device has {available}",
        ),
        Rule(
            "registers",
            np.maximum(score, context),
            schedule.registers,
            "{needed} vectors share a row, but {available} registers are used",
        ),
        Rule(
            "registers", schedule.registers, pool.accumulators, "needs {needed} accumulators, the unit has {available}"
        ),
        Rule(
            "reuse", shape.group % score + shape.group % context, 0, "{needed} query heads are left over by the reuse"
        ),
    )


def rules(
    shape: LinearShape | AttentionShape, schedule: LinearSchedule | AttentionSchedule, pool: PoolShape
) -> tuple[Rule, ...]:
    """Return the rules of a task; raises TypeError for a schedule of the other kind."""
    match shape, schedule:
        case LinearShape(), LinearSchedule():
            return linear_rules(shape, schedule, pool)
        case AttentionShape(), AttentionSchedule():
            return attention_rules(shape, schedule, pool)
    raise TypeError(f"{shape.name} cannot run {schedule}")


def legal(place: Any, applied: Iterable[Rule]) -> NDArray[np.bool_]:
    """Return which candidates break no rule; what runs on the host breaks none."""
    broken: Any = np.zeros(np.shape(place), dtype=bool)
    for rule in applied:
        broken = broken | (np.asarray(rule.needed) > np.asarray(rule.available))
    return np.asarray(~broken | (place == Place.HOST))


def all_reasons(
    shape: LinearShape | AttentionShape, schedule: LinearSchedule | AttentionSchedule, pool: PoolShape
) -> tuple[str, ...]:
    """Return every reason why an operator cannot run so; empty when it can."""
    return (
        *reasons(shape.name, schedule.place, rules(shape, schedule, pool)),
        *kernel_reasons(shape.name, schedule, shape.storage, pool),
    )


def kernel_reasons(
    task: str, schedule: LinearSchedule | AttentionSchedule, stored: Storage, pool: PoolShape
) -> tuple[str, ...]:
    """Return why a kernel written by hand cannot serve a schedule; empty for the generated one."""
    if not isinstance(schedule, LinearSchedule) or schedule.kernel == GENERATED:
        return ()
    scales = ("it takes no scales from rows",) if stored.group else ()
    latched = ("it multiplies from open rows, and units from second row buffers",) if pool.latched else ()
    return tuple(f"{task}: {reason}" for reason in (*KERNELS[schedule.kernel].reasons(schedule), *scales, *latched))


def reasons(task: str, place: Place, applied: Iterable[Rule]) -> tuple[str, ...]:
    """Return why one candidate is illegal, a line per broken rule; empty when it is legal."""
    if place is Place.HOST:
        return ()
    return tuple(
        f"{task}: {rule.text.format(needed=int(rule.needed), available=int(rule.available))}"
        for rule in applied
        if rule.needed > rule.available
    )
