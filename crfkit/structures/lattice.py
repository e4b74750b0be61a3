"""The labelings of a sequence as the paths of a graph without cycles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._types import CodeArray, FloatArray, IntArray, Potentials
from crfkit.structures.potentials import ChainPotentials, SegmentPotentials


class Lattice(NamedTuple):
    """Arcs of a graph whose paths, from node 0 to the last one, are the labelings of a sequence.

    Arcs lead to nodes of larger numbers, and are sorted by these. A labeling has the scores of its
    arcs. An arc with a token sets the code of it; all tokens without one, in a path, go on with the
    label of the code before.
    """

    n_nodes: int
    n_labels: int
    source: IntArray  # (n,)
    target: IntArray  # (n,)
    score: FloatArray  # (n,) finite
    token: IntArray  # (n,) -1 for none
    before: IntArray  # (n,) the code before that of the token, C at the start
    code: IntArray  # (n,)

    def codes(self, arcs: IntArray, length: int) -> CodeArray:
        """Return the codes of the labeling whose path has these arcs, (T,)."""
        setting = arcs[self.token[arcs] >= 0]
        codes = np.full(length, -1)
        codes[self.token[setting]] = self.code[setting]
        last = np.maximum.accumulate(np.where(codes >= 0, np.arange(length), 0))
        found: CodeArray = np.where(codes >= 0, codes, codes[last] % self.n_labels).astype(np.int32)
        return found

    def taken(self, arcs: IntArray) -> Lattice:
        """Return the graph with some of the arcs, (m,), rising."""
        return self._replace(
            source=self.source[arcs], target=self.target[arcs], score=self.score[arcs],
            token=self.token[arcs], before=self.before[arcs], code=self.code[arcs],
        )  # fmt: skip


class _Arcs:
    """Arcs that are collected."""

    def __init__(self) -> None:
        self._parts: list[list[np.ndarray]] = []

    def add(
        self,
        source: IntArray,
        target: IntArray,
        score: FloatArray,
        token: int = -1,
        before: IntArray | int = -1,
        code: IntArray | int = -1,
    ) -> None:
        """Add the arcs of finite score; all are of the shape of the score, or single numbers."""
        kept = score > -np.inf
        every = np.broadcast_arrays(source, target, score, token, before, code)
        self._parts.append([each[kept] for each in every])

    def lattice(self, n_nodes: int, n_labels: int) -> Lattice:
        """Return the graph of the arcs."""
        arrays = [np.concatenate(parts) for parts in zip(*self._parts, strict=True)]
        order = np.argsort(arrays[1], kind="stable")
        return Lattice(n_nodes, n_labels, *(each[order] for each in arrays))


def chain_lattice(potentials: ChainPotentials) -> Lattice:
    """Return the graph of the only sequence: a node for each label of each token."""
    (length, size), index = potentials.unary.shape, potentials.transition_index
    arcs, labels = _Arcs(), np.arange(size)
    arcs.add(np.zeros(1, np.int64), 1 + labels, potentials.unary[0], 0, size, labels)
    for t in range(1, length):
        table = potentials.pair[index[t if len(index) > 1 else 0]]
        node = 1 + (t - 1) * size + labels
        score = table + potentials.unary[t]
        arcs.add(node[:, None], node + size, score, t, labels[:, None], labels)
    last = 1 + length * size
    arcs.add(last - size + labels, np.full(1, last), np.zeros(size))
    return arcs.lattice(last + 1, size)


def second_order_lattice(potentials: Potentials) -> Lattice:
    """Return the graph of the only sequence: a node for each pair of labels of neighbors."""
    (length, size), index = potentials.unary.shape, potentials.transition_index
    arcs, labels = _Arcs(), np.arange(size)
    groups = potentials.pair.reshape(-1, size + 1, size, size)
    arcs.add(np.zeros(1, np.int64), 1 + labels, potentials.unary[0], 0, size, labels)
    node = 1 + labels[None]  # those of the token before, by label two before and label before
    for t in range(1, length):
        tables = groups[index[t if len(index) > 1 else 0]]
        score = (tables[:size] if t > 1 else tables[size:]) + potentials.unary[t]
        pairs = node[-1, -1] + 1 + np.arange(size**2).reshape(size, size)
        arcs.add(node[:, :, None], pairs, score, t, labels[:, None], labels)
        node = pairs
    last = int(node[-1, -1]) + 1
    arcs.add(node.reshape(-1), np.full(1, last), np.zeros(node.size))
    return arcs.lattice(last + 1, size)


def segment_lattice(potentials: SegmentPotentials) -> Lattice:
    """Return the graph of the only sequence: for each token and label, a beginning and an end."""
    size, length = potentials.n_labels, len(potentials.unary)
    _, begins, ends, _ = potentials.unary.reshape(length, 4, size).swapaxes(0, 1)
    tables = potentials.pair[: potentials.n_transitions].reshape(-1, size, size)
    arcs, labels, index = _Arcs(), np.arange(size), potentials.transition_index
    arcs.add(np.zeros(1, np.int64), 1 + labels, begins[0], 0, 2 * size, labels + size)
    for t in range(length):
        node = 1 + 2 * t * size + labels  # where a segment begins; where one ends: `size` more
        for stop, score in enumerate(_inner_scores(potentials, t), t):
            arcs.add(node, node + (2 * (stop - t) + 1) * size, score + ends[stop])
        if t + 1 < length:
            table = tables[index[t + 1 if len(index) > 1 else 0]] + begins[t + 1]
            before, after = labels[:, None] + size, labels + size
            arcs.add(node[:, None] + size, node + 2 * size, table, t + 1, before, after)
    last = 1 + 2 * length * size
    arcs.add(last - size + labels, np.full(1, last), np.zeros(size))
    return arcs.lattice(last + 1, size)


def _inner_scores(potentials: SegmentPotentials, start: int) -> list[FloatArray]:
    """Return the scores of segments from a token on but of their ends, (K,) for each last token."""
    size, spans = potentials.n_labels, potentials.spans
    first = potentials.n_transitions
    rows = first + potentials.n_lengths
    here = slice(spans.start_ptr[start], spans.start_ptr[start + 1])
    own = dict(zip(spans.start_length[here].tolist(), spans.start_row[here].tolist(), strict=True))
    run, found = potentials.unary[start, 3 * size :].copy(), []
    for length in range(1, min(potentials.n_lengths, len(potentials.unary) - start) + 1):
        if length == 2:
            run = np.zeros(size)
        if length > 1:
            run = run + potentials.unary[start + length - 1, :size]
        score = run + potentials.pair[first + length - 1]
        if length in own:
            score = score + potentials.pair[rows + own[length]]
        found.append(score)
    return found
