"""Blocks of commands: sums of affine operands, and repetitions as loops."""

from collections.abc import Callable

from simulator.isa import Affine, Instruction, Loop

Block = tuple[Instruction, ...]


def plus(left: Affine, right: Affine) -> Affine:
    """Return the sum of two affine operands."""
    terms = dict(left.terms)
    for depth, coefficient in right.terms:
        terms[depth] = terms.get(depth, 0) + coefficient
    return Affine(left.constant + right.constant, tuple(sorted((d, c) for d, c in terms.items() if c)))


def times(operand: Affine, factor: int) -> Affine:
    """Return an affine operand scaled by an int."""
    terms = tuple((depth, coefficient * factor) for depth, coefficient in operand.terms if factor)
    return Affine(operand.constant * factor, terms)


def variable(depth: int) -> Affine:
    """Return the loop variable of the loop at a depth."""
    return Affine(0, ((depth, 1),))


def repeat(count: int, depth: int, body: Callable[[Affine, int], Block]) -> Block:
    """Emit `count` repetitions of body(index, depth inside): nothing, the body itself, or a loop."""
    if count <= 0:
        return ()
    if count == 1:
        return body(Affine(0), depth)
    return (Loop(count, body(variable(depth), depth + 1)),)


def repeat_peeled(count: int, depth: int, body: Callable[[Affine, int, bool], Block]) -> Block:
    """Emit repetitions whose last one is told that it is the last."""
    if count <= 0:
        return ()
    head = repeat(count - 1, depth, lambda index, inside: body(index, inside, False))
    return (*head, *body(Affine(count - 1), depth, True))
