"""Several scenarios as one study: one device, shared operators, means, and what each scenario alone would say."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from autotune.architect.robust import ratios_of, robust, robust_lines
from autotune.decode_problem import KeptSimulators
from autotune.goals import goals_of
from autotune.layout import clean, layout_of
from autotune.problem import HARDWARE_GROUP, Codes
from autotune.problem_spec import ProblemSpec, SuiteSpec
from autotune.record import load_evaluations
from autotune.run_settings import RunSettings
from autotune.sampling import stratified
from autotune.search import search
from autotune.suite import SuiteProblem
from autotune.suite_outputs import SuiteRun, write_suite_outputs
from autotune.suite_settings import scenarios_of
from compiler.workload import StoredFormats
from configs.device import load_device
from configs.errors import UserError
from configs.number_format import NumberFormat
from tests.autotune.finished_runs import QUICK
from tests.small_workloads import small_workload

INT8 = StoredFormats(NumberFormat.INT8, NumberFormat.INT8)
SPECS = {
    "short": ProblemSpec(small_workload(context=200), load_device("gddr6-aim"), 1, {}),
    "long": ProblemSpec(small_workload(context=2000), load_device("gddr6-aim"), 1, {}),
    "int8": ProblemSpec(small_workload(formats=INT8), load_device("gddr6-aim"), 1, {}),
}


PAIR = ("short", "int8")  # enough where outputs are written


@cache
def suite() -> SuiteProblem:
    return SuiteSpec(
        tuple((name, weight, spec) for (name, spec), weight in zip(SPECS.items(), (1.0, 2.0, 1.0), strict=True))
    )()


@cache
def pair() -> SuiteProblem:
    return SuiteSpec(tuple((name, 1.0, SPECS[name]) for name in PAIR))()


@cache
def designs() -> Codes:
    problem = suite()
    rng = np.random.default_rng(0)
    return stratified(problem, layout_of(problem), rng, 200, clean(problem, problem.baselines()))


def test_scenarios_of_one_model_share_the_operators_they_have_in_common():
    shared = [task for task in suite().tasks if "@" not in task]
    assert "attention@long" in suite().tasks
    assert "qkv_proj@int8" in suite().tasks
    assert "qkv_proj@long" not in suite().tasks
    assert set(SPECS["short"]().tasks) <= set(shared)


def test_all_scenarios_have_one_choice_of_hardware():
    hardware = [knob for knob in suite().knobs if knob.group == HARDWARE_GROUP]
    assert hardware == [knob for knob in SPECS["short"]().knobs if knob.group == HARDWARE_GROUP]


def test_a_design_is_legal_where_it_is_legal_in_every_scenario():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, layout_of(suite()).sizes, size=(3000, len(suite().knobs)))
    each = [member.problem.legal(member.codes(codes)) for member in suite().members]
    assert (suite().legal(codes) == np.logical_and.reduce(each)).all()


def test_an_evaluation_holds_what_each_scenario_alone_finds():
    design = clean(suite(), suite().baselines())[0]
    found = suite().evaluate(design)
    for member in suite().members:
        alone = SPECS[member.name]().evaluate(member.codes(design))
        inside = suite().in_scenario(member, found)
        assert inside.metrics == alone.metrics
        assert inside.codes == alone.codes
        assert dict(inside.details) == dict(alone.details)


def test_latency_and_energy_are_weighted_geometric_means():
    found = suite().evaluate(clean(suite(), suite().baselines())[0])
    each = [suite().in_scenario(member, found) for member in suite().members]
    shares = zip(each, (0.25, 0.5, 0.25), strict=True)
    assert found.latency_ns == pytest.approx(np.prod([item.latency_ns**share for item, share in shares]))
    assert found.area_mm2 == each[0].area_mm2


def test_lower_bounds_of_a_suite_never_exceed_its_simulation():
    for design in designs()[:12]:
        bound = suite().metrics(design[None, :], suite().bound_cycles(design[None, :]))[0]
        assert (bound <= np.array(suite().evaluate(design).metrics) * (1 + 1e-9)).all()


def test_canonical_designs_stay_as_they_are():
    assert (suite().canonical(designs()) == designs()).all()


def test_members_share_the_simulator_of_a_device():
    simulators = KeptSimulators()
    first, second = SPECS["short"](simulators), SPECS["long"](simulators)
    for problem in (first, second):
        problem.evaluate(clean(problem, problem.baselines())[0])
    assert simulators.count == 1


def test_a_suite_of_several_scenarios_leaves_a_folder_for_each(tmp_path: Path):
    problem = pair()

    def evaluate_batch(batch: Codes):
        return [problem.evaluate(codes) for codes in batch]

    result = search(problem, 5, 0, evaluate_batch, settings=QUICK)
    settings = {"model": "tiny", "hardware": "gddr6-aim", "seed": 0}
    run = SuiteRun(tmp_path, settings, problem, result, {}, dict.fromkeys(PAIR, settings))
    run = write_suite_outputs(run, workers=1)
    assert set(run.numerics.values()) == {"passed"}
    for name in PAIR:
        assert (tmp_path / "scenarios" / name / "report.html").is_file()
    page = (tmp_path / "report.html").read_text()
    assert all(f"scenarios/{name}/report.html" in page for name in PAIR)
    assert (tmp_path / "robust.json").is_file()
    assert "least latency" in (tmp_path / "robust.md").read_text()


def test_a_suite_with_two_objectives_leaves_its_outputs(tmp_path: Path):
    problem = pair()

    def evaluate_batch(batch: Codes):
        return [problem.evaluate(codes) for codes in batch]

    goals = goals_of(("latency", "energy"), (), problem.knobs)
    result = search(problem, 5, 0, evaluate_batch, settings=QUICK, goals=goals)
    settings = {"model": "tiny", "hardware": "gddr6-aim", "seed": 0}
    write_suite_outputs(SuiteRun(tmp_path, settings, problem, result, {}, dict.fromkeys(PAIR, settings)), workers=1)
    assert (tmp_path / "report.html").is_file()
    recorded = load_evaluations(tmp_path / "scenarios" / "int8" / "evaluations.jsonl")
    assert len(recorded) == len(result.evaluations)


def test_the_robust_choice_has_the_best_worst_scenario():
    evaluations = [suite().evaluate(design) for design in designs()[:6]]
    found = robust(suite(), evaluations, range(6))
    ratios = ratios_of(suite(), evaluations, "latency")
    assert found.choices[0].point == int(ratios.max(axis=1).argmin())
    assert found.choices[0].worst[1] == pytest.approx(ratios.max(axis=1).min())
    assert len(robust_lines(found)) == 2 + 2 * len(SPECS)


def test_scenario_texts_change_the_settings_of_the_run():
    settings = RunSettings("llama", scenarios=("long: context=32768, batch=4, weight=2", "kv=int8"))
    first, second = scenarios_of(settings)
    assert (first.name, first.weight, first.settings.context, first.settings.batch) == ("long", 2.0, 32768, 4)
    assert (second.name, second.settings.kv, second.settings.context) == ("kv-int8", "int8", 4096)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (("context=0",), "'0'"),
        (("context=100, context=200",), "2 values for 1 keys"),
        (("speculative=65",), "'65'"),
        (("contxt=5",), "'contxt=5'"),
        (("a b: context=5",), "'a b'"),
        (("weight=0, batch=2",), "'0'"),
        (("context=5", "x: context=5"), "one that is there already"),
        (("speculative=9, context=4",), "9"),
        (("context=",), "''"),
    ],
)
def test_a_text_that_is_no_scenario_is_refused(texts: tuple[str, ...], found: str):
    with pytest.raises(UserError) as error:
        scenarios_of(RunSettings("llama", scenarios=texts))
    assert found in str(error.value)
