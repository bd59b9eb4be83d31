"""A study file: every key, what goes wrong in one line, and that it means what the command line means."""

import pytest

from autotune.run_settings import RunSettings
from autotune.study_file import KEYS, read_study
from configs.errors import UserError

EVERY_KEY = """
model: llama
hardware: gddr6-aim
batch: 4
context: 1000
weights: int8
kv: fp8
speculative: 2
devices: 3
budget: 20
seed: 7
warm_start: runs/earlier
cost_model: true
stop_when_within: 0.1
objectives: [latency, cost]
require: [area_mm2<=600, power_avg_w <= 4e1]
set: {channels: 16..32, lanes: [16, 32], "*.place": pim, row_bytes: 2048}
"""


def _read(tmp_path, text):
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return read_study(path)


def test_every_key_fills_its_setting(tmp_path):
    found = _read(tmp_path, EVERY_KEY)
    # `scenarios` has tests of its own.
    assert set(found) == {key.setting for key in KEYS.values()} - {"scenarios"}
    assert RunSettings(**found) == RunSettings(
        model="llama",
        batch=4,
        context=1000,
        weights="int8",
        kv="fp8",
        speculative=2,
        devices="3",
        budget=20,
        seed=7,
        warm_start=("runs/earlier",),
        stop_when_within=0.1,
        objectives=("latency", "cost"),
        requirements=("area_mm2 <= 600", "power_avg_w <= 40"),
        restrictions=("channels=16..32", "lanes=16,32", "*.place=pim", "row_bytes=2048"),
    )


def test_one_text_does_for_a_list(tmp_path):
    found = _read(tmp_path, "objectives: latency,cost\nrequire: area_mm2 <= 600\n")
    assert found == {"objectives": ("latency", "cost"), "requirements": ("area_mm2 <= 600",)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("modell: llama", "did you mean model?"),
        ("scenario: {}", "the unknown key 'scenario'"),
        ("budget: many", "key budget: expected a whole number from 1"),
        ("budget: 0", "a whole number from 1"),
        ("batch: true", "a whole number from 1"),
        ("seed: -1", "a whole number from 0"),
        ("speculative: 65", "from 1 to 64"),
        ("model: 3", "a model's name or path"),
        ("objectives: {a: 1}", "a list of names"),
        ("require: [1]", "a list of texts"),
        ("require: [area_mm2 < 6]", "the operator <"),
        ("set: [channels=3]", "knobs with values"),
        ("set: {channels: {}}", "knobs with values"),
        ("set: {channels: []}", "knobs with values"),
        ("model: a\nmodel: b", "a second time"),
        ("- model", "keys and values"),
        ("model: [", "a YAML file"),
        ("model: !!python/object:os.system x", "a YAML file"),
    ],
)
def test_a_mistake_is_told_with_its_key(tmp_path, text, expected):
    with pytest.raises(UserError) as raised:
        _read(tmp_path, text)
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_a_users_mistake(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_study(tmp_path / "none.yaml")
