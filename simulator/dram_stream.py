"""Command streams as CSV files, plain or gzipped: one command a line, addressed level by level, -1 for all of a level.

The columns are those of public DRAM simulators' command logs: cycle, cmd, channel, pc, rank_or_sid, bg, bank, row, col,
and perhaps `asap_cycle`, the cycle that a replay has to arrive at. Commands have the names of the standards (PREpb,
PREab, ...). Any further column is carried through unchanged. Row and col play no part in timing.
"""

import csv
import difflib
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from configs.errors import UserError, unwritable
from simulator.addressing import LEVELS, addressing
from simulator.dram_replay import Stream
from simulator.isa import CODE_OF, EVENT_KINDS, Kind
from simulator.text_file import opened_for_writing
from simulator.timing_table import timing_table

COLUMNS = ("cycle", "cmd", "channel", "pc", "rank_or_sid", "bg", "bank", "row", "col")
LEVEL_COLUMNS = ("pc", "rank_or_sid", "bg", "bank")  # the levels below the channel
EXPECTED = "asap_cycle"
MOST_CHANNELS = 1024
ALL = -1
# The standards' names of what the instruction set calls otherwise.
STANDARD_NAMES = {"PREpb": Kind.PRE, "PREab": Kind.PREA}

Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class StreamFile:
    """A stream with all that its file says: header, cells and line number of each command, and cycles to arrive at."""

    path: Path
    header: tuple[str, ...]
    cells: list[list[str]]
    lines: list[int]
    stream: Stream
    expected: Array | None

    @property
    def names(self) -> list[str]:
        """The command of each line as the file writes it."""
        place = self.header.index("cmd")
        return [row[place] for row in self.cells]


def is_stream(path: Path) -> bool:
    """Return whether a file is a command stream by its name."""
    return path.name.endswith((".csv", ".csv.gz"))


def read_stream(path: Path, device: Device) -> StreamFile:
    """Read a file; raises UserError with line and column for what is no stream of this device."""
    header, cells, lines = _read_cells(path)
    file = _Cells(path, header, cells, lines)
    kind = _kinds(file, device)
    numbers = {name: file.numbers(name) for name in (*COLUMNS, EXPECTED) if name != "cmd" and name in header}
    negative = np.flatnonzero(numbers["channel"] < 0)
    if len(negative):
        found = str(numbers["channel"][negative[0]])
        raise file.mistake(int(negative[0]), "channel", "a channel of at least 0", found, "name one channel a line")
    beyond = np.flatnonzero(numbers["channel"] >= MOST_CHANNELS)
    if len(beyond):
        found = str(numbers["channel"][beyond[0]])
        raise file.mistake(
            int(beyond[0]), "channel", f"a channel below {MOST_CHANNELS}", found, "number channels from 0"
        )
    stream = Stream(numbers["channel"], kind, _banks(file, numbers, kind, device), numbers["row"])
    return StreamFile(path, header, cells, lines, stream, numbers.get(EXPECTED))


def write_stream(file: StreamFile, cycle: Array, path: Path) -> None:
    """Write a stream with other cycles, all else unchanged; raises UserError when the file cannot be written."""
    place = file.header.index("cycle")
    try:
        with opened_for_writing(path) as target:
            writer = csv.writer(target, lineterminator="\n")
            writer.writerow(file.header)
            rows = zip(file.cells, cycle.tolist(), strict=True)
            writer.writerows([*row[:place], issued, *row[place + 1 :]] for row, issued in rows)
    except OSError as error:
        raise unwritable(f"--commands {path}", error) from error


@contextmanager
def _opened_for_reading(path: Path) -> Iterator[TextIO]:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as source:
            yield source
    else:
        with path.open(encoding="utf-8-sig", newline="") as source:
            yield source


def _read_cells(path: Path) -> tuple[tuple[str, ...], list[list[str]], list[int]]:
    """Return header, rows and their line numbers."""
    cells: list[list[str]] = []
    lines: list[int] = []
    try:
        with _opened_for_reading(path) as source:
            reader = csv.reader(source, strict=True)
            header = tuple(name.strip() for name in next(reader, []))
            for row in reader:
                if row:
                    cells.append(row)
                    lines.append(reader.line_num)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _unreadable(path, "a whole gzip file", str(error)) from error
    except OSError as error:
        raise _unreadable(path, "a readable file", error.strerror or "an error") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise _unreadable(path, "comma-separated text", str(error)) from error
    _check_shape(path, header, cells, lines)
    if not cells:
        raise _unreadable(path, "at least one command below the header", "none")
    return header, cells, lines


def _check_shape(path: Path, header: tuple[str, ...], cells: list[list[str]], lines: list[int]) -> None:
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise UserError(
            where=f"{path}, line 1",
            expected=f"the columns {', '.join(COLUMNS)}",
            found=f"no column {missing[0]}",
            way_out="a command stream names its columns in its first line",
        )
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise UserError(
            where=f"{path}, line 1",
            expected="every column once",
            found=f"column {twice[0]} {header.count(twice[0])} times",
            way_out="rename or drop one",
        )
    for row, line in zip(cells, lines, strict=True):
        if len(row) != len(header):
            raise UserError(
                where=f"{path}, line {line}",
                expected=f"{len(header)} cells",
                found=str(len(row)),
                way_out="mend the line; the file may have been cut off",
            )


def _unreadable(path: Path, expected: str, found: str) -> UserError:
    return UserError(
        where=str(path),
        expected=expected,
        found=" ".join(found.split()),
        way_out="check the path, or fetch the file again",
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """The text of a file, for reading columns and for telling where a mistake is."""

    path: Path
    header: tuple[str, ...]
    cells: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> list[str]:
        place = self.header.index(name)
        return [row[place] for row in self.cells]

    def numbers(self, name: str) -> Array:
        """Return a column of integers."""
        texts = self.column(name)
        try:
            return np.array([int(text) for text in texts], dtype=np.int64)
        except (ValueError, OverflowError):
            index = next(index for index, text in enumerate(texts) if not _is_integer(text))
            raise self.mistake(index, name, "an integer", repr(texts[index]), "mend the line") from None

    def mistake(self, index: int, column: str, expected: str, found: str, way_out: str) -> UserError:
        where = f"{self.path}, line {self.lines[index]}, column {column}"
        return UserError(where=where, expected=expected, found=found, way_out=way_out)


def _is_integer(text: str) -> bool:
    try:
        return abs(int(text)) < 1 << 63
    except ValueError:
        return False


def _kinds(file: _Cells, device: Device) -> Array:
    """Return the command code of every line."""
    table = timing_table(device)
    codes = {kind.value: CODE_OF[kind] for kind in Kind if table.has(kind) and kind not in EVENT_KINDS}
    standard = {name: CODE_OF[kind] for name, kind in STANDARD_NAMES.items() if table.has(kind)}
    known = codes | standard
    names = file.column("cmd")
    unknown = next((index for index, name in enumerate(names) if name not in known), None)
    if unknown is None:
        return np.array([known[name] for name in names], dtype=np.int64)
    called = [name for name in codes if Kind(name) not in STANDARD_NAMES.values()] + list(standard)
    close = difflib.get_close_matches(names[unknown], called, n=1)
    raise file.mistake(
        unknown,
        "cmd",
        f"a command of {device.name}: {', '.join(called)}",
        repr(names[unknown]),
        f"did you mean {close[0]}?" if close else "choose the device of the stream with --hardware",
    )


def _banks(file: _Cells, numbers: dict[str, Array], kind: Array, device: Device) -> Array:
    """Return the first bank that each command addresses, numbered in tree order."""
    organisation, reach = device.organisation, np.array(addressing(device).reach, dtype=np.int64)[kind]
    counts = (
        organisation.pseudo_channels,
        organisation.ranks,
        organisation.bank_groups,
        organisation.banks_per_group,
    )
    bank = np.zeros(len(kind), dtype=np.int64)
    wrong: list[tuple[int, int]] = []
    for level, (name, count) in enumerate(zip(LEVEL_COLUMNS, counts, strict=True), start=1):
        addressed = reach > level
        may_be_all = ~addressed | (count == 1)
        lowest = np.where(may_be_all, ALL, 0)
        bad = (numbers[name] < lowest) | (numbers[name] >= count)
        wrong.extend((int(index), level) for index in np.flatnonzero(bad)[:1])
        bank = bank * count + np.where(addressed, np.maximum(numbers[name], 0), 0)
    if wrong:
        index, level = min(wrong)
        name, count = LEVEL_COLUMNS[level - 1], counts[level - 1]
        scope = LEVELS[reach[index] - 1]
        raise file.mistake(
            index,
            name,
            f"0 to {count - 1}, for {file.column('cmd')[index]} addresses one {scope} of {device.name}",
            str(numbers[name][index]),
            "write one line for each it is meant for" if numbers[name][index] == ALL else "check --hardware",
        )
    return bank
