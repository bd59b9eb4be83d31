"""How much of a space is legal and what makes the rest illegal, from a uniform sample: what an architect asks first."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from autotune.layout import Layout
from autotune.problem import Problem
from autotune.sampling import uniform

SAMPLE = 2000
EXPLAINED = 200
_AMOUNT = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """One reason with its amounts left out, in how many explained designs it occurs, and one example with amounts."""

    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Of `sampled` uniform designs `legal` were legal; the reasons of `explained` others, most frequent first."""

    sampled: int
    legal: int
    explained: int
    reasons: tuple[ReasonCount, ...]


def feasibility(problem: Problem, layout: Layout, rng: np.random.Generator) -> Feasibility:
    """Sample designs uniformly and count the reasons of those that are illegal."""
    codes = uniform(layout, rng, SAMPLE)
    legal = problem.legal(codes)
    illegal = codes[~legal][:EXPLAINED]
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for design in illegal:
        for reason in {_AMOUNT.sub("N", text): text for text in problem.reasons(design)}.items():
            counts[reason[0]] += 1
            examples.setdefault(*reason)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    reasons = tuple(ReasonCount(reason, count, examples[reason]) for reason, count in ranked)
    return Feasibility(SAMPLE, int(legal.sum()), len(illegal), reasons)
