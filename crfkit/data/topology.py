"""Which tokens have a transition between them, where they do not follow one another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from crfkit._types import IntArray, taken_rows
from crfkit.data.labels import check_lengths
from crfkit.data.validation import token_place


class Topology(ABC):
    """Which tokens of S sequences have a transition between them, where it is not the next one.

    Rows of transitions are numbered through all sequences; those of a sequence stand together.
    Potentials of a row are those of the labels of the two tokens that it joins.
    """

    offsets: IntArray  # (S + 1,): sequence `s` is tokens `offsets[s]:offsets[s + 1]`
    # How messages name it: with an article, what has a row each, which model reads it.
    article: ClassVar[str] = "a "
    row: ClassVar[str] = "token"
    read_by: ClassVar[str] = ""

    @property
    @abstractmethod
    def transition_offsets(self) -> IntArray:
        """Where the rows of transitions of each sequence start, and the end, shape (S + 1,)."""

    @property
    @abstractmethod
    def ends(self) -> tuple[IntArray, IntArray]:
        """The source and the target of each row, by their places in all sequences, (E,) each.

        A source of -1: the row is of no transition.
        """

    @property
    @abstractmethod
    def before(self) -> IntArray:
        """The token before each, by its place in all sequences together; -1 for none, (N,).

        ValueError where tokens have no order.
        """

    @property
    @abstractmethod
    def first_tokens(self) -> IntArray:
        """The tokens that weights of first labels are for."""

    @property
    @abstractmethod
    def last_tokens(self) -> IntArray:
        """The tokens that weights of last labels are for."""

    @property
    @abstractmethod
    def arrays(self) -> tuple[IntArray, ...]:
        """What potentials hold of it."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """All arrays that it is made of."""

    @abstractmethod
    def take(self, sequences: IntArray) -> Self:
        """Return the topology of chosen sequences."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.parts)

    def check(self, offsets: IntArray) -> None:
        """Raise ValueError, naming the first sequence, if features have other sequences."""
        check_lengths(offsets, self.offsets, f"the {type(self).__name__.lower()}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology) or type(other) is not type(self):
            return NotImplemented
        ours, theirs = self.parts, other.parts
        return len(ours) == len(theirs) and all(map(np.array_equal, ours, theirs))

    __hash__ = None  # type: ignore[assignment]


class TokenOrder(Topology):
    """The order of the tokens of S sequences: each has at most one before it.

    A transition leads from there into each token, whose row it is. Weights of first labels are
    those of the tokens that none is before, weights of last labels those of the tokens that are
    before none.
    """

    @abstractmethod
    def with_arrays(self, arrays: tuple[IntArray, ...], offsets: IntArray) -> Self:
        """Return the order of other sequences, given their part of `arrays`, each (N,)."""

    @property
    def parts(self) -> tuple[IntArray, ...]:
        """What potentials hold, and where sequences start."""
        return (*self.arrays, self.offsets)

    @property
    def transition_offsets(self) -> IntArray:
        """Where sequences start: a row for each token."""
        return self.offsets

    @property
    def ends(self) -> tuple[IntArray, IntArray]:
        """The token before each token, and the token."""
        return self.before, np.arange(int(self.offsets[-1]))

    @property
    def first_tokens(self) -> IntArray:
        """The tokens that none is before."""
        return np.flatnonzero(self.before < 0)

    @property
    def last_tokens(self) -> IntArray:
        """The tokens that are before none."""
        is_last, before = np.ones(int(self.offsets[-1]), bool), self.before
        is_last[before[before >= 0]] = False
        return np.flatnonzero(is_last)

    def take(self, sequences: IntArray) -> Self:
        """Return the order of the tokens of chosen sequences."""
        offsets, tokens = taken_rows(self.offsets, sequences)
        return self.with_arrays(tuple(array[tokens] for array in self.arrays), offsets)


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
            f"X has {topology.article}{type(topology).__name__}, which {model} cannot use: "
            f"{topology.read_by}take X.with_topology(None), which leaves it out."
        )
