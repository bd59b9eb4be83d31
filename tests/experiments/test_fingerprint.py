"""A cache of evaluations is named by what they depend on, no less and no more: the problem, and what computes them."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.search_quality import fingerprint
from tests.small_workloads import small_spec


def names_of(sources: set[Path]) -> set[str]:
    return {str(path.relative_to(fingerprint.ROOT)) for path in sources}


def test_compiler_and_simulator_count_and_the_cost_model_does_not() -> None:
    names = names_of(fingerprint.imported_sources(fingerprint.COMPUTES))
    assert {"compiler/chain.py", "compiler/matvec.py", "simulator/engine.py", "simulator/timeline.py"} <= names
    assert not any(name.startswith("costmodel/") for name in names)


def test_another_problem_has_another_name() -> None:
    spec = small_spec()
    others = [spec, replace(spec, routing_seed=1), replace(spec, devices=2), small_spec(channels=(8, 16))]
    assert len({fingerprint.fingerprint(other, other()) for other in others}) == len(others)


def test_layout_comments_and_docstrings_do_not_count_and_code_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = small_spec()
    problem, source = spec(), tmp_path / "computes.py"
    monkeypatch.setattr(fingerprint, "imported_sources", lambda _: {source})
    found = []
    for text in ('"""Says."""\nx = 1  # one\n', '"""Says more."""\n\nx = (1)\n', '"""Says."""\nx = 2\n'):
        source.write_text(text, encoding="utf-8")
        found.append(fingerprint.fingerprint(spec, problem))
    assert found[0] == found[1] != found[2]
