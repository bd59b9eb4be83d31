"""Rewrites of an exported program before rules look at it: what one token does not need, and products by head."""

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Node

import compiler.raising.marks  # noqa: F401  registers the mark of products by head
from compiler.raising.patterns import target_of

HEADS_FIRST = [1, 0, 2]


def clean(exported: ExportedProgram) -> None:
    """Rewrite the graph of an exported program in place."""
    drop_empty_parts(exported.graph)
    split_products_by_head(exported.graph, frozenset(exported.graph_signature.inputs_to_parameters))


def drop_empty_parts(graph: Graph) -> None:
    """Leave parts without elements out of every concatenation, such as all tokens but the last of one token.

    cat([x, empty])  -->  x
    """
    for node in list(graph.nodes):
        if target_of(node) != "aten.cat":
            continue
        parts = [one for one in node.args[0] if isinstance(one, Node) and one.meta["val"].numel()]
        if len(parts) == 1:
            node.replace_all_uses_with(parts[0])
        elif len(parts) < len(node.args[0]):
            node.update_arg(0, parts)


def split_products_by_head(graph: Graph, parameters: frozenset[str]) -> None:
    """Write batched products of heads with a parameter [heads, inputs, outputs] as the mark of such products.

    baddbmm(bias, permute(x, heads first), weight)  -->  permute(head_linear(x, weight), heads first) + bias
    """
    for node in list(graph.nodes):
        if target_of(node) != "aten.baddbmm" or node.kwargs or node.args[2].name not in parameters:
            continue
        bias, turned, weight = node.args
        if target_of(turned) != "aten.permute" or list(turned.args[1]) != HEADS_FIRST:
            continue
        with graph.inserting_before(node):
            heads = _added(node, torch.ops.aten.unsqueeze.default, turned.args[0], 2)
            rows = weight.meta["val"].shape[1]
            product = _added(node, torch.ops.pim.head_linear.default, heads, weight, 0, rows, True)
            flat = _added(node, torch.ops.aten.squeeze.dim, product, 2)
            back = _added(node, torch.ops.aten.permute.default, flat, HEADS_FIRST)
            total = _added(node, torch.ops.aten.add.Tensor, back, bias)
        node.replace_all_uses_with(total)


def _added(like: Node, target: Any, *arguments: Any) -> Node:
    """Return a new call that was traced from where another was."""
    node = like.graph.call_function(target, arguments)
    values = [one.meta["val"] if isinstance(one, Node) else one for one in arguments]
    node.meta = {**like.meta, "val": target(*values)}
    return node
