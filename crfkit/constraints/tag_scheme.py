"""Tags that are legal in their scheme."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from crfkit._types import BoolArray
from crfkit.constraints.base import Limits, LocalRule, Target
from crfkit.labels.schemes import OUTSIDE_LABEL, allowed_transitions, get_scheme, parse_tag

# Which scheme has a letter, the first that is found.
_OF_LETTERS = (("UL", "BILOU"), ("W", "BMEWO"), ("M", "BMES"), ("S", "IOBES"))


@dataclass(eq=False, repr=False)
class TagScheme(LocalRule):
    """Labels are tags that are legal where they stand, such as no ``I-PER`` after ``O``.

    Parameters
    ----------
    scheme : str, default="auto"
        "IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES", "BMEWO" or "IO"; "auto" is the one
        with the letters of the labels: where there are B and I alone, IOB2, or IOB1 if a type has
        an I, but no B.
    suffix : bool, default=False
        Whether tags are written ``PER-B`` rather than ``B-PER``.
    delimiter : str, default="-"
        What stands between letter and type.

    Notes
    -----
    ValueError if a label is no tag of the scheme, or tokens are ordered in forests. What a model of
    segments writes is legal anyway.

    Examples
    --------
    >>> from crfkit.constraints import TagScheme
    >>> TagScheme("IOB2")
    TagScheme(scheme='IOB2')
    """

    scheme: str = "auto"
    suffix: bool = False
    delimiter: str = "-"

    def limit(self, target: Target, limits: Limits) -> None:
        """Leave out steps, first and last labels that are not legal."""
        if target.is_forest:
            raise ValueError(
                "TagScheme: tags say which tokens of a sequence follow one another, but those of X "
                f"stand in a {type(target.data.topology).__name__}."
            )
        labels = target.classes.tolist()
        if self.scheme != "auto":
            get_scheme(self.scheme)
        if target.of_segments:
            return
        scheme = self.found(labels) if self.scheme == "auto" else self.scheme
        steps, first, last = _legal(tuple(labels), scheme, self.suffix, self.delimiter)
        limits.allow_steps(steps)
        limits.allow(target.first_tokens, first)
        limits.allow(target.last_tokens, last)

    def found(self, labels: list[Any]) -> str:
        """Return the scheme that has the letters of all labels."""
        rules = get_scheme("conll", self.suffix, self.delimiter)
        tags = [label for label in labels if label != OUTSIDE_LABEL]
        try:
            types = [parse_tag(label, rules)[1] for label in tags]
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"TagScheme: {error}. Give another delimiter, or other rules, such as Steps."
            ) from error
        letters = [rules.split(label)[0] for label in tags]
        for letter, scheme in _OF_LETTERS:
            if set(letter) & set(letters):
                return scheme
        if "E" in letters:
            return "IOBES" if "B" in letters else "IOE2"
        begun = {name for letter, name in zip(letters, types, strict=True) if letter == "B"}
        if "B" not in letters:
            return "IO"
        return "IOB2" if set(types) <= begun else "IOB1"


@lru_cache(maxsize=32)
def _legal(
    labels: tuple[Any, ...], scheme: str, suffix: bool, delimiter: str
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return which tags may follow which, and which may be first, and last."""
    try:
        return allowed_transitions(labels, scheme, suffix=suffix, delimiter=delimiter)
    except (TypeError, ValueError) as error:
        raise type(error)(f"TagScheme: {error}") from error
