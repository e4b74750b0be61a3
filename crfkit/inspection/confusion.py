"""Which entities are taken for which, missed, invented, or have other ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from crfkit._displays import Display, pyplot
from crfkit._types import IntArray, Segment
from crfkit.data.labels import by_sequence
from crfkit.inspection.markup import import_pandas
from crfkit.inspection.models import name_of, opened
from crfkit.inspection.plotting import NEGATIVE, POSITIVE, mixed, shortened, text_color
from crfkit.inspection.spans import check_fit, segments_of_labels
from crfkit.labels.sequences import as_lists, sorted_labels

ENDS, MISSED, SPURIOUS = "other ends", "missed", "spurious"


def entity_confusion(
    true: Sequence[Segment], predicted: Sequence[Segment]
) -> list[tuple[Any, Any]]:
    """Return what has become of the entities of a sequence, as pairs of truth and prediction.

    Entities with the same first and last token are compared first, then those that overlap, the
    longest overlap first; each is compared once. A pair holds two types where the ends are the
    same or the types differ; `ENDS` in place of the predicted type where it is right, but an end is
    not; `MISSED` or `SPURIOUS` in place of what is not there.
    """
    left, right = list(dict.fromkeys(true)), list(dict.fromkeys(predicted))
    overlaps = [
        (
            -(a[:2] == b[:2]), -(a == b), max(a.start, b.start) - min(a.stop, b.stop),
            a.label != b.label, i, j,
        )
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if min(a.stop, b.stop) > max(a.start, b.start)
    ]  # fmt: skip
    found, of_true, of_predicted = [], set[int](), set[int]()
    for *_, i, j in sorted(overlaps):
        if i not in of_true and j not in of_predicted:
            of_true.add(i)
            of_predicted.add(j)
            a, b = left[i], right[j]
            same = a.label == b.label and a[:2] != b[:2]
            found.append((a.label, ENDS if same else b.label))
    found += [(a.label, MISSED) for i, a in enumerate(left) if i not in of_true]
    found += [(SPURIOUS, b.label) for j, b in enumerate(right) if j not in of_predicted]
    return found


class EntityConfusionDisplay(Display):
    """What has become of true entities: found, of another type, with other ends, missed.

    Made by :meth:`from_estimator` or :meth:`from_predictions`, as the displays of scikit-learn are.
    It needs matplotlib (``pip install crfkit[plot]``).

    Parameters
    ----------
    confusion : array of shape (Y + 1, Y + 2)
        Counts. Rows: the types of true entities, and "spurious", predicted ones that overlap no
        true one. Columns: predicted types, "other ends" (the type is right, the first or last
        token is not), and "missed". An entity of another type with other ends counts as one of
        that type.
    labels : sequence of Y types
    name : str, optional
        The title.

    Attributes
    ----------
    im_, ax_, figure_ : matplotlib AxesImage, Axes and Figure
    text_ : ndarray of shape (Y + 1, Y + 2)
        The counts as they are written into the cells.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from crfkit.inspection import EntityConfusionDisplay
    >>> true = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> display = EntityConfusionDisplay.from_predictions(true, [["B-PER", "O", "O", "B-PER"]])
    >>> display.labels, display.confusion.tolist()
    (['LOC', 'PER'], [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    """

    def __init__(
        self, confusion: IntArray, labels: Sequence[Any], *, name: str | None = None
    ) -> None:
        self.confusion, self.labels, self.name = np.asarray(confusion), list(labels), name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, labels: Sequence[Any] | None = None, **options: Any
    ) -> Self:
        """Draw the confusion of what a fitted model predicts.

        Parameters
        ----------
        estimator : estimator
            As for :func:`crfkit.inspection.weights`.
        X : iterable of sequences
            As for `predict`.
        y : iterable of sequences of labels, or of lists of (start, stop, label)
            The truth.
        labels : sequence, optional
            Which types, in which order; by default all, sorted.
        **options
            As for :meth:`plot`.
        """
        found = opened(estimator)
        data = found.model._pack(found.transform(found.sequences(X)))
        predicted = found.model.predict_spans(data)
        known = found.model.classes_.tolist()
        given = as_lists(by_sequence(y, data.offsets), "y")
        if len(given) == len(predicted):  # else `_of` says so
            check_fit(given, data.lengths.tolist())
        (true,) = segments_of_labels(given, known=known)
        return cls._of(true, predicted, labels, name_of(estimator)).plot(**options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        labels: Sequence[Any] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw the confusion of labels.

        Parameters
        ----------
        y_true, y_pred : iterable of sequences of labels, or of lists of (start, stop, label)
            Labels are read as :meth:`crfkit.CRFClassifier.predict_spans` does.
        labels : sequence, optional
            Which types, in which order; by default all, sorted.
        name : str, optional
            The title.
        **options
            As for :meth:`plot`.

        Raises
        ------
        ValueError
            If there are not as many sequences.
        """
        true, predicted = segments_of_labels(y_true, y_pred)
        return cls._of(true, predicted, labels, name).plot(**options)

    @classmethod
    def _of(
        cls,
        true: list[list[Segment]],
        predicted: list[list[Segment]],
        labels: Sequence[Any] | None,
        name: str | None,
    ) -> Self:
        """Return the display of spans, which have been read."""
        if len(true) != len(predicted):
            raise ValueError(f"y has {len(true)} sequences, but {len(predicted)} are predicted.")
        types = sorted_labels({one.label for y in (true, predicted) for own in y for one in own})
        chosen = types if labels is None else list(labels)
        rows = {label: i for i, label in enumerate([*chosen, SPURIOUS])}
        columns = {label: i for i, label in enumerate([*chosen, ENDS, MISSED])}
        counts = np.zeros((len(rows), len(columns)), np.int64)
        for pair in zip(true, predicted, strict=True):
            for a, b in entity_confusion(*pair):
                if a in rows and b in columns:
                    counts[rows[a], columns[b]] += 1
        return cls(counts, chosen, name=name)

    def to_frame(self) -> Any:
        """Return the counts as a pandas DataFrame: truth in rows, prediction in columns."""
        rows, columns = [*self.labels, SPURIOUS], [*self.labels, ENDS, MISSED]
        return import_pandas().DataFrame(self.confusion, index=rows, columns=columns)

    def plot(
        self, ax: Any = None, *, include_values: bool = True, text_kw: dict[str, Any] | None = None
    ) -> Self:
        """Draw the table: what is right in blue, errors in orange, by their share of a row.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, as large as the types need.
        include_values : bool, default=True
            Whether to write the counts into the cells.
        text_kw : dict, optional
            For ``matplotlib.axes.Axes.text``.
        """
        plt, (n_rows, n_columns) = pyplot("EntityConfusionDisplay"), self.confusion.shape
        names = [shortened(label) for label in self.labels]
        if ax is None:
            cell = 0.62 if n_rows <= 12 else 0.42
            margin = 0.085 * max(map(len, [*names, SPURIOUS]))
            size = (cell * n_columns + margin + 0.7, cell * n_rows * 0.85 + margin + 0.9)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        colors = self._colors(ax)
        self.im_ = ax.imshow(colors, aspect="auto", interpolation="nearest")
        font = 10 if n_rows <= 20 else 7
        ax.set_xticks(range(n_columns), [*names, ENDS, MISSED], rotation=90, fontsize=font)
        ax.set_yticks(range(n_rows), [*names, SPURIOUS], fontsize=font)
        ax.set(xlabel="predicted", ylabel="true", title=self.name or "")
        ax.tick_params(length=0)
        ax.axvline(n_columns - 2.5, color="#808080", linewidth=1.0)
        ax.axhline(n_rows - 1.5, color="#808080", linewidth=1.0)
        for side in ax.spines.values():
            side.set_visible(False)
        self.text_ = np.full(self.confusion.shape, None, object)
        if include_values:
            for i, j in np.argwhere(self.confusion):
                given = {"ha": "center", "va": "center", "fontsize": font} | (text_kw or {})
                color = text_color(colors[i, j])
                self.text_[i, j] = ax.text(
                    j, i, f"{self.confusion[i, j]:,}", **{"color": color} | given
                )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _colors(self, ax: Any) -> Any:
        """Return the color of each cell, (Y + 1, Y + 2, 3)."""
        totals = np.maximum(self.confusion.sum(axis=1, keepdims=True), 1)
        share = self.confusion / totals
        found = np.empty((*share.shape, 3))
        for i, j in np.ndindex(*share.shape):
            # Errors are few, and are to be seen: their color grows with the root.
            strength = share[i, j] if i == j else np.sqrt(share[i, j])
            color = POSITIVE if i == j else NEGATIVE
            found[i, j] = mixed(ax, color, 0.95 * float(strength))
        return found
