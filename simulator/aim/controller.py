"""One cycle of one channel's controller: answer finished reads, choose a command, issue it; compiled.

Source of the rules: the public AiM simulator's controller. Each cycle it answers at most one read, takes the best
request of the active queue if that is ready, else the head of the PIM queue, else a host access, and issues at most one
command. A tick that does nothing returns when the next one could do something, so that the cycles between are skipped.
"""

import numpy as np
from numpy.typing import NDArray

from simulator.aim.channels import NEVER, PENDING_LIMIT, Channels, apply_command, earliest_cycle, required_command
from simulator.aim.queues import add_pending, enqueue, first_ready, remove
from simulator.aim.requests import (
    NO_COMMAND,
    NO_QUEUE,
    QUEUE_ACTIVE,
    QUEUE_PIM,
    QUEUE_READ,
    QUEUE_WRITE,
    SYNC_CODE,
    Requests,
)
from simulator.aim.rules import ACT, PRE, RD, TMOD, WRITES_TO_START, WRITES_TO_STOP, Rules
from simulator.jit import inlined


@inlined
def tick(
    channels: Channels, rules: Rules, requests: Requests, channel: int, cycle: int, issued: NDArray[np.int64]
) -> bool:
    """Run one cycle; returns whether a blocking instruction called back. `issued` = command, instruction, column."""
    issued[0] = NO_COMMAND
    answered, called_back, later = _answer(channels, requests, channel, cycle)
    queue, position, command, ready_at = _choose(channels, rules, requests, channel, cycle)
    if queue != NO_QUEUE:
        _issue(channels, rules, requests, channel, queue, position, command, cycle, issued)
    if answered or queue != NO_QUEUE:
        channels.wake[channel] = cycle + 1
    else:
        channels.wake[channel] = min(later, ready_at)
    return called_back


@inlined
def _answer(channels: Channels, requests: Requests, channel: int, cycle: int) -> tuple[bool, bool, int]:
    """Take the oldest pending read if it is done; SYNC and EOC also wait until the cycle after the last write is done.

    Returns whether one was taken, whether it calls the DMA back, and otherwise the cycle at which it could be.
    """
    if channels.pending_size[channel] == 0:
        return False, False, NEVER
    head = channels.pending_head[channel]
    instruction, done = channels.pending_instruction[channel, head], channels.pending_done[channel, head]
    if requests.command[instruction] >= SYNC_CODE:
        done = max(done, channels.writes_done[channel] + 1)
    if done > cycle:
        return False, False, done
    channels.pending_head[channel] = (head + 1) % PENDING_LIMIT
    channels.pending_size[channel] -= 1
    return True, requests.blocking[instruction], NEVER


@inlined
def _choose(
    channels: Channels, rules: Rules, requests: Requests, channel: int, cycle: int
) -> tuple[int, int, int, int]:
    """Return queue, position and command of what issues now; else NO_QUEUE and the next cycle that may differ."""
    queue = QUEUE_ACTIVE
    position, command, ready, later = first_ready(channels, rules, requests, channel, queue, cycle)
    if not ready:
        active_later = later
        if channels.queue_size[channel, QUEUE_PIM] > 0:
            queue, position = QUEUE_PIM, 0
            command, ready, later = _head_of_pim(channels, rules, requests, channel, cycle)
        else:
            queue = _host_queue(channels, channel)
            position, command, ready, later = first_ready(channels, rules, requests, channel, queue, cycle)
        later = min(later, active_later)
    if ready and command == PRE:
        bank = requests.bank[channels.queue_instruction[channel, queue, position]]
        ready = not _is_active(channels, requests, channel, bank)
    return (queue if ready else NO_QUEUE), position, command, later


@inlined
def _head_of_pim(
    channels: Channels, rules: Rules, requests: Requests, channel: int, cycle: int
) -> tuple[int, bool, int]:
    """Return the command of the oldest PIM request, whether it is ready, and when it will be: PIM runs in order."""
    instruction = channels.queue_instruction[channel, QUEUE_PIM, 0]
    if requests.command[instruction] >= SYNC_CODE:
        return requests.command[instruction], True, NEVER
    command = required_command(channels, rules, requests, channel, instruction)
    ready_at = earliest_cycle(channels, rules, channel, command, requests.bank[instruction])
    return command, ready_at <= cycle, (ready_at if ready_at > cycle else NEVER)


@inlined
def _host_queue(channels: Channels, channel: int) -> int:
    """Choose between reads and writes, with the two thresholds of the public controller."""
    reads, writes = channels.queue_size[channel, QUEUE_READ], channels.queue_size[channel, QUEUE_WRITE]
    if not channels.write_mode[channel]:
        channels.write_mode[channel] = writes >= WRITES_TO_START or reads == 0
    elif writes <= WRITES_TO_STOP and reads > 0:
        channels.write_mode[channel] = False
    return QUEUE_WRITE if channels.write_mode[channel] else QUEUE_READ


@inlined
def _is_active(channels: Channels, requests: Requests, channel: int, bank: int) -> bool:
    """Return whether an opened-for request still waits on this bank, which a PRE must then leave alone."""
    for position in range(channels.queue_size[channel, QUEUE_ACTIVE]):
        if requests.bank[channels.queue_instruction[channel, QUEUE_ACTIVE, position]] == bank:
            return True
    return False


@inlined
def _issue(
    channels: Channels,
    rules: Rules,
    requests: Requests,
    channel: int,
    queue: int,
    position: int,
    command: int,
    cycle: int,
    issued: NDArray[np.int64],
) -> None:
    """Issue a command, or the mode change it needs in its stead, and move its request on."""
    instruction = channels.queue_instruction[channel, queue, position]
    column = channels.queue_column[channel, queue, position]
    issued[1], issued[2] = instruction, column
    if command >= SYNC_CODE:
        issued[0] = command
        add_pending(channels, channel, instruction, cycle)
        remove(channels, channel, queue, position)
        return
    if requests.register_mode[instruction] != channels.register_mode[channel]:
        channels.register_mode[channel] = not channels.register_mode[channel]
        command = TMOD
    issued[0] = command
    apply_command(channels, rules, channel, command, requests.bank[instruction], requests.row[instruction], cycle)
    if command == requests.command[instruction]:
        done = cycle + rules.latency[command]
        if requests.blocking[instruction] or command == RD:
            add_pending(channels, channel, instruction, done)
        else:
            channels.writes_done[channel] = max(channels.writes_done[channel], done)
        remove(channels, channel, queue, position)
    elif command == ACT and requests.queue[instruction] != QUEUE_PIM:
        # As in the public controller, a request that finds the active queue full is lost.
        arrival = channels.queue_arrival[channel, queue, position]
        enqueue(channels, channel, QUEUE_ACTIVE, instruction, column, arrival)
        remove(channels, channel, queue, position)
