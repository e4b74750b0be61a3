"""Cross-validation of sequences, where scikit-learn's expects a label for each item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import check_random_state, indexable

from crfkit._params import check_whole
from crfkit._types import FloatArray, IntArray, ObjectArray
from crfkit.data.frames import Keys, frame_columns, frame_offsets, is_frame, take_rows
from crfkit.data.labels import LabelStream, by_sequence
from crfkit.labels.fields import holds_segments
from crfkit.labels.sequences import as_lists


class OutOfFold(NamedTuple):
    """Probabilities by models that did not learn from the sequence.

    `proba` are S arrays of shape (T, K), 0 for a label that the model of the fold does not know;
    `classes`, shape (K,), the labels in the order of the columns.
    """

    proba: list[FloatArray]
    classes: ObjectArray


def cross_val_proba(
    estimator: Any, X: Any, y: Any, *, groups: Any = None, cv: Any = None
) -> OutOfFold:
    """Return the marginal probabilities of sequences that a model has not learned from.

    What ``cross_val_predict(method="predict_proba")`` is for other classifiers: it takes `y` as one
    label for each item, and arrays of one length.

    Parameters
    ----------
    estimator : estimator with `predict_proba`
        Of each fold a clone is fitted; a Pipeline too.
    X, y : sequences of length S
        As for its `fit`; each item is a sequence, or, of a data frame, a row: folds by `groups` or
        by a :class:`StratifiedSequenceKFold` keep the rows of a sequence together.
    groups : array of shape (S,), optional
        For splitters by groups.
    cv : int, splitter or iterable, optional
        As for scikit-learn's functions; five folds if not given.

    Raises
    ------
    ValueError
        If a sequence is in no test part.
    TypeError
        If the probabilities are those of rows, as of a FrameClassifier.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.model_selection import cross_val_proba
    >>> X, y = [[["the"], ["dog"]], [["dog"]]] * 4, [["D", "N"], ["N"]] * 4
    >>> found = cross_val_proba(CRFClassifier(), X, y, cv=4)
    >>> found.classes.tolist(), [rows.shape for rows in found.proba[:2]]
    (['D', 'N'], [(2, 2), (1, 2)])
    """
    X, y = indexable(X, y)
    folds, tested = [], np.zeros(len(y), bool)
    for train, test in check_cv(cv).split(X, y, groups):
        model = clone(estimator).fit(take_rows(X, train), take_rows(y, train))
        rows = model.predict_proba(take_rows(X, test))
        tested[test] = True
        folds.append((_first_items(X, test, rows), model.classes_.tolist(), rows))
    classes = LabelStream([labels for _, labels, _ in folds]).classes()
    columns = {label: column for column, label in enumerate(classes.tolist())}
    found: dict[int, FloatArray] = {}
    for test, labels, rows in folds:
        own = [columns[label] for label in labels]
        for place, proba in zip(test.tolist(), rows, strict=True):
            found[place] = np.zeros((len(proba), len(classes)))
            found[place][:, own] = proba
    if not tested.all():
        kind = "row" if is_frame(X) else "sequence"
        raise ValueError(f"{kind} {tested.argmin()} is in no test part: cv must test each one.")
    return OutOfFold([found[place] for place in sorted(found)], classes)


def _first_items(X: Any, test: IntArray, proba: Any) -> IntArray:
    """Return the item of X with which each sequence of a test part begins."""
    if not is_frame(X):
        return test
    if is_frame(proba):
        raise TypeError(
            "the estimator has probabilities of the rows of a data frame: take scikit-learn's "
            "cross_val_predict(method='predict_proba')."
        )
    begins: IntArray = test[np.cumsum([0, *map(len, proba)])[:-1]]
    return begins


class StratifiedSequenceKFold(BaseCrossValidator):  # type: ignore[misc]
    """Folds of whole sequences that have about the same share of the tokens of each label.

    The rarest labels are dealt first, each sequence to the fold that lacks most of them (Sechidis,
    Tsoumakas and Vlahavas 2011).

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    random_state : int, RandomState instance or None, default=None
        Puts the sequences into a random order first; None: they are dealt as they come.
    by : str, list of str or None, default=None
        Where X is a data frame with one row a token: the column that tells its sequences apart, or
        several. y has a label for each row then, and folds are rows of whole sequences.

    References
    ----------
    Sechidis, Tsoumakas and Vlahavas (2011), "On the stratification of multi-label data".

    Examples
    --------
    >>> from crfkit.model_selection import StratifiedSequenceKFold
    >>> y = [["A", "A"], ["A"], ["A", "B"], ["B", "A"]]
    >>> [test.tolist() for _, test in StratifiedSequenceKFold(2).split(y, y)]
    [[0, 2], [1, 3]]
    """

    def __init__(
        self, n_splits: int = 5, *, random_state: Any = None, by: Keys | None = None
    ) -> None:
        self.n_splits = n_splits
        self.random_state = random_state
        self.by = by

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def _iter_test_indices(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[IntArray]:
        check_whole("n_splits", self.n_splits, 2)
        offsets = None
        if self.by is not None:
            frame_columns(X, self.by, None)
            offsets = frame_offsets(X, self.by)
            y = None if y is None else by_sequence(y, offsets)
        if y is None or len(y) < self.n_splits:
            given = "no labels" if y is None else f"{len(y)} sequences"
            raise ValueError(f"{self.n_splits} folds cannot be made of {given}.")
        order = np.arange(len(y))
        if self.random_state is not None:
            order = check_random_state(self.random_state).permutation(order)
        folds = _deal(_counts(y), self.n_splits, order)
        rows = folds if offsets is None else np.repeat(folds, np.diff(offsets))
        return (np.flatnonzero(rows == fold) for fold in range(self.n_splits))


def _counts(y: Any) -> IntArray:
    """Return how many tokens, or segments, of each sequence have each label, (S, K)."""
    sequences = as_lists(y, "y")
    if holds_segments(sequences):
        sequences = [[label for *_, label in segments] for segments in sequences]
    stream = LabelStream(sequences, partial=True)
    kinds = len(stream.index) + len(stream.options)  # what is not known is dealt, too
    counts = np.zeros((len(sequences), max(kinds, 1)), np.int64)
    rows = np.repeat(np.arange(len(sequences)), np.diff(stream.offsets))
    np.add.at(counts, (rows, stream.codes), 1)
    return counts


def _deal(counts: IntArray, n_folds: int, order: IntArray) -> IntArray:
    """Return the fold of each sequence, (S,), given its labels, (S, K)."""
    folds = np.full(len(counts), -1)
    lacking = np.tile(counts.sum(axis=0) / n_folds, (n_folds, 1))
    sizes = np.zeros(n_folds, np.int64)
    for label in [*np.argsort(counts.sum(axis=0), kind="stable"), None]:  # last those of no token
        column = np.ones(len(counts)) if label is None else counts[:, label]
        rows = order[(folds[order] < 0) & (column[order] > 0)]
        for row in rows[np.argsort(-column[rows], kind="stable")]:
            own = sizes if label is None else -lacking[:, label]
            fold = np.lexsort((sizes, -lacking.sum(axis=1), own))[0]
            folds[row] = fold
            lacking[fold] -= counts[row]
            sizes[fold] += 1
    return folds
