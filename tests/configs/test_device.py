"""Device files: every key is known, every expression resolves, and a mistake is one clear line."""

import pytest
import yaml

from configs.device import HARDWARE_FOLDER, built_in_devices, load_device
from configs.errors import UserError
from configs.expression import evaluate


def _changed(tmp_path, change):
    content = yaml.safe_load((HARDWARE_FOLDER / "gddr6-aim.yaml").read_text(encoding="utf-8"))
    change(content)
    path = tmp_path / "device.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", built_in_devices())
def test_every_built_in_device_loads(name):
    assert load_device(name).name == name


def test_unknown_key_is_refused_by_name(tmp_path):
    path = _changed(tmp_path, lambda content: content["unit"].update(lane=3))
    with pytest.raises(UserError, match=r"unit\.lane"):
        load_device(path)


def test_negative_value_is_refused(tmp_path):
    path = _changed(tmp_path, lambda content: content["link"].update(bandwidth_gb_per_s=-1))
    with pytest.raises(UserError, match=r"link\.bandwidth_gb_per_s"):
        load_device(path)


def test_constraint_with_an_unknown_parameter_is_refused(tmp_path):
    path = _changed(tmp_path, lambda content: content["constraints"].append(["bank", "ACT", "PRE", "nNONE + 1"]))
    with pytest.raises(UserError, match="nNONE"):
        load_device(path)


def test_unknown_device_names_the_nearest():
    with pytest.raises(UserError, match="did you mean gddr6-aim"):
        load_device("gddr6-am")


def test_file_that_is_no_yaml_is_refused(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text("a: [1", encoding="utf-8")
    with pytest.raises(UserError, match=r"broken\.yaml"):
        load_device(str(path))


def test_base_device_holds_sixteen_gib():
    assert load_device("gddr6-aim").organisation.capacity_bytes == 16 * 2**30


def test_expressions_are_sums_products_and_maxima():
    assert evaluate("max(a, 2 * b) - 3 + a", {"a": 5, "b": 4}) == 10


@pytest.mark.parametrize("expression", ["__import__('os')", "a.b", "a if b else c", "a /", "[a]"])
def test_expressions_are_nothing_else(expression):
    with pytest.raises(ValueError, match=r"expression|uses more"):
        evaluate(expression, {"a": 1, "b": 2, "c": 3})
