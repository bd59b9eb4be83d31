"""The closing lines on predictions name what predicted."""

from dataclasses import replace

from autotune.architect.stored_run import result_of
from autotune.goals import DEFAULT_GOALS
from autotune.model_lines import model_lines
from autotune.result import BatchReport
from costmodel.intervals import Interval
from tests.small_workloads import small_problem

BATCH = BatchReport(
    evaluated=10,
    budget=10,
    hypervolume=1.0,
    bound_hypervolume=1.0,
    best=((1.0, "ms"),),
    feasible=10,
    least_violation=0.0,
    left_factor=1.0,
    accuracy=(),
)


def test_a_search_without_a_cost_model_does_not_speak_of_a_learned_one():
    batches = tuple(replace(BATCH, interval=Interval(1.25, covered, 10)) for covered in (8, 10))
    result = replace(result_of((), DEFAULT_GOALS), batches=batches)
    (line,) = model_lines(small_problem(), result, "lower bounds alone")
    told = "90.0% of 20 latencies lay in their 90 % intervals, within a factor of 1.250 at the median"
    assert line == f"cost model (lower bounds alone): {told}"
