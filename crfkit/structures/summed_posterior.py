"""Posteriors by the sums of a structure, which leave what vanishes to logarithms."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from crfkit._types import Counts, FloatArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.posterior import LEAST_SHARE
from crfkit.kernels.chain.sum import OK
from crfkit.structures.base import Structure
from crfkit.structures.posterior import Posterior


class SummedPosterior(Posterior):
    """What is known of the labels of single tokens by the sums of a structure.

    Slopes are carried in the linear domain as long as no number that they are scaled by vanishes. A
    sequence in which one does, and one that is asked about a label of a vanishing probability, is
    summed once more, by logarithms.
    """

    def __init__(self, structure: Structure, potentials: Potentials) -> None:
        self._potentials = potentials
        expected = Counts(np.empty(potentials.unary.shape), np.zeros(potentials.pair.shape))
        weight = np.ones(len(potentials.offsets) - 1)
        self.log_z = structure.log_partition(potentials, weight, expected)
        self.marginals = frozen(expected.unary)

    def log_probability(self, tokens: IntArray, codes: IntArray) -> FloatArray:
        """Return the logarithms of probabilities of labels at tokens."""
        found = self.marginals[tokens, codes]
        tiny, offsets = np.flatnonzero(found < LEAST_SHARE), self._potentials.offsets
        found[tiny] = 1.0
        found = np.log(found)
        if len(tiny):
            sequences = np.searchsorted(offsets, tokens[tiny], side="right") - 1
            chosen, place = np.unique(sequences, return_inverse=True)
            starts = np.concatenate([[0], np.cumsum(np.diff(offsets)[chosen])])
            rows = starts[place] + tokens[tiny] - offsets[sequences]
            found[tiny] = self._in_logs(chosen).log_probability(rows, codes[tiny])
        return found

    def pull_back(self, slopes: FloatArray, out: Counts) -> None:
        """Write the gradient of a function of the marginals."""
        sizes = np.diff(self._potentials.offsets)
        status = np.full(len(sizes), OK)
        carried = self._carry(slopes, status, out.unary)
        failed = status != OK
        if failed.any():  # what they added to transitions is of no use
            carried = self._carry(slopes, status, out.unary)
            rows, chosen = np.repeat(failed, sizes), np.flatnonzero(failed)
            counts = Counts(np.empty(slopes[rows].shape), out.pair)
            self._in_logs(chosen).pull_back(slopes[rows], counts)
            out.unary[rows] = counts.unary
        out.pair[...] += carried

    @abstractmethod
    def _carry(self, slopes: FloatArray, status: IntArray, unary: FloatArray) -> FloatArray:
        """Write the gradient to the unary scores; return that to the scores of transitions.

        Of the sequences whose status, (S,), is `OK`; it is not any more where one is left out.
        """

    @abstractmethod
    def _in_logs(self, chosen: IntArray) -> Posterior:
        """Return what is known of some sequences by sums of logarithms."""
