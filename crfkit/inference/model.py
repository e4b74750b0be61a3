"""A model with its weights in place, which answers questions about new data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from crfkit._parallel import ThreadMap
from crfkit._types import Chunk, Potentials
from crfkit.data import PackedSequences
from crfkit.data.chunks import is_long, make_chunks
from crfkit.structures import Structure

# Chunks of new data that each thread gets, where they are not too small.
CHUNKS_A_THREAD, LEAST_CHUNK = 4, 500

Answer = TypeVar("Answer")
Question = Callable[[Structure, Potentials], Answer]


class FittedModel(NamedTuple):
    """A model of potentials and its weights.

    Attributes
    ----------
    model : PotentialsModel
        Turns attributes and weights into potentials.
    weights
        What ``model.bind`` returns.
    """

    model: Any
    weights: Any

    def ask(
        self,
        data: PackedSequences,
        question: Question[Answer],
        threads: ThreadMap,
        share: int | None = None,
    ) -> list[Answer]:
        """Return the answers to a question about each chunk of sequences, in their order.

        Parameters
        ----------
        data : PackedSequences
            The sequences.
        question : callable
            From the structure and the potentials of a chunk to an answer; ``potentials.first`` is
            the number of its first sequence.
        threads : ThreadMap
            An open pool of threads. Sequences are computed one by one: how they are dealt to
            threads changes no bit of what is said of one of them.
        share : int, optional
            Tokens of a chunk, about. If not given, that depends on the number of threads.
        """
        model, weights = self

        def answer(chunk: Chunk) -> Answer:
            return question(model.structure, model.scores(weights, data, chunk, threads))

        def answer_long(chunk: Chunk) -> Answer:
            structure = model.structure.in_parallel(threads)
            return question(structure, model.scores(weights, data, chunk, threads))

        share = share or max(LEAST_CHUNK, data.n_tokens // (CHUNKS_A_THREAD * threads.n_workers))
        chunks = make_chunks(data.offsets, min(model.chunk_tokens, share))
        answers = iter(threads(answer, [chunk for chunk in chunks if not is_long(chunk)]))
        # Long sequences one after the other, each over all threads.
        return [answer_long(chunk) if is_long(chunk) else next(answers) for chunk in chunks]
