"""`explore baseline`: is our mapping of CENT's block faster by what we claim, and do the traces say the same?"""

import json
from functools import cache
from pathlib import Path

import pytest

from autotune.baseline_block import Baseline, compare_block
from autotune.commands.baseline import baseline_command
from configs.device import load_device
from configs.errors import UserError
from configs.model_config import load_model_config
from simulator.aim.replay import replay

DEVICE = load_device("gddr6-aim-compat")


@cache
def comparison(context: int) -> Baseline:
    return compare_block(load_model_config("llama-2-7b"), context, DEVICE, 8)


@pytest.mark.parametrize(("context", "banks", "with_outside"), [(128, 1.12, 1.10), (4096, 1.65, 1.55)])
def test_our_mapping_is_faster_by_at_least(context: int, banks: float, with_outside: float) -> None:
    found = comparison(context)
    ratios = found.cent.banks.total / found.ours.banks.total, found.cent.total / found.ours.total
    print(f"context {context}: {ratios[0]:.4f} in the banks, {ratios[1]:.4f} with accelerators and link")
    assert ratios[0] >= banks
    assert ratios[1] >= with_outside
    assert found.cent.total / found.cautious_total >= with_outside - 0.01


def test_a_correction_that_changes_nothing_has_no_effect_and_the_others_do() -> None:
    effects = {effect.correction.value: effect.cycles for effect in comparison(128).corrections}
    assert effects["rotary columns"] == -960
    assert effects["append row"] is None
    changed = comparison(128).cent.banks.total - comparison(128).published_cycles
    assert abs(changed - sum(cycles or 0 for cycles in effects.values())) < 200


def test_json_and_traces_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline_command(
        "llama-2-7b",
        context_length=17,
        channels=32,
        hardware=DEVICE.name,
        lanes=0,
        emit="aim",
        of="both",
        out=tmp_path / "block.trace.gz",
        json=True,
    )
    printed = json.loads(capsys.readouterr().out)
    assert printed["block_cycles"] == replay(Path(printed["traces"]["cent"]), DEVICE).cycles
    assert printed["tuned_block_cycles"] == replay(Path(printed["traces"]["ours"]), DEVICE).cycles
    assert printed["block_cycles_with_accelerators_and_links"] > printed["block_cycles"]
    assert sum(row["tuned_cycles"] for row in printed["operators"]) == printed["tuned_block_cycles"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mapping": "attacc"}, "expected one of cent"),
        ({"emit": "text"}, "expected one of aim"),
        ({"of": "theirs"}, "expected one of cent, ours, both"),
        ({"channels": 33}, "expected 1 to 32"),
        ({"model": "mixtral"}, "found experts"),
        ({"hardware": "hbm3"}, "without refresh"),
    ],
)
def test_mistakes_are_told(options: dict[str, object], message: str) -> None:
    given: dict[str, object] = {
        "model": "llama-2-7b",
        "mapping": "cent",
        "context_length": 16,
        "channels": 8,
        "hardware": DEVICE.name,
        "lanes": 0,
        "emit": "",
        "of": "both",
        "out": None,
        "json": False,
    }
    with pytest.raises(UserError, match=message):
        baseline_command(**(given | options))  # type: ignore[arg-type]
