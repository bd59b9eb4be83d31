"""What each command costs, against the constants of CENT's published power model; bases are never mixed."""

from dataclasses import replace

import numpy as np
import pytest

from configs.device import Basis, load_device
from configs.knobs import base_knobs
from simulator.energy import command_energy, energy_constants, on_basis
from simulator.isa import CODE_OF, EVENT_KINDS, KINDS, Kind
from simulator.laws.device import scaled_device

BASE, COMPAT = load_device("gddr6-aim"), load_device("gddr6-aim-compat")
# mW of one channel, half a chip's, and ns of a row cycle, a burst and a column cycle (CENT, ASPLOS'25).
ACTIVATE, READ, WRITE = 132.6 / 2, 876.3 / 2, 1106.3 / 2
ROW, BURST, COLUMN = 44.5, 1.25, 1.0
BUFFER_PJ = 0.3254884575 / 2
BUS_PJ = 5.5 * 256
TRANSCEIVER_PJ, PHY_PJ = 267.7082056 / 2 / 2, 381.0445262 / 2 / 2
# Row, column, bus in pJ, and whether the controller's transmitter and receiver work.
EXPECTED = {
    Kind.ACT: (ACTIVATE * ROW, 0, 0, False),
    Kind.ACT4: (4 * ACTIVATE * ROW, 0, 0, False),
    Kind.ACT16: (16 * ACTIVATE * ROW, 0, 0, False),
    Kind.PRE: (0, 0, 0, False),
    Kind.PRE4: (0, 0, 0, False),
    Kind.PREA: (0, 0, 0, False),
    Kind.TMOD: (0, 0, 0, False),
    Kind.RD: (0, READ * BURST, BUS_PJ, True),
    Kind.RDA: (0, READ * BURST, BUS_PJ, True),
    Kind.RDCP: (0, READ * BURST + BUFFER_PJ, 0, True),
    Kind.RDMAC16: (0, READ * BURST, BUS_PJ, True),
    Kind.RDAF16: (0, READ * BURST, BUS_PJ, True),
    Kind.AF16: (0, 16 * READ * BURST, 0, True),
    Kind.WR: (0, WRITE * BURST, BUS_PJ, True),
    Kind.WRA: (0, WRITE * BURST, BUS_PJ, True),
    Kind.WRCP: (0, WRITE * BURST + BUFFER_PJ, 0, True),
    Kind.WRMAC16: (0, WRITE * BURST, BUS_PJ, True),
    Kind.WRA16: (0, 16 * WRITE * BURST, BUS_PJ, True),
    Kind.WRGB: (0, BUFFER_PJ, BUS_PJ, True),
    Kind.MAC16: (0, 3 * READ * COLUMN + BUFFER_PJ, 0, True),
    Kind.MAC: (0, 3 * READ * COLUMN / 16 + BUFFER_PJ, 0, True),
    Kind.EWMUL16: (0, 3 * READ * COLUMN / 4, 0, True),
}
SAME_ON_BOTH = {
    "global_buffer_access_pj",
    "data_bus_pj_per_bit",
    "link_pj_per_bit",
    "controller_column_pj",
    "phy_command_pj",
    "retention_ms",
    "standby_array_share",
}
SCALED = {
    "activate_precharge_pj": (0.43, 0.485, 0.54),
    "column_read_pj": (0.55, 0.645, 0.74),
    "column_write_pj": (0.55, 0.645, 0.74),
    "standby_active_mw": (0.27, 0.485, 0.69),
    "standby_precharged_mw": (0.27, 0.485, 0.69),
}


# The base device's constants are rounded to four digits, the compatible one's are exact.
@pytest.mark.parametrize(("device", "tolerance"), [(COMPAT, 1e-12), (BASE, 5e-4)], ids=["compat", "base"])
@pytest.mark.parametrize("kind", EXPECTED)
def test_each_command_costs_what_the_published_constants_say(kind, device, tolerance):
    prices, code = command_energy(device), CODE_OF[kind]
    row, column, bus, transceiver = EXPECTED[kind]
    assert prices.row[code] == pytest.approx(row, rel=tolerance)
    # The buffer's sixth of a pJ is rounded to 0.17.
    assert prices.column[code] == pytest.approx(column, rel=tolerance, abs=0.0 if device is COMPAT else 0.01)
    assert prices.data_bus[code] == bus
    assert prices.controller[code] == pytest.approx(TRANSCEIVER_PJ * transceiver, rel=max(tolerance, 1e-9))
    assert prices.phy[code] == pytest.approx(PHY_PJ, rel=max(tolerance, 1e-9))


def test_the_total_is_the_sum_of_all_places():
    prices = command_energy(BASE)
    places = [getattr(prices, name) for name in prices.__slots__]
    np.testing.assert_allclose(prices.total, np.sum(places, axis=0), rtol=1e-15)


def test_events_are_no_commands_and_cost_nothing():
    assert [command_energy(BASE).total[CODE_OF[kind]] for kind in EVENT_KINDS] == [0.0, 0.0]


def test_a_refresh_of_all_banks_restores_its_share_of_all_rows():
    commands = 32e6 / 1900
    price = command_energy(BASE).row[CODE_OF[Kind.REFab]]
    assert price == pytest.approx(16384 * 16 / commands * ACTIVATE * ROW, rel=1e-4)
    assert command_energy(COMPAT).row[CODE_OF[Kind.REFab]] == 0


def test_refreshing_every_bank_by_itself_costs_the_same_rows():
    prices = command_energy(BASE).row
    assert 16 * prices[CODE_OF[Kind.REFpb]] == pytest.approx(prices[CODE_OF[Kind.REFab]])


def test_a_device_whose_commands_have_no_price_is_refused():
    row = BASE.constraints[0].model_copy(update={"following": ("RFMab",)})
    with pytest.raises(ValueError, match="RFMab"):
        command_energy(BASE.model_copy(update={"constraints": (*BASE.constraints, row)}))
    with pytest.raises(ValueError, match="no energy section"):
        command_energy(BASE.model_copy(update={"energy": None}))


@pytest.mark.parametrize(("place", "case"), [(0, "low"), (1, "nominal"), (2, "high")])
def test_typical_constants_scale_every_datasheet_current_and_nothing_else(place, case):
    typical, maximum = energy_constants(BASE, Basis.TYPICAL, case), BASE.energy
    assert typical.basis is Basis.TYPICAL
    for name, factors in SCALED.items():
        assert getattr(typical, name) == pytest.approx(getattr(maximum, name) * factors[place]), name
    for name in SAME_ON_BOTH:
        assert getattr(typical, name) == getattr(maximum, name), name
    column, logic = (0.55, 0.645, 0.74)[place], 0.0972
    assert typical.all_bank_mac_pj == pytest.approx(1314.5 * ((1 - logic) * column + logic))


def test_every_constant_is_either_scaled_or_the_same_on_both_bases():
    named = SAME_ON_BOTH | set(SCALED) | {"row_move_pj", "basis", "all_bank_mac_pj", "mac_multiply_share"}
    factors = {name for name in type(BASE.energy).model_fields if name.startswith("typical_")}
    assert named | factors == set(type(BASE.energy).model_fields)


def test_moving_a_row_is_scaled_like_a_column():
    assert energy_constants(BASE, Basis.TYPICAL).row_move_pj == pytest.approx(0.645 * BASE.energy.row_move_pj)


@pytest.mark.parametrize("lanes", [16, 64])
def test_the_logic_of_the_multiply_is_the_same_on_both_bases(lanes):
    device = scaled_device(BASE, replace(base_knobs(BASE), lanes=lanes, column_bytes=2 * lanes))
    maximum, typical = device.energy, energy_constants(device, Basis.TYPICAL)
    logic = maximum.all_bank_mac_pj * maximum.mac_multiply_share
    assert typical.all_bank_mac_pj * typical.mac_multiply_share == pytest.approx(logic)
    assert logic == pytest.approx(1314.5 * 0.0972 * lanes / 16)


def test_the_datasheet_basis_is_the_device_itself():
    assert energy_constants(BASE, Basis.DATASHEET) is BASE.energy
    typical = on_basis(BASE, Basis.TYPICAL)
    assert on_basis(typical, Basis.TYPICAL, "high") == typical
    with pytest.raises(ValueError, match="typical constants only"):
        energy_constants(typical, Basis.DATASHEET)


def test_no_typical_command_costs_more_than_the_datasheet_one():
    totals = [command_energy(on_basis(BASE, Basis.TYPICAL, case)).total for case in ("low", "nominal", "high")]
    totals.append(command_energy(BASE).total)
    assert (np.diff(totals, axis=0) >= 0).all()
    assert len(totals[0]) == len(KINDS)
