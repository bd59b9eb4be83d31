"""The rows of every bank that a task takes under many schedules on many devices at once: what legality has to know."""

from typing import Any

import numpy as np

from compiler.attention import attention_geometry
from compiler.linear import LinearShape, linear_rows
from compiler.schedule import Place, PoolShape
from compiler.workload import Schedulable


def taken_rows(shape: Schedulable, schedule: Any, pool: PoolShape) -> Any:
    """Return the rows of one copy of a task's matrices or cache, none on the host (records may hold arrays)."""
    if isinstance(shape, LinearShape):
        rows = shape.heads * linear_rows(shape, schedule, pool)
    else:
        rows = attention_geometry(shape, schedule, pool).rows
    return np.where(schedule.place == Place.HOST, 0, rows)
