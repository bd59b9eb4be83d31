"""The difference of two programs as edits, the smallest that keep instructions in order, and how they are applied.

    patch_programs(old, edits_between(old, new)) == new

An edit names a program and a path in the old one: the place of an instruction in the body, then in the loop there, and
so on. Where instructions stay what they are, single operands and loop counts change; where they come or go, a block of
neighbours is replaced.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compiler.emission import Block
from compiler.patch.alignment import Alignment, differences
from simulator.instructions import program_size
from simulator.isa import EVENT_KINDS, Affine, Command, Instruction, Loop, Program

Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """An operand of a command, or the count of a loop, has another value."""

    program: str
    path: Path
    field: str
    old: int | Affine
    new: int | Affine


@dataclass(frozen=True, slots=True)
class BlockEdit:
    """The neighbours `old`, of which the path names the first, are replaced; nothing old is an insertion before it."""

    program: str
    path: Path
    old: Block
    new: Block


@dataclass(frozen=True, slots=True)
class ProgramEdit:
    """A whole program comes or goes."""

    program: str
    old: Program | None
    new: Program | None


Edit = FieldEdit | BlockEdit | ProgramEdit


def edits_between(old: Mapping[str, Program], new: Mapping[str, Program]) -> tuple[Edit, ...]:
    """Return the edits that make the old programs, by name, the new ones."""
    edits: list[Edit] = []
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name), new.get(name)
        if before is None or after is None or _widths(before) != _widths(after):
            edits.append(ProgramEdit(name, before, after))
        else:
            edits += _body_edits(name, before.body, after.body, (), Alignment())
    return tuple(edits)


def _widths(program: Program) -> tuple[int, int]:
    return program.accesses_per_column, program.vectors_per_multiply


def patch_programs(programs: Mapping[str, Program], edits: Iterable[Edit]) -> dict[str, Program]:
    """Return the programs with all edits made; raises ValueError when they were made for others."""
    patched = dict(programs)
    by_program: defaultdict[str, list[FieldEdit | BlockEdit]] = defaultdict(list)
    for edit in edits:
        if isinstance(edit, ProgramEdit):
            _expect(edit, patched.pop(edit.program, None))
            if edit.new is not None:
                patched[edit.program] = edit.new
        else:
            by_program[edit.program].append(edit)
    for name, own in by_program.items():
        if name not in patched:
            raise ValueError(f"{name}: expected a program, found none: a patch for other programs")
        patched[name] = replace(patched[name], body=_patched_body(patched[name].body, own, 0))
    return patched


def instructions_written(programs: Mapping[str, Program], edits: Iterable[Edit]) -> int:
    """Return how many instructions a dispatcher has to be given anew; `programs` are the old ones.

    It is taken to make room where instructions are inserted; one that cannot is given all that follows.
    """
    total = 0
    touched: set[tuple[str, Path]] = set()
    for edit in edits:
        match edit:
            case ProgramEdit(new=new):
                total += program_size(new) if new is not None else 0
            case BlockEdit(new=block):
                total += program_size(Program(block))
            case FieldEdit(program=name, path=path):
                owner = _dispatched(programs[name].body, path)
                if owner is not None:
                    touched.add((name, owner))
    return total + len(touched)


def _dispatched(body: Block, path: Path) -> Path | None:
    """Return the path of the instruction that holds what a path names: a loop of one command is one; events none."""
    for depth, index in enumerate(path):
        match body[index]:
            case Command(kind=kind):
                return None if kind in EVENT_KINDS else path
            case Loop(body=(Command(),)):
                return path[: depth + 1]
            case Loop(body=inner):
                body = inner
    return path


def _body_edits(name: str, old: Block, new: Block, path: Path, alignment: Alignment) -> Iterator[FieldEdit | BlockEdit]:
    """Yield the cheapest edits of a body; instructions keep their order."""
    if old == new:
        return
    done, made = 0, 0
    for index, partner in (*alignment.kept(old, new), (len(old), len(new))):
        if done < index or made < partner:
            yield BlockEdit(name, (*path, done), old[done:index], new[made:partner])
        if index < len(old):
            yield from _instruction_edits(name, old[index], new[partner], (*path, index), alignment)
        done, made = index + 1, partner + 1


def _instruction_edits(
    name: str, old: Instruction, new: Instruction, path: Path, alignment: Alignment
) -> Iterator[FieldEdit | BlockEdit]:
    for field, before, after in differences(old, new):
        yield FieldEdit(name, path, field, before, after)
    if isinstance(old, Loop) and isinstance(new, Loop):
        yield from _body_edits(name, old.body, new.body, path, alignment)


def _patched_body(body: Block, edits: Sequence[FieldEdit | BlockEdit], depth: int) -> Block:
    """Return a body with its edits made from the last place to the first, so that places stay those of the old body."""
    patched = list(body)
    by_place: defaultdict[int, list[FieldEdit | BlockEdit]] = defaultdict(list)
    for edit in edits:
        by_place[edit.path[depth]].append(edit)
    for place in sorted(by_place, reverse=True):
        inner = [edit for edit in by_place[place] if len(edit.path) > depth + 1]
        if inner:
            patched[place] = _patched_loop(patched[place], inner, depth + 1)
        own = [edit for edit in by_place[place] if len(edit.path) == depth + 1]
        for edit in sorted(own, key=lambda item: isinstance(item, BlockEdit)):
            if isinstance(edit, FieldEdit):
                patched[place] = _patched_field(patched[place], edit)
            else:
                last = place + len(edit.old)
                _expect(edit, tuple(patched[place:last]))
                patched[place:last] = edit.new
    return tuple(patched)


def _patched_loop(item: Instruction, edits: Sequence[FieldEdit | BlockEdit], depth: int) -> Loop:
    if not isinstance(item, Loop):
        raise ValueError(f"{edits[0].program}, {edits[0].path}: expected a loop, found {item.kind}")
    return replace(item, body=_patched_body(item.body, edits, depth))


def _patched_field(item: Instruction, edit: FieldEdit) -> Instruction:
    _expect(edit, getattr(item, edit.field, None))
    changes: dict[str, Any] = {edit.field: edit.new}
    return replace(item, **changes)


def _expect(edit: Edit, found: object) -> None:
    if edit.old != found:
        place = f", {edit.path}" if not isinstance(edit, ProgramEdit) else ""
        raise ValueError(f"{edit.program}{place}: expected {edit.old}, found {found}: a patch for other programs")
