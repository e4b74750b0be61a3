"""How much is tried: so many random problems, so much of a product of choices.

``CRFKIT_PROBLEMS`` asks for more of all of it, and for products as a whole.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Hashable, Sequence
from itertools import combinations, groupby, product
from typing import Any

from hypothesis import settings

USUAL = 10
# On so many random problems each question is compared with enumeration; as many as one likes to
# wait for.
PROBLEMS = int(os.environ.get("CRFKIT_PROBLEMS", USUAL))
WHOLE = PROBLEMS > USUAL


def examples(count: int) -> settings:
    """Let hypothesis try so many examples, more where more problems are asked for."""
    return settings(max_examples=max(1, count * PROBLEMS // USUAL), deadline=None)


def in_turns(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return a pair for each of the longer ones, the others in turns; all pairs if asked for."""
    first, second = list(first), list(second)
    if WHOLE:
        return list(product(first, second))
    count = max(len(first), len(second))
    return [(first[i % len(first)], second[i % len(second)]) for i in range(count)]


def covering(rows: Sequence[Sequence[Hashable]]) -> list[int]:
    """Return the numbers of some rows, in which every two values that meet in a row meet.

    Greedy, by how many pairs a row is the first to have (Cohen, Dalal, Fredman and Patton 1997).
    """
    pairs = [set(combinations(enumerate(row), 2)) for row in rows]
    missing = set().union(*pairs)
    heap = [(-len(own), number) for number, own in enumerate(pairs)]
    heapq.heapify(heap)
    kept = []
    while missing:
        _, number = heapq.heappop(heap)
        gain = len(pairs[number] & missing)  # at most what it was
        if heap and gain and -gain > heap[0][0]:
            heapq.heappush(heap, (-gain, number))
        elif gain:
            missing -= pairs[number]
            kept.append(number)
    return sorted(kept)


def thin_out(items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split tests into those that are run, and those of products that are left out.

    Of a test over three or more sets of choices, so much is run that every two choices meet.
    """
    if WHOLE:
        return list(items), []
    kept, left = [], []
    for _, group in groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        same = list(group)
        chosen = set(covering(rows)) if (rows := _choices(same)) else range(len(same))
        for number, item in enumerate(same):
            (kept if number in chosen else left).append(item)
    return kept, left


def _choices(items: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the choices that each call of a test is made with, if there are three or more.

    One is of each list of parameters, whatever the number of names in it, or of a fixture; those
    of a fixture that are tuples are as many choices.
    """
    if len(items) < 5 or not all(hasattr(item, "callspec") for item in items):
        return []
    lists = [_names(mark) for mark in items[0].iter_markers("parametrize")]
    given = {name for names in lists for name in names}
    columns = [
        _numbered([tuple(id(item.callspec.params[name]) for name in names) for item in items])
        for names in lists
    ]
    for name in items[0].callspec.params.keys() - given:
        values = [item.callspec.params[name] for item in items]
        sizes = {len(value) if isinstance(value, tuple) else 0 for value in values}
        parts = values if len(sizes) == 1 and sizes != {0} else [(value,) for value in values]
        columns += [_numbered([*map(id, column)]) for column in zip(*parts, strict=True)]
    columns = sorted(column for column in columns if any(column))
    return list(zip(*columns, strict=True)) if len(columns) > 2 else []


def _names(mark: Any) -> list[str]:
    names = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _numbered(values: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]
