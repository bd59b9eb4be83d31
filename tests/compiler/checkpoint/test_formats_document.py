"""Does docs/formats.md say what the formats are?"""

from pathlib import Path

import pytest

from compiler.checkpoint.part_bytes import cache_bytes, weight_bytes
from configs.number_format import STORAGE, NumberFormat

DOCUMENT = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("number_format", [item for item in NumberFormat if STORAGE[item].bits < 16])
def test_bits_of_a_value_are_those_that_are_counted(number_format: NumberFormat) -> None:
    row = next(line for line in DOCUMENT.splitlines() if line.startswith(f"| `{number_format}` |"))
    bits = weight_bytes(4096, 4096, number_format).total * 8 / 4096**2
    assert f"{bits:.4f}" == row.split("|")[6].strip()


def test_bits_of_caches_are_those_that_are_counted() -> None:
    coded = 100_000
    int4 = cache_bytes(1, coded + 128, 128, NumberFormat.INT4).total - 128 * 128 * 2
    int8 = cache_bytes(1, coded, 128, NumberFormat.INT8).total
    assert (int4 * 8 / coded / 128, int8 * 8 / coded / 128) == (4.5, 8.25)
    assert "| 8.25 |" in DOCUMENT
    assert "| 4.5; the last 128 tokens 16 |" in DOCUMENT
