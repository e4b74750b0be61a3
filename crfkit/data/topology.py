"""Which token stands before which, where it is not the one before in the sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod

from crfkit._types import IntArray


class Topology(ABC):
    """The order of the tokens of S sequences: each has at most one before it.

    A transition leads from there into each token.
    """

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all arrays."""

    @abstractmethod
    def __eq__(self, other: object) -> bool:
        """Whether all tokens stand in the same order."""

    @abstractmethod
    def check(self, offsets: IntArray) -> None:
        """Raise ValueError, naming sequence and position, if it does not fit these sequences.

        Sequence ``s`` is tokens ``offsets[s]:offsets[s + 1]``.
        """

    @abstractmethod
    def take(self, sequences: IntArray, offsets: IntArray) -> Topology:
        """Return the order of the tokens of chosen sequences of those with these offsets."""

    @property
    @abstractmethod
    def before(self) -> IntArray:
        """The token before each, by its place in all sequences together; -1 for none, (N,)."""

    @property
    @abstractmethod
    def arrays(self) -> tuple[IntArray, ...]:
        """What potentials hold of it, each of shape (N,), the same for all parts of the data."""

    @property
    @abstractmethod
    def first_tokens(self) -> IntArray:
        """The tokens that weights of first labels are for."""

    @property
    @abstractmethod
    def last_tokens(self) -> IntArray:
        """The tokens that weights of last labels are for."""


def check_no_topology(topology: Topology | None, model: str) -> None:
    """Raise ValueError if there is a topology, which a model, given by its name, cannot use."""
    if topology is not None:
        raise ValueError(
            f"X has a {type(topology).__name__}, which {model} cannot use: X.with_topology(None) "
            "leaves it out."
        )
