"""Ctrl-C as a request: the first one ends the run between two evaluations, a second one ends it at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class StopFlag:
    """Whether the user asked to stop."""

    requested: bool = False


@contextmanager
def stop_on_interrupt() -> Iterator[StopFlag]:
    """Turn the first SIGINT into a flag while the block runs; must be entered in the main thread."""
    flag = StopFlag()
    previous = signal.getsignal(signal.SIGINT)

    def request(number: int, frame: FrameType | None) -> None:
        if flag.requested:
            raise KeyboardInterrupt
        flag.requested = True

    signal.signal(signal.SIGINT, request)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, previous)
