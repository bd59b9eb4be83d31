"""Schedules: one frozen record of knob values per task, and the device figures that decide whether they are legal.

A field of these records is an int, an enum or a bool; in the vectorised closed forms (`compiler.geometry`,
`compiler.legality`) the same records hold arrays with one entry per candidate.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import numpy as np

from configs.device import Device
from configs.microkernel_units import BANKS_OF_UNIT, RESERVED_ROWS
from simulator.laws.figures import DeviceFigures

GENERATED = "generated"


class Place(StrEnum):
    """Which processor runs a task."""

    PIM = "pim"
    HOST = "host"


class LoopOrder(StrEnum):
    """What is paid when outputs need more accumulators and inputs more buffer than there is.

    `RELOAD` keeps partial sums in accumulators and writes the global buffer again for every group of outputs;
    `SPILL` writes each input segment once and moves rounded partial sums out and in again.
    """

    RELOAD = "reload"
    SPILL = "spill"


@dataclass(frozen=True, slots=True)
class LinearSchedule:
    """How y = W x runs: split, tile and order.

    `reduction_split` channels share one output and add their parts on the host; the other channels split the outputs.
    `segment_columns` columns of input are in the global buffer at a time; `reuse` vectors of the batch use a row while
    it is open; `registers` accumulators are in use. `merged` matrices share one pass over their common input.
    `preactivate` opens the next row before the mode change that follows the current one. `kernel` names one of
    `compiler.hand_kernels` that runs in place of the generated code.
    """

    place: Place = Place.PIM
    reduction_split: int = 1
    segment_columns: int = 64
    reuse: int = 1
    registers: int = 32
    order: LoopOrder = LoopOrder.RELOAD
    merged: bool = True
    preactivate: bool = True
    kernel: str = GENERATED


@dataclass(frozen=True, slots=True)
class AttentionSchedule:
    """How one KV head's attention runs: K rows hold tokens, V rows hold dimensions along the tokens.

    `token_split` channels share the tokens of one KV head (token t lives in channel t mod token_split) and the
    remaining channels take other heads and sequences. Query heads of a group are the vectors that reuse open rows.
    With more than one of `token_blocks`, the tokens are worked on in so many blocks, so that the host's softmax of one
    runs beside the scores of the next and the context of the one before; the host joins the blocks' contexts.
    """

    place: Place = Place.PIM
    token_split: int = 1
    token_blocks: int = 1
    score_reuse: int = 1
    context_segment_columns: int = 64
    context_reuse: int = 1
    registers: int = 32
    preactivate: bool = True


Schedule = LinearSchedule | AttentionSchedule


def schedule_text(schedule: Schedule) -> str:
    """Return the canonical text: the record's name and every field."""
    values = ((field.name, getattr(schedule, field.name)) for field in fields(schedule))
    return f"{type(schedule).__name__}({', '.join(f'{name}={value}' for name, value in values)})"


@dataclass(frozen=True, slots=True)
class PoolShape:
    """What a schedule sees of the devices: ints, or arrays with one entry per candidate device.

    `channels` counts the channels of all devices of the system, `columns` those of a row of a bank. One holds
    `column_accesses` accesses of as many 16-bit values as a unit has lanes; `buffer_columns` counts entries of as many.
    Where units run microkernels, `banks` counts units.
    """

    channels: Any
    banks: Any
    rows: Any
    columns: Any
    lanes: Any
    buffer_columns: Any
    accumulators: Any
    column_accesses: Any = 1
    row_buffers: Any = 1
    vectors_per_multiply: Any = 1
    microkernel_words: Any = 0

    @property
    def runs_microkernels(self) -> bool:
        """Whether units run microkernels: those of all devices do, or none."""
        return bool(np.any(self.microkernel_words))

    @property
    def latched(self) -> Any:
        """Whether units multiply from a second row buffer."""
        return self.row_buffers == 2

    @property
    def row_accesses(self) -> Any:
        """Accesses of 16-bit values in a row of a bank."""
        return self.columns * self.column_accesses


def pool_shape(device: Device | DeviceFigures, devices: int) -> PoolShape:
    """Return the shape of a pool of identical devices."""
    organisation, unit = device.organisation, device.unit
    access_bytes = unit.lanes * unit.value_bytes
    # A unit with a microkernel has two banks, whose rows count as one, and keeps some of them for itself.
    shared, reserved = (BANKS_OF_UNIT, RESERVED_ROWS) if unit.microkernel_words else (1, 0)
    return PoolShape(
        channels=organisation.channels * devices,
        banks=organisation.banks // shared,
        rows=organisation.rows - reserved,
        columns=organisation.columns * shared,
        lanes=unit.lanes,
        buffer_columns=unit.global_buffer_bytes // access_bytes,
        accumulators=unit.accumulators,
        column_accesses=organisation.column_bytes // access_bytes,
        row_buffers=organisation.row_buffers,
        vectors_per_multiply=unit.vectors_per_multiply,
        microkernel_words=unit.microkernel_words,
    )
