"""Average and peak power of random command logs: what must hold of any sliding window."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.device import Basis, load_device
from simulator.energy import command_energy
from simulator.isa import CODE_OF, EVENT_KINDS, KINDS, Kind
from simulator.power import WINDOW_NS, average_power_w, peak_power_w, standby_power_w, window_power_w

DEVICE = load_device("gddr6-aim")
PRICES = command_energy(DEVICE).total
ISSUED = [code for code, kind in enumerate(KINDS) if kind not in EVENT_KINDS]
STANDBY_W = standby_power_w(DEVICE)


@st.composite
def logs(draw):
    steps = draw(st.lists(st.integers(0, 700), min_size=1, max_size=60))
    kinds = draw(st.lists(st.sampled_from(ISSUED), min_size=len(steps), max_size=len(steps)))
    return np.cumsum(steps), np.array(kinds)


windows_ns = st.integers(1, 3000).map(lambda cycles: cycles * 0.5)


def _mean_by_hand(cycles, kinds, start, window_ns):
    inside = (cycles >= start) & (cycles < start + window_ns / 0.5)
    return STANDBY_W + PRICES[kinds[inside]].sum() / window_ns / 1000


@given(logs(), windows_ns, st.integers(-2000, 40000))
def test_no_window_anywhere_beats_the_peak(log, window_ns, start):
    assert _mean_by_hand(*log, start, window_ns) <= peak_power_w(*log, DEVICE, window_ns) * (1 + 1e-12)


@given(logs(), windows_ns)
def test_the_windows_are_those_a_plain_loop_finds(log, window_ns):
    expected = [_mean_by_hand(*log, start, window_ns) for start in log[0]]
    np.testing.assert_allclose(window_power_w(*log, DEVICE, window_ns), expected, rtol=1e-9)


@given(st.sampled_from(ISSUED), st.integers(1, 50), st.integers(1, 20))
def test_evenly_spaced_commands_have_a_peak_equal_to_their_average(code, spacing, per_window):
    window_cycles = spacing * per_window
    cycles = np.arange(0, 5 * window_cycles, spacing)
    kinds = np.full(len(cycles), code)
    peak = peak_power_w(cycles, kinds, DEVICE, window_cycles * 0.5)
    assert peak == pytest.approx(average_power_w(cycles, kinds, DEVICE, 5 * window_cycles * 0.5))


@given(st.sampled_from(ISSUED), st.integers(1, 50), st.integers(50, 3000))
def test_with_any_window_they_differ_by_at_most_one_command(code, spacing, window_cycles):
    cycles = np.arange(0, 20 * window_cycles, spacing)
    kinds = np.full(len(cycles), code)
    excess = peak_power_w(cycles, kinds, DEVICE, window_cycles * 0.5) - STANDBY_W - PRICES[code] / spacing * 2e-3
    assert -1e-9 <= excess <= PRICES[code] / window_cycles * 2e-3 * (1 + 1e-9)


@given(logs(), windows_ns, st.integers(1, 8))
def test_channels_in_lock_step_scale_the_peak_by_their_number(log, window_ns, channels):
    cycles, kinds = log
    one = peak_power_w(cycles, kinds, DEVICE, window_ns) - STANDBY_W
    all_together = peak_power_w(np.repeat(cycles, channels), np.repeat(kinds, channels), DEVICE, window_ns) - STANDBY_W
    assert all_together == pytest.approx(channels * one)


@given(logs(), windows_ns)
def test_doubling_all_energies_doubles_average_and_peak(log, window_ns):
    doubled = {name: 2 * value for name, value in DEVICE.energy if name.endswith(("_pj", "_mw", "_pj_per_bit"))}
    device = DEVICE.model_copy(update={"energy": DEVICE.energy.model_copy(update=doubled)})
    assert peak_power_w(*log, device, window_ns) == pytest.approx(2 * peak_power_w(*log, DEVICE, window_ns))
    assert average_power_w(*log, device) == pytest.approx(2 * average_power_w(*log, DEVICE))


@given(logs(), windows_ns)
def test_typical_power_is_below_the_datasheet_one(log, window_ns):
    typical = peak_power_w(*log, DEVICE, window_ns, basis=Basis.TYPICAL)
    low, high = (peak_power_w(*log, DEVICE, window_ns, basis=Basis.TYPICAL, case=case) for case in ("low", "high"))
    assert low < typical < high < peak_power_w(*log, DEVICE, window_ns)


def test_a_single_activate_of_all_banks_spreads_over_the_window():
    log = (np.array([7]), np.array([CODE_OF[Kind.ACT16]]))
    assert peak_power_w(*log, DEVICE) == pytest.approx(STANDBY_W + PRICES[CODE_OF[Kind.ACT16]] / WINDOW_NS / 1000)


def test_an_empty_log_leaves_standby_alone():
    nothing = np.array([], dtype=np.int64)
    assert peak_power_w(nothing, nothing, DEVICE) == STANDBY_W
    assert average_power_w(nothing, nothing, DEVICE, 1000.0) == STANDBY_W
    with pytest.raises(ValueError, match="empty log"):
        average_power_w(nothing, nothing, DEVICE)


def test_bad_logs_and_windows_are_refused():
    kinds = np.array([0, 0])
    with pytest.raises(ValueError, match="in order"):
        peak_power_w(np.array([5, 4]), kinds, DEVICE)
    with pytest.raises(ValueError, match="1 cycles and 2 kinds"):
        peak_power_w(np.array([5]), kinds, DEVICE)
    with pytest.raises(ValueError, match="holds no cycle"):
        peak_power_w(np.array([4, 5]), kinds, DEVICE, 0.1)
