"""How well the installed transformers is covered: every decoder-only type imported, raised and executed, or why not.

A type counts as covered where its tiny model imports, no memory-bound work is left unmatched, and the interpreted graph
follows eager transformers over all steps: at batch 1 and 3 in float64 and, with the experts pinned, in float32 and in
bfloat16. Roundings of bfloat16 add up differently in every model, so that its limit is measured too: what eager
bfloat16 differs by from eager float32 on the same weights and experts.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from compiler.huggingface.comparison import compare, random_tokens
from compiler.huggingface.quiet import quiet
from compiler.huggingface.reference import decode_reference
from compiler.huggingface.routes import pinned_routes, recorded_routes
from compiler.huggingface.tiny import decoder_only_types, random_model, tiny_config
from configs.errors import UserError

# Of the largest logit of a step; of bfloat16, times what eager itself loses by rounding, which the graph may lose once
# more, and in another direction.
LIMITS = {"float64": 1e-9, "float32": 1e-4, "bfloat16": 3.0}
STEPS = 72
TYPES_PER_PROCESS = 8


@dataclass(frozen=True, slots=True)
class Coverage:
    """One type: the largest differences to eager transformers, what is unmatched, and the first thing in the way."""

    model_type: str
    imports: bool
    unmatched: int
    unmatched_bytes: int
    float64: float | None
    float64_batch_3: float | None
    float32: float | None
    bfloat16: float | None
    operators: int
    seconds: float
    why: str

    @property
    def exact(self) -> bool:
        """Whether all differences are within their limits."""
        found = (self.float64, self.float64_batch_3, self.float32, self.bfloat16)
        limits = (LIMITS["float64"], LIMITS["float64"], LIMITS["float32"], LIMITS["bfloat16"])
        return all(one is not None and one <= limit for one, limit in zip(found, limits, strict=True))

    @property
    def covered(self) -> bool:
        """Whether the type imports, leaves nothing memory-bound unmatched, and is exact."""
        return self.imports and not self.unmatched and self.exact


def cover(model_type: str, steps: int = STEPS) -> Coverage:
    """Return the coverage of one type; whatever stands in its way is told in `why`."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {field.name: None for field in fields(Coverage)}
    found |= {"model_type": model_type, "imports": False, "unmatched": 0, "unmatched_bytes": 0, "operators": 0}
    found |= {"seconds": 0.0, "why": ""}
    runs = (
        ("float64", torch.float64, 1),
        ("float64_batch_3", torch.float64, 3),
        ("float32", torch.float32, 1),
        ("bfloat16", torch.bfloat16, 1),
    )
    for name, dtype, batch in runs:
        try:
            with quiet():
                result = compare(model_type, steps, batch, dtype)
        except Exception as error:  # noqa: BLE001
            # Any model's code may fail in ways of its own, which is what the table is to tell.
            found["why"] = f"{name}: {_reason(error)}"
            break
        found[name] = result.largest_difference
        if dtype is torch.bfloat16:
            found[name] /= eager_rounding(model_type, steps)
        found["seconds"] += round(result.import_seconds + result.execution_seconds, 1)
        if name == "float64":
            found |= {"imports": True, "operators": len(result.graph.ops)}
            found |= {"unmatched": len(result.unmatched), "unmatched_bytes": result.unmatched_bytes}
            if result.unmatched:
                found["why"] = f"unmatched: {result.unmatched[0].calls} at {_short(result.unmatched[0].source)}"
    return Coverage(**found)


def eager_rounding(model_type: str, steps: int) -> float:
    """Return how far eager bfloat16 is from eager float32 with the same weights and experts, of the largest logit."""
    config = tiny_config(model_type)
    rounded, plain = random_model(config, 0, torch.bfloat16), random_model(config, 0, torch.float32)
    plain.load_state_dict({name: value.float() for name, value in rounded.state_dict().items()})
    token_ids = random_tokens(rounded, 1, steps)
    with recorded_routes(rounded) as routes:
        found = decode_reference(rounded, token_ids).float()
    with pinned_routes(plain, routes):
        expected = decode_reference(plain, token_ids)
    largest = expected.abs().amax(-1, keepdim=True)
    return float(((found - expected).abs() / largest).max())


def cover_each(types: Sequence[str], steps: int, workers: int) -> Iterator[Coverage]:
    """Yield the coverage of several types in order, by processes that serve few each: models leave memory behind.

    The processes are begun anew by hand: a pool that replaces its own (`max_tasks_per_child`) can wait forever.
    """
    if workers <= 1:
        yield from (cover(one, steps) for one in types)
        return
    for start in range(0, len(types), TYPES_PER_PROCESS * workers):
        some = types[start : start + TYPES_PER_PROCESS * workers]
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield from pool.map(cover, some, [steps] * len(some))


def known_types(wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the types asked for, or all; raises UserError for one that is no decoder-only type."""
    known = decoder_only_types()
    for one in wanted:
        if one not in known:
            raise UserError(
                where="--coverage",
                expected="decoder-only types of the installed transformers",
                found=one,
                way_out="leave the types out to try all of them",
            )
    return tuple(wanted) or known


def coverage_table(rows: Sequence[Coverage]) -> str:
    """Return the rows as a Markdown table, with what they add up to before it."""
    imported, covered = sum(row.imports for row in rows), sum(row.covered for row in rows)
    lines = [
        f"{len(rows)} types: {imported} import, {covered} raised without remainder and exact.",
        "",
        "| type | imports | unmatched | float64 | batch 3 | float32 | bfloat16, of eager's own | operators | why not |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        numbers = (row.float64, row.float64_batch_3, row.float32)
        shown = ["" if one is None else f"{one:.0e}" for one in numbers]
        shown.append("" if row.bfloat16 is None else f"{row.bfloat16:.2f}")
        why = row.why.replace("|", "/")
        imports = "yes" if row.imports else "no"
        cells = (row.model_type, imports, str(row.unmatched or ""), *shown, str(row.operators), why)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def as_record(row: Coverage) -> dict[str, Any]:
    """Return a row as JSON can hold it, with what it comes to."""
    return asdict(row) | {"exact": row.exact, "covered": row.covered}


def _reason(error: Exception) -> str:
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {_short(first)}"[:300]


def _short(text: str) -> str:
    """Return text with paths cut to the part that is the same on every machine."""
    return " ".join(part.split("site-packages/")[-1] for part in text.replace(str(Path.cwd()), ".").split())
