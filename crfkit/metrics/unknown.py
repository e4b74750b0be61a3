"""Errors of tokens, of words that the training data have and of those that they do not have."""

from __future__ import annotations

from collections.abc import Hashable, Set
from typing import Any, NamedTuple

import numpy as np

from crfkit.labels.sequences import (
    BoolArray,
    FlatLabels,
    FloatArray,
    Sequences,
    Weights,
    check_same_lengths,
    encode_labels,
    flatten,
    flatten_pair,
    token_weights,
)


class TokenErrors(NamedTuple):
    """Shares of tokens whose label is wrong; NaN among none.

    Attributes
    ----------
    overall : float
        Among all tokens.
    known : float
        Among those whose word is known.
    unknown : float
        Among those whose word is not.
    unknown_share : float
        The share of tokens whose word is not known.
    """

    overall: float
    known: float
    unknown: float
    unknown_share: float


def token_errors(
    y_true: Sequences,
    y_pred: Sequences,
    words: Sequences,
    known_words: Sequences | Set[Hashable],
    *,
    sample_weight: Weights | None = None,
) -> TokenErrors:
    """Compute the error of tokens, and those of known and of unknown words.

    What a tagger makes of words that it has not seen tells how well its features generalize.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
        True and predicted labels. Tokens whose true label is `UNLABELED` are left out.
    words : list of sequences
        The word of each token: any hashable objects, told apart as they are, by case too.
    known_words : list of sequences, or set
        The words of the training data, or the set of these.
    sample_weight : array-like of shape (S,), list of S arrays or array-like of shape (N,), optional
        Weights per sequence or per token.

    Returns
    -------
    TokenErrors
        ``overall``, ``known``, ``unknown`` and ``unknown_share``.

    Raises
    ------
    ValueError
        If the sequences differ in number or in length.
    TypeError
        If a string stands where a sequence is expected, or a word is not hashable.

    Examples
    --------
    >>> from crfkit.metrics import token_errors
    >>> y_true, y_pred = [["D", "N", "V", "N"]], [["D", "N", "N", "N"]]
    >>> errors = token_errors(y_true, y_pred, [["the", "dog", "eats", "fish"]], [["the", "dog"]])
    >>> errors.overall, errors.known, errors.unknown, errors.unknown_share
    (0.25, 0.0, 0.5, 0.5)
    """
    true, pred = flatten_pair(y_true, y_pred)
    told = flatten(words, "words")
    check_same_lengths(true.lengths, told.lengths, "words")
    kept = true.known
    _, (codes, predicted) = encode_labels(true.take(kept), pred.take(kept))
    is_known = _are_known(told, known_words)[kept]
    weight = np.ones(len(kept))
    if sample_weight is not None:
        weight = token_weights(sample_weight, true.lengths)
    weight, wrong = weight[kept], codes != predicted
    return TokenErrors(
        _share(wrong, weight), _share(wrong[is_known], weight[is_known]),
        _share(wrong[~is_known], weight[~is_known]), _share(~is_known, weight),
    )  # fmt: skip


def _are_known(told: FlatLabels, known_words: Sequences | Set[Hashable]) -> BoolArray:
    """Return which tokens have a word of a set or of the training data, (N,)."""
    if not isinstance(known_words, Set):
        known_words = _set(flatten(known_words, "known_words").labels)
    known = known_words & _set(told.labels)
    return np.fromiter(map(known.__contains__, told.labels), bool, len(told.labels))


def _set(words: list[Any]) -> set[Any]:
    """Return the different words."""
    try:
        return set(words)
    except TypeError as error:
        raise TypeError(f"words must be hashable, as strings are: {error}") from error


def _share(chosen: BoolArray, weight: FloatArray) -> float:
    """Return the share of what is chosen, by weight; NaN of nothing."""
    total = float(weight.sum())
    return float(weight[chosen].sum()) / total if total else float("nan")
