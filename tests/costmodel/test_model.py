"""The cost model: learns the residual to the bound, repeats itself, never beats the bound, and stays cheap."""

import numpy as np
import pytest

from costmodel.accuracy import accuracy, mean_error, pairwise, peak_at, top_recall
from costmodel.intervals import interval_half_width
from costmodel.model import DEFAULT_MODEL, CostModel, KindModel, Rows, train, train_kind


def synthetic_rows(count: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    features = rng.random((count, 8))
    bound_cycles = np.ceil(1000 * (1 + 9 * features[:, 0]))
    cycles = bound_cycles * (1 + features[:, 1] * features[:, 2] + 0.3 * features[:, 3])
    return Rows(features, np.ceil(cycles), bound_cycles)


def test_the_residual_is_learned_from_four_hundred_rows() -> None:
    seen, unseen = synthetic_rows(400, 0), synthetic_rows(1000, 1)
    model = train({"linear": seen}, seed=0)
    predicted = model.predict("linear", unseen.features, unseen.bound_cycles)
    found = accuracy(predicted, unseen.cycles)
    bound_only = accuracy(unseen.bound_cycles, unseen.cycles)
    assert found.pairwise > 0.97 > bound_only.pairwise
    assert found.mape < 0.03
    assert found.count == 1000


def test_features_that_cost_does_not_depend_on_have_hardly_any_importance() -> None:
    shares = train_kind(synthetic_rows(400, 0), 0).importance(8)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[1:4].sum() > 0.9


def test_the_same_rows_and_seed_give_the_same_predictions() -> None:
    rows = synthetic_rows(300, 0)
    first, second = (train_kind(rows, 3).predict_log_ratio(rows.features, rows.bound_cycles) for _ in range(2))
    assert (first == second).all()


def test_predictions_never_beat_the_bound() -> None:
    rows = synthetic_rows(200, 0)
    at_bound = Rows(rows.features, rows.bound_cycles * np.where(rows.features[:, 1] > 0.9, 3.0, 1.0), rows.bound_cycles)
    model = train({"linear": at_bound}, seed=0)
    assert (model.predict("linear", rows.features, rows.bound_cycles) >= rows.bound_cycles).all()


def test_a_kind_never_measured_is_predicted_at_its_bound() -> None:
    predicted = CostModel({}).predict("attention", np.zeros((2, 3)), np.array([5.0, 7.0]))
    assert predicted.tolist() == [5.0, 7.0]


def test_few_rows_give_their_mean_ratio() -> None:
    rows = Rows(np.zeros((2, 1)), np.array([200.0, 200.0]), np.array([100.0, 100.0]))
    model = train({"linear": rows}, seed=0)
    assert model.predict("linear", np.zeros((1, 1)), np.array([50.0])) == pytest.approx([100.0])
    assert KindModel(-1.0, None).predict_log_ratio(np.zeros((2, 1)), np.ones(2)).tolist() == [0.0, 0.0]


def test_training_takes_the_latest_rows_alone_however_many_there_are() -> None:
    rows, most = synthetic_rows(20_000, 0), DEFAULT_MODEL.most_rows
    every, latest = (train({"linear": known}, 0) for known in (rows, rows.picked(slice(-most, None))))
    asked = synthetic_rows(50, 1)
    found = [model.predict("linear", asked.features, asked.bound_cycles).tolist() for model in (every, latest)]
    assert found[0] == found[1]


def test_pairwise_counts_ties_half_and_skips_equal_measurements() -> None:
    measured = np.array([1.0, 2.0, 3.0, 3.0])
    # Five unequal pairs: (1,2) tied, (1,3) twice right, (2,3) twice right.
    assert pairwise(np.array([1.0, 1.0, 2.0, 3.0]), measured) == pytest.approx(4.5 / 5)
    assert pairwise(measured, measured) == 1.0
    assert pairwise(-measured, measured) == 0.0
    assert pairwise(np.ones(3), np.ones(3)) == 1.0


def test_peak_is_the_best_measured_over_the_best_chosen() -> None:
    predicted, measured = np.array([1.0, 2.0, 3.0]), np.array([20.0, 40.0, 10.0])
    assert peak_at(predicted, measured, 1) == 0.5
    assert peak_at(predicted, measured, 2) == 0.5
    assert peak_at(predicted, measured, 5) == 1.0


def test_recall_of_the_best_percent() -> None:
    measured = np.arange(1.0, 201.0)
    assert top_recall(measured, measured, 0.01) == 1.0
    swapped = measured.copy()
    swapped[[1, 2]] = swapped[[2, 1]]
    assert top_recall(swapped, measured, 0.01) == 0.5


def test_mean_error_is_a_fraction_of_the_measured() -> None:
    assert mean_error(np.array([90.0, 220.0]), np.array([100.0, 200.0])) == pytest.approx(0.1)


def test_interval_covers_the_stated_share_of_recent_errors() -> None:
    errors = np.linspace(-1.0, 1.0, 101)
    width = interval_half_width(errors, 0.9)
    assert 0.9 <= np.mean(np.abs(errors) <= width) <= 0.95
    assert interval_half_width(np.zeros(0), 0.9) == 0.0
