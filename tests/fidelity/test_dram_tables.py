"""Do the tables of plain DRAM equal those of the public simulator, row by row, in both directions?

Rows of its command bus (a command of several ticks holds it) need none here: the bus itself does that.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from configs.device import load_device
from simulator.addressing import LEVELS
from simulator.dram_replay import without_refresh
from simulator.dram_stream import STANDARD_NAMES
from simulator.isa import CODE_OF, KINDS, Kind
from simulator.timing_table import Rule, TimingTable, resolved_rules, timing_table

DATA = Path(__file__).parent / "data" / "dram"
STANDARDS = ("DDR5", "GDDR6", "HBM2", "HBM3", "LPDDR5")
LEVEL_NAMES = {"Channel": "channel", "PseudoChannel": "pseudochannel", "Sid": "rank", "Rank": "rank"} | {
    "BankGroup": "bankgroup",
    "Bank": "bank",
}

Key = tuple[str, str, str, int, bool]


def _published(standard: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATA / f"timing_{standard}.json").read_text(encoding="utf-8"))
    return content


def _kind(name: str) -> Kind:
    return STANDARD_NAMES.get(name) or Kind(name)


def _expected(published: dict[str, Any], table: TimingTable) -> dict[Key, int]:
    """Return the strictest published distance per pair, without those that only say how long the bus is held."""
    found: dict[Key, int] = {}
    for row in published["constraints_ticks"]:
        for preceding in map(_kind, row["prec"]):
            for following in map(_kind, row["foll"]):
                key = (LEVEL_NAMES[row["level"]], preceding, following, row["window"], row["sibling"])
                found[key] = max(found.get(key, row["lat"]), row["lat"])
    return {key: cycles for key, cycles in found.items() if not _only_holds_the_bus(key, cycles, table)}


def _only_holds_the_bus(key: Key, cycles: int, table: TimingTable) -> bool:
    level, preceding, following = key[0], CODE_OF[Kind(key[1])], CODE_OF[Kind(key[2])]
    same_bus = table.bus[preceding] == table.bus[following]
    return level == "channel" and same_bus and cycles == table.ticks[preceding] > 1


def _key(rule: Rule) -> Key:
    return LEVELS[rule.level], KINDS[rule.preceding], KINDS[rule.following], rule.window, rule.sibling


@pytest.mark.parametrize("standard", STANDARDS)
def test_every_resolved_rule_equals_the_published_one(standard: str) -> None:
    device = without_refresh(load_device(standard.lower()))
    found = {_key(rule): rule.cycles for rule in resolved_rules(device)}
    assert found == _expected(_published(standard), timing_table(device))
    assert len(found) > 50


@pytest.mark.parametrize("standard", STANDARDS)
def test_commands_buses_and_organisation_equal_the_published_ones(standard: str) -> None:
    published, device = _published(standard), load_device(standard.lower())
    table, organisation = timing_table(device), published["org"]
    kinds = map(_kind, published["commands"])
    ticks = dict(zip(kinds, published["command_cycles_ticks"], strict=True))
    assert {kind: table.ticks[CODE_OF[kind]] for kind in KINDS if table.has(kind)} == ticks
    assert device.ticks_per_clock == published["tick_multiplier"]
    assert device.clock_ps == published["timing_nCK"]["tCK_ps"]
    for number, bus in enumerate(("row_commands", "column_commands")):
        assert {table.bus[CODE_OF[_kind(name)]] for name in published[bus]} <= {number}
    ours = device.organisation
    assert ours.pseudo_channels == organisation.get("pseudochannel", 1)
    assert ours.ranks == organisation.get("rank", organisation.get("sid", 1))
    assert (ours.bank_groups, ours.banks_per_group) == (organisation["bankgroup"], organisation["bank"])
    assert ours.rows == organisation["row"]


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_refreshing_controller_only_adds_distances_of_refreshes(standard: str) -> None:
    device = load_device(standard.lower())
    own = {_key(rule): rule.cycles for rule in resolved_rules(without_refresh(device))}
    for rule in resolved_rules(device):
        if own.get(_key(rule)) != rule.cycles:
            assert str(KINDS[rule.following]).startswith(("REF", "RFM"))
            assert rule.cycles > own.get(_key(rule), 0)
