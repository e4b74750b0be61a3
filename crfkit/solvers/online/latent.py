"""Labels that are known in part: the best labeling that is allowed stands for the true one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.dispatch import interpreted
from crfkit.compiler.jit import frozen
from crfkit.data.targets import Targets
from crfkit.kernels.oracle import FOUND, Examples
from crfkit.kernels.solvers.latent import best_labeling
from crfkit.oracles import Oracle


class Clamps:
    """In place of a cost: what forbids labels, given which set of labels each token may have.

    `sets`, shape (G, C), tell which codes the tokens of each of G kinds may have.
    """

    def __init__(self, targets: Targets, n_codes: int) -> None:
        self.sets, self.kinds = targets.sets(n_codes)

    def added(self, kinds: CodeArray) -> FloatArray:
        """Return what to add to unary scores, (n, C), given the kinds of tokens."""
        return np.where(self.sets[kinds], 0.0, -np.inf)

    def total(self, kinds: CodeArray, codes: CodeArray, offsets: IntArray) -> FloatArray:
        """Return that what is allowed costs nothing, (S,)."""
        return np.zeros(len(offsets) - 1)


class LatentLabels:
    """Labels of which those that are not known are found when they are needed.

    Given what is known, the labels, (N,), as kernels number them, which are written to, what is
    learned from them, and the problem, in the form of an oracle or without one.
    """

    def __init__(
        self, targets: Targets, n_codes: int, labels: CodeArray, examples: Examples, problem: Any,
        workspace: Any, oracle: Oracle | None,
    ) -> None:  # fmt: skip
        several = np.concatenate([[0], np.cumsum(~targets.single)])[problem.offsets]
        self._is_open = (np.diff(several) > 0) & (examples.weight > 0.0)
        clamps = Clamps(targets, n_codes)
        self._labels, self._workspace = labels, workspace
        if oracle is None:
            self._search: Any = interpreted(best_labeling)
            self._problem = replace(problem, cost=clamps, search=None, labels=clamps.kinds)
            cost = np.zeros((0, 0))
        else:
            self._search, self._problem = best_labeling, problem
            cost = oracle.wide_cost(clamps.added(np.arange(len(clamps.sets), dtype=np.int32)))
        self._examples = Examples(examples.weight, frozen(clamps.kinds[None]), frozen(cost))

    def runs(self, order: IntArray) -> Iterator[IntArray]:
        """Cut sequences into runs whose labels are known, and single ones where they are not."""
        open_ = self._is_open[order]
        yield from np.split(order, np.flatnonzero(open_[1:] | open_[:-1]) + 1)

    def find(self, run: IntArray) -> int:
        """Let labels that are not known be the best that are allowed at the present weights.

        Returns what came of the search: `FOUND`, or why not.
        """
        if not self._is_open[run].any():
            return FOUND
        s = int(run[0])
        begin, end = self._problem.offsets[s : s + 2].tolist()
        status: int = self._search(self._problem, s, self._examples, self._workspace)
        self._labels[begin:end] = self._workspace.path[: end - begin]
        return status
