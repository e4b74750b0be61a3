"""Which weights CRFsuite gives a model."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import CodeArray, IntArray
from crfkit.data import PackedSequences
from crfkit.data.labels import iterate_sequences
from crfkit.data.validation import is_matrix
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.blocks import transition_columns
from crfkit.potentials.linear import LinearChainModel, chain_model

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
        """Return the numbers of the names in `index`, and the tokens.

        Parameters
        ----------
        kept : ndarray of bool, shape (N,), optional
            Which tokens are kept; they are then counted without the others.
        """
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


def choose_as_crfsuite(
    data: PackedSequences,
    codes: CodeArray,
    n_labels: int,
    zeros: tuple[IntArray, IntArray],
    *,
    min_freq: float,
    all_states: bool,
    all_transitions: bool,
) -> LinearChainModel:
    """Choose the weights that CRFsuite would choose.

    An (attribute, label) pair counts with the sum of its values, a (label, next label) pair with
    the number of its occurrences; `all_states` and `all_transitions` add pairs that count 0. Those
    that count less than `min_freq` are left out.

    Parameters
    ----------
    data : PackedSequences
        N tokens with D attributes.
    codes : ndarray of shape (N,)
        Their labels.
    n_labels : int
        K.
    zeros : tuple of arrays
        Attributes, by their columns, and tokens of values of 0.
    min_freq : float
        What pairs have to count at least.
    all_states, all_transitions : bool
        Add all D x K and K x K pairs.
    """
    counts = _state_counts(data, codes, n_labels, zeros)
    if all_states and min_freq <= 0:
        kept = np.nonzero(counts.toarray() >= min_freq)
        ptr = np.append(0, np.cumsum(np.bincount(kept[0], minlength=data.n_features)))
        state = AttributeWeights(
            ptr, kept[1].astype(np.int32), n_columns=n_labels, n_sparse=data.n_sparse
        )
    else:
        enough = counts.data >= min_freq
        ptr = np.append(0, np.cumsum(enough))[counts.indptr]
        state = AttributeWeights(
            ptr, counts.indices[enough], n_columns=n_labels, n_sparse=data.n_sparse
        )
    pairs = transition_columns(codes, data.offsets, n_labels)
    steps = np.bincount(pairs[pairs >= 0], minlength=n_labels**2).reshape(n_labels, n_labels)
    source, target = np.nonzero((steps >= min_freq) & (all_transitions | (steps > 0)))
    return chain_model(state, source, target)


def _state_counts(
    data: PackedSequences, codes: CodeArray, n_labels: int, zeros: tuple[IntArray, IntArray]
) -> sp.csr_array:
    """Return the sums of the values of the pairs that occur, also where they are 0, (D, K)."""
    rows = data.to_csr()
    tokens = np.repeat(np.arange(data.n_tokens), np.diff(rows.indptr))
    attributes = np.append(rows.indices, zeros[0])
    labels = codes[np.append(tokens, zeros[1])]
    values = np.append(rows.data, np.zeros(len(zeros[0])))
    shape = (data.n_features, n_labels)
    counts = sp.coo_array((values, (attributes, labels)), shape).tocsr()
    counts.sort_indices()
    return counts
