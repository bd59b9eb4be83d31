"""The text form of a program: `parse_program(print_program(program)) == program`. The grammar is in `simulator.isa`.

Lines that start with `#` are comments; the program's own comment is printed as the first of them.
"""

import re

from configs.errors import UserError
from simulator.isa import KINDS, OPERANDS, ZERO, Affine, Command, Instruction, Kind, Loop, Program

INDENT = "  "
NUMBER = r"-?[0-9]{1,18}"
ONE_TERM = rf"(?:{NUMBER})?%[0-9]{{1,2}}"
TERM = re.compile(rf"({NUMBER})?%([0-9]{{1,2}})")
AFFINE = re.compile(rf"{NUMBER}(\+{ONE_TERM})*|{ONE_TERM}(\+{ONE_TERM})*")
COUNT = re.compile(r"[0-9]{1,18}")
HEAD = re.compile(r"(accesses_per_column|vectors_per_multiply) ([1-9][0-9]{0,3})", re.ASCII)
MOST_LOOPS = 64  # of nested loops
NAMES = frozenset(str(kind) for kind in KINDS)


def print_program(program: Program) -> str:
    """Return the text of a program, one command a line."""
    head = [f"# {line}" for line in program.comment.splitlines()]
    widths = {name: getattr(program, name) for name in ("accesses_per_column", "vectors_per_multiply")}
    head += [f"{name} {value}" for name, value in widths.items() if value != 1]
    return "\n".join([*head, *_print_block(program.body, 0)]) + "\n"


def parse_program(text: str, source: str = "program text") -> Program:
    """Return the program that `text` denotes; raises UserError with the line number where it breaks the grammar."""
    blocks: list[tuple[int, list[Instruction]]] = [(1, [])]
    widths: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        statement, where = line.strip(), f"{source}, line {number}"
        if not statement or statement.startswith("#"):
            continue
        if found := HEAD.fullmatch(statement):
            widths[found[1]] = int(found[2])
        elif statement.startswith("loop "):
            blocks.append((_parse_count(statement, where), []))
            if len(blocks) > MOST_LOOPS:
                raise _error(where, f"loops nested at most {MOST_LOOPS} deep", "deeper ones")
        elif statement == "}":
            count, body = blocks.pop()
            if not blocks:
                raise _error(where, "a command or a loop", "the end of a loop that was not begun")
            blocks[-1][1].append(Loop(count, tuple(body)))
        else:
            blocks[-1][1].append(_parse_command(statement, where))
    if len(blocks) > 1:
        raise _error(source, "`}` at the end of every loop", f"{len(blocks) - 1} open at the end")
    return Program(
        tuple(blocks[0][1]),
        accesses_per_column=widths.get("accesses_per_column", 1),
        vectors_per_multiply=widths.get("vectors_per_multiply", 1),
    )


def _print_block(body: tuple[Instruction, ...], depth: int) -> list[str]:
    lines: list[str] = []
    for instruction in body:
        match instruction:
            case Loop(count, inner):
                head, tail = f"{INDENT * depth}loop {count} {{", f"{INDENT * depth}}}"
                lines += [head, *_print_block(inner, depth + 1), tail]
            case Command():
                lines.append(INDENT * depth + _print_command(instruction))
    return lines


def _print_command(command: Command) -> str:
    operands = ((name, getattr(command, name)) for name in OPERANDS)
    return " ".join(
        [str(command.kind), *(f"{name}={_print_affine(value)}" for name, value in operands if value != ZERO)]
    )


def _print_affine(value: Affine) -> str:
    terms = [f"{'' if coefficient == 1 else coefficient}%{depth}" for depth, coefficient in value.terms]
    constant = [str(value.constant)] if value.constant or not terms else []
    return "+".join([*constant, *terms])


def _parse_count(statement: str, where: str) -> int:
    words = statement.split()
    if len(words) != 3 or words[2] != "{" or not COUNT.fullmatch(words[1]):
        raise _error(where, "`loop COUNT {`", statement)
    return int(words[1])


def _parse_command(statement: str, where: str) -> Command:
    name, *words = statement.split()
    if name not in NAMES:
        raise _error(where, f"loop, }} or one of {', '.join(sorted(NAMES))}", name)
    operands: dict[str, Affine] = {}
    for word in words:
        operand, _, value = word.partition("=")
        if operand not in OPERANDS or operand in operands:
            raise _error(where, f"each of {', '.join(OPERANDS)} at most once", operand)
        operands[operand] = _parse_affine(value, where)
    return Command(Kind(name), **operands)


def _parse_affine(text: str, where: str) -> Affine:
    if not AFFINE.fullmatch(text):
        raise _error(where, "`constant+coefficient%depth`", text)
    parts = text.split("+")
    terms = [(int(found[2]), int(found[1] or 1)) for part in parts if (found := TERM.fullmatch(part))]
    constant = 0 if "%" in parts[0] else int(parts[0])
    return Affine(constant, tuple(terms))


def _error(where: str, expected: str, found: str) -> UserError:
    return UserError(where=where, expected=expected, found=repr(found), way_out="see the grammar in simulator/isa.py")
