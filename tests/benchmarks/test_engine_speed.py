"""How fast do the engines issue named streams? CPU time of this process, warm, refresh on, counts kept.

`commands_per_second` in the extra information is over the best round.
"""

import time
from typing import Any

import pytest

from simulator.channel import NO_EVENTS
from simulator.engine import Engine, Skipping
from simulator.isa import command_count
from simulator.program_code import flatten
from simulator.reference_engine import run_reference
from tests.benchmarks.streams import STREAMS, device


@pytest.mark.benchmark(timer=time.process_time, min_rounds=20)
@pytest.mark.parametrize("skipping", Skipping, ids=lambda skipping: skipping.name.lower())
@pytest.mark.parametrize("stream", STREAMS)
def test_engine(stream: str, skipping: Skipping, benchmark: Any) -> None:
    program = STREAMS[stream]()
    code, engine = flatten(program), Engine(device(), skipping)
    report = benchmark(lambda: engine.run(code, engine.fresh_state(), NO_EVENTS))
    assert sum(report.counts) >= command_count(program.body)
    benchmark.extra_info["commands_per_second"] = round(sum(report.counts) / benchmark.stats.stats.min)


@pytest.mark.benchmark(timer=time.process_time)
def test_explaining_engine(benchmark: Any) -> None:
    code, engine = flatten(STREAMS["mixed"]()), Engine(device(), explain=True)
    report = benchmark(lambda: engine.run(code, engine.fresh_state(), NO_EVENTS))
    assert sum(report.stalls) > 0
    benchmark.extra_info["commands_per_second"] = round(sum(report.counts) / benchmark.stats.stats.min)


@pytest.mark.benchmark(timer=time.process_time)
def test_reference_engine(benchmark: Any) -> None:
    engine, program = Engine(device()), STREAMS["mixed"]()
    start = type(program)(program.body[:2000])
    report = benchmark.pedantic(
        lambda: run_reference(start, device(), engine.fresh_state(), NO_EVENTS, table=engine.table), rounds=3
    )
    assert sum(report.counts) >= len(start.body)
    benchmark.extra_info["commands_per_second"] = round(sum(report.counts) / benchmark.stats.stats.min)
