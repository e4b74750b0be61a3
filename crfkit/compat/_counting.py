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
from crfkit.potentials.choice import transition_columns
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
        counts = self._state_counts(training)
        if self.values["feature.possible_states"] and least <= 0:
            kept = np.nonzero(counts.toarray() >= least)
            ptr = np.append(0, np.cumsum(np.bincount(kept[0], minlength=counts.shape[0])))
            columns = kept[1].astype(np.int32)
        else:
            enough = counts.data >= least
            ptr = np.append(0, np.cumsum(enough))[counts.indptr]
            columns = counts.indices[enough]
        state = AttributeWeights(ptr, columns, n_columns=size, n_sparse=training.data.n_sparse)
        pairs = transition_columns(training.codes, training.data.offsets, size)
        steps = np.bincount(pairs[pairs >= 0], minlength=size**2).reshape(size, size)
        seen = (steps > 0) | bool(self.values["feature.possible_transitions"])
        return chain_model(state, *np.nonzero((steps >= least) & seen))

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
