"""Kept rows of a device table come back as they were, also when their room has grown."""

from dataclasses import fields

import numpy as np

from compiler.device_rows import FIRST_ROOM, DeviceRows
from compiler.device_table import device_table
from configs.device import load_device


def test_rows_that_outgrow_their_room_come_back_unchanged() -> None:
    device = load_device("gddr6-aim")
    small, large = device_table([device], 1), device_table([device], 2)
    rows = DeviceRows(small)
    for _ in range(FIRST_ROOM):
        rows.add(large)
    rows.add(small)
    found = rows.take(np.array([FIRST_ROOM + 1, FIRST_ROOM, 0]))
    expected = small.take(np.zeros(3, dtype=np.int64))
    expected.pool.channels[1] = large.pool.channels[0]
    assert rows.count == FIRST_ROOM + 2
    for item in fields(small.pool):
        np.testing.assert_array_equal(getattr(found.pool, item.name), getattr(expected.pool, item.name))
    for name, values in expected.timing.items():
        np.testing.assert_array_equal(found.timing[name], values)
    np.testing.assert_array_equal(found.command_pj, expected.command_pj)
    np.testing.assert_array_equal(found.link_gb_per_s, expected.link_gb_per_s)
    np.testing.assert_array_equal(found.refreshes_every, expected.refreshes_every)
