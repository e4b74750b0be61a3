"""The second-order chain."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

import numpy as np

from crfkit._types import (
    BoolArray,
    CodeArray,
    Counts,
    FloatArray,
    IdArray,
    IntArray,
    LabelReading,
    Potentials,
    ReadSpans,
)
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.arrays import ChainSums
from crfkit.kernels.chain.copies import LabelCopies
from crfkit.kernels.chain.sum import UNDERFLOW
from crfkit.kernels.second_order.arrays import LiveLabels, SecondOrderScores, find_live
from crfkit.kernels.second_order.max import BestRooms, second_order_max
from crfkit.kernels.second_order.sum import (
    SecondOrderExponentials,
    SecondOrderRooms,
    second_order_sum,
    second_order_sum_log,
)
from crfkit.structures.base import Capability, Structure, longest, raise_if_dead
from crfkit.structures.copies import allowed_steps, copied_unary, runs_of_copies, used_tables
from crfkit.structures.k_best import (
    RankedCodes,
    empty_lists,
    empty_paths,
    labelings_at_most,
    ranked,
)
from crfkit.structures.lattice import Lattice, second_order_lattice
from crfkit.structures.potentials import ChainPotentials, restricted_tables
from crfkit.structures.samples import as_uniforms

# Scores of triples of copies of labels, which rules on whole sequences need: half a GB.
MOST_CELLS = 1 << 26

_ONE_GROUP = frozen(np.zeros(1, np.uint32))


# Numbers of tables that are kept in another order, too: 64 MB.
MOST_TURNED = 1 << 23
_NOT_TURNED = frozen(np.empty((0, 0, 0)))


class TurnedTables(NamedTuple):
    """Scores of triples of labels, and the same by their last labels."""

    pair: FloatArray  # (M (K + 1), K, K)
    by_last: FloatArray  # (K, M (K + 1), K)

    @classmethod
    def of(cls, pair: FloatArray) -> TurnedTables | None:
        """Return tables that do not change any more, in both orders; None if they are large."""
        if pair.size > MOST_TURNED:
            return None
        return cls(pair, frozen(np.ascontiguousarray(pair.transpose(2, 0, 1))))


class _SecondOrderArrays(NamedTuple):
    unary: FloatArray
    pair: FloatArray
    offsets: IntArray
    first: int = 0
    transition_index: IdArray = _ONE_GROUP
    turned: TurnedTables | None = None


class SecondOrderPotentials(_SecondOrderArrays, Potentials):
    """Potentials of second-order chains (:class:`SecondOrderChain`).

    As :class:`crfkit.structures.ChainPotentials`, but for `pair`, (M (K + 1), K, K): in a group of
    ``K + 1`` tables, ``[h, i, j]`` is the score of label ``j`` after ``i`` after ``h``, and the
    last table, ``h = K``, is that of the second tokens of sequences. `transition_index` tells the
    group of each token; if not given, there is one. `turned` may hold `pair` in another order, by
    which best paths of tokens of few labels are found sooner; that of other tables is ignored.
    """

    __slots__ = ()

    n_labels = ChainPotentials.n_labels
    n_codes = ChainPotentials.n_codes
    is_dense = ChainPotentials.is_dense
    take_tokens = ChainPotentials.take_tokens

    @property
    def by_last(self) -> FloatArray:
        """The scores of triples by their last labels, (K, M (K + 1), K); (0, 0, 0) if not known."""
        turned = self.turned
        return _NOT_TURNED if turned is None or turned.pair is not self.pair else turned.by_last

    def in_order(self, order: IntArray) -> Self:
        """Return the potentials with the labels in another order, shape (K,)."""
        size = self.n_labels
        tables = self.pair.reshape(-1, size + 1, size, size)[:, np.append(order, size)]
        pair = tables[:, :, order][:, :, :, order].reshape(self.pair.shape)
        return self._replace(unary=self.unary[:, order], pair=pair)


class SecondOrderChain(Structure[SecondOrderPotentials]):
    """A label at each token, scores of labels and of each label after the two before it.

    The recurrences are those of :class:`Chain` over pairs of labels (He 1988), which look at labels
    of finite score alone: a token costs as much as there are triples of such labels of it and of
    the two tokens before. So a tagger whose words have few labels each (Brants 2000) takes little
    time, though it has many labels. Sums and best paths are exact whatever labels are allowed: sums
    are scaled, and a sequence in which a probability underflows is summed again by logarithms. Of
    equal paths, the one whose last label is lowest wins, then the one before, and so on, as in a
    chain.

    The probability of a span is a sum over the labelings that have it, in time of all tokens of the
    sequence. Rules about whole sequences make tables of triples of copies of labels.

    The scores of the states of one sequence, pairs of live labels of neighbors, are in memory: of
    `T` tokens of `K` live labels each, ``8 T K**2`` bytes.
    """

    potentials = SecondOrderPotentials
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.K_BEST,
            Capability.SAMPLE,
            Capability.ENTROPY,
            Capability.SPANS,
            Capability.COPIES,
        }
    )

    def log_partition(
        self, potentials: SecondOrderPotentials, weight: FloatArray, out: Counts
    ) -> FloatArray:
        """Return log Z, and the expected counts of labels and of labels after two others."""
        scores, states = _scores(potentials), _States(potentials)
        raised, rooms, count = _raised(scores), states.rooms(), len(weight)
        out.unary[...] = 0.0
        sums = ChainSums(out.unary, out.pair, np.empty(count), np.empty(count, np.int64))
        second_order_sum(scores, raised, states.live, frozen(weight), rooms, sums)
        for s in np.flatnonzero(sums.status == UNDERFLOW).tolist():
            sums.status[s] = second_order_sum_log(
                scores, states.live, s, float(weight[s]), rooms, sums
            )
        raise_if_dead(potentials, sums.status)
        return sums.log_z

    def argmax(self, potentials: SecondOrderPotentials) -> tuple[CodeArray, FloatArray]:
        """Return the labels of the best path of each sequence, shape (N,), and scores (S,)."""
        states, count = _States(potentials), len(potentials.offsets) - 1
        labels = np.empty(len(potentials.unary), np.int32)
        value, status = np.empty(count), np.empty(count, np.int64)
        second_order_max(
            _scores(potentials), states.live, states.best_rooms(), labels, value, status
        )
        raise_if_dead(potentials, status)
        return labels, value

    def score(self, potentials: SecondOrderPotentials, labels: CodeArray) -> FloatArray:
        """Return the score of a path of each sequence, shape (S,)."""
        tokens, places = _triples(potentials, labels)
        scores = potentials.unary[np.arange(len(labels)), labels]
        scores[tokens] += potentials.pair[places]
        sizes = np.diff(potentials.offsets)
        sequence = np.repeat(np.arange(len(sizes)), sizes)
        return np.bincount(sequence, scores, len(sizes)).astype(np.float64)

    def add_counts(
        self, potentials: SecondOrderPotentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add `weight`, shape (S,), to the parts on a path of each sequence."""
        tokens, places = _triples(potentials, labels)
        level = np.repeat(weight, np.diff(potentials.offsets))
        out.unary[np.arange(len(labels)), labels] += level
        np.add.at(out.pair, places, level[tokens])

    def restricted(
        self, potentials: SecondOrderPotentials, steps: BoolArray, which: IntArray | None = None
    ) -> tuple[SecondOrderChain, SecondOrderPotentials]:
        """Return the chain, and potentials without some steps to a label from the one before."""
        size, every = potentials.n_labels, steps[..., None, :, :]
        groups = potentials.pair.reshape(-1, size + 1, size, size)
        tables, index = restricted_tables(groups, potentials.transition_index, every, which)
        pair = tables.reshape(-1, size, size)
        return self, potentials._replace(pair=pair, transition_index=index)

    def k_best(self, potentials: SecondOrderPotentials, k: int) -> RankedCodes:
        """Return the labels of the k best paths of each sequence, and their scores."""
        from crfkit.kernels.second_order.k_best import second_order_k_best

        most, states = labelings_at_most(potentials, k), _States(potentials)
        rows, found = longest(potentials) + 1, empty_paths(potentials, most)
        columns = max(states.of_tokens, 1)
        lists = empty_lists(potentials, most, rows, columns)
        lists = lists._replace(owner=np.empty((rows, columns), np.int32))
        second_order_k_best(
            _scores(potentials), states.live, frozen(most), states.best_rooms(), lists, found
        )
        return ranked(self, potentials, found)

    def sample(self, potentials: SecondOrderPotentials, uniforms: FloatArray) -> CodeArray:
        """Return paths drawn from the last label to the first, shape (n, N)."""
        from crfkit.kernels.second_order.sample import second_order_sample

        numbers, states = as_uniforms(potentials, uniforms), _States(potentials)
        scores, count = _scores(potentials), len(potentials.offsets) - 1
        labels: CodeArray = np.empty(numbers.shape, np.int32)
        log_z, status = np.empty(count), np.empty(count, np.int64)
        second_order_sample(
            scores, _raised(scores), states.live, numbers, states.rooms(), log_z, labels, status
        )
        raise_if_dead(potentials, status)
        return labels

    def entropy(self, potentials: SecondOrderPotentials) -> FloatArray:
        """Return the entropy of the paths of each sequence, shape (S,)."""
        from crfkit.kernels.second_order.sample import second_order_entropy

        states, count = _States(potentials), len(potentials.offsets) - 1
        log_z, entropy = np.empty((2, count))
        status = np.empty(count, np.int64)
        second_order_entropy(
            _scores(potentials), states.live, states.rooms(), np.empty((0, 0, 0)), log_z, entropy,
            status,
        )  # fmt: skip
        raise_if_dead(potentials, status)
        return entropy

    def span_probabilities(
        self,
        potentials: SecondOrderPotentials,
        reading: LabelReading,
        start: IntArray,
        stop: IntArray,
        type: IntArray,
    ) -> FloatArray:
        """Return the probability of each span, shape (n,), in time of a sum for each."""
        from crfkit.structures.clamped_spans import clamped_span_probabilities

        spans = ReadSpans(start, stop, type)
        return clamped_span_probabilities(self, potentials, reading, spans)

    def likely_spans(
        self, potentials: SecondOrderPotentials, reading: LabelReading, threshold: float
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return the spans of at least some probability."""
        from crfkit.structures.clamped_spans import likely_clamped_spans

        return likely_clamped_spans(self, potentials, reading, threshold)

    def with_copies(
        self, potentials: SecondOrderPotentials, copies: LabelCopies
    ) -> tuple[SecondOrderChain, SecondOrderPotentials]:
        """Return the second-order chain over copies of labels, and its potentials."""
        size, count = potentials.n_labels, len(copies.label)
        used, index = used_tables(potentials.transition_index)
        if len(used) * count**3 > MOST_CELLS:
            raise ValueError(
                f"the rules need {count} copies of {size} labels, and a second-order chain a score "
                f"of each triple of them: {len(used) * count**3 / 2**27:.0f} GB. Leave rules out, "
                "or use a chain of first order."
            )
        row = np.append(copies.label, size)[:, None, None]
        groups = potentials.pair.reshape(-1, size + 1, size, size)[used]
        pair = np.where(
            allowed_steps(copies), groups[:, row, copies.label[:, None], copies.label], -np.inf
        ).reshape(-1, count, count)
        unary = copied_unary(potentials.unary, potentials.offsets, copies)
        return self, potentials._replace(unary=unary, pair=pair, transition_index=index)

    def add_copied_counts(
        self, potentials: SecondOrderPotentials, copies: LabelCopies, found: Counts, out: Counts
    ) -> None:
        """Write weights of the parts of `with_copies` as those of labels and triples of them."""
        size, count = potentials.n_labels, len(copies.label)
        used, _ = used_tables(potentials.transition_index)
        present, begins = runs_of_copies(copies)
        out.unary[...] = 0.0
        out.unary[:, present] = np.add.reduceat(found.unary, begins, axis=1)
        tables = found.pair.reshape(-1, count + 1, count, count)
        tables = np.add.reduceat(tables, np.append(begins, count), axis=1)
        tables = np.add.reduceat(np.add.reduceat(tables, begins, axis=2), begins, axis=3)
        row = np.append(present, size)[:, None, None]
        groups = out.pair.reshape(-1, size + 1, size, size)
        groups[used[:, None, None, None], row, present[:, None], present] += tables

    def argmax_of_copies(
        self, potentials: SecondOrderPotentials, copies: LabelCopies
    ) -> tuple[CodeArray, FloatArray]:
        """Return the best paths of copies of labels and their scores."""
        return self.argmax(self.with_copies(potentials, copies)[1])

    def lattice(self, potentials: SecondOrderPotentials) -> Lattice:
        """Return the labelings of the only sequence as paths of a graph."""
        return second_order_lattice(potentials)


class _States:
    """The live labels of tokens, and room for pairs of them."""

    def __init__(self, potentials: SecondOrderPotentials) -> None:
        (count, self._size), sequences = potentials.unary.shape, len(potentials.offsets) - 1
        ptr, label = (
            np.empty(count + sequences + 1, np.int64),
            np.empty(count * self._size + sequences, np.uint32),
        )  # of which only so many numbers take memory as are written
        states = np.empty(sequences, np.int64)
        unary, offsets = frozen(potentials.unary), frozen(potentials.offsets)
        self.of_tokens = find_live(unary, offsets, ptr, label, states)
        self.live = LiveLabels(frozen(ptr), frozen(label[: ptr[-1]]))
        self.of_sequences, self._count = int(states.max(initial=0)), count
        self._longest, self._by_last = longest(potentials), potentials.by_last

    def starts(self) -> IntArray:
        """Return room for where the states of the tokens of a sequence start, and the end."""
        return np.empty(self._longest + 1, np.int64)

    def best_rooms(self) -> BestRooms:
        """Return the workspace of best paths."""
        rooms = self.starts(), np.empty(self.of_sequences), np.empty(self._size)
        return BestRooms(*rooms, self._by_last)

    def rooms(self) -> SecondOrderRooms:
        """Return the workspace of sums."""
        norm, shift = np.empty((2, self._count))
        return SecondOrderRooms(
            self.starts(), np.empty(self.of_sequences), np.empty(self.of_tokens),
            np.empty(len(self.live.label)), norm, shift, np.empty((2, self._size)),
        )  # fmt: skip


def _scores(potentials: SecondOrderPotentials) -> SecondOrderScores:
    """Return the arrays of the potentials, as kernels read them."""
    return SecondOrderScores(
        frozen(potentials.unary), frozen(potentials.pair), frozen(potentials.transition_index),
        frozen(potentials.offsets),
    )  # fmt: skip


def _raised(scores: SecondOrderScores) -> SecondOrderExponentials:
    """Return room for the exponentials of tables, and the largest score of each group."""
    size = scores.unary.shape[1]
    shift = scores.pair.reshape(-1, (size + 1) * size * size).max(axis=1)
    shift[shift == -np.inf] = 0.0
    done = np.zeros(scores.pair.shape[:2], bool)
    return SecondOrderExponentials(np.empty(scores.pair.shape), done, frozen(shift))


def _triples(
    potentials: SecondOrderPotentials, labels: CodeArray
) -> tuple[IntArray, tuple[IntArray, CodeArray, CodeArray]]:
    """Return the tokens with another before them, (n,), and where their scores stand in `pair`."""
    size, index = potentials.n_labels, potentials.transition_index
    is_first = np.zeros(len(labels) + 1, bool)
    is_first[potentials.offsets[:-1]] = True
    tokens = np.flatnonzero(~is_first[:-1])
    table = np.where(is_first[tokens - 1], size, labels[tokens - 2])
    groups = (index[tokens] if len(index) > 1 else index).astype(np.int64)
    return tokens, (groups * (size + 1) + table, labels[tokens - 1], labels[tokens])
