"""What users say of segments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from crfkit._params import check_option, check_whole
from crfkit.features.lengths import length_basis
from crfkit.labels.base import LabelSpace, TokenLabels
from crfkit.labels.fields import is_label
from crfkit.labels.schemes import OUTSIDE_LABEL, RUNS, get_scheme
from crfkit.labels.segments import SegmentLabels
from crfkit.persistence import register
from crfkit.potentials.semimarkov import TOKEN_PARTS

LONGEST = 1_000_000  # tokens that a segment may be allowed to have


@register
@dataclass(kw_only=True, eq=False, repr=False)
class SegmentLimits(BaseEstimator):  # type: ignore[misc]
    """Which segmentations are allowed.

    They hold in training, where labels that break them are errors, and in all predictions.

    Parameters
    ----------
    min_length : int or dict, default=1
        The shortest length of segments: of all labels but that of tokens outside, or by label (1
        for those not named).
    forbidden : list of (label, label) pairs, default=()
        A segment of the second label may not follow one of the first. Labels that the data lack
        are left out.
    too_long : {"raise", "split"}, default="raise"
        What becomes of segments in training data that are longer than ``max_length``: an error, or
        segments of that length and a shorter one. Tokens outside of all segments are always cut.

    Examples
    --------
    >>> from crfkit import SegmentLimits, SemiMarkovCRF
    >>> limits = SegmentLimits(min_length={"DATE": 2}, forbidden=[("DATE", "DATE")])
    >>> model = SemiMarkovCRF(limits=limits)
    >>> model.set_params(limits__too_long="split").limits.too_long
    'split'
    """

    min_length: int | Mapping[Any, int] = 1
    forbidden: Iterable[tuple[Any, Any]] = ()
    too_long: str = "raise"

    def _check_parameters(self) -> None:
        check_option("too_long", self.too_long, ("raise", "split"))
        _check_lengths("min_length", self.min_length)
        _check_collection("forbidden", self.forbidden)
        for pair in self.forbidden:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"forbidden: {pair!r:.60} is no pair of labels.")
            for label in pair:
                if not is_label(label):
                    raise TypeError(
                        f"forbidden: {label!r:.60} in the pair {pair!r:.60} is no label: labels "
                        "are hashable, and not None or NaN."
                    )


@register
@dataclass(kw_only=True, eq=False, repr=False)
class Segments(BaseEstimator):  # type: ignore[misc]
    """Labels are those of segments (Sarawagi and Cohen 2004), not of tokens.

    As ``structure=Segments(...)`` of :class:`~crfkit.StructuredPerceptron` and
    :class:`~crfkit.MaxMarginCRF`; :class:`~crfkit.SemiMarkovCRF` has the same parameters itself.

    Parameters
    ----------
    max_length, length, outside, scheme, token_parts, limits
        As for :class:`crfkit.SemiMarkovCRF`.

    Examples
    --------
    >>> from crfkit import Segments
    >>> Segments(max_length=4, outside="long")
    Segments(max_length=4, outside='long')
    """

    max_length: int | Mapping[Any, int] | None = None
    length: Any = "buckets"
    outside: str = "single"
    scheme: str = "auto"
    token_parts: Iterable[str] = TOKEN_PARTS
    limits: SegmentLimits | None = None

    def _limits(self) -> SegmentLimits:
        return SegmentLimits() if self.limits is None else self.limits

    def _check_parameters(self) -> None:
        check_option("outside", self.outside, ("single", "long"))
        if self.scheme not in ("auto", RUNS):
            get_scheme(self.scheme)
        # Features of lengths; functions are called with real lengths alone.
        if isinstance(self.length, Iterable) and not isinstance(self.length, str):
            _check_collection("length", self.length)
            length_basis([kind for kind in self.length if not callable(kind)], 1)
        elif not callable(self.length):
            length_basis(self.length, 1)
        if self.max_length is not None:
            _check_lengths("max_length", self.max_length)
        _check_collection("token_parts", self.token_parts)
        for part in self.token_parts:
            check_option("token_parts", part, TOKEN_PARTS)
        if not isinstance(self._limits(), SegmentLimits):
            raise TypeError(f"limits={self.limits!r:.60} must be SegmentLimits or None.")
        self._limits()._check_parameters()
        if self.outside == "single":
            _check_single("max_length", self.max_length)
            _check_single("min_length", self._limits().min_length)


def labels_of(structure: Any, warm_start: bool) -> LabelSpace:
    """Return the label space of the parameter `structure`."""
    if isinstance(structure, Segments):
        structure._check_parameters()
        if warm_start:
            raise ValueError(
                "warm_start=True carries weights of the labels of tokens over, not of segments: "
                "use structure='chain', or warm_start=False."
            )
        return SegmentLabels(structure)
    message = f"structure={structure!r:.80} must be 'chain' or Segments()."
    if not isinstance(structure, str):
        raise TypeError(message)
    if structure != "chain":
        raise ValueError(message)
    return TokenLabels()


def _check_lengths(name: str, given: Any) -> None:
    """Raise if a parameter is neither a length nor a dict of lengths by label."""
    named = given.items() if isinstance(given, Mapping) else [(None, given)]
    for label, length in named:
        called = name if label is None else f"{name}[{label!r}]"
        check_whole(called, length, 1)
        if length > LONGEST:
            raise ValueError(
                f"{called}={length!r} must be at most {LONGEST:,}, as there is a score for each "
                "length: leave it out to have it learned."
            )


def _check_single(name: str, given: Any) -> None:
    """Raise ValueError if tokens outside, segments of their own, are to be longer."""
    length = given.get(OUTSIDE_LABEL, 1) if isinstance(given, Mapping) else 1
    if length > 1:
        raise ValueError(
            f"{name}[{OUTSIDE_LABEL!r}]={length!r}, but with outside='single' each token outside "
            f"is a segment of its own: give outside='long', or leave {OUTSIDE_LABEL!r} out."
        )


def _check_collection(name: str, given: Any) -> None:
    """Raise TypeError if a parameter cannot be read twice, or is a string."""
    if isinstance(given, str) or not isinstance(given, Collection):
        raise TypeError(f"{name}={given!r:.60} must be a list, tuple or set.")
