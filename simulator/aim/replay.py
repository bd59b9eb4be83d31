"""From an instruction trace to every DRAM command and the cycle it issues at."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from configs.errors import UserError
from simulator.aim.channels import new_channels
from simulator.aim.engine import CYCLE, ENDED, STUCK, Log, advance, new_dma, new_log
from simulator.aim.requests import COMMAND_NAMES, SYNC_CODE, Requests, requests_of
from simulator.aim.rules import Rules, rules_of
from simulator.aim.trace import read_trace

LOG_ROWS = 1 << 20
"""Rows of one piece of the log; a run longer than that continues in the next piece."""


@dataclass(frozen=True, slots=True)
class Commands:
    """What the channels took, in order of cycle then channel; `name` indexes COMMAND_NAMES, -1 stands for no value.

    `bank` counts within its bank group. SYNC and EOC have rows of their own.
    """

    cycle: NDArray[np.int32]
    name: NDArray[np.int8]
    channel: NDArray[np.int8]
    bank_group: NDArray[np.int16]
    bank: NDArray[np.int16]
    row: NDArray[np.int32]
    column: NDArray[np.int32]
    instruction: NDArray[np.int32]

    def counts(self) -> dict[str, int]:
        """Return the number of DRAM commands of each kind that occurred, over all channels, without SYNC and EOC."""
        totals = np.bincount(self.name, minlength=len(COMMAND_NAMES))
        return {str(name): int(total) for name, total in zip(COMMAND_NAMES[:SYNC_CODE], totals, strict=False) if total}


@dataclass(frozen=True, slots=True)
class Replay:
    """The result: total cycles, every command, how many instructions ran, and how many lines after EOC did not."""

    cycles: int
    commands: Commands
    instructions: int
    ignored_lines: int


def replay(path: Path, device: Device) -> Replay:
    """Execute a trace file on a device; raises UserError for a trace or device that cannot be used."""
    rules = rules_of(device)
    trace = read_trace(path, device.organisation)
    requests = requests_of(trace, device.organisation.channels)
    cycles, commands = execute(requests, rules, where=path.name)
    return Replay(cycles, commands, len(trace.instructions), trace.ignored_lines)


def execute(requests: Requests, rules: Rules, *, where: str) -> tuple[int, Commands]:
    """Run requests to their end; returns the cycle of the last callback and the commands."""
    channels = new_channels(requests.channels.shape[1], rules)
    dma, pieces, status = new_dma(requests.channels.shape[1]), [], None
    while status != ENDED:
        log = new_log(LOG_ROWS)
        status = advance(channels, dma, rules, requests, log)
        pieces.append(log)
        if status == STUCK:
            raise _stuck(where, int(dma.clock[CYCLE]))
    return int(dma.clock[CYCLE]), _commands(pieces, requests, rules)


def _commands(pieces: list[Log], requests: Requests, rules: Rules) -> Commands:
    def joined(name: str) -> NDArray[np.signedinteger]:
        return np.concatenate([getattr(piece, name)[: piece.size[0]] for piece in pieces])

    instruction = joined("instruction")
    bank, row = requests.bank.astype(np.int16), requests.row.astype(np.int32)
    group = np.where(bank < 0, -1, bank // rules.banks_per_group).astype(np.int16)
    within = np.where(bank < 0, -1, bank % rules.banks_per_group).astype(np.int16)
    return Commands(
        cycle=joined("cycle"),
        name=joined("command"),
        channel=joined("channel"),
        bank_group=group[instruction],
        bank=within[instruction],
        row=row[instruction],
        column=joined("column"),
        instruction=instruction,
    )


def _stuck(where: str, cycle: int) -> UserError:
    return UserError(
        where=where,
        expected="a trace that reaches its EOC",
        found=f"one that never ends: after cycle {cycle} a host access waits to close a row that it holds open itself",
        way_out="put a SYNC between host accesses and PIM instructions on the same banks",
    )
