"""How many schedules of an operator are judged and bounded in a second?"""

from autotune.problem_spec import import_workload
from autotune.tuning import bounded_schedules
from compiler.lowering import System
from configs.device import load_device

WANTED_PER_S = 1e5


def test_a_hundred_thousand_schedules_a_second(benchmark) -> None:
    shapes, system = import_workload("llama-3.1-8b", 1, 4096).schedulables, System(load_device("gddr6-aim"), 1)
    found = benchmark(lambda: sum(len(bounded_schedules(shape, system)[0]) for shape in shapes))
    assert found / benchmark.stats.stats.min >= WANTED_PER_S
