"""The order in which CRFsuite visits sequences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np

DEGREE, LAG = 31, 3
WARM_UP = 10 * DEGREE  # numbers that the generator throws away at first


def c_random(seed: int = 1) -> Iterator[int]:
    """Yield the numbers of the C library's ``rand`` on Linux, below 2**31.

    The additive feedback generator ``r[i] = r[i - 3] + r[i - 31] mod 2**32`` of Knuth (The Art of
    Computer Programming, volume 2, section 3.2.2), with the lowest bit left out. Seed 1 is that of
    a program that sets none, as CRFsuite.

    Parameters
    ----------
    seed : int
        Above 0.
    """
    state = [seed]
    while len(state) < DEGREE:
        state.append(16807 * state[-1] % (2**31 - 1))
    return islice(_feedback(state), WARM_UP, None)


def _feedback(state: list[int]) -> Iterator[int]:
    """Yield the numbers that follow; each replaces the one of 31 steps ago."""
    for step in count(LAG):
        at = step % DEGREE
        state[at] = (state[at] + state[at - LAG]) & 0xFFFFFFFF
        yield state[at] >> 1


class CRFsuiteOrder(np.random.RandomState):
    """A random state that shuffles as CRFsuite does: the same way from its making on."""

    def __init__(self) -> None:
        super().__init__(0)
        self._numbers = c_random()

    def shuffle(self, x: Any) -> None:
        """Exchange each entry, one after the other, with one chosen from all of them.

        Parameters
        ----------
        x : ndarray of shape (S,)
            Changed in place.
        """
        order, size = x.tolist(), len(x)
        for here, number in enumerate(islice(self._numbers, size)):
            there = number % size
            order[here], order[there] = order[there], order[here]
        x[:] = order
