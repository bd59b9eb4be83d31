"""Timelines as files that ui.perfetto.dev opens: the JSON trace event format, with one event per line.

A `Trace` has named tracks on which slices lie side by side, and counters. The format knows processes and threads: a
trace is one process, because the viewer keeps the threads of a process in order but not processes, and a track is a
thread. Times are microseconds, of which the viewer keeps whole nanoseconds; exact cycles belong into the arguments.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from pathlib import Path

import numpy as np

from configs.device import Device
from configs.errors import UserError, unwritable

SUFFIXES = (".json", ".json.gz")
COMPRESSION = 6
NS_PER_US = 1000
PROCESS = 1

Value = str | int | float


@dataclass(frozen=True, slots=True)
class Slice:
    """Something that lasts; slices of one track do not overlap."""

    name: str
    start_cycle: int
    end_cycle: int
    args: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Counter:
    """A quantity over time: each value holds from its cycle until the next one."""

    name: str
    unit: str
    samples: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A timeline of a device; tracks, by name, are shown in this order."""

    title: str
    device: Device
    tracks: Mapping[str, Sequence[Slice]]
    counters: tuple[Counter, ...]


def require_trace_name(path: Path) -> None:
    """Raise UserError for a name that does not end like that of a trace."""
    if not path.name.endswith(SUFFIXES):
        raise UserError(
            where=str(path),
            expected=f"a name that ends in {' or '.join(SUFFIXES)}",
            found=repr(path.name),
            way_out="give another name",
        )


def save_trace(trace: Trace, path: Path) -> None:
    """Write a trace, gzipped when the name ends in .gz; equal traces give equal bytes.

    Raises UserError for a name that says neither and for a file that it cannot write.
    """
    require_trace_name(path)
    content = trace_bytes(trace)
    try:
        path.write_bytes(gzip.compress(content, COMPRESSION, mtime=0) if path.suffix == ".gz" else content)
    except OSError as error:
        raise unwritable(str(path), error) from error


def trace_bytes(trace: Trace) -> bytes:
    """Return a trace as JSON."""
    events = ",\n".join(_events(trace))
    return f'{{"displayTimeUnit":"ns","traceEvents":[\n{events}\n]}}\n'.encode(errors="replace")


def _events(trace: Trace) -> Iterator[str]:
    yield _metadata(PROCESS, "process_name", trace.title)
    for thread, (name, slices) in enumerate(trace.tracks.items(), start=PROCESS + 1):
        yield _metadata(thread, "thread_name", name)
        head = f'{{"ph":"X","pid":{PROCESS},"tid":{thread},"ts":'
        for item, (start, end) in zip(slices, _whole_ns(trace.device, slices), strict=True):
            rest = f'"name":{_text(item.name)},"args":{_text(dict(item.args))}}}'
            yield f'{head}{_us(start)},"dur":{_us(end - start)},{rest}'
    for counter in trace.counters:
        # The viewer shows the name of the argument behind that of the counter.
        unit = _text(f"({counter.unit})")
        head = f'{{"ph":"C","pid":{PROCESS},"name":{_text(counter.name)},"ts":'
        for cycle, value in counter.samples:
            yield f'{head}{_us(floor(trace.device.nanoseconds(cycle)))},"args":{{{unit}:{value}}}}}'


def _metadata(thread: int, kind: str, name: str) -> str:
    return f'{{"ph":"M","pid":{PROCESS},"tid":{thread},"name":"{kind}","args":{_text({"name": name})}}}'


def _whole_ns(device: Device, slices: Sequence[Slice]) -> Iterator[tuple[int, int]]:
    """Yield start and end in whole ns: at least 1 ns apart, none before the end of the slice before it."""
    end = 0
    for item in slices:
        start = max(end, floor(device.nanoseconds(item.start_cycle)))
        end = max(start + 1, floor(device.nanoseconds(item.end_cycle)))
        yield start, end


def _text(value: object) -> str:
    """Return a value as JSON; letters stay as they are, because the viewer shows the codes of escaped ones."""
    return json.dumps(value, ensure_ascii=False, default=_number)


def _number(value: object) -> object:
    """Return a number of numpy as Python's; raises TypeError for anything else."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a trace holds texts and numbers, found {type(value).__name__}")


def _us(nanoseconds: int) -> str:
    return f"{nanoseconds // NS_PER_US}.{nanoseconds % NS_PER_US:03}"
