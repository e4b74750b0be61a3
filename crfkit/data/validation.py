"""Checks of what users pass in; messages name the sequence, the position and the feature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from crfkit._types import FloatArray, IntArray
from crfkit._warnings import warn_user
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
    blocks = (data, data.transitions, data.segments)
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


def warn_if_badly_scaled(data: PackedSequences, of: str = "") -> None:
    """Warn of a numeric feature that is a thousand times larger than most others.

    Parameters
    ----------
    data : PackedSequences
        Features.
    of : str
        Of what, where not of tokens, for the message.
    """
    if data.values is None and data.dense is None:
        return  # indicators are all of size 1

    def name(feature: int) -> Any:
        return feature if data.feature_names is None else repr(data.feature_names[feature])

    _warn_of_one(_column_sizes(data), name, of, np.inf)


def warn_if_lengths_badly_scaled(basis: sp.csr_array, names: list[str], lengths: IntArray) -> None:
    """Warn of a feature of lengths that is a thousand times larger than most others, or than 1.

    Parameters
    ----------
    basis : csr_array of shape (L, F)
        Features of the lengths 1, ..., L.
    names : list of str
        Their names.
    lengths : ndarray of shape (n,)
        Lengths of the segments that are learned from.
    """
    counts = np.bincount(lengths, minlength=basis.shape[0] + 1)[1:]
    uses, squares = (basis != 0.0).T @ counts, basis.power(2).T @ counts
    sizes = np.sqrt(squares / np.maximum(uses, 1))
    # Steps from label to label are features of size 1 in any model.
    _warn_of_one(
        sizes, lambda feature: repr(names[feature]), "of lengths ", 1.0,
        "Give length=\"log(seg.length)\" or length=\"buckets\" instead of a feature that grows so.",
    )  # fmt: skip


def _warn_of_one(
    sizes: FloatArray, name: Callable[[int], Any], of: str, most: float,
    advice: str = "Scale numeric features to about 1.",
) -> None:  # fmt: skip
    """Warn of a size far above the middle one, or above `most` where that is less."""
    used = sizes > 0.0
    if not used.any():
        return
    largest, middle = int(np.argmax(sizes)), min(float(np.median(sizes[used])), most)
    if sizes[largest] > BADLY_SCALED * middle:
        warn_user(
            f"feature {name(largest)} {of}is about {sizes[largest]:.2g} in size, most features "
            f"are about {middle:.2g}: the solver may be slow or stop too early, and the penalty "
            f"falls on the small ones. {advice}",
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
