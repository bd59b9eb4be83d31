"""Lessons of earlier runs: kept without loss, held out honestly, and wider where a device was never seen."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from configs.errors import UserError
from costmodel.lessons import Lesson, Prior, TaskRows, held_out, load_lessons, prior_of, save_lessons
from costmodel.model import Rows

Changed = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def lesson(model: str, device: str, seed: int, slope: float = 1.0, count: int = 200) -> Lesson:
    """Return one task whose time over the bound grows with a feature, at a slope of the device's own."""
    rng = np.random.default_rng(seed)
    features = rng.random((count, 3))
    bound_cycles = np.ceil(1000 * (1 + 9 * features[:, 0]))
    cycles = np.ceil(bound_cycles * (1 + slope * features[:, 1]))
    rows = Rows(features, cycles, bound_cycles)
    return Lesson(model, device, (TaskRows("o_proj", "linear", rows, ("a", "b", "c")),))


def test_lessons_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    written = (lesson("llama", "aim", 0), lesson("qwen", "attacc", 1))
    save_lessons(tmp_path / "lessons.npz", written)
    found = load_lessons(tmp_path / "lessons.npz")
    assert [(item.model, item.device) for item in found] == [("llama", "aim"), ("qwen", "attacc")]
    for before, after in zip(written, found, strict=True):
        assert after.tasks[0].features == ("a", "b", "c")
        assert (after.tasks[0].rows.features == before.tasks[0].rows.features).all()
        assert (after.tasks[0].rows.log_ratio == before.tasks[0].rows.log_ratio).all()


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 torn"])
def test_a_file_without_lessons_is_a_users_mistake(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lessons.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="explore train"):
        load_lessons(path)


def test_a_file_with_one_changed_byte_is_read_or_a_users_mistake(tmp_path: Path) -> None:
    whole = tmp_path / "lessons.npz"
    save_lessons(whole, (lesson("llama", "aim", 0, count=20),))
    content, damaged = whole.read_bytes(), tmp_path / "damaged.npz"
    refused = 0
    for place in range(0, len(content), 7):
        damaged.write_bytes(content[:place] + bytes([content[place] ^ 0x5A]) + content[place + 1 :])
        try:
            load_lessons(damaged)
        except UserError:
            refused += 1
    assert refused > len(content) // 14


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("0/0/features", lambda kept: kept * np.nan),
        ("0/0/features", lambda kept: kept[:, :2]),
        ("0/0/cycles", lambda kept: -kept),
        ("0/0/cycles", lambda kept: kept[0]),
        ("0/0/cycles", lambda kept: kept[:, :-1]),
        ("0/0/names", lambda kept: kept[:0]),
        ("0/about", lambda kept: kept[:1]),
    ],
)
def test_arrays_that_do_not_fit_together_are_a_users_mistake(tmp_path: Path, name: str, change: Changed) -> None:
    path = tmp_path / "lessons.npz"
    save_lessons(path, (lesson("llama", "aim", 0),))
    with np.load(path) as stored:
        arrays = {key: stored[key] for key in stored.files}
    np.savez(path, **arrays | {name: change(arrays[name])})
    with pytest.raises(UserError, match="explore train"):
        load_lessons(path)


def test_an_array_that_is_no_archive_is_a_users_mistake(tmp_path: Path) -> None:
    path = tmp_path / "lessons.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(UserError, match="explore train"):
        load_lessons(path)


def test_a_name_that_warm_start_would_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\.npz"):
        save_lessons(tmp_path / "lessons.json", (lesson("llama", "aim", 0),))


def test_a_lesson_held_out_is_predicted_by_the_others_and_not_by_itself() -> None:
    alike = held_out((lesson("llama", "aim", 0), lesson("qwen", "aim", 1)))
    assert alike[0].learned.mape < 0.05 < alike[0].bound.mape
    unlike = held_out((lesson("llama", "aim", 0, slope=0.1), lesson("llama", "other", 1, slope=2.0)))
    assert unlike[0].learned.mape > 0.5


def test_two_lessons_tell_no_interval_and_three_do() -> None:
    two = (lesson("llama", "aim", 0), lesson("qwen", "aim", 1))
    assert [item.covered for item in held_out(two)] == [None, None]
    three = held_out((*two, lesson("mistral", "aim", 2)))
    assert all(item.covered is not None and 0.8 <= item.covered <= 1.0 for item in three)


def test_a_device_that_no_lesson_has_widens_the_intervals() -> None:
    lessons = (lesson("llama", "aim", 0, slope=0.5), lesson("llama", "attacc", 1, slope=1.5))
    seen, unseen = (prior_of(lessons, "llama", device).log_width for device in ("aim", "hbm-pim"))
    assert 0.0 < seen < unseen


def test_without_lessons_a_run_starts_from_nothing() -> None:
    assert prior_of((), "llama", "aim") == Prior()
