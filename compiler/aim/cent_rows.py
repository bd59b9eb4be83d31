"""CENT's memory map: which rows of every bank hold what, one region after the other from row 0.

Source: CENT, ASPLOS'25, cent_simulation/Llama.py (memory_mapping); names are those of what a region holds.
"""

from dataclasses import dataclass

from compiler.aim.block import BlockShape, Placement
from compiler.geometry import ceil_div
from configs.errors import UserError

CENT_CACHE_TOKENS = 4096
"""Tokens that CENT reserves cache rows for (its option max-seq-len)."""


@dataclass(frozen=True, slots=True)
class CentRows:
    """First row of each region, and the row behind the last."""

    x: int
    x_copy: int
    attention_norm: int
    query_weight: int
    key_weight: int
    value_weight: int
    query: int
    key: int
    key_cache: int
    scores: int
    value_cache: int
    attention_out: int
    output_weight: int
    residual: int
    residual_copy: int
    mlp_norm: int
    gate_weight: int
    up_weight: int
    gate: int
    up: int
    gate_sigmoid: int
    mlp_vector: int
    down_weight: int
    mlp_out: int
    end: int


def cent_rows(shape: BlockShape, place: Placement, cache_tokens: int, long_vectors: bool) -> CentRows:
    """Return the map; with `long_vectors`, element-wise operands of more than a row get the rows they need."""
    vector, gate, rotary = _vector_rows(shape, place) if long_vectors else (1, 1, 1)
    norm = max(_rows(shape.hidden // place.banks, place), vector)
    residual = max(_rows(shape.hidden // place.block_banks, place), vector)
    weight = {
        "query_weight": _weight_rows(shape.query_width, shape.hidden, place),
        "key_weight": _weight_rows(shape.kv_width, shape.hidden, place),
        "value_weight": _weight_rows(shape.kv_width, shape.hidden, place),
        "output_weight": _weight_rows(shape.hidden, shape.query_width, place),
        "gate_weight": _weight_rows(shape.intermediate, shape.hidden, place),
        "up_weight": _weight_rows(shape.intermediate, shape.hidden, place),
        "down_weight": _weight_rows(shape.hidden, shape.intermediate, place),
    }
    token_rows = ceil_div(cache_tokens, place.row_values)
    sizes = {
        "x": norm,
        "x_copy": norm,
        "attention_norm": norm,
        "query": rotary,
        "key": rotary,
        "key_cache": ceil_div(cache_tokens, place.block_banks) * ceil_div(shape.kv_width, place.row_values),
        "scores": token_rows * ceil_div(shape.heads, place.channels * (place.banks // 4)),
        "value_cache": token_rows * ceil_div(shape.kv_heads, place.channels) * ceil_div(shape.head_dim, place.banks),
        "attention_out": _rows(shape.query_width // place.block_banks, place),
        "residual": residual,
        "residual_copy": residual,
        "mlp_norm": residual,
        "gate": _rows(shape.intermediate // place.block_banks, place),
        "up": _rows(shape.intermediate // place.block_banks, place),
        "gate_sigmoid": max(_rows(shape.intermediate // place.block_banks, place), gate),
        "mlp_vector": ceil_div(shape.intermediate, place.row_values * place.banks),
        "mlp_out": _rows(shape.hidden // place.block_banks, place),
        **weight,
    }
    first, row = {}, 0
    for name in CentRows.__slots__[:-1]:
        first[name] = row
        row += sizes[name]
    return CentRows(**first, end=row)


def require_rows(rows: CentRows, place: Placement) -> None:
    """Raise UserError when the map needs more rows than a bank has."""
    if rows.end > place.rows:
        raise UserError(
            where=f"--channels {place.channels}",
            expected=f"at most {place.rows} rows in every bank",
            found=f"{rows.end} rows for one block",
            way_out="place the block on more channels or shorten the context",
        )


def _vector_rows(shape: BlockShape, place: Placement) -> tuple[int, int, int]:
    """Return the rows of an activation, a gate product and a rotary operand in the banks of one bank group."""
    groups = place.block_banks // 4
    vector, gate, rotary = (
        ceil_div(width, groups) for width in (shape.hidden, shape.intermediate, 2 * shape.query_width)
    )
    return _rows(vector, place), _rows(gate, place), _rows(rotary, place)


def _rows(values: int, place: Placement) -> int:
    return max(int(ceil_div(values, place.row_values)), 1)


def _weight_rows(outputs: int, inputs: int, place: Placement) -> int:
    return int(ceil_div(outputs, place.block_banks) * ceil_div(inputs, place.row_values))
