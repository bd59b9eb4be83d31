"""The record of a checkpoint's quantisation, and which of its formats devices store as they are."""

from dataclasses import dataclass, replace
from enum import StrEnum

from configs.number_format import STORAGE, NumberFormat, Storage

WHOLE = 0  # of a block's rows or columns: all of them


class Method(StrEnum):
    """Who wrote a checkpoint, by `quant_method`; it decides names and layouts of the tensors."""

    AWQ = "awq"
    GPTQ = "gptq"
    FP8 = "fp8"
    MXFP4 = "mxfp4"
    MODELOPT = "modelopt"
    COMPRESSED_TENSORS = "compressed-tensors"


@dataclass(frozen=True, slots=True)
class Quantization:
    """How the linear layers of a checkpoint are stored.

    `block` is the rows (outputs) and columns (inputs) that share a scale, WHOLE for all of them. `zero_points` says
    that each group has one in the file; `zero_offset` is added to a stored one, and `symmetric` says that all are the
    middle code. `power_of_two_scales` are e8m0. Modules whose names hold one of `not_converted` are as in the model
    before; `re:` begins a regular expression. `cache` is None where the checkpoint leaves the KV cache alone.
    """

    method: Method
    weights: NumberFormat
    block: tuple[int, int]
    zero_points: bool = False
    zero_offset: int = 0
    symmetric: bool = True
    power_of_two_scales: bool = False
    not_converted: tuple[str, ...] = ()
    cache: NumberFormat | None = None

    @property
    def group(self) -> int:
        """Values along the reduction that share a scale, WHOLE for all."""
        return self.block[1]

    @property
    def lowered(self) -> NumberFormat | None:
        """The format in which devices store the same values; None where they have no groups of this size.

        Rows of a block do not matter: every output has its own copy of its scales on a device.
        """
        return self.weights if self.group == STORAGE[self.weights].group else None

    @property
    def storage(self) -> Storage:
        """Bits of values, scales and zero points as the file groups them."""
        known = STORAGE[self.weights]
        if self.group == known.group:
            return known
        return replace(known, group=self.group)
