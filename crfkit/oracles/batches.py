"""Small batches of sequences in compiled form, for solvers that move after each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from crfkit._parallel import Chunk, ThreadMap
from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, SingleArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.chain.arrays import ChainExponentials, ChainScores, ChainSums, ChainWorkspace
from crfkit.kernels.chain.batches import ChainBatches, ChainBatchWorkspace, ChainRoom
from crfkit.kernels.design.batch import LazyWeights, Metric, Weights
from crfkit.kernels.solvers.batches import BlockIndex
from crfkit.oracles.base import import_home
from crfkit.oracles.design import batch_room, make_design
from crfkit.oracles.weights import AlignedWeights, aligned, chain_weights, with_boundaries
from crfkit.potentials import LinearModel
from crfkit.potentials.attributes import distinct_tokens
from crfkit.potentials.linear import LinearChainModel
from crfkit.structures import Chain, SparseChain, Structure

# With more labels a table of all transitions, of which few have weights, is slower than a list.
MOST_LABELS = 150
# Short sequences of about so many tokens are worked on together.
TOGETHER = 96


class BatchData(NamedTuple):
    """Labeled sequences in batches."""

    model: LinearModel
    structure: Structure
    source: PackedSequences  # the sequences in the order in which they were given,
    tokens: IdArray  # (N,) the tokens of it in the order in which they were dealt,
    offsets: IntArray  # (S + 1,) where sequences start in this one,
    data: Callable[[], PackedSequences]  # and a copy in this one
    chunks: list[Chunk]
    labels: CodeArray  # (N,)
    weight: FloatArray  # (S,) of each sequence
    threads: ThreadMap


class Preconditioner(Protocol):
    """How far steps go along the parameters that each batch reads."""

    always: slice  # these parameters; the others are moved when they are needed
    features: FloatArray  # (F, F) of dense features, or its diagonal, (F, 1)
    transitions: FloatArray  # (P2,)

    def __call__(self, gradient: FloatArray) -> FloatArray:
        """Return the metric times a gradient, for the parameters at `always`, shape (n,)."""


class BatchOracle(ABC):
    """Batches as a problem, whose class chooses the parts in `crfkit.kernels.solvers.batches`."""

    problem: Any
    index: BlockIndex  # where the potentials of each batch stand in a vector over those of all
    size: int  # length L of the vector of weights

    @abstractmethod
    def run(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return what runs a kernel of a solver on the problem."""

    @abstractmethod
    def pack(self, parameters: FloatArray) -> FloatArray:
        """Return parameters, shape (P,), as the vector that parts read: a new array (L,)."""

    @abstractmethod
    def unpack(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in such a vector: a new array."""

    @abstractmethod
    def weights(self, flat: FloatArray) -> Weights:
        """Return a vector, shape (L,), and its views."""

    @abstractmethod
    def metric(self, preconditioner: Preconditioner) -> Metric:
        """Return how far steps go, in the form that `aim` and `step_always` read."""

    @abstractmethod
    def true_potentials(self, batch: int, gold: float) -> SingleArray:
        """Return potentials of the labels of a batch, (n,): `gold` for true ones and 0 else."""

    @abstractmethod
    def workspace(self) -> Any:
        """Return room for a batch, for one thread."""

    @property
    def n_potentials(self) -> int:
        """Length T of a vector over the potentials of all batches."""
        return int(self.index.pair[-1])

    def lazy(self, v: FloatArray) -> LazyWeights:
        """Return weights, shape (L,), that are moved when they are next needed."""
        views, direction = self.weights(v), self.weights(aligned(self.size))
        rows, wide = np.zeros(len(views.table)), np.zeros(len(views.wide))
        return LazyWeights(views, direction, rows, wide, np.zeros(self.size))


class CompiledBatchOracle(BatchOracle):
    """Batches whose weights are in rows, in compiled form."""

    aligned_weights: AlignedWeights
    n_labels: int
    transitions: tuple[CodeArray, CodeArray]  # labels before and after those that have a weight

    def run(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return the compiled kernel."""
        return kernel

    def pack(self, parameters: FloatArray) -> FloatArray:
        """Return parameters, shape (P,), as the vector that parts read: a new array (L,)."""
        return self.aligned_weights.pack(parameters)

    def unpack(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in such a vector: a new array."""
        return self.aligned_weights.unpack(flat)

    def weights(self, flat: FloatArray) -> Weights:
        """Return a vector, shape (L,), and its views."""
        weights = self.aligned_weights
        return Weights(flat, weights.table(flat), weights.wide_table(flat))

    def metric(self, preconditioner: Preconditioner) -> Metric:
        """Return how far steps go along dense features and transitions."""
        features = preconditioner.features
        table = aligned(self.n_labels, self.aligned_weights.width)
        table[self.transitions] = preconditioner.transitions
        # Each part of tokens that has dense features has rows of its own for them.
        count = self.problem.design.dense.shape[1] // max(len(features), 1)
        diagonal = features.shape[1] == 1
        blocks = np.kron(np.ones((count, 1)) if diagonal else np.eye(count), features)
        return Metric(frozen(blocks.astype(np.float64)), frozen(table))

    @abstractmethod
    def room(self, unary: FloatArray, pair: FloatArray, counts: FloatArray) -> Any:
        """Return room for the sums of a batch of potentials (Q, K) and (M, K, K), counts (Q, K)."""

    def workspace(self) -> ChainBatchWorkspace:
        """Return room for a batch, for one thread."""
        problem, size, width = self.problem, self.n_labels, self.aligned_weights.width
        most, n_dense = self.index.first_pair // size, problem.design.dense.shape[1]
        n_tables = int(np.diff(problem.transitions.batches.heads).max(initial=1))
        design = batch_room(problem.design, width)
        transitions = batch_room(problem.transitions, size * width)
        first, shape = most * size, (n_tables, size, size)
        vectors = np.zeros((4, first + n_tables * size * size))
        potentials, counts, direction, change = vectors
        unary, pair = potentials[:first].reshape(most, size), potentials[first:].reshape(shape)
        of_labels = counts[:first].reshape(most, size)
        return ChainBatchWorkspace(
            potentials, unary, pair, counts, of_labels, counts[first:].reshape(shape), direction,
            change, first, design, transitions, aligned(size, width), aligned(1, n_dense, width),
            self.room(unary, pair, of_labels),
        )  # fmt: skip


class ChainBatchOracle(CompiledBatchOracle):
    """Batches of linear chains with the log loss."""

    def __init__(self, batches: BatchData) -> None:
        model, offsets, threads = batches.model, batches.offsets, batches.threads
        weights = self.aligned_weights = chain_weights(model)
        self.size, self.n_labels = weights.size, model.n_labels
        self.transitions = model.transition_from, model.transition_to
        chunks = batches.chunks
        first = np.array([chunk.first for chunk in chunks] + [len(offsets) - 1], np.int64)
        index, tables, table_heads = _tables(weights, batches)
        data = with_boundaries(batches.source, model.boundaries)
        design = make_design(weights, data, threads, heads=offsets[first], tokens=batches.tokens)
        transitions = make_design(weights, tables, threads, wide=True, heads=table_heads)
        weights.release_layout()
        self.problem = ChainBatches(
            frozen(first), frozen(offsets), frozen(batches.weight), frozen(batches.labels),
            frozen(index), design, weights.bits, transitions, weights.wide_bits, weights.base,
        )  # fmt: skip
        unary, pair = design.batches.heads * self.n_labels, table_heads * self.n_labels**2
        most = int(np.diff(design.batches.heads).max(initial=0)) * self.n_labels
        self.index = BlockIndex(frozen(unary), frozen(pair + unary[-1]), most)

    def true_potentials(self, batch: int, gold: float) -> SingleArray:
        """Return potentials of the labels of a batch, (n,): `gold` for true ones and 0 else."""
        begin, end = self.problem.design.batches.heads[batch : batch + 2]
        potentials = np.zeros((end - begin, self.n_labels), np.float32)
        potentials[np.arange(end - begin), self.problem.labels[begin:end]] = gold
        return potentials.reshape(-1)

    def room(self, unary: FloatArray, pair: FloatArray, counts: FloatArray) -> ChainRoom:
        """Return room for the sums of a batch, whose potentials are (Q, K) and (M, K, K)."""
        (tokens, size), n_tables = unary.shape, len(pair)
        sequences, rows = int(np.diff(self.problem.first).max(initial=0)), max(tokens, TOGETHER)
        node, shift, pair_shift = np.empty((tokens, size)), np.empty(tokens), np.empty(n_tables)
        factor, transposed, flow, steps = np.zeros((4, n_tables, size, size))
        index = np.zeros(tokens if len(self.problem.transition_index) > 1 else 1, np.uint32)
        starts, level = np.zeros(sequences + 1, np.int64), np.zeros(sequences)
        scores = ChainScores(frozen(unary), frozen(pair), frozen(index), frozen(starts))
        exponentials = ChainExponentials(
            frozen(node), frozen(shift), frozen(factor), frozen(transposed), frozen(pair_shift)
        )
        work = ChainWorkspace(
            np.empty(tokens), np.empty((1, size)), np.empty((rows, size)), np.empty((rows, size))
        )
        sums = ChainSums(counts, flow, np.zeros(sequences), np.zeros(sequences, np.int64))
        return ChainRoom(
            pair.reshape(-1, size), node, shift, factor, factor.reshape(-1, size), transposed,
            pair_shift, index, starts, level, scores, exponentials, frozen(level),
            frozen(np.arange(sequences)), work, np.empty((3, size)), sums,
            sums._replace(flow=steps),
        )  # fmt: skip


def _tables(weights: AlignedWeights, batches: BatchData) -> tuple[Any, PackedSequences, IntArray]:
    """Return the table of each transition, the attributes of the tables, and those of batches."""
    chunks = batches.chunks
    if not len(weights.wide_positions):
        heads = np.arange(len(chunks) + 1)
        return np.zeros(1, np.uint32), no_features(len(chunks)), heads
    attributes = batches.data().transitions
    assert attributes is not None, "which the model has weights for"
    found = [distinct_tokens(attributes, chunk.tokens.start, chunk.tokens.stop) for chunk in chunks]
    heads = np.concatenate([[0], np.cumsum([len(tokens) for tokens, _ in found])]).astype(np.int64)
    index = np.concatenate([np.zeros(0, np.uint32), *(rows for _, rows in found)])
    if len(index) < 2:  # one entry would stand for all
        index = np.zeros(2, np.uint32)
    tokens = np.concatenate([np.zeros(0, np.int64), *(tokens for tokens, _ in found)])
    return index, attributes.take_tokens(tokens), heads


def no_features(n_tokens: int) -> PackedSequences:
    """Return tokens without attributes."""
    return PackedSequences(sp.csr_array((n_tokens, 0)), offsets=np.array([0, n_tokens]))


class BatchMaker(NamedTuple):
    """How the oracle of batches is made, and whether there is one for a model and a structure."""

    make: Callable[[BatchData], BatchOracle | None]
    suits: Callable[[Any, Structure], bool]


BATCH_ORACLES: dict[tuple[type, type], BatchMaker] = {}
# Where those of a model are registered that stand in another module.
BATCH_HOMES = {"SemiMarkovModel": "segment_batches"}


def find_batch_oracle(batches: BatchData) -> BatchOracle | None:
    """Return the oracle of batches with the log loss; None if there is none."""
    if not is_compiled(batches.model, batches.structure):
        return None
    return BATCH_ORACLES[type(batches.model), type(batches.structure)].make(batches)


def is_compiled(model: Any, structure: Structure) -> bool:
    """Whether batches of a model and a structure with the log loss have an oracle."""
    import_home(BATCH_HOMES, model)
    maker = BATCH_ORACLES.get((type(model), type(structure)))
    return maker is not None and not model.extra_blocks and maker.suits(model, structure)


def _is_plain(model: Any, structure: Structure) -> bool:
    return structure.offset is None


def _has_few_labels(model: Any, structure: Structure) -> bool:
    return structure.offset is None and model.n_labels <= MOST_LABELS


BATCH_ORACLES[LinearChainModel, Chain] = BatchMaker(ChainBatchOracle, _is_plain)
BATCH_ORACLES[LinearChainModel, SparseChain] = BatchMaker(ChainBatchOracle, _has_few_labels)
