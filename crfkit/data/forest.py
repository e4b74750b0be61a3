"""Rooted trees over the tokens of sequences."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import IntArray
from crfkit.compiler.jit import protect
from crfkit.data.segments import check_offsets
from crfkit.data.topology import TokenOrder, order_from
from crfkit.data.validation import token_place


class Forest(TokenOrder):
    """The parent of each token: one or several rooted trees a sequence, such as dependency trees.

    A transition leads from a parent into each child; first tokens are roots, last ones leaves.

    Parameters
    ----------
    parent : array of int, shape (N,)
        The position of each token's parent within its sequence; -1 for a root.
    offsets : array of int, shape (S + 1,)
        Where the sequences start, and the end.

    Attributes
    ----------
    parent : ndarray of shape (N,)
        As given.
    order : ndarray of shape (N,)
        The positions of each sequence in an order in which parents come before their children.

    Raises
    ------
    ValueError
        If a parent is no other token of the sequence, or the parents of a token never come to a
        root: the message names the sequence and the position.

    Examples
    --------
    >>> from crfkit.data import Forest
    >>> forest = Forest.from_lists([[1, None, 1], [None]])
    >>> forest.parent.tolist(), forest.order.tolist()
    ([1, -1, 1, -1], [1, 0, 2, 0])
    """

    def __init__(self, parent: ArrayLike, offsets: ArrayLike) -> None:
        self.parent: IntArray = np.array(parent, np.int64)
        self.offsets = check_offsets(offsets)
        if self.parent.shape != (self.offsets[-1],):
            raise ValueError(
                f"{self.parent.shape[0]} parents for {self.offsets[-1]} tokens: give one a token."
            )
        begin, lengths = self._begin, np.diff(self.offsets)
        own, size = np.arange(len(self.parent)) - begin, np.repeat(lengths, lengths)
        bad = (self.parent < -1) | (self.parent >= size) | (self.parent == own)
        if bad.any():
            t = int(np.argmax(bad))
            what = "itself" if self.parent[t] == own[t] else self.parent[t]
            raise ValueError(
                f"{token_place(self.offsets, t)}: the parent is {what}; it must be the position of "
                f"another of the {size[t]} tokens, counted from 0, or None for a root."
            )
        self.order: IntArray = order_from(self.before, self.offsets) - begin
        protect(self.__dict__)

    @classmethod
    def from_lists(cls, parents: Iterable[Iterable[Any]]) -> Self:
        """Return the forest of S sequences of parents: positions, None or -1 for a root.

        ValueError as for the class, or if a parent is no whole number.
        """
        rows = [list(sequence) for sequence in parents]
        for s, row in enumerate(rows):
            for t, up in enumerate(row):
                if up is not None and (isinstance(up, bool) or not hasattr(up, "__index__")):
                    raise ValueError(
                        f"sequence {s}, position {t}: the parent is {up!r}; give the position of a "
                        "token, or None for a root."
                    )
        offsets = np.cumsum([0, *map(len, rows)])
        return cls([-1 if up is None else up for row in rows for up in row], offsets)

    @property
    def _begin(self) -> IntArray:
        return np.repeat(self.offsets[:-1], np.diff(self.offsets))

    @property
    def before(self) -> IntArray:
        """The parent of each token, by its place in all sequences together; -1 for none, (N,)."""
        return np.where(self.parent < 0, -1, self.parent + self._begin)

    @property
    def arrays(self) -> tuple[IntArray, IntArray]:
        """The parents and the order."""
        return self.parent, self.order

    def with_arrays(self, arrays: tuple[IntArray, ...], offsets: IntArray) -> Self:
        """Return the forest of other sequences, given their parents and orders."""
        new = copy.copy(self)
        new.parent, new.order = arrays
        new.offsets = offsets
        protect(new.__dict__)
        return new

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state; its arrays are read-only, as kernels do not check them again."""
        self.__dict__.update(state)
        protect(state)

    def _check_state(self) -> None:
        """Raise ValueError unless the restored arrays are those of a forest."""
        for name in ("parent", "order", "offsets"):
            array = self.__dict__.get(name)
            if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.ndim != 1:
                raise ValueError(f"the {name} of a forest is no array of int64")
        if not np.array_equal(Forest(self.parent, self.offsets).order, self.order):
            raise ValueError("the order of the tokens is not that of their parents")
