"""Rules about a sequence as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._params import check_option, check_whole
from crfkit._types import BoolArray
from crfkit.constraints.base import Automaton, GlobalRule, Target, listed
from crfkit.labels.schemes import OUTSIDE_LABEL

UNITS = ("spans", "tokens")
# Automata may have so many states.
MOST_COUNTED = 5000


@dataclass(eq=False, repr=False)
class Count(GlobalRule):
    """A label occurs so many times in a sequence (Kristjansson et al. 2004; Roth and Yih 2005).

    Parameters
    ----------
    label : label
        One of tokens, such as ``"B-PER"``, or the type of spans, such as ``"PER"``.
    at_least : int, default=0
        The least number.
    at_most : int, optional
        The largest number.
    unit : {"spans", "tokens"}, default="spans"
        What is counted. Of a label that is no type of spans, a run of tokens that have it counts as
        one span. Models of segments count segments only.

    Examples
    --------
    >>> from crfkit.constraints import Count
    >>> Count("date", at_least=1, at_most=1)
    Count(at_least=1, at_most=1, label='date')
    """

    label: Any
    at_least: int = 0
    at_most: int | None = None
    unit: str = "spans"

    def automata(self, target: Target) -> list[Automaton]:
        """Return the automaton that counts up to the larger number."""
        check_whole("at_least", self.at_least, 0)
        check_option("unit", self.unit, UNITS)
        if self.at_most is not None:
            check_whole("at_most", self.at_most, 0)
            if self.at_most < self.at_least:
                raise ValueError(
                    f"{self!r}: at_most={self.at_most} is less than at_least={self.at_least}."
                )
        if self.unit == "tokens" and target.of_segments:
            raise ValueError(
                f"{self!r}: a model of segments counts segments, not their tokens: use "
                "unit='spans', or limit lengths by SegmentLimits when fitting."
            )
        member = _members(self.label, target, repr(self))
        counted = np.tile(member, (len(member) + 1, 1))
        if self.unit == "spans":
            counted = _beginnings(self.label, member, target)
        last = self.at_least if self.at_most is None else self.at_most
        if last > MOST_COUNTED:
            raise ValueError(
                f"{self!r}: counting to {last} takes as many states of an automaton; "
                f"{MOST_COUNTED} are the most."
            )
        states = np.arange(last + 1)
        more = np.append(states[1:], last if self.at_most is None else -1)
        accepts = states >= self.at_least
        return [Automaton(counted.astype(np.int64), np.column_stack([states, more]), accepts)]


@dataclass(eq=False, repr=False)
class Contiguous(GlobalRule):
    """Each of some labels is in one block of tokens, if it occurs: fields of a record.

    Parameters
    ----------
    labels : list of labels, optional
        Labels of tokens or types of spans; all but "O" if not given.

    Examples
    --------
    >>> from crfkit.constraints import Contiguous
    >>> Contiguous(["street", "city"])
    Contiguous(labels=['street', 'city'])
    """

    labels: Any = None

    def automata(self, target: Target) -> list[Automaton]:
        """Return an automaton a label: before its block, in it, after it."""
        step = np.array([[0, 1], [2, 1], [2, -1]])
        names = _types(target) if self.labels is None else listed(self.labels)
        rule = repr(self)
        read = [_members(name, target, rule) for name in names]
        return [_of_members(step, member) for member in read]


@dataclass(eq=False, repr=False)
class Before(GlobalRule):
    """No token of the first label comes after one of the second.

    Parameters
    ----------
    first, second : label
        Labels of tokens or types of spans.

    Examples
    --------
    >>> from crfkit.constraints import Before
    >>> Before("author", "title")
    Before(first='author', second='title')
    """

    first: Any
    second: Any

    def automata(self, target: Target) -> list[Automaton]:
        """Return the automaton that remembers whether the second label was there."""
        rule = repr(self)
        before, after = (_members(name, target, rule) for name in (self.first, self.second))
        if (before & after).any():
            raise ValueError(f"{rule}: a token may have both labels: they cannot be in order.")
        return [_of_members(np.array([[0, 0, 1], [1, -1, 1]]), before, after)]


@dataclass(eq=False, repr=False)
class NotTogether(GlobalRule):
    """At most one of some labels occurs in a sequence.

    Parameters
    ----------
    labels : list of labels
        Labels of tokens or types of spans.

    Examples
    --------
    >>> from crfkit.constraints import NotTogether
    >>> NotTogether(["journal", "book title"])
    NotTogether(labels=['journal', 'book title'])
    """

    labels: Any

    def automata(self, target: Target) -> list[Automaton]:
        """Return the automaton that remembers which of the labels was there."""
        rule = repr(self)
        members = [_members(name, target, rule) for name in listed(self.labels)]
        if not members:
            return []
        if np.any(np.sum(members, axis=0) > 1):
            raise ValueError(f"{rule}: a token may have two of the labels at once.")
        states = np.arange(len(members) + 1)
        first = np.where((states[:, None] == 0) | (states[:, None] == states[1:]), states[1:], -1)
        return [_of_members(np.column_stack([states, first]), *members)]


def _members(name: Any, target: Target, rule: str) -> BoolArray:
    """Return which codes a label stands for, (C,)."""
    if target.is_forest:
        raise ValueError(
            f"{rule}: the rule is about the order of tokens, which forests and graphs do not have."
        )
    return target.codes_named([name], rule)


def _types(target: Target) -> list[Any]:
    """Return all types of spans, in the order of the labels."""
    if target.is_forest or not target.of_segments:
        return [] if target.is_forest else target.reading.types
    return [label for label in target.classes.tolist() if label != OUTSIDE_LABEL]


def _of_members(step: np.ndarray, *members: BoolArray) -> Automaton:
    """Return an automaton that accepts in all states; symbols are 1 + number of a label, or 0."""
    codes = np.zeros(len(members[0]), np.int64)
    for number, member in enumerate(members):
        codes[member] = number + 1
    symbols = np.tile(codes, (len(codes) + 1, 1))
    return Automaton(symbols, step, np.ones(len(step), bool))


def _beginnings(label: Any, member: BoolArray, target: Target) -> BoolArray:
    """Return whether a span begins with a code (axis 1) after a code, (C + 1, C).

    A tag is no type, also where it is the only one of its type.
    """
    reading = target.reading
    types = np.unique(reading.type_of[member])
    if label in reading.types and np.array_equal(np.isin(reading.type_of, types), member):
        found: BoolArray = reading.opens & member
        return found
    return np.append(~member, True)[:, None] & member
