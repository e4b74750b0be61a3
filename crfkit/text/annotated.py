"""Texts with spans of characters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from crfkit._types import Segment
from crfkit.labels.fields import read_segment
from crfkit.text.offsets import checked_offsets

# Where readers of files keep, in `meta`, what they know of spans and of tokens.
SPAN_FIELDS = "span_fields"
TOKEN_FIELDS = "token_fields"
LINES = "annotation_lines"  # of brat
RESULTS = "results"  # of Label Studio
RELATIONS = "relations"
ANSWER = "answer"  # of Prodigy
OF_SPANS = (SPAN_FIELDS, TOKEN_FIELDS, LINES, RESULTS, RELATIONS, ANSWER)


@dataclass
class AnnotatedText:
    """A text, and spans of its characters.

    Parameters
    ----------
    text : str
        The text.
    spans : iterable of Segment or (start, stop, label)
        Half-open spans of characters, in any order; they may overlap. One labeled
        :data:`crfkit.UNLABELED` is a part of the text of which nothing is known.
    id : object, optional
        What the text is called, for messages and for files.
    meta : dict, optional
        What else is known of the text; readers of files keep here what they do not need.
    span_probabilities : iterable of float, optional
        The probability of each span.
    offsets : iterable of (start, stop), optional
        Where the tokens are, in characters, if the text has some.

    Raises
    ------
    TypeError, ValueError
        Naming the text, if it is no string, a span is empty or does not lie within it, or there are
        not as many probabilities as spans.

    Examples
    --------
    >>> from crfkit.text import AnnotatedText
    >>> AnnotatedText("Ann lives in Rome.", [(0, 3, "PER"), (13, 17, "LOC")]).covered()
    ['Ann', 'Rome']
    """

    text: str
    spans: list[Segment] = field(default_factory=list)
    id: Any = None
    meta: dict[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    span_probabilities: list[float] | None = None
    offsets: list[tuple[int, int]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"{self.name}: the text is a {type(self.text).__name__}, not a str.")
        self.meta = {} if self.meta is None else dict(self.meta)
        self.spans = [
            self._checked(read_segment(span, f"{self.name}, span {number}"))
            for number, span in enumerate(self.spans or ())
        ]
        if self.span_probabilities is not None:
            self._check_probabilities(self.span_probabilities)
        if self.offsets is not None:
            self._check_offsets(self.offsets)

    @property
    def name(self) -> str:
        """What the text is called in messages."""
        return "the text" if self.id is None else f"text {self.id!r}"

    def covered(self) -> list[str]:
        """Return the part of the text that each span covers."""
        return [self.text[span.start : span.stop] for span in self.spans]

    def _checked(self, span: Segment) -> Segment:
        if not 0 <= span.start < span.stop <= len(self.text):
            raise ValueError(
                f"{self.name}: {span} is empty or not within its {len(self.text)} characters; "
                "spans are half-open, and counted in Unicode characters."
            )
        return span

    def _check_probabilities(self, given: Iterable[float]) -> None:
        self.span_probabilities = [float(value) for value in given]
        if len(self.span_probabilities) != len(self.spans):
            raise ValueError(
                f"{self.name}: there are {len(self.spans)} spans, but "
                f"{len(self.span_probabilities)} probabilities."
            )

    def _check_offsets(self, given: Iterable[tuple[int, int]]) -> None:
        try:
            self.offsets = checked_offsets(given)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None
        if self.offsets and self.offsets[-1][1] > len(self.text):
            raise ValueError(
                f"{self.name}: the token {self.offsets[-1]} ends behind its {len(self.text)} "
                "characters."
            )
