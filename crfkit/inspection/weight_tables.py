"""The weights of fitted models, with their names, as tables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._params import check_option, check_whole
from crfkit._types import BoolArray, FloatArray, IntArray, ObjectArray
from crfkit.data.labels import object_array
from crfkit.data.names import name_array
from crfkit.generative.linear import weight_tables
from crfkit.generative.model import HiddenProbabilities
from crfkit.inspection.markup import (
    bar,
    code,
    frame_of,
    framed,
    import_pandas,
    number,
    short,
    table,
    text_table,
)
from crfkit.inspection.models import opened
from crfkit.potentials.blocks import LABELS, NAMES_OF, PAIRS, TOKENS, Table

# What the weights of fitted attributes are called.
KINDS = {
    "coef_": "attribute",
    "transitions_": "transition",
    "start_weights_": "start",
    "end_weights_": "end",
    "transition_coef_": "transition attribute",
    "first_coef_": "first token",
    "last_coef_": "last token",
    "single_coef_": "single token",
    "segment_coef_": "segment attribute",
    "length_scores_": "length",
    "second_order_transitions_": "second-order transition",
    "dual_coef_": "support token",
}
# Probabilities of hidden Markov models, whose logarithms are weights.
_PROBABILITIES = {
    "start_probabilities_": "start",
    "transition_probabilities_": "transition",
    "end_probabilities_": "end",
}
_ALWAYS = ("attribute", "transition")  # listed also where there is none
_BY = ("absolute", "positive", "negative")
_SHOWN = 15  # rows of a table in a notebook


class Weight(NamedTuple):
    """A weight, and what it is of."""

    kind: str  # "attribute", "transition", "start", "end", "transition attribute", ...
    attribute: Any  # its name (of "length" the number of tokens); None for none
    from_label: Hashable  # of transitions, the label before; None for none
    label: Hashable
    weight: float

    def __str__(self) -> str:
        before = "" if self.from_label is None else f"{self.from_label} → "
        name = "" if self.attribute is None else f"{short(self.attribute)}  "
        return f"{number(self.weight)}  {self.kind}  {name}{before}{self.label}"


class TopWeights(list[Weight]):
    """Some weights, in order; in notebooks a table."""

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the fields of :class:`Weight` as columns."""
        return frame_of(self, Weight._fields)

    def _repr_html_(self) -> str:
        """Return a table with a bar for each weight."""
        return framed(_as_table(self[:200]), _left_out(len(self) - 200))

    def __str__(self) -> str:
        rows = [[number(w.weight), w.kind, *_names(w)] for w in self]
        return text_table(rows, numbers=[0])

    __repr__ = __str__


class Group(NamedTuple):
    """Weights of one kind: a matrix, whose rows and columns have names."""

    kind: str
    matrix: sp.csr_array  # (R, C)
    rows: Any  # (R,) names, of attributes or of labels; None for one row without a name
    by_label: bool  # whether rows are labels
    of_pairs: bool  # whether columns are pairs of labels

    def weights(self, entries: IntArray, labels: list[Any]) -> Iterable[Weight]:
        """Yield chosen entries of the matrix with their names."""
        attribute, before, after = self.names_of(entries)
        values = self.matrix.data[entries].tolist()
        rows: Any = self.rows
        for a, i, j, value in zip(
            attribute.tolist(), before.tolist(), after.tolist(), values, strict=True
        ):
            name, source = None if a < 0 else rows[a], None if i < 0 else labels[i]
            yield Weight(self.kind, name, source, labels[j], value)

    def names_of(self, entries: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the attributes, the labels before and the labels of entries; -1 for none."""
        ptr, columns = self.matrix.indptr, self.matrix.indices[entries].astype(np.int64)
        row = np.searchsorted(ptr, entries, side="right") - 1
        none = np.full(len(entries), -1)
        if self.by_label:
            return none, row, columns
        if self.rows is None:
            return none, none, columns
        if self.of_pairs:
            return row, *np.divmod(columns, _width(self))
        return row, none, columns


class Weights:
    """The weights of a fitted model that are not 0.

    Returned by :func:`weights`. In a notebook it shows the strongest ones.

    Attributes
    ----------
    model_name : str
        The name of the class of the model.
    classes : ndarray of shape (K,)
        The labels.
    counts : dict of str to int
        How many weights there are of each kind.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.inspection import weights
    >>> X, y = [[{"w": "the"}, {"w": "dog"}]] * 3, [["DET", "NOUN"]] * 3
    >>> learned = weights(CRFClassifier().fit(X, y))
    >>> learned.counts
    {'attribute': 2, 'transition': 1}
    >>> [(w.attribute, w.label) for w in learned.top(2, label="DET")]
    [('w:the', 'DET')]
    """

    def __init__(self, groups: Sequence[Group], classes: ObjectArray, model_name: str) -> None:
        self.classes, self.model_name = classes, model_name
        self._labels: list[Any] = classes.tolist()
        counts = [int(np.count_nonzero(group.matrix.data)) for group in groups]
        filled = [(g, n) for g, n in zip(groups, counts, strict=True) if n or g.kind in _ALWAYS]
        self._groups = [group for group, _ in filled]
        self.counts = {group.kind: count for group, count in filled}

    def __len__(self) -> int:
        return sum(self.counts.values())

    def top(
        self,
        n: int = 20,
        *,
        label: Hashable = None,
        kind: str | None = None,
        attribute: Any = None,
        by: str = "absolute",
    ) -> TopWeights:
        """Return the strongest weights, the strongest first.

        Parameters
        ----------
        n : int, default=20
            How many, at most.
        label : label, optional
            Those of this label alone; of transitions, those that lead to it.
        kind : str, optional
            Those of one of the kinds in `counts` alone.
        attribute : str, optional
            Those of the attribute of this name alone.
        by : {"absolute", "positive", "negative"}, default="absolute"
            The largest sizes, the largest weights above 0, or the smallest ones below 0.

        Returns
        -------
        list of Weight
            What is forbidden (``-inf``) is no weight that was learned, and is left out.

        Raises
        ------
        ValueError
            If the model knows no such label or kind.
        """
        check_whole("n", n, 0)
        check_option("by", by, _BY)
        place = None if label is None else self._place(label)
        found: list[tuple[float, int, IntArray, Group]] = []
        for order, group in enumerate(self._of_kind(kind)):
            entries = _strongest(group, n, place, attribute, by)
            found += [
                (-abs(group.matrix.data[entry]), order, np.array([entry]), group)
                for entry in entries
            ]
        found.sort(key=lambda item: item[:2])
        return TopWeights(
            weight
            for *_, entry, group in found[:n]
            for weight in group.weights(entry, self._labels)
        )

    def to_frame(self, kind: str | None = None) -> Any:
        """Return all weights as a pandas DataFrame.

        Parameters
        ----------
        kind : str, optional
            Those of one of the kinds in `counts` alone.

        Returns
        -------
        pandas.DataFrame
            A row for each weight that is not 0, with the columns ``kind``, ``attribute``,
            ``from_label``, ``label`` (the first and the last two categorical) and ``weight``.

        Raises
        ------
        ValueError
            If there is no such kind.
        ImportError
            Without pandas.
        """
        pandas, groups = import_pandas(), self._of_kind(kind)
        entries = [np.flatnonzero(group.matrix.data) for group in groups]
        counts = [len(own) for own in entries]
        names = [group.names_of(own) for group, own in zip(groups, entries, strict=True)]
        attribute = [_taken(group.rows, own[0]) for group, own in zip(groups, names, strict=True)]
        values = [group.matrix.data[own] for group, own in zip(groups, entries, strict=True)]
        none = np.zeros(0, np.int64)
        kinds = [group.kind for group in groups]
        before, after = (np.concatenate([none, *(own[i] for own in names)]) for i in (1, 2))
        labels = pandas.Index(self.classes, dtype=object)
        codes = np.repeat(np.arange(len(groups)), counts)
        return pandas.DataFrame({
            "kind": pandas.Categorical.from_codes(codes, kinds),
            "attribute": np.concatenate([np.zeros(0, object), *attribute]),
            "from_label": pandas.Categorical.from_codes(before, labels),
            "label": pandas.Categorical.from_codes(after, labels),
            "weight": np.concatenate([np.zeros(0), *values]),
        })  # fmt: skip

    def transitions(self) -> FloatArray:
        """Return the weights of transitions, (K, K), from rows to columns.

        NaN where a transition has no weight: it is allowed, with the score 0.
        """
        found: FloatArray = np.full((len(self.classes), len(self.classes)), np.nan)
        for group in self._groups:
            if group.kind == "transition":
                entries = np.flatnonzero(group.matrix.data)
                _, before, after = group.names_of(entries)
                found[before, after] = group.matrix.data[entries]
        return found

    def _of_kind(self, kind: str | None) -> list[Group]:
        if kind is None:
            return self._groups
        check_option("kind", kind, self.counts)
        return [group for group in self._groups if group.kind == kind]

    def _place(self, label: Hashable) -> int:
        if label not in self._labels:
            known = ", ".join(map(str, self._labels[:20]))
            raise ValueError(f"label={label!r:.80} is none of the model, which has {known}.")
        return self._labels.index(label)

    def _summary(self) -> str:
        sizes = ", ".join(f"{count:,} of kind {kind!r}" for kind, count in self.counts.items())
        return f"{self.model_name}: {len(self.classes)} labels, {len(self):,} weights ({sizes})"

    def _repr_html_(self) -> str:
        """Return the strongest weights, so many at most, whatever the model."""
        titles = {"attribute": "attributes", "transition": "transitions"}
        parts = []
        for kind, title in titles.items():
            shown = self.top(_SHOWN, kind=kind) if self.counts.get(kind) else []
            if shown:
                parts.append(_titled(f"Strongest {title}", shown))
        others = [w for kind in self.counts if kind not in titles for w in self.top(5, kind=kind)]
        if others:
            parts.append(_titled("Others", others[:_SHOWN]))
        more = '<div class="dim">top(n, label=..., kind=...) and to_frame() have more.</div>'
        return framed(
            f"<div>{escape(self._summary())}</div>",
            f'<div class="row">{"".join(parts)}</div>', more,
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self._summary()}\n{self.top(_SHOWN)}"

    __repr__ = __str__


def weights(model: Any) -> Weights:
    """Return the weights of a fitted model, with their names.

    Parameters
    ----------
    model : estimator
        A fitted model of crfkit: of chains, segments, trees or graphs, of single tokens, a hidden
        Markov model (the logarithms of its probabilities); an estimator of
        :mod:`crfkit.compat.sklearn_crfsuite`; a calibrated model; or a pipeline or a search of
        scikit-learn that ends in one.

    Returns
    -------
    Weights
        Tables, and the strongest weights; ``len`` is how many are not 0.

    Raises
    ------
    TypeError
        If it is no such model.
    NotFittedError
        If it is not fitted.
    """
    found = opened(model).model
    fitted = vars(found)
    if "start_probabilities_" in fitted:
        groups = _of_hidden(found)
    elif "dual_coef_" in fitted:
        groups = _of_kernel(fitted)
    else:
        groups = _of_linear(found)
    return Weights(groups, found.classes_, type(found).__name__)


def _of_linear(model: Any) -> list[Group]:
    """Return the fitted attributes of a linear model that are tables of weights, with names."""
    fitted, kind = vars(model), model._weight_space().kind
    tables = [table for block in kind.block_types.values() for table in block.tables]
    found = [_group(fitted, each) for each in tables]
    lengths = fitted.get("length_scores_")
    if lengths is not None:
        names = object_array(range(1, len(lengths) + 1))
        allowed = np.where(np.isfinite(lengths), lengths, 0.0)
        found.append(Group(KINDS["length_scores_"], _sparse(allowed), names, False, False))
    return [group for group in found if group is not None]


def _group(fitted: dict[str, Any], described: Table) -> Group | None:
    """Return the weights of a fitted attribute; None where the model has none."""
    values = fitted.get(described.attribute)
    if values is None:
        return None
    kind = KINDS.get(described.attribute, described.title or described.attribute)
    matrix, names = _sparse(values), None
    if described.is_sparse:
        names = fitted.get(NAMES_OF[described.rows])
        names = object_array(range(matrix.shape[0])) if names is None else name_array(names)
    by_label, of_pairs = described.rows == LABELS, described.columns == PAIRS
    return Group(kind, matrix, names, by_label, of_pairs)


def _of_hidden(model: Any) -> list[Group]:
    """Return the logarithms of the probabilities of a hidden Markov model that have names."""
    fitted, found = vars(model), []
    try:
        linear, features = weight_tables(*HiddenProbabilities().read(model))
    except ValueError:  # emissions that are no sums over attributes
        pass
    else:
        names = {NAMES_OF[TOKENS]: fitted.get(NAMES_OF[TOKENS]) if features is None else None}
        found.append(_group(linear | names, Table("coef_", TOKENS, LABELS)))
    with np.errstate(divide="ignore"):
        for name, kind in _PROBABILITIES.items():
            if fitted.get(name) is not None:
                matrix = _sparse(np.log(fitted[name]))
                found.append(Group(kind, matrix, None, matrix.shape[0] > 1, False))
        triples = fitted.get("second_order_probabilities_")
        if triples is not None:
            matrix = _sparse(np.log(triples).reshape(len(triples), -1))
            before = object_array([*model.classes_, None])
            found.append(Group(KINDS["second_order_transitions_"], matrix, before, False, True))
    return [group for group in found if group is not None]


def _of_kernel(fitted: Mapping[str, Any]) -> list[Group]:
    """Return the weights of a model with a kernel: of its support tokens, and of labels."""
    support = object_array(fitted["support_"].tolist())
    tokens = Group(KINDS["dual_coef_"], _sparse(fitted["dual_coef_"]), support, False, False)
    tables = [("transitions_", True), ("start_weights_", False), ("end_weights_", False)]
    return [tokens] + [
        Group(KINDS[name], _sparse(fitted[name]), None, by_label, False)
        for name, by_label in tables
    ]


def _sparse(values: Any) -> sp.csr_array:
    """Return weights as a matrix whose rows are sorted."""
    matrix = sp.csr_array(values if sp.issparse(values) else np.atleast_2d(values))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _strongest(group: Group, n: int, label: int | None, attribute: Any, by: str) -> IntArray:
    """Return the entries of the strongest weights of a group, the strongest first."""
    data = group.matrix.data
    size = np.abs(data) if by == "absolute" else data if by == "positive" else -data
    chosen: BoolArray = (size > 0.0) & np.isfinite(data)
    if label is not None:
        columns = group.matrix.indices
        chosen &= (columns % _width(group) if group.of_pairs else columns) == label
    if attribute is not None:
        chosen &= _rows_named(group, attribute)[_rows(group)]
    places: IntArray = np.flatnonzero(chosen)
    if len(places) > n:
        places = places[np.argpartition(-size[places], max(n - 1, 0))[:n]]
    return places[np.argsort(-size[places], kind="stable")]


def _width(group: Group) -> int:
    columns: int = group.matrix.shape[1]
    return math.isqrt(columns)


def _rows(group: Group) -> IntArray:
    """Return the row of each entry."""
    return np.repeat(np.arange(group.matrix.shape[0]), np.diff(group.matrix.indptr))


def _rows_named(group: Group, attribute: Any) -> BoolArray:
    """Return which rows are those of an attribute."""
    if group.rows is None:
        return np.zeros(group.matrix.shape[0], bool)
    return np.array([name == attribute for name in group.rows], bool)


def _taken(names: Any, places: IntArray) -> ObjectArray:
    """Return the names at some places, None at -1."""
    if names is None:
        return np.full(len(places), None, object)
    found: ObjectArray = names[places]
    return found


def _names(weight: Weight) -> tuple[str, str]:
    """Return what a weight is of: an attribute, and a label or two."""
    before = "" if weight.from_label is None else f"{short(weight.from_label, 30)} → "
    name = "" if weight.attribute is None else short(weight.attribute)
    return name, f"{before}{short(weight.label, 30)}"


def _as_table(shown: Sequence[Weight]) -> str:
    """Return weights as an HTML table with bars."""
    most = max((abs(w.weight) for w in shown), default=0.0)
    several = len({w.kind for w in shown}) > 1
    named = any(w.attribute is not None for w in shown)
    head = ["weight", "", *["kind"] * several, *["attribute"] * named, "label"]
    rows = []
    for w in shown:
        labels = f"{'' if w.from_label is None else code(w.from_label) + ' → '}{code(w.label)}"
        name = "" if w.attribute is None else code(w.attribute)
        own = [*[escape(w.kind)] * several, *[name] * named, labels]
        rows.append([number(w.weight), bar(w.weight, most), *own])
    return table(head, rows, numbers=[0])


def _titled(title: str, shown: Sequence[Weight]) -> str:
    """Return weights as a table with a title."""
    return f'<div><span class="t">{title}</span>{_as_table(shown)}</div>'


def _left_out(count: int) -> str:
    return f'<div class="dim">{count:,} more are left out.</div>' if count > 0 else ""
