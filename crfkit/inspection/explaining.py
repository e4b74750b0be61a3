"""Why this labeling rather than that one: what its score is made of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from crfkit._params import check_whole
from crfkit._types import BoolArray, CodeArray, FloatArray, Potentials
from crfkit.data import PackedSequences
from crfkit.data.names import name_array
from crfkit.estimators._labelings import labels_of_codes
from crfkit.inference.base import marginals, plain_codes
from crfkit.inspection.explanation import Compared, Explanation
from crfkit.inspection.linear_views import LinearView, linear_view
from crfkit.inspection.models import opened
from crfkit.inspection.scored import Term, row_of
from crfkit.inspection.tokens import token_texts
from crfkit.labels.segmentation import allowed_codes
from crfkit.potentials.blocks import NAMES_OF, TOKENS
from crfkit.structures import NoPathError, Structure
from crfkit.structures.base import Capability

_TOGETHER = 256  # copies of a sequence that are labeled at once


def explain(
    model: Any,
    x: Any,
    position: int | None = None,
    *,
    label: Hashable = None,
    labels: Any = None,
    other: Any = None,
    constraints: Any = None,
    tokens: Sequence[Any] | None = None,
) -> Explanation:
    """Explain why a model gives a sequence these labels rather than others.

    The score of a labeling is a sum: values of attributes times their weights, and weights of
    transitions. The difference of the scores of two labelings is that of their log-probabilities,
    and a sum of what one has and the other has not. So nothing here is an approximation.

    Parameters
    ----------
    model : estimator
        A fitted model of chains, segments, trees or graphs, a MEMM, a model with a kernel, or a
        hidden Markov model whose emissions are sums over attributes; or what :func:`weights` takes
        beside.
    x : sequence
        One sequence, in the form of those that the model predicts; of packed ones, ``X[[s]]``; for
        a model of data frames, the rows of one.
    position : int, optional
        Compare with the best labeling that has another label at this token; from the end, if below
        0. By default with the second best labeling, or with `other`.
    label : label, optional
        With `position`: which other label.
    labels : sequence of labels, or list of (start, stop, label), optional
        What is to be explained, in place of the labels that are predicted.
    other : sequence of labels, or list of (start, stop, label), optional
        What to compare with, in place of the best other labeling.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`: both labelings keep to them.
    tokens : sequence, optional
        How tokens are shown; by default by what is found in `x`.

    Returns
    -------
    Explanation
        In a notebook a table; ``print`` shows a text, ``to_frame()`` gives a data frame.

    Raises
    ------
    ValueError
        If there is no other labeling; if `position`, `label`, `labels` or `other` do not fit the
        sequence and the model; if the scores of a model are no sums of weights that have names.
    TypeError
        If `model` is no model of crfkit, or `x` no sequence that it can read.

    References
    ----------
    Sutton and McCallum (2012), "An introduction to conditional random fields", section 2.3.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.inspection import explain
    >>> X = [[{"w": "the"}, {"w": "dog"}], [{"w": "the"}, {"w": "barks"}]] * 3
    >>> model = CRFClassifier().fit(X, [["DET", "NOUN"], ["DET", "VERB"]] * 3)
    >>> why = explain(model, X[0], position=1)
    >>> why.labels, why.other
    (['DET', 'NOUN'], ['DET', 'VERB'])
    >>> round(sum(term.contribution for term in why.terms) - why.difference, 9)
    0.0
    """
    inner = opened(model)
    if isinstance(x, PackedSequences):
        X: Any = x
    else:
        X = inner.sequences(x) if inner.takes_frame(x) else [x]
    try:
        view = linear_view(inner.model, inner.transform(X))
    except (TypeError, ValueError) as error:
        error.add_note("explain takes one sequence, such as X[0], not a list of them.")
        raise
    question, data = _Question(view, constraints), view.data
    codes = question.chosen() if labels is None else question.given(labels, "labels")
    if other is not None:
        if position is not None or label is not None:
            raise ValueError("give either other, a whole labeling, or position (and label).")
        others = question.given(other, "other")
    elif position is not None:
        place = _place(position, data.n_tokens)
        others, position = question.best_without(codes, place, label), place
    elif label is not None:
        raise ValueError(f"label={label!r:.60} needs a position.")
    else:
        others = question.next_best(codes)
    shown = X[0] if isinstance(X, list) else x
    texts = token_texts(shown, data, view.model) if tokens is None else list(map(str, tokens))
    if len(texts) != data.n_tokens:
        raise ValueError(f"tokens has {len(texts)} items, but x has {data.n_tokens} tokens.")
    return Explanation(question, Compared(codes, others, position), texts)


def _place(position: Any, length: int) -> int:
    check_whole("position", position, None)
    if not -length <= position < length:
        raise ValueError(f"position={position} is outside of the sequence, of {length} tokens.")
    return int(position) % length


class _Question:
    """A model and one sequence: labelings that are compared, and what their scores are made of."""

    def __init__(self, view: LinearView, constraints: Any) -> None:
        self.estimator, self.data, self.scored, self.is_whole = view
        self.constraints, self.classes = constraints, self.scored.labels
        self.is_hidden = "start_probabilities_" in vars(self.estimator)  # of order 2
        self.is_ordered = self.data.topology is None

    def _ask(self, question: Any) -> Any:
        return self.estimator._ask(self.data, question, constraints=self.constraints)[0]

    def chosen(self) -> CodeArray:
        """Return the codes that are predicted."""
        return plain_codes(self.estimator._codes(self.data, self.constraints))

    def best(self, allowed: BoolArray) -> CodeArray:
        """Return the codes of the best labeling of those that are allowed, (T, C)."""

        def search(structure: Structure, potentials: Potentials) -> CodeArray:
            return structure.argmax(potentials.clamp(allowed))[0]

        found: CodeArray = self._ask(search)
        return found

    def given(self, labels: Any, name: str) -> CodeArray:
        """Return the codes of a labeling that the user gives, the best ones where it is open."""
        space, offsets = self.estimator._fitted_labels(), self.data.offsets
        codes: CodeArray
        codes, possible, allowed = space.codes(self.estimator, [labels], offsets)
        if not possible.all():
            t = int(np.argmin(possible))
            raise ValueError(
                f"{name}, position {t}: the model cannot have this label there; its labels are "
                f"{', '.join(map(str, self.classes[:20]))}."
            )
        if space.of_segments:
            allowed = allowed_codes(codes, len(self.classes))
        if allowed is None:
            return codes
        try:
            return self.best(allowed)
        except NoPathError as error:
            raise ValueError(f"{name} is no labeling that the model allows.") from error

    def best_without(self, codes: CodeArray, t: int, label: Hashable) -> CodeArray:
        """Return the best labeling with another label at token t."""
        size, here = len(self.classes), int(codes[t]) % len(self.classes)
        n_codes = 2 * size if self.scored.of_segments else size
        allowed = np.ones((self.data.n_tokens, n_codes), bool)
        if label is None:
            chosen = [k for k in range(size) if k != here]
        elif label not in self.classes:
            known = ", ".join(map(str, self.classes[:20]))
            raise ValueError(f"label={label!r:.60} is none of the model, which has {known}.")
        elif label == self.classes[here]:
            raise ValueError(f"label={label!r:.60} is the label that is explained: give another.")
        else:
            chosen = [self.classes.index(label)]
        allowed[t] = np.isin(np.arange(n_codes) % size, chosen)
        try:
            return self.best(allowed)
        except ValueError as error:
            raise ValueError(f"no labeling has another label at position {t}: {error}") from error

    def next_best(self, codes: CodeArray) -> CodeArray:
        """Return the best labeling that is another one."""

        def search(structure: Structure, potentials: Potentials) -> list[CodeArray] | None:
            if Capability.K_BEST not in structure.capabilities:
                return None
            found = structure.k_best(potentials, 2)
            return np.split(found.codes, found.offsets(potentials.offsets)[1:-1])

        found: list[CodeArray] | None = self._ask(search)
        if found is None:
            raise ValueError("this model lists no second best labeling: give a position, or other.")
        for one in found:
            if not np.array_equal(one, codes):
                return one
        raise ValueError("there is no other labeling of this sequence to compare with.")

    def scores(self, *labelings: CodeArray) -> tuple[list[float], float | None, Any]:
        """Return the scores of labelings, log Z and the marginals, (T, K), where there are any."""
        has_probabilities = self.estimator.has_probabilities

        def ask(structure: Structure, potentials: Potentials) -> Any:
            scores = [float(structure.score(potentials, codes)[0]) for codes in labelings]
            if not has_probabilities:
                return scores, None, None
            probability, log_z = marginals(structure, potentials)
            return scores, float(log_z[0]), probability

        found: tuple[list[float], float | None, Any] = self._ask(ask)
        scores, log_z, probability = found
        shared = self._shared() if self.is_hidden else 0.0
        log_z = None if log_z is None else log_z - shared
        return [score - shared for score in scores], log_z, probability

    def _shared(self) -> float:
        """Return what the scores of all labelings have beside their terms."""
        codes = self.chosen()
        score = self._ask(lambda structure, given: float(structure.score(given, codes)[0]))
        return float(score - sum(term.contribution for term in self.terms(codes)))

    def terms(self, codes: CodeArray, others: CodeArray | None = None) -> list[Term]:
        """Return what the score of a labeling is made of, less that of another one, if given."""
        found = self.scored.difference(codes, others)
        if not self.is_whole:
            every = np.ones(len(codes), bool)
            differ = every if others is None else codes != others
            found += self._normalizers(codes, differ, 1.0)
            found += [] if others is None else self._normalizers(others, differ, -1.0)
        return found

    def _normalizers(self, codes: CodeArray, chosen: BoolArray, sign: float) -> list[Term]:
        """Return what a model that is normalized at each token adds to the scores of labels."""

        def ask(structure: Structure, potentials: Potentials) -> FloatArray:
            unary: FloatArray = potentials.unary[np.arange(len(codes)), codes]
            return unary

        added = self._ask(ask).copy()
        for part in self.scored.parts(codes):
            if part.from_label < 0:
                added[part.position] -= sum(t.contribution for t in self.scored.terms(part, 1.0))
        found = [(t, float(added[t])) for t in np.flatnonzero(chosen).tolist()]
        return [
            Term(t, -1, "normalization", None, None, self.classes[codes[t]], 1.0, w, sign * w)
            for t, w in found
        ]

    def labels_of(self, codes: CodeArray) -> list[Any]:
        """Return the labels that codes stand for."""
        found: list[Any] = labels_of_codes(self.estimator, codes, self.data.offsets)[0]
        return found

    def proba_without(self, chosen: range, token: int) -> tuple[list[tuple[int, Any]], FloatArray]:
        """Return the (token, attribute) pairs of some tokens, and P(y_token), (n, K), without each.

        ValueError of a model without probabilities.
        """
        if not self.estimator.has_probabilities:
            name = type(self.estimator).__name__
            raise ValueError(f"{name} has no probabilities: use CRFClassifier for without().")
        scored = self.scored
        pairs = [(t, a) for t in chosen for a in row_of(scored.data, t)[0].tolist()]
        names = scored.fitted.get(NAMES_OF[TOKENS])
        named = [(t, a if names is None else name_array(names)[a]) for t, a in pairs]
        if self.is_hidden:
            return named, self._proba_less(pairs, token)
        found = probabilities_without(self.estimator, self.data, pairs, token, self.constraints)
        return named, found

    def _proba_less(self, pairs: list[tuple[int, int]], token: int) -> FloatArray:
        """Return P(y_token), (n, K), each without what one attribute of one token adds to scores.

        A hidden Markov model of order 2 reads tokens, not the attributes that it is a sum of. What
        it forbids stays so.
        """
        coef = sp.csr_array(self.scored.fitted["coef_"])

        def ask(structure: Structure, potentials: Any) -> list[FloatArray]:
            found = []
            for t, a in pairs:
                columns, values = row_of(self.scored.data, t)
                unary, added = potentials.unary.copy(), coef[[a]].toarray()[0]
                unary[t] -= values[columns == a].sum() * np.where(np.isfinite(added), added, 0.0)
                found.append(marginals(structure, potentials._replace(unary=unary))[0][token])
            return found

        return np.array(self._ask(ask)).reshape(len(pairs), len(self.classes))


def probabilities_without(
    estimator: Any,
    data: PackedSequences,
    entries: Sequence[tuple[int, int]],
    token: int,
    constraints: Any,
) -> FloatArray:
    """Return marginals at a token, (n, K), each with one attribute of one token left out."""
    found: list[FloatArray] = []
    for first in range(0, len(entries), _TOGETHER):
        changed = _left_out(data, entries[first : first + _TOGETHER])
        proba = estimator.predict_proba(changed, constraints=constraints)
        found += [rows[token] for rows in proba]
    return np.array(found).reshape(len(entries), len(estimator.classes_))


def _left_out(data: PackedSequences, entries: Sequence[tuple[int, int]]) -> PackedSequences:
    """Return copies of a sequence; in each, one attribute of one token is missing."""
    copies = data[np.zeros(len(entries), np.int64)]
    kept = np.ones(len(copies.indices), bool)
    dense = None if copies.dense is None else copies.dense.copy()
    for c, (t, attribute) in enumerate(entries):
        row = c * data.n_tokens + t
        if attribute >= data.n_sparse and dense is not None:
            dense[row, attribute - data.n_sparse] = 0.0
        begin, end = copies.indptr[row : row + 2]
        kept[begin:end] &= copies.indices[begin:end] != attribute
    indptr = np.concatenate([[0], np.cumsum(kept)])[copies.indptr]
    arrays = {
        "indices": copies.indices[kept], "indptr": indptr.astype(copies.indptr.dtype),
        "values": None if copies.values is None else copies.values[kept], "dense": dense,
    }  # fmt: skip
    changed: PackedSequences = copies._from_arrays(**(copies.__dict__ | arrays))
    return changed
