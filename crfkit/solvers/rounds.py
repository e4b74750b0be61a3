"""What solvers share that move after each small batch of sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crfkit._params import check_number, check_whole
from crfkit._types import IntArray

# Tokens of a batch that is not given, at least: fewer take the time of the calls alone.
LEAST_TOKENS = 32


def check_sizes(solver: Any) -> None:
    """Raise if `max_iter`, `tol`, `batch_tokens` or `round_size` is out of range."""
    check_whole("max_iter", solver.max_iter, 0)
    check_whole("round_size", solver.round_size, 1)
    check_number("tol", solver.tol)
    if solver.batch_tokens is not None:
        check_whole("batch_tokens", solver.batch_tokens, 1)


def batch_size(solver: Any, objective: Any, count: int) -> int:
    """Return the tokens of a batch: those asked for, or what makes `count` batches."""
    if solver.batch_tokens is not None:
        return int(solver.batch_tokens)
    tokens: int = objective.data.n_tokens
    return max(LEAST_TOKENS, tokens // count)


def rounds(order: IntArray, size: int) -> Iterator[list[int]]:
    """Cut batches into rounds of `size`; one that comes twice in a round is taken once."""
    for first in range(0, len(order), size):
        yield list(dict.fromkeys(order[first : first + size].tolist()))
