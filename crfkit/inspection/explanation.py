"""What an explanation holds, and how it is shown."""

from __future__ import annotations

import math
from html import escape
from typing import Any, NamedTuple, Protocol

import numpy as np

from crfkit._params import check_option, check_whole
from crfkit._types import CodeArray, FloatArray
from crfkit.inspection.markup import (
    BLUE,
    ORANGE,
    bar,
    code,
    frame_of,
    framed,
    number,
    page,
    short,
    table,
    text_table,
)
from crfkit.inspection.scored import Term

_SHOWN = 20  # rows of a table in a notebook
_TOKENS = 60  # tokens of a sequence that are shown there
_OF = ("difference", "labels", "other")


class Compared(NamedTuple):
    """Two labelings, as codes of tokens, (T,), and the token that they were to differ at."""

    codes: CodeArray
    others: CodeArray
    position: int | None


class Asked(Protocol):
    """What is asked about a model and a sequence."""

    classes: list[Any]
    is_ordered: bool  # whether transitions follow the sequence

    def scores(self, *labelings: CodeArray) -> tuple[list[float], float | None, Any]:
        """Return the scores of labelings, log Z and the marginals, (T, K), where there are any."""

    def terms(self, codes: CodeArray, others: CodeArray | None = None) -> list[Term]:
        """Return what the score of a labeling is made of, less that of another one, if given."""

    def labels_of(self, codes: CodeArray) -> list[Any]:
        """Return the labels that codes stand for."""

    def proba_without(self, chosen: range, token: int) -> tuple[list[tuple[int, Any]], FloatArray]:
        """Return (token, attribute) pairs, and P(y_token), (n, K), without each."""


class Reason(NamedTuple):
    """What an attribute, or a transition, adds to the difference of two scores."""

    position: int
    token: str  # of transitions in trees and graphs, both ends: "a – b"
    kind: str
    attribute: Any
    value: float
    mine: str  # the labels of this labeling that it counts for, and their weights
    theirs: str  # those of the other one
    contribution: float


class Without(NamedTuple):
    """How probable a label is without one attribute of one token."""

    position: int
    token: str
    attribute: Any
    probability: float
    change: float  # by how much the probability is less with the attribute left out


class Explanation:
    """Why one labeling of a sequence has a larger score than another; see :func:`explain`.

    Attributes
    ----------
    tokens : list of str
        The tokens, as they are shown.
    labels, other : list of T labels
        The labeling that is explained, and the one it is compared with.
    position : int or None
        The token at which the other one was to have another label.
    score, other_score : float
        Their scores.
    difference : float
        That of the scores, and so of the log-probabilities.
    log_proba, other_log_proba : float
        Logarithms of their probabilities; of models of segments, those of the segmentations. NaN
        without probabilities.
    probabilities : ndarray of shape (T, K) or None
        Marginal probabilities of the labels `classes` of each token.
    classes : list of K labels
    terms : list of Term
        What the difference is the sum of, the largest first: values of attributes times weights,
        and weights of transitions. Those of the other labeling count as less.
    """

    def __init__(self, asked: Asked, compared: Compared, tokens: list[str]) -> None:
        self._asked, self._compared = asked, compared
        self.tokens, self.position, self.classes = tokens, compared.position, asked.classes
        codes, others, _ = compared
        self.labels, self.other = asked.labels_of(codes), asked.labels_of(others)
        scores, log_z, self.probabilities = asked.scores(codes, others)
        self.score, self.other_score = scores
        for name, score in (("labels", self.score), ("other", self.other_score)):
            if score == -math.inf:
                raise ValueError(f"{name}: the model forbids this labeling.")
        self.difference = self.score - self.other_score
        base = math.nan if log_z is None else log_z
        self.log_proba, self.other_log_proba = self.score - base, self.other_score - base
        found = asked.terms(codes, others)
        self.terms = sorted(found, key=lambda term: -abs(term.contribution))

    def to_frame(self, of: str = "difference") -> Any:
        """Return the terms as a pandas DataFrame.

        Parameters
        ----------
        of : {"difference", "labels", "other"}, default="difference"
            What the terms add up to: the difference of the scores, or one of the two scores, with
            all that the labelings have in common.

        Returns
        -------
        pandas.DataFrame
            The fields of `Term`, and the token behind its position.

        Raises
        ------
        ImportError
            Without pandas.
        """
        check_option("of", of, _OF)
        codes, others, _ = self._compared
        terms = self.terms
        if of != "difference":
            terms = self._asked.terms(codes if of == "labels" else others)
        frame = frame_of(terms, Term._fields)
        frame.insert(1, "token", [self.tokens[term.position] for term in terms])
        return frame

    def reasons(self, n: int | None = None) -> list[Reason]:
        """Return what each attribute of a token, or its transition, adds to the difference.

        Terms of the same attribute at the same token are added up; those that cancel, because both
        labelings have as much of them, are left out.

        Parameters
        ----------
        n : int, optional
            How many, the largest first; all by default.
        """
        if n is not None:
            check_whole("n", n, 0)
        found: dict[tuple[Any, ...], list[Term]] = {}
        for term in self.terms:
            place = (term.position, term.source, term.kind, term.attribute)
            found.setdefault(place, []).append(term)
        rows = [self._reason(terms) for terms in found.values()]
        rows = [row for row in rows if row.contribution != 0.0]
        rows.sort(key=lambda row: -abs(row.contribution))
        return rows if n is None else rows[:n]

    def by_token(self) -> FloatArray:
        """Return what each token adds to the difference, shape (T,): attributes and transitions.

        A transition counts at the token that it leads to.
        """
        found = np.zeros(len(self.tokens))
        for term in self.terms:
            found[term.position] += term.contribution
        return found

    def without(self, n: int = 10, *, window: int = 2) -> list[Without]:
        """Return how the probability of the label changes when one attribute is left out.

        The model is asked again, with one attribute of one token missing at a time: the
        probabilities are exact, and take all of the sequence into account.

        Parameters
        ----------
        n : int, default=10
            How many attributes, those of the largest change first.
        window : int, default=2
            Attributes of tokens so far from the position are tried.

        Returns
        -------
        list of Without

        Raises
        ------
        ValueError
            Without a position, or of a model without probabilities.
        """
        check_whole("n", n, 0)
        check_whole("window", window, 0)
        t = self._token()
        near = range(max(0, t - window), min(len(self.tokens), t + window + 1))
        named, proba = self._asked.proba_without(near, t)
        place = int(self._compared.codes[t]) % len(self.classes)
        now = float(self.probabilities[t, place])
        found = [
            Without(at, self.tokens[at], attribute, p, now - p)
            for (at, attribute), p in zip(named, proba[:, place].tolist(), strict=True)
        ]
        return sorted(found, key=lambda row: -abs(row.change))[:n]

    def _token(self) -> int:
        if self.position is None:
            raise ValueError("explain(model, x, position) says of which token: give a position.")
        return self.position

    def to_html(self) -> str:
        """Return a whole HTML page, which needs nothing from outside."""
        return page(self._repr_html_(), "Why these labels")

    def save(self, path: Any) -> None:
        """Write the page of `to_html` to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_html())

    def _reason(self, terms: list[Term]) -> Reason:
        first = terms[0]
        own = [t for t in terms if (t.contribution > 0.0) == (t.value * t.weight > 0.0)]
        theirs = [t for t in terms if t not in own]
        token = self.tokens[first.position]
        if first.source >= 0 and not self._asked.is_ordered:
            token = f"{self.tokens[first.source]} – {token}"
        return Reason(
            first.position, token, first.kind, first.attribute, first.value,
            _weights(own), _weights(theirs), sum(t.contribution for t in terms),
        )  # fmt: skip

    def _odds(self) -> str:
        """Return how much more, or less, probable the labeling is, in words."""
        size, lost = abs(self.difference), self.difference < 0.0
        if math.isnan(self.log_proba):
            return f"by a score that is {'smaller' if lost else 'larger'} by {size:.4g}"
        if size > 30.0:
            return f"by {'1 : ' * lost}exp({size:.4g}){' : 1' * (not lost)}"
        odds = f"{'1 : ' * lost}{math.exp(size):.4g}{' : 1' * (not lost)}"
        return f"by {odds} (the difference of the scores is {self.difference:+.4g})"

    def _question(self) -> list[tuple[str, str, str]]:
        """Return tokens at which the labelings differ, with both labels."""
        rows = zip(self.tokens, self.labels, self.other, strict=True)
        return [(token, str(a), str(b)) for token, a, b in rows if a != b]

    def _chances(self) -> str:
        """Return the marginal probabilities of both labels of the position; "" without one."""
        if self.position is None or self.probabilities is None:
            return ""
        size, t = len(self.classes), self.position
        pair = [int(codes[t]) % size for codes in self._compared[:2]]
        named = [f"P({self.classes[k]}) = {self.probabilities[t, k]:.4f}" for k in pair]
        return f"At token {t}, {', '.join(named)}."

    def __str__(self) -> str:
        said = [f"{token}: {mine}, not {theirs}" for token, mine, theirs in self._question()[:10]]
        found, rows = self.reasons(_SHOWN), [["adds", "token", "what", "for", "against"]]
        for row in found:
            name = row.kind if row.attribute is None else short(row.attribute)
            if row.attribute is not None and row.kind != "attribute":
                name = f"{name} ({row.kind})"
            if row.value != 1.0:
                name = f"{name} × {row.value:g}"
            rows.append([number(row.contribution), row.token, name, row.mine, row.theirs])
        more = len(self.reasons()) - len(found)
        told = [line for line in ("; ".join(said), self._odds(), self._chances()) if line]
        lines = [*told, "", text_table(rows, numbers=[0])]
        if more > 0:
            rest = self.difference - sum(row.contribution for row in found)
            lines.append(f"{number(rest)}  {more} more")
        lines.append(f"{number(self.difference)}  in all")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the two labelings, and a table of what makes the difference."""
        found = self.reasons(_SHOWN)
        most = max((abs(row.contribution) for row in found), default=0.0)
        rows = [
            [
                number(row.contribution), bar(row.contribution, most), code(row.token),
                _what(row), escape(row.mine), escape(row.theirs),
            ]
            for row in found
        ]  # fmt: skip
        more = len(self.reasons()) - len(found)
        if more > 0:
            rest = self.difference - sum(row.contribution for row in found)
            rows.append([number(rest), "", "", f'<span class="dim">{more:,} more</span>', "", ""])
        rows.append([f'<span class="t">{number(self.difference)}</span>', "", "", "in all", "", ""])
        head = ["adds", "", "token", "attribute or transition", "for", "against"]
        verb = "lose" if self.difference < 0.0 else "win"
        return framed(
            f"<div>{self._strip()}</div>",
            f'<div style="margin:.5em 0">These labels {verb} {escape(self._odds())}. '
            f"{escape(self._chances())}</div>",
            table(head, rows, numbers=[0]),
        )

    def _strip(self) -> str:
        """Return the tokens that are near what differs, with both labels, as HTML."""
        added = self.by_token()
        differ = [a != b for a, b in zip(self.labels, self.other, strict=True)]
        first = max(0, (differ.index(True) if True in differ else 0) - _TOKENS // 3)
        most = float(np.abs(added).max(initial=0.0))
        cells = ['<span class="dim">…</span>'] * (first > 0)
        for t in range(first, min(len(self.tokens), first + _TOKENS)):
            cells.append(self._token_cell(t, float(added[t]), most))
        if first + _TOKENS < len(self.tokens):
            cells.append('<span class="dim">…</span>')
        return f'<div class="row" style="gap:.15em .45em">{"".join(cells)}</div>'

    def _token_cell(self, t: int, added: float, most: float) -> str:
        """Return a token, the darker the more it adds, above its label, and the other one."""
        mine, theirs = escape(short(self.labels[t], 30)), ""
        if self.labels[t] != self.other[t]:
            mine = f'<span class="t">{mine}</span>'
            theirs = f'<s class="dim">{escape(short(self.other[t], 30))}</s>'
        share = 0.0 if most == 0.0 else 45.0 * abs(added) / most
        color = BLUE if added >= 0.0 else ORANGE
        style = f"background:color-mix(in srgb,{color} {share:.0f}%,transparent)"
        return (
            '<span style="display:inline-flex;flex-direction:column;align-items:center">'
            f'<span style="{style};border-radius:3px;padding:0 .3em" '
            f'title="adds {number(added)}">{escape(self.tokens[t])}</span>'
            f'<span style="font-size:11px">{mine}</span>'
            f'<span style="font-size:11px">{theirs}</span></span>'
        )


def _weights(terms: list[Term]) -> str:
    """Return labels and their weights in words."""
    found = []
    for term in terms[:3]:
        before = "" if term.from_label is None else f"{short(term.from_label, 30)} → "
        found.append(f"{before}{short(term.label, 30)} {number(term.weight)}")
    return ", ".join([*found, "…"] if len(terms) > 3 else found)


def _what(row: Reason) -> str:
    """Return what a row is about, as HTML."""
    if row.attribute is None:
        return escape(row.kind)
    value = "" if row.value == 1.0 else f' <span class="dim">× {row.value:g}</span>'
    kind = "" if row.kind == "attribute" else f' <span class="dim">({escape(row.kind)})</span>'
    return f"{code(row.attribute)}{value}{kind}"
