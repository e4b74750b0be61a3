"""Which label is predicted of some that score the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crfkit._types import CodeArray, FloatArray, IntArray, Potentials


class LabelOrder(NamedTuple):
    """Which of some labels that score the same is predicted while learning.

    The first one in the data, as in CRFsuite: so what is learned does not depend on what labels are
    called. Of segments, `order` and `rank` are those of their 2 K codes.
    """

    order: IntArray  # (K,) the labels in this order
    rank: IntArray  # (K,) the place of each

    @classmethod
    def by_appearance(
        cls, codes: CodeArray, n_labels: int, weight: FloatArray, n_codes: int | None = None
    ) -> LabelOrder:
        """Return the order in which labels first occur; those that do not come last.

        Tokens of weight 0, shape (N,), are left out. Of segments, whose codes are more than the
        labels, the order is that of the codes: in each of their parts, that of the labels.
        """
        labels = codes[weight > 0.0] % n_labels
        found, first = np.unique(labels, return_index=True)
        place = np.full(n_labels, len(labels))
        place[found] = first
        parts = np.arange(0, n_labels if n_codes is None else n_codes, n_labels)[:, None]
        order = np.ravel(np.argsort(place, kind="stable") + parts)
        return cls(order, np.argsort(order))

    @classmethod
    def by_code(cls, n_labels: int) -> LabelOrder:
        """Return the order of the codes."""
        return cls(np.arange(n_labels), np.arange(n_labels))

    def scores(self, scores: Potentials) -> Potentials:
        """Return scores of the labels in this order; as they are where few steps have one."""
        return scores.in_order(self.order[: scores.n_labels]) if scores.is_dense else scores

    def predict(self, search: Callable[[Potentials], CodeArray], scores: Potentials) -> CodeArray:
        """Return the labels that a search finds."""
        found = search(self.scores(scores))
        return self.order[found].astype(np.int32) if scores.is_dense else found
