"""Device files of units with microkernels: what their instruction set fixes cannot be said otherwise."""

import pytest
import yaml

from configs.device import HARDWARE_FOLDER, load_device
from configs.errors import UserError


def _changed(tmp_path, section, name="hbm-pim", **values):
    content = yaml.safe_load((HARDWARE_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    if section:
        content.setdefault(section, {}).update(values)
    else:
        content.update(values)
    path = tmp_path / "device.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("section", "values", "expected"),
    [
        ("unit", {"accumulators": 4}, "key unit.accumulators: expected 8, which"),
        ("unit", {"global_buffer_bytes": 512}, "key unit.global_buffer_bytes: expected 256, which"),
        ("unit", {"lanes": 8}, "key unit.lanes: expected 16, which"),
        ("unit", {"vectors_per_multiply": 2}, "key unit.vectors_per_multiply: expected 1, which"),
        ("unit", {"microkernel_words": 8}, "key unit.microkernel_words: expected 16 at least"),
        ("unit", {"microkernel_words": 0}, "key unit.arithmetic: expected the arithmetic of units in lock-step"),
        ("unit", {"formats": ["bf16", "int8", "fp8"]}, "found int8, fp8"),
        (
            "unit",
            {"arithmetic": "bf16-products-fp32-tree-fp32-accumulate-bf16-readout"},
            "key unit.arithmetic: expected fp16-after-every-operation",
        ),
        ("organisation", {"row_bytes": 2048}, "key organisation.row_bytes: expected 1024, which"),
        ("organisation", {"row_buffers": 2}, "key organisation.row_buffers: expected 1, which"),
        ("organisation", {"bank_groups": 1, "banks_per_group": 5}, "even number of banks, 4 at least"),
        ("organisation", {"bank_groups": 1, "banks_per_group": 2}, "found 2 banks"),
        ("organisation", {"rows": 128}, "expected more than the 128 rows that hold results and registers, found 128"),
        ("structure", {"gang": 2}, "key structure.gang: expected 1"),
        ("structure", {"pim_level": "buffer-die"}, "key structure.pim_level: expected bank"),
        ("", {"knobs": ["channels", "lanes"]}, "the rest is fixed where units run microkernels, found lanes"),
        ("", {"knobs": []}, "found none named, which means all of them"),
        ("", {"knobs": ["chanels"]}, "found chanels; did you mean channels?"),
    ],
)
def test_what_the_instruction_set_fixes_is_named_with_what_was_found(tmp_path, section, values, expected):
    with pytest.raises(UserError, match=r"device\.yaml, key") as raised:
        load_device(_changed(tmp_path, section, **values))
    assert expected in str(raised.value)


def test_a_knob_that_there_is_none_of_is_named_for_units_in_lock_step_too(tmp_path):
    with pytest.raises(UserError, match="found lane; did you mean lanes"):
        load_device(_changed(tmp_path, "", "gddr6-aim", knobs=["lane"]))


def test_other_channels_rows_and_banks_are_free(tmp_path):
    values = {"channels": 3, "rows": 129, "bank_groups": 2, "banks_per_group": 3}
    assert load_device(_changed(tmp_path, "organisation", **values)).organisation.banks == 6


@pytest.mark.parametrize("field", ["lanes", "accumulators", "global_buffer_bytes", "microkernel_words", "formats"])
def test_both_tables_describe_the_same_unit(field):
    physical, compat = load_device("hbm-pim").unit, load_device("hbm-pim-compat").unit
    assert getattr(physical, field) == getattr(compat, field)
