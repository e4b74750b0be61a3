"""The structures, each with potentials and an enumeration of its labelings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import Counts, Potentials
from crfkit.constraints.global_rules import Before, Contiguous, Count
from crfkit.constraints.joint import JointAutomata
from crfkit.constraints.product import Product
from crfkit.data import Edges, Forest
from crfkit.graphs.potentials import GraphPotentials
from crfkit.graphs.structure import GraphStructure
from crfkit.structures import (
    Chain,
    SecondOrderChain,
    SecondOrderPotentials,
    SegmentOffset,
    SemiMarkov,
    SparseChain,
    Structure,
    Tree,
    TreePotentials,
)
from tests.constraints.targets import target_of
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
from tests.sampling import PROBLEMS

# A code for each token, the score, and what to do to add an amount to the parts of the labeling.
Labeling = tuple[tuple[int, ...], float, Callable[[Counts, float], None]]


class Case(NamedTuple):
    """A structure and what is known of it otherwise.

    Attributes
    ----------
    structure : Structure
        To be tested.
    potentials : callable
        ``potentials(seed, lengths, forbidden, own)`` draws potentials, of which a share is
        forbidden, but not so that a sequence has no labeling; with `own`, the tokens have tables of
        transitions of their own, where there are such.
    labelings : callable
        ``labelings(potentials, s)`` lists all labelings of a sequence.
    """

    structure: Structure
    potentials: Callable[[int, list[int], float, bool], Potentials]
    labelings: Callable[[Potentials, int], list[Labeling]]

    def finite(self, potentials: Potentials) -> list[list[Labeling]]:
        """List the labelings of finite score of each sequence, the best first."""
        found = [self.labelings(potentials, s) for s in range(len(potentials.offsets) - 1)]
        allowed = [[one for one in each if one[1] > -np.inf] for each in found]
        return [sorted(each, key=lambda one: -one[1]) for each in allowed]


class Problem(NamedTuple):
    """A structure, potentials, and the labelings of finite score of each sequence, best first."""

    structure: Structure
    potentials: Potentials
    listed: list[list[Labeling]]


def problems(name: str) -> Iterator[Problem]:
    """Yield random problems of a case: of any size, some of equal, forbidden or huge scores."""
    for seed in range(PROBLEMS):
        yield problem(name, seed)


@lru_cache(maxsize=128)  # many questions are asked about the first ones
def problem(name: str, seed: int) -> Problem:
    """Draw a problem of a case; all numbers of labels, and sizes of scores, come in turns."""
    rng = np.random.default_rng(seed)
    lengths = rng.permutation([rng.integers(1, 5), *rng.integers(5, size=rng.integers(3))])
    case = MAKERS[name](3 - seed % 3, (1.0, 0.1, 30.0, 1e3, 1e4)[seed % 5])
    forbidden, own = rng.choice([0.0, 0.4]), bool(rng.integers(2))
    potentials = case.potentials(seed, lengths.tolist(), forbidden, own)
    if seed % 4 == 2:  # ties
        potentials = potentials.with_arrays(*map(np.round, potentials.arrays()))
    return Problem(case.structure, potentials, case.finite(potentials))


def _of_chains(structure: Structure, n_labels: int, scale: float) -> Case:
    def draw(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
        return random_scores(
            seed, lengths, n_labels, forbidden=forbidden, shared_tables=own, scale=2.0 * scale
        )

    return Case(structure, draw, _labelings)


def _labelings(scores: Potentials, s: int) -> list[Labeling]:
    def adder(path: tuple[int, ...]) -> Callable[[Counts, float], None]:
        return lambda out, amount: add_path(scores, s, path, amount, out)

    return [(path, score, adder(path)) for path, score in chain_paths(scores, s)]


def _of_sparse_chains(n_labels: int, scale: float) -> Case:
    scored = np.array([(0, 0), (0, 2), (1, 1), (2, 0)])
    structure = SparseChain(*scored[(scored < n_labels).all(axis=1)].T, n_labels)
    dense_case = _of_chains(structure, n_labels, scale)

    def draw(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
        return thinned(dense_case.potentials(seed, lengths, forbidden, False), structure)

    def listed(scores: Potentials, s: int) -> list[Labeling]:
        dense = filled_up(scores, structure)

        def adder(path: tuple[int, ...]) -> Callable[[Counts, float], None]:
            def add(out: Counts, amount: float) -> None:
                pair = np.zeros(dense.pair.shape)
                add_path(dense, s, path, amount, Counts(out.unary, pair))
                out.pair[0] += pair[0, structure.source, structure.target]

            return add

        return [(path, score, adder(path)) for path, score in chain_paths(dense, s)]

    return Case(structure, draw, listed)


def _of_segments(structure: Structure, n_labels: int, scale: float) -> Case:
    def draw(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
        return random_segment_scores(
            seed, lengths, n_labels, 3, forbidden=forbidden, own_steps=own, scale=scale
        )

    def listed(scores: Potentials, s: int) -> list[Labeling]:
        def adder(path: list) -> Callable[[Counts, float], None]:
            def add(out: Counts, amount: float) -> None:
                for kind, place in segment_parts(scores, s, path):
                    getattr(out, kind)[place] += amount

            return add

        found = all_segmentations(structure.with_offset(scores), s)
        return [(tuple(codes_of(path, n_labels)), score, adder(path)) for path, score in found]

    return Case(structure, draw, listed)


def _with_offset(soft: bool, n_labels: int, scale: float) -> Case:
    rng, shapes = np.random.default_rng(0), ((n_labels, n_labels), (3, n_labels))
    arrays = [rng.normal(size=shape) if soft else np.zeros(shape) for shape in shapes]
    arrays[0][1:2, 2:] = arrays[1][2, 1:2] = -np.inf
    return _of_segments(SemiMarkov(SegmentOffset(*arrays)), n_labels, scale)


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


def _of_second_order(n_labels: int, scale: float) -> Case:
    chains = _of_chains(SecondOrderChain(), n_labels, scale)

    def draw(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
        unary, _, index, *rest = chains.potentials(seed, lengths, forbidden, own)
        rng, groups = np.random.default_rng(seed + 100), 3 if own else 1
        pair = scale * rng.normal(size=(groups * (n_labels + 1), n_labels, n_labels))
        blocked = rng.random(pair.shape) < forbidden
        blocked[:, 0, 0] = False
        pair[blocked] = -np.inf
        return SecondOrderPotentials(unary, pair, *rest, index)

    return Case(SecondOrderChain(), draw, _second_order_labelings)


def _second_order_labelings(scores: Potentials, s: int) -> list[Labeling]:
    begin, end = (int(place) for place in scores.offsets[s : s + 2])
    size = scores.n_labels

    def listed(labels: tuple[int, ...]) -> Labeling:
        before = (size, *labels)
        parts = [("unary", (begin + t, label)) for t, label in enumerate(labels)]
        for t in range(1, len(labels)):
            table = table_of(scores, begin + t) * (size + 1) + before[t - 1]
            parts.append(("pair", (table, labels[t - 1], labels[t])))
        return _of_parts(scores, labels, parts)

    return [listed(labels) for labels in product(range(size), repeat=end - begin)]


def _of_parts(scores: Potentials, labels: tuple[int, ...], parts: list) -> Labeling:
    def add(out: Counts, amount: float) -> None:
        for kind, place in parts:
            getattr(out, kind)[place] += amount

    return labels, float(sum(getattr(scores, kind)[place] for kind, place in parts)), add


def _of_forests(n_labels: int, scale: float) -> Case:
    chains = _of_chains(Tree(), n_labels, scale)

    def draw(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
        forest = random_forest(np.random.default_rng(seed), lengths)
        return TreePotentials(*chains.potentials(seed, lengths, forbidden, own), *forest.arrays)

    return Case(Tree(), draw, _forest_labelings)


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
        return _of_parts(scores, labels, parts)

    return [listed(labels) for labels in product(range(scores.n_labels), repeat=end - begin)]


def _of_graphs(n_labels: int, scale: float) -> Case:
    chains = _of_chains(GraphStructure(directed=True), n_labels, scale)

    def draw(seed: int, lengths: list[int], forbidden: float, own: bool) -> Potentials:
        unary, pair, _, *rest = chains.potentials(seed, lengths, forbidden, own)
        rng = np.random.default_rng(seed)
        edges = [random_edges(rng, length) for length in lengths]
        topology = Edges.of_graphs(edges, lengths)
        count = len(topology.source) if own else 1
        index = rng.integers(len(pair), size=count).astype(np.uint32)
        return GraphPotentials(unary, pair, index, *rest, *topology.arrays)

    return Case(chains.structure, draw, _graph_labelings)


def random_edges(rng: np.random.Generator, length: int) -> list[tuple[int, int]]:
    """Draw edges in both directions, some of them twice, most of them on a cycle."""
    order = rng.permutation(length).tolist()
    around = list(zip(order, order[1:] + order[:1], strict=True)) if length > 1 else []
    more = [(i, j) for i in range(length) for j in range(length) if i != j]
    return [edge for edge in around if rng.random() < 0.9] + [
        edge for edge in more if rng.random() < 0.2
    ]


def _graph_labelings(scores: Potentials, s: int) -> list[Labeling]:
    begin, end = (int(place) for place in scores.offsets[s : s + 2])
    edges = edges_of(scores, s)

    def listed(labels: tuple[int, ...]) -> Labeling:
        parts = [("unary", (begin + t, label)) for t, label in enumerate(labels)]
        for u, v, table in edges:
            parts.append(("pair", (table, labels[u], labels[v])))
        return _of_parts(scores, labels, parts)

    return [listed(labels) for labels in product(range(scores.n_labels), repeat=end - begin)]


def edges_of(scores: Potentials, s: int) -> list[tuple[int, int, int]]:
    """The ends and the table of each edge of a graph."""
    first, last = (int(place) for place in scores.edge_offsets[s : s + 2])
    tables = np.broadcast_to(scores.transition_index, len(scores.source))
    return [
        (int(scores.source[e]), int(scores.target[e]), int(tables[e])) for e in range(first, last)
    ]


def under_rules(make: Callable[[int, float], Case], n_labels: int, scale: float) -> Case:
    """A structure under rules that labelings of label 0 alone keep."""
    case, segments = make(n_labels, scale), isinstance(make(n_labels, scale).structure, SemiMarkov)
    target = target_of([*"abc"[:n_labels]], segments)
    rules = RULES[:n_labels]
    automata = [automaton for rule in rules for automaton in rule.automata(target)]
    structure = Product(case.structure, JointAutomata(automata, [*map(repr, rules)]))

    def listed(scores: Potentials, s: int) -> list[Labeling]:
        return [one for one in case.labelings(scores, s) if _keeps(one[0], n_labels)]

    return Case(structure, case.potentials, listed)


RULES = [Contiguous("a"), Count("b", at_most=1), Before("a", "c")]


def _keeps(path: tuple[int, ...], n_labels: int) -> bool:
    """Whether codes keep the rules: those of segments begin one from `n_labels` on."""
    labels = [code % n_labels for code in path]
    of_a = [t for t, label in enumerate(labels) if label == 0]
    begins = [t for t, code in enumerate(path) if code >= n_labels]
    if not begins:
        begins = [t for t in range(len(path)) if t == 0 or labels[t] != labels[t - 1]]
    return (
        (n_labels < 1 or not of_a or of_a[-1] - of_a[0] == len(of_a) - 1)
        and (n_labels < 2 or sum(labels[t] == 1 for t in begins) <= 1)
        and (n_labels < 3 or 2 not in labels or not any(t > labels.index(2) for t in of_a))
    )


# ``maker(n_labels, scale)`` returns a case of this number of labels, with scores of this size.
MAKERS: dict[str, Callable[[int, float], Case]] = {
    "forest": _of_forests,
    "graph": _of_graphs,
    "ring (an extension)": lambda *sizes: _of_chains(Ring(), *sizes)._replace(labelings=_around),
    "chain": partial(_of_chains, Chain()),
    "chain over threads": partial(_of_chains, Chain(ThreadMap(1))),
    "second-order chain": _of_second_order,
    "sparse chain": _of_sparse_chains,
    "segments": partial(_of_segments, SemiMarkov()),
    "segments with constraints": partial(_with_offset, False),
    "segments with an offset": partial(_with_offset, True),
}
MAKERS |= {
    f"{name} under rules": partial(under_rules, MAKERS[name])
    for name in ("chain", "sparse chain", "segments with an offset")
}
CASES = {name: make(3, 1.0) for name, make in MAKERS.items()}
