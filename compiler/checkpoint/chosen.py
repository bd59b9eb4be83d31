"""What weights and cache of a model are stored as: by its checkpoint where that says so, by the user otherwise."""

from compiler.workload import StoredFormats
from configs.errors import UserError
from configs.number_format import STORAGE, NumberFormat
from configs.quantization import Quantization


def chosen_formats(
    quantization: Quantization | None, weights: NumberFormat | None = None, cache: NumberFormat | None = None
) -> StoredFormats:
    """Return the formats of a model; None for `weights` or `cache` takes the checkpoint's, or else bf16.

    Raises UserError where weights are asked for that a quantised checkpoint does not have, and for one whose groups no
    device has. A cache is made anew, so that any format of it may be asked for.
    """
    if quantization is None:
        return StoredFormats(weights or NumberFormat.BF16, cache or NumberFormat.BF16)
    if weights not in (None, quantization.weights):
        raise UserError(
            where="--weights",
            expected=f"{quantization.weights}, which the checkpoint stores",
            found=str(weights),
            way_out="leave it out, or give the unquantised checkpoint",
        )
    if quantization.lowered is None:
        known = STORAGE[quantization.weights].group
        raise UserError(
            where="checkpoint",
            expected=f"groups of {known or 'all'} inputs, which devices have for {quantization.weights}",
            found=str(quantization.group or "one group of all inputs"),
            way_out="give the unquantised checkpoint and choose a format with --weights",
        )
    return StoredFormats(quantization.weights, cache or quantization.cache or NumberFormat.BF16)
