"""A device's constraint rows resolved into rules, one per pair of commands: what both engines obey.

A rule holds `following` back until `cycles` after the `window`-th last `preceding` at one level. A command looks at,
and leaves its mark on, the levels from the channel down to its own scope, so that a table states what an all-bank
command does to single banks at the channel level.

A command that takes several ticks is stamped at its first one, while the file counts from last tick to last tick:

    ticks between stamps = cycles * ticks per clock + (ticks of preceding - 1) - (ticks of following - 1)
"""

from dataclasses import dataclass
from itertools import product

from configs.constraint import Constraint
from configs.device import MOST_BUSES, Device
from configs.errors import UserError
from configs.expression import evaluate
from simulator.addressing import LEVELS, Addressing, addressing
from simulator.isa import CODE_OF, FROM_OPEN_ROWS, FROM_SECOND_BUFFERS, KINDS, Kind, Scope


@dataclass(frozen=True, slots=True)
class Rule:
    """One resolved pair; `level` indexes LEVELS, kinds are command codes, `source` is the row of the device's table."""

    level: int
    preceding: int
    following: int
    cycles: int
    window: int
    sibling: bool
    source: int


@dataclass(frozen=True, slots=True)
class TimingTable:
    """The rules that decide on a device, and per command code: its class, its bus, and the ticks it holds the bus.

    Kinds that no rule tells apart as the following command share a *class*; -1 stands for a kind the device does not
    have. `causes` names every row of the table that holds, then the event a command may wait for.
    """

    rules: tuple[Rule, ...]
    addressing: Addressing
    class_of: tuple[int, ...]
    bus: tuple[int, ...]
    ticks: tuple[int, ...]
    causes: tuple[str, ...]

    @property
    def classes(self) -> int:
        """How many classes of following commands there are."""
        return max(self.class_of) + 1

    @property
    def event(self) -> int:
        """The cause of waiting for an event."""
        return len(self.causes) - 1

    def has(self, kind: Kind) -> bool:
        """Return whether the device has commands of a kind."""
        return self.class_of[CODE_OF[kind]] >= 0


BUSES = MOST_BUSES


def timing_table(device: Device) -> TimingTable:
    """Resolve the rows of a device; raises ValueError for unknown commands, UserError for a row that can never act."""
    for name in (*device.command_ticks, *device.scopes):
        _code(name)
    tree = addressing(device)
    _require_reach(device, tree)
    rules = needed_rules(resolved_rules(device))
    named = {code for rule in rules for code in (rule.preceding, rule.following)}
    named |= {_code(name) for names in device.command_buses.values() for name in names.split()}
    named -= _absent(device)
    return TimingTable(
        rules=rules,
        addressing=tree,
        class_of=_classes(rules, named),
        bus=_buses(device),
        ticks=_ticks(device),
        causes=(*map(_cause, device.active_constraints), "event"),
    )


def _require_reach(device: Device, tree: Addressing) -> None:
    """Raise UserError for a row at a level that one of its commands does not reach: it could never act."""
    for row in device.active_constraints:
        level = LEVELS.index(Scope(row.level))
        for name in (*row.preceding, *row.following):
            deepest = tree.reach[_code(name)] - 1
            if deepest < level:
                raise UserError(
                    where=f"device {device.name}, constraints, row {row.row()}",
                    expected="a level that all its commands reach",
                    found=f"{name}, which addresses a whole {LEVELS[deepest]}",
                    way_out=f"state it at level {LEVELS[deepest]}, or the command's reach in scopes",
                )


def resolved_rules(device: Device) -> tuple[Rule, ...]:
    """Return one rule per pair, level, window and kind of instance: the strictest, and the first of equal ones."""
    ticks, absent = _ticks(device), _absent(device)
    strictest: dict[tuple[int, int, int, int, bool], Rule] = {}
    for source, row in enumerate(device.active_constraints):
        level = LEVELS.index(Scope(row.level))
        cycles = evaluate(row.cycles, device.timing) * device.ticks_per_clock
        for preceding, following in product(map(_code, row.preceding), map(_code, row.following)):
            if not absent & {preceding, following}:
                gap = cycles + ticks[preceding] - ticks[following]
                key = (level, preceding, following, row.window, row.sibling)
                if key not in strictest or strictest[key].cycles < gap:
                    strictest[key] = Rule(level, preceding, following, gap, row.window, row.sibling, source)
    return tuple(strictest.values())


def _absent(device: Device) -> set[int]:
    """Return the commands that rows may speak of and the device lacks: units have one place to multiply from."""
    kinds = FROM_SECOND_BUFFERS if device.organisation.row_buffers == 1 else FROM_OPEN_ROWS
    return {CODE_OF[kind] for kind in kinds}


def needed_rules(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Drop each rule that another one at a level above it makes idle: what holds at the channel holds at its banks."""
    plain = {(rule.level, rule.preceding, rule.following): rule for rule in rules if _is_plain(rule)}

    def is_idle(rule: Rule) -> bool:
        above = (plain.get((level, rule.preceding, rule.following)) for level in range(rule.level))
        return _is_plain(rule) and any(
            other is not None and (other.cycles, -other.source) >= (rule.cycles, -rule.source) for other in above
        )

    return tuple(rule for rule in rules if not is_idle(rule))


def _is_plain(rule: Rule) -> bool:
    return rule.window == 1 and not rule.sibling


def _ticks(device: Device) -> tuple[int, ...]:
    return tuple(device.command_ticks.get(kind.value, 1) for kind in KINDS)


def _classes(rules: tuple[Rule, ...], named: set[int]) -> tuple[int, ...]:
    asked: dict[int, list[tuple[int, ...]]] = {code: [] for code in sorted(named)}
    for rule in rules:
        asked[rule.following].append(
            (rule.level, rule.preceding, rule.cycles, rule.window, rule.sibling, rule.source),
        )
    numbers: dict[tuple[tuple[int, ...], ...], int] = {}
    class_of = [-1] * len(KINDS)
    for code, rows in asked.items():
        class_of[code] = numbers.setdefault(tuple(sorted(rows)), len(numbers))
    return tuple(class_of)


def _buses(device: Device) -> tuple[int, ...]:
    """Return the bus of each command; one the file does not name is on the first."""
    bus = [0] * len(KINDS)
    for number, names in enumerate(device.command_buses.values()):
        for name in names.split():
            bus[_code(name)] = number
    return tuple(bus)


def _cause(row: Constraint) -> str:
    """Return how a row is named where it is the reason for waiting: its cycles first, then the pair."""
    window = f", window {row.window}" if row.window > 1 else ", sibling" if row.sibling else ""
    return f"{row.cycles} ({row.level}{window}): {' '.join(row.preceding)} to {' '.join(row.following)}"


def _code(name: str) -> int:
    if name not in Kind.__members__:
        raise ValueError(f"timing table names {name}, which is no command")
    return CODE_OF[Kind(name)]
