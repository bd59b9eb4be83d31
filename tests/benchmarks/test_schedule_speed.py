"""How many schedules of an operator are judged and bounded in a second?"""

from autotune.problem_spec import import_workload
from autotune.space import space_of
from autotune.tuning import _Operator
from compiler.device_table import device_table
from compiler.lowering import System
from configs.device import load_device
from simulator.timeline import StepSimulator

WANTED_PER_S = 1e5


def test_a_hundred_thousand_schedules_a_second(benchmark) -> None:
    device = load_device("gddr6-aim")
    shapes = import_workload("llama-3.1-8b", 1, 4096).schedulables
    table, system, space = device_table((device,), 1), System(device, 1), space_of(shapes, {})
    operators = [_Operator(shape, system, space, StepSimulator(device)) for shape in shapes]
    found = benchmark(lambda: sum(len(operator._bounded(table)[0]) for operator in operators))
    assert found / benchmark.stats.stats.min >= WANTED_PER_S
