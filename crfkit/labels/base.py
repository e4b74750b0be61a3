"""What the labels of a model stand for: from labels to codes, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, LabelReading, ObjectArray
from crfkit.data import LabelSequences
from crfkit.data.label_checks import check_labels
from crfkit.data.labels import (
    UNKNOWN,
    UNLABELED,
    LabelStream,
    ReadStrings,
    check_lengths,
    object_array,
    sorted_labels,
)
from crfkit.data.soft import SoftLabels, most_probable
from crfkit.data.targets import Targets
from crfkit.labels.costs import Cost
from crfkit.labels.reading import read_labels
from crfkit.labels.schemes import CONLL, OUTSIDE_LABEL, Scheme

Fewer = tuple[IntArray, Targets]  # which labels are left, (K,), and what is known by these


class Coded(NamedTuple):
    """Labels, (K,), the codes of tokens, (N,), and the `LabelCoding` that reads and writes them."""

    classes: ObjectArray
    codes: CodeArray
    coding: Any
    allowed: BoolArray | None = None  # which codes each token may have, (N, C), as of `Targets`
    soft: FloatArray | None = None  # probabilities of codes, (N, C), as of `Targets`

    @property
    def targets(self) -> Targets:
        """What is known of the labels."""
        return Targets(self.codes, self.allowed, self.soft)


class Known(NamedTuple):
    """What labels are known to be, for a fitted model."""

    codes: CodeArray  # (N,)
    possible: BoolArray  # (N,) whether the model can have the label
    allowed: BoolArray | None = None  # (N, C) which codes each token may have, where some several


class LabelCoding(ABC):
    """How codes are read and written; `fitted` are the fitted attributes that tell it."""

    fitted: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def write(self, codes: CodeArray, classes: ObjectArray, offsets: IntArray) -> LabelSequences:
        """Return the labels that codes stand for."""

    @abstractmethod
    def write_renamed(
        self,
        codes: CodeArray,
        renamed: BoolArray,
        label: Hashable,
        classes: ObjectArray,
        offsets: IntArray,
    ) -> LabelSequences:
        """Return the labels that codes stand for, some spans with another label.

        `renamed`, (N,), tells the tokens of these; "O" leaves them out.
        """

    @abstractmethod
    def write_known(self, targets: Targets, classes: ObjectArray, offsets: IntArray) -> Any:
        """Return what is known of labels in the form in which it is given: `y`."""

    @abstractmethod
    def restrict(self, targets: Targets, n_labels: int, known: BoolArray) -> Fewer:
        """Return which labels occur, rising, and codes of these: any where not `known`, (N,)."""

    @abstractmethod
    def cost(self, cost: Cost) -> Cost:
        """Return the cost of codes, given that of labels."""

    @abstractmethod
    def as_predicted(self, y: Any, offsets: IntArray) -> Any:
        """Return true labels in the form of predicted ones."""

    @abstractmethod
    def key(self, label: Hashable) -> Hashable:
        """Return what tells a label, or that of a span, from others."""

    @abstractmethod
    def reading(
        self, classes: ObjectArray, scheme: Scheme | None = None, *, outside: bool = False
    ) -> LabelReading:
        """Return what codes say of spans, where tags are those of a scheme if one is given.

        With `outside`, what is outside of spans is a span of the label "O".
        """


class FittedLabels(Protocol):
    """What a fitted model knows of labels, (K,), and of segments: how tags write them."""

    classes_: ObjectArray
    scheme_: str


class LabelSpace(ABC):
    """From labels to codes, and back."""

    of_segments: ClassVar[bool]  # whether labels are those of segments

    @abstractmethod
    def read(self, y: Any, offsets: IntArray) -> Coded:
        """Return the codes of labels; ValueError or TypeError if they do not fit the sequences."""

    @abstractmethod
    def coding(self, fitted: FittedLabels) -> Any:
        """Return how the codes of a fitted model are read and written."""

    @abstractmethod
    def codes(self, fitted: FittedLabels, y: Any, offsets: IntArray) -> Known:
        """Return what labels are, for a fitted model."""


def present(codes: CodeArray, known: BoolArray) -> tuple[IntArray, CodeArray]:
    """Return which `known` codes occur, rising, and codes with respect to these, 0 of others."""
    found = np.unique(codes[known])
    fewer = np.zeros(int(codes.max(initial=0)) + 1, np.int32)
    fewer[found] = np.arange(len(found))
    return found.astype(np.int64), fewer[codes]


class TokenCoding(LabelCoding):
    """A label is a code."""

    def write(self, codes: CodeArray, classes: ObjectArray, offsets: IntArray) -> LabelSequences:
        """Return the labels that codes stand for."""
        return LabelSequences.from_codes(codes, classes, offsets)

    def write_renamed(
        self,
        codes: CodeArray,
        renamed: BoolArray,
        label: Hashable,
        classes: ObjectArray,
        offsets: IntArray,
    ) -> LabelSequences:
        """Return the labels that codes stand for, some spans with another label."""
        names, reading = classes.tolist(), self.reading(classes)
        others = [label] * len(names)
        for code, kind in enumerate(reading.type_of.tolist()):
            is_tag = kind >= 0 and names[code] != reading.types[kind]
            if is_tag and label != OUTSIDE_LABEL:
                others[code] = CONLL.delimiter.join((CONLL.split(names[code])[0], str(label)))
        every = object_array([*names, *others])
        return LabelSequences.from_codes(codes + len(names) * renamed, every, offsets)

    def write_known(self, targets: Targets, classes: ObjectArray, offsets: IntArray) -> Any:
        """Return labels, sets of labels, `UNLABELED` where any is allowed, or distributions."""
        if targets.soft is not None:
            return SoftLabels.of_table(targets.soft.copy(), classes, offsets)
        labels = self.write(targets.states, classes, offsets)
        if targets.allowed is not None:
            tokens = np.flatnonzero(targets.allowed.sum(axis=1) > 1)
            sequences = np.searchsorted(offsets, tokens, side="right") - 1
            places = zip(
                sequences, tokens - offsets[sequences], targets.allowed[tokens], strict=True
            )
            for s, t, allowed in places:
                some = frozenset(classes[allowed].tolist())
                labels[s][t] = UNLABELED if allowed.all() else some
        return labels

    def restrict(self, targets: Targets, n_labels: int, known: BoolArray) -> Fewer:
        """Return which labels are known to occur, rising, and codes with respect to these."""
        if targets.soft is not None:
            some = np.flatnonzero(targets.soft[known].any(axis=0)).astype(np.int64)
            soft = np.ascontiguousarray(targets.soft[:, some])
            return some, Targets(soft.argmax(axis=1).astype(np.int32), None, soft)
        if targets.allowed is None:
            found, codes = present(targets.states, known)
            return found, Targets(codes)
        known = known & targets.known
        found = np.flatnonzero(targets.allowed[known].any(axis=0)).astype(np.int64)
        fewer = targets.allowed[:, found]
        fewer[~known] = True
        return found, Targets.of_allowed(fewer)

    def cost(self, cost: Cost) -> Cost:
        """Return the cost itself."""
        return cost

    def as_predicted(self, y: Any, offsets: IntArray) -> Any:
        """Return the labels themselves, of distributions the most probable ones."""
        return most_probable(y)

    def key(self, label: Hashable) -> Hashable:
        """Return the label."""
        return label

    def reading(
        self, classes: ObjectArray, scheme: Scheme | None = None, *, outside: bool = False
    ) -> LabelReading:
        """Return what tags say of spans, or runs of labels; see `read_labels`."""
        return read_labels(classes.tolist(), scheme, outside=outside)


def _read_soft(y: SoftLabels, offsets: IntArray, classes: ObjectArray | None) -> Coded:
    """Return the codes of the most probable labels, and the probabilities of all."""
    check_lengths(offsets, y.offsets, "y")
    if classes is None:
        classes = sorted_labels(y.classes)
    soft = y.table_for(classes)
    return Coded(classes, soft.argmax(axis=1).astype(np.int32), TokenCoding(), None, soft)


class TokenLabels(LabelSpace):
    """A label for each token; `read_strings` may be what reads strings fast (`LabelStream`)."""

    of_segments = False

    def __init__(self, read_strings: ReadStrings | None = None) -> None:
        self._read_strings = read_strings

    def read(self, y: Any, offsets: IntArray, classes: ObjectArray | None = None) -> Coded:
        """Return the codes of labels, with respect to given classes or those that occur."""
        if isinstance(y, SoftLabels):
            return _read_soft(y, offsets, classes)
        stream = LabelStream(y, partial=True, read_strings=self._read_strings)
        check_lengths(offsets, stream.offsets, "y")
        check_labels(stream, () if classes is None else classes)
        classes = stream.classes() if classes is None else classes
        known = set(classes)
        for label in stream.index:
            if label not in known:
                raise ValueError(
                    f"{stream.place_of(label)}: the label {label!r} is not one of the classes of "
                    "the model. Give all labels in the first call of partial_fit."
                )
        in_part = stream.options and len(classes) > 1
        allowed = stream.allowed_for(classes) if in_part else None
        if not stream.index and stream.options or allowed is not None and allowed.all():
            raise ValueError(
                "no token of y has a known label, all are UNLABELED, or sets of all labels: there "
                "is nothing to learn from."
            )
        return Coded(classes, stream.codes_for(classes), TokenCoding(), allowed)

    def coding(self, fitted: FittedLabels) -> TokenCoding:
        """Return how the codes of a fitted model are read and written."""
        return TokenCoding()

    def codes(self, fitted: FittedLabels, y: Any, offsets: IntArray) -> Known:
        """Return codes of labels for a fitted model, and whether it knows the label, both (N,)."""
        stream = LabelStream(y, partial=True)
        check_lengths(offsets, stream.offsets, "y")
        codes, allowed = stream.codes_for(fitted.classes_), stream.allowed_for(fitted.classes_)
        known = codes != UNKNOWN
        if allowed is not None:
            allowed[~known] = True
        return Known(np.where(known, codes, 0).astype(np.int32), known, allowed)
