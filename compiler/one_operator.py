"""One operator of a graph as a graph of its own: what it reads are inputs and weights, what it defines are outputs."""

from compiler.graph import Graph, Value
from compiler.tasks import tasks_of


def graph_of_task(graph: Graph, task: str) -> Graph:
    """Return the first operator of a task alone; raises KeyError for a task that the graph has not."""
    tasks = tasks_of(graph)
    names = [tasks.tasks[index].name for index in tasks.sequence]
    if task not in names:
        raise KeyError(task)
    op = graph.ops[names.index(task)]
    types, weights = graph.types(), {weight.name for weight in graph.weights}
    constants = {constant.name for constant in graph.constants}
    operands = [Value(name, types[name]) for name in dict.fromkeys(op.inputs)]
    return Graph(
        name=f"{graph.name}.{task}",
        inputs=tuple(value for value in operands if value.name not in weights | constants),
        weights=tuple(value for value in operands if value.name in weights),
        ops=(op,),
        outputs=tuple(result.name for result in op.results),
        constants=tuple(value for value in operands if value.name in constants),
    )
