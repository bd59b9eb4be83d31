"""Device files: every key is known, every expression resolves, and a mistake is one clear line."""

from pathlib import Path

import pytest
import yaml

from configs.commands import COMMAND_NAMES
from configs.constraint import Constraint
from configs.device import HARDWARE_FOLDER, Device, built_in_devices, load_device
from configs.errors import UserError
from configs.expression import evaluate
from simulator.dram_replay import pin_bytes_per_cycle, without_refresh
from simulator.isa import EVENT_KINDS, Kind
from simulator.timing_table import timing_table


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


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda content: content.update(timming={}), "did you mean timing?"),
        (lambda content: content.update(famly=content.pop("family")), "did you mean family?"),
        (lambda content: content.pop("family"), "key family: expected this key, found none"),
        (lambda content: content["organisation"].update(bankgroups=4), "did you mean bank_groups?"),
        (lambda content: content["area"]["unit_mm2"].update(nominl=1), "did you mean nominal?"),
        (
            lambda content: content["constraints"].append(["bank", "ACT", "PREE", "nRP"]),
            "found PREE; did you mean PRE?",
        ),
        (lambda content: content.update(command_ticks={"ACTT": 2}), "found ACTT; did you mean ACT?"),
        (lambda content: content.update(command_buses={"row": "ACT PREa", "column": "RD"}), "did you mean PREA?"),
        (lambda content: content.update(command_buses={"row": "ACT RD", "column": "RD"}), "found RD twice"),
        (lambda content: content.update(command_buses={"a": "ACT", "b": "RD", "c": "WR"}), "at most 2 buses"),
        (lambda content: content.update(scopes={"REFaB": "rank"}), "did you mean REFab?"),
        (lambda content: content.update(scopes={"REFab": "stack"}), "scopes.REFab"),
        (lambda content: content["constraints"].append(["row", "ACT", "PRE", "nRP"]), "level"),
        (lambda content: content["constraints"].append(["channel", "ACT", "PRE", "nRP", "sibling"]), "sibling"),
        (lambda content: content["timing"].pop("nRFC"), "names nRFC"),
        (
            lambda content: content["timing"].update(nREFI=200),
            "timing.nRFC: expected less than the refresh interval, 200, found 240",
        ),
        (lambda content: content.update(refresh={"policy": "all-bank", "postpone": 2}), "did you mean postponed?"),
        (lambda content: content.update(refresh="per-rank"), "refresh.policy"),
        (lambda content: content["timing"].update(nBL=0), "expected nBL"),
    ],
)
def test_a_mistake_in_a_device_file_is_named_with_the_nearest_name(tmp_path, change, expected):
    path = _changed(tmp_path, change)
    with pytest.raises(UserError, match=r"device\.yaml, key") as raised:
        load_device(path)
    assert expected in str(raised.value)


def test_refresh_needs_its_commands_in_the_table(tmp_path):
    content = yaml.safe_load((HARDWARE_FOLDER / "ddr5.yaml").read_text(encoding="utf-8")) | {"refresh": "per-bank"}
    path = tmp_path / "device.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(UserError, match="rows of REFpb"):
        load_device(str(path))


def test_commands_of_device_files_are_those_of_the_instruction_set():
    assert set(COMMAND_NAMES) == {kind.value for kind in Kind if kind not in EVENT_KINDS}


@pytest.mark.parametrize(
    ("name", "gb_per_s"), [("hbm2", 16.0), ("hbm3", 25.6), ("gddr6", 28.07), ("lpddr5", 12.8), ("ddr5", 19.23)]
)
def test_pins_of_a_pseudo_channel_move_what_the_standard_says(name, gb_per_s):
    device = load_device(name)
    assert pin_bytes_per_cycle(device) / device.nanoseconds(1) == pytest.approx(gb_per_s, abs=0.005)


def test_the_worked_example_of_the_documentation_loads(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "devices.md").read_text(encoding="utf-8")
    path = tmp_path / "toy.yaml"
    path.write_text(text.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    assert load_device(str(path)).name == "toy"


def test_refresh_rows_hold_only_where_the_controller_refreshes():
    device = load_device("hbm2")
    assert without_refresh(device).active_constraints == device.constraints
    assert device.active_constraints == (*device.constraints, *device.refresh_constraints)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda content: content["timing"].update(nRCD=True), "timing.nRCD"),
        (lambda content: content["organisation"].update(banks_per_group=10**9), "at most 1024 banks"),
        (lambda content: content["constraints"].append(["channel", "", "RD", "nBL"]), "constraints"),
        (lambda content: content["constraints"].append(["channel", "RD", "RD", "9999999*9999999"]), "beyond 1000000"),
        (lambda content: content["constraints"].append(["channel", "RD", "RD", "nBL" + "+nBL" * 999]), "constraints"),
        (lambda content: content["constraints"].append(["channel", "RD", "RD", "nBL", 10**9]), "constraints"),
    ],
    ids=["boolean", "banks", "no command", "overflow", "endless expression", "window"],
)
def test_values_that_cannot_be_meant_are_refused(tmp_path, change, expected):
    content = yaml.safe_load((HARDWARE_FOLDER / "ddr5.yaml").read_text(encoding="utf-8"))
    change(content)
    path = tmp_path / "device.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(UserError, match=expected):
        load_device(str(path))


@pytest.mark.parametrize(("text", "expected"), [("name: a\nname: b\n", "name a second time"), ("[" * 5000, "nested")])
def test_a_key_twice_and_endless_nesting_are_no_yaml(tmp_path, text, expected):
    path = tmp_path / "device.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=expected):
        load_device(str(path))


def test_a_row_below_what_its_command_addresses_is_refused():
    device = load_device("gddr6")
    deep = Constraint(level="bank", preceding=("PREA",), following=("ACT",), cycles="nRP")
    with pytest.raises(UserError, match="PREA, which addresses a whole channel"):
        timing_table(device.model_copy(update={"constraints": (*device.constraints, deep)}))


def test_refresh_needs_what_closes_and_opens_rows():
    content = yaml.safe_load((HARDWARE_FOLDER / "gddr6.yaml").read_text(encoding="utf-8"))
    content["constraints"] = [row for row in content["constraints"] if "PREA" not in f"{row[1]} {row[2]}".split()]
    content["constraints"] = [row for row in content["constraints"] if row[1] and row[2]]
    with pytest.raises(ValueError, match="PREA"):
        Device.model_validate(content)
