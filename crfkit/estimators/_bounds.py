"""Best labels under rules, and whether they are proved to be."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import BoundedLabels, Potentials
from crfkit.constraints.search import METHODS, Found, best_with_bounds
from crfkit.structures import Structure


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
    if "vote_changes_" in vars(self):
        raise ValueError(
            "averaging='vote' has no scores of labels: use averaging='average', or predict."
        )
    data = self._pack(X)

    def search(structure: Structure, potentials: Potentials) -> Found:
        return best_with_bounds(structure, potentials)

    found = self._ask(data, search, constraints=constraints)
    codes = np.concatenate([np.zeros(0, np.int32), *(each.codes for each in found)])
    labels = self._fitted_labels().coding(self).write(codes, self.classes_, data.offsets)
    parts = [
        zip(
            each.value.tolist(), each.bound.tolist(), each.method.tolist(),
            each.is_optimal.tolist(), strict=True,
        )
        for each in found
    ]  # fmt: skip
    numbers = [row for part in parts for row in part]
    return [
        BoundedLabels(list(row), score, bound, METHODS[method], proved)
        for row, (score, bound, method, proved) in zip(labels, numbers, strict=True)
    ]
