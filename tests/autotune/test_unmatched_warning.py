"""Is a user told when a model that is imported for a run has work that no operator describes?"""

import pytest

from autotune import problem_spec
from compiler.graph_text import parse_graph
from compiler.importing import ImportedModel

TEXT = """graph unknown
input %token_ids : i64[1]
input %position : i64[1]
weight %matrix : bf16[64,64]
%x : bf16[1,64] = compute(%position, %matrix) {role="other", body="BODY"}
output %x
"""
PRODUCT = (
    "t0 = aten.unsqueeze.default($0, 0); t1 = aten._to_copy.default(t0, dtype=bf16); "
    "t2 = aten.expand.default(t1, [1, 64]); t3 = aten.mm.default(t2, $1); return t3"
)


@pytest.mark.parametrize(("body", "lines"), [(PRODUCT, 1), ("t0 = aten.index.Tensor($1, [$0]); return t0", 0)])
def test_work_that_is_not_understood_is_one_line_of_warning(
    body: str, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ImportedModel("unknown", parse_graph(TEXT.replace("BODY", body)), {})
    monkeypatch.setattr("compiler.importing.import_named", lambda *_: found)
    problem_spec._imported.cache_clear()
    problem_spec._imported("some/model", 1, 8, ())
    problem_spec._imported.cache_clear()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    assert all("8,192 B" in line and "explore import some/model" in line for line in said)
