"""The state of every channel as arrays, and how issued commands change rows and timing; compiled.

`ready[channel, place, kind]` is the first cycle a command of that kind may issue as far as one place knows: place 0 is
the channel, then come its bank groups, then its banks. A command asks, and marks, the places from the channel down to
its own scope; a command that addresses all banks asks and marks the channel alone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.aim.requests import Requests
from simulator.aim.rules import (
    ACT,
    ACT16,
    PRE,
    PREA,
    QUEUE_LIMIT,
    ROW_OF_BANK,
    ROWS_IGNORED,
    WRA16,
    Rules,
)
from simulator.jit import inlined

CLOSED = -1
PENDING_LIMIT = 1024
"""Reads a channel may have on their way: a generous bound on 52 cycles of latency plus two full queues."""
NEVER = 1 << 60
QUEUES = 4


class Channels(NamedTuple):
    """State per channel; queue entries are (instruction, column, arrival), oldest push first."""

    ready: NDArray[np.int64]
    open_row: NDArray[np.int64]
    register_mode: NDArray[np.bool_]
    write_mode: NDArray[np.bool_]
    queue_instruction: NDArray[np.int64]
    queue_column: NDArray[np.int64]
    queue_arrival: NDArray[np.int64]
    queue_size: NDArray[np.int64]
    pending_instruction: NDArray[np.int64]
    pending_done: NDArray[np.int64]
    pending_head: NDArray[np.int64]
    pending_size: NDArray[np.int64]
    writes_done: NDArray[np.int64]
    wake: NDArray[np.int64]


def new_channels(count: int, rules: Rules) -> Channels:
    """Return idle channels: all rows closed, memory mode, nothing queued, every command ready."""
    banks = rules.bank_groups * rules.banks_per_group
    places, kinds = 1 + rules.bank_groups + banks, len(rules.scope)
    queues = (count, QUEUES, QUEUE_LIMIT)
    return Channels(
        ready=np.zeros((count, places, kinds), dtype=np.int64),
        open_row=np.full((count, banks), CLOSED, dtype=np.int64),
        register_mode=np.zeros(count, dtype=np.bool_),
        write_mode=np.zeros(count, dtype=np.bool_),
        queue_instruction=np.zeros(queues, dtype=np.int64),
        queue_column=np.zeros(queues, dtype=np.int64),
        queue_arrival=np.zeros(queues, dtype=np.int64),
        queue_size=np.zeros((count, QUEUES), dtype=np.int64),
        pending_instruction=np.zeros((count, PENDING_LIMIT), dtype=np.int64),
        pending_done=np.zeros((count, PENDING_LIMIT), dtype=np.int64),
        pending_head=np.zeros(count, dtype=np.int64),
        pending_size=np.zeros(count, dtype=np.int64),
        writes_done=np.zeros(count, dtype=np.int64),
        wake=np.ones(count, dtype=np.int64),
    )


@inlined
def required_command(channels: Channels, rules: Rules, requests: Requests, channel: int, instruction: int) -> int:
    """Return the command a request needs next: its own, or one that closes or opens rows for it."""
    command: int = requests.command[instruction]
    if rules.rows[command] == ROWS_IGNORED:
        return command
    row = requests.row[instruction]
    if rules.rows[command] == ROW_OF_BANK:
        is_open = channels.open_row[channel, requests.bank[instruction]]
        if is_open == CLOSED:
            return ACT
        return command if is_open == row else PRE
    any_closed = False
    for bank in range(channels.open_row.shape[1]):
        is_open = channels.open_row[channel, bank]
        if is_open == CLOSED:
            any_closed = True
        elif is_open != row:
            return PREA
    return ACT16 if any_closed else command


@inlined
def earliest_cycle(channels: Channels, rules: Rules, channel: int, command: int, bank: int) -> int:
    """Return the first cycle at which every place the command asks is ready for it."""
    cycle: int = channels.ready[channel, 0, command]
    if rules.scope[command] >= 1:
        cycle = max(cycle, channels.ready[channel, 1 + bank // rules.banks_per_group, command])
    if rules.scope[command] >= 2:
        cycle = max(cycle, channels.ready[channel, 1 + rules.bank_groups + bank, command])
    return cycle


@inlined
def apply_command(
    channels: Channels, rules: Rules, channel: int, command: int, bank: int, row: int, cycle: int
) -> None:
    """Mark the places a command touches as busy for what may follow, and open or close rows."""
    _mark(channels, rules, channel, 0, 0, command, cycle)
    if rules.scope[command] >= 1:
        _mark(channels, rules, channel, 1, 1 + bank // rules.banks_per_group, command, cycle)
    if rules.scope[command] >= 2:
        _mark(channels, rules, channel, 2, 1 + rules.bank_groups + bank, command, cycle)
    if command == ACT:
        channels.open_row[channel, bank] = row
    elif command == PRE:
        channels.open_row[channel, bank] = CLOSED
    elif command == ACT16:
        channels.open_row[channel, :] = row
    elif command in (PREA, WRA16):
        channels.open_row[channel, :] = CLOSED


@inlined
def _mark(channels: Channels, rules: Rules, channel: int, level: int, place: int, command: int, cycle: int) -> None:
    """Move `ready` of a place behind `cycle`; an absent gap is -1 and so asks for nothing beyond the present."""
    for kind in range(channels.ready.shape[2]):
        after = cycle + rules.gap[level, command, kind]
        channels.ready[channel, place, kind] = max(channels.ready[channel, place, kind], after)
