"""CENT's 7B block: do our constants on the replayed commands give CENT's published energy?

CENT's own total for this trace, 61.515302 mJ per token of Llama2-7B on 8 devices, is reproduced to the last digit by
its formulas written anew (`experiments.cent_power`) on our replay. Ours equals them line by line, to 1e-9, except:

* standby: CENT divides its time by 32 channels twice, so that 1/32 is counted. Ours counts all: the whole energy is
  then 1.2178 times as large, 2.341 instead of 1.922 mJ per block;
* PHY: CENT counts SYNC and EOC as commands, once per instruction (6 of 3.6 million);
* global buffer: ours prices its read in each multiply and takes the price of a write for every access; together 0.13 uJ
  of 2340 per block;
* link, other buffers, accelerators and device control (1.4 uJ per block) belong to CENT's system; ours has no line for
  them here, and none of CENT's traces has refresh.
"""

from pathlib import Path

import pytest

from configs.device import load_device
from experiments.cent_energy import DEVICES, PUBLISHED_TOKEN_MJ, TRACE, compare, print_table, replay_activity
from simulator.isa import Kind

DEVICE = load_device("gddr6-aim-compat")
SAME = ("rows", "reads and writes", "multiply", "data bus", "controller")
BUFFER_READ_PJ, BUFFER_WRITE_PJ = 0.2785010052 / 2, 0.3254884575 / 2


@pytest.fixture(scope="module")
def activity():
    return replay_activity(TRACE, DEVICE)


@pytest.fixture(scope="module")
def found(activity):
    return compare(activity, DEVICE)


def test_cents_formulas_on_our_replay_give_its_published_energy_per_token(found):
    assert sum(found.published.values()) * DEVICES == pytest.approx(PUBLISHED_TOKEN_MJ, rel=1e-13)


@pytest.mark.parametrize("line", SAME)
def test_lines_with_a_common_convention_are_equal(found, line):
    assert found.ours[line] == pytest.approx(found.published[line], rel=1e-9)
    assert found.ours[line] > 0


def test_phy_differs_by_the_barriers_that_cent_counts(found, activity):
    commands = sum(activity.counts.values())
    assert activity.barriers == 6
    assert found.ours["PHY"] * (commands + 6) / commands == pytest.approx(found.published["PHY"], rel=1e-9)


def test_standby_equals_cents_without_its_error_and_is_32_times_the_published(found, activity):
    assert activity.open_cycles + activity.closed_cycles == 32 * 425585
    assert found.ours["standby"] == pytest.approx(found.corrected["standby"], rel=1e-9)
    assert found.corrected["standby"] == pytest.approx(32 * found.published["standby"], rel=1e-12)
    totals = [sum(lines.values()) for lines in (found.published, found.corrected)]
    print(f"mJ per device: published {totals[0]:.6f}, all standby {totals[1]:.6f}, ratio {totals[1] / totals[0]:.6f}")
    assert totals == pytest.approx([7.689413, 9.364344], abs=1e-6)
    assert totals[1] / totals[0] == pytest.approx(1.217823, abs=1e-6)


def test_global_buffer_differs_by_reads_in_multiplies_and_by_the_price_of_a_read(found, activity):
    of = activity.number
    mj = BUFFER_READ_PJ * of(Kind.WRCP) + BUFFER_WRITE_PJ * of(Kind.WRGB, Kind.RDCP)
    assert found.published["global buffer"] == pytest.approx(mj * 1e-9, rel=1e-9)
    ours = BUFFER_WRITE_PJ * of(Kind.WRGB, Kind.RDCP, Kind.WRCP, Kind.MAC16, Kind.MAC)
    assert found.ours["global buffer"] == pytest.approx(ours * 1e-9, rel=1e-9)


def test_what_only_cent_prices_is_a_thousandth_and_has_no_line_of_ours(found):
    only_cent = set(found.published) - set(found.ours)
    assert only_cent == {"link", "buffers", "accelerators", "device control"}
    assert sum(found.published[line] for line in only_cent) < 1e-3 * sum(found.published.values())


def test_typical_currents_lower_every_line_that_is_a_current(found):
    lower = {line for line in found.ours if found.typical[line] < found.ours[line]}
    assert lower == {"rows", "reads and writes", "multiply", "standby"}


def test_the_documented_table_is_what_the_command_prints(found, capsys):
    print_table(found)
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    document = (Path(__file__).parents[2] / "docs" / "energy.md").read_text(encoding="utf-8")
    documented = [row.replace("|", " ").split() for row in document.splitlines() if row.startswith("|")]
    for line in found.ours:
        assert next(row for row in printed if row[: -len(found.columns())] == line.split()) in documented, line
    assert next(row for row in printed if row[0] == "sum") in documented
