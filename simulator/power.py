"""Power of one channel from the commands it issued: the average, and the peak over a window.

A command's whole energy is spent in the cycle it issues at. Spread over the time that a command lasts (45 ns for an
activate with its precharge, 120 ns for a refresh), a window's energy would differ by at most that of the commands at
its two ends: little in the default window of 1 us. Beside its commands the channel stands by with open rows. Link and
host have no share in a channel's power.
"""

import numpy as np
from numpy.typing import NDArray

from configs.device import Basis, Device
from configs.laws import Case
from simulator.energy import command_energy, energy_constants, on_basis

WINDOW_NS = 1000.0
W_PER_MW = 1e-3
# 1 pJ in 1 ns is 1 mW.
W_PER_PJ_PER_NS = 1e-3
Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


def average_power_w(
    cycles: Ints,
    kinds: Ints,
    device: Device,
    duration_ns: float | None = None,
    *,
    basis: Basis = Basis.DATASHEET,
    case: Case = "nominal",
) -> float:
    """Return the mean power in W over a duration, by default from the first command to the end of the last one's cycle.

    `cycles` (rising) and `kinds` (codes of `isa.KINDS`) are int[n]. Raises ValueError for a log that is empty, unless
    the duration is given, and for one that is not in order.
    """
    _require_log(cycles, kinds)
    if duration_ns is None:
        if not len(cycles):
            raise ValueError("an empty log has no duration of its own: expected duration_ns")
        duration_ns = device.nanoseconds(int(cycles[-1]) - int(cycles[0]) + 1)
    energy_pj = float(_command_pj(device, basis, case)[kinds].sum())
    return standby_power_w(device, basis, case) + energy_pj / duration_ns * W_PER_PJ_PER_NS


def peak_power_w(
    cycles: Ints,
    kinds: Ints,
    device: Device,
    window_ns: float = WINDOW_NS,
    *,
    basis: Basis = Basis.DATASHEET,
    case: Case = "nominal",
) -> float:
    """Return the largest mean power in W of any window; no other window beats those that start at a command.

    Arguments and errors as in `average_power_w`; an empty log leaves standby alone.
    """
    means = window_power_w(cycles, kinds, device, window_ns, basis=basis, case=case)
    return float(means.max(initial=standby_power_w(device, basis, case)))


def window_power_w(
    cycles: Ints,
    kinds: Ints,
    device: Device,
    window_ns: float = WINDOW_NS,
    *,
    basis: Basis = Basis.DATASHEET,
    case: Case = "nominal",
) -> Floats:
    """Return the mean power in W over the window that starts with each command: float[n].

    The window is rounded to whole cycles and holds its first cycle but not the one after its last; beyond the end of
    the log nothing is issued. Raises ValueError as `average_power_w`, and for a window shorter than half a cycle.
    """
    _require_log(cycles, kinds)
    window_cycles = round(window_ns / device.nanoseconds(1))
    if window_cycles < 1:
        raise ValueError(f"a window of {window_ns} ns holds no cycle of {device.nanoseconds(1)} ns")
    spent = np.concatenate([[0.0], np.cumsum(_command_pj(device, basis, case)[kinds])])
    begin = np.searchsorted(cycles, cycles, side="left")
    end = np.searchsorted(cycles, cycles + window_cycles, side="left")
    dynamic = (spent[end] - spent[begin]) / device.nanoseconds(window_cycles) * W_PER_PJ_PER_NS
    return np.asarray(standby_power_w(device, basis, case) + dynamic)


def standby_power_w(device: Device, basis: Basis = Basis.DATASHEET, case: Case = "nominal") -> float:
    """Return the power in W of one channel that has rows open and issues nothing."""
    return energy_constants(device, basis, case).standby_active_mw * W_PER_MW


def _command_pj(device: Device, basis: Basis, case: Case) -> Floats:
    return command_energy(on_basis(device, basis, case)).total


def _require_log(cycles: Ints, kinds: Ints) -> None:
    if len(cycles) != len(kinds):
        raise ValueError(f"a log needs one kind for each cycle, found {len(cycles)} cycles and {len(kinds)} kinds")
    if len(cycles) and bool(np.any(np.diff(cycles) < 0)):
        raise ValueError("a log is in order of its cycles, this one is not")
