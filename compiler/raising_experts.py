"""Rules of raising for mixtures of experts: the routing and the experts it selects, recognised as one pattern."""

from torch.fx import Node

from compiler.graph import OpKind, TensorType, Value
from compiler.patterns import Call, Capture, Match, Pattern, call, find
from compiler.raiser import Raiser, all_known, dtype_of, module_path, shape_of

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


def raise_experts(raiser: Raiser, node: Node) -> bool:
    """sum over the routed experts of weight * down(silu(gate x) * up x), together with the routing before it"""
    found = find(EXPERTS, node)
    if found is None:
        return False
    matrices = all_known(raiser.weights, [found.captures[role] for role in ("gate", "up", "down")])
    x = raiser.activations.get(found.captures["x"])
    # The axes in the pattern mean what they should only for rows that are laid out as [B, hidden].
    if not matrices or x is None or shape_of(found.captures["x"]) != x.type.shape:
        return False
    routes = _route(raiser, node, found)
    if routes is None:
        return False
    experts, intermediate, hidden = matrices[0].type.shape
    operands = [x, *routes, *matrices]
    attributes = (experts, routes[0].type.shape[1], hidden, intermediate, "silu")
    return raiser.emit_result(node, OpKind.EXPERTS, f"{module_path(node)}.experts", operands, attributes, found)


def _route(raiser: Raiser, node: Node, experts: Match) -> tuple[Value, Value] | None:
    """Emit the routing that the experts' ids and weights come from; None when it is not softmax and top-k."""
    weights, ids = experts.captures["weights"], experts.captures["ids"]
    normalised = call("div", TOP_WEIGHTS, call("sum", TOP_WEIGHTS, (-1,), True))
    plain = find(TOP_WEIGHTS, weights)
    found, chosen = plain or find(normalised, weights), find(TOP_IDS, ids)
    if found is None or chosen is None or found.captures != chosen.captures:
        return None
    logits = raiser.activations.get(found.captures["logits"])
    if logits is None or shape_of(found.captures["logits"]) != logits.type.shape:
        return None
    shape, path = (raiser.batch, found.captures["top_k"]), module_path(node)
    results = (
        Value(raiser.fresh_name(f"{path}.expert_ids"), TensorType(dtype_of(ids), shape)),
        Value(raiser.fresh_name(f"{path}.expert_weights"), TensorType(dtype_of(weights), shape)),
    )
    raiser.emit(OpKind.ROUTE, [logits], results, (logits.type.shape[-1], shape[1], plain is None))
    raiser.covered.update((*found.covered, *chosen.covered))
    return results
