"""The rules of raising: which ATen pattern or mark becomes which operator. A table at the end maps anchors to rules.

A rule looks at the last node of a pattern and returns what it found, or nothing; the nodes inside of a pattern are
dropped later unless something else reads them.
"""

from typing import Any

from torch.fx import Node

from compiler.graph import OpKind
from compiler.raising.attention_rules import (
    find_attention,
    find_head_linear,
    find_latent_attention,
    find_rotary,
    find_scaled_dot_product,
)
from compiler.raising.expert_rules import find_experts, find_routed_linear
from compiler.raising.explicit_attention import find_explicit_attention
from compiler.raising.found import NOTHING, Found, Rule, is_activation, owner, weight_of
from compiler.raising.partial_rules import find_partial_attention, find_selected_entries
from compiler.raising.patterns import Capture, arguments_of, call, find, target_of
from compiler.raising.program import Program, elements_of, module_path, shape_of
from compiler.raising.selection_rules import find_selected_blocks, find_selected_tokens

X = Capture("x")
GATED = call("mul", call("silu", Capture("gate")), Capture("up"))
RMS_NORM = call("rms_norm", X, Capture("shape"), Capture("weight"), Capture("epsilon"))
MEAN_SQUARE = call("add", call("mean", call("pow", X, 2), (-1,), True), Capture("epsilon"))
SPELLED_RMS_NORM = call("mul", Capture("weight"), call("mul", X, call("rsqrt", MEAN_SQUARE)))


def find_embedding(program: Program, node: Node) -> tuple[Found, ...]:
    """embedding(table, ids)"""
    table, ids, *_ = arguments_of(node)
    weight = weight_of(program, table)
    if weight is None or not is_activation(program, ids):
        return NOTHING
    # Not named after its table, which is the head's matrix when the two are tied.
    return (Found(OpKind.EMBEDDING, (ids, weight), (node,), shape_of(weight), module_path(node) or "embedding"),)


def find_linear(program: Program, node: Node) -> tuple[Found, ...]:
    """linear(x, weight) and linear(x, weight, bias)"""
    x, weight_node, *biases = arguments_of(node)
    weight = weight_of(program, weight_node)
    bias = weight_of(program, biases[0]) if biases and biases[0] is not None else None
    if weight is None or not is_activation(program, x) or (bias is None) != (not biases or biases[0] is None):
        return NOTHING
    return _linear(program, node, x, weight, bias, transposed=False)


def find_addmm(program: Program, node: Node) -> tuple[Found, ...]:
    """addmm(bias, x, weight), the weight being [in_features, out_features]"""
    bias_node, x, weight_node = arguments_of(node)[:3]
    weight, bias = weight_of(program, weight_node), weight_of(program, bias_node)
    if weight is None or bias is None or node.kwargs or not is_activation(program, x):
        return NOTHING
    return _linear(program, node, x, weight, bias, transposed=True)


def find_matrix_product(program: Program, node: Node) -> tuple[Found, ...]:
    """mm(x, weight) and matmul(x, weight), the weight being [in_features, out_features] or its transposition"""
    x, other = arguments_of(node)[:2]
    if not isinstance(other, Node) or not is_activation(program, x):
        return _product_with_column(program, node)
    turned = target_of(other) in ("aten.t", "aten.transpose", "aten.permute")
    weight = weight_of(program, other.args[0] if turned else other)
    if weight is None or len(shape_of(weight)) != 2:
        return NOTHING
    return _linear(program, node, x, weight, None, transposed=not turned)


def _product_with_column(program: Program, node: Node) -> tuple[Found, ...]:
    """matmul(weight, x), x being [..., in_features, 1]: a column for every sequence"""
    weight, x = weight_of(program, node.args[0]), node.args[1]
    if weight is None or not isinstance(x, Node) or not is_activation(program, x) or len(shape_of(weight)) != 2:
        return NOTHING
    out_features, in_features = shape_of(weight)
    if shape_of(x)[-2:] != (in_features, 1):
        return NOTHING
    attributes = (in_features, (out_features,), False, False)
    return (Found(OpKind.LINEAR, (x, weight), (node,), attributes, owner(program, weight)),)


def _linear(
    program: Program, node: Node, x: Node, weight: Node, bias: Node | None, *, transposed: bool
) -> tuple[Found, ...]:
    out_features, in_features = reversed(shape_of(weight)) if transposed else shape_of(weight)
    if shape_of(x)[-1] != in_features:
        return NOTHING
    operands = (x, weight) if bias is None else (x, weight, bias)
    attributes = (in_features, (out_features,), bias is not None, transposed)
    return (Found(OpKind.LINEAR, operands, (node,), attributes, owner(program, weight)),)


def find_norm(program: Program, node: Node) -> tuple[Found, ...]:
    """rms_norm(x), and weight * (x * rsqrt(mean(x^2) + epsilon))"""
    found = find(RMS_NORM, node) or find(SPELLED_RMS_NORM, node)
    if found is None:
        return NOTHING
    x, weight = found.captures["x"], weight_of(program, found.captures["weight"])
    epsilon = found.captures["epsilon"]
    if weight is None or not is_activation(program, x) or not isinstance(epsilon, float):
        return NOTHING
    if shape_of(x)[-1:] != shape_of(weight):
        return NOTHING
    width = elements_of(weight)
    attributes = ("rms", width, elements_of(x) // program.batch // width, epsilon)
    return (Found(OpKind.NORM, (x, weight), (node,), attributes, owner(program, weight)),)


def find_gated_activation(program: Program, node: Node) -> tuple[Found, ...]:
    """silu(gate) * up"""
    found = find(GATED, node)
    if found is None or not _alike(program, node, (found.captures["gate"], found.captures["up"])):
        return NOTHING
    name = f"{module_path(node)}.gated_activation"
    operands = (found.captures["gate"], found.captures["up"])
    attributes = (elements_of(node) // program.batch, "silu")
    return (Found(OpKind.GATED_ACTIVATION, operands, (node,), attributes, name),)


def find_add(program: Program, node: Node) -> tuple[Found, ...]:
    """a + b of two activations of the same type"""
    operands = tuple(node.args)
    if node.kwargs or not _alike(program, node, operands):
        return NOTHING
    attributes = (elements_of(node) // program.batch,)
    return (Found(OpKind.ADD, operands, (node,), attributes, f"{module_path(node)}.residual"),)  # type: ignore[arg-type]


def find_sample(program: Program, node: Node) -> tuple[Found, ...]:
    """argmax(logits) over the vocabulary"""
    source, *axis = arguments_of(node)
    if not is_activation(program, source) or axis not in ([-1], [len(shape_of(node))]) or node.kwargs:
        return NOTHING
    width = shape_of(source)[-1]
    # A view that splits rows would choose within parts of the vocabulary.
    if width * program.batch != elements_of(source):
        return NOTHING
    return (Found(OpKind.SAMPLE, (source,), (node,), (width,), "next_token_ids"),)


def _alike(program: Program, node: Node, operands: tuple[Any, ...]) -> bool:
    """Tell whether these are two float activations of the shape of the result: broadcasting would repeat elements."""
    if not node.meta["val"].is_floating_point() or elements_of(node) % program.batch or not shape_of(node):
        return False
    return len(operands) == 2 and all(
        is_activation(program, one) and shape_of(one) == shape_of(node) and one.meta["val"].is_floating_point()
        for one in operands
    )


RULES: dict[str, tuple[Rule, ...]] = {
    "aten.embedding": (find_embedding,),
    "aten.linear": (find_linear,),
    "aten.addmm": (find_addmm,),
    "aten.mm": (find_matrix_product,),
    "aten.matmul": (find_matrix_product, find_explicit_attention),
    "aten.bmm": (find_explicit_attention,),
    "aten.rms_norm": (find_norm,),
    "aten.mul": (find_gated_activation, find_norm),
    "aten.add": (find_rotary, find_add),
    "aten.scaled_dot_product_attention": (find_scaled_dot_product,),
    "aten.sum": (find_experts,),
    "aten.argmax": (find_sample,),
    "getitem": (find_selected_tokens, find_partial_attention),
    "aten.masked_fill": (find_selected_blocks,),
    "pim.attention": (find_attention,),
    "pim.latent_attention": (find_latent_attention,),
    "pim.select_entries": (find_selected_entries,),
    "pim.head_linear": (find_head_linear,),
    "pim.routed_linear": (find_routed_linear,),
}
