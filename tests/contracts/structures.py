"""The structures, each with potentials and an enumeration of its labelings."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import Counts, Potentials
from crfkit.data import Forest
from crfkit.structures import (
    Chain,
    SegmentOffset,
    SemiMarkov,
    SparseChain,
    Structure,
    Tree,
    TreePotentials,
)
from tests.extensions.ring import Ring
from tests.oracles import (
    add_path,
    all_segmentations,
    chain_paths,
    codes_of,
    filled_up,
    random_scores,
    random_segment_scores,
    segment_parts,
    table_of,
    thinned,
)

# A code for each token, the score, and what to do to add an amount to the parts of the labeling.
Labeling = tuple[tuple[int, ...], float, Callable[[Counts, float], None]]


class Case(NamedTuple):
    """A structure and what is known of it otherwise.

    Attributes
    ----------
    structure : Structure
        To be tested.
    potentials : callable
        ``potentials(seed, lengths, forbidden, own)`` draws potentials of three labels, of which a
        share is forbidden, but not so that a sequence has no labeling; with `own`, the tokens have
        tables of transitions of their own, where there are such.
    labelings : callable
        ``labelings(potentials, s)`` lists all labelings of a sequence.
    """

    structure: Structure
    potentials: Callable[[int, list[int], float, bool], Potentials]
    labelings: Callable[[Potentials, int], list[Labeling]]


def _chain(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
    return random_scores(seed, lengths, 3, forbidden=forbidden, shared_tables=own, scale=2.0)


def _labelings(scores: Potentials, s: int) -> list[Labeling]:
    def adder(path: tuple[int, ...]) -> Callable[[Counts, float], None]:
        return lambda out, amount: add_path(scores, s, path, amount, out)

    return [(path, score, adder(path)) for path, score in chain_paths(scores, s)]


SPARSE = SparseChain([0, 0, 1, 2], [0, 2, 1, 0], 3)


def _sparse(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
    return thinned(random_scores(seed, lengths, 3, forbidden=forbidden, scale=2.0), SPARSE)


def _sparse_labelings(scores: Potentials, s: int) -> list[Labeling]:
    dense = filled_up(scores, SPARSE)

    def adder(path: tuple[int, ...]) -> Callable[[Counts, float], None]:
        def add(out: Counts, amount: float) -> None:
            pair = np.zeros(dense.pair.shape)
            add_path(dense, s, path, amount, Counts(out.unary, pair))
            out.pair[0] += pair[0, SPARSE.source, SPARSE.target]

        return add

    return [(path, score, adder(path)) for path, score in chain_paths(dense, s)]


def _segments(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
    return random_segment_scores(seed, lengths, 3, 3, forbidden=forbidden, own_steps=own)


def _segmentations(structure: Structure) -> Callable[[Potentials, int], list[Labeling]]:
    def listed(scores: Potentials, s: int) -> list[Labeling]:
        def adder(path: list) -> Callable[[Counts, float], None]:
            def add(out: Counts, amount: float) -> None:
                for kind, place in segment_parts(scores, s, path):
                    getattr(out, kind)[place] += amount

            return add

        found = all_segmentations(structure.with_offset(scores), s)
        return [(tuple(codes_of(path, 3)), score, adder(path)) for path, score in found]

    return listed


def _offset(soft: bool) -> SemiMarkov:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) if soft else np.zeros(shape) for shape in ((3, 3), (3, 3))]
    arrays[0][1, 2] = arrays[1][2, 1] = -np.inf
    return SemiMarkov(SegmentOffset(*arrays))


def _around(scores: Potentials, s: int) -> list[Labeling]:
    """The labelings of a chain, and the transition from the last token to the first."""
    start, end = (int(place) for place in scores.offsets[s : s + 2])

    def closed(path: tuple[int, ...], score: float, add: Callable) -> Labeling:
        place = (table_of(scores, start), path[-1], path[0])

        def add_closed(out: Counts, amount: float) -> None:
            add(out, amount)
            out.pair[place] += amount

        return path, score + float(scores.pair[place]), add_closed

    chain = _labelings(scores, s)
    return chain if end - start < 2 else [closed(*labeling) for labeling in chain]


def _forest(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
    chain, rng = _chain(seed, lengths, forbidden, own), np.random.default_rng(seed)
    forest = random_forest(rng, lengths)
    return TreePotentials(*chain, *forest.arrays)


def random_forest(rng: np.random.Generator, lengths: list[int]) -> Forest:
    """Draw a forest: parents may come later in the sequence."""
    parents = []
    for length in lengths:
        order, found = rng.permutation(length).tolist(), [None] * length
        for place, t in enumerate(order):
            if place and rng.random() < 0.8:
                found[t] = order[rng.integers(place)]
        parents.append(found)
    return Forest.from_lists(parents)


def _forest_labelings(scores: Potentials, s: int) -> list[Labeling]:
    begin, end = (int(place) for place in scores.offsets[s : s + 2])

    def listed(labels: tuple[int, ...]) -> Labeling:
        parts = [("unary", (begin + t, label)) for t, label in enumerate(labels)]
        for t, up in enumerate(scores.parent[begin:end].tolist()):
            if up >= 0:
                parts.append(("pair", (table_of(scores, begin + t), labels[up], labels[t])))

        def add(out: Counts, amount: float) -> None:
            for kind, place in parts:
                getattr(out, kind)[place] += amount

        return labels, float(sum(getattr(scores, kind)[place] for kind, place in parts)), add

    return [listed(labels) for labels in product(range(3), repeat=end - begin)]


CASES = {
    "forest": Case(Tree(), _forest, _forest_labelings),
    "ring (an extension)": Case(Ring(), _chain, _around),
    "chain": Case(Chain(), _chain, _labelings),
    "chain over threads": Case(Chain(ThreadMap(1)), _chain, _labelings),
    "sparse chain": Case(SPARSE, _sparse, _sparse_labelings),
} | {
    name: Case(structure, _segments, _segmentations(structure))
    for name, structure in {
        "segments": SemiMarkov(),
        "segments with constraints": _offset(soft=False),
        "segments with an offset": _offset(soft=True),
    }.items()
}
