"""Does a body compute what its text says, in the precision that it asks for?"""

import pytest
import torch

from compiler.body_execution import run_body


@pytest.mark.parametrize(
    ("precision", "expected"),
    [(torch.float64, torch.float64), (torch.float32, torch.float32), (torch.bfloat16, torch.float32)],
)
def test_what_a_body_widens_is_never_narrowed_again(precision: torch.dtype, expected: torch.dtype) -> None:
    text = "t0 = aten._to_copy.default($0, dtype=f32); t1 = aten.cos.default(t0); return t1"
    (found,) = run_body(text, [torch.tensor([1.0], dtype=precision)], precision)
    assert found.dtype is expected
    assert found.item() == pytest.approx(0.5403023058681398, rel=1e-6)
