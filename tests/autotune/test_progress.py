"""Progress: plain lines with units, silence, and a live bar that takes every event."""

import io

from autotune.progress import LiveProgress, PlainProgress, show_progress
from autotune.result import BatchReport, Silent
from costmodel.accuracy import Accuracy
from tests.analytic_problem import small_problem

ACCURACY = Accuracy(count=10, pairwise=0.9, peak_at_1=1.0, peak_at_5=1.0, top_percent_recall=1.0, mape=0.05)
REPORT = BatchReport(50, 100, 0.6, 0.8, ((2.5, "ms"), (3.0, "mJ"), (120.0, "mm²")), (("latency", ACCURACY),), 50)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_plain_lines_hold_units_hypervolume_and_model_accuracy() -> None:
    stream = io.StringIO()
    with show_progress(100, stream, quiet=False) as observer:
        assert isinstance(observer, PlainProgress)
        observer.phase("learning")
        observer.batch_finished(REPORT)
    line = stream.getvalue()
    assert line.startswith("50/100 designs; best 2.5 ms, 3 mJ, 120 mm2; hypervolume 75.0 % of the known bound front")
    assert "model on new latency: ranks 90 %, error 5.0 %" in line
    assert line.count("\n") == 1


def test_quiet_shows_nothing() -> None:
    stream = io.StringIO()
    with show_progress(100, stream, quiet=True) as observer:
        assert isinstance(observer, Silent)
        observer.batch_finished(REPORT)
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_live_bar() -> None:
    stream, problem = Terminal(), small_problem()
    with show_progress(100, stream, quiet=False) as observer:
        assert isinstance(observer, LiveProgress)
        observer.phase("learning")
        observer.evaluated(problem.evaluate(problem.baselines()[0]))
        observer.batch_finished(REPORT)
    assert "50/100" in stream.getvalue()
