"""The table of signs: what each knob does to each output of the laws, everything else equal, over the whole grid.

An output that a knob's row does not name must not move at all. `EITHER` stands where two laws pull in opposite
directions; the comment says which.
"""

import numpy as np
import pytest

from configs.knobs import HARDWARE_KNOBS, KnobDeclaration
from configs.laws import CASES, LAW_CASES, LawCase
from tests.law_grid import neighbours, outputs

UP, DOWN, EITHER = 1, -1, 0
SAMPLE, LARGE_SAMPLE = 1500, 12000
ROUNDING = 1e-9
WIRES = {"nRCDRD": DOWN, "nRAS": DOWN, "nRC": DOWN, "row energy": DOWN, "column energy": DOWN}
FEWER_PARALLEL = {
    "nRRDS": UP,
    "nRRDL": UP,
    "nFAW": UP,
    "nRFCpb": UP,
    "nBLREG": DOWN,
    "parallel banks": DOWN,
    "gang": UP,
}
# Which banks are open together follows from level, groups and harvested banks at once.
GANGS = {"nRRDS": EITHER, "nRRDL": EITHER, "nFAW": EITHER, "nRFCpb": EITHER, "gang": EITHER, "parallel banks": EITHER}
SIGNS: dict[str, dict[str, int]] = {
    "channels": WIRES
    | {"nRCDRDMAC": DOWN, "nRCDWR": DOWN, "nACTALL": DOWN, "nCCDMAC": DOWN, "nRFC": DOWN, "nRFCpb": DOWN}
    | {"multiply energy": DOWN, "standby": DOWN, "area": UP}
    # A host in the memory controller has the channels' own rate.
    | {"link bandwidth": UP},
    # More banks: shorter wires, but a longer stagger; fewer rows in each, but more of them opened together.
    "banks_per_channel": WIRES
    | {"nRCDRD": EITHER, "nRAS": EITHER, "nRC": EITHER, "nRRDL": UP}
    | {"nRCDRDMAC": EITHER, "nRCDWR": EITHER, "nACTALL": EITHER, "nCCDMAC": EITHER, "nRRDS": UP, "nFAW": UP}
    | {"nBLREG": UP, "nRFCpb": EITHER, "multiply energy": DOWN, "parallel banks": UP, "gang": UP}
    | {"capacity": UP, "area": UP},
    # A command for a group drives fewer banks of more groups; units at groups are more.
    "bank_groups": GANGS | {"nCCDMAC": EITHER, "nBLREG": EITHER, "area": UP},
    # CACTI's area has its least at 4 KiB.
    "row_bytes": {"nRCDRD": UP, "nRCDRDMAC": UP, "nRCDWR": UP, "nRAS": UP, "nRC": UP, "nRRDS": UP, "nFAW": UP}
    | {"nRRDL": UP, "nACTALL": UP, "row energy": UP, "row move energy": UP, "area": EITHER},
    "rows_per_subarray": {"nRCDRD": UP, "nRCDRDMAC": UP, "nRCDWR": UP, "nRAS": UP, "nRP": UP, "nRC": UP}
    | {"nACTALL": UP, "row energy": UP, "area": DOWN},
    # Time and energy of moving a row are the base device's assumption at nominal constants, less or more at others.
    "row_buffers": {"row buffers": UP, "nLTMAC": EITHER, "row move energy": EITHER, "area": UP},
    "column_bytes": {"nCCDMAC": UP, "nBL": UP, "column energy": UP, "multiply energy": UP, "area": UP},
    "lanes": {"nCCDMAC": UP, "nBLGB": UP, "multiply energy": UP, "buffer energy": UP, "area": UP},
    "vectors_per_multiply": {"vectors": UP, "nCCDMAC": UP, "multiply energy": UP, "buffer energy": UP, "area": UP},
    "accumulators": {"accumulators": UP, "area": UP},
    "readout_bytes": {"nBLREG": DOWN, "area": UP},
    "global_buffer_bytes": {"buffer bytes": UP, "area": UP},
    "buffer_ports": {"nCCDMAC": DOWN, "area": UP},
    # From banks to groups to the die: fewer units, longer ways; units that a command drives in turns set the start.
    "pim_level": GANGS | {"nCCDMAC": EITHER, "nBLREG": EITHER, "multiply energy": UP, "area": EITHER},
    "banks_per_unit": FEWER_PARALLEL | {"nCCDMAC": DOWN, "area": DOWN},
    "command_banks": FEWER_PARALLEL | {"nCCDMAC": DOWN},
    "activation_current_percent": {"nACTALL": DOWN, "area": UP},
    "activation_stagger_cycles": {"nRCDRD": UP, "nRCDRDMAC": UP, "nRCDWR": UP, "nRAS": UP, "nRC": UP, "nACTALL": UP}
    | {"area": DOWN},
    "unit_clock_mhz": {"nCCDMAC": DOWN, "area": UP},
    "mac_power_cap_percent": {"nCCDMAC": DOWN},
    "refresh_policy": {},
    "temperature_c": {"refresh interval": DOWN},
    "unit_formats": {"area": UP},
    "ecc": {
        "row energy": UP,
        "nRCDRDMAC": UP,
        "nCL": UP,
        "nRMW": UP,
        "nCCDMAC": UP,
        "column energy": UP,
        "multiply energy": UP,
    }
    | {"area": UP},
    "harvested_banks": {"nRCDRDMAC": DOWN, "nRCDWR": DOWN, "nRRDS": DOWN, "nFAW": DOWN, "nACTALL": DOWN}
    | {"nRCDRD": DOWN, "nRAS": DOWN, "nRC": DOWN, "nRRDL": DOWN}
    | {"nCCDMAC": DOWN, "nRFCpb": DOWN, "parallel banks": DOWN, "gang": DOWN, "capacity": DOWN}
    | {"area": DOWN},
    "instructions_per_64_cycles": {"dispatcher rate": UP},
    "sequencer_loop_depth": {"loop depth": UP},
    # A list of links, not a scale.
    "host_link": {"link energy": EITHER, "link bandwidth": EITHER, "link latency": EITHER},
}


@pytest.mark.parametrize("case", LAW_CASES)
@pytest.mark.parametrize("knob", HARDWARE_KNOBS, ids=lambda knob: knob.name)
def test_each_output_moves_with_a_knob_as_the_table_of_signs_says(knob: KnobDeclaration, case: LawCase):
    for before, after in neighbours(knob, SAMPLE, seed=1):
        first, second = outputs(before, case), outputs(after, case)
        for name, values in first.items():
            change = second[name] - values
            moved = np.sign(np.where(np.abs(change) > ROUNDING * np.abs(values), change, 0))
            sign = SIGNS[knob.name].get(name)
            if sign is None:
                assert not moved.any(), f"{knob.name} moves {name}"
            elif sign:
                assert (moved * sign >= 0).all(), f"{knob.name} moves {name} the other way"


def test_the_table_of_signs_has_a_row_for_every_knob():
    assert list(SIGNS) == [knob.name for knob in HARDWARE_KNOBS]


@pytest.mark.parametrize("knob", HARDWARE_KNOBS, ids=lambda knob: knob.name)
def test_each_named_output_does_move_somewhere(knob: KnobDeclaration):
    moved: set[str] = set()
    for before, after in neighbours(knob, LARGE_SAMPLE, seed=2):
        for case in CASES:
            first, second = outputs(before, case), outputs(after, case)
            changes = {
                name: np.abs(second[name] - values) - ROUNDING * np.abs(values) for name, values in first.items()
            }
            moved |= {name for name, change in changes.items() if np.any(change > 0)}
    assert moved == set(SIGNS[knob.name])


def test_low_nominal_and_high_areas_are_in_this_order():
    for knob in HARDWARE_KNOBS:
        for devices in neighbours(knob, SAMPLE, seed=3):
            low, nominal, high = (outputs(devices[0], case)["area"] for case in CASES)
            assert (low <= nominal).all()
            assert (nominal <= high).all()
