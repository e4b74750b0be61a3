"""The objective as a sum over small batches of sequences, for solvers that move after each."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils import check_random_state

from crfkit._parallel import Chunk, Item, Result, make_chunks
from crfkit._types import CodeArray, Counts, FloatArray, IdArray, IntArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.packed import ranges
from crfkit.data.targets import Targets, Weights
from crfkit.potentials import LinearModel
from crfkit.potentials.linear import Prepared
from crfkit.structures import NoPathError, Structure

if TYPE_CHECKING:
    from crfkit.objective.batch import Objective


class StochasticObjective:
    """Labeled data in batches of whole sequences, dealt at random once.

    A batch, of about so many `tokens`, is one unit of work of one thread; a sequence is never cut.
    The batches and what is computed from them do not depend on the number of threads. Potentials
    are sums of weights, or TypeError; what is added to them otherwise, the structure adds.
    """

    source: PackedSequences  # the sequences in the order in which they were given
    offsets: IntArray  # (S + 1,) where the sequences start as they were dealt, and the end
    chunks: list[Chunk]  # the sequences of each batch, in this order
    is_convex: bool  # whether the objective is known to be convex
    has_known_labels: bool  # whether each token has one known label
    plain: Structure  # the structure that adds nothing
    n_computed: int  # how many batches were worked on so far, each as often as that was done

    def __init__(
        self, objective: Objective, tokens: int, random_state: int | np.random.RandomState
    ) -> None:
        model, data = objective.model, objective.data
        if not model.is_linear:
            raise TypeError("mini-batches need a linear model; use solver='lbfgs'.")
        self._order = check_random_state(random_state).permutation(len(data))
        self.source = data
        rows = self.tokens
        self.model, self.structure = cast(LinearModel, model).linear(objective.structure)
        self.plain, self.loss = objective.structure, objective.loss
        self.penalty, self.threads = objective.penalty, objective.threads
        self.nonnegative = objective.nonnegative
        self._lock = threading.Lock()
        self._targets, self._source_weight = objective.targets.take(rows), objective.weight
        self.is_convex, self.has_known_labels = objective.is_convex, objective.has_known_labels
        self.offsets = np.concatenate([[0], np.cumsum(data.lengths[self._order])])
        self.n_parameters, self.n_tokens, self.n_computed = model.n_parameters, data.n_tokens, 0
        self._cut(tokens)

    def _cut(self, tokens: int) -> None:
        """Cut the sequences into batches."""
        self.chunks, self._batches = make_chunks(self.offsets, tokens), dict[int, Prepared]()
        self._shared = [
            Weights.of(self._weight[chunk.tokens], chunk.offsets - chunk.tokens.start).sequences
            for chunk in self.chunks
        ]

    def regrouped(self, tokens: int) -> StochasticObjective:
        """Return the same sequences, dealt alike, in batches of another size."""
        other = copy.copy(self)
        other._cut(tokens)
        return other

    def __len__(self) -> int:
        return len(self.chunks)

    @property
    def tokens(self) -> IdArray:
        """The tokens of `source` in the order in which sequences were dealt, shape (N,)."""
        offsets, lengths = self.source.offsets, self.source.lengths
        return ranges(offsets[:-1][self._order], lengths[self._order]).astype(np.uint32)

    @cached_property
    def _weight(self) -> FloatArray:
        """The weights of all tokens, in the order in which sequences were dealt."""
        weight = self._source_weight
        return weight if weight.strides == (0,) else weight[self.tokens]  # one number for all

    @property
    def data(self) -> PackedSequences:
        """The sequences, in the order in which they were dealt: a copy, until `release_data`."""
        with self._lock:
            return self._dealt

    @cached_property
    def _dealt(self) -> PackedSequences:
        dealt: PackedSequences = self.source[self._order]
        return dealt

    def _prepared(self, index: int) -> Prepared:
        """Return what a batch needs of the data, made when it is first asked for."""
        found = self._batches.get(index)
        if found is None:
            found = self.model.prepare_active(self.data, self.chunks[index])
            self._batches[index] = found
        return found

    def release_data(self) -> None:
        """Let go of the copy of the data until it is asked for again."""
        self.__dict__.pop("_dealt", None)
        self._batches.clear()

    @property
    def mean_square(self) -> float:
        """The mean over tokens of the sum of the squared values of their attributes."""
        values, dense = self.source.values, self.source.dense
        total = float(len(self.source.indices) if values is None else np.square(values).sum())
        total += 0.0 if dense is None else float(np.square(dense).sum())
        return total / max(self.n_tokens, 1)

    @property
    def has_sequence_weights(self) -> bool:
        """Whether all tokens of a sequence have the same weight, for each sequence."""
        return all(shared is not None for shared in self._shared)

    @property
    def weighted_tokens(self) -> FloatArray:
        """The sum of the weights of the tokens of each batch, shape (B,)."""
        return np.array([self._weight[chunk.tokens].sum() for chunk in self.chunks])

    def bind(self, w: FloatArray) -> Any:
        """Return parameters, shape (P,), in their places; views where that can be."""
        return self.model.bind(w)

    def scores(self, bound: Any, index: int) -> Potentials:
        """Return the scores of a batch."""
        return self.model.prepared_scores(bound, self._prepared(index), 0)

    def value_and_residual(self, scores: Potentials, index: int) -> tuple[float, Counts]:
        """Return the loss of a batch and its gradient with respect to the scores."""
        out, targets = self.structure.zeros(scores), self.targets(index)
        weights = Weights(self._weight[self.chunks[index].tokens], self._shared[index])
        with self.original_sequence_numbers():
            return self.loss.value_and_grad(self.structure, scores, targets, weights, out), out

    def map_batches(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return ``[work(item) for item in items]``, over threads; an item stands for a batch."""
        self.n_computed += len(items)
        return self.threads(work, items)

    def value(self, w: FloatArray, chosen: IntArray | None = None) -> float:
        """Return the loss of all batches plus the penalty, or of some plus their share of it."""
        bound = self.bind(w)

        def loss(index: int) -> float:
            return self.value_and_residual(self.scores(bound, index), index)[0]

        losses = self.map_batches(loss, range(len(self)) if chosen is None else chosen.tolist())
        return sum(losses) + self.penalty_at(w) * (len(losses) / len(self) if losses else 1.0)

    def penalty_at(self, w: FloatArray) -> float:
        """Return the whole penalty, also the part that is not differentiable."""
        return self.penalty.smooth_value(w) + self.penalty.l1 * float(np.abs(w).sum())

    def places(self, index: int) -> IdArray:
        """Return the parameters that a batch depends on, each once, shape (n,)."""
        return self.model.active(self._prepared(index))

    def gradient(self, index: int, residual: Counts) -> FloatArray:
        """Return the gradient, but for the penalty, to the `places` of a batch, shape (n,)."""
        return self.model.active_gradient(residual, self._prepared(index))

    @contextmanager
    def original_sequence_numbers(self) -> Iterator[None]:
        """Have errors name a sequence by its number in the data, not by that in the batches."""
        try:
            yield
        except NoPathError as error:
            number = int(self._order[error.sequence])
            raise type(error)(number, error.position) from error

    @property
    def states(self) -> CodeArray:
        """A code that each token may have, in this order, (N,)."""
        return self._targets.states

    @property
    def all_labels(self) -> CodeArray:
        """The label codes of all tokens, in this order, (N,); ValueError if some have several."""
        return self._targets.labels

    def targets(self, index: int) -> Targets:
        """Return what is known of the labels of the tokens of a batch."""
        return self._targets.take(self.chunks[index].tokens)

    def labels(self, index: int) -> CodeArray:
        """Return the label codes of the tokens of a batch; ValueError if some have several."""
        return self.targets(index).labels

    def sequence_weight(self, index: int) -> FloatArray:
        """Return the weight of each sequence of a batch, (S,); ValueError if tokens' differ."""
        return Weights(np.zeros(0), self._shared[index]).shared


def rounds(order: IntArray, size: int) -> Iterator[list[int]]:
    """Cut batches into rounds of `size`; one that comes twice in a round is taken once."""
    for first in range(0, len(order), size):
        yield list(dict.fromkeys(order[first : first + size].tolist()))
