"""Search with a beam, for prediction and for learning."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._params import check_option, check_whole
from crfkit._types import CodeArray, FloatArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.inference.base import DecodedLabels, Decoder
from crfkit.kernels.chain.k_best import ALIVE, GOLD, N_TRACES, TOP, beam_path, chain_beam
from crfkit.structures import Structure, check_prefixes
from crfkit.structures.potentials import chain_arrays

UPDATES = ("max_violation", "early")


class BeamSearch(BaseEstimator, Decoder):  # type: ignore[misc]
    """Keeps the best prefixes of a labeling at each token.

    Of prefixes that end with the same label only the best is kept, so that a beam as wide as there
    are labels is the exact search.

    A step towards the true labels from labels that a beam has found may be none: the true ones may
    score higher and have been lost on the way. Learning then looks at prefixes: those at the first
    token at which the true prefix is lost (early update: Collins and Roark 2004), or those at the
    token at which the best one scores highest above the true one (max-violation: Huang, Fayong and
    Guo 2012). Where the true prefix is never lost, both look at the whole labeling.

    Parameters
    ----------
    width : int, default=8
        Prefixes that are kept.
    update : {"max_violation", "early"}, default="max_violation"
        Which prefixes to learn from.

    Examples
    --------
    >>> from crfkit import StructuredPerceptron
    >>> from crfkit.inference import BeamSearch
    >>> StructuredPerceptron(search=BeamSearch(width=4))
    StructuredPerceptron(search=BeamSearch(width=4))
    """

    def __init__(self, *, width: int = 8, update: str = "max_violation") -> None:
        self.width = width
        self.update = update

    def decode(
        self, structure: Structure, potentials: Potentials, labels: DecodedLabels | None = None
    ) -> CodeArray:
        """Return label codes, shape (N,): the best ones where all that is allowed was lost."""
        check_prefixes(structure)
        codes = self._search(potentials, np.zeros(len(potentials.unary), np.int32))[0]
        lost = structure.score(potentials, codes) == -np.inf
        if lost.any():
            tokens = np.repeat(lost, np.diff(potentials.offsets))
            codes[tokens] = structure.argmax(potentials)[0][tokens]
        return codes

    def violation(self, scores: Potentials, labels: CodeArray) -> tuple[CodeArray, int]:
        """Return labels of a sequence, (T,), and how many of the first of them to learn from.

        These are the best prefix there, given the true labels, (T,); T where it finds them.
        """
        path, trace, best, source = self._search(scores, labels)
        length = len(labels)
        if np.array_equal(path, labels):
            return path, length
        lost = np.flatnonzero(trace[:, ALIVE] == 0.0)
        stop = length
        if self.update == "early" and len(lost):
            stop = int(lost[0]) + 1
        elif len(lost):
            above = trace[:, TOP] - trace[:, GOLD]
            stop = length - int(np.argmax(above[::-1]))  # of equal ones the last
        prefix = path.copy()
        beam_path(0, stop, best, source, prefix)
        return (path, length) if np.array_equal(prefix[:stop], labels[:stop]) else (prefix, stop)

    def _search(
        self, scores: Potentials, labels: CodeArray
    ) -> tuple[CodeArray, FloatArray, FloatArray, CodeArray]:
        """Return the labels found, traces, and the scores and sources of prefixes."""
        check_whole("width", self.width, 1)
        check_option("update", self.update, UPDATES)
        length, size = scores.unary.shape
        if not scores.is_dense:
            raise ValueError(
                "search with a beam needs a table of all steps, which a model of so many labels "
                "and so few steps does not have: use all_possible_transitions=True, or search=None."
            )
        best, source = np.empty((length, size)), np.empty((length, size), np.int32)
        trace, path = np.empty((length, N_TRACES)), np.empty(length, np.int32)
        rank = np.empty(size, np.int64)
        arrays, gold = chain_arrays(scores), frozen(labels)
        for s in range(len(scores.offsets) - 1):
            chain_beam(arrays, s, int(self.width), gold, best, source, rank, trace, path)
        return path, trace, best, source
