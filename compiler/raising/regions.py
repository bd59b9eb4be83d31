"""What no rule took, put together: recurrences around states, and computations between operators.

A computation holds calls of one module that follow the same operators, so that no path leaves and enters it again: its
level counts the operators before a call, its turn the changes of module since. A recurrence holds the calls that work
on tensors of its state's size, and what lies between them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch.fx import Node

from compiler.raising.found import Found
from compiler.raising.ordering import in_reading_order
from compiler.raising.program import Program, elements_of, is_tensor, module_path, root_of


@dataclass(frozen=True, slots=True)
class Region:
    """Calls that become one body, in order; a recurrence names the states it takes, each with what it becomes."""

    nodes: tuple[Node, ...]
    states: tuple[tuple[Node, Node], ...] = ()


def regions_of(program: Program, taken: Mapping[Node, Found], needed: set[Node]) -> tuple[Region, ...]:
    """Return the regions of all needed calls that no rule took."""
    left = [node for node in program.nodes if node in needed and node not in taken]
    recurrences = _recurrences(program, left)
    return (*recurrences, *_computations(program, left, taken, recurrences, needed))


def _recurrences(program: Program, left: list[Node]) -> list[Region]:
    """Return one region for each state that is left, or for several that share calls."""
    clusters: list[tuple[set[Node], list[tuple[Node, Node]]]] = []
    allowed = set(left)
    prepared = _of_weights_alone(program, left)
    for before, after in program.states.items():
        if after not in allowed:
            continue  # written by an operator, or left as it is
        nodes = _cluster(before, after, left, allowed, prepared)
        pairs = [(before, after)]
        for other in [one for one in clusters if one[0] & nodes]:
            clusters.remove(other)
            nodes, pairs = nodes | other[0], [*other[1], *pairs]
        clusters.append((nodes, pairs))
    order = {node: place for place, node in enumerate(left)}
    return [
        Region(tuple(sorted(_closed(nodes, left, allowed), key=order.__getitem__)), tuple(pairs))
        for nodes, pairs in clusters
    ]


def _of_weights_alone(program: Program, left: list[Node]) -> set[Node]:
    """Return the calls that depend on nothing but parameters, such as the views of a convolution's."""
    found: set[Node] = set()
    for node in left:
        operands = node.all_input_nodes
        if operands and all(one in found or one in program.weights for one in operands):
            found.add(node)
    return found


def _cluster(before: Node, after: Node, left: list[Node], allowed: set[Node], prepared: set[Node]) -> set[Node]:
    """Return the calls that tensors of the state's size go through, from the state on, and those that only feed them.

    What is read from the state is smaller and belongs to it, but not what is done with it then. What is made of
    parameters alone (`prepared`) belongs to the only one that reads it.
    """
    size = elements_of(before)
    nodes = _reachable(before, size, allowed) | {after}
    for node in reversed(left):
        feeds = [user for user in node.users if user in allowed]
        is_inner = bool(feeds) and len(feeds) == len(node.users) and all(user in nodes for user in feeds)
        if is_inner and (_size(node) >= size or node in prepared):
            nodes.add(node)
    return nodes


def _closed(nodes: set[Node], left: list[Node], allowed: set[Node]) -> set[Node]:
    """Add the calls on paths between the nodes, and calls that take one of several results apart."""
    after = _reachable_from(nodes, left)
    before = set(nodes)
    for node in reversed(left):
        if any(user in before for user in node.users if user in allowed):
            before.add(node)
    closed = nodes | (after & before)
    return closed | {user for node in closed if not is_tensor(node) for user in node.users if user in allowed}


def _reachable(start: Node, size: int, allowed: set[Node]) -> set[Node]:
    found: set[Node] = set()
    waiting = [start]
    while waiting:
        fresh = [user for user in waiting.pop().users if user in allowed and user not in found]
        found.update(fresh)
        waiting.extend(user for user in fresh if not is_tensor(user) or _size(user) >= size)
    return found


def _reachable_from(nodes: set[Node], left: list[Node]) -> set[Node]:
    found = set(nodes)
    for node in left:
        if any(operand in found for operand in node.all_input_nodes):
            found.add(node)
    return found


def _size(node: Node) -> int:
    return elements_of(node) if is_tensor(node) else 0


def _computations(
    program: Program, left: list[Node], taken: Mapping[Node, Found], recurrences: Iterable[Region], needed: set[Node]
) -> list[Region]:
    region_of = {node: region for region in recurrences for node in region.nodes}
    levels: dict[Node, int] = {}
    places: dict[Node, tuple[int, int, str]] = {}
    order: dict[tuple[int, int, str], list[Node]] = {}
    for nodes, reads in _in_order(program, taken, region_of, needed):
        is_operator = nodes[0] in taken or nodes[0] in region_of
        # An operator counts for what follows it.
        level = max((levels.get(one, 0) for one in reads), default=0)
        levels.update(dict.fromkeys(nodes, level + is_operator))
        if not is_operator:
            (node,) = nodes
            place = (level, *_turn(node, level, places))
            places[node] = place
            order.setdefault(place, []).append(node)
    return [Region(tuple(nodes)) for nodes in order.values()]


Unit = tuple[tuple[Node, ...], list[Node]]


def _in_order(
    program: Program, taken: Mapping[Node, Found], region_of: Mapping[Node, Region], needed: set[Node]
) -> list[Unit]:
    """Return the operators, recurrences and single calls with what each reads, so that each follows what it reads."""
    units: dict[Node, Unit] = {}
    for node in program.nodes:
        if node in units or node not in needed:
            continue
        nodes, reads = _unit(node, taken, region_of)
        units.update((one, (nodes, reads)) for one in nodes)
    return [units[node] for node in sort_by_reading({node: reads for node, (_, reads) in units.items()}, units)]


def _unit(node: Node, taken: Mapping[Node, Found], region_of: Mapping[Node, Region]) -> Unit:
    if node in taken:
        return taken[node].results, [root_of(one) for one in taken[node].operands]
    nodes = region_of[node].nodes if node in region_of else (node,)
    inside = set(nodes)
    return nodes, [one for each in nodes for one in each.all_input_nodes if one not in inside]


def sort_by_reading(reads: Mapping[Node, list[Node]], units: Mapping[Node, Unit]) -> list[Node]:
    """Return one node of each unit, so that a unit follows those it reads, otherwise in the order given."""
    first = {node: unit[0][0] for node, unit in units.items()}
    waits = {
        node: {first[one] for one in found if one in first} for node, found in reads.items() if first[node] is node
    }
    nodes = list(waits)
    number = {node: place for place, node in enumerate(nodes)}
    ordered = in_reading_order([{number[one] for one in waits[node]} for node in nodes], range(len(nodes)))
    if len(ordered) < len(nodes):
        stuck = nodes[min(set(range(len(nodes))) - set(ordered))]
        raise AssertionError(f"a recurrence is not closed under paths: {stuck.name} waits for itself or for a ring")
    return [nodes[place] for place in ordered]


def _turn(node: Node, level: int, places: Mapping[Node, tuple[int, int, str]]) -> tuple[int, str]:
    """Return how often the module changed within this level before a node, and the node's own module."""
    module = module_path(node)
    same = [places[one] for one in node.all_input_nodes if one in places and places[one][0] == level]
    return max((turn + (path != module) for _, turn, path in same), default=0), module
