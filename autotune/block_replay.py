"""Cycles of a block's instructions by replay with the public AiM simulator's rules, in total and by operator."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.aim.block import BlockOp, OpName
from compiler.aim.emit import end_of_trace
from configs.device import Device
from simulator.aim.instructions import Instruction
from simulator.aim.replay import execute
from simulator.aim.requests import requests_of
from simulator.aim.rules import Rules, rules_of
from simulator.aim.trace import Trace


@dataclass(frozen=True, slots=True)
class BlockCycles:
    """Total cycles of a trace and those of each operator: from its first command to that of the next operator."""

    total: int
    by_op: dict[OpName, int]


def whole_trace(ops: Iterable[BlockOp], device: Device) -> tuple[Instruction, ...]:
    """Return the instructions of all operators and the EOC that ends the run."""
    body = (instruction for op in ops for instruction in op.instructions)
    return (*body, end_of_trace(device.organisation.channels))


def replay_block(ops: Sequence[BlockOp], device: Device) -> BlockCycles:
    """Replay a block on all channels of a device; raises UserError for a device without AiM instructions."""
    requests = requests_of(Trace(whole_trace(ops, device)), device.organisation.channels)
    total, commands = execute(requests, rules_of(device), where="block")
    firsts = np.cumsum([0, *(len(op.instructions) for op in ops)])
    starts = [_first_cycle(commands.cycle, commands.instruction, first) for first in firsts[1:-1]]
    bounds = (0, *starts, total)
    spans = zip(bounds[1:], bounds[:-1], strict=True)
    return BlockCycles(total, {op.name: after - before for op, (after, before) in zip(ops, spans, strict=True)})


def channel_cycles(instructions: Sequence[Instruction], rules: Rules) -> int:
    """Return the cycles of instructions that all channels execute in lock-step, replayed on one of them."""
    trace = Trace((*(_on_first(item) for item in instructions), end_of_trace(1)))
    return execute(requests_of(trace, 1), rules, where="candidate")[0]


def _on_first(instruction: Instruction) -> Instruction:
    return Instruction(
        instruction.opcode,
        instruction.opsize,
        (0,) if instruction.channels else (),
        instruction.bank,
        instruction.row,
        instruction.register,
        instruction.data,
    )


def _first_cycle(cycles: NDArray[np.int32], instruction: NDArray[np.int32], first: int) -> int:
    """Return the cycle of the first command of the instructions from `first` on."""
    return int(cycles[instruction >= first].min())
