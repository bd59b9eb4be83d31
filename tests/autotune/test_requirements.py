"""Requirements: what is understood, what is refused and with which hint, and what a violation is."""

import math

import numpy as np
import pytest

from autotune.goals import Judged, goals_of
from autotune.problem import Knob
from autotune.requirements import canonical_requirement, known_figures, limit_text, parse_requirement
from configs.errors import UserError

KNOBS = (
    Knob("channels", "hardware", (8, 16)),
    Knob("pim_level", "hardware", ("bank", "group")),
    Knob("order", "o", (1,)),
)
KNOWN = known_figures(KNOBS)
DEFAULT = ("latency", "energy", "area")


def test_spellings_of_one_requirement_are_one_text():
    assert canonical_requirement("area_mm2<=600") == canonical_requirement(" area_mm2  <= 6e2 ") == "area_mm2 <= 600"
    assert limit_text("--max", "area_mm2=600.0") == "area_mm2 <= 600"
    assert limit_text("--min", "capacity_gib=16") == "capacity_gib >= 16"
    text = "latency_ms <= 0.1000000000000000055511151231257827"
    assert canonical_requirement(canonical_requirement(text)) == canonical_requirement(text)


def test_figures_and_numeric_hardware_knobs_can_be_required():
    assert {"latency_ms", "power_avg_w", "devices", "channels"} <= set(KNOWN)
    assert not {"pim_level", "order"} & set(KNOWN)
    requirement = parse_requirement("channels >= 16", KNOWN)
    assert (requirement.at_most, requirement.limit, requirement.merit.exact) == (False, 16.0, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aera_mm2 <= 6", "did you mean area_mm2?"),
        ("power_peak_w <= 6", "expected one of"),
        ("area_mm2 < 6", "found the operator <;"),
        ("area_mm2 == 6", "found the operator ==;"),
        ("area_mm2 6", "no operator"),
        ("area_mm2 <= six", "a number above 0"),
        ("area_mm2 <= nan", "a number above 0"),
        ("area_mm2 <= inf", "a number above 0"),
        ("area_mm2 <= 0", "a number above 0"),
        ("area_mm2 <= -5", "a number above 0"),
        ("area_mm2 <= 1e999", "a number above 0"),
        ("area_mm2 <= ٣", "a number above 0"),
        ("area_mm2 <= 6 <= 7", "a number above 0"),
        ("area_mm2 <= __import__('os')", "a number above 0"),
        ("", "no operator"),
    ],
)
def test_what_is_no_requirement_is_refused_with_the_way_out(text, expected):
    with pytest.raises(UserError) as raised:
        parse_requirement(text, KNOWN)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("latency",), "2 to 4"),
        (("latency",) * 2, "2 to 4"),
        (("latency", "costs"), "did you mean cost?"),
        (("",), "some of"),
    ],
)
def test_objectives_are_two_to_four_known_ones(names, expected):
    with pytest.raises(UserError) as raised:
        goals_of(names, (), KNOBS)
    assert expected in str(raised.value)


def test_violation_adds_up_how_far_every_limit_is_missed():
    metrics, facts = np.array([[2e6, 1e9, 500.0], [1e6, 1e9, 300.0]]), {}
    goals = goals_of(DEFAULT, ("latency_ms <= 1", "area_mm2 <= 250", "energy_mj >= 0.5"), KNOBS)
    margins = np.stack([item.margin(metrics, facts) for item in goals.requirements], axis=1)
    judged = Judged(metrics, margins)
    assert judged.violations.tolist() == pytest.approx([math.log(2) + math.log(2), math.log(300 / 250)])
    assert not judged.feasible.any()
    assert judged.elite().tolist() == [1, 0]


def test_a_design_on_the_limit_is_feasible():
    goals = goals_of(DEFAULT, ("area_mm2 <= 600", "area_mm2 >= 600"), KNOBS)
    margins = np.stack([item.margin(np.array([[1.0, 1.0, 600.0]]), {}) for item in goals.requirements], axis=1)
    assert Judged(np.zeros((1, 3)), margins).feasible.all()
