"""The replay once more, in plain Python, one cycle and one channel after the other: the oracle of the compiled engine.

It skips no cycle and keeps requests as objects in lists, so that it can be read beside a description of the rules. It
shares with the engine only the lowered requests and the device's rules.
"""

from dataclasses import dataclass, field, replace

from simulator.aim.requests import NO_QUEUE, QUEUE_ACTIVE, QUEUE_PIM, QUEUE_READ, QUEUE_WRITE, SYNC_CODE, Requests
from simulator.aim.rules import (
    ACT,
    ACT16,
    PRE,
    PREA,
    QUEUE_LIMIT,
    RD,
    ROW_OF_BANK,
    ROWS_IGNORED,
    TMOD,
    WRA16,
    WRITES_TO_START,
    WRITES_TO_STOP,
    Rules,
)

Row = tuple[int, int, int, int, int]
"""One issued command: cycle, command, channel, column, instruction."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its instruction and final command, where it goes, and when it arrived."""

    instruction: int
    command: int
    queue: int
    bank: int
    row: int
    column: int
    register_mode: bool
    blocking: bool
    arrival: int = -1


@dataclass(slots=True)
class Channel:
    """One channel with its controller."""

    rules: Rules
    queues: tuple[list[Request], ...] = field(default_factory=lambda: ([], [], [], []))
    open_rows: dict[int, int] = field(default_factory=dict)
    last_issue: dict[tuple[int, int, int], int] = field(default_factory=dict)
    pending_reads: list[tuple[int, Request]] = field(default_factory=list)
    pending_writes: list[int] = field(default_factory=list)
    register_mode: bool = False
    write_mode: bool = False

    def offer(self, request: Request, cycle: int) -> bool:
        """Take a request before the turn of `cycle`, or refuse it."""
        reads, writes = self.queues[QUEUE_READ], self.queues[QUEUE_WRITE]
        if (reads or writes) if request.queue == QUEUE_PIM else self.queues[QUEUE_PIM]:
            return False
        if request.queue == QUEUE_READ and writes:
            self.pending_reads.append((cycle, request))
            return True
        return self._enqueue(request.queue, replace(request, arrival=cycle))

    def tick(self, cycle: int) -> tuple[bool, tuple[int, Request] | None]:
        """Run one cycle; returns whether a blocking request called back, and the issued command with its request."""
        called_back = self._answer(cycle)
        chosen = self._choose(cycle)
        return called_back, None if chosen is None else (self._issue(*chosen, cycle), chosen[1])

    def _enqueue(self, queue: int, request: Request) -> bool:
        if len(self.queues[queue]) >= QUEUE_LIMIT:
            return False
        self.queues[queue].append(request)
        return True

    def _answer(self, cycle: int) -> bool:
        called_back = False
        if self.pending_reads:
            done, request = self.pending_reads[0]
            if done <= cycle and not (request.command >= SYNC_CODE and self.pending_writes):
                called_back = request.blocking
                del self.pending_reads[0]
        self.pending_writes = [done for done in self.pending_writes if done > cycle]
        return called_back

    def _choose(self, cycle: int) -> tuple[int, Request, int] | None:
        queue = QUEUE_ACTIVE
        request = self._best(queue, cycle)
        if request is None or not self._is_ready(request, cycle):
            if self.queues[QUEUE_PIM]:
                queue, request = QUEUE_PIM, self.queues[QUEUE_PIM][0]
            else:
                queue = self._host_queue()
                request = self._best(queue, cycle)
        if request is None or not self._is_ready(request, cycle):
            return None
        command = self._required(request)
        if command == PRE and any(other.bank == request.bank for other in self.queues[QUEUE_ACTIVE]):
            return None
        return queue, request, command

    def _best(self, queue: int, cycle: int) -> Request | None:
        """Return the first ready request, else the oldest; `min` keeps the one further ahead among equals."""
        return min(
            self.queues[queue], key=lambda entry: (not self._is_ready(entry, cycle), entry.arrival), default=None
        )

    def _host_queue(self) -> int:
        reads, writes = len(self.queues[QUEUE_READ]), len(self.queues[QUEUE_WRITE])
        if self.write_mode:
            self.write_mode = not (writes <= WRITES_TO_STOP and reads)
        else:
            self.write_mode = writes >= WRITES_TO_START or not reads
        return QUEUE_WRITE if self.write_mode else QUEUE_READ

    def _is_ready(self, request: Request, cycle: int) -> bool:
        if request.command >= SYNC_CODE:
            return True
        command = self._required(request)
        return all(
            cycle >= issued + self.rules.gap[level, preceding, command]
            for level, place in self._places(command, request.bank)
            for preceding in range(len(self.rules.scope))
            if (issued := self.last_issue.get((level, place, preceding))) is not None
        )

    def _places(self, command: int, bank: int) -> list[tuple[int, int]]:
        """Return (level, number) of channel, bank group and bank, down to the command's scope."""
        places = [(0, 0), (1, bank // self.rules.banks_per_group), (2, bank)]
        return places[: self.rules.scope[command] + 1]

    def _required(self, request: Request) -> int:
        need = ROWS_IGNORED if request.command >= SYNC_CODE else self.rules.rows[request.command]
        if need == ROWS_IGNORED:
            return request.command
        if need == ROW_OF_BANK:
            if request.bank not in self.open_rows:
                return ACT
            return request.command if self.open_rows[request.bank] == request.row else PRE
        if any(row != request.row for row in self.open_rows.values()):
            return PREA
        return request.command if len(self.open_rows) == self._banks() else ACT16

    def _banks(self) -> int:
        return self.rules.bank_groups * self.rules.banks_per_group

    def _issue(self, queue: int, request: Request, command: int, cycle: int) -> int:
        if command >= SYNC_CODE:
            self.pending_reads.append((cycle, request))
            self.queues[queue].remove(request)
            return command
        if request.register_mode != self.register_mode:
            self.register_mode = request.register_mode
            command = TMOD
        for level, place in self._places(command, request.bank):
            self.last_issue[level, place, command] = cycle
        self._switch_rows(request, command)
        if command == request.command:
            done = cycle + int(self.rules.latency[command])
            if request.blocking or command == RD:
                self.pending_reads.append((done, request))
            else:
                self.pending_writes.append(done)
            self.queues[queue].remove(request)
        elif command == ACT and request.queue != QUEUE_PIM:
            self._enqueue(QUEUE_ACTIVE, request)  # lost when the active queue is full, as in the public controller
            self.queues[queue].remove(request)
        return command

    def _switch_rows(self, request: Request, command: int) -> None:
        if command == ACT:
            self.open_rows[request.bank] = request.row
        elif command == PRE:
            del self.open_rows[request.bank]
        elif command == ACT16:
            self.open_rows = dict.fromkeys(range(self._banks()), request.row)
        elif command in (PREA, WRA16):
            self.open_rows = {}


def execute_slowly(requests: Requests, rules: Rules, *, cycle_limit: int) -> tuple[int, list[Row]] | None:
    """Run requests to their end; returns the last cycle and every command, or None past `cycle_limit`."""
    channels = [Channel(rules) for _ in range(requests.channels.shape[1])]
    leftovers: list[list[Request]] = [[] for _ in channels]
    rows: list[Row] = []
    position, outstanding = 0, 0
    for cycle in range(1, cycle_limit):
        decoded = False
        if not any(leftovers) and outstanding == 0:
            leftovers = [unrolled(requests, position, channel) for channel in range(len(channels))]
            outstanding = sum(request.blocking for queue in leftovers for request in queue)
            decoded = True
        had_leftovers = any(leftovers)
        for channel, queue in zip(channels, leftovers, strict=True):
            while queue and channel.offer(queue[0], cycle):
                del queue[0]
        if (decoded or had_leftovers) and not any(leftovers) and outstanding == 0:
            position += 1
        for number, channel in enumerate(channels):
            called_back, issued = channel.tick(cycle)
            if issued is not None:
                command, request = issued
                rows.append((cycle, command, number, request.column, request.instruction))
            outstanding -= called_back
            position += called_back and outstanding == 0
        if position == len(requests.command):
            return cycle, rows
    return None


def unrolled(requests: Requests, instruction: int, channel: int) -> list[Request]:
    """Return the requests of one instruction for one channel."""
    if requests.queue[instruction] == NO_QUEUE or not requests.channels[instruction, channel]:
        return []
    first = Request(
        instruction=instruction,
        command=int(requests.command[instruction]),
        queue=int(requests.queue[instruction]),
        bank=int(requests.bank[instruction]),
        row=int(requests.row[instruction]),
        column=int(requests.first_column[instruction]),
        register_mode=bool(requests.register_mode[instruction]),
        blocking=bool(requests.blocking[instruction]),
    )
    return [replace(first, column=first.column + step) for step in range(int(requests.columns[instruction]))]
