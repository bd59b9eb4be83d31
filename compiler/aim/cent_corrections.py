"""Where CENT's published trace generator asks for what the device cannot do, or does not do what it means.

Each correction can be applied alone, so that its effect is measured; with none the published traces come out line by
line. Found by checking the generator (CENT, ASPLOS'25, cent_simulation: Llama.py, TransformerBlock.py) against the
device: columns of a row, rows of a bank, channels of a block, meaning of the configuration registers.
"""

from enum import StrEnum


class Correction(StrEnum):
    """One difference between the published generator and a legal trace of the same mapping."""

    ROTARY_COLUMNS = "rotary columns"
    ROTARY_LOADS = "rotary loads"
    LONG_VECTORS = "long vectors"
    BLOCK_CHANNELS = "block channels"
    APPEND_COPIES = "append copies"
    APPEND_ROW = "append row"
    KEY_HEADS = "key heads"
    CACHE_ROOM = "cache room"
    CONFIGURATION = "configuration"


NO_CORRECTIONS: frozenset[Correction] = frozenset()
ALL_CORRECTIONS = frozenset(Correction)

EXPLANATIONS: dict[Correction, str] = {
    Correction.ROTARY_COLUMNS: "the rotary products multiply hidden/16 columns (256 for 7B) of a 64-column row; "
    "corrected: the columns that hold values",
    Correction.ROTARY_LOADS: "the rotary products are loaded by writes; corrected: by reads",
    Correction.LONG_VECTORS: "on few channels a vector's part in one bank exceeds a row, and the gate product's second "
    "part overwrites the buffer and an operand of the first; corrected: it goes on in the next row, row by row",
    Correction.BLOCK_CHANNELS: "a step that needs few channels of a block masks those at the front of the device; "
    "corrected: those at the front of each block",
    Correction.APPEND_COPIES: "the newest value is appended for the first block of the device only; "
    "corrected: for every block",
    Correction.APPEND_ROW: "one token after a full row (context 1025, 2049, ...) the newest value goes to the full "
    "row, at context 1 to the row before the cache; corrected: to the row of its token",
    Correction.KEY_HEADS: "key rows are counted by whole rows, so that a last, partly filled row is not appended, and "
    "heads that it lacks are scored; corrected: the heads there are",
    Correction.CACHE_ROOM: "rows are reserved for 4096 tokens whatever the context; corrected: for the context, in "
    "whole rows, where that is more",
    Correction.CONFIGURATION: "no configuration register is set, so that matrix products would multiply neighbouring "
    "banks and element-wise products one bank group; corrected: W CFR where the meaning changes",
}
"""What is wrong and what the corrected trace does instead."""
