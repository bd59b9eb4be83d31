"""What changes in the programs of an attention operator when the context grows: a patch, not a recompilation.

Made by comparing the programs that `compiler.attention_lowering` emits before and after, so that patched programs equal
compiled ones. Places do not move while the cache has room (`AttentionShape.capacity`). Between boundaries nothing but
the place of the append changes; a new column, row, segment or unit of tokens changes counts and ends, and now and then
the instructions themselves. Chunk sizes of the link and the host's work follow from the shape and are not programs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import mean, median

from compiler.attention_lowering import AttentionLowering
from compiler.patch.program import (
    BlockEdit,
    Edit,
    FieldEdit,
    ProgramEdit,
    edits_between,
    instructions_written,
    patch_programs,
)
from configs.device import Dispatcher
from simulator.isa import Affine, Command, Kind, Program
from simulator.program_text import print_program
from simulator.step import PimPhase


@dataclass(frozen=True, slots=True)
class GrowthPatch:
    """The edits from the programs at one number of tokens to those at another, and how much a dispatcher is sent.

    `instructions` counts those of the looped form that are written anew, each once however many fields of it change.
    """

    tokens: int
    grown_tokens: int
    edits: tuple[Edit, ...]
    instructions: int

    @property
    def fields(self) -> int:
        """Operands and loop counts that change where instructions stay."""
        return sum(isinstance(edit, FieldEdit) for edit in self.edits)

    @property
    def blocks(self) -> int:
        """Places at which instructions or whole programs come or go."""
        return len(self.edits) - self.fields

    def apply(self, programs: Mapping[str, Program]) -> dict[str, Program]:
        """Return the grown programs; raises ValueError for programs that the patch was not made for."""
        return patch_programs(programs, self.edits)


@dataclass(frozen=True, slots=True)
class PatchSizes:
    """The sizes of many patches, one a token; bytes are instructions of the dispatcher.

    `unchanged` of them change nothing; typical is the median of the others. The worst is the first that writes most, at
    `worst_tokens`.
    """

    patches: int
    unchanged: int
    typical_fields: float
    typical_bytes: float
    mean_bytes: float
    worst_fields: int
    worst_blocks: int
    worst_bytes: int
    worst_tokens: int


def attention_programs(lowering: AttentionLowering) -> dict[str, Program]:
    """Return the programs of one step by phase, in order; phases of later blocks of tokens are numbered."""
    programs: dict[str, Program] = {}
    for phase in (*lowering.append_phases(), *lowering.attend_phases()):
        if isinstance(phase, PimPhase):
            name, number = phase.name, 1
            while name in programs:
                number += 1
                name = f"{phase.name} {number}"
            programs[name] = phase.program
    return programs


def grown(lowering: AttentionLowering, tokens: int = 1) -> AttentionLowering:
    """Return the lowering of the same operator with more tokens."""
    return replace(lowering, shape=replace(lowering.shape, tokens=lowering.shape.tokens + tokens))


def growth_patch(before: AttentionLowering, after: AttentionLowering) -> GrowthPatch:
    """Return the patch between two numbers of tokens of one operator."""
    programs = attention_programs(before)
    edits = edits_between(programs, attention_programs(after))
    return GrowthPatch(before.shape.tokens, after.shape.tokens, edits, instructions_written(programs, edits))


def patch_sizes(patches: Iterable[GrowthPatch], dispatcher: Dispatcher) -> PatchSizes:
    """Return the typical and the worst size of patches, at least one."""
    found = list(patches)
    changing = [patch for patch in found if patch.edits]
    worst = max(found, key=lambda patch: patch.instructions)
    size = dispatcher.instruction_bytes
    return PatchSizes(
        patches=len(found),
        unchanged=len(found) - len(changing),
        typical_fields=median(patch.fields for patch in changing or found),
        typical_bytes=size * median(patch.instructions for patch in changing or found),
        mean_bytes=size * mean(patch.instructions for patch in found),
        worst_fields=worst.fields,
        worst_blocks=worst.blocks,
        worst_bytes=size * worst.instructions,
        worst_tokens=worst.tokens,
    )


def print_patch(patch: GrowthPatch) -> str:
    """Return the patch for a person, an edit a line; replaced blocks follow indented, old (-) before new (+)."""
    heading = f"# {patch.tokens} -> {patch.grown_tokens} tokens: {patch.fields} fields, {patch.blocks} blocks, "
    return "\n".join((f"{heading}{patch.instructions} instructions", *_lines(patch.edits))) + "\n"


def _lines(edits: Iterable[Edit]) -> Iterator[str]:
    for edit in edits:
        match edit:
            case FieldEdit(program=name, path=path, field=field, old=old, new=new):
                yield f"{name}, {_place(path)} {field}: {_value_text(old)} -> {_value_text(new)}"
            case BlockEdit(program=name, path=path, old=old, new=new):
                yield f"{name}, {_place(path)} block:"
                yield from _block_lines(Program(old), "-")
                yield from _block_lines(Program(new), "+")
            case ProgramEdit(program=name, old=old, new=new):
                yield f"{name}, whole program:"
                yield from _block_lines(old or Program(()), "-")
                yield from _block_lines(new or Program(()), "+")


def _block_lines(program: Program, sign: str) -> Iterator[str]:
    return (f"  {sign} {line}" for line in print_program(program).splitlines() if line)


def _place(path: tuple[int, ...]) -> str:
    return ".".join(map(str, path))


def _value_text(value: int | Affine) -> str:
    """Return a count, or an operand as programs are printed."""
    if isinstance(value, int):
        return str(value)
    return (
        print_program(Program((Command(Kind.ACT, row=value),))).strip().removeprefix("ACT").removeprefix(" row=") or "0"
    )
