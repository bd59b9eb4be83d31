"""Scaling laws: the base device stays, sizes follow, impossible devices are refused with amounts."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from configs.device import Basis, Device, load_device
from configs.errors import UserError
from configs.knobs import HARDWARE_KNOBS, HardwareKnobs, base_knobs, knob_values
from configs.laws import CASES, LAW_CASES, LawCase
from simulator.energy import command_energy, energy_constants
from simulator.isa import CODE_OF, Kind
from simulator.laws.area import area_mm2
from simulator.laws.device import impossibilities, scaled_device
from simulator.laws.figures import device_figures
from tests.law_grid import BASE, OWN, buildable, drawn, outputs, taken


def scaled(**changes: Any) -> Device:
    return scaled_device(BASE, replace(OWN, **changes))


@pytest.mark.parametrize("case", LAW_CASES)
@pytest.mark.parametrize("name", ["gddr6-aim", "attacc", "hbm-pim", "hbm-pim-like"])
def test_no_device_departs_from_its_file_at_its_own_values(name: str, case: LawCase):
    device = load_device(name)
    figures = device_figures(device, base_knobs(device), case)
    assert {item: int(cycles) for item, cycles in figures.timing.items()} == device.timing
    for item, value in figures.energy.items():
        assert float(value) == pytest.approx(getattr(device.energy, item), rel=1e-12)
    assert impossibilities(device, base_knobs(device)) == ()


def test_a_multiply_cadence_of_a_file_scales_with_what_the_laws_say():
    slower = BASE.model_copy(update={"timing": BASE.timing | {"nCCDMAC": 3}})
    assert scaled_device(slower, replace(base_knobs(slower), unit_clock_mhz=500)).timing["nCCDMAC"] == 6


def test_a_device_knows_the_knobs_it_was_made_with():
    everything = drawn(4000, seed=5)
    chosen = taken(everything, buildable(everything))
    for row in range(200):
        knobs = HardwareKnobs(*(getattr(chosen, field.name)[row].item() for field in fields(HardwareKnobs)))
        assert base_knobs(scaled_device(BASE, knobs)) == knobs


def test_one_device_and_arrays_of_devices_have_the_same_figures():
    everything = drawn(2000, seed=6)
    chosen = taken(everything, buildable(everything))
    figures = device_figures(BASE, chosen)
    for row in range(100):
        knobs = HardwareKnobs(*(getattr(chosen, field.name)[row].item() for field in fields(HardwareKnobs)))
        device = scaled_device(BASE, knobs)
        for name, cycles in figures.timing.items():
            assert np.broadcast_to(cycles, (len(chosen.channels),))[row] == device.timing[name]
        assert np.broadcast_to(figures.energy["all_bank_mac_pj"], (len(chosen.channels),))[row] == pytest.approx(
            device.energy.all_bank_mac_pj
        )


def test_every_knob_value_can_be_had_by_some_device():
    everything = drawn(20000, seed=7)
    chosen = taken(everything, buildable(everything))
    for knob in HARDWARE_KNOBS:
        assert set(getattr(chosen, knob.name).tolist()) == set(knob.values), knob.name


def test_capacity_stays_whatever_the_knobs_unless_banks_are_harvested():
    for knob in HARDWARE_KNOBS:
        for value in knob.values:
            knobs = replace(OWN, **{knob.name: value})
            if not impossibilities(BASE, knobs):
                capacity = scaled_device(BASE, knobs).organisation.capacity_bytes
                lost = value / 16 if knob.name == "harvested_banks" else 0
                assert capacity == BASE.organisation.capacity_bytes * (1 - lost)


def test_activation_energy_of_a_row_follows_cacti_over_pages():
    cacti = {1024: 0.661 + 0.472, 2048: 1.064 + 0.945, 4096: 2.008 + 1.890, 8192: 3.985 + 3.780}
    for row_bytes, nanojoule in cacti.items():
        ratio = scaled(row_bytes=row_bytes).energy.activate_precharge_pj / BASE.energy.activate_precharge_pj
        assert ratio == pytest.approx(nanojoule / cacti[2048], rel=0.1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"row_bytes": 512}, "rows of 512 B lie outside the sweep of 1024-8192 B"),
        ({"lanes": 32}, "a column of 32 B does not hold whole accesses of 32 lanes, 64 B"),
        ({"banks_per_channel": 4, "bank_groups": 8}, "4 banks are not whole groups, of which there are 8"),
        ({"harvested_banks": 1, "banks_per_unit": 2}, "15 working banks are no whole number of units of 2 banks"),
        ({"harvested_banks": 1, "command_banks": "group"}, "15 working banks are not whole groups"),
        ({"vectors_per_multiply": 8, "accumulators": 4}, "4 accumulators do not hold the sums of 8 vectors"),
        ({"global_buffer_bytes": 1040}, "a global buffer of 1040 B does not hold whole inputs of 16 lanes, 32 B"),
        ({"host_link": "string"}, "the link is none of own"),
        ({"readout_bytes": 64}, "64 B of accumulators do not leave in a burst of 32 B"),
        ({"refresh_policy": "per-bank", "banks_per_unit": 2}, "2 banks are opened together"),
    ],
)
def test_a_device_that_cannot_be_built_is_refused_with_amounts(changes: dict[str, Any], reason: str):
    knobs = replace(OWN, **changes)
    assert any(text.startswith(reason) for text in impossibilities(BASE, knobs))
    with pytest.raises(UserError, match="a device that can be built"):
        scaled_device(BASE, knobs)


def test_wider_units_reach_the_power_cap_and_multiply_less_often():
    wide = scaled(lanes=64, column_bytes=128, banks_per_channel=64)
    cap_pj = BASE.power.mac_cap_w_per_channel * BASE.clock_ps * wide.timing["nCCDMAC"]
    assert wide.timing["nCCDMAC"] > BASE.timing["nCCDMAC"]
    assert wide.energy.all_bank_mac_pj <= cap_pj


@pytest.mark.parametrize(
    ("changes", "cycles"),
    [
        ({}, 2),
        ({"unit_clock_mhz": 500}, 4),
        ({"unit_clock_mhz": 667}, 3),
        ({"mac_power_cap_percent": 25}, 4),
        ({"vectors_per_multiply": 4}, 8),
        ({"vectors_per_multiply": 4, "buffer_ports": 4}, 2),
        ({"vectors_per_multiply": 8, "buffer_ports": 4}, 4),
    ],
)
def test_multiplies_follow_each_other_as_units_ports_and_power_allow(changes: dict[str, Any], cycles: int):
    assert scaled(**changes).timing["nCCDMAC"] == cycles


@pytest.mark.parametrize(
    ("changes", "banks", "row_bytes"),
    [
        ({}, 16, 2048),
        ({"banks_per_unit": 2}, 8, 4096),
        ({"banks_per_unit": 4}, 4, 8192),
        ({"command_banks": "group"}, 4, 8192),
        ({"command_banks": "one"}, 1, 32768),
        ({"pim_level": "bank-group"}, 4, 8192),
        ({"pim_level": "buffer-die"}, 1, 32768),
        ({"harvested_banks": 2, "pim_level": "buffer-die"}, 1, 28672),
    ],
)
def test_banks_that_take_turns_make_one_bank_with_a_longer_row(changes: dict[str, Any], banks: int, row_bytes: int):
    organisation = scaled(**changes).organisation
    assert (organisation.banks, organisation.row_bytes) == (banks, row_bytes)


def test_banks_that_open_together_draw_the_charge_of_all_of_them():
    shared, own = scaled(banks_per_unit=4), command_energy(BASE)
    assert command_energy(shared).row[CODE_OF[Kind.ACT]] == pytest.approx(4 * own.row[CODE_OF[Kind.ACT]])
    assert command_energy(shared).row[CODE_OF[Kind.ACT16]] == pytest.approx(own.row[CODE_OF[Kind.ACT16]])
    assert shared.timing["nACTALL"] == BASE.timing["nACTALL"]


def test_units_on_the_buffer_die_pay_for_the_way_of_every_bit():
    at_die = scaled(pim_level="buffer-die").energy.all_bank_mac_pj
    of_one_bank = BASE.energy.all_bank_mac_pj / 16
    assert at_die == pytest.approx(of_one_bank + 256 * 2.74 / BASE.energy.typical_column_factor.nominal)


def test_what_a_way_takes_is_the_same_on_the_typical_basis_as_in_its_source():
    at_die, own = (energy_constants(device, Basis.TYPICAL) for device in (scaled(pim_level="buffer-die"), BASE))
    assert at_die.all_bank_mac_pj - own.all_bank_mac_pj / 16 == pytest.approx(256 * 2.74, rel=0.01)


def test_moving_a_row_costs_by_its_bytes_and_by_the_banks_that_move():
    rows = {
        size: command_energy(scaled(row_buffers=2, row_bytes=size)).column[CODE_OF[Kind.LATCH16]]
        for size in (1024, 2048)
    }
    assert rows[2048] == pytest.approx(2 * rows[1024])
    shared = command_energy(scaled(row_buffers=2, command_banks="one")).column[CODE_OF[Kind.LATCH16]]
    assert shared == pytest.approx(rows[2048])


def test_the_adverse_case_is_never_better_than_any_other():
    everything = drawn(4000, seed=8)
    chosen = taken(everything, buildable(everything))
    worst = outputs(chosen, "adverse")
    for case in CASES:
        other = outputs(chosen, case)
        for name in ("nRCDRDMAC", "nRC", "nRP", "nACTALL", "nRFC", "row energy", "column energy", "multiply energy"):
            assert (worst[name] >= other[name] * (1 - 1e-9)).all(), name


def test_fewer_banks_with_a_unit_cost_less_area():
    areas = [float(area_mm2(BASE, replace(OWN, pim_level=level))) for level in ("bank", "bank-group", "buffer-die")]
    assert areas == sorted(areas, reverse=True)


@pytest.mark.parametrize(("knob", "value"), [("row_bytes", 8192), ("channels", 64), ("banks_per_channel", 64)])
def test_refresh_energy_restores_every_row_once_per_retention_time(knob: str, value: int):
    device = scaled(**{knob: value})
    interval_ms = device.timing["nREFI"] * device.clock_ps * 1e-9
    refresh_pj = command_energy(device).row[CODE_OF[Kind.REFab]]
    per_retention_pj = refresh_pj * device.energy.retention_ms / interval_ms
    rows = device.organisation.rows * device.organisation.banks
    assert per_retention_pj == pytest.approx(rows * device.energy.activate_precharge_pj)


def test_equal_banks_have_equal_column_energy_whatever_the_channels():
    narrow = scaled(channels=16, banks_per_channel=32)
    assert narrow.energy.column_read_pj == pytest.approx(BASE.energy.column_read_pj)


def test_reading_accumulators_costs_by_banks_not_by_lanes():
    wide = command_energy(scaled(lanes=64, column_bytes=128)).column[CODE_OF[Kind.RDMAC16]]
    many = command_energy(scaled(banks_per_channel=64)).column[CODE_OF[Kind.RDMAC16]]
    base = command_energy(BASE).column[CODE_OF[Kind.RDMAC16]]
    assert wide == pytest.approx(base)
    assert many > 2 * base


def test_two_row_buffers_are_named_by_the_device():
    device = scaled(row_buffers=2, host_link="pcie6-x16")
    assert device.name == "gddr6-aim@row_buffers=2,host_link=pcie6-x16"
    assert dict(knob_values(base_knobs(device)))["row_buffers"] == 2
