"""The DMA that feeds all channels, and the loop over cycles; compiled.

Each cycle the DMA first offers what is left of the present instruction, channel by channel; if nothing was left and
nothing blocks, it decodes the next instruction and offers its requests. Then every channel has its turn. An instruction
whose leftovers all went is over, and the next is decoded in the cycle after; a blocking one is over once all its
channels called back. Cycles in which the DMA waits and no channel can act are skipped.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.aim.channels import NEVER, Channels
from simulator.aim.controller import tick
from simulator.aim.queues import offer
from simulator.aim.requests import NO_COMMAND, NO_QUEUE, Requests
from simulator.aim.rules import Rules
from simulator.jit import inlined, kernel

RUNNING, ENDED, STUCK = range(3)
CYCLE, POSITION, WAITING_FOR = range(3)


class Dma(NamedTuple):
    """`clock` = cycle, instruction, callbacks outstanding; `sent[c]` of `wanted[c]` requests have gone to channel c.

    `issued` is where a channel leaves what it issued: command, instruction, column.
    """

    clock: NDArray[np.int64]
    sent: NDArray[np.int64]
    wanted: NDArray[np.int64]
    issued: NDArray[np.int64]


class Log(NamedTuple):
    """Issued commands, at most one a channel and cycle, in order of cycle then channel; `size[0]` rows are filled."""

    cycle: NDArray[np.int32]
    command: NDArray[np.int8]
    channel: NDArray[np.int8]
    instruction: NDArray[np.int32]
    column: NDArray[np.int32]
    size: NDArray[np.int64]


def new_dma(channel_count: int) -> Dma:
    """Return a DMA before its first cycle."""
    return Dma(
        clock=np.zeros(3, dtype=np.int64),
        sent=np.zeros(channel_count, dtype=np.int64),
        wanted=np.zeros(channel_count, dtype=np.int64),
        issued=np.zeros(3, dtype=np.int64),
    )


def new_log(rows: int) -> Log:
    """Return an empty log with room for so many commands."""
    return Log(
        cycle=np.zeros(rows, dtype=np.int32),
        command=np.zeros(rows, dtype=np.int8),
        channel=np.zeros(rows, dtype=np.int8),
        instruction=np.zeros(rows, dtype=np.int32),
        column=np.zeros(rows, dtype=np.int32),
        size=np.zeros(1, dtype=np.int64),
    )


@kernel
def advance(channels: Channels, dma: Dma, rules: Rules, requests: Requests, log: Log) -> int:
    """Run until the trace ends, the log has no room for one more cycle, or nothing can ever happen again."""
    channel_count, clock, issued = len(channels.wake), dma.clock, dma.issued
    while log.size[0] + channel_count <= len(log.cycle):
        following = clock[CYCLE] + 1
        if clock[WAITING_FOR] > 0 or _has_leftovers(dma):
            following = max(following, _next_wake(channels))
            if following >= NEVER:
                return STUCK
        clock[CYCLE] = following
        _feed(channels, dma, requests)
        for channel in range(channel_count):
            if channels.wake[channel] <= clock[CYCLE]:
                called_back = tick(channels, rules, requests, channel, clock[CYCLE], issued)
                _note(log, clock[CYCLE], channel, issued)
                if called_back:
                    clock[WAITING_FOR] -= 1
                    if clock[WAITING_FOR] == 0:
                        clock[POSITION] += 1
        if clock[POSITION] == len(requests.command):
            return ENDED
    return RUNNING


@inlined
def _next_wake(channels: Channels) -> int:
    """Return the first cycle at which a channel can act."""
    cycle = NEVER
    for channel in range(len(channels.wake)):
        cycle = min(cycle, channels.wake[channel])
    return cycle


@inlined
def _has_leftovers(dma: Dma) -> bool:
    """Return whether a channel still refuses requests of the present instruction."""
    found = False
    for channel in range(len(dma.sent)):
        found = found or dma.sent[channel] < dma.wanted[channel]
    return found


@inlined
def _feed(channels: Channels, dma: Dma, requests: Requests) -> None:
    """Do the DMA's part of one cycle."""
    clock = dma.clock
    if _has_leftovers(dma):
        if _offer_all(channels, dma, requests) and clock[WAITING_FOR] == 0:
            clock[POSITION] += 1
        return
    if clock[WAITING_FOR] > 0:
        return
    instruction = clock[POSITION]
    if requests.queue[instruction] != NO_QUEUE:
        for channel in range(len(dma.sent)):
            dma.sent[channel] = 0
            dma.wanted[channel] = requests.columns[instruction] if requests.channels[instruction, channel] else 0
            if requests.blocking[instruction]:
                clock[WAITING_FOR] += dma.wanted[channel]
    if _offer_all(channels, dma, requests) and clock[WAITING_FOR] == 0:
        clock[POSITION] += 1


@inlined
def _offer_all(channels: Channels, dma: Dma, requests: Requests) -> bool:
    """Offer each channel its remaining requests until it refuses one; returns whether all have gone."""
    instruction, cycle, all_sent = dma.clock[POSITION], dma.clock[CYCLE], True
    for channel in range(len(dma.sent)):
        while dma.sent[channel] < dma.wanted[channel]:
            column = requests.first_column[instruction] + dma.sent[channel]
            if not offer(channels, requests, channel, instruction, column, cycle):
                all_sent = False
                break
            dma.sent[channel] += 1
    return all_sent


@inlined
def _note(log: Log, cycle: int, channel: int, issued: NDArray[np.int64]) -> None:
    if issued[0] == NO_COMMAND:
        return
    row = log.size[0]
    log.cycle[row], log.channel[row] = cycle, channel
    log.command[row], log.instruction[row], log.column[row] = issued[0], issued[1], issued[2]
    log.size[0] = row + 1
