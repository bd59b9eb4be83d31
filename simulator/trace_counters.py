"""Counters of a step's timeline: how busy units, buses and link are, over even pieces of the step."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.channel_use import ChannelUse
from simulator.command_runs import CommandRuns
from simulator.perfetto import Counter
from simulator.step_log import StepLog
from simulator.timeline import Job

MOST_SAMPLES = 3000
NS_PER_US = 1000


def channel_counters(log: StepLog, runs: CommandRuns, use: ChannelUse) -> tuple[Counter, ...]:
    """Return how much of each piece the units multiply, bursts pass, and commands are issued."""
    named = (
        ("units busy", use.units),
        ("data bus busy", use.data_bus),
        ("command bus busy", use.command_bus),
    )
    edges = _edges(log)
    counters = []
    for name, cycles in named:
        chosen = runs.take(cycles[runs.kind] > 0)
        own = cycles[chosen.kind]
        busy = _amounts(edges, chosen.first_cycle, chosen.last_cycle + own, chosen.count * own)
        counters.append(_counter(name, "%", edges, 100 * busy / np.diff(edges)))
    return tuple(counters)


def link_counters(log: StepLog, jobs: Sequence[Job]) -> tuple[Counter, ...]:
    """Return what each direction of a device's link moves, in GB/s."""
    edges = _edges(log)
    seconds_e9 = np.array([log.device.nanoseconds(int(cycles)) for cycles in np.diff(edges)])
    counters = []
    for server, name in (("down", "link down"), ("up", "link up")):
        own = [(job.start_cycle, job.end_cycle, job.chunk_bytes) for job in jobs if job.server == server]
        start, end, moved = np.array(own, dtype=np.int64).reshape(-1, 3).T
        counters.append(_counter(name, "GB/s", edges, _amounts(edges, start, end, moved) / seconds_e9))
    return tuple(counters)


def _edges(log: StepLog) -> NDArray[np.int64]:
    """Return where pieces start and end: whole µs, as many at once as keep their number in bounds."""
    latency = log.report.latency_cycles
    us = max(1, -(-int(log.device.nanoseconds(latency)) // (NS_PER_US * MOST_SAMPLES)))
    piece = max(1, round(us * NS_PER_US / log.device.nanoseconds(1)))
    return np.append(np.arange(0, latency, piece), latency)


def _amounts(
    edges: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], amount: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return what falls into each piece of amounts that are spread evenly from start to end, and may overlap."""
    rate = amount / np.maximum(end - start, 1)
    return np.diff(_up_to(edges, end, rate) - _up_to(edges, start, rate))


def _up_to(edges: NDArray[np.int64], limit: NDArray[np.int64], rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, per edge, the sum of rate * min(edge, limit)."""
    order = np.argsort(limit, kind="stable")
    reached = np.searchsorted(limit[order], edges, side="right")
    passed = np.concatenate([[0.0], np.cumsum(rate[order] * limit[order])])[reached]
    rest = rate.sum() - np.concatenate([[0.0], np.cumsum(rate[order])])[reached]
    return np.asarray(passed + edges * rest)


def _counter(name: str, unit: str, edges: NDArray[np.int64], values: NDArray[np.float64]) -> Counter:
    rounded = np.append(np.round(values, 2), 0.0)
    changed = np.append(True, rounded[1:] != rounded[:-1])
    return Counter(name, unit, tuple(zip(edges[changed].tolist(), rounded[changed].tolist(), strict=True)))
