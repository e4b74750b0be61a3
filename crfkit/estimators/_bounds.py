"""Best labels under rules, and whether they are proved to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crfkit._types import BoundedLabels, Potentials
from crfkit.estimators._labelings import check_scored, labels_of_codes
from crfkit.structures import Structure

if TYPE_CHECKING:
    from crfkit.constraints.search import Found


def predict_with_bounds(self: Any, X: Any, *, constraints: Any = None) -> list[BoundedLabels]:
    """Return the labels of the largest score, and bounds of the scores of all others.

    Rules about whole sequences may be so many that the best labels are not found, or not proved to
    be the best ones, within the limits of `Constraints`.

    Parameters
    ----------
    X : iterable of sequences
        As for `predict`, also in what is raised.
    constraints : Constraints, rule, list of rules, str or None, default=None
        As for `predict`.

    Returns
    -------
    list of S BoundedLabels
        The labels, as `predict` gives them with ``decoding="viterbi"``; their score; a number that
        no labels which keep the rules have a larger score than; how they were found: by "viterbi"
        (they keep the rules by themselves), by the "product" of the automata of rules, by
        "relaxation" of groups of these, by an "integer program"; and whether they are proved to be
        the best ones.
    """
    from crfkit.constraints.search import METHODS, best_with_bounds  # takes its time to import

    check_scored(self, "predict_with_bounds")
    data = self._pack(X)

    def search(structure: Structure, potentials: Potentials) -> tuple[list[Any], Found]:
        found = best_with_bounds(structure, potentials)
        return labels_of_codes(self, found.codes, potentials.offsets), found

    return [
        BoundedLabels(*row)
        for labels, found in self._ask(data, search, constraints=constraints)
        for row in zip(
            labels,
            found.value.tolist(),
            found.bound.tolist(),
            [METHODS[number] for number in found.method.tolist()],
            found.is_optimal.tolist(),
            strict=True,
        )
    ]
