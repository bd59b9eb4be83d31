"""What a run over several scenarios leaves: its own tables, choices and page, and a whole run folder per scenario."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from autotune.architect.robust import Robust, ratios_of, robust, robust_lines
from autotune.figures import Drawing, figure_style, save_figure
from autotune.finished import FinishedRun, JudgedRun, front_of, nearest_of
from autotune.front_numerics import front_verdicts
from autotune.goals import Goals
from autotune.outputs import write_outputs
from autotune.record import EVALUATIONS, encode
from autotune.report import page_templates
from autotune.result import SearchResult
from autotune.roofline import NO_ROOFLINE
from autotune.suite import Member, SuiteProblem
from autotune.tables import TRIALS_FILE, pareto_frame, trials_frame, write_csv
from autotune.units import MS_PER_NS

SCHEMA = "robust/1"
SCENARIOS = "scenarios"
FIGURE_INCHES = (5.0, 2.6)


@dataclass(frozen=True, slots=True)
class SuiteRun(JudgedRun):
    """A finished run over several scenarios, with the resolved settings of each."""

    problem: SuiteProblem
    scenarios: Mapping[str, Mapping[str, str | int]]


def scenario_folder(folder: Path, name: str) -> Path:
    """Return the folder of a scenario in that of a run, made if it is not there."""
    own = folder / SCENARIOS / name
    own.mkdir(parents=True, exist_ok=True)
    return own


def in_scenario(run: SuiteRun, member: Member, workers: int) -> FinishedRun:
    """Return what a run found in one scenario, as a run of its own; its front and the suite's are checked."""
    evaluations = tuple(run.problem.in_scenario(member, item) for item in run.evaluations)
    goals = Goals(run.goals.objectives)
    result: SearchResult = replace(
        run.result, evaluations=evaluations, batches=(), roofline=NO_ROOFLINE, box=None, goals=goals
    )
    found = FinishedRun(
        scenario_folder(run.folder, member.name), run.scenarios[member.name], member.problem, result, {}
    )
    shown = dict.fromkeys((*front_of(found), *front_of(run), *nearest_of(run)))
    return replace(found, numerics=front_verdicts(member.problem, [evaluations[point] for point in shown], workers))


def write_suite_outputs(run: SuiteRun, workers: int) -> SuiteRun:
    """Write everything and return the run with its numerics: passed where they passed in every scenario."""
    members = [in_scenario(run, member, workers) for member in run.problem.members]
    for member in members:
        record = "".join(encode(item) + "\n" for item in member.evaluations)
        (member.folder / EVALUATIONS).write_text(record, encoding="utf-8")
        write_outputs(member)
    shown = front_of(run) or nearest_of(run)
    run = replace(run, numerics={run.evaluations[point].codes: _verdict(members, point) for point in shown})
    _write_tables(run)
    found = robust(run.problem, run.evaluations, shown)
    (run.folder / "robust.json").write_text(json.dumps(robust_json(run, found), indent=1) + "\n", encoding="utf-8")
    lines = "".join(f"- {line}\n" for line in robust_lines(found))
    (run.folder / "robust.md").write_text(f"# Choices over all scenarios\n\n{lines}", encoding="utf-8")
    (run.folder / "figures").mkdir(exist_ok=True)
    with figure_style():
        drawing = save_figure(_regrets(run, shown, found), "regret", CAPTION, run.folder / "figures")
    _write_page(run, shown, found, drawing)
    return run


def _verdict(members: Sequence[FinishedRun], point: int) -> str:
    """Return the verdict on a point that all scenarios agree on, or else each scenario's own."""
    verdicts = [member.numerics.get(member.evaluations[point].codes, "not checked") for member in members]
    return verdicts[0] if len(set(verdicts)) == 1 else ", ".join(verdicts)


def robust_json(run: SuiteRun, found: Robust) -> dict[str, object]:
    """Return the choices as plain values."""
    return {
        "schema": SCHEMA,
        "settings": run.shown_settings,
        "scenarios": [
            {"name": member.name, "weight": member.weight, "model": member.problem.scenario.workload.model}
            for member in run.problem.members
        ],
        "choices": [asdict(choice) for choice in found.choices],
        "specialists": [{"scenario": name} | asdict(choice) for name, choice in found.specialists],
    }


def _write_tables(run: SuiteRun) -> None:
    trials = trials_frame(run.problem, run.evaluations, run.goals)
    trials.to_parquet(run.folder / TRIALS_FILE, index=False)
    write_csv(trials, run.folder / "trials.csv")
    write_csv(pareto_frame(run.problem, run.evaluations, run.numerics, run.goals), run.folder / "pareto.csv")


CAPTION = (
    "Latency of each Pareto point in every scenario over the least that any of them has there. The thick line is the "
    "choice whose worst scenario is best."
)


def _regrets(run: SuiteRun, points: tuple[int, ...], found: Robust) -> Figure:
    ratios = ratios_of(run.problem, [run.evaluations[point] for point in points], "latency")
    figure = Figure(figsize=FIGURE_INCHES, layout="constrained")
    axes = figure.subplots()
    names = [member.name for member in run.problem.members]
    places = range(len(names))
    for row in ratios:
        axes.plot(places, row, "-", color="0.75", linewidth=0.7)
    chosen = points.index(found.choices[0].point)
    axes.plot(places, ratios[chosen], "o-", color="#0b5394", linewidth=2, label=f"point {points[chosen]}")
    axes.set_xticks(places, names)
    axes.set_yscale("log")
    axes.set_ylabel("latency over the least (log)")
    axes.legend()
    return figure


def _write_page(run: SuiteRun, points: tuple[int, ...], found: Robust, drawing: Drawing) -> Path:
    path = run.folder / "report.html"
    page = page_templates().get_template("suite.html.j2")
    path.write_text(page.render(_content(run, points, found, drawing)), encoding="utf-8")
    return path


def _content(run: SuiteRun, points: tuple[int, ...], found: Robust, drawing: Drawing) -> dict[str, Any]:
    members = run.problem.members
    return {
        "settings": run.shown_settings,
        "evaluations": len(run.evaluations),
        "stop": str(run.result.stop),
        "scenarios": [
            {
                "name": member.name,
                "weight": f"{member.weight:.3g}",
                "text": str(member.problem.scenario.workload.model),
                "batch": member.problem.scenario.workload.batch,
                "context": member.problem.scenario.workload.context,
                "report": f"{SCENARIOS}/{member.name}/report.html",
            }
            for member in members
        ],
        "headings": [merit.heading for merit in run.goals.objectives],
        "front": [_row(run, point) for point in points],
        "lines": robust_lines(found),
        "figure": base64.b64encode(drawing.svg).decode(),
        "caption": drawing.caption,
    }


def _row(run: SuiteRun, point: int) -> dict[str, Any]:
    minimised = run.judged.objectives[point]
    item = run.evaluations[point]
    return {
        "point": point,
        "values": [f"{float(merit.shown(minimised[column])):.4g}" for column, merit in enumerate(run.goals.objectives)],
        "latencies": [
            f"{run.problem.in_scenario(member, item).latency_ns * MS_PER_NS:.4g}" for member in run.problem.members
        ],
    }
