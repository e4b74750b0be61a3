"""An estimator of sequences for data frames: rows go in, a column comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from crfkit._callbacks import CallbackSupportMixin, told_as_a_whole
from crfkit._tables import refuse_tables
from crfkit._types import FloatArray, Frame, IntArray
from crfkit.data import PackedSequences, sequences_from_frame
from crfkit.data.frames import (
    Keys,
    check_frame,
    column_beside,
    column_name,
    columns_beside,
    frame_alike,
    frame_columns,
    frame_offsets,
    is_numeric,
    key_names,
)
from crfkit.data.labels import by_sequence, check_sample_weight
from crfkit.estimators._interface import sequence_tags
from crfkit.estimators.crf import CRFClassifier
from crfkit.persistence import SaveMixin, register
from crfkit.training.early_stopping import find_scorer


def _gives_proba(self: FrameClassifier) -> bool:
    """Whether the estimator has probabilities; AttributeError of its own if not."""
    fitted = vars(self).get("estimator_", self.estimator)
    return fitted is None or bool(fitted.predict_proba)


@register
@dataclass(eq=False, repr=False)
class FrameClassifier(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from a data frame of pandas or polars and labels its rows: a column comes out.

    Each row is a token, and a column tells the sequences apart. Rows with equal values there must
    be neighbors, in the order of the text.

    Parameters
    ----------
    estimator : estimator, default=None
        What learns the sequences: an estimator of crfkit, or a pipeline that ends in one;
        ``CRFClassifier()`` if None. A clone is fitted. Where all feature columns are numbers or
        booleans it gets these numbers, otherwise dicts ``{column: value}``, of which
        ``features=TemplateFeatures(...)`` may make more.
    by : str or list of str
        The column that tells the sequences apart, or several that do so together.
    label : str or None, default=None
        The column of the labels, for `fit` and `score` without `y`; it is never a feature.
    columns : list of str or None, default=None
        The columns of features; None for all but those of `by`, the labels, and that which has the
        name of `y`.
    scoring : str, callable or None, default=None
        What `score` returns: token accuracy, the name of a scorer (:mod:`crfkit.metrics`), such as
        "entity_f1", or a callable ``(estimator, X, y)``. It is given sequences, as metrics of
        entities need them, which columns are not.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the sequences; further questions are asked by
        ``model.estimator_.predict_n_best(model.sequences(df))``.
    classes_ : ndarray of shape (K,)
        Its labels.
    columns_ : list of str
        The columns of features.
    matrix_ : bool
        Whether all of them were numbers or booleans.
    label_ : str
        The name of the column that `predict` returns: `label`, or that of `y`, or "label".

    See Also
    --------
    crfkit.data.sequences_from_frame, crfkit.data.frame_from_sequences : The way by hand.
    crfkit.model_selection.StratifiedSequenceKFold : Its `by` makes folds of a frame.

    Notes
    -----
    A splitter such as ``cv=5`` cuts the frame between any two rows, also within a sequence. Take
    ``StratifiedSequenceKFold(by=...)``, or ``GroupKFold`` with ``groups=df[by]``.

    Examples
    --------
    >>> import pandas as pd
    >>> from crfkit import FrameClassifier
    >>> df = pd.DataFrame({"line": [1, 1, 2], "word": ["a", "dog", "yes"],
    ...                    "tag": ["DT", "NN", "UH"]})
    >>> model = FrameClassifier(by="line", label="tag").fit(df)
    >>> new = pd.DataFrame({"line": [7, 7], "word": ["a", "dog"]}, index=["first", "second"])
    >>> model.predict(new).to_dict()
    {'first': 'DT', 'second': 'NN'}
    """

    estimator: Any = None
    _: KW_ONLY
    by: Keys
    label: str | None = None
    columns: Sequence[str] | None = None
    scoring: Any = None

    save = SaveMixin.save

    @told_as_a_whole
    def fit(self, X: Frame, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator to the sequences of a frame, and return this one.

        Parameters
        ----------
        X : DataFrame
            N rows, one a token.
        y : column, array or list of N labels, optional
            The labels; by default the column `label`.
        sample_weight : column or array of shape (N,) or of shape (S,), optional
            Weights of tokens, or of sequences.

        Raises
        ------
        ValueError, TypeError
            If X is no frame, a column is missing, the rows of a sequence are not neighbors, there
            are no labels, or the estimator cannot use what it gets.
        """
        check_frame(X)
        named = column_name(y)
        label = named if self.label is None else self.label
        columns = self._feature_columns(X, {label, named})
        matrix, offsets = is_numeric(X[columns]), frame_offsets(X, self.by)
        sequences, labels = _sequences(X, self.by, columns, matrix), self._labels(X, y, offsets)
        model = CRFClassifier() if self.estimator is None else clone(self.estimator)
        if (kind := get_tags(model).estimator_type) in ("classifier", "regressor"):
            raise TypeError(
                f"{type(model).__name__} is a {kind} of single rows, but a FrameClassifier needs "
                "one of sequences, such as CRFClassifier(), or a pipeline that ends in one."
            )
        self.estimator_ = model.fit(sequences, labels, **_weights(sample_weight, offsets))
        self.columns_, self.matrix_ = columns, matrix
        self.label_ = "label" if label is None else label
        return self

    def sequences(self, X: Frame) -> Any:
        """Return the sequences of a frame in the form that the estimator takes.

        Returns
        -------
        PackedSequences or list of list of dict
            The numbers of the columns, or a dict for each token.
        """
        check_is_fitted(self)
        check_frame(X)
        return _sequences(X, self.by, self.columns_, self.matrix_)

    def predict(self, X: Frame) -> Any:
        """Return the labels of the rows of a frame as a column.

        Parameters
        ----------
        X : DataFrame
            With the columns of features and of `by`.

        Returns
        -------
        Series
            N labels, with the index of the frame, if it is one of pandas.
        """
        labels: Any = chain.from_iterable(self.estimator_.predict(self.sequences(X)))
        return column_beside(X, list(labels), self.label_)

    @available_if(_gives_proba)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Frame) -> Any:
        """Return the probabilities of the labels of the rows as a frame, a column for each label.

        Parameters
        ----------
        X : DataFrame
            As for `predict`.

        Returns
        -------
        DataFrame
            N rows, with the index of the frame, if it is one of pandas; names are strings.
        """
        rows: list[FloatArray] = self.estimator_.predict_proba(self.sequences(X))
        table = np.concatenate([np.empty((0, len(self.classes_))), *rows])
        names = map(str, self.classes_.tolist())
        return columns_beside(X, dict(zip(names, table.T, strict=True)))

    def predict_spans(self, X: Frame) -> Any:
        """Return the predicted spans as a frame of their own.

        Parameters
        ----------
        X : DataFrame
            As for `predict`.

        Returns
        -------
        DataFrame
            The columns of `by`, then "start" and "stop", the first token of the span in its
            sequence and the one after its last, counted from 0, "row", the number of its first row
            in the frame, and "label".

        Raises
        ------
        ValueError
            If a column of `by` has one of these names.
        """
        taken = {"start", "stop", "label", "row"}.intersection(key_names(self.by))
        if taken:
            raise ValueError(
                f"the columns {sorted(taken)} of `by` have names of the columns that spans get: "
                "rename them."
            )
        found = self.estimator_.predict_spans(self.sequences(X))
        begins = frame_offsets(X, self.by)[:-1].tolist()
        spans = [(begin, span) for begin, some in zip(begins, found, strict=True) for span in some]
        table = {name: [X[name].to_list()[b] for b, _ in spans] for name in key_names(self.by)}
        for name in ("start", "stop", "label"):
            table[name] = [getattr(span, name) for _, span in spans]
        table["row"] = [begin + span.start for begin, span in spans]
        return frame_alike(X, table)

    def score(self, X: Frame, y: Any = None, sample_weight: Any = None) -> float:
        """Return the token accuracy, or what `scoring` says.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        sequences, offsets = self.sequences(X), frame_offsets(X, self.by)
        labels, weights = self._labels(X, y, offsets), _weights(sample_weight, offsets)
        if self.scoring is None:
            return float(self.estimator_.score(sequences, labels, **weights))
        return float(find_scorer(self.scoring)(self.estimator_, sequences, labels, **weights))

    @property
    def classes_(self) -> Any:
        """The labels."""
        return self.estimator_.classes_

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        refuse_tables(of_rows=True)
        tags = sequence_tags(super().__sklearn_tags__())
        tags.target_tags.required = self.label is None
        return tags

    def _feature_columns(self, X: Frame, labels: set[Any]) -> list[str]:
        """Return the columns of features, none of which is one of labels."""
        if self.columns is not None:
            return frame_columns(X, self.by, self.columns)
        keys = key_names(self.by)
        chosen = [name for name in X.columns if name not in keys and name not in labels]
        return frame_columns(X, self.by, chosen)

    def _labels(self, X: Frame, y: Any, offsets: IntArray) -> Any:
        """Return labels by sequence."""
        if y is None:
            if self.label is None:
                raise ValueError(
                    "there are no labels: give y, a column of them, or name their column, label=..."
                )
            if self.label not in X.columns:
                raise ValueError(
                    f"the frame has no column {self.label!r} of labels; it has {list(X.columns)}."
                )
            y = X[self.label]
        if len(y) != len(X):
            raise ValueError(f"y has {len(y)} labels, but the frame has {len(X)} rows.")
        return by_sequence(y, offsets)


def _sequences(df: Frame, by: Keys, columns: list[str], matrix: bool) -> Any:
    """Return the sequences of a frame, as numbers or as dicts."""
    make = PackedSequences.from_frame if matrix else sequences_from_frame
    return make(df, by, columns)


def _weights(sample_weight: Any, offsets: IntArray) -> dict[str, Any]:
    """Return the argument for weights of tokens by sequence, if there are such."""
    if sample_weight is None:
        return {}
    rows = check_sample_weight(sample_weight, offsets)
    return {"sample_weight": [rows[b:e] for b, e in pairwise(offsets.tolist())]}
