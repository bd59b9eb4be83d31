"""Our mapping of one transformer block: schedules chosen per operator, lowered, and emitted operator by operator.

Query, key and value share one pass over the normalised input; norms, rotary embedding, softmax and gate product run on
the accelerators and cost no instruction, except the residual additions, which are CENT's.
"""

from dataclasses import dataclass, replace

from compiler.aim.block import BlockOp, BlockShape, OpName, Placement
from compiler.aim.cent_rows import CENT_CACHE_TOKENS
from compiler.aim.own_attention import OwnAttention
from compiler.aim.own_linear import Emitted, linear_trace
from compiler.linear import LinearShape
from compiler.schedule import AttentionSchedule, LinearSchedule, PoolShape, pool_shape
from configs.device import Device
from configs.errors import UserError
from simulator.aim.instructions import Instruction, Opcode


@dataclass(frozen=True, slots=True)
class OwnSchedules:
    """One schedule per operator; `gate` keeps half of the accumulators free for activated values."""

    query_key_value: LinearSchedule
    attention: AttentionSchedule
    output: LinearSchedule
    gate: LinearSchedule
    up: LinearSchedule
    down: LinearSchedule


@dataclass(frozen=True, slots=True)
class OwnLayers:
    """The linear operators of a block."""

    query_key_value: LinearShape
    output: LinearShape
    gate: LinearShape
    up: LinearShape
    down: LinearShape


def own_layers(shape: BlockShape) -> OwnLayers:
    """Return the linear operators of a block for one token."""
    widths = (shape.query_width, shape.kv_width, shape.kv_width)
    return OwnLayers(
        query_key_value=LinearShape("qkv", widths, shape.hidden, 1),
        output=LinearShape("output", (shape.hidden,), shape.query_width, 1),
        gate=LinearShape("gate", (shape.intermediate,), shape.hidden, 1),
        up=LinearShape("up", (shape.intermediate,), shape.hidden, 1),
        down=LinearShape("down", (shape.hidden,), shape.intermediate, 1),
    )


def block_pool(device: Device, place: Placement) -> PoolShape:
    """Return what the schedules of one copy see of the device."""
    return replace(pool_shape(device, 1), channels=place.channels)


def cache_room(shape: BlockShape) -> int:
    """Return the tokens that the cache has room for: CENT's, or the context's where that is more."""
    return max(CENT_CACHE_TOKENS, shape.context)


def own_block(shape: BlockShape, place: Placement, device: Device, schedules: OwnSchedules) -> tuple[BlockOp, ...]:
    """Return the operators; raises UserError when the block needs more rows than a bank has."""
    pool, layers, channels = block_pool(device, place), own_layers(shape), place.first_channels(place.channels)

    def lower(layer: LinearShape, schedule: LinearSchedule, row: int, activated: bool = False) -> Emitted:
        return linear_trace(layer, schedule, pool, channels, row, activated=activated)

    first = lower(layers.query_key_value, schedules.query_key_value, 0)
    attention = OwnAttention(shape, place, pool, schedules.attention, cache_room(shape), first.rows)
    row = first.rows + attention.rows
    output = lower(layers.output, schedules.output, row)
    gate = lower(layers.gate, schedules.gate, row + output.rows, activated=True)
    up = lower(layers.up, schedules.up, row + output.rows + gate.rows)
    down = lower(layers.down, schedules.down, row + output.rows + gate.rows + up.rows)
    _require_rows(row + output.rows + gate.rows + up.rows + down.rows, place)
    residual = Instruction(Opcode.EWADD, place.columns_of(shape.hidden))
    return (
        BlockOp(OpName.QUERY_KEY_VALUE, first.instructions),
        BlockOp(OpName.APPEND, attention.append()),
        BlockOp(OpName.SCORES, attention.scores()),
        BlockOp(OpName.CONTEXT, attention.contexts()),
        BlockOp(OpName.ATTENTION_OUTPUT, (*output.instructions, residual)),
        BlockOp(OpName.GATE_UP, (*gate.instructions, *up.instructions)),
        BlockOp(OpName.DOWN, (*down.instructions, residual)),
    )


def _require_rows(rows: int, place: Placement) -> None:
    if rows > place.rows:
        raise UserError(
            where=f"--channels {place.channels}",
            expected=f"at most {place.rows} rows in every bank",
            found=f"{rows} rows for one block",
            way_out="place the block on more channels or shorten the context",
        )
