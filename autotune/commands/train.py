"""`explore train`: training data for the cost model, and how well each finished run is told from the others."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costmodel.lessons import HeldOut, Lesson

PLAIN_WIDTH = 132
HEADINGS = (
    "run",
    "tasks measured",
    "pairs ranked right",
    "best 1 % found",
    "error",
    "90 % interval",
    "in it",
    "as a run goes on",
)
MOST_IMPORTANT = 6
MOST_SEED = (1 << 32) - 1


def train_command(
    runs: Annotated[list[Path], typer.Argument(help="folders of finished runs, or .npz files of training data")],
    out: Annotated[Path, typer.Option(help="the .npz file to write")] = Path("lessons.npz"),
    seed: Annotated[int, typer.Option(help="seed of the trees held against each other", min=0, max=MOST_SEED)] = 0,
    json: Annotated[bool, typer.Option("--json", help="print the accuracies as JSON")] = False,
) -> None:
    """Gather what runs measured for explore --warm-start, and tell how well every run is predicted from the others.

    explore train runs/first runs/second --out lessons.npz
    """
    from autotune.training import gather
    from costmodel.lessons import held_out, importance, save_lessons

    lessons = gather(runs)
    save_lessons(out, lessons)
    found, shares = held_out(lessons, seed), importance(lessons, seed)
    if json:
        from dataclasses import asdict
        from json import dumps

        print(dumps({"file": str(out), "held_out": [asdict(item) for item in found], "importance": shares}))
    else:
        _print(lessons, found, shares, out)


def _print(
    lessons: "Sequence[Lesson]", found: "Sequence[HeldOut]", shares: "dict[str, dict[str, float]]", out: Path
) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, PLAIN_WIDTH)
    if found:
        table = Table(title="every run predicted from the others, by task; in brackets by the bounds alone")
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading == "run" else "right")
        for item in found:
            table.add_row(
                item.name,
                str(item.learned.count),
                f"{item.learned.pairwise:.3f} ({item.bound.pairwise:.3f})",
                f"{item.learned.top_percent_recall:.2f} ({item.bound.top_percent_recall:.2f})",
                f"{item.learned.mape:.1%} ({item.bound.mape:.1%})",
                "-" if item.factor is None else f"x {item.factor:.3f}",
                "-" if item.covered is None else f"{item.covered:.1%}",
                "-" if item.followed is None else f"{item.followed:.1%}",
            )
        console.print(table)
    for kind, by_feature in shares.items():
        named = ", ".join(f"{name} {share:.0%}" for name, share in list(by_feature.items())[:MOST_IMPORTANT])
        console.print(f"{kind}: what trees split on, by the error it takes away: {named}", soft_wrap=True)
    rows = sum(len(item.rows.cycles) for lesson in lessons for item in lesson.tasks)
    console.print(f"{rows} measured tasks of {len(lessons)} runs: {out}", soft_wrap=True, markup=False)
    if len(lessons) == 1:
        console.print("one run cannot be held against others: its accuracy on new devices is not known", soft_wrap=True)
