"""From a case whose numerics fail to the smallest one that still fails, so that a person can work it out by hand.

Each round tries to make the case smaller in one way at a time and keeps what still fails, until nothing does.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from compiler.attention import attention_geometry
from compiler.numerics.report import Failure, MismatchError
from compiler.numerics.small_sizes import FIRST_ROW, GROUPS, AttentionCase, LinearCase
from compiler.schedule import schedule_text
from simulator.functional_errors import FunctionalError

Case = TypeVar("Case", LinearCase, AttentionCase)
MOST_TRIES = 200


def outcome(case: Case, check: Callable[[Case], int]) -> tuple[int, Failure | None]:
    """Return how many kernels ran and None, or 0 and the first thing that went wrong."""
    try:
        return check(case), None
    except MismatchError as error:
        return 0, error.failure
    except FunctionalError as error:
        return 0, Failure("a program that cannot be executed", "the first such command", "a legal program", str(error))


def smallest(case: Case, failure: Failure, check: Callable[[Case], int]) -> tuple[Case, Failure]:
    """Return the smallest case found that fails, with its failure."""
    tries = 0
    progress = True
    while progress and tries < MOST_TRIES:
        progress = False
        for smaller in _smaller(case):
            tries += 1
            _, found = outcome(smaller, check)
            if found is not None:
                case, failure, progress = smaller, found, True
                break
    return case, failure


def case_text(case: LinearCase | AttentionCase) -> str:
    """Return what a case computes, in one line."""
    shape, pool = case.shape, case.pool
    where = f"{pool.channels} channels of {pool.banks} banks with {schedule_text(case.schedule)}"
    if isinstance(case, LinearCase):
        widths = " + ".join(str(part) for part in case.shape.parts)
        return (
            f"{widths} outputs, {case.shape.inputs} inputs, {case.shape.vectors} vectors of {shape.stored} on {where}"
        )
    own = case.shape
    return (
        f"{own.kv_heads} KV heads of {own.group} query heads, {own.head_dim} values, "
        f"{own.tokens} + {case.steps} tokens of {shape.stored} on {where}"
    )


def _smaller(case: Case) -> Iterator[Case]:
    if isinstance(case, LinearCase):
        return _smaller_linear(case)
    return _smaller_attention(case)


def _smaller_linear(case: LinearCase) -> Iterator[LinearCase]:
    shape, schedule = case.shape, case.schedule
    if schedule.reduction_split > 1:
        single = replace(schedule, reduction_split=1)
        part = -(-shape.inputs // schedule.reduction_split)
        pool = replace(case.pool, channels=GROUPS)
        yield _linear(replace(case, schedule=single, pool=pool, shape=replace(shape, inputs=part)))
    if len(shape.parts) > 1:
        yield _linear(replace(case, shape=replace(shape, parts=shape.parts[:1])))
    if shape.vectors > schedule.reuse:
        yield _linear(replace(case, shape=replace(shape, vectors=schedule.reuse)))
    if schedule.reuse > 1:
        own = replace(schedule, reuse=1)
        yield _linear(replace(case, schedule=own, shape=replace(shape, vectors=1)))
    for outputs in _less(max(shape.parts)):
        parts = tuple(min(part, outputs) for part in shape.parts)
        yield _linear(replace(case, shape=replace(shape, parts=parts)))
    step = shape.storage.group * schedule.reduction_split if shape.storage.group else 1
    for inputs in _less(shape.inputs // step):
        yield _linear(replace(case, shape=replace(shape, inputs=inputs * step)))
    if case.pool.banks > 1:
        yield _linear(replace(case, pool=replace(case.pool, banks=case.pool.banks // 2)))


def _linear(smaller: LinearCase) -> LinearCase:
    rows = FIRST_ROW + sum(item.rows for item in smaller.passes)
    return replace(smaller, pool=replace(smaller.pool, rows=rows))


def _smaller_attention(case: AttentionCase) -> Iterator[AttentionCase]:
    shape, schedule = case.shape, case.schedule
    for steps in _less(case.steps):
        yield _attention(replace(case, steps=steps))
    if schedule.token_split > 1:
        pool = replace(case.pool, channels=GROUPS)
        yield _attention(replace(case, schedule=replace(schedule, token_split=1), pool=pool))
    if schedule.token_blocks > 1:
        yield _attention(replace(case, schedule=replace(schedule, token_blocks=1)))
    if schedule.score_reuse * schedule.context_reuse > 1:
        own = replace(schedule, score_reuse=1, context_reuse=1)
        yield _attention(replace(case, schedule=own, shape=replace(shape, heads=shape.kv_heads)))
    if shape.queries > 1 and schedule.score_reuse * schedule.context_reuse == 1:
        yield _attention(replace(case, shape=replace(shape, queries=1)))
    for tokens in _less(shape.tokens):
        yield _attention(replace(case, shape=replace(shape, tokens=max(tokens, schedule.token_split, shape.queries))))
    for dimensions in _less(shape.head_dim):
        yield _attention(replace(case, shape=replace(shape, head_dim=dimensions)))


def _attention(case: AttentionCase) -> AttentionCase:
    shape = replace(case.shape, capacity=case.shape.tokens + case.steps * case.shape.queries)
    rows = FIRST_ROW + int(attention_geometry(shape, case.schedule, case.pool).rows)
    return replace(case, shape=shape, pool=replace(case.pool, rows=rows))


def _less(value: int) -> Iterator[int]:
    """Yield smaller positive numbers: by a half, a quarter, one."""
    yield from sorted({number for number in (value // 2, value - value // 4, value - 1) if 0 < number < value})
