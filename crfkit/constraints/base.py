"""Rules about labelings, and what they are compiled to: limits of parts, and automata."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._types import BoolArray, IntArray, ObjectArray
from crfkit.constraints.plain import plain
from crfkit.data import PackedSequences
from crfkit.data.names import Names, name_array
from crfkit.labels.base import LabelSpace
from crfkit.labels.fields import is_hashable
from crfkit.labels.reading import LabelReading
from crfkit.labels.segments import ALIKE

# So many names stand in messages.
MOST_SHOWN = 12


class Automaton(NamedTuple):
    """A finite automaton that reads the codes of a sequence, and accepts it or not.

    It starts in state 0, and reads at each token the symbol of its code after that of the token
    before.
    """

    symbols: IntArray  # (C + 1, C) of a code (axis 1) after one (axis 0), last row: at the start
    step: IntArray  # (Q, n_symbols) the next state, -1 for none
    accepts: BoolArray  # (Q,) whether a sequence may end there


class Target:
    """The fitted model and the data that rules are compiled for.

    Attributes
    ----------
    data : PackedSequences
        The N tokens of S sequences.
    fitted : object
        The fitted model, with `classes_`, (K,), and of segments `scheme_`, `length_scores_` and
        `transitions_`.
    space : LabelSpace
        How its labels are read.
    """

    def __init__(
        self,
        data: PackedSequences,
        fitted: Any,
        space: LabelSpace,
        names: Names | None = None,
        places: dict[str, int] | None = None,
    ) -> None:
        self.data, self.fitted, self.space = data, fitted, space
        # Of attributes; places that were found are kept, as names may be a million.
        self._names, self._places = names, {} if places is None else places

    @cached_property
    def reading(self) -> LabelReading:
        """What the C codes of labels say of spans."""
        found: LabelReading = self.space.coding(self.fitted).reading(self.classes)
        return found

    @property
    def classes(self) -> ObjectArray:
        """The labels of the model, (K,)."""
        found: ObjectArray = self.fitted.classes_
        return found

    @property
    def labels(self) -> list[Any]:
        """The label that each code stands for, (C,)."""
        return [*self.classes.tolist()] * (2 if self.of_segments else 1)

    @property
    def n_codes(self) -> int:
        """How many codes C a token may have."""
        return len(self.classes) * (2 if self.of_segments else 1)

    @property
    def of_segments(self) -> bool:
        """Whether the labels are those of segments."""
        return self.space.of_segments

    @property
    def is_forest(self) -> bool:
        """Whether tokens do not simply follow one another, so that there are no spans."""
        return self.data.topology is not None

    @property
    def first_tokens(self) -> IntArray:
        """The tokens that none stands before: the first of sequences, the roots of forests."""
        if self.data.topology is not None:
            return self.data.topology.first_tokens
        offsets = self.data.offsets
        return offsets[:-1][offsets[:-1] < offsets[1:]]

    @property
    def last_tokens(self) -> IntArray:
        """The tokens that stand before none."""
        if self.data.topology is not None:
            return self.data.topology.last_tokens
        offsets = self.data.offsets
        return offsets[1:][offsets[:-1] < offsets[1:]] - 1

    def of_sequence(self, s: int) -> Target:
        """Return the same for one of the sequences alone."""
        return Target(self.data[[s]], self.fitted, self.space, self._names, self._places)

    def tokens_with(self, attribute: str, rule: str) -> IntArray:
        """Return the tokens that have an attribute; ValueError if the model knows none so named."""
        return self.tokens_with_each([attribute], rule)[0]

    def tokens_with_each(self, attributes: list[str], rule: str) -> list[IntArray]:
        """Return the tokens that have each of some attributes; ValueError if one is not known."""
        data, places = self.data, self._places_of(attributes, rule)
        number = np.full(data.n_features, -1)
        number[places] = np.arange(len(places))
        numbers = number[data.indices]
        entries = np.flatnonzero(numbers >= 0)
        if data.values is not None:
            entries = entries[data.values[entries] != 0.0]
        entries = entries[np.argsort(numbers[entries], kind="stable")]
        tokens = np.searchsorted(data.indptr, entries, side="right") - 1
        ends = np.searchsorted(numbers[entries], np.arange(1, len(places)))
        found = np.split(tokens, ends)[: len(places)]
        if data.dense is not None:
            for which in np.flatnonzero(places >= data.n_sparse).tolist():
                found[which] = np.flatnonzero(data.dense[:, places[which] - data.n_sparse])
        return found

    def _places_of(self, attributes: list[str], rule: str) -> IntArray:
        """Return the numbers of attributes."""
        wanted = set(attributes) - set(self._places)
        if wanted and self._names is None:
            raise ValueError(
                f"{rule}: the model was fitted on features without names, so {min(wanted)!r} is "
                "not one of them."
            )
        if wanted and self._names is not None:
            for place, name in enumerate(name_array(self._names).tolist()):
                if name in wanted:
                    self._places[name] = place
        for attribute in attributes:
            if attribute not in self._places:
                raise ValueError(
                    f"{rule}: the model has no attribute {attribute!r}: there was none in the "
                    "training data. feature_names_in_ tells which there are."
                )
        return np.array([self._places[attribute] for attribute in attributes], np.int64)

    def labels_named(self, name: Any, rule: str) -> tuple[BoolArray, bool]:
        """Return which labels, (K,), a name stands for, and whether it is that of a type of spans.

        A type stands for all its tags. ValueError if the model knows neither.
        """
        if not is_hashable(name):
            raise TypeError(f"{rule}: {name!r:.60} is no label: it is not hashable.")
        known = self.classes.tolist()
        if name in known:
            return np.arange(len(known)) == known.index(name), False
        types = [] if self.of_segments or self.is_forest else self.reading.types
        if name in types:
            return self.reading.type_of == types.index(name), True
        hint = _hint(name, types, known)
        raise ValueError(f"{rule}: the model does not know the label {name!r:.60}{hint}")

    def codes_named(self, names: Any, rule: str) -> BoolArray:
        """Return which codes, (C,), stand for one of some labels."""
        found = np.zeros(len(self.classes), bool)
        for name in listed(names):
            found |= self.labels_named(name, rule)[0]
        return np.tile(found, self.n_codes // max(len(found), 1))

    def pairs_named(self, pair: Any, rule: str) -> BoolArray:
        """Return which steps, (K, K), a pair of labels stands for.

        Types of spans stand for the step from a span to another, not for one within a span.
        """
        if isinstance(pair, str) or not isinstance(pair, Collection) or len(pair) != 2:
            raise TypeError(f"{rule}: {pair!r:.60} is no pair of labels.")
        (before, typed), (after, also) = (self.labels_named(name, rule) for name in pair)
        steps = before[:, None] & after
        return steps & ~self.reading.continues if typed or also else steps


def _hint(name: Any, types: list[Any], labels: list[Any]) -> str:
    """Return how a message goes on that says that a name is none of these."""
    plain_names = {str(label).casefold(): label for label in [*labels, *types]}
    close = difflib.get_close_matches(str(name).casefold(), plain_names, 1, ALIKE)
    parts = [f": did you mean {plain_names[close[0]]!r}? It has " if close else "; it has "]
    if types and not set(types) <= set(labels):
        parts.append(f"spans of {_shown(types)}, and ")
    return "".join([*parts, f"the labels {_shown(labels)}."])


def _shown(names: list[Any]) -> str:
    """Return the first of some names, for messages."""
    return ", ".join(map(repr, names[:MOST_SHOWN])) + ", ..." * (len(names) > MOST_SHOWN)


def listed(names: Any) -> list[Any]:
    """Return labels as a list; a single one need not stand in one."""
    plural = isinstance(names, Iterable) and not isinstance(names, (str, bytes))
    return list(names) if plural else [names]


class Masks:
    """A mask for each of N tokens, of few different ones: ``tables[which[t]]``."""

    def __init__(self, n_tokens: int, shape: tuple[int, ...]) -> None:
        self.tables = [np.ones(shape, bool)]
        self.which: IntArray = np.zeros(n_tokens, np.int64)
        self._places = {self.tables[0].tobytes(): 0}

    def narrow(self, tokens: IntArray, mask: BoolArray) -> None:
        """Leave out for some tokens, (n,), what is not in a mask."""
        old = self.which[tokens]
        for number in np.unique(old).tolist():
            self.which[tokens[old == number]] = self._place(self.tables[number] & mask)

    def _place(self, mask: BoolArray) -> int:
        place = self._places.setdefault(mask.tobytes(), len(self.tables))
        if place == len(self.tables):
            self.tables.append(mask)
        return place


class Limits:
    """What local rules leave of the parts of labelings."""

    def __init__(self, n_tokens: int, n_labels: int, n_codes: int) -> None:
        self.codes = Masks(n_tokens, (n_codes,))  # that tokens may have
        # From a label (axis 0) to the next one: of all tokens, and into single ones.
        self.steps = np.ones((n_labels, n_labels), bool)
        self.steps_into = Masks(n_tokens, (n_labels, n_labels))

    def allow(self, tokens: IntArray, codes: BoolArray) -> None:
        """Leave some tokens, (n,), only some codes, (C,)."""
        self.codes.narrow(tokens, codes)

    def allow_steps(self, steps: BoolArray) -> None:
        """Leave only some steps from a label to the next one, (K, K)."""
        self.steps &= steps

    def allow_steps_into(self, tokens: IntArray, steps: BoolArray) -> None:
        """Leave only some steps, (K, K), into some tokens, (n,)."""
        self.steps_into.narrow(tokens, steps)


class Rule(BaseEstimator, ABC):  # type: ignore[misc]
    """Something that is known of labelings; see :class:`Constraints`."""

    key: ClassVar[type] = str  # of the keys of dicts among its parameters
    of_sequences: ClassVar[bool] = False  # whether it says something else of each, in `parts`

    def parts(self, s: int, target: Target) -> list[Part]:
        """Return rules for sequence `s` alone that together say the same of it."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        ours, theirs = (rule.get_params(deep=False) for rule in (self, other))
        return all(_same(ours[name], theirs[name]) for name in ours)

    __hash__ = None  # type: ignore[assignment]


class Part(NamedTuple):
    """A part of what rules say of a sequence, and how messages name it."""

    rule: Rule
    shown: str


def parts_of(rule: Rule, s: int, target: Target) -> list[Part]:
    """Return what a rule says of a sequence."""
    shown = " ".join(repr(rule).split())
    return rule.parts(s, target) if rule.of_sequences else [Part(rule, shown)]


def _same(one: Any, other: Any) -> bool:
    """Whether two parameters have the same value."""
    try:
        return bool(one is other or plain(one) == plain(other))
    except TypeError:
        return bool(np.all(one == other))


class LocalRule(Rule):
    """A rule about single tokens and the steps between them: forbidden scores tell all of it."""

    @abstractmethod
    def limit(self, target: Target, limits: Limits) -> None:
        """Leave out what the rule forbids; ValueError or TypeError if it does not fit the model."""


class GlobalRule(Rule):
    """A rule about a sequence as a whole, which finite automata tell."""

    @abstractmethod
    def automata(self, target: Target) -> list[Automaton]:
        """Return automata that all accept the sequences that keep the rule, and no others.

        ValueError or TypeError if the rule does not fit the model.
        """
