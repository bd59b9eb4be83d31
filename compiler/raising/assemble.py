"""Puts a raised program in order: operators, recurrences and computations as one graph, values named and typed."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from compiler.bodies import print_body
from compiler.graph import Attribute, Graph, Op, OpKind, TensorType, Value, make_attributes
from compiler.raising.cleaning import clean
from compiler.raising.found import Found, flat_type
from compiler.raising.ordering import in_reading_order
from compiler.raising.patterns import target_of
from compiler.raising.program import Program, is_tensor, module_path, program_of, root_of, source_line
from compiler.raising.regions import Region, regions_of
from compiler.raising.roles import HISTORY, role_of
from compiler.raising.rules import RULES
from compiler.raising.writing import write_body
from compiler.signatures import SIGNATURES


@dataclass(frozen=True, slots=True)
class Raised:
    """A graph, the source line that the first call of every body was traced from, and constants whose values are known.

    Constants are known where the code of the model writes them down; buffers have values once a model has weights.
    """

    graph: Graph
    sources: dict[str, str]
    constants: dict[str, Tensor]


def raise_program(exported: ExportedProgram, name: str, prefix: str = "") -> Raised:
    """Return the graph of a functional exported decode step; raises UserError on what no graph can hold.

    The step's inputs must be the token ids [B], the position [1], then caches and states. Names of modules lose the
    prefix of the module that wraps the model.
    """
    clean(exported)
    program = program_of(exported, prefix)
    taken = _apply_rules(program)
    needed = _needed(program, taken)
    founds = list(dict.fromkeys(found for node, found in taken.items() if node in needed))
    assembly = _Assembly(program, name)
    known = {
        str(target).removeprefix(prefix): value
        for target, value in exported.constants.items()
        if isinstance(value, Tensor) and value.device.type != "meta"
    }
    items = _in_order(program, founds, regions_of(program, taken, needed))
    assembly.note_readers(items)
    for item in items:
        if isinstance(item, Found):
            assembly.add_found(item)
        else:
            assembly.add_region(item)
    return Raised(assembly.finish(), assembly.sources, known)


def _apply_rules(program: Program) -> dict[Node, Found]:
    """Return for every node that an operator defines that operator."""
    taken: dict[Node, Found] = {}
    for node in program.nodes:
        for rule in RULES.get(target_of(node), ()):
            found = rule(program, node)
            if found:
                taken.update((result, one) for one in found for result in one.results if result not in taken)
                break
    return {node: found for node, found in taken.items() if not _is_inner_sum(found, taken)}


def _is_inner_sum(found: Found, taken: dict[Node, Found]) -> bool:
    """Tell whether an addition is of two values that no operator defines: a part of a computation, as in a rotation."""
    return found.kind is OpKind.ADD and not any(root_of(node) in taken for node in found.operands)


def _needed(program: Program, taken: dict[Node, Found]) -> set[Node]:
    """Return the nodes that the step's outputs depend on, the insides of patterns left out."""
    needed = {root_of(node) for node in program.returned} | set(program.states.values())
    for node in reversed(program.nodes):
        if node in needed:
            found = taken.get(node)
            needed.update(node.all_input_nodes if found is None else map(root_of, found.operands))
    return needed


def _in_order(program: Program, founds: Sequence[Found], regions: Sequence[Region]) -> list[Found | Region]:
    """Return operators and regions so that each follows what it reads, otherwise in the order of the program."""
    items: list[Found | Region] = [*founds, *regions]
    place = {node: index for index, node in enumerate(program.nodes)}
    maker = {node: index for index, item in enumerate(items) for node in _defined(item)}
    waits = [{maker[node] for node in _read(item) if node in maker} - {index} for index, item in enumerate(items)]
    first = [min(place[node] for node in _defined(item) if node in place) for item in items]
    ordered = [items[index] for index in in_reading_order(waits, first)]
    if len(ordered) < len(items):
        raise AssertionError("regions that wait for each other: a region is not closed under paths")
    return ordered


def _defined(item: Found | Region) -> Sequence[Node]:
    return item.results if isinstance(item, Found) else item.nodes


def _read(item: Found | Region) -> list[Node]:
    if isinstance(item, Found):
        return [root_of(node) for node in item.operands]
    return [operand for node in item.nodes for operand in node.all_input_nodes]


class _Assembly:
    """The graph under construction."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        self.ops: list[Op] = []
        self.sources: dict[str, str] = {}
        self.names: set[str] = set()
        self.values: dict[Node, Value] = {}
        self.read: set[Node] = set()
        placeholders = {**program.inputs, **program.weights, **program.constants}
        for node, value in placeholders.items():
            self.values[node] = Value(self._fresh(value.name), value.type)

    def note_readers(self, items: Sequence[Found | Region]) -> None:
        """Note which nodes are read by other operators than the one that defines them, or returned."""
        self.read = {root_of(node) for node in self.program.returned} | set(self.program.states.values())
        for item in items:
            inside = set(_defined(item))
            self.read.update(node for node in _read(item) if node not in inside)

    def _fresh(self, wish: str) -> str:
        """Return `wish` as the grammar allows it, numbered if it is taken."""
        wish = "".join(one if one.isalnum() or one in "_.-" else "_" for one in wish).lstrip(".") or "value"
        name, number = wish, 2
        while name in self.names:
            name, number = f"{wish}_{number}", number + 1
        self.names.add(name)
        return name

    def _type_of(self, node: Node) -> TensorType:
        return self.values[node].type if node in self.values else flat_type(self.program, node)

    def add_found(self, found: Found) -> None:
        """Append the operator that a rule found."""
        attributes = make_attributes(found.kind, *found.attributes)
        operands = [self.values[root_of(node)] for node in found.operands]
        draft = Op(found.kind, (), (), attributes)
        slots, results = SIGNATURES[found.kind](draft, _batch(found, operands, self.program))
        shaped = [
            value if value.type.shape == slot.shape else self._viewed(value, slot.shape)
            for value, slot in zip(operands, slots, strict=True)
        ]
        names = _result_names(found)
        defined = []
        for node, name, slot in zip(found.results, names, results, strict=True):
            self.values[node] = Value(self._fresh(name), TensorType(flat_type(self.program, node).dtype, slot.shape))
            defined.append(self.values[node])
        self.ops.append(Op(found.kind, tuple(value.name for value in shaped), tuple(defined), attributes))

    def _viewed(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Append a computation that gives a value another shape."""
        body = f"t0 = aten.reshape.default($0, [{', '.join(map(str, shape))}]); return t0"
        result = Value(self._fresh(f"{value.name}.view"), TensorType(value.type.dtype, shape))
        self.ops.append(Op(OpKind.COMPUTE, (value.name,), (result,), make_attributes(OpKind.COMPUTE, "view", body)))
        return result

    def add_region(self, region: Region) -> None:
        """Append a recurrence or a computation."""
        inside = set(region.nodes)
        before = [state for state, _ in region.states]
        after = [result for _, result in region.states]
        outside = [one for node in region.nodes for one in node.all_input_nodes if one not in inside]
        operands = list(dict.fromkeys((*before, *outside)))
        read = [node for node in region.nodes if is_tensor(node) and node in self.read]
        results = list(dict.fromkeys((*after, *read)))
        body = write_body(region.nodes, operands, results, self._body_type)
        remembers = any(target_of(node) == "pim.remember" for node in region.nodes)
        role = HISTORY if remembers else role_of(body, recurrence=bool(region.states))
        wishes = self._region_names(region, results, role)
        for node, wish in zip(results, wishes, strict=True):
            self.values[node] = Value(self._fresh(wish), self._body_type(node))
        attributes: tuple[Attribute, ...] = (role, print_body(body))
        kind = OpKind.COMPUTE
        if region.states:
            kind, attributes = OpKind.RECURRENCE, (role, len(region.states), print_body(body))
        op = Op(
            kind,
            tuple(self.values[node].name for node in operands),
            tuple(self.values[node] for node in results),
            make_attributes(kind, *attributes),
        )
        self.ops.append(op)
        self.sources[op.name] = source_line(region.nodes[0])

    def _body_type(self, node: Node) -> TensorType:
        """Return the type that a region's result or operand has: states keep their shape."""
        if node in self.values:
            return self.values[node].type
        states = {after: before for before, after in self.program.states.items()}
        return self.values[states[node]].type if node in states else flat_type(self.program, node)

    def _region_names(self, region: Region, results: Sequence[Node], role: str) -> list[str]:
        states = {after: before for before, after in region.states}
        path = module_path(region.nodes[-1])
        return [
            f"{self.values[states[node]].name}.after" if node in states else f"{path}.{role}" if path else role
            for node in results
        ]

    def finish(self) -> Graph:
        """Return the graph, with the returned values and then the states after the step as its outputs."""
        program = self.program
        returned = [self.values[root_of(node)].name for node in program.returned]
        after = [self.values[node].name if node in self.values else "" for node in program.states.values()]
        placed = self.values
        return Graph(
            name=self.name,
            inputs=tuple(placed[node] for node in program.inputs),
            weights=tuple(placed[node] for node in program.weights),
            ops=tuple(self.ops),
            outputs=(*returned, *(name for name in after if name)),
            constants=tuple(placed[node] for node in program.constants),
        )


def _batch(found: Found, operands: Sequence[Value], program: Program) -> int:
    """Return the leading size of an operator: more than the batch where a linear runs on several rows per token."""
    if found.kind is OpKind.LINEAR:
        in_features = found.attributes[0]
        assert isinstance(in_features, int)
        return operands[0].type.elements // in_features
    if found.kind is OpKind.EMBEDDING:
        return operands[0].type.elements
    return program.batch


def _result_names(found: Found) -> list[str]:
    path = found.name.rpartition(".")[0]
    if found.kind is OpKind.KV_APPEND:
        return [f"{path}.key_cache", f"{path}.value_cache"]
    if found.kind is OpKind.ATTENTION and len(found.results) > 1:
        return [found.name, f"{path}.logsum"]
    if found.kind is OpKind.ROUTE:
        return [found.name, f"{path}.expert_weights"]
    return [found.name]
