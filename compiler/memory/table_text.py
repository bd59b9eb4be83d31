"""Tables as text that a person reads and a program reads back: sections of records, a line each, under column names.

    section  := NAME "(" count ")" newline columns newline line*
    columns  := the names of the section's columns, in their order
    line     := cell*                            one for each column, separated by spaces
    cell     := integer | float | name | "-"     a name is quoted as in JSON unless it is a plain word

Lines of a section are indented; blank lines and lines that start with `#` are comments. The count finds lost lines.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

from configs.errors import UserError

Cell = int | float | str | None
Record = TypeVar("Record")

INDENT = "  "
NOTHING = "-"
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:/\-]*")
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]+')
INTEGER = re.compile(r"-?(0|[1-9]\d{0,29})", re.ASCII)
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
HEADING = re.compile(r"(?P<name>\w+) \((?P<count>\d{1,9})\)", re.ASCII)
# Columns are as wide as their widest cell, rounded up, so that one more digit rarely moves every line.
WIDTH_STEP = 4


@dataclass(slots=True)
class Line:
    """The cells of one line, read one after the other; `where` is the file and the line number."""

    where: str
    columns: Sequence[str]
    words: Sequence[str]
    taken: int = 0

    def integer(self) -> int:
        """Return the next cell, an integer."""
        word = self._take()
        if not INTEGER.fullmatch(word):
            self.fail("an integer", word)
        return int(word)

    def positive(self) -> int:
        """Return the next cell, an integer above 0."""
        value = self.integer()
        if value <= 0:
            self.fail("an integer above 0", str(value))
        return value

    def integer_or_nothing(self) -> int | None:
        """Return the next cell, an integer or `-`."""
        if self.words[self.taken] == NOTHING:
            self.taken += 1
            return None
        return self.integer()

    def number(self) -> float:
        """Return the next cell, a finite float."""
        word = self._take()
        if not NUMBER.fullmatch(word):
            self.fail("a number", word)
        return float(word)

    def name(self) -> str:
        """Return the next cell, a plain or quoted name."""
        word = self._take()
        if PLAIN.fullmatch(word):
            return word
        try:
            value = json.loads(word)
        except ValueError:
            value = None
        if not isinstance(value, str):
            self.fail("a word, or a name in quotes as in JSON", word)
        return str(value)

    def match(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """Return the match of the next cell with a pattern."""
        word = self._take()
        found = pattern.fullmatch(word)
        if found is None:
            self.fail(expected, word)
        return found

    def one_of(self, choices: Sequence[str]) -> str:
        """Return the next cell, one of several words."""
        word = self._take()
        if word not in choices:
            self.fail(f"one of {', '.join(choices)}", word)
        return word

    def fail(self, expected: str, found: str) -> NoReturn:
        """Raise UserError for the cell read last."""
        raise bad_text(f"{self.where}, {self.columns[self.taken - 1]}", expected, repr(found))

    def _take(self) -> str:
        self.taken += 1
        return self.words[self.taken - 1]


@dataclass(frozen=True, slots=True)
class Section(Generic[Record]):
    """A kind of record: its columns, its cells in their order, and how a line is read back."""

    name: str
    columns: tuple[str, ...]
    cells: Callable[[Record], tuple[Cell, ...]]
    read: Callable[[Line], Record]


@dataclass(slots=True)
class SectionReader:
    """Reads the sections of a text in order."""

    source: str
    lines: list[tuple[int, str]] = field(default_factory=list)
    next: int = 0

    def read_one(self, section: Section[Record]) -> Record:
        """Return the only record of the next section."""
        heading = self.next
        records = self.read(section)
        if len(records) != 1:
            raise bad_text(self._where(heading), "one line of " + section.name, str(len(records)))
        return records[0]

    def read(self, section: Section[Record]) -> tuple[Record, ...]:
        """Return the records of the next section, which has to be this one; raises UserError with file and line."""
        where, text = self._line(f"section {section.name}")
        heading = HEADING.fullmatch(text)
        if heading is None or heading["name"] != section.name:
            raise bad_text(where, f"`{section.name} (COUNT)`", repr(text))
        where, text = self._line("the names of the columns")
        if tuple(text.split()) != section.columns:
            raise bad_text(where, f"the columns {' '.join(section.columns)}", repr(text))
        return tuple(self._record(section) for _ in range(int(heading["count"])))

    def end(self) -> None:
        """Raise UserError when something is left."""
        if self.next < len(self.lines):
            text = self.lines[self.next][1].strip()
            raise bad_text(self._where(self.next), "no more lines than counted", repr(text))

    def _record(self, section: Section[Record]) -> Record:
        where, text = self._line(f"as many lines as {section.name} counts")
        words = WORD.findall(text)
        if len(words) != len(section.columns) or WORD.sub("", text).strip():
            raise bad_text(where, f"{len(section.columns)} cells: {' '.join(section.columns)}", repr(text))
        return section.read(Line(where, section.columns, words))

    def _line(self, expected: str) -> tuple[str, str]:
        if self.next == len(self.lines):
            raise bad_text(f"{self.source}, end", expected, "the end of the text")
        self.next += 1
        return self._where(self.next - 1), self.lines[self.next - 1][1].strip()

    def _where(self, index: int) -> str:
        return f"{self.source}:{self.lines[index][0]}"


def section_reader(text: str, source: str) -> SectionReader:
    """Return a reader of a text's sections; `source` is the file's name in errors."""
    lines = enumerate(text.split("\n"), start=1)
    return SectionReader(source, [(n, line) for n, line in lines if line.strip() and line.strip()[0] != "#"])


def print_section(section: Section[Record], records: Sequence[Record]) -> Iterator[str]:
    """Yield the lines of a section: numbers to the right, names to the left."""
    yield f"{section.name} ({len(records)})"
    rows = [section.cells(record) for record in records]
    texts = [section.columns, *(tuple(_cell_text(cell) for cell in row) for row in rows)]
    widths = [-(-max(map(len, column)) // WIDTH_STEP) * WIDTH_STEP for column in zip(*texts, strict=True)]
    left = [bool(rows) and isinstance(cell, str) for cell in rows[0]] if rows else [True] * len(widths)
    for line in texts:
        cells = (
            text.ljust(width) if is_left else text.rjust(width)
            for text, width, is_left in zip(line, widths, left, strict=True)
        )
        yield (INDENT + INDENT.join(cells)).rstrip()


def bad_text(where: str, expected: str, found: str) -> UserError:
    """Return the error for a text that breaks the grammar."""
    way_out = "correct the line, or have the file written anew"
    return UserError(where=where, expected=expected, found=found, way_out=way_out)


def _cell_text(cell: Cell) -> str:
    match cell:
        case None:
            return NOTHING
        case str():
            return cell if PLAIN.fullmatch(cell) else json.dumps(cell)
        case _:
            return repr(cell)
