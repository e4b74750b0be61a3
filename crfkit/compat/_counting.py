"""Which weights CRFsuite gives a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from crfkit.data import PackedSequences
from crfkit.features.attributes import ZeroValues
from crfkit.features.vectorizer import SequenceVectorizer, learn_with_zeros
from crfkit.labels.base import TokenLabels
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.choice import Choice, transition_columns
from crfkit.potentials.linear import LinearChainModel, TokenWeights, chain_model
from crfkit.training.data import TrainingData


class CRFsuiteWeights:
    """The weights that CRFsuite chooses, given the parameters.

    An (attribute, label) pair counts with the sum of its values, a (label, next label) pair with
    the number of its occurrences; all pairs, if asked for, also where they count 0. Those that
    count less than "feature.minfreq" are left out. An attribute of the value 0 is seen, too: it
    gets a weight for the label of the token, which is of use where its value is another one.
    """

    def __init__(self, values: dict[str, Any], zeros: ZeroValues | None = None) -> None:
        self.values, self.zeros = values, zeros

    def learn(self, sequences: Any) -> tuple[PackedSequences, SequenceVectorizer]:
        """Pack sequences of dicts or strings, noting where attributes are 0."""
        data, vectorizer, self.zeros = learn_with_zeros(sequences)
        return data, vectorizer

    def choose(self, features: Any, training: TrainingData) -> LinearChainModel:
        """Return the model with the weights that are to be fitted."""
        least, size = float(self.values["feature.minfreq"]), len(training.classes)
        every = bool(self.values["feature.possible_states"]) and least <= 0
        is_plain = training.data.values is None and training.data.dense is None
        if is_plain:
            state = self._plain_pairs(training, least, every)
        else:
            state = self._valued_pairs(training, least, every)
        pairs = transition_columns(training.codes, training.data.offsets, size)
        steps = np.bincount(pairs[pairs >= 0], minlength=size**2).reshape(size, size)
        seen = (steps > 0) | bool(self.values["feature.possible_transitions"])
        return chain_model(state, *np.nonzero((steps >= least) & seen))

    def _plain_pairs(self, training: TrainingData, least: float, every: bool) -> AttributeWeights:
        """Return the pairs with a weight where all values are 1, or 0."""
        data, size = training.data, len(training.classes)
        choice = Choice(data, training.codes, size, min_freq=least)
        pairs = choice.pairs(data, training.codes, size, everything=every)
        if every or least > 0 or self.zeros is None or not len(self.zeros.columns):
            return pairs
        of_zeros = np.zeros(data.n_features, bool)
        of_zeros[self.zeros.columns] = True
        places, attributes = np.cumsum(of_zeros) - 1, np.flatnonzero(of_zeros)
        seen = np.zeros((len(attributes), size), bool)
        seen[places[self.zeros.columns], training.codes[self.zeros.tokens]] = True
        rows, labels = np.nonzero(seen)
        counted = np.repeat(np.arange(data.n_features), np.diff(pairs.ptr)) * size + pairs.columns
        cells = np.append(counted, attributes[rows] * size + labels)
        cells.sort(kind="stable")  # two rising lists: they are merged
        cells = cells[np.diff(cells, prepend=-1) > 0]
        ptr = np.searchsorted(cells, np.arange(data.n_features + 1) * size)
        columns = (cells % size).astype(np.int32)
        return AttributeWeights(ptr, columns, n_columns=size, n_sparse=data.n_sparse)

    def _valued_pairs(self, training: TrainingData, least: float, every: bool) -> AttributeWeights:
        """Return the pairs with a weight, by the sums of the values."""
        counts = self._state_counts(training)
        if every:
            kept = np.nonzero(counts.toarray() >= least)
            ptr = np.append(0, np.cumsum(np.bincount(kept[0], minlength=counts.shape[0])))
            columns = kept[1].astype(np.int32)
        else:
            enough = counts.data >= least
            ptr = np.append(0, np.cumsum(enough))[counts.indptr]
            columns = counts.indices[enough]
        size = len(training.classes)
        return AttributeWeights(ptr, columns, n_columns=size, n_sparse=training.data.n_sparse)

    def _state_counts(self, training: TrainingData) -> sp.csr_array:
        """Return the sums of the values of the pairs that occur, also where they are 0, (D, K)."""
        rows, zeros, size = training.data.to_csr(), self.zeros, len(training.classes)
        labels = np.repeat(training.codes, np.diff(rows.indptr))
        attributes, values = rows.indices.astype(np.int32), rows.data
        if zeros is not None:
            attributes = np.append(attributes, zeros.columns)
            labels = np.append(labels, training.codes[zeros.tokens])
            values = np.append(values, np.zeros(len(zeros.columns)))
        pairs = values, (attributes, labels)
        counts = sp.coo_array(pairs, (training.data.n_features, size)).tocsr()
        counts.sort_indices()
        return counts

    def attributes(self, *fitted: Any) -> dict[str, Any]:
        """Return parameters as fitted attributes."""
        return TokenWeights(TokenLabels()).attributes(*fitted)
