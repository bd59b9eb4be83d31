"""Scaling laws: the base device stays, signs are those of silicon, impossible devices are refused with amounts."""

from dataclasses import replace
from itertools import pairwise

import pytest

from configs.device import load_device
from configs.errors import UserError
from configs.knobs import HARDWARE_KNOBS, base_knobs
from simulator.area import dram_area_mm2
from simulator.energy import command_energy, refresh_command_pj
from simulator.isa import CODE_OF, Kind
from simulator.scaling import impossibilities, scaled_device

BASE = load_device("gddr6-aim")
KNOBS = base_knobs(BASE)


def test_base_device_at_its_own_values_comes_out_unchanged():
    assert scaled_device(BASE, KNOBS) == BASE


def test_capacity_stays_whatever_the_knobs():
    for knob in HARDWARE_KNOBS:
        for value in knob.values:
            scaled = scaled_device(BASE, replace(KNOBS, **{knob.name: value}))
            assert scaled.organisation.capacity_bytes == BASE.organisation.capacity_bytes


def test_activation_energy_of_a_row_follows_cacti_over_pages():
    cacti = {1024: 0.661 + 0.472, 2048: 1.064 + 0.945, 4096: 2.008 + 1.890, 8192: 3.985 + 3.780}
    for row_bytes, nanojoule in cacti.items():
        scaled = scaled_device(BASE, replace(KNOBS, row_bytes=row_bytes))
        ratio = scaled.energy.activate_precharge_pj / BASE.energy.activate_precharge_pj
        assert ratio == pytest.approx(nanojoule / cacti[2048], rel=0.1)


@pytest.mark.parametrize(
    ("knob", "figure", "sign"),
    [
        ("row_bytes", lambda device: device.energy.activate_precharge_pj, 1),
        ("row_bytes", lambda device: device.timing["nRCDRDMAC"], 1),
        ("row_bytes", lambda device: device.timing["nFAW"], 1),
        ("row_bytes", lambda device: device.timing["nACTALL"], 1),
        ("banks_per_channel", lambda device: device.timing["nRCDRD"], -1),
        ("banks_per_channel", lambda device: device.energy.all_bank_mac_pj, 1),
        ("banks_per_channel", lambda device: device.timing["nBLREG"], 1),
        ("banks_per_channel", lambda device: dram_area_mm2(device, BASE), 1),
        ("lanes", lambda device: device.timing["nBLGB"], 1),
        ("lanes", lambda device: device.energy.all_bank_mac_pj, 1),
        ("lanes", lambda device: dram_area_mm2(device, BASE), 1),
        ("channels", lambda device: dram_area_mm2(device, BASE), 1),
        ("global_buffer_bytes", lambda device: dram_area_mm2(device, BASE), 1),
    ],
)
def test_figures_move_with_a_knob_in_the_right_direction(knob, figure, sign):
    values = next(item.values for item in HARDWARE_KNOBS if item.name == knob)
    figures = [figure(scaled_device(BASE, replace(KNOBS, **{knob: value}))) for value in values]
    steps = [sign * (after - before) for before, after in pairwise(figures)]
    assert all(step >= 0 for step in steps)
    assert sum(steps) > 0


def test_rows_outside_the_sweep_are_refused_with_amounts():
    knobs = replace(KNOBS, row_bytes=512)
    assert impossibilities(BASE, knobs) == ("rows of 512 B lie outside the sweep of 1024-8192 B",)
    with pytest.raises(UserError, match="512 B"):
        scaled_device(BASE, knobs)


def test_wider_units_reach_the_power_cap_and_multiply_less_often():
    wide = scaled_device(BASE, replace(KNOBS, lanes=64, banks_per_channel=64))
    cap_pj = BASE.power.mac_cap_w_per_channel * BASE.clock_ps * wide.timing["nCCDMAC"]
    assert wide.timing["nCCDMAC"] > BASE.timing["nCCDMAC"]
    assert wide.energy.all_bank_mac_pj <= cap_pj


@pytest.mark.parametrize(("knob", "value"), [("row_bytes", 8192), ("channels", 64), ("banks_per_channel", 64)])
def test_refresh_energy_restores_every_row_once_per_retention_time(knob, value):
    device = scaled_device(BASE, replace(KNOBS, **{knob: value}))
    interval_ms = device.timing["nREFI"] * device.clock_ps * 1e-9
    per_retention_pj = refresh_command_pj(device) * device.energy.retention_ms / interval_ms
    rows = device.organisation.rows * device.organisation.banks
    assert per_retention_pj == pytest.approx(rows * device.energy.activate_precharge_pj)


def test_equal_banks_have_equal_column_energy_whatever_the_channels():
    narrow = scaled_device(BASE, replace(KNOBS, channels=16, banks_per_channel=32))
    assert narrow.energy.column_read_pj == pytest.approx(BASE.energy.column_read_pj)


def test_reading_accumulators_costs_by_banks_not_by_lanes():
    wide = command_energy(scaled_device(BASE, replace(KNOBS, lanes=64))).column[CODE_OF[Kind.RDMAC16]]
    many = command_energy(scaled_device(BASE, replace(KNOBS, banks_per_channel=64))).column[CODE_OF[Kind.RDMAC16]]
    base = command_energy(BASE).column[CODE_OF[Kind.RDMAC16]]
    assert wide == pytest.approx(base)
    assert many > 2 * base
