"""Programs to AiM instructions: one instruction for a run of one command over consecutive operands.

The public AiM simulator's controller opens and closes rows and changes modes on its own, when a request needs it; so
ACT, PRE and TMOD, and the events of the step simulator, have no instruction. What is left out is checked: a command
must find the row open, and the mode set, that the controller will give it.

The format says less than a program: MAC_ABK, WR_GB and the copies have no column (columns count from 0), accumulators
have no number, general registers carry no data. Cycles do not depend on any of these.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter

from simulator.aim.instructions import Instruction, Opcode
from simulator.isa import (
    ACTIVATES,
    BANK_KINDS,
    EVENT_KINDS,
    NEED_OPEN_ROWS,
    OPERANDS,
    PRECHARGES,
    REGISTER_MODE_KINDS,
    Affine,
    Command,
    Issued,
    Kind,
    Loop,
    Program,
)
from simulator.isa import Instruction as ProgramInstruction

OPCODE_OF: dict[Kind, Opcode] = {
    Kind.WR: Opcode.WR_SBK,
    Kind.RD: Opcode.RD_SBK,
    Kind.WRA16: Opcode.WR_ABK,
    Kind.WRGB: Opcode.WR_GB,
    Kind.WRMAC16: Opcode.WR_BIAS,
    Kind.RDMAC16: Opcode.RD_MAC,
    Kind.RDAF16: Opcode.RD_AF,
    Kind.RDCP: Opcode.COPY_BKGB,
    Kind.WRCP: Opcode.COPY_GBBK,
    Kind.MAC: Opcode.MAC_SBK,
    Kind.MAC16: Opcode.MAC_ABK,
    Kind.AF16: Opcode.AF,
    Kind.EWMUL16: Opcode.EWMUL,
}
"""The instruction whose requests end with a command (public AiM simulator, table of host requests)."""
STEPS: dict[Kind, tuple[str, ...]] = {
    Kind.MAC16: ("column", "buffer"),
    Kind.MAC: ("column", "buffer"),
    Kind.WRGB: ("buffer", "data"),
    Kind.RDCP: ("column", "buffer"),
    Kind.WRCP: ("column", "buffer"),
    Kind.EWMUL16: ("column",),
}
"""Operands that advance by one within an instruction of these kinds; all others stay."""
BY_CONTROLLER = ACTIVATES | PRECHARGES | EVENT_KINDS | {Kind.TMOD}
ANY_ROW = -1
_OPERANDS_OF = attrgetter(*OPERANDS)


@dataclass(frozen=True, slots=True)
class Run:
    """`count` commands on consecutive operands; `first` is the first of them."""

    first: Issued
    count: int


def emit(program: Program, channels: tuple[int, ...]) -> tuple[Instruction, ...]:
    """Return the instructions for channels that execute a program in lock-step, without EOC.

    Raises ValueError for a program whose rows or modes differ from what the controller would give its commands, or
    with commands that AiM has not.
    """
    found: list[Instruction] = []
    for run in _joined(_checked(_runs(program.body, ()))):
        found.extend(_instructions(run, channels))
    return tuple(found)


def end_of_trace(device_channels: int) -> Instruction:
    """Return the EOC that ends every trace."""
    return Instruction(Opcode.EOC, channels=tuple(range(device_channels)))


def _instructions(run: Run, channels: tuple[int, ...]) -> Iterator[Instruction]:
    opcode = OPCODE_OF[run.first.kind]
    bank = run.first.bank if run.first.kind in BANK_KINDS else -1
    row = run.first.row if run.first.kind in NEED_OPEN_ROWS else -1
    one = Instruction(opcode, run.count, channels, bank, row)
    if opcode is not Opcode.WR_ABK:
        yield one
        return
    for channel in channels:
        yield replace(one, channels=(channel,))


def _runs(body: tuple[ProgramInstruction, ...], variables: tuple[int, ...]) -> Iterator[Run]:
    for item in body:
        match item:
            case Loop(count, (Command() as command,)) if _advances(command, len(variables)):
                yield Run(_resolved(command, (*variables, 0)), count)
            case Loop(count, inner):
                for index in range(count):
                    yield from _runs(inner, (*variables, index))
            case Command():
                yield Run(_resolved(item, variables), 1)


def _advances(command: Command, depth: int) -> bool:
    """Return whether a loop at this depth moves exactly the operands that an instruction advances."""
    if command.kind not in STEPS:
        return False
    wanted = STEPS[command.kind]
    return all(dict(getattr(command, name).terms).get(depth, 0) == (name in wanted) for name in OPERANDS)


def _resolved(command: Command, variables: tuple[int, ...]) -> Issued:
    return Issued(command.kind, *[_value(operand, variables) for operand in _OPERANDS_OF(command)])


def _value(operand: Affine, variables: tuple[int, ...]) -> int:
    return operand.at(variables) if operand.terms else operand.constant


def _joined(runs: Iterable[Run]) -> Iterator[Run]:
    """Join neighbours that continue one another."""
    held: Run | None = None
    for run in runs:
        if held is not None and _continues(held, run.first):
            held = Run(held.first, held.count + run.count)
            continue
        if held is not None:
            yield held
        held = run
    if held is not None:
        yield held


def _continues(held: Run, following: Issued) -> bool:
    kind = held.first.kind
    if kind is not following.kind or kind not in STEPS:
        return False
    return all(
        getattr(following, name) - getattr(held.first, name) == (held.count if name in STEPS[kind] else 0)
        for name in OPERANDS
    )


def _checked(runs: Iterable[Run]) -> Iterator[Run]:
    """Follow rows and mode; yield what has an instruction."""
    rows: dict[int, int] = {}
    everywhere, register_mode = ANY_ROW, False
    for run in runs:
        kind, bank, row = run.first.kind, run.first.bank, run.first.row
        if kind is Kind.TMOD:
            register_mode = not register_mode
        elif kind is Kind.ACT:
            rows[bank] = row
        elif kind is Kind.PRE:
            rows.pop(bank, None)
        elif kind is Kind.ACT16:
            rows, everywhere = {}, row
        elif kind is Kind.PREA:
            rows, everywhere = {}, ANY_ROW
        if kind in BY_CONTROLLER:
            continue
        if kind not in OPCODE_OF:
            raise ValueError(f"{kind} has no AiM instruction")
        if register_mode != (kind in REGISTER_MODE_KINDS):
            raise ValueError(f"{kind} in the wrong mode")
        if kind in NEED_OPEN_ROWS and rows.get(bank, everywhere) != row:
            raise ValueError(f"{kind} on row {row} while row {rows.get(bank, everywhere)} is open")
        if kind is Kind.WRA16:
            rows, everywhere = {}, ANY_ROW
        yield run
