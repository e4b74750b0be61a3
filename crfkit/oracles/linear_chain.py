"""The oracle of linear chains: plain, with boundary weights, with attributes of transitions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.chain import input_dependent  # noqa: F401  (bodies of parts)
from crfkit.kernels.chain.oracle import ChainProblem, ChainWorkspace, InputDependentProblem
from crfkit.kernels.design.tokens import Design
from crfkit.oracles.base import Oracle, register_oracle
from crfkit.oracles.design import make_design
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.weights import aligned, chain_weights, with_boundaries
from crfkit.potentials.attributes import distinct_rows
from crfkit.potentials.linear import LinearChainModel
from crfkit.structures import Chain, SparseChain

# With more labels, few of whose transitions have weights, a table of all pairs is slower.
MOST_SPARSE_LABELS = 150


class ChainOracle(Oracle):
    """A linear chain, with transitions of any kind, in compiled form."""

    has_marginal_updates: ClassVar[bool] = True

    def __init__(
        self, model: LinearChainModel, data: PackedSequences, order: LabelOrder, threads: ThreadMap
    ) -> None:
        weights = self.weights = chain_weights(model, order)
        self._boundaries, self.order = model.boundaries, order
        design = make_design(weights, with_boundaries(data, model.boundaries), threads)
        self.problem: Any = ChainProblem(frozen(data.offsets), model.n_labels, design, weights.base)
        self._n_slots, self._most = 1, _most_changes(design, data.offsets)
        self._transitions: Design | None = None
        if data.transitions is not None and len(weights.wide_positions):
            rows, index = distinct_rows(data.transitions, 0, data.n_tokens)
            self._transitions = make_design(weights, rows, threads, wide=True)
            slots = _slots(index, data.offsets)
            self._n_slots = int(slots.max(initial=0)) + 1
            self.problem = InputDependentProblem(
                *self.problem, self._transitions, frozen(index.astype(np.int64)), frozen(slots)
            )
            longest = int(np.diff(data.offsets).max(initial=0))
            self._most += 2 * longest * _most_of_token(self._transitions)
        weights.release_layout()

    def norms(self, data: PackedSequences) -> FloatArray:
        """Return the sum of the squares of the attributes of each token, shape (N,)."""
        data = with_boundaries(data, self._boundaries)
        values = np.ones(len(data.indices)) if data.values is None else np.square(data.values)
        norms: FloatArray = np.diff(np.append(0.0, np.cumsum(values))[data.indptr])
        return norms if data.dense is None else norms + np.square(data.dense).sum(axis=1)

    def workspace(self, flat: FloatArray) -> ChainWorkspace:
        """Return weights, shape (L,), and room for a sequence, for one thread."""
        problem, weights = self.problem, self.weights
        size, width = problem.n_labels, weights.width
        longest = int(np.diff(problem.offsets).max(initial=0))
        n_dense, path = problem.design.dense.shape[1], np.zeros(longest, np.int32)
        pair, slots = weights.table(flat)[None, weights.base :], np.zeros(1, np.uint32)
        if self._transitions is not None:
            n_dense = max(n_dense, self._transitions.dense.shape[1])
            pair, slots = aligned(self._n_slots, size, width), np.zeros(longest, np.uint32)
        own = weights.for_tokens(flat, n_dense, self._most + 1)
        flows, wide = aligned(self._n_slots * size, width), (self._n_slots, size * width)
        of_transitions = own._replace(
            table=weights.wide_table(flat), bits=weights.wide_bits, first=weights.wide_first,
            scratch_table=weights.wide_table(own.scratch),
        )  # fmt: skip
        scores, best, residual = (aligned(longest, width) for _ in range(3))
        return ChainWorkspace(
            own, scores, best, path, path[None], own.positions, own.changes, residual,
            np.zeros(longest, np.int64), flows, pair, slots, pair.reshape(wide),
            flows.reshape(wide), of_transitions,
        )  # fmt: skip


def _most_of_token(design: Design) -> int:
    """Return how many weights a token has at most, of one label of each attribute."""
    rows, cells = np.diff(design.row_ptr), np.diff(design.cell_ptr)
    return int((rows + cells).max(initial=0)) + int(design.dense.shape[1])


def _most_changes(design: Design, offsets: IntArray) -> int:
    """Return how many changes of weights two labelings of a sequence list at most."""
    rows, cells = np.diff(design.row_ptr[offsets]), np.diff(design.cell_ptr[offsets])
    longest = int(np.diff(offsets).max(initial=0))
    most = int(np.max(2 * rows + cells, initial=0))
    return most + 2 * (int(design.dense.shape[1]) + 1) * longest


def _slots(index: IdArray, offsets: IntArray) -> IntArray:
    """Return the number of each token's row in its sequence; rows of first tokens are not used."""
    inner = np.ones(len(index), bool)
    inner[offsets[:-1][np.diff(offsets) > 0]] = False
    before = np.concatenate([[0], np.cumsum(inner)])
    slots = np.zeros(len(index), np.int64)
    slots[inner] = numbered(index[inner].astype(np.int64), before[offsets])
    return slots


def numbered(rows: IntArray, starts: IntArray) -> IntArray:
    """Return the number of each row in its sequence: 0, 1, ... where they come first."""
    counts = np.diff(starts)
    pairs = np.repeat(np.arange(len(counts)), counts) * (rows.max(initial=0) + 1) + rows
    _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    number = rank[which]
    return number - np.repeat(number[starts[:-1][counts > 0]], counts[counts > 0])


def _make(
    model: LinearChainModel, structure: Any, data: PackedSequences, order: LabelOrder,
    threads: ThreadMap,
) -> ChainOracle | None:  # fmt: skip
    return None if model.extra_blocks else ChainOracle(model, data, order, threads)


def _make_sparse(
    model: LinearChainModel, structure: Any, data: PackedSequences, order: LabelOrder,
    threads: ThreadMap,
) -> ChainOracle | None:  # fmt: skip
    few = model.n_labels <= MOST_SPARSE_LABELS
    return _make(model, structure, data, order, threads) if few else None


register_oracle(LinearChainModel, Chain, _make)
register_oracle(LinearChainModel, SparseChain, _make_sparse)
