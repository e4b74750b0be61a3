"""What a score model has to do."""

from __future__ import annotations

from typing import Any, Protocol

from crfkit._parallel import SERIAL, ThreadMap
from crfkit._types import Chunk, FloatArray, Potentials
from crfkit.data import PackedSequences


class PotentialsModel(Protocol):
    """A function from P parameters and packed features to scores, and its exact adjoint."""

    @property
    def n_parameters(self) -> int:
        """Number of parameters P."""

    @property
    def n_labels(self) -> int:
        """Number of labels K."""

    @property
    def n_codes(self) -> int:
        """How many codes a token may have."""

    @property
    def n_columns(self) -> int:
        """Number of unary scores of a token."""

    @property
    def chunk_tokens(self) -> int:
        """Number of tokens that a chunk of sequences should have."""

    def cells(self, data: PackedSequences, chunk: Chunk) -> int:
        """Return how many scores a chunk has, unary and in tables of pairs."""

    def bind(self, parameters: FloatArray) -> Any:
        """Return what `scores` needs of the parameters, computed once for all chunks."""

    def scores(
        self, bound: Any, data: PackedSequences, chunk: Chunk, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the scores of the sequences of a chunk of new data.

        `threads` share the work on a long sequence.
        """

    def prepare(self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap) -> Any:
        """Return a block of chunks in the form that training reads, made once."""

    def prepare_long(self, data: PackedSequences, chunk: Chunk, threads: ThreadMap) -> Any:
        """Return a chunk of one long sequence as a block that threads can work on together."""

    def prepared_scores(
        self, bound: Any, prepared: Any, index: int, threads: ThreadMap = SERIAL
    ) -> Potentials:
        """Return the same as `scores` for chunk `index` of a prepared block."""

    def pullback(
        self,
        unary: FloatArray,
        pairs: list[FloatArray],
        prepared: Any,
        threads: ThreadMap,
        out: FloatArray,
    ) -> None:
        """Add the gradient with respect to the parameters, given the one to a block's scores.

        `unary` is the gradient to the unary scores of the block, shape (n, C); `pairs` has the
        gradient to the pair scores of each chunk. `out`, shape (P,), must come out the same for
        any number of threads.
        """
