"""What users say of segments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.base import BaseEstimator

from crfkit._params import check_option
from crfkit.estimators._segment_layout import SegmentLayout
from crfkit.features.lengths import length_basis
from crfkit.metrics.schemes import get_scheme
from crfkit.persistence import register
from crfkit.scores.segments import TOKEN_PARTS


@register
class SegmentConstraints(BaseEstimator):  # type: ignore[misc]
    """Which segmentations are allowed.

    Parameters
    ----------
    min_length : int or dict, default=1
        The shortest length of segments, of all labels, or by label (1 for those not named).
    forbidden : iterable of (label, label) pairs, default=()
        A segment of the second label may not follow one of the first.
    too_long : {"raise", "split"}, default="raise"
        What becomes of segments in training data that are longer than ``max_length``: an error, or
        segments of that length and a shorter one. Tokens outside of all spans are always cut.
    """

    def __init__(
        self,
        *,
        min_length: int | Mapping[Any, int] = 1,
        forbidden: Iterable[tuple[Any, Any]] = (),
        too_long: str = "raise",
    ) -> None:
        self.min_length = min_length
        self.forbidden = forbidden
        self.too_long = too_long

    def _check_parameters(self) -> None:
        check_option("too_long", self.too_long, ("raise", "split"))
        for pair in self.forbidden:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"forbidden: {pair!r:.60} is no pair of labels.")


@register
class Segments(BaseEstimator):  # type: ignore[misc]
    """Labels are those of segments (Sarawagi and Cohen 2004), not of tokens.

    As ``structure=Segments(...)`` of :class:`~crfkit.StructuredPerceptron` and
    :class:`~crfkit.MaxMarginCRF`; :class:`~crfkit.SemiMarkovCRF` has the same parameters itself.

    Parameters
    ----------
    max_length : int, dict or None, default=None
        The longest length of segments: of all labels, or by label; of those not named, and with
        None of all, the longest that the training data have.
    length : str, callable, list of these or None, default="buckets"
        Features of the length of a segment, each with a weight for each label: "indicator", one for
        each length; "buckets", one for each of 1 to 5 and for ranges that grow from there on;
        "geometric": the length less 1, so that lengths are distributed geometrically; "poisson": as a
        Poisson distribution; a condition or number such as ``"3 <= seg.length <= 5"``,
        ``"log(seg.length)"``; a function of an array of lengths; a list of these. None: none.
    outside : {"single", "long"}, default="single"
        Whether each token outside of all spans (label "O") is a segment of its own, or each run of
        such tokens is one. Runs have lengths, and steps lead from the span before to the one behind
        them by one label alone; single tokens are more like those of a linear chain, and faster.
    scheme : str, default="auto"
        How segments are written as tags: "IOB2", "IOBES" or another of
        :func:`crfkit.metrics.detect_scheme`; "runs": a run of equal labels is a segment. "auto"
        finds the scheme of tags such as ``B-PER``, and takes other labels as runs. Lists of segments
        (start, stop, label) are predicted as IOB2 tags, if no scheme is given.
    token_parts : list of {"inside", "first", "last"}, default=("inside", "first", "last")
        Of which tokens attributes count: of all tokens of a segment (they add up), of its first, of
        its last. Attributes whose names begin with ``seg.first.`` or ``seg.last.`` count for those
        tokens alone.
    constraints : SegmentConstraints or None, default=None
        Shortest lengths, and steps that are not allowed.
    """

    def __init__(
        self,
        *,
        max_length: int | Mapping[Any, int] | None = None,
        length: Any = "buckets",
        outside: str = "single",
        scheme: str = "auto",
        token_parts: Iterable[str] = TOKEN_PARTS,
        constraints: SegmentConstraints | None = None,
    ) -> None:
        self.max_length = max_length
        self.length = length
        self.outside = outside
        self.scheme = scheme
        self.token_parts = token_parts
        self.constraints = constraints

    def _layout(self) -> SegmentLayout:
        """Return what estimators ask for."""
        return SegmentLayout(self)

    def _limits(self) -> SegmentConstraints:
        return SegmentConstraints() if self.constraints is None else self.constraints

    def _check_parameters(self) -> None:
        check_option("outside", self.outside, ("single", "long"))
        if self.scheme not in ("auto", "runs"):
            get_scheme(self.scheme)
        length_basis(self.length, 1)
        for part in self.token_parts:
            check_option("token_parts", part, TOKEN_PARTS)
        self._limits()._check_parameters()
