"""Which weights CRFsuite gives a model."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import IntArray
from crfkit.data.labels import iterate_sequences
from crfkit.data.validation import is_matrix
from crfkit.labels.base import TokenLabels
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.blocks import transition_columns
from crfkit.potentials.linear import LinearChainModel, TokenWeights, chain_model
from crfkit.training.data import TrainingData

_NEVER_ZERO = (str, list, tuple, set, frozenset)


class ZeroValues:
    """Notes which attributes have the value 0 in which token.

    Packed features have no entry for them. To CRFsuite such an attribute is seen: it gets a weight
    for the label of the token, which is of use where its value is another one.
    """

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self._names, self._tokens = array("q"), array("q")
        self._n_tokens = 0

    def watch(self, X: Any) -> Iterator[Any]:
        """Yield the sequences of `X`, noting the zeros of each once it has been used."""
        for sequence in iterate_sequences(X, "X"):
            if is_matrix(sequence):
                yield sequence
            else:
                tokens = list(sequence)
                yield tokens
                self.add(tokens)

    def add(self, tokens: Iterable[Any]) -> None:
        """Note the zeros of the tokens of one sequence."""
        for token in tokens:
            if isinstance(token, Mapping):
                names = _zero_names(token, "")
                self._names.extend([self.index.setdefault(n, len(self.index)) for n in names])
                self._tokens.extend([self._n_tokens] * len(names))
            self._n_tokens += 1

    def entries(self, kept: NDArray[np.bool_] | None = None) -> tuple[IntArray, IntArray]:
        """Return the numbers of names in `index`, and the tokens, of those `kept`, (N,)."""
        names = np.array(self._names, np.int64)
        tokens = np.array(self._tokens, np.int64)
        if kept is None:
            return names, tokens
        chosen = kept[tokens]
        return names[chosen], (np.cumsum(kept) - 1)[tokens[chosen]]


def _zero_names(token: Mapping[str, Any], prefix: str) -> list[str]:
    """Return the names of the values of 0, in the order of the items."""
    names = []
    for key, value in token.items():
        if value.__class__ is str:  # nearly all are
            continue
        if value is False:
            names.append(prefix + key)
        elif isinstance(value, Mapping):
            names += _zero_names(value, f"{prefix}{key}:")
        elif not isinstance(value, _NEVER_ZERO) and value == 0:
            names.append(prefix + key)
    return names


class CRFsuiteWeights(NamedTuple):
    """The weights that CRFsuite chooses.

    An (attribute, label) pair counts with the sum of its values, a (label, next label) pair with
    the number of its occurrences; all pairs, if asked for, also where they count 0. Those that
    count less than "feature.minfreq" are left out.
    """

    values: dict[str, Any]  # the parameters
    zeros: ZeroValues  # attributes of the value 0, which packed features do not have
    kept: NDArray[np.bool_] | None  # which of their tokens are those of the training data, (N,)

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
        rows, (columns, at) = training.data.to_csr(), self._zero_entries(training)
        tokens = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        attributes = np.append(rows.indices, columns)
        labels = training.codes[np.append(tokens, at)]
        values = np.append(rows.data, np.zeros(len(columns)))
        shape = (training.data.n_features, len(training.classes))
        counts = sp.coo_array((values, (attributes, labels)), shape).tocsr()
        counts.sort_indices()
        return counts

    def _zero_entries(self, training: TrainingData) -> tuple[IntArray, IntArray]:
        """Return the columns of attributes with the value 0, and the tokens."""
        names, tokens = self.zeros.entries(self.kept)
        if not self.zeros.index:
            return names, tokens
        known: Any = training.data.feature_names
        vocabulary = {name: column for column, name in enumerate(known)}
        columns = np.array([vocabulary[name] for name in self.zeros.index], np.int64)
        return columns[names], tokens

    def attributes(self, *fitted: Any) -> dict[str, Any]:
        """Return parameters as fitted attributes."""
        return TokenWeights(TokenLabels()).attributes(*fitted)
