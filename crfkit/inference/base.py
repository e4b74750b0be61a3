"""A fitted model answers questions about new data; decoders are such questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from crfkit._parallel import Chunk, ThreadMap, is_long, make_chunks, with_threads
from crfkit._types import CodeArray, Counts, FloatArray, IntArray, ObjectArray, Potentials
from crfkit.data import LabelSequences, PackedSequences
from crfkit.labels.base import LabelCoding
from crfkit.labels.reading import LabelReading
from crfkit.structures import Structure

if TYPE_CHECKING:
    from crfkit.constraints.compiled import Compiled

# Chunks of new data that each thread gets, where they are not too small.
CHUNKS_A_THREAD, LEAST_CHUNK = 4, 500

Answer = TypeVar("Answer")


class FittedModel(NamedTuple):
    """A model of potentials, and its weights as ``model.bind`` returns them."""

    model: Any
    weights: Any

    def ask(
        self,
        data: PackedSequences,
        question: Callable[[Structure, Potentials], Answer],
        threads: ThreadMap,
        share: int | None = None,
        held: Compiled | None = None,
    ) -> list[Answer]:
        """Return the answers to a question about each chunk of sequences, in their order.

        The first sequence of a chunk is ``potentials.first``. Chunks have about `share` tokens; if
        not given, the number of threads tells. It changes no bit of what is said of a sequence.
        Answers are those of labelings that keep to the rules of `held`.
        """
        model, weights = self

        def answer(chunk: Chunk) -> list[Answer]:
            structure, potentials = model.structure, model.scores(weights, data, chunk, threads)
            if held is not None:
                structure, potentials = held.restrict(structure, potentials)
            if is_long(chunk):
                structure = with_threads(structure, threads)
            pieces = [potentials] if held is None else held.pieces(potentials)
            return [question(structure, piece) for piece in pieces]

        if share is None:
            share = data.n_tokens
            if share > LEAST_CHUNK:
                share = max(LEAST_CHUNK, share // (CHUNKS_A_THREAD * threads.n_workers))
        chunks = make_chunks(data.offsets, min(model.chunk_tokens, share))
        if len(chunks) == 1:
            return answer(chunks[0])
        answers = iter(threads(answer, [chunk for chunk in chunks if not is_long(chunk)]))
        # Long sequences one after the other, each over all threads.
        every = [answer(chunk) if is_long(chunk) else next(answers) for chunk in chunks]
        return [one for piece in every for one in piece]


def expectations(structure: Structure, potentials: Potentials) -> tuple[Counts, FloatArray]:
    """Return the marginals of all parts, in the form of potentials, and log Z, shape (S,)."""
    expected = structure.zeros(potentials)
    weight = np.ones(len(potentials.offsets) - 1)
    return expected, structure.log_partition(potentials, weight, expected)


def marginals(structure: Structure, potentials: Potentials) -> tuple[FloatArray, FloatArray]:
    """Return the label probabilities of tokens, (N, K), from 0 to 1, and log Z, shape (S,)."""
    expected, log_z = expectations(structure, potentials)
    if potentials.n_codes == potentials.n_labels:
        return expected.unary, log_z
    return np.minimum(of_labels(expected.unary, potentials), 1.0), log_z


def of_labels(of_codes: FloatArray, potentials: Potentials) -> FloatArray:
    """Return the sums over the codes of each label, (N, K); the first columns are of the codes."""
    size, n_codes = potentials.n_labels, potentials.n_codes
    found: FloatArray = of_codes[:, :n_codes].reshape(-1, n_codes // size, size).sum(axis=1)
    return found


class DecodedLabels:
    """What codes stand for: the labels of a fitted model, (K,), and how codes are written."""

    def __init__(self, classes: ObjectArray, coding: LabelCoding) -> None:
        self.classes, self.coding = classes, coding

    @cached_property
    def reading(self) -> LabelReading:
        """What codes say of spans."""
        return self.coding.reading(self.classes)


class Decoder(ABC):
    """A choice of labels for the sequences of a batch.

    What is chosen has a finite score: where scores of ``-inf`` or the structure itself forbid
    labels, or labels next to each other, the best that is allowed is chosen.
    """

    @abstractmethod
    def decode(
        self, structure: Structure, potentials: Potentials, labels: DecodedLabels | None = None
    ) -> CodeArray:
        """Return codes of tokens, shape (N,); NoPathError if nothing is left of a sequence.

        `labels` are what the codes stand for, for decoders that look at that. Below 0, ``~code`` is
        a code that is withheld: `written` knows what to say there.
        """

    def written(self, codes: CodeArray, labels: DecodedLabels, offsets: IntArray) -> LabelSequences:
        """Return the labels that codes stand for, where some are withheld."""
        raise ValueError(f"{type(self).__name__} cannot write codes below 0.")


def plain_codes(codes: CodeArray) -> CodeArray:
    """Return the codes that a decoder has chosen, (N,), also where it withholds them."""
    return np.where(codes < 0, ~codes, codes)


class ViterbiDecoder(Decoder):
    """The labeling of the largest score (Viterbi 1967): the most probable one as a whole."""

    def decode(
        self, structure: Structure, potentials: Potentials, labels: DecodedLabels | None = None
    ) -> CodeArray:
        """Return codes of tokens, shape (N,)."""
        return structure.argmax(potentials)[0]
