"""Calls that a program of one token does not need: parts of a concatenation that hold nothing."""

from torch.fx import Graph, Node

from compiler.raising.patterns import target_of


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
