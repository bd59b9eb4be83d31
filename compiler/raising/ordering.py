"""Puts things that read each other in order: each after what it reads, otherwise as they stand in the program."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush


def in_reading_order(reads: Sequence[set[int]], places: Sequence[int]) -> list[int]:
    """Return the numbers of things, each after those it reads, otherwise by place; without those that wait in a ring.

    `reads[number]` holds the numbers of what a thing reads, itself left out.
    """
    waits = [set(before) for before in reads]
    readers: list[list[int]] = [[] for _ in waits]
    for number, before in enumerate(waits):
        for one in before:
            readers[one].append(number)
    ready = [(places[number], number) for number, before in enumerate(waits) if not before]
    heapify(ready)
    ordered = []
    while ready:
        _, number = heappop(ready)
        ordered.append(number)
        for reader in readers[number]:
            waits[reader].discard(number)
            if not waits[reader]:
                heappush(ready, (places[reader], reader))
    return ordered
