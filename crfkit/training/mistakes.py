"""What data look like that users did not mean so: warnings, and words added to errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Number
from typing import Any

import numpy as np

from crfkit._types import CodeArray, IntArray
from crfkit._warnings import warn_user
from crfkit.data import PackedSequences
from crfkit.data.names import Names, name_array
from crfkit.data.validation import is_matrix, token_place

MANY_UNKNOWN = 10  # tokens none of which has a known attribute: not a rare word
SOME = 100  # sequences that are looked at
WIDEST = 6  # fields of a row of columns; longer tuples are lists of attributes


@contextmanager
def swapped_are_told(X: Any, y: Any) -> Iterator[None]:
    """Add to an error of reading X that y looks like what X should be, if it does."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not (_are_features(y) and _are_labels(X)):
            raise
        raise type(error)(
            f"{error} X and y seem to be swapped: the tokens come first, then the labels."
        ) from error


@contextmanager
def told_of_dicts(fitted_on_dicts: bool, n_features: int) -> Iterator[None]:
    """Add to an error of reading matrices that a model was fitted on dicts or lists, if it was."""
    try:
        yield
    except ValueError as error:
        if not fitted_on_dicts:
            raise
        raise ValueError(
            f"{error} The model was fitted on dicts or lists of attributes, {n_features} of them: "
            "make X as the data of the fit was made."
        ) from error


def _first(sequences: Any) -> Any:
    """Return the first sequence that has tokens; None where it is not there to be looked at."""
    if not isinstance(sequences, (list, tuple, np.ndarray)):
        return None
    return next((item for item in sequences if hasattr(item, "__len__") and len(item)), None)


def _are_features(sequences: Any) -> bool:
    """Whether a list of sequences has tokens that no label can be: dicts, lists, vectors."""
    if isinstance(sequences, PackedSequences):
        return True
    sequence = _first(sequences)
    if is_matrix(sequence):
        return bool(np.ndim(sequence) == 2)
    return isinstance(sequence, (list, tuple)) and isinstance(sequence[0], (dict, list))


def _are_labels(sequences: Any) -> bool:
    """Whether a list of sequences has strings or numbers in place of tokens."""
    sequence = _first(sequences)
    rows = isinstance(sequence, (list, tuple)) and isinstance(sequence[0], (str, Number))
    return rows or (isinstance(sequence, np.ndarray) and sequence.ndim == 1)


def warn_of_rows(X: Any) -> None:
    """Warn of tokens that are tuples of one length, which are rows of columns rather than lists."""
    tokens = _first(X)
    if not isinstance(tokens, (list, tuple)) or set(map(type, tokens)) != {tuple}:
        return
    widths = set(map(len, tokens))
    if len(tokens) > 1 and len(widths) == 1 and 1 < min(widths) <= WIDEST:
        if not all(isinstance(cell, str) for cell in tokens[0]) or all(map(_is_named, tokens[0])):
            return
        warn_user(
            f"tokens are tuples, such as {tokens[0]!r:.80}, whose strings are all read as "
            "attributes, whatever their place; if one is the label, it is an attribute too. Where "
            "places are columns, give dicts, or features=TemplateFeatures([...]), which reads "
            "tuples; where all are attributes, give lists."
        )


def warn_of_labels_in_rows(X: Any, y: Any) -> None:
    """Warn of tokens that are tuples with their label in it, which predicts itself."""
    if not (isinstance(X, list) and isinstance(y, list) and all(map(_are_rows, X[:SOME]))):
        return
    labels = [tuple(own) for own in y[:SOME] if isinstance(own, (list, tuple))]
    rows = [list(zip(*tokens, strict=False)) for tokens in X[:SOME]]
    if len(rows) != len(labels) or all(label == labels[0][0] for own in labels for label in own):
        return
    for column in range(min(map(len, rows))):
        if all(row[column] == own for row, own in zip(rows, labels, strict=True)):
            warn_user(
                f"item {column} of the tokens, such as {X[0][0]!r:.80}, is their label in y, so "
                "that it predicts itself: leave it out of X, as it will not be known of new ones."
            )


def _are_rows(tokens: Any) -> bool:
    return isinstance(tokens, list) and bool(tokens) and set(map(type, tokens)) == {tuple}


def _is_named(cell: str) -> bool:
    """Whether a string names what it tells, such as ``w=a``, and so is no cell of a column."""
    return any(sign in cell[1:-1] for sign in "=:")


def warn_if_nothing_is_known(X: Any, data: PackedSequences, names: Names | None) -> None:
    """Warn of tokens none of which has an attribute that the model knows.

    A few tokens may be rare words: they are told of where no key of theirs is known.
    """
    blocks = (data.dense, data.transitions, data.segments)
    if len(data.indices) or not data.n_tokens or any(block is not None for block in blocks):
        return
    if names is None or (data.n_tokens < MANY_UNKNOWN and not _has_other_keys(X, names)):
        return
    known = name_array(names)
    example = f", such as {known[0]!r:.60}" if len(known) else ""
    warn_user(
        "no token of X has an attribute that the model knows, so that labels follow from their "
        f"order alone. The model knows {len(known):,} attributes{example}: make tokens of X as "
        "those of fit were made."
    )


def _has_other_keys(X: Any, names: Names) -> bool:
    """Whether the first tokens are dicts whose keys, but those of numbers, the model does not have.

    A key of a number or a flag is the attribute itself, which may be rare.
    """
    tokens = _first(X)
    if not isinstance(tokens, (list, tuple)) or not all(isinstance(t, Mapping) for t in tokens):
        return False
    kinds = (Number, np.bool_)
    keys = {
        str(k) for token in tokens for k, value in token.items() if not isinstance(value, kinds)
    }
    return bool(keys) and not any(name.partition(":")[0] in keys for name in name_array(names))


def warn_if_padded(data: PackedSequences, labels: CodeArray) -> None:
    """Warn of sequences of one length that end in rows of zeros of one label: what fills them up.

    Where such rows stand elsewhere, too, nothing seems to be filled up.

    `labels` are the codes of tokens, (N,).
    """
    lengths = data.lengths
    if data.dense is None or data.n_sparse or len(lengths) < 2 or np.ptp(lengths) or not lengths[0]:
        return
    empty = ~data.dense.any(axis=1).reshape(len(lengths), -1)
    tails: IntArray = np.logical_and.accumulate(empty[:, ::-1], axis=1).sum(axis=1)
    some = np.flatnonzero(tails)
    if not len(some) or len(set(tails.tolist())) == 1 or tails.max() == lengths[0]:
        return
    last = np.arange(lengths[0])[None] >= (lengths - tails)[:, None]
    if empty[~last].any():
        return
    filled = labels.reshape(last.shape)[last]
    if len(set(filled.tolist())) > 1:
        return
    place = token_place(data.offsets, int(data.offsets[some[0] + 1] - tails[some[0]]))
    warn_user(
        f"from {place} on, all features are 0 to the end, as in {len(some)} of {len(lengths)} "
        "sequences, all of one length, and these tokens have one label. They are learned as any "
        "others; if they fill short sequences up, cut them off X and y."
    )


def scale_advice(sizes: Any, names: Names | None) -> str:
    """Return what to say of numbers of other sizes than 1 where a fit did not converge."""
    used = np.flatnonzero(sizes > 0.0)
    if not len(used):
        return ""
    least, most = used[np.argmin(sizes[used])], used[np.argmax(sizes[used])]
    if sizes[most] <= 10.0 * sizes[least] and 0.1 <= sizes[most] <= 10.0:
        return ""
    called = [str(f) if names is None else repr(name_array(names)[f]) for f in (least, most)]
    return (
        f"features are of sizes from {sizes[least]:.2g} (feature {called[0]}) to {sizes[most]:.2g} "
        f"({called[1]}), which slows solvers down: scale numbers to about 1 first. "
    )
