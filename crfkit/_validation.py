"""Checks of what users pass in; messages name the sequence, the position and the feature."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.data import PackedSequences
from crfkit.data.matrices import numeric_array

BADLY_SCALED = 1e3  # from where on a feature is reported as too large beside the others


def check_lengths(offsets: IntArray, others: IntArray, name: str) -> None:
    """Raise ValueError if two lots of sequences do not match in number and lengths.

    Parameters
    ----------
    offsets : ndarray of shape (S + 1,)
        Of the sequences of X.
    others : ndarray of shape (S + 1,)
        Of the sequences of `name`.
    name : str
        "y" or "sample_weight".
    """
    if len(offsets) != len(others):
        raise ValueError(
            f"X has {len(offsets) - 1} sequences, but {name} has {len(others) - 1}: "
            f"give one sequence of {name} for each of X."
        )
    ours, theirs = np.diff(offsets), np.diff(others)
    if not np.array_equal(ours, theirs):
        s = int(np.argmax(ours != theirs))
        raise ValueError(
            f"sequence {s}: X has {ours[s]} tokens, but {name} has {theirs[s]} items. "
            "Every token needs exactly one."
        )


def check_training(data: PackedSequences) -> None:
    """Raise ValueError if there is nothing to learn from."""
    if len(data) == 0:
        raise ValueError("X has no sequences: there is nothing to learn from.")
    empty = np.flatnonzero(data.lengths == 0)
    if len(empty):
        raise ValueError(
            f"sequence {empty[0]} has no tokens ({len(empty)} such in all): nothing can be learned "
            "from it. Leave empty sequences out of the training data."
        )
    blocks = (data, data.steps, data.segments)
    if all(block is None or block.n_features == 0 for block in blocks):
        raise ValueError("no token of X has any feature: there is nothing to learn from.")


def check_sample_weight(sample_weight: Any, offsets: IntArray) -> FloatArray:
    """Return a weight for each token.

    Parameters
    ----------
    sample_weight : None, array of shape (S,), or sequence of S arrays of shape (T,)
        Weights of sequences or of tokens.
    offsets : ndarray of shape (S + 1,)
        Of the sequences of X.

    Returns
    -------
    ndarray of shape (N,)
        The weights of the tokens.

    Raises
    ------
    ValueError
        If the shape fits neither, or a weight is negative, NaN or infinite, or all are 0.
    TypeError
        If a weight is not a number.
    """
    lengths = np.diff(offsets)
    if sample_weight is None:
        return np.ones(int(offsets[-1]))
    single = not hasattr(sample_weight, "__iter__") or getattr(sample_weight, "ndim", 1) == 0
    if single or isinstance(sample_weight, (str, bytes, Mapping)):
        raise TypeError(
            f"sample_weight is a {type(sample_weight).__name__}; give one number for each "
            "sequence, or a list with an array of token weights for each sequence."
        )
    items = list(sample_weight)
    if any(np.ndim(item) for item in items):
        weight = _token_weights(items, offsets)
    else:
        if len(items) != len(lengths):
            raise ValueError(
                f"sample_weight has {len(items)} numbers for {len(lengths)} sequences. Give one "
                "for each sequence, or a list with an array of token weights for each sequence."
            )
        weight = np.repeat(_numbers(items, "sample_weight"), lengths)
    _check_weights(weight, offsets)
    return weight


def _token_weights(items: list[Any], offsets: IntArray) -> FloatArray:
    rows = [_numbers(item, f"sample_weight of sequence {s}") for s, item in enumerate(items)]
    bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    check_lengths(offsets, bounds, "sample_weight")
    return np.concatenate(rows)


def _numbers(items: Iterable[Any], name: str) -> FloatArray:
    try:
        return numeric_array(items, name).reshape(-1)
    except ValueError as error:
        raise TypeError(f"{name} must be numbers: {error}") from error


def _check_weights(weight: FloatArray, offsets: IntArray) -> None:
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if len(bad):
        s = int(np.searchsorted(offsets, bad[0], side="right")) - 1
        raise ValueError(
            f"sequence {s}, position {bad[0] - offsets[s]}: the sample weight is "
            f"{weight[bad[0]]}; weights must be finite and not negative."
        )
    if len(weight) and not weight.any():
        raise ValueError("all sample weights are 0: no sequence counts.")


def warn_if_badly_scaled(data: PackedSequences) -> None:
    """Warn of a numeric feature that is a thousand times larger than most others."""
    if data.values is None and data.dense is None:
        return  # indicators are all of size 1
    sizes = _column_sizes(data)
    used = sizes > 0.0
    if not used.any():
        return
    largest, middle = int(np.argmax(sizes)), float(np.median(sizes[used]))
    if sizes[largest] > BADLY_SCALED * middle:
        names = data.feature_names
        name = largest if names is None else repr(names[largest])
        warnings.warn(
            f"feature {name} is about {sizes[largest]:.2g} in size, most features are about "
            f"{middle:.2g}: the solver may be slow or stop too early, and the penalty falls on "
            "the small ones. Scale numeric features to about 1.",
            UserWarning,
            stacklevel=6,
        )


def _column_sizes(data: PackedSequences) -> FloatArray:
    """Return the root mean square of the non-zero values of each feature, shape (D,)."""
    uses = np.bincount(data.indices, minlength=data.n_sparse)
    squares = uses.astype(float)
    if data.values is not None:
        squares = np.bincount(data.indices, data.values**2, minlength=data.n_sparse)
    if data.dense is not None:
        uses = np.append(uses, np.count_nonzero(data.dense, axis=0))
        squares = np.append(squares, np.einsum("nf,nf->f", data.dense, data.dense))
    return np.sqrt(squares / np.maximum(uses, 1))
