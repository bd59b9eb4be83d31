"""The text of an AiM instruction trace, read into frozen records.

One instruction a line (grammar in `simulator.aim.instructions`); numbers are decimal or 0x hexadecimal; empty lines and
lines that start with # are skipped; nothing after the first EOC is executed, as in the public AiM simulator.
"""

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

from configs.device import Organisation
from configs.errors import UserError
from simulator.aim.instructions import Instruction, Opcode
from simulator.aim.trace_line import Line


@dataclass(frozen=True, slots=True)
class Trace:
    """The instructions up to and including EOC, and how many instruction lines after it are ignored."""

    instructions: tuple[Instruction, ...]
    ignored_lines: int = 0


def read_trace(path: Path, organisation: Organisation) -> Trace:
    """Read a trace file, gzipped when its name ends in .gz; raises UserError for a file that cannot be read or used."""
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UserError(
            where=str(path),
            expected="a readable AiM trace (text, or gzip when the name ends in .gz)",
            found=getattr(error, "strerror", None) or str(error) or type(error).__name__,
            way_out="check the path and the file",
        ) from error
    return parse_trace(text, organisation, name=path.name)


def parse_trace(text: str, organisation: Organisation, *, name: str = "trace") -> Trace:
    """Parse the text of a trace; raises UserError naming `name:line` for a malformed line or a missing EOC."""
    instructions: list[Instruction] = []
    seen: dict[tuple[str, ...], Instruction] = {}
    lines = [tuple(line.split()) for line in text.splitlines()]
    for number, words in enumerate(lines, start=1):
        if _is_blank(words):
            continue
        if words not in seen:
            seen[words] = Line(f"{name}:{number}", words, organisation).instruction()
        instructions.append(seen[words])
        if seen[words].opcode is Opcode.EOC:
            return Trace(tuple(instructions), sum(not _is_blank(rest) for rest in lines[number:]))
    raise UserError(
        where=f"{name}:{len(lines) or 1}",
        expected="an `AiM EOC` line, which ends the run",
        found=f"the end of the trace after {len(instructions)} instructions",
        way_out="append `AiM EOC`",
    )


def _is_blank(words: tuple[str, ...]) -> bool:
    return not words or words[0].startswith("#")
