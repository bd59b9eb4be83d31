"""One process per run folder: the kernel drops the lock when its holder dies, so that none is ever stale."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from configs.errors import UserError


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock while the block runs; raises UserError when a living process holds it."""
    path = folder / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, path)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        # The file stays: removing it would let two processes hold locks on two files of one name.
        os.close(descriptor)


def _acquire(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        raise UserError(
            where=str(path),
            expected="a run folder that no other process writes",
            found=f"process {holder} writing it",
            way_out="wait for it to end, or choose another folder",
        ) from error
