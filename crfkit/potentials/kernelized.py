"""Scores that are linear in kernel values with the tokens of the training data."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from crfkit._parallel import SERIAL, Chunk, ThreadMap
from crfkit._types import CodeArray, FloatArray, IntArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.topology import check_no_topology
from crfkit.potentials.base import PotentialsModel
from crfkit.potentials.chain_blocks import TransitionBlock, boundary_rows
from crfkit.structures import Chain, ChainPotentials

# Kernel values of new tokens that are held at a time.
CELLS = 1 << 22
# Kernel values of a pair of tokens in the two orders may differ by this share of the largest.
ASYMMETRY = 1e-8
# Rows that are compared with columns at a time.
ROWS = 256

# Coefficients that are a smaller share of the largest one are what rounding leaves.
NO_COEFFICIENT = 1e-12

# These are symmetric, but for rounding of large features.
NAMED = ("linear", "rbf", "poly")

KernelFunction = Callable[..., Any]


class Kernel(NamedTuple):
    """A kernel of the features of two tokens, and its parameters.

    One of :func:`sklearn.metrics.pairwise.pairwise_kernels`, "precomputed", or a function of two
    matrices, of n and m rows, that returns a matrix of shape (n, m). It must be symmetric and
    positive semidefinite; matrices may be sparse.
    """

    name: str | KernelFunction
    params: Mapping[str, Any]

    @property
    def is_precomputed(self) -> bool:
        """Whether the features are the kernel values themselves."""
        return isinstance(self.name, str) and self.name == "precomputed"

    def __call__(self, left: Any, right: Any) -> FloatArray:
        """Return the kernel values of the rows of two matrices, (n, m), all finite."""
        shape = (left.shape[0], right.shape[0])
        if not all(shape):
            return np.zeros(shape)
        function: Any = self.name
        if isinstance(self.name, str):
            from sklearn.metrics.pairwise import pairwise_kernels  # most models need none of it

            function = partial(pairwise_kernels, metric=self.name)
        found = function(left, right, **self.params)
        values = np.ascontiguousarray(found.toarray() if issparse(found) else found, np.float64)
        if values.shape != shape:
            raise ValueError(
                f"kernel={self.name!r} returned an array of shape {values.shape} for matrices of "
                f"{shape[0]} and {shape[1]} rows; it must return one of shape {shape}."
            )
        if not np.isfinite(values).all():
            raise ValueError(
                f"kernel={self.name!r} has values that are NaN or infinite. Scale the features, or "
                "choose other kernel_params."
            )
        return values


class Gram:
    """Kernel values between all tokens of the training data.

    They are computed at once where they fit into the memory that is allowed; otherwise the rows of
    a sequence are computed when they are asked for, and the latest ones are kept.

    With `boundaries`, 1 is added to the values of two first tokens of a sequence, and of two last
    ones: as if these had an attribute of their own, which gives their labels weights. ValueError if
    not even the rows of the longest sequence fit, precomputed values are no square, or values are
    not symmetric; where they are not held at once, only those inside of a sequence are compared.
    """

    def __init__(
        self, kernel: Kernel, data: PackedSequences, max_bytes: int, *, boundaries: bool = False
    ) -> None:
        self._kernel, self._data = kernel, data
        self._ends = boundary_rows(data.offsets) if boundaries else ()
        size, longest = data.n_tokens, int(data.lengths.max(initial=0))
        if kernel.is_precomputed:
            _check_square(data)
        elif 8 * size * longest > max_bytes:
            raise ValueError(
                f"the kernel values of the longest sequence ({longest} tokens) with all {size} "
                f"tokens take {8 * size * longest:,} bytes, more than the {max_bytes:,} that are "
                "allowed. Use fewer or shorter sequences, or sklearn.kernel_approximation.Nystroem "
                "features with kernel='linear'."
            )
        self._most = max(max_bytes // max(8 * size * longest, 1), 1)
        self._kept: OrderedDict[int, FloatArray] = OrderedDict()
        self._whole: FloatArray | None = None
        if kernel.is_precomputed:
            self._whole = np.array(data.dense) if boundaries else np.ascontiguousarray(data.dense)
        elif 8 * size**2 <= max_bytes:
            matrix = data._rows(0, size)
            self._whole = kernel(matrix, matrix)
        if self._whole is not None:
            self._check_symmetric(self._whole)
            for tokens in self._ends:
                self._whole[np.ix_(tokens, tokens)] += 1.0

    def rows(self, sequence: int) -> FloatArray:
        """Return the kernel values of the tokens of a sequence with all tokens, shape (T, N)."""
        begin, end = self._data.offsets[sequence : sequence + 2].tolist()
        if self._whole is not None:
            return self._whole[begin:end]
        found = self._kept.pop(sequence, None)
        if found is None:
            matrix = self._data._rows(0, self._data.n_tokens)
            found = self._kernel(matrix[begin:end], matrix)
            self._check_symmetric(found[:, begin:end])
            for tokens in self._ends:
                inside = tokens[(tokens >= begin) & (tokens < end)]
                found[np.ix_(inside - begin, tokens)] += 1.0
            if len(self._kept) >= self._most:
                self._kept.popitem(last=False)
        self._kept[sequence] = found
        return found

    def _check_symmetric(self, values: FloatArray) -> None:
        """Raise ValueError if the kernel values between some tokens depend on their order."""
        if self._kernel.name in NAMED:
            return
        largest = np.abs(values).max(initial=0.0)
        for first in range(0, len(values), ROWS):
            rows, columns = values[first : first + ROWS], values[:, first : first + ROWS].T
            if np.abs(rows - columns).max() > ASYMMETRY * largest:
                raise ValueError(
                    f"kernel={self._kernel.name!r} is not symmetric: its value for two tokens "
                    "depends on their order. A kernel must be symmetric and positive semidefinite."
                )


class KernelWeights(NamedTuple):
    """Coefficients in their places."""

    dual: FloatArray  # (n, K) of each support token
    pair: FloatArray  # (1, K, K) weights of transitions
    start: FloatArray  # (K,) weights of the labels of first tokens
    end: FloatArray  # (K,) of last ones


class KernelChainModel(PotentialsModel):
    """``unary_t[k] = sum_s a[s, k] kernel(x_s, x_t)`` and ``pair[i, j] = v[i, j]``.

    The sum goes over support tokens: with weights ``w_k = sum_s a[s, k] phi(x_s)`` it is the inner
    product ``w_k . phi(x_t)`` (equations 46 and 47 of Gupta's report on conditional random fields).
    Transitions stay linear. The parameters are the coefficients, token by token, and then the
    weights of transitions.

    `places`, shape (n,), tell where the `support` stands among the N tokens of the training data;
    it is None where kernel values are precomputed. `offsets`, shape (S + 1,), are given in training
    with weights of first and last labels, which are sums of the coefficients of these tokens.
    """

    is_linear = False
    is_kernelized = True

    def __init__(
        self,
        kernel: Kernel,
        support: PackedSequences | None,
        places: IntArray,
        transition_from: CodeArray | IntArray,
        transition_to: CodeArray | IntArray,
        n_labels: int,
        offsets: IntArray | None = None,
    ) -> None:
        self.kernel, self.support, self.places, self.offsets = kernel, support, places, offsets
        self.transitions = TransitionBlock(transition_from, transition_to, n_labels)
        self.transition_from, self.transition_to = self.transitions.source, self.transitions.target
        self.n_labels = self.n_codes = self.n_columns = n_labels
        self.n_coefficients = len(places) * n_labels
        self.n_parameters = self.n_coefficients + self.transitions.n_parameters
        self.chunk_tokens = max(1, CELLS // max(len(places), n_labels, 1))
        self.structure = Chain()

    @property
    def parameter_counts(self) -> dict[str, int]:
        """Numbers of parameters by what they are, in words."""
        return {
            "attribute x label": self.n_coefficients,
            self.transitions.kind: self.transitions.n_parameters,
        }

    def bind(self, parameters: FloatArray) -> KernelWeights:
        """Return the parameters in their places."""
        dual = parameters[: self.n_coefficients].reshape(len(self.places), self.n_labels)
        pair = self.transitions.bind(parameters[self.n_coefficients :])
        if self.offsets is None:
            return KernelWeights(dual, pair, np.zeros(self.n_labels), np.zeros(self.n_labels))
        first, last = boundary_rows(self.offsets)
        return KernelWeights(dual, pair, dual[first].sum(axis=0), dual[last].sum(axis=0))

    def fitted(self, parameters: FloatArray) -> dict[str, Any]:
        """Return the attributes of a fitted estimator: coefficients that are not 0, and weights."""
        weights = self.bind(parameters)
        sizes = np.abs(weights.dual).max(axis=1, initial=0.0)
        support = np.flatnonzero(sizes > NO_COEFFICIENT * sizes.max(initial=0.0))
        return {
            "support_": support,
            "dual_coef_": weights.dual[support],
            "support_vectors_": None if self.support is None else self.support.take_tokens(support),
            "transitions_": weights.pair[0].copy(),
            "start_weights_": weights.start,
            "end_weights_": weights.end,
            "transition_coef_": None,
        }

    @classmethod
    def of_fitted(
        cls, fitted: Mapping[str, Any], kernel: Kernel
    ) -> tuple[KernelChainModel, KernelWeights]:
        """Return the model of fitted attributes, and its coefficients and weights."""
        transitions = fitted["transitions_"]
        source, target = np.nonzero(transitions)
        support = fitted["support_vectors_"]
        model = cls(kernel, support, fitted["support_"], source, target, len(transitions))
        weights = (transitions[None], fitted["start_weights_"], fitted["end_weights_"])
        return model, KernelWeights(fitted["dual_coef_"], *weights)

    def scores(
        self, bound: KernelWeights, data: PackedSequences, chunk: Chunk, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the scores of the sequences of a chunk of new data."""
        check_no_topology(data.topology, "a model of kernels")
        tokens = chunk.tokens
        unary = self.values(data, tokens.start, tokens.stop) @ bound.dual
        offsets = chunk.offsets - tokens.start
        first, last = boundary_rows(offsets)
        unary[first] += bound.start
        unary[last] += bound.end
        return ChainPotentials.of(unary, bound.pair, offsets, chunk.first)

    def values(self, data: PackedSequences, begin: int, end: int) -> FloatArray:
        """Return the kernel values of new tokens with the support, (T, n)."""
        if self.support is None:
            rows = data._rows(begin, end)
            values: FloatArray = (rows.toarray() if data.n_sparse else rows)[:, self.places]
            return values
        sparse = bool(data.n_sparse or self.support.n_sparse)
        return self.kernel(
            data._rows(begin, end, as_sparse=sparse),
            self.support._rows(0, self.support.n_tokens, as_sparse=sparse),
        )


def _check_square(data: PackedSequences) -> None:
    if data.n_sparse or data.dense is None or data.n_features != data.n_tokens:
        kind = "sparse" if data.n_sparse else "dense"
        raise ValueError(
            f"kernel='precomputed' needs a dense matrix of shape (T, {data.n_tokens}) for each "
            "sequence: the kernel values of its tokens with all tokens of X, in order. X has "
            f"{data.n_features} {kind} features a token. Folds of a cross-validation must take "
            "some of the columns too, which GridSearchCV does not do: give it a function as kernel."
        )
