"""Which token stands before which, where it is not the one before in the sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from crfkit._types import IntArray
from crfkit.data.labels import check_lengths
from crfkit.data.validation import token_place


class Topology(ABC):
    """The order of the tokens of S sequences: each has at most one before it.

    A transition leads from there into each token. Weights of first labels are those of the tokens
    that none is before, weights of last labels those of the tokens that are before none.
    """

    offsets: IntArray  # (S + 1,): sequence `s` is tokens `offsets[s]:offsets[s + 1]`

    @property
    @abstractmethod
    def before(self) -> IntArray:
        """The token before each, by its place in all sequences together; -1 for none, (N,)."""

    @property
    @abstractmethod
    def arrays(self) -> tuple[IntArray, ...]:
        """What potentials hold of it, each of shape (N,), the same for all parts of the data."""

    @abstractmethod
    def with_arrays(self, arrays: tuple[IntArray, ...], offsets: IntArray) -> Self:
        """Return the order of other sequences, given their part of `arrays`."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in (*self.arrays, self.offsets))

    @property
    def first_tokens(self) -> IntArray:
        """The tokens that weights of first labels are for."""
        return np.flatnonzero(self.before < 0)

    @property
    def last_tokens(self) -> IntArray:
        """The tokens that weights of last labels are for."""
        is_last, before = np.ones(int(self.offsets[-1]), bool), self.before
        is_last[before[before >= 0]] = False
        return np.flatnonzero(is_last)

    def check(self, offsets: IntArray) -> None:
        """Raise ValueError, naming the first sequence, if features have other sequences."""
        check_lengths(offsets, self.offsets, f"the {type(self).__name__.lower()}")

    def take(self, sequences: IntArray) -> Self:
        """Return the order of the tokens of chosen sequences."""
        begin, lengths = self.offsets[sequences], np.diff(self.offsets)[sequences]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        tokens = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], lengths)
        return self.with_arrays(tuple(array[tokens] for array in self.arrays), offsets)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology) or type(other) is not type(self):
            return NotImplemented
        pairs = zip((*self.arrays, self.offsets), (*other.arrays, other.offsets), strict=True)
        return all(np.array_equal(ours, theirs) for ours, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]


def tokens_before(offsets: IntArray) -> IntArray:
    """Return the token before each one in its sequence, (N,); -1 for the first."""
    before = np.arange(-1, int(offsets[-1]) - 1)
    starts = offsets[:-1]
    before[starts[starts < len(before)]] = -1
    return before


def order_from(before: IntArray, offsets: IntArray) -> IntArray:
    """Return the tokens, sequence by sequence, so that each comes after the one before it, (N,).

    By how many stand before each, in jumps of doubled length. ValueError if some stand in a circle.
    """
    n_tokens = len(before)
    jump = np.append(np.where(before < 0, n_tokens, before), n_tokens)  # the last one is above all
    depth = (jump < n_tokens).astype(np.int64)
    for _ in range(n_tokens.bit_length()):
        if jump.min() == n_tokens:
            break
        depth += depth[jump]
        jump = jump[jump]
    if jump.min() < n_tokens:
        raise ValueError(
            f"{token_place(offsets, int(np.argmax(jump < n_tokens)))}: its parents go round in a "
            "circle and never come to a root."
        )
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.lexsort((depth[:-1], sequence))


def check_no_topology(topology: Topology | None, model: str) -> None:
    """Raise ValueError if there is a topology, which a model, given by its name, cannot use."""
    if topology is not None:
        raise ValueError(
            f"X has a {type(topology).__name__}, which {model} cannot use: X.with_topology(None) "
            "leaves it out."
        )
