"""What a score model has to do."""

from __future__ import annotations

from typing import Any, Protocol

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, Expectations, FloatArray, Scores
from crfkit.data import PackedSequences


class ScoreModel(Protocol):
    """A function from P parameters and packed features to scores, and its exact adjoint."""

    n_parameters: int

    def bind(self, parameters: FloatArray) -> Any:
        """Return what `scores` needs of the parameters, computed once for all chunks."""

    def scores(self, bound: Any, data: PackedSequences, chunk: Chunk) -> Scores:
        """Return the scores of the sequences of a chunk of new data."""

    def prepare(self, data: PackedSequences, chunks: list[Chunk], threads: ThreadMap) -> Any:
        """Return a block of chunks in the form that training reads, made once."""

    def prepared_scores(self, bound: Any, prepared: Any, index: int) -> Scores:
        """Return the same as `scores` for chunk `index` of a prepared block."""

    def pullback(
        self, gradient: Expectations, prepared: Any, threads: ThreadMap, out: FloatArray
    ) -> None:
        """Add the gradient with respect to the parameters, given the one to a block's scores.

        ``gradient.unary`` has the tokens of the block, ``gradient.pair`` is summed over it.
        `out`, shape (P,), must come out the same for any number of threads.
        """
