"""The timeline file: what it shows agrees with the log, tracks are tidy, and names cannot break it."""

import gzip
import json
from bisect import bisect
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from configs.device import load_device
from configs.errors import UserError
from simulator.instructions import instruction_count
from simulator.isa import CODE_OF, KINDS, Kind
from simulator.perfetto import Counter, Slice, Trace, save_trace, trace_bytes
from simulator.step_trace import STEP, Detail, step_trace
from simulator.trace_counters import _amounts
from tests.logged_steps import logged_step

DEVICE = load_device("gddr6-aim")
CASES = [("hand", Detail.ALL), ("overlapped", Detail.ALL), ("hand", Detail.FIRST), ("hand", Detail.NONE)]
COMMANDS = "channel 0: command bus"


def _trace(mapping: str, detail: Detail) -> Trace:
    return step_trace(logged_step(mapping), "a model", 32, detail, instruction_count)


def _events(trace: Trace) -> list[dict[str, object]]:
    return json.loads(trace_bytes(trace))["traceEvents"]


def _named(items: list[Slice], start: str) -> list[Slice]:
    return [item for item in items if item.name.split()[0] == start]


def _count(item: Slice) -> int:
    return int(dict(item.args).get("commands", 1))


@pytest.mark.parametrize(("mapping", "detail"), CASES)
def test_slices_of_a_track_lie_within_the_step_and_do_not_overlap(mapping, detail):
    latency = logged_step(mapping).report.latency_cycles
    for name, slices in _trace(mapping, detail).tracks.items():
        assert all(0 <= item.start_cycle < item.end_cycle <= latency for item in slices), name
        assert all(one.end_cycle <= other.start_cycle for one, other in pairwise(slices)), name


@pytest.mark.parametrize(("mapping", "detail"), CASES)
def test_file_keeps_slices_apart_in_whole_nanoseconds(mapping, detail):
    ends: dict[object, int] = defaultdict(int)
    for event in _events(_trace(mapping, detail)):
        if event["ph"] == "X":
            start, duration = (round(1000 * event[key]) for key in ("ts", "dur"))
            assert duration >= 1
            assert start >= ends[event["tid"]]
            ends[event["tid"]] = start + duration


@pytest.mark.parametrize("mapping", ["hand", "overlapped"])
def test_runs_on_the_command_bus_are_all_commands_of_the_step(mapping):
    log, shown = logged_step(mapping), _trace(mapping, Detail.ALL).tracks[COMMANDS]
    counts = sum(item.runs.counts() for item in log.executions)
    assert {kind: sum(map(_count, _named(shown, kind))) for kind in KINDS if counts[CODE_OF[kind]]} == {
        kind: counts[CODE_OF[kind]] for kind in KINDS if counts[CODE_OF[kind]]
    }


def test_units_data_bus_refreshes_and_modes_agree_with_the_commands():
    log, tracks = logged_step("hand"), _trace("hand", Detail.ALL).tracks
    counts = sum(item.runs.counts() for item in log.executions)
    multiplied = sum(item.end_cycle - item.start_cycle for item in tracks["channel 0: units"])
    assert multiplied == counts[CODE_OF[Kind.MAC16]] * log.device.timing["nCCDMAC"]
    moved = {kind: sum(map(_count, _named(tracks["channel 0: data bus"], kind))) for kind in (Kind.RD, Kind.WRGB)}
    assert moved == {kind: counts[CODE_OF[kind]] for kind in moved}
    assert len(tracks["channel 0: refresh"]) == counts[CODE_OF[Kind.REFab]]
    assert len(tracks["channel 0: register mode"]) == counts[CODE_OF[Kind.TMOD]] / 2


def test_open_rows_start_with_an_activate_and_end_with_what_closes_them():
    tracks = _trace("hand", Detail.ALL).tracks
    shown, rows = tracks[COMMANDS], tracks["channel 0: all 16 banks"]
    assert [item.start_cycle for item in rows] == [item.start_cycle for item in _named(shown, Kind.ACT16)]
    closing = sorted(item.start_cycle for kind in (Kind.PREA, Kind.WRA16) for item in _named(shown, kind))
    assert [item.end_cycle for item in rows] == [closing[bisect(closing, item.start_cycle)] for item in rows]
    assert [dict(item.args)["row of the operator's own copy"] for item in rows] == [
        dict(item.args)["row"] for item in _named(shown, Kind.ACT16)
    ]


def test_host_and_link_show_all_their_work():
    log, tracks = logged_step("hand"), _trace("hand", Detail.NONE).tracks
    busy = {
        name: sum(item.end_cycle - item.start_cycle for item in tracks[name])
        for name in ("host", "link down", "link up")
    }
    assert busy.pop("host") == log.report.host_busy_cycles
    assert max(busy.values()) == log.report.link_busy_cycles
    assert sum(dict(item.args)["bytes"] for item in tracks["link up"]) == log.report.up_bytes


def test_what_the_step_waits_for_fills_the_step():
    log, shown = logged_step("hand"), _trace("hand", Detail.NONE).tracks[STEP]
    assert shown[0].start_cycle == 0
    assert shown[-1].end_cycle == log.report.latency_cycles
    assert all(one.end_cycle == other.start_cycle for one, other in pairwise(shown))


def test_detail_chooses_the_operators_shown_down_to_their_commands():
    shown = {detail: _trace("hand", detail).tracks.get(COMMANDS, ()) for detail in Detail}
    assert not shown[Detail.NONE]
    assert 0 < len(shown[Detail.FIRST]) < len(shown[Detail.ALL])
    assert set(shown[Detail.FIRST]) <= set(shown[Detail.ALL])


def test_dispatcher_counts_the_instructions_of_every_program():
    log, shown = logged_step("hand"), _trace("hand", Detail.NONE).tracks["dispatcher"]
    assert [dict(item.args)["instructions"] for item in shown] == [
        instruction_count(item.phase.program) for item in log.executions
    ]


def test_counters_average_to_the_use_of_the_whole_step():
    log = logged_step("hand")
    counters = {counter.name: counter for counter in _trace("hand", Detail.NONE).counters}
    samples = counters["units busy"].samples
    total = sum(value * (end - start) for (start, value), (end, _) in pairwise(samples)) / 100
    macs = sum(item.runs.counts()[CODE_OF[Kind.MAC16]] for item in log.executions)
    assert total == pytest.approx(macs * log.device.timing["nCCDMAC"], rel=1e-3)
    assert all(0 <= value <= 100.01 for _, value in samples)
    assert all(value <= log.device.link.bandwidth_gb_per_s * 1.01 for _, value in counters["link up"].samples)


def test_events_have_the_keys_of_the_format():
    needed = {"X": {"pid", "tid", "ts", "dur", "name", "args"}, "C": {"pid", "ts", "name", "args"}}
    for event in _events(_trace("hand", Detail.FIRST)):
        assert needed.get(event["ph"], {"pid", "tid", "name", "args"}) <= set(event)
        assert event["ph"] in ("X", "C", "M")


def test_names_with_quotes_markup_and_controls_come_back_as_they_are():
    name = "</script>\"'\\\n\u2028<img src=x>\x00é"
    trace = Trace(name, DEVICE, {name: [Slice(name, 0, 2, ((name, name),))]}, (Counter(name, name, ((0, 1.5),)),))
    process, thread, item, counter = _events(trace)
    assert process["args"]["name"] == thread["args"]["name"] == item["name"] == counter["name"] == name
    assert item["args"] == {name: name}
    assert counter["args"] == {f"({name})": 1.5}


def test_letters_are_not_escaped_because_the_viewer_shows_the_codes():
    trace = Trace("\ud800", DEVICE, {"µs": [Slice("MAC16 ×64", 0, 128)]}, ())
    assert "MAC16 ×64" in trace_bytes(trace).decode()


def test_equal_traces_are_equal_files_packed_or_not(tmp_path):
    for number in (0, 1):
        save_trace(_trace("hand", Detail.FIRST), tmp_path / f"{number}.json.gz")
        save_trace(_trace("hand", Detail.FIRST), tmp_path / f"{number}.json")
    packed = (tmp_path / "0.json.gz").read_bytes()
    assert packed == (tmp_path / "1.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "0.json").read_bytes() == (tmp_path / "1.json").read_bytes()


@pytest.mark.parametrize("name", ["trace.txt", "trace.gz", "missing/trace.json"])
def test_file_that_cannot_be_written_is_a_users_mistake(tmp_path, name):
    with pytest.raises(UserError, match="trace"):
        save_trace(Trace("", DEVICE, {}, ()), tmp_path / name)


def test_numbers_of_numpy_are_numbers_in_the_file():
    work = Slice("work", 0, 10, (("bytes", np.int64(3)), ("rate", np.float64(0.5))))
    trace = Trace("a step", DEVICE, {"track": [work]}, ())
    (slice_event,) = [event for event in _events(trace) if event["ph"] == "X"]
    assert slice_event["args"]["bytes"] == 3
    assert slice_event["args"]["rate"] == 0.5


def test_amounts_that_overlap_are_shared_out_by_time():
    edges, start, end = np.array([0, 10, 20]), np.array([8, 9]), np.array([12, 11])
    assert _amounts(edges, start, end, np.array([4, 2])).tolist() == pytest.approx([3.0, 3.0])
    assert _amounts(edges, start[:0], end[:0], start[:0]).tolist() == [0.0, 0.0]
