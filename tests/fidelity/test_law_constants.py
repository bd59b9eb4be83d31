"""Are the constants of the scaling laws what the figures behind them give, and do the laws keep what they must?

Every deviation is printed by `python -m experiments.law_fidelity`; the limit on the slope of row energy is 10 %.
"""

from dataclasses import replace

import pytest
import yaml

from configs.device import load_device
from configs.knobs import base_knobs
from configs.laws import CASES, Sourced, law_constants
from experiments.fit_laws import differences, fitted, main, nested, written
from experiments.law_fidelity import Row, energy_of, row_bases, rows, table
from simulator.laws.device import scaled_device

CONSTANTS = law_constants()
RISING = ("page_rcd", "page_activate", "subarray_rcd", "subarray_ras", "subarray_rp", "subarray_activate")
FALLING = ("bank_rcd", "bank_activate", "bank_read", "subarray_area")
FLAT = ("page_area",)  # a larger page saves decoders and costs wordlines: 2 % over the sweep
EVERY_CONSTANT: dict[str, Sourced] = {**CONSTANTS.curves, **CONSTANTS.bands, **CONSTANTS.links}


def test_the_file_holds_every_fitted_number() -> None:
    assert differences(fitted(), written(CONSTANTS)) == []


def test_the_check_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--check"])
    assert capsys.readouterr().out == f"configs/laws.yaml holds all {len(fitted())} fitted numbers\n"


def test_a_changed_number_and_an_unknown_point_are_told() -> None:
    file = written(CONSTANTS)
    place = "bands.activate_spacing_exponent.value.nominal"
    file[place] *= 1.001
    file["curves.page_rcd.points.16384"] = 90.0
    changed, unknown = differences(fitted(), file)
    assert changed.startswith(f"{place}: fitted 0.5146, in the file 0.515")
    assert unknown == "curves.page_rcd.points.16384: in the file, not fitted"


def test_a_difference_ends_with_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("experiments.fit_laws.fitted", lambda: {"bands.no_such_band.value.low": 1.0})
    with pytest.raises(SystemExit) as ended:
        main(["--check"])
    assert ended.value.code == 1
    assert "no_such_band" in capsys.readouterr().out


def test_what_is_printed_reads_back_as_the_fit(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert yaml.safe_load(capsys.readouterr().out) == nested(fitted())


def test_every_curve_has_its_sign() -> None:
    assert {*RISING, *FALLING, *FLAT} == set(CONSTANTS.curves)
    for name, curve in CONSTANTS.curves.items():
        knob, values = list(curve.points), list(curve.points.values())
        assert knob == sorted(knob), name
        if name in FLAT:
            assert max(values) <= 1.02 * min(values), name
        else:
            assert values == sorted(values, reverse=name in FALLING), name


@pytest.mark.parametrize("name", EVERY_CONSTANT)
def test_every_constant_says_what_it_is_and_where_it_is_from(name: str) -> None:
    constant = EVERY_CONSTANT[name]
    assert constant.source.strip()
    assert constant.unit.strip()
    assert constant.meaning.strip()


@pytest.mark.parametrize("name", [*CONSTANTS.curves, *CONSTANTS.bands])
def test_low_and_high_contain_the_nominal(name: str) -> None:
    band = CONSTANTS.curves[name].exponent if name in CONSTANTS.curves else CONSTANTS.bands[name].value
    assert band.low <= band.nominal <= band.high


def test_a_base_at_its_own_value_is_unchanged_in_every_case() -> None:
    for name, curve in CONSTANTS.curves.items():
        assert all(curve.ratio(point, point, case) == 1 for point in curve.points for case in CASES), name


def test_row_energy_has_the_swept_slope_on_every_technology() -> None:
    slopes = [row for row in rows() if row.section == "row energy, slope"]
    assert len(slopes) == len(row_bases())
    for row in slopes:
        print(f"{row.what}: {row.deviation:+.1%}")
        assert row.limit == 0.1
        assert row.kept, row


def test_every_required_deviation_is_kept() -> None:
    required = [row for row in rows() if row.limit is not None]
    assert {row.section for row in required} == {"row energy, slope", "plain die, per 8 Gb", "units of a die"}
    assert all(row.kept and row.inside for row in required)


def test_large_errors_stand_in_the_table() -> None:
    text = table(rows())
    assert "GDDR6-AiM to HBM2 (datasheet)          1573     2383     1509      828  pJ         +90.0%  no" in text


def test_a_broken_limit_is_called_so() -> None:
    row = Row("section", "what", "pJ", (1.0, 2.0, 3.0), 1.0, 0.1)
    assert not row.kept
    assert row.inside
    assert table([row]).endswith("10% BROKEN")


@pytest.mark.parametrize("row_bytes", [1024, 4096, 8192])
def test_the_device_that_the_laws_build_has_the_row_energy_of_the_table(row_bytes: int) -> None:
    base = load_device("gddr6-aim")
    built = scaled_device(base, replace(base_knobs(base), row_bytes=row_bytes))
    (row,) = [row for row in rows() if row.what == f"GDDR6-AiM at {row_bytes // 1024} KiB"]
    assert energy_of(built).activate_precharge_pj == pytest.approx(row.law[1])
