"""The rules of raising: which ATen pattern becomes which operator. A table at the end maps the anchor to its rules.

A rule returns False when its pattern is not there; the node then stays open until a larger pattern covers it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import Node

from compiler.graph import OpKind, Value
from compiler.patterns import Capture, arguments_of, call, find, is_cast, target_of
from compiler.raiser import Raiser, all_known, module_path, shape_of
from compiler.raising_attention import raise_attention, raise_cache_write, raise_rotary
from compiler.raising_experts import raise_experts

Rule = Callable[[Raiser, Node], bool]

X = Capture("x")

GATED = call("mul", call("silu", Capture("gate")), Capture("up"))
RMS_NORM = call("rms_norm", X, Capture("shape"), Capture("weight"), Capture("epsilon"))
MEAN_SQUARE = call("add", call("mean", call("pow", X, 2), (-1,), True), Capture("epsilon"))
SPELLED_RMS_NORM = call("mul", Capture("weight"), call("mul", X, call("rsqrt", MEAN_SQUARE)))


def raise_view(raiser: Raiser, node: Node) -> bool:
    """Let a value pass through casts and views that keep its elements in order."""
    source = arguments_of(node)[0]
    if source not in raiser.activations:
        return False
    if not (is_cast(node) or target_of(node) in RESHAPES or _only_moves_unit_axes(node, source)):
        return False
    raiser.activations[node] = raiser.activations[source]
    return True


def raise_embedding(raiser: Raiser, node: Node) -> bool:
    """embedding(table, ids)"""
    table_node, ids_node, *options = arguments_of(node)
    table, ids = raiser.weights.get(table_node), raiser.activations.get(ids_node)
    if table is None or ids is None or options:
        return False
    # Not named after its table, which is the head's matrix when the two are tied.
    return raiser.emit_result(node, OpKind.EMBEDDING, module_path(node), [ids, table], table.type.shape)


def raise_linear(raiser: Raiser, node: Node) -> bool:
    """linear(x, weight) and linear(x, weight, bias)"""
    x, *parameters = (argument for argument in arguments_of(node) if argument is not None)
    weights = all_known(raiser.weights, parameters)
    if x not in raiser.activations or not weights or len(weights[0].type.shape) != 2:
        return False
    out_features, in_features = weights[0].type.shape
    if raiser.activations[x].type.shape[-1] != in_features:
        return False
    attributes = (in_features, (out_features,), len(weights) == 2)
    return raiser.emit_result(node, OpKind.LINEAR, _owner(weights[0]), [raiser.activations[x], *weights], attributes)


def raise_norm(raiser: Raiser, node: Node) -> bool:
    """rms_norm(x), and weight * (x * rsqrt(mean(x^2) + epsilon))"""
    found = find(RMS_NORM, node) or find(SPELLED_RMS_NORM, node)
    if found is None:
        return False
    x, weight = raiser.activations.get(found.captures["x"]), raiser.weights.get(found.captures["weight"])
    epsilon = found.captures["epsilon"]
    if x is None or weight is None or not isinstance(epsilon, float):
        return False
    if shape_of(found.captures["x"])[-1:] != weight.type.shape:
        return False
    width = weight.type.elements
    attributes = ("rms", width, x.type.shape[-1] // width, epsilon)
    return raiser.emit_result(node, OpKind.NORM, _owner(weight), [x, weight], attributes, found)


def raise_gated_activation(raiser: Raiser, node: Node) -> bool:
    """silu(gate) * up"""
    found = find(GATED, node)
    operands = _alike(raiser, node, [found.captures["gate"], found.captures["up"]]) if found else []
    if not operands:
        return False
    name = f"{module_path(node)}.gated_activation"
    return raiser.emit_result(
        node, OpKind.GATED_ACTIVATION, name, operands, (operands[0].type.shape[-1], "silu"), found
    )


def raise_add(raiser: Raiser, node: Node) -> bool:
    """a + b of two activations of the same type"""
    operands = _alike(raiser, node, list(node.args))
    if not operands or node.kwargs:
        return False
    return raiser.emit_result(
        node, OpKind.ADD, f"{module_path(node)}.residual", operands, (operands[0].type.shape[-1],)
    )


def raise_sample(raiser: Raiser, node: Node) -> bool:
    """argmax(logits) over the vocabulary"""
    source, *axis = arguments_of(node)
    logits = raiser.activations.get(source)
    if logits is None or axis not in ([-1], [len(shape_of(node))]) or node.kwargs:
        return False
    # A view that splits rows would choose within parts of the vocabulary.
    if shape_of(source)[-1] != logits.type.shape[-1]:
        return False
    return raiser.emit_result(node, OpKind.SAMPLE, "next_token_ids", [logits], (logits.type.shape[-1],))


def _alike(raiser: Raiser, node: Node, operands: Sequence[Any]) -> list[Value]:
    """Return two activations that have the shape of the result, or nothing: broadcasting would repeat elements."""
    known = all_known(raiser.activations, operands)
    return known if len(known) == 2 and all(shape_of(one) == shape_of(node) for one in operands) else []


def _owner(weight: Value) -> str:
    return weight.name.removesuffix(".weight")


def _only_moves_unit_axes(node: Node, source: Node) -> bool:
    """Tell whether a transposition leaves the axes longer than one in their order."""
    if target_of(node) != "aten.transpose":
        return False
    axes = list(range(len(shape_of(source))))
    _, first, second = arguments_of(node)
    axes[first], axes[second] = axes[second], axes[first]
    long_axes = [axis for axis in axes if shape_of(source)[axis] > 1]
    return long_axes == sorted(long_axes)


RESHAPES = ("aten.view", "aten.reshape", "aten.unsqueeze", "aten.squeeze", "aten.flatten")
VIEWS = ("aten.to", "aten.alias", "aten.contiguous", "aten.clone", "aten.detach", "aten.transpose", *RESHAPES)

RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(VIEWS, (raise_view,)),
    "aten.embedding": (raise_embedding,),
    "aten.linear": (raise_linear,),
    "aten.rms_norm": (raise_norm,),
    "aten.mul": (raise_gated_activation, raise_norm),
    "aten.add": (raise_rotary, raise_add),
    "aten.index_copy_": (raise_cache_write,),
    "aten.scaled_dot_product_attention": (raise_attention,),
    "aten.sum": (raise_experts,),
    "aten.argmax": (raise_sample,),
}
