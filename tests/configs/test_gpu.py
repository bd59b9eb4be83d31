"""The file of GPUs: every figure has a source, and a mistake is one clear line."""

import pytest
import yaml

from configs.errors import UserError
from configs.gpu import GPU_FILE, Confidence, load_gpus
from configs.model_config import load_model_config


def _changed(tmp_path, change):
    content = yaml.safe_load(GPU_FILE.read_text(encoding="utf-8"))
    change(content)
    path = tmp_path / "gpus.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_the_file_holds_the_three_gpus():
    assert [gpu.name for gpu in load_gpus().gpus] == ["a100-80gb", "h100-sxm", "h200-sxm"]


def test_every_assumption_is_marked_as_one():
    for gpu in load_gpus().gpus:
        for name in type(gpu).model_fields:
            figure = getattr(gpu, name)
            if hasattr(figure, "source") and figure.source.startswith("assumption"):
                assert figure.confidence is Confidence.LOW


def test_every_measured_model_is_a_built_in_one():
    for item in load_gpus().measured:
        assert load_model_config(item.model).name == item.model


def test_reported_bandwidth_is_below_that_of_the_memory():
    references = load_gpus()
    for item in references.measured:
        if item.reported_gb_per_s is not None:
            assert item.reported_gb_per_s < references.gpu(item.gpu).memory_bandwidth_gb_per_s.value


def test_a_step_takes_the_batch_over_the_tokens_per_second():
    item = load_gpus().measured[0].model_copy(update={"batch": 4, "tokens_per_s": 400.0})
    assert item.step_ns == 10e6


def test_an_unknown_key_is_refused_with_the_nearest(tmp_path):
    path = _changed(tmp_path, lambda content: content["gpus"][0].update(board_power=1))
    with pytest.raises(UserError, match="did you mean board_power_w"):
        load_gpus(path)


def test_a_figure_without_a_source_is_refused(tmp_path):
    path = _changed(tmp_path, lambda content: content["gpus"][1]["logic_mm2"].pop("source"))
    with pytest.raises(UserError, match=r"gpus\.1\.logic_mm2\.source"):
        load_gpus(path)


def test_a_measurement_on_an_unknown_gpu_is_refused(tmp_path):
    path = _changed(tmp_path, lambda content: content["measured"][0].update(gpu="h100-sxn"))
    with pytest.raises(UserError, match="did you mean h100-sxm"):
        load_gpus(path)


def test_an_unknown_format_and_a_negative_figure_are_refused(tmp_path):
    for key, value in (("weights", "int3"), ("tokens_per_s", -1)):
        path = _changed(tmp_path, lambda content, key=key, value=value: content["measured"][0].update({key: value}))
        with pytest.raises(UserError, match=key):
            load_gpus(path)


def test_two_gpus_of_one_name_are_refused(tmp_path):
    path = _changed(tmp_path, lambda content: content["gpus"].append(content["gpus"][0]))
    with pytest.raises(UserError, match="a100-80gb twice"):
        load_gpus(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"none\.yaml"):
        load_gpus(tmp_path / "none.yaml")
