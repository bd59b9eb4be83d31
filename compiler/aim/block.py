"""What a trace of one transformer block is made for: the block's sizes, its place on a device, and its operators.

Identical blocks stand side by side on the channels of one device and run the same instructions in lock-step.
"""

from dataclasses import dataclass
from enum import StrEnum

from compiler.geometry import ceil_div
from configs.device import Device
from configs.errors import UserError
from configs.model_config import ModelConfig
from simulator.aim.instructions import Instruction


class OpName(StrEnum):
    """The operators of a block in program order; a mapping may do some of them outside the banks."""

    ATTENTION_NORM = "attention norm"
    QUERY_KEY_VALUE = "query, key, value"
    ROTARY = "rotary embedding"
    APPEND = "key and value append"
    SCORES = "scores"
    SOFTMAX = "softmax"
    CONTEXT = "context"
    ATTENTION_OUTPUT = "attention output"
    MLP_NORM = "MLP norm"
    GATE_UP = "gate and up"
    ACTIVATION = "gate product"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class BlockOp:
    """One operator's instructions."""

    name: OpName
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class BlockShape:
    """Sizes of one dense, Llama-like block in elements; `context` tokens are attended, the newest included."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    context: int

    @property
    def query_width(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key heads, and of all value heads."""
        return self.kv_heads * self.head_dim

    @property
    def group(self) -> int:
        """Query heads that share one KV head."""
        return self.heads // self.kv_heads


@dataclass(frozen=True, slots=True)
class Placement:
    """`copies` of a block on `channels` channels each, copy b on channels b*channels and up; sizes of a channel."""

    channels: int
    copies: int
    device_channels: int
    banks: int
    rows: int
    columns: int
    lanes: int

    @property
    def block_banks(self) -> int:
        """Banks of one copy."""
        return self.channels * self.banks

    @property
    def row_values(self) -> int:
        """Values of one row of one bank."""
        return self.columns * self.lanes

    def first_channels(self, count: int) -> tuple[int, ...]:
        """Return the first `count` channels of every copy."""
        return tuple(copy * self.channels + channel for copy in range(self.copies) for channel in range(count))

    def columns_of(self, values: int) -> int:
        """Return the columns that hold so many values."""
        return int(ceil_div(values, self.lanes))


def block_shape(config: ModelConfig, context: int) -> BlockShape:
    """Return the block of a model at a context; raises UserError for a model with other operators than Llama's."""
    _refuse(config, config.experts > 0, "experts")
    _refuse(config, config.query_key_norm, "norms of query and key")
    _refuse(config, config.attention_bias or config.mlp_bias, "biases")
    _refuse(config, (config.sliding_window or context) < context, f"a sliding window of {config.sliding_window} tokens")
    return BlockShape(config.hidden, config.heads, config.kv_heads, config.head_dim, config.intermediate, context)


def placement(device: Device, channels: int) -> Placement:
    """Return as many copies of a block as a device holds; raises UserError when it has too few channels for one."""
    organisation = device.organisation
    if not 1 <= channels <= organisation.channels:
        raise UserError(
            where=f"--channels {channels}",
            expected=f"1 to {organisation.channels}, the channels of {device.name}",
            found=str(channels),
            way_out="CENT places a block on 8 (7B), 16 (13B) or 10 (70B) channels",
        )
    _refuse_units(device)
    return Placement(
        channels=channels,
        copies=organisation.channels // channels,
        device_channels=organisation.channels,
        banks=organisation.banks,
        rows=organisation.rows,
        columns=organisation.columns,
        lanes=organisation.column_bytes // 2,
    )


def _refuse(config: ModelConfig, refused: bool, found: str) -> None:
    if refused:
        raise UserError(
            where=f"--model {config.name}",
            expected="a dense block of Llama's operators with full attention",
            found=found,
            way_out="use llama-2-7b, llama-2-13b, llama-2-70b or llama-3.1-8b",
        )


def _refuse_units(device: Device) -> None:
    """Raise UserError for units that AiM instructions do not know."""
    organisation, unit = device.organisation, device.unit
    for name, found, expected in (
        ("row_buffers", organisation.row_buffers, 1),
        ("vectors_per_multiply", unit.vectors_per_multiply, 1),
        ("column_bytes", organisation.column_bytes, unit.lanes * unit.value_bytes),
    ):
        if found != expected:
            raise UserError(
                where=f"--hardware {device.name}, {name}",
                expected=f"{expected}, as AiM instructions have it",
                found=str(found),
                way_out="take a device without it",
            )
