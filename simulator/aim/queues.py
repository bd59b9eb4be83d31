"""The queues of a channel: what may be pushed, what is taken first, and the reads on their way back; compiled."""

from simulator.aim.channels import NEVER, PENDING_LIMIT, Channels, earliest_cycle, required_command
from simulator.aim.requests import NO_COMMAND, QUEUE_PIM, QUEUE_READ, QUEUE_WRITE, Requests
from simulator.aim.rules import QUEUE_LIMIT, Rules
from simulator.jit import inlined


@inlined
def offer(channels: Channels, requests: Requests, channel: int, instruction: int, column: int, cycle: int) -> bool:
    """Push a request at `cycle`, before the channel's turn in it; returns False when it is refused.

    Host accesses and PIM requests refuse each other while the other kind is queued. A read that meets any queued write
    is answered from it, because all trace requests carry the same (missing) flat address in the public simulator.
    """
    queue, size = requests.queue[instruction], channels.queue_size[channel]
    if queue == QUEUE_PIM:
        if size[QUEUE_READ] > 0 or size[QUEUE_WRITE] > 0:
            return False
    elif size[QUEUE_PIM] > 0:
        return False
    if queue == QUEUE_READ and size[QUEUE_WRITE] > 0:
        add_pending(channels, channel, instruction, cycle)
    elif not enqueue(channels, channel, queue, instruction, column, cycle - 1):
        return False
    channels.wake[channel] = min(channels.wake[channel], cycle)
    return True


@inlined
def enqueue(channels: Channels, channel: int, queue: int, instruction: int, column: int, arrival: int) -> bool:
    """Append an entry unless the queue is full."""
    size = channels.queue_size[channel, queue]
    if size >= QUEUE_LIMIT:
        return False
    channels.queue_instruction[channel, queue, size] = instruction
    channels.queue_column[channel, queue, size] = column
    channels.queue_arrival[channel, queue, size] = arrival
    channels.queue_size[channel, queue] = size + 1
    return True


@inlined
def remove(channels: Channels, channel: int, queue: int, position: int) -> None:
    """Take one entry out, the order of the others kept."""
    size = channels.queue_size[channel, queue] - 1
    for index in range(position, size):
        channels.queue_instruction[channel, queue, index] = channels.queue_instruction[channel, queue, index + 1]
        channels.queue_column[channel, queue, index] = channels.queue_column[channel, queue, index + 1]
        channels.queue_arrival[channel, queue, index] = channels.queue_arrival[channel, queue, index + 1]
    channels.queue_size[channel, queue] = size


@inlined
def add_pending(channels: Channels, channel: int, instruction: int, done: int) -> None:
    """Append a read (or SYNC, EOC) that completes at cycle `done`."""
    size = channels.pending_size[channel]
    if size >= PENDING_LIMIT:
        raise OverflowError("more reads on their way than the engine keeps")
    slot = (channels.pending_head[channel] + size) % PENDING_LIMIT
    channels.pending_instruction[channel, slot] = instruction
    channels.pending_done[channel, slot] = done
    channels.pending_size[channel] = size + 1


@inlined
def first_ready(
    channels: Channels, rules: Rules, requests: Requests, channel: int, queue: int, cycle: int
) -> tuple[int, int, bool, int]:
    """Choose the entry of a queue: a ready one before one that is not, then the older, then the one further ahead.

    Returns its position, its command, whether it is ready, and the next later cycle at which an entry becomes ready.
    """
    best, best_command, best_ready, best_arrival, later = -1, NO_COMMAND, False, NEVER, NEVER
    for position in range(channels.queue_size[channel, queue]):
        instruction = channels.queue_instruction[channel, queue, position]
        command = required_command(channels, rules, requests, channel, instruction)
        ready_at = earliest_cycle(channels, rules, channel, command, requests.bank[instruction])
        ready = ready_at <= cycle
        if not ready:
            later = min(later, ready_at)
        arrival = channels.queue_arrival[channel, queue, position]
        if best < 0 or (ready and not best_ready) or (ready == best_ready and arrival < best_arrival):
            best, best_command, best_ready, best_arrival = position, command, ready, arrival
    return best, best_command, best_ready, later
