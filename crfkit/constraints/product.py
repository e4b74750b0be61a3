"""A structure whose labelings automata accept."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from crfkit._parallel import with_threads
from crfkit._types import BoolArray, CodeArray, Counts, FloatArray, IntArray, Potentials
from crfkit.constraints.automata import TooManyStatesError, copied_codes
from crfkit.constraints.joint import JointAutomata
from crfkit.constraints.search import Found, check_empty, search
from crfkit.kernels.chain.copies import LabelCopies
from crfkit.labels.reading import LabelReading
from crfkit.structures import Capability, Posterior, Structure
from crfkit.structures.k_best import RankedCodes


class Product(Structure[Any]):
    """The labelings of a structure that automata accept, which read the codes of a sequence.

    Sums, lists and samples are those of the structure over copies of its labels, one for each
    state in which the automata may be after a label: labelings and their copies are each other's.
    The best labeling is searched for lazily; see :func:`crfkit.constraints.search.search`. Of equal
    ones, it is that which the structure chooses, or the one over copies, which may differ.

    Parameters
    ----------
    inner : Structure
        One that has `Capability.COPIES`.
    automata : JointAutomata
        Of its codes.
    gaps : list of float, optional
        Where searches note how much better than what they found a labeling may be, if one may.
    """

    uses_threads: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.POSTERIOR,
            Capability.K_BEST,
            Capability.SAMPLE,
            Capability.ENTROPY,
            Capability.SPANS,
        }
    )

    def __init__(
        self, inner: Structure[Any], automata: JointAutomata, gaps: list[float] | None = None
    ) -> None:
        if Capability.COPIES not in inner.capabilities:
            raise inner.lacks(Capability.COPIES, "a chain, or segments")
        self._inner, self._automata, self._gaps = inner.without_offset(), automata, gaps
        self.potentials, self.offset = inner.potentials, inner.offset  # type: ignore[misc]
        self.threads = inner.threads

    def log_partition(self, potentials: Potentials, weight: FloatArray, out: Counts) -> FloatArray:
        """Return log Z of the accepted labelings, and the expected counts of the parts."""
        copied = self._copied(potentials)
        found = copied.structure.zeros(copied.potentials)
        log_z = copied.structure.log_partition(copied.potentials, weight, found)
        self._inner.add_copied_counts(potentials, copied.copies, found, out)
        return log_z

    def argmax(self, potentials: Potentials) -> tuple[CodeArray, FloatArray]:
        """Return the codes of the best labelings that are found, and their scores."""
        found = self.find(potentials)
        if self._gaps is not None:
            self._gaps.extend((found.bound - found.value)[~found.is_optimal].tolist())
        return found.codes, found.value

    def find(self, potentials: Potentials) -> Found:
        """Return the best labelings that are found, and bounds of the scores of all others."""
        return search(self._threaded, self.with_offset(potentials), self._automata)

    def score(self, potentials: Potentials, labels: CodeArray) -> FloatArray:
        """Return the scores of labelings, ``-inf`` for those that are not accepted."""
        value = self._threaded.score(self.with_offset(potentials), labels)
        value[self._automata.rejecting(labels, potentials.offsets).any(axis=1)] = -np.inf
        return value

    def add_counts(
        self, potentials: Potentials, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add `weight`, shape (S,), to the parts in `out` of one labeling of each sequence."""
        self._inner.add_counts(potentials, labels, weight, out)

    def restricted(
        self, potentials: Potentials, steps: BoolArray, which: IntArray | None = None
    ) -> tuple[Product, Potentials]:
        """Return the accepted labelings without some steps, and potentials of these."""
        inner, fewer = self._inner.restricted(self.with_offset(potentials), steps, which)
        return Product(inner, self._automata, self._gaps), fewer

    def posterior(self, potentials: Potentials) -> Posterior:
        """Return the distribution of the code of each token."""
        from crfkit.constraints.posterior import CopiedPosterior

        copied = self._copied(potentials)
        of_copies = copied.structure.posterior(copied.potentials)
        return CopiedPosterior(self._inner, potentials, copied, of_copies)

    def k_best(self, potentials: Potentials, k: int) -> RankedCodes:
        """Return the best accepted labelings of each sequence, and their scores."""
        copied = self._copied(potentials)
        found = copied.structure.k_best(copied.potentials, k)
        return found._replace(codes=copied.codes[found.codes])

    def sample(self, potentials: Potentials, uniforms: FloatArray) -> CodeArray:
        """Return accepted labelings that are drawn by their probabilities."""
        copied = self._copied(potentials)
        return copied.codes[copied.structure.sample(copied.potentials, uniforms)]

    def entropy(self, potentials: Potentials) -> FloatArray:
        """Return the entropy of the accepted labelings of each sequence, shape (S,)."""
        copied = self._copied(potentials)
        return copied.structure.entropy(copied.potentials)

    def span_probabilities(
        self,
        potentials: Potentials,
        reading: LabelReading,
        start: IntArray,
        stop: IntArray,
        type: IntArray,
    ) -> FloatArray:
        """Return the probability of each span, shape (n,)."""
        copied = self._copied(potentials)
        return copied.structure.span_probabilities(
            copied.potentials, copied.reading(reading), start, stop, type
        )

    def likely_spans(
        self, potentials: Potentials, reading: LabelReading, threshold: float
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return the spans of at least some probability."""
        copied = self._copied(potentials)
        return copied.structure.likely_spans(copied.potentials, copied.reading(reading), threshold)

    @property
    def _threaded(self) -> Structure[Any]:
        return self._inner if self.threads is None else with_threads(self._inner, self.threads)

    def _copied(self, potentials: Potentials) -> Copied:
        """Return the structure over copies of labels; ValueError if there are too many."""
        check_empty(potentials, self._automata)
        try:
            copies = self._automata.copies(self._automata.all, potentials)
        except TooManyStatesError as error:
            raise ValueError(self._automata.too_large_for_sums(error.states)) from error
        made = self._threaded.with_copies(self.with_offset(potentials), copies)
        return Copied(copies, *made, codes=copied_codes(copies, potentials))


class Copied(NamedTuple):
    """A structure over copies of labels, its potentials, and the code of each of its codes."""

    copies: LabelCopies
    structure: Structure[Any]
    potentials: Any
    codes: CodeArray

    def reading(self, reading: LabelReading) -> LabelReading:
        """Return what the codes of copies say of spans."""
        return reading.taken(self.codes.astype(np.int64))
