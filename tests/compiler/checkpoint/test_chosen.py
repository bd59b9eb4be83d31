"""Does a checkpoint's own format go before the user's choice, and is a contradiction told?"""

import pytest

from compiler.checkpoint.chosen import chosen_formats
from compiler.workload import StoredFormats
from configs.errors import UserError
from configs.number_format import NumberFormat
from configs.quantization import Method, Quantization

NVFP4 = Quantization(Method.MODELOPT, NumberFormat.NVFP4, (1, 16), cache=NumberFormat.FP8)
SMALL_GROUPS = Quantization(Method.AWQ, NumberFormat.AWQ_INT4, (1, 64), zero_points=True)


def test_an_unquantised_model_is_stored_as_the_user_chooses() -> None:
    assert chosen_formats(None) == StoredFormats(NumberFormat.BF16, NumberFormat.BF16)
    chosen = chosen_formats(None, NumberFormat.AWQ_INT4, NumberFormat.INT8)
    assert chosen == StoredFormats(NumberFormat.AWQ_INT4, NumberFormat.INT8)


def test_a_quantised_checkpoint_says_what_it_stores() -> None:
    assert chosen_formats(NVFP4) == StoredFormats(NumberFormat.NVFP4, NumberFormat.FP8)
    assert chosen_formats(NVFP4, NumberFormat.NVFP4, NumberFormat.BF16).cache is NumberFormat.BF16


def test_other_weights_than_those_of_the_checkpoint_are_refused() -> None:
    with pytest.raises(UserError, match=r"--weights: expected nvfp4, which the checkpoint stores, found int8"):
        chosen_formats(NVFP4, NumberFormat.INT8)


def test_groups_that_no_device_has_are_refused() -> None:
    with pytest.raises(UserError, match=r"expected groups of 128 inputs, which devices have for awq-int4, found 64"):
        chosen_formats(SMALL_GROUPS)
