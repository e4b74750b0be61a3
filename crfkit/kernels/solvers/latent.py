"""The best labeling of a sequence whose labels are known in part."""

from __future__ import annotations

from typing import Any

from crfkit.compiler.jit import kernel
from crfkit.kernels.oracle import Examples, best, gather, refresh


@kernel
def best_labeling(problem: Any, s: int, examples: Examples, workspace: Any) -> int:
    """Find the labeling of the largest score plus cost of a sequence, at the present weights.

    Costs of ``-inf`` forbid labels. Returns what came of the search: `FOUND`, or why not.
    """
    refresh(problem, workspace)
    gather(problem, s, workspace)
    _, status = best(problem, s, examples, workspace)
    return status
