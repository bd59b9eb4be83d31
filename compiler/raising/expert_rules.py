"""Rules of raising for mixtures of experts: the routing and the experts it selects, recognised as one pattern."""

from torch.fx import Node

from compiler.graph import OpKind
from compiler.raising.found import NOTHING, Found, is_activation, owner, weight_of
from compiler.raising.patterns import Call, Capture, Match, Pattern, arguments_of, call, find
from compiler.raising.program import Program, elements_of, module_path, root_of, shape_of

X, IDS = Capture("x"), Capture("ids")

TOP_K = call("topk", call("softmax", Capture("logits"), -1), Capture("top_k"))
TOP_WEIGHTS, TOP_IDS = Call("getitem", (TOP_K, 0)), Call("getitem", (TOP_K, 1))


def _routed(name: str, column: Pattern) -> Pattern:
    """The product of each routed expert's matrix with a column, reading only the matrices that `ids` selects."""
    return call("matmul", call("index", Capture(name), (IDS,)), column)


COLUMN = call("unsqueeze", call("unsqueeze", X, 1), -1)
EXPERT_ACTIVATION = call("mul", call("silu", _routed("gate", COLUMN)), _routed("up", COLUMN))
EXPERT_OUTPUTS = call("squeeze", _routed("down", EXPERT_ACTIVATION), -1)
EXPERTS = call("sum", call("mul", EXPERT_OUTPUTS, call("unsqueeze", Capture("weights"), -1)), (1,))


def find_experts(program: Program, node: Node) -> tuple[Found, ...]:
    """sum over the routed experts of weight * down(silu(gate x) * up x), together with the routing before it"""
    found = find(EXPERTS, node)
    if found is None:
        return NOTHING
    matrices = [weight_of(program, found.captures[role]) for role in ("gate", "up", "down")]
    x = found.captures["x"]
    # The axes in the pattern mean what they should only for rows that are laid out as [B, hidden].
    if None in matrices or not is_activation(program, x) or len(shape_of(x)) != 2:
        return NOTHING
    route = _route(program, node, found)
    if route is None:
        return NOTHING
    gate = matrices[0]
    assert gate is not None
    experts, intermediate, hidden = shape_of(gate)
    operands = (x, *route.results, *(one for one in matrices if one is not None))
    attributes = (experts, shape_of(route.results[0])[1], hidden, intermediate, "silu")
    return (route, Found(OpKind.EXPERTS, operands, (node,), attributes, f"{module_path(node)}.experts"))


def _route(program: Program, node: Node, experts: Match) -> Found | None:
    """Return the routing that the experts' ids and weights come from; None when it is not softmax and top-k."""
    weights, ids = experts.captures["weights"], experts.captures["ids"]
    normalised = call("div", TOP_WEIGHTS, call("sum", TOP_WEIGHTS, (-1,), True))
    plain = find(TOP_WEIGHTS, weights)
    found, chosen = plain or find(normalised, weights), find(TOP_IDS, ids)
    if found is None or chosen is None or found.captures != chosen.captures:
        return None
    logits = found.captures["logits"]
    if not is_activation(program, logits) or len(shape_of(logits)) != 2:
        return None
    attributes = (shape_of(logits)[-1], found.captures["top_k"], plain is None)
    return Found(OpKind.ROUTE, (logits,), (ids, weights), attributes, f"{module_path(node)}.expert_ids")


def find_routed_linear(program: Program, node: Node) -> tuple[Found, ...]:
    """pim.routed_linear(x, ids, weight, bias, transposed)"""
    x, ids, weight_node, bias_node, transposed = arguments_of(node)
    weight = weight_of(program, weight_node) or _flat_stack(program, weight_node)
    bias = None if bias_node is None else weight_of(program, bias_node)
    if weight is None or (bias is None) != (bias_node is None):
        return NOTHING
    experts, *matrix = shape_of(weight_node)
    inputs, outputs = matrix if transposed else reversed(matrix)
    top_k = shape_of(ids)[1]
    shared = elements_of(x) == program.batch * inputs and top_k > 1
    flat = len(shape_of(weight)) == 2
    attributes = (experts, top_k, inputs, outputs, shared, bias is not None, transposed, flat)
    operands = (x, ids, weight) if bias is None else (x, ids, weight, bias)
    return (Found(OpKind.ROUTED_LINEAR, operands, (node,), attributes, owner(program, weight)),)


def _flat_stack(program: Program, node: Node) -> Node | None:
    """Return the parameter [experts * rows, columns] that a stack of matrices [experts, rows, columns] is a view of."""
    root, (experts, rows, columns) = root_of(node), shape_of(node)
    return root if root in program.weights and shape_of(root) == (experts * rows, columns) else None
