"""Figures: every one is a PDF whose text is text, beside a PNG, with units on its axes."""

import matplotlib as mpl
import numpy as np
import pytest

from autotune.figure_bars import energy_parts_mj, latency_parts_ms
from autotune.figure_front import first_and_second, first_and_third, staircase
from autotune.figures import plots_of, write_figures
from tests.autotune.finished_runs import empty_run, finished_run


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    run = finished_run(tmp_path_factory.mktemp("run"))
    return run, write_figures(run)


def test_every_figure_is_drawn(drawn):
    assert [drawing.name for drawing in drawn[1]] == [plot.name for plot in plots_of(drawn[0])]


def test_pdfs_hold_text_in_truetype_fonts(drawn):
    for drawing in drawn[1]:
        content = drawing.pdf.read_bytes()
        assert content.startswith(b"%PDF")
        assert b"/CIDFontType2" in content
        assert b"/Type3" not in content


def test_pngs_and_svgs_are_not_empty(drawn):
    for drawing in drawn[1]:
        assert drawing.png.read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in drawing.svg


def test_drawing_leaves_the_callers_style_alone(drawn):
    assert mpl.rcParams["pdf.fonttype"] == mpl.rcParamsDefault["pdf.fonttype"]


def test_axes_name_their_units(drawn):
    for draw in (first_and_second, first_and_third):
        axes = draw(drawn[0]).axes
        labels = (axes[0].get_xlabel(), axes[0].get_ylabel(), axes[1].get_ylabel())
        assert all(label.endswith(("(ms)", "(mJ)", "(mm²)")) for label in labels)


def test_bars_add_up_to_the_objectives(drawn):
    run = drawn[0]
    for point, item in enumerate(run.evaluations):
        assert sum(latency_parts_ms(run, point).values()) == pytest.approx(item.latency_ns * 1e-6, rel=1e-3)
        assert sum(energy_parts_mj(run, point).values()) == pytest.approx(item.energy_pj * 1e-9)


def test_staircase_turns_at_the_best_points_only():
    points = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 2.0]])
    corners = staircase(points, np.array([9.0, 9.0])).tolist()
    assert corners == [[1, 9], [1, 5], [3, 5], [3, 2], [9, 2]]


def test_a_run_without_evaluations_has_no_figures(tmp_path):
    assert write_figures(empty_run(tmp_path)) == ()
