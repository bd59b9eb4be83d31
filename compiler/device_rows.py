"""Rows of a device table that grow and are taken again: one gather for all integers, and one for all other figures."""

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from compiler.device_table import COLUMNS, DeviceTable
from compiler.schedule import PoolShape

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
POOL = tuple(item.name for item in fields(PoolShape))
INTEGERS = ("refreshes_every", "sequencer_loop_depth")
NUMBERS = tuple(name for name in COLUMNS if name not in (*INTEGERS, "command_pj"))
FIRST_ROOM = 1024


class DeviceRows:
    """Devices of one family (equal timing names), one column of two matrices each; room doubles when it is used up."""

    def __init__(self, first: DeviceTable) -> None:
        """Begin with the rows of a table."""
        self._timing = tuple(first.timing)
        self.count = 0
        integers, floats = self._packed(first)
        self._integers = np.empty((len(integers), FIRST_ROOM), dtype=np.int64)
        self._floats = np.empty((len(floats), FIRST_ROOM), dtype=np.float64)
        self.add(first)

    def add(self, table: DeviceTable) -> None:
        """Append rows; the first of them has the number `count`."""
        integers, floats = self._packed(table)
        end = self.count + integers.shape[1]
        while end > self._integers.shape[1]:
            self._integers = np.concatenate([self._integers, np.empty_like(self._integers)], axis=1)
            self._floats = np.concatenate([self._floats, np.empty_like(self._floats)], axis=1)
        self._integers[:, self.count : end] = integers
        self._floats[:, self.count : end] = floats
        self.count = end

    def take(self, rows: Ints) -> DeviceTable:
        """Return the rows of these numbers, one per design."""
        integers = self._integers.take(rows, axis=1)
        floats = self._floats.take(rows, axis=1)
        pool, timing, rest = np.split(integers, [len(POOL), len(POOL) + len(self._timing)])
        numbers, prices = np.split(floats, [len(NUMBERS)])
        return DeviceTable(
            pool=PoolShape(*pool),
            timing=dict(zip(self._timing, timing, strict=True)),
            command_pj=prices.T,
            **dict(zip(INTEGERS, rest, strict=True)),
            **dict(zip(NUMBERS, numbers, strict=True)),
        )

    def _packed(self, table: DeviceTable) -> tuple[Ints, Floats]:
        """Return all integers and all other figures of a table: [figures, devices]."""
        pool = [getattr(table.pool, name) for name in POOL]
        timing = [table.timing[name] for name in self._timing]
        integers = np.stack([*pool, *timing, *(getattr(table, name) for name in INTEGERS)])
        floats = np.concatenate([np.stack([getattr(table, name) for name in NUMBERS]), table.command_pj.T])
        return integers, floats
