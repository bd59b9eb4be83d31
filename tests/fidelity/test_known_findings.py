"""Do known findings about processing in memory come out of the simulator? Directions, and figures where one is known.

Sources: AttAcc (ASPLOS'24) and its simulator, NeuPIMs (ASPLOS'24), the public AiM simulator; `docs/known_findings.md`
has the whole curves. Here sizes are reduced and the mapping is the overlapped one.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib.figure import Figure

from configs.structure import PimLevel
from experiments.known_findings import batch_reuse, pim_level, power_cap, row_buffers, row_size
from experiments.known_findings.measure import workload_of_model
from experiments.known_findings.row_size import Variant

OVERLAPPED = ("overlapped",)
# Few models are imported: one with one query head per KV head, at two batches.
MODEL, CONTEXT = "llama-2-7b", 2048
DUTY_POINTS = 0.3
# The share of attention that other simulators call matrix work differs by softmax and hand-over between channels.
LEVEL_TOLERANCE = 0.2


@pytest.fixture(scope="module", autouse=True)
def imported_models() -> Iterator[None]:
    """Models imported for these tests are not kept beyond them."""
    yield
    workload_of_model.cache_clear()


def test_attacc_multiplies_every_four_cycles_without_its_power_constraint_and_every_six_with_it() -> None:
    capped, free = power_cap.measure((100, 200), OVERLAPPED, MODEL, CONTEXT)
    print(power_cap.summary((capped, free)))
    assert (capped.column_cadence_cycles, free.column_cadence_cycles) == (6, 4)
    assert capped.latency_ms_per_token > 1.2 * free.latency_ms_per_token
    assert capped.power_average_w < free.power_average_w
    for row in (capped, free):
        assert row.multiply_power_w_per_channel <= row.mac_power_cap_w_per_channel


def test_a_second_row_buffer_speeds_up_attention_linear_operators_and_the_step_for_some_area() -> None:
    one, two = row_buffers.measure({MODEL: (CONTEXT,)}, OVERLAPPED)
    print(two)
    assert two.attention_cycles < one.attention_cycles
    assert two.attention_without_link_speedup > 1.2
    assert two.linear_speedup > 1.4
    assert two.step_speedup > 1.3
    assert 1.01 < two.area_mm2_per_device / one.area_mm2_per_device < 1.15


def test_row_by_row_gemv_on_aim_multiplies_56_6_percent_of_the_time() -> None:
    (found,) = (row for row in row_size.measure((2,)) if row.variant is Variant.FIXED)
    print(found)
    assert found.row_period_cycles == 226
    assert abs(found.duty_percent - row_size.KNOWN_DUTY_PERCENT) <= DUTY_POINTS


def test_duty_follows_the_closed_form_over_row_sizes_and_rises_with_them() -> None:
    rows = row_size.measure()
    for variant in Variant:
        duty = [row.duty_percent for row in rows if row.variant is variant]
        assert duty == sorted(duty)
    for row in rows:
        if row.variant is Variant.FIXED:
            assert np.isclose(row.duty_percent, row_size.closed_form_percent(row.columns_per_row))
    for laws, two in zip(_of(rows, Variant.LAWS), _of(rows, Variant.TWO_BUFFERS), strict=True):
        assert two.duty_percent > laws.duty_percent


def _of(rows: tuple[row_size.RowSizeRow, ...], variant: Variant) -> list[row_size.RowSizeRow]:
    return [row for row in rows if row.variant is variant]


def test_batches_pay_only_with_several_multiplies_for_each_column() -> None:
    one, one_batched, four, four_batched = batch_reuse.measure((1, 4), ((1, 2), (4, 2)), OVERLAPPED, MODEL)
    print(batch_reuse.summary((one, one_batched, four, four_batched)))
    assert one_batched.throughput_tokens_per_s < 1.6 * one.throughput_tokens_per_s
    assert four_batched.throughput_tokens_per_s > 2 * four.throughput_tokens_per_s
    assert four_batched.energy_typical_mj_per_token < 0.6 * one_batched.energy_typical_mj_per_token


def test_units_at_banks_beat_units_at_groups_which_beat_units_on_the_die() -> None:
    rows = pim_level.measure(("attacc",), OVERLAPPED)
    print(pim_level.summary(rows))
    for field in ("latency_ms_per_token", "energy_typical_mj_per_token", "attention_ms_per_token"):
        values = [getattr(row, field) for row in rows]
        assert values == sorted(values), field
    area = [row.area_mm2 for row in rows]
    assert area == sorted(area, reverse=True)
    known = pim_level.REFERENCE_ATTENTION_MS
    for row in rows[1:]:
        found = row.attention_without_link_ms_per_token / rows[0].attention_without_link_ms_per_token
        assert np.isclose(found, known[row.pim_level] / known[PimLevel.BANK], rtol=LEVEL_TOLERANCE)


def test_every_panel_can_be_drawn_from_its_rows() -> None:
    rows = row_size.measure((1, 2))
    axes = Figure().subplots()
    for panel in row_size.FINDING.panels:
        panel(axes, rows)
    assert axes.get_legend() is not None
