"""Labeled sequences rewritten to single tokens, from which a model of labels is learned.

Where the label before is known, the probability of the next one is a logistic regression: the label
before is one more attribute of the token, and each attribute of a transition becomes one of the
token for each label before. So whatever learns from sequences learns from these tokens.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.data import PackedSequences
from crfkit.data.packed import TAKEN, ranges
from crfkit.data.targets import Targets
from crfkit.potentials.blocks import Pattern
from crfkit.potentials.chain_blocks import (
    StartBlock,
    StateBlock,
    TransitionAttributeBlock,
    TransitionBlock,
)
from crfkit.potentials.linear import LinearChainModel


class Examples(NamedTuple):
    """What a solver sees in place of a model and its training data."""

    model: Any
    training: Any
    # (P,) which parameter of the model each one of its parameters is; None where they are the same
    order: IntArray | None = None

    def inward(self, parameters: FloatArray) -> FloatArray:
        """Return parameters as the solver sees them."""
        return parameters if self.order is None else parameters[self.order]

    def outward(self, parameters: FloatArray) -> FloatArray:
        """Return what the solver sees as parameters of the model."""
        if self.order is None:
            return parameters
        found = np.empty_like(parameters)
        found[self.order] = parameters
        return found


def single_tokens(model: LinearChainModel, training: Any) -> Examples:
    """Return the known tokens as sequences of their own."""
    chosen = _Chosen.alone(training)
    data = _as_sequences(training.data, chosen.tokens)
    plain = model if model.given_structure is None else LinearChainModel(model.blocks)
    return Examples(plain, chosen.labeled(training, data))


def tokens_given_before(model: LinearChainModel, training: Any) -> Examples:
    """Return the known tokens whose label before is known, as sequences of their own.

    The label before, or that there is none, and the attributes of the transition are attributes of
    the token. ValueError if there is no such token, or weights that are none of such attributes.
    """
    if model.extra_blocks:
        names = ", ".join(block.kind for block in model.extra_blocks)
        raise ValueError(f"labels given the label before are not learned with weights of {names}.")
    chosen, layout = _Chosen.given_before(training), _Layout.of(model)
    single, order = layout.stacked(model)
    return Examples(single, chosen.labeled(training, layout.data(training.data, chosen)), order)


class _Chosen(NamedTuple):
    """The tokens to learn from; where labels have probabilities, once for each label before."""

    tokens: IntArray  # (n,)
    before: IntArray  # (n,) the label before, -1 where there is none
    weight: FloatArray  # (n,)

    @classmethod
    def alone(cls, training: Any) -> _Chosen:
        """Return those whose label is known, in full or in part."""
        tokens = np.flatnonzero((training.weight > 0.0) & training.targets.known)
        return cls(tokens, np.full(len(tokens), -1), training.weight[tokens])

    @classmethod
    def given_before(cls, training: Any) -> _Chosen:
        """Return those of them whose label before is known."""
        targets: Targets = training.targets
        counts, before = training.weight > 0.0, training.data.before
        if targets.soft is not None:
            return cls._expected(training, targets.soft)
        is_single = counts & targets.single
        usable = counts & targets.known & ((before < 0) | is_single[before])
        if not usable.any():
            raise ValueError(
                "no token with a known label has a known label before it, or is the first: there "
                "is nothing to learn from."
            )
        tokens = np.flatnonzero(usable)
        origin = before[tokens]
        labels = np.where(origin < 0, -1, targets.states[origin])
        return cls(tokens, labels, training.weight[tokens])

    @classmethod
    def _expected(cls, training: Any, soft: FloatArray) -> _Chosen:
        """Return tokens once for each label before that is possible, weighted by its share."""
        counts, before = training.weight > 0.0, training.data.before
        first = np.flatnonzero(counts & (before < 0))
        later = np.flatnonzero(counts & (before >= 0) & counts[before])
        shares = soft[before[later]]
        row, label = np.nonzero(shares)
        tokens = np.concatenate([first, later[row]])
        labels = np.concatenate([np.full(len(first), -1), label])
        share = np.concatenate([np.ones(len(first)), shares[row, label]])
        order = np.argsort(tokens, kind="stable")
        return cls(tokens[order], labels[order], (share * training.weight[tokens])[order])

    def labeled(self, training: Any, data: PackedSequences) -> Any:
        """Return the data with what is known of the labels."""
        targets = training.targets.take(self.tokens)
        if targets.allowed is not None:
            targets = Targets.of_allowed(targets.allowed)
        return training._replace(data=data, targets=targets, weight=self.weight, vectorizer=None)


def _as_sequences(data: PackedSequences, tokens: IntArray) -> PackedSequences:
    """Return tokens as sequences of their own, without what is between them."""
    offsets = np.arange(len(tokens) + 1)
    whole = len(tokens) == data.n_tokens and (not len(tokens) or bool(np.all(np.diff(tokens) == 1)))
    taken = data if whole else data.take_tokens(tokens)
    left_out = {"transitions": None, "segments": None, "topology": None}
    return taken._from_arrays(**taken.__dict__ | left_out | {"offsets": offsets})


class _Rows(NamedTuple):
    """Some attributes of n tokens."""

    ptr: IntArray  # (n + 1,)
    columns: Any
    values: FloatArray | None  # None where all are 1


class _Layout(NamedTuple):
    """Where attributes of transitions stand among those of tokens.

    After the sparse attributes of tokens come those of the K labels before, and of none; then those
    of transitions, each with a label before, that have weights; last, the dense ones of tokens.
    """

    n_sparse: int
    n_labels: int
    has_start: bool
    pairs: IntArray | None  # (n,) attribute K + label before, rising

    @classmethod
    def of(cls, model: LinearChainModel) -> _Layout:
        """Return that of a model."""
        block, size, pairs = model.find(TransitionAttributeBlock), model.n_labels, None
        if block is not None:
            pairs = np.unique(block.pattern.numbers // size)
        return cls(model.state.n_sparse, size, model.find(StartBlock) is not None, pairs)

    @property
    def total(self) -> int:
        """How many attributes are sparse."""
        more = 0 if self.pairs is None else len(self.pairs)
        return self.n_sparse + self.n_labels + 1 + more

    def stacked(self, model: LinearChainModel) -> tuple[LinearChainModel, IntArray | None]:
        """Return the model of single tokens, and its parameters among those of the chain."""
        size, numbers = self.n_labels, []
        for block in model.blocks:
            rows, columns = block.pattern.rows, block.pattern.columns.astype(np.int64)
            if block.name == StateBlock.name:
                rows = np.where(rows < self.n_sparse, rows, rows - self.n_sparse + self.total)
            elif block.name == TransitionBlock.name:
                rows = rows + self.n_sparse
            elif block.name == StartBlock.name:
                rows = rows + self.n_sparse + size
            else:
                found, columns = np.divmod(block.pattern.numbers, size)
                rows = self.n_sparse + size + 1 + np.searchsorted(self._known, found)
            numbers.append(rows * size + columns)
        places, order = np.concatenate(numbers), None
        if np.any(np.diff(places) < 0):  # dense attributes
            order = np.argsort(places)
            places = places[order]
        shape = (self.total + model.state.n_features - self.n_sparse, size)
        state = StateBlock.of_pattern(Pattern.of_numbers(places, shape, self.total))
        return LinearChainModel([state, TransitionBlock.without_weights(size)]), order

    @property
    def _known(self) -> IntArray:
        return np.zeros(0, np.int64) if self.pairs is None else self.pairs

    def data(self, data: PackedSequences, chosen: _Chosen) -> PackedSequences:
        """Return the chosen tokens as sequences of their own, with all attributes."""
        own = _as_sequences(data, chosen.tokens)
        parts = [_Rows(own.indptr, own.indices, own.values), self._labels(chosen.before)]
        if self.pairs is not None:
            parts.append(self._of_transitions(data, chosen))
        ptr, columns, values = _beside(parts)
        return own._from_arrays(
            offsets=own.offsets, indptr=ptr, indices=columns, values=values, n_sparse=self.total,
            dense=own.dense,
        )  # fmt: skip

    def _labels(self, before: IntArray) -> _Rows:
        """Return the attribute of the label before, and of first tokens if it has weights."""
        has = np.ones(len(before), bool) if self.has_start else before >= 0
        labels = np.where(before < 0, self.n_labels, before)[has]
        return _Rows(np.append(0, np.cumsum(has)), self.n_sparse + labels, None)

    def _of_transitions(self, data: PackedSequences, chosen: _Chosen) -> _Rows:
        """Return the attributes of transitions with the labels before, where they have weights."""
        if data.transitions is None:
            raise ValueError("the model has weights of attributes of transitions, X has none.")
        rows = data.transitions.to_csr()[chosen.tokens]
        labels = np.repeat(chosen.before, np.diff(rows.indptr))
        pairs = rows.indices.astype(np.int64) * self.n_labels + labels
        places = np.searchsorted(self._known, pairs)
        has = (labels >= 0) & (places < len(self._known))
        has[has] = self._known[places[has]] == pairs[has]
        ptr = np.append(0, np.cumsum(has))[rows.indptr]
        values = None if np.all(rows.data == 1.0) else rows.data[has]
        return _Rows(ptr, self.n_sparse + self.n_labels + 1 + places[has], values)


def _beside(parts: list[_Rows]) -> _Rows:
    """Return the attributes of tokens side by side."""
    counts = [np.diff(part.ptr) for part in parts]
    ptr = np.append(0, np.cumsum(np.sum(counts, axis=0))).astype(np.int64)
    columns = np.empty(ptr[-1], np.int32)
    plain = all(part.values is None for part in parts)
    values = None if plain else np.ones(ptr[-1])
    start = ptr[:-1].copy()
    for part, count in zip(parts, counts, strict=True):
        for first in range(0, len(count), TAKEN):  # lists of places are large
            some = slice(first, first + TAKEN)
            places = ranges(start[some], count[some])
            entries = slice(part.ptr[first], part.ptr[first] + len(places))
            columns[places] = part.columns[entries]
            if values is not None and part.values is not None:
                values[places] = part.values[entries]
        start += count
    return _Rows(ptr, columns, values)
