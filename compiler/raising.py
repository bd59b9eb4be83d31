"""From an exported ATen program to a graph: walks the nodes in order and lets the rules recognise operators.

A rule anchors on the last node of a pattern, emits an operator and says which nodes it covered. Nothing is dropped: a
node that no rule covers stops the import with an error that names it and its source line. Activations are held as
[B, width] whatever views the program takes of them.
"""

from torch.export import ExportedProgram
from torch.fx import Node

from compiler.graph import Graph
from compiler.patterns import target_of
from compiler.raiser import Raiser
from compiler.raising_rules import RULES


def raise_program(program: ExportedProgram, name: str) -> Graph:
    """Return the graph of an exported decode step; raises UserError at the first node that is not understood.

    The step's first input must be the token ids [B]; caches are inputs [B, kv_heads, context, head_dim].
    """
    raiser = Raiser(program)
    for node in program.graph.nodes:
        if node.op == "call_function":
            _apply_first_rule(raiser, node)
    return raiser.finish(name)


def _apply_first_rule(raiser: Raiser, node: Node) -> None:
    for rule in RULES.get(target_of(node), ()):
        if rule(raiser, node):
            return
