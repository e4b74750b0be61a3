"""Tokens and spans in color, with how sure the model is, beside the truth."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from html import escape
from typing import Any, NamedTuple

from crfkit._params import check_whole
from crfkit.data.labels import UNLABELED
from crfkit.inspection.marks import (
    Marked,
    first_sequences,
    given_texts,
    rows_of_spans,
    rows_of_tokens,
    shown_texts,
    true_rows,
)
from crfkit.inspection.markup import framed, page, short
from crfkit.inspection.models import opened
from crfkit.labels.schemes import OUTSIDE_LABEL, looks_like_tag

# After Okabe and Ito (2008): color-blind people tell these apart. Labels are written out, too.
COLORS = (
    "0,114,178", "230,159,0", "0,158,115", "204,121,167", "86,180,233", "213,94,0", "176,160,0",
    "128,100,200", "120,120,120",
)  # fmt: skip
_STYLE = """<style>
.crfkit .line{margin:.35em 0;line-height:2.05;display:flex;gap:.7em}
.crfkit .no{flex:none;width:7.2em;text-align:right;opacity:.7;font-size:12px;white-space:nowrap;
font-variant-numeric:tabular-nums}
.crfkit .text{min-width:0;overflow-wrap:anywhere}
.crfkit .span{border-radius:4px;padding:.12em .3em;margin:0 .08em;color:inherit;
-webkit-box-decoration-break:clone;box-decoration-break:clone}
.crfkit .span small,.crfkit .tok small{font-size:11px;font-weight:600;margin-left:.35em;
white-space:nowrap}
.crfkit .wrong{outline:2px dashed currentColor;outline-offset:-1px}
.crfkit .tok{display:inline-flex;flex-direction:column;align-items:center;border-radius:4px;
padding:0 .3em .15em;margin:.1em .08em;line-height:1.35;vertical-align:top}
.crfkit .tok small{margin:0;white-space:nowrap}
.crfkit .legend span{display:inline-block;margin-right:.5em;white-space:nowrap}
.crfkit .legend{margin-bottom:.5em}
@media(max-width:640px){.crfkit .line{flex-direction:column;gap:0}.crfkit .no{text-align:left;
line-height:1.2}}
</style>"""
_SURE = 0.9  # the probability of "O" from which on it is not written out
_TOKENS = 300  # of a sequence that are shown


class Line(NamedTuple):
    """A sequence: its tokens, what is predicted, and what is true where that is known."""

    number: int
    tokens: list[str]
    predicted: list[Marked] | None
    true: list[Marked] | None

    @property
    def is_right(self) -> bool:
        """Whether truth and prediction say the same, or one of them is not known."""
        return not any(m.is_wrong for m in [*(self.predicted or ()), *(self.true or ())])


class ShownSequences:
    """Sequences in color; from :func:`show_spans` and :func:`show_tokens`.

    Notebooks show it; ``print`` writes it as text.

    Attributes
    ----------
    lines : list of Line
        The sequences that are shown.
    n_left_out : int or None
        How many are not; None where that is not known.
    """

    def __init__(
        self,
        lines: list[Line],
        n_left_out: int | None,
        of_tokens: bool,
        known: Sequence[Hashable] = (),
    ) -> None:
        self.lines, self.n_left_out, self._of_tokens = lines, n_left_out, of_tokens
        names = dict.fromkeys(mark.label for line in lines for mark in _marks(line))
        for blank in (OUTSIDE_LABEL, UNLABELED):
            names.pop(blank, None)
        kinds = _kinds(sorted(names, key=str))
        # A label of a model has the same color wherever it is shown, if there are so many.
        together = {
            *kinds.values(),
            *_kinds([name for name in known if name != OUTSIDE_LABEL]).values(),
        }
        listed = sorted(together if len(together) <= len(COLORS) else {*kinds.values()})
        place = {kind: i % len(COLORS) for i, kind in enumerate(listed)}
        self._color = {name: COLORS[place[kind]] for name, kind in kinds.items()}

    def save(self, path: Any) -> None:
        """Write an HTML page to a file, which needs nothing from outside."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_html())

    def to_html(self) -> str:
        """Return a whole HTML page, for light and dark screens."""
        return page(self._repr_html_(), "Tokens" if self._of_tokens else "Spans")

    def _repr_html_(self) -> str:
        """Return the sequences, a legend and what is left out."""
        rows = [row for line in self.lines for row in self._rows(line)]
        left = f'<div class="dim">{escape(self._left_out())}</div>' if self._left_out() else ""
        return _STYLE + framed(self._legend(), *rows, left)

    def __str__(self) -> str:
        lines = [text for line in self.lines for text in self._text_rows(line)]
        return "\n".join([*lines, self._left_out()] if self._left_out() else lines)

    __repr__ = __str__

    def _left_out(self) -> str:
        if not self.n_left_out:
            return "" if self.n_left_out == 0 else "More sequences are left out."
        return f"{self.n_left_out:,} more sequences are left out."

    def _legend(self) -> str:
        """Return the labels in their colors, and how many are wrong."""
        marks = [mark for line in self.lines for mark in line.predicted or line.true or ()]
        cells = []
        for name in [*self._color]:
            count = sum(mark.label == name for mark in marks)
            cells.append(
                f'<span class="span" style="background:rgba({self._color[name]},.35)">'
                f"{escape(short(name, 30))} {count:,}</span>"
            )
        shown = "".join(cells[:60]) + (" …" if len(cells) > 60 else "")
        return f'<div class="legend">{shown} {escape(self._counts())}</div>'

    def _counts(self) -> str:
        """Return how many predictions are right, where the truth is known."""
        both = [line for line in self.lines if line.true is not None and line.predicted is not None]
        if not both:
            return ""
        wrong = sum(mark.is_wrong for line in both for mark in line.predicted or ())
        total = sum(len(line.predicted or ()) for line in both)
        missed = sum(mark.is_wrong for line in both for mark in line.true or ())
        if self._of_tokens:
            return f"{total - wrong:,} of {total:,} tokens are right; others are outlined."
        return (
            f"{total - wrong:,} of {total:,} predicted spans are right, {missed:,} true ones are "
            "missed: both are outlined."
        )

    def _rows(self, line: Line) -> list[str]:
        """Return a sequence as HTML: twice where truth and prediction are not the same."""
        if self._of_tokens:
            return [self._row(str(line.number), self._token_html(line))]
        shown = line.predicted if line.predicted is not None else line.true
        if line.predicted is None or line.true is None or line.is_right:
            check = " ✓" if line.true is not None and line.predicted is not None else ""
            return [self._row(f"{line.number}{check}", self._span_html(line.tokens, shown or []))]
        return [
            self._row(f"{line.number} predicted", self._span_html(line.tokens, shown or [])),
            self._row("true", self._span_html(line.tokens, line.true)),
        ]

    @staticmethod
    def _row(head: str, body: str) -> str:
        return f'<div class="line"><div class="no">{head}</div><div class="text">{body}</div></div>'

    def _span_html(self, tokens: list[str], marks: list[Marked]) -> str:
        """Return tokens as HTML, spans in the colors of their labels; inner ones within others."""
        opening: dict[int, list[Marked]] = {}
        for mark in sorted(marks, key=lambda mark: (mark.start, -mark.stop)):
            opening.setdefault(mark.start, []).append(mark)
        parts, open_marks = [], list[Marked]()
        for t, token in enumerate(tokens[:_TOKENS]):
            for mark in opening.get(t, ()):
                parts.append(f'<span class="span{" wrong" * mark.is_wrong}" {self._tint(mark)}>')
                open_marks.append(mark)
            parts.append(escape(token))
            while open_marks and open_marks[-1].stop <= t + 1:
                parts.append(f"<small>{_named(open_marks.pop())}</small></span>")
            parts.append(" ")
        parts += ["</span>"] * len(open_marks)
        return "".join(parts) + ("…" if len(tokens) > _TOKENS else "")

    def _token_html(self, line: Line) -> str:
        """Return tokens above their labels as HTML; below a wrong one, the true label."""
        true = {mark.start: mark for mark in line.true or ()}
        cells = []
        for mark in (line.predicted if line.predicted is not None else line.true or [])[:_TOKENS]:
            right = true.get(mark.start)
            below = ""
            if mark.is_wrong and right is not None:
                below = f"<small>true: {escape(short(right.label, 30))}</small>"
            cells.append(
                f'<span class="tok{" wrong" * mark.is_wrong}" {self._tint(mark)}>'
                f"<span>{escape(line.tokens[mark.start])}</span>"
                f"<small>{'' if _goes_without_saying(mark) else _named(mark)}</small>"
                f"{below}</span>"
            )
        return "".join(cells) + ("…" if len(line.tokens) > _TOKENS else "")

    def _tint(self, mark: Marked) -> str:
        """Return the style of a label's color, the paler the less sure the model is."""
        if mark.label not in self._color:
            return ""
        sure = 1.0 if mark.probability is None else min(max(mark.probability, 0.0), 1.0)
        color = self._color[mark.label]
        return (
            f'style="background:rgba({color},{0.1 + 0.3 * sure:.2f});'
            f'box-shadow:inset 0 -2px rgb({color})"'
        )

    def _text_rows(self, line: Line) -> list[str]:
        """Return a sequence as lines of text."""
        rows = [("", line.predicted), ("true: ", line.true)]
        if line.is_right or line.predicted is None:
            rows = [("", line.predicted if line.predicted is not None else line.true)]
        write = _tokens_as_text if self._of_tokens else _spans_as_text
        width = len(str(self.lines[-1].number))
        return [
            f"{line.number if not i else '':>{width}}  {head}{write(line.tokens, marks or [])}"
            for i, (head, marks) in enumerate(rows)
        ]


def show_spans(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    tokens: Any = None,
    n: int = 20,
    confidence: bool = True,
    constraints: Any = None,
) -> ShownSequences:
    """Show the spans of sequences in color: predicted ones, true ones, and errors.

    Parameters
    ----------
    model : estimator or None
        A fitted model, as of :func:`crfkit.inspection.weights`; None shows `y` alone.
    X : iterable of sequences, optional
        As for `predict`, or a data frame for a model of frames; not needed without a model where
        `tokens` are given.
    y : iterable of sequences of labels, or of lists of (start, stop, label), optional
        The true labels, as of a fit. Where they differ from what is predicted, both are shown, and
        what is wrong is outlined.
    tokens : iterable of sequences of str, optional
        How tokens are shown; by default the words that are found in `X`.
    n : int, default=20
        How many sequences, at most; only these are labeled.
    confidence : bool, default=True
        Whether to show the probability of each predicted span, where the model has one: the paler
        a span, the less sure the model is.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`.

    Returns
    -------
    ShownSequences
        In a notebook it is shown; ``print`` writes text, ``save(path)`` an HTML page.

    Examples
    --------
    >>> from crfkit.inspection import show_spans
    >>> print(show_spans(None, [["Ada", "Lovelace", "wrote"]], [["B-PER", "I-PER", "O"]]))
    0  [Ada Lovelace | PER] wrote
    """
    return _shown(model, X, y, tokens, n, (confidence, constraints), of_tokens=False)


def show_tokens(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    tokens: Any = None,
    n: int = 20,
    confidence: bool = True,
    constraints: Any = None,
) -> ShownSequences:
    """Show the labels of tokens in color: predicted ones, true ones, and errors.

    Parameters
    ----------
    model, X, y, tokens, n, confidence, constraints
        As for :func:`show_spans`; `y` are labels of tokens.

    Returns
    -------
    ShownSequences

    Examples
    --------
    >>> from crfkit.inspection import show_tokens
    >>> print(show_tokens(None, [["the", "dog"]], [["DET", "NOUN"]]))
    0  the/DET dog/NOUN
    """
    return _shown(model, X, y, tokens, n, (confidence, constraints), of_tokens=True)


def _shown(
    model: Any, X: Any, y: Any, tokens: Any, n: int, asked: tuple[bool, Any], *, of_tokens: bool
) -> ShownSequences:
    """Return the first sequences with what is predicted and what is true."""
    check_whole("n", n, 1)
    if model is None and y is None:
        raise ValueError("there is nothing to show: give a model, or y.")
    if X is None and (model is not None or tokens is None):
        raise ValueError("X is missing: the sequences to show.")
    found = None if model is None else opened(model)
    given = X if X is not None else tokens
    if found is not None:
        given = found.sequences(given)
    first, left = first_sequences(given, n)
    words = shown_texts(first, found) if tokens is None else given_texts(tokens, first, found)
    lengths = list(map(len, words))
    true = None if y is None else true_rows(y, lengths, n)
    if of_tokens:
        rows = rows_of_tokens(found, first, true, *asked)
    else:
        rows = rows_of_spans(found, first, true, *asked)
    lines = [Line(i, own, *pair) for i, (own, pair) in enumerate(zip(words, rows, strict=True))]
    known = () if found is None else found.model.classes_.tolist()
    return ShownSequences(lines, left, of_tokens, known)


def _kinds(labels: list[Any]) -> dict[Any, str]:
    """Return what has a color of its own for each label: the type, where all are tags."""
    tags = all(map(looks_like_tag, labels))
    return {label: str(label)[2:] if tags else str(label) for label in labels}


def _said(label: Any) -> str:
    return "?" if label is UNLABELED else str(label)


def _marks(line: Line) -> list[Marked]:
    return [*(line.predicted or ()), *(line.true or ())]


def _goes_without_saying(mark: Marked) -> bool:
    """Whether a token is outside, as the model is sure and nothing contradicts."""
    sure = mark.probability is None or mark.probability >= _SURE
    return mark.label == OUTSIDE_LABEL and sure and not mark.is_wrong


def _named(mark: Marked) -> str:
    """Return a label and its probability as HTML."""
    chance = "" if mark.probability is None else f" {mark.probability:.2f}"
    return f"{escape(short(_said(mark.label), 30))}{chance}{' ✗' if mark.is_wrong else ''}"


def _spans_as_text(tokens: list[str], marks: list[Marked]) -> str:
    """Return tokens with spans in brackets."""
    words = list(tokens)
    for mark in sorted(marks, key=lambda mark: (mark.stop - mark.start, mark.start)):
        chance = "" if mark.probability is None else f" {mark.probability:.2f}"
        words[mark.start] = f"[{words[mark.start]}"
        end = f"{words[mark.stop - 1]} | {mark.label}{chance}{' ✗' * mark.is_wrong}]"
        words[mark.stop - 1] = end
    return " ".join(words[:_TOKENS])


def _tokens_as_text(tokens: list[str], marks: list[Marked]) -> str:
    """Return tokens with their labels behind them."""
    words = [
        f"{token}/{_said(mark.label)}{'✗' * mark.is_wrong}"
        for token, mark in zip(tokens, marks, strict=True)
    ]
    return " ".join(words[:_TOKENS])
