"""The exact front that bounds prove is the front of all designs, and runs are measured against it."""

from collections.abc import Iterator

import numpy as np
import pytest

from autotune.enumerate import enumerate_legal
from autotune.learning import metrics_of
from autotune.pareto import nondominated
from experiments.search_quality import ground_truth
from experiments.search_quality.ground_truth import GroundTruth
from experiments.search_quality.outcomes import run
from tests.small_workloads import small_spec

FEW = {
    "hardware": (),
    "channels": (8, 32),
    "*.place": ("pim", "host"),
    "*.order": ("reload",),
    "*.registers": (32,),
    "*.merged": (1,),
    "*.preactivate": (1,),
    "*.segment_columns": (16,),
    "*.reduction_split": (1,),
    "*.reuse": (1,),
    "*.token_split": (4,),
    "*.token_blocks": (1,),
    "*.score_reuse": (1,),
    "*.context_reuse": (1,),
    "*.context_segment_columns": (16,),
}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroundTruth]:
    # Few at a time, so that most of these few designs are ruled out and not simulated.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ground_truth, "ROUND", 4)
        with GroundTruth(small_spec(**FEW), tmp_path_factory.mktemp("truth"), 1) as found:
            yield found


def test_the_proved_front_is_that_of_simulating_everything(truth: GroundTruth) -> None:
    designs = enumerate_legal(truth.problem)
    metrics = metrics_of([truth.problem.evaluate(codes) for codes in designs])
    front = metrics[nondominated(metrics)]
    assert sorted(map(tuple, truth.front_metrics.tolist())) == sorted(map(tuple, front.tolist()))
    assert truth.proof.legal_designs == len(designs) > truth.proof.simulated_for_the_proof


def test_a_proof_is_found_again(truth: GroundTruth) -> None:
    with GroundTruth(small_spec(**FEW), truth.folder.parent, 1) as again:
        assert again.proof == truth.proof


@pytest.mark.parametrize("strategy", ["ours", "no learned model", "random"])
def test_a_run_never_exceeds_the_exact_front(truth: GroundTruth, strategy: str) -> None:
    outcome = run(truth, strategy, 30, 0)
    assert len(outcome.evaluations) == 30
    assert outcome.hypervolume <= 1.0 + 1e-12
    assert (np.diff(outcome.hypervolumes) >= -1e-12).all()


def test_a_time_that_is_used_up_ends_a_run(truth: GroundTruth) -> None:
    outcome = run(truth, "random", 60, 0, allowance_s=10 * truth.proof.simulation_s)
    assert 0 < len(outcome.evaluations) <= 10
    assert outcome.simulation_s * len(outcome.evaluations) <= 10 * truth.proof.simulation_s
