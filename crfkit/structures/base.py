"""The interface of a structure: an oracle about the labelings of a batch of sequences."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import (
    BoolArray,
    CodeArray,
    Counts,
    FloatArray,
    IntArray,
    LabelReading,
    Potentials,
)
from crfkit.data.topology import Topology
from crfkit.structures.k_best import RankedCodes
from crfkit.structures.posterior import Posterior

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from crfkit.kernels.chain.copies import LabelCopies
    from crfkit.structures.lattice import Lattice

    P = TypeVar("P", bound=Potentials, default=Any)
else:
    from typing import TypeVar

    P = TypeVar("P", bound=Potentials)


class NoPathError(ValueError):
    """A sequence has no labeling of finite score.

    `position` is the first that no path of allowed labels and transitions gets past; `others` are
    further sequences of the batch that are known to have none, of which there may be more.
    """

    def __init__(self, sequence: int, position: int, others: tuple[int, ...] = ()) -> None:
        self.sequence, self.position, self.others = sequence, position, others
        super().__init__(
            f"sequence {sequence}: no path is left at position {position}: every label there is "
            "forbidden (score -inf) or cannot be reached by an allowed transition from the "
            "position before. Allow at least one label and one transition into it."
        )

    def __reduce__(self) -> tuple[type[NoPathError], tuple[int, int]]:
        return type(self), (self.sequence, self.position)


class NoSegmentationError(NoPathError):
    """A sequence has no segmentation of finite score.

    `position` is the last that segments from the start of the sequence lead up to.
    """

    def __init__(self, sequence: int, position: int, others: tuple[int, ...] = ()) -> None:
        self.sequence, self.position, self.others = sequence, position, others
        ValueError.__init__(
            self,
            f"sequence {sequence}: no segmentation is allowed: none gets past position {position}, "
            "where every segment is forbidden (score -inf), too short or too long, or every "
            "transition into it is. Allow at least one segment that begins there.",
        )


class Capability(Enum):
    """Questions that not every structure answers; the value completes a message."""

    HESSIAN_PRODUCT = "products with the Hessian"
    K_BEST = "lists of the best labelings"
    SAMPLE = "samples"
    ENTROPY = "entropies"
    SPANS = "probabilities of spans"
    ARGMAX_BY_HAMMING = "best paths by numbers of errors"
    PREFIXES = "search with a beam: its labelings have no prefixes"
    COVARIANCES = "covariances of features"
    POSTERIOR = "gradients of functions of its marginals"
    CONDITIONALS = "scores of single labels, all others given"
    SHARES = "expected scores of independent labels of tokens"
    COPIES = "copies of its labels, which rules on whole sequences need"
    BOUNDED_SEARCH = "bounds of scores, as its search is exact"


class MissingCapabilityError(ValueError):
    """A structure cannot answer a question."""


class Offset(Protocol):
    """Potentials that are not learned, which a structure adds to those it is given."""

    @property
    def is_hard(self) -> bool:
        """Whether all of them are 0 or ``-inf``."""

    def added_to(self, potentials: Any) -> Any:
        """Return the sum of the potentials and the offset."""


# The structures of sequences whose topology is of a class; that of others is a chain.
OF_TOPOLOGY: dict[type[Topology], Structure[Any]] = {}


def structure_for(topology: Topology) -> Structure[Any]:
    """Return the structure of sequences with this topology; TypeError if none is known for it."""
    if type(topology) not in OF_TOPOLOGY:
        import_module("crfkit.structures.tree")  # which adds its own
    if type(topology) not in OF_TOPOLOGY:
        known = ", ".join(sorted(kind.__name__ for kind in OF_TOPOLOGY)) or "none"
        raise TypeError(
            f"no structure reads {topology.article}{type(topology).__name__}; known are: {known}. "
            f"To read it, {topology.read_by}add one to crfkit.structures.OF_TOPOLOGY."
        )
    return OF_TOPOLOGY[type(topology)]


_LABELS = "labels of tokens: independent ones are no distribution over segmentations"


class Structure(ABC, Generic[P]):
    """An oracle about the labelings of a batch of sequences, given the potentials of their parts.

    All methods are pure functions of the potentials; sizes as in
    :class:`crfkit._types.Potentials`. A structure declares in `capabilities` which of the optional
    methods it has: `posterior`, `hessian_product`, `add_covariances`, `k_best`, `sample`,
    `entropy`, `span_probabilities` with `likely_spans`, `with_copies` with `add_copied_counts`,
    `argmax_of_copies` and `lattice`, `conditional_scores` with `add_conditional_counts`,
    `expected_score` with `add_expected_counts`, `max_by_hamming` with `path_at_hamming`, and, where
    `argmax` need not find the best labeling, `bounded_argmax`. Sums
    and searches raise NoPathError where a sequence has no labeling of finite score.

    Attributes
    ----------
    capabilities : frozenset of Capability
        The optional methods that it has.
    potentials : type
        The record of its potentials, a NamedTuple that derives from `Potentials`.
    is_chain : bool
        Whether it is a chain with a table of all pairs of labels.
    is_convex : bool
        Whether log Z is a convex function of the potentials, with the expected counts as its
        gradient. The true one is; what a method of inference takes for it need not be.
    remedy : str
        What would give it more capabilities, for messages.
    uses_threads : bool
        Whether it has work for several threads; see :func:`crfkit._parallel.with_threads`.
    offset : Offset or None
        What it adds to the potentials.
    threads : ThreadMap or None
        An open pool that the sequences have to themselves.
    gaps : list of float or None
        How much better than those that were found other labelings may be, where some may and this
        is a list.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    is_chain: ClassVar[bool] = False
    is_convex: ClassVar[bool] = True
    remedy: ClassVar[str] = ""
    uses_threads: ClassVar[bool] = False
    potentials: ClassVar[type[Potentials]]
    offset: Offset | None = None
    threads: ThreadMap | None = None
    gaps: list[float] | None = None

    def zeros(self, potentials: P) -> Counts:
        """Return counts of 0 for the parts of `potentials`."""
        return Counts(np.zeros(potentials.unary.shape), np.zeros(potentials.pair.shape))

    @abstractmethod
    def log_partition(self, potentials: P, weight: FloatArray, out: Counts) -> FloatArray:
        """Return log Z of each sequence, shape (S,), and the expected counts of its parts.

        Log Z is the logarithm of the sum of ``exp(score)`` over all labelings; 0 for an empty
        sequence. The expected counts are multiplied by `weight`, shape (S,): those of labels
        (marginals) replace ``out.unary``, those of pairs are added to ``out.pair``.
        """

    @abstractmethod
    def argmax(self, potentials: P) -> tuple[CodeArray, FloatArray]:
        """Return the codes of the best labelings, shape (N,), and their scores, shape (S,).

        The score of an empty sequence is 0.
        """

    @abstractmethod
    def score(self, potentials: P, labels: CodeArray) -> FloatArray:
        """Return the scores of labelings, shape (S,), given the codes of all tokens, (N,).

        A score is the sum of those of the parts; ``-inf`` for what is forbidden.
        """

    @abstractmethod
    def add_counts(self, potentials: P, labels: CodeArray, weight: FloatArray, out: Counts) -> None:
        """Add `weight`, shape (S,), to the parts in `out` of one labeling of each sequence.

        The potentials only tell the sequences; `labels` are the codes of all tokens, shape (N,).
        """

    @abstractmethod
    def restricted(
        self, potentials: P, steps: BoolArray, which: IntArray | None = None
    ) -> tuple[Structure[Any], Potentials]:
        """Return a structure and potentials of the same labelings, without some steps.

        `steps`, (K, K), tells which labels (axis 1) may follow which (axis 0); or there are several
        such tables, (G, K, K), of which the transition into each token has one: `which`, (N,).
        Nothing that is given is changed.
        """

    def posterior(self, potentials: P) -> Posterior:
        """Return the distribution of the code of each token, for losses of marginals.

        It keeps the potentials, which must not change as long as it is asked.
        """
        raise self.lacks(Capability.POSTERIOR, "loss='log'")

    def hessian_product(self, potentials: P, tangent: P, weight: FloatArray, out: Counts) -> None:
        """Differentiate the expected counts along a direction of the potentials.

        This is the product of the Hessian of log Z, summed with `weight`, shape (S,), and the
        tangent, which is finite and of the same parts. The derivatives of the unary counts replace
        ``out.unary``, those of the pair counts are added to ``out.pair``.
        """
        raise self.lacks(Capability.HESSIAN_PRODUCT, "solver='lbfgs' (or 'auto')")

    def add_covariances(
        self, potentials: P, weight: FloatArray, first: int, features: Any, out: FloatArray
    ) -> None:
        """Add the covariances of weights, which are the Hessian of log Z, summed with `weight`.

        The potentials are those of the tokens from `first` on of `features`, whose weights, and
        those of all transitions after them, are the rows and columns of `out`: half of the matrix
        and the transpose of the other half. Small ones may be left out.
        """
        raise self.lacks(Capability.COVARIANCES, "solver='lbfgs' (or 'auto')")

    def conditional_scores(self, potentials: P, labels: CodeArray) -> FloatArray:
        """Return the scores of labelings that differ from `labels` in one token, shape (N, C).

        At ``[t, c]`` that of the labeling with code `c` at token `t`, less a number that is the
        same for all codes of the token; ``-inf`` where it is forbidden. A new array.
        """
        raise self.lacks(Capability.CONDITIONALS, "loss='log'")

    def add_conditional_counts(
        self, potentials: P, labels: CodeArray, weight: FloatArray, out: Counts
    ) -> None:
        """Write the weights, (N, C), of `conditional_scores` as weights of their parts.

        They are 0 for what is forbidden. Of the weights of parts, ``out.unary`` is replaced,
        ``out.pair`` is added to.
        """
        raise self.lacks(Capability.CONDITIONALS, "loss='log'")

    def expected_score(self, potentials: P, shares: FloatArray) -> FloatArray:
        """Return the expected score of each sequence whose codes are independent, shape (S,).

        `shares`, shape (N, C), are their probabilities. ``-inf`` where something forbidden has one
        that is not 0.
        """
        raise self.lacks(Capability.SHARES, _LABELS)

    def add_expected_counts(
        self, potentials: P, shares: FloatArray, weight: FloatArray, out: Counts
    ) -> None:
        """Add the expected counts of the parts, times `weight`, (S,), where codes are independent.

        The potentials only tell the sequences.
        """
        raise self.lacks(Capability.SHARES, _LABELS)

    def k_best(self, potentials: P, k: int) -> RankedCodes:
        """Return the k labelings of the largest scores of each sequence, the best first.

        Fewer where fewer have a finite score; an empty sequence has one.
        """
        raise self.lacks(Capability.K_BEST, "structure='chain'")

    def sample(self, potentials: P, uniforms: FloatArray) -> CodeArray:
        """Return the codes of labelings drawn from their distribution, shape (n, N).

        `uniforms`, shape (n, N), are independent numbers from 0 up to, not including, 1, that are
        all the chance there is: equal ones give equal labelings, whatever else is in the batch.
        """
        raise self.lacks(Capability.SAMPLE, "structure='chain'")

    def entropy(self, potentials: P) -> FloatArray:
        """Return the entropy of the labelings of each sequence, in nats, shape (S,).

        Exact for scores of any size; 0 for an empty sequence.
        """
        raise self.lacks(Capability.ENTROPY, "structure='chain'")

    def span_probabilities(
        self, potentials: P, reading: LabelReading, start: IntArray, stop: IntArray, type: IntArray
    ) -> FloatArray:
        """Return the probability of each span, shape (n,): that it stands there, as it is.

        Spans, shape (n,) each, are from the token `start` of the batch up to, not including,
        `stop`, and have one of the types of `reading`, which says what codes tell of spans.
        """
        raise self.lacks(Capability.SPANS, "structure='chain'")

    def likely_spans(
        self, potentials: P, reading: LabelReading, threshold: float
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return the spans of at least some probability, as for :meth:`span_probabilities`.

        Their first tokens, those after the last, types, and probabilities, sorted by the first
        three.
        """
        raise self.lacks(Capability.SPANS, "structure='chain'")

    def with_copies(self, potentials: P, copies: LabelCopies) -> tuple[Structure, Potentials]:
        """Return the structure over copies of labels, with the scores of these, and its potentials.

        A code ``c`` of it is one of the copy ``c % P``.
        """
        raise self.lacks(Capability.COPIES, "a chain, or segments")

    def add_copied_counts(
        self, potentials: P, copies: LabelCopies, found: Counts, out: Counts
    ) -> None:
        """Write weights of the parts of `with_copies` as weights of those of the structure.

        They replace ``out.unary``, and are added to ``out.pair``; the potentials are its own.
        """
        raise self.lacks(Capability.COPIES, "a chain, or segments")

    def argmax_of_copies(self, potentials: P, copies: LabelCopies) -> tuple[CodeArray, FloatArray]:
        """Return what `argmax` of `with_copies` does, by what is fastest."""
        raise self.lacks(Capability.COPIES, "a chain, or segments")

    def lattice(self, potentials: P) -> Lattice:
        """Return the labelings of the only sequence, which is not empty, as paths of a graph."""
        raise self.lacks(Capability.COPIES, "a chain, or segments")

    def bounded_argmax(self, potentials: P) -> tuple[CodeArray, FloatArray, FloatArray]:
        """Return the labeling of `argmax`, its score, and one that no labeling exceeds.

        Shapes (N,), (S,) and (S,); the last is inf where nothing is known.
        """
        raise self.lacks(Capability.BOUNDED_SEARCH, "argmax")

    def max_by_hamming(
        self, potentials: P, labels: CodeArray, most: int | None = None
    ) -> FloatArray:
        """Return the largest scores by numbers of wrong labels, 0, 1, ..., L - 1, shape (S, L).

        `labels` are right; a score is ``-inf`` where there is no such labeling. `most`, at least 1,
        is the last number, and stands for all from it on; if not given, the longest length.
        """
        raise self.lacks(Capability.ARGMAX_BY_HAMMING, "rescaling='margin' with cost='hamming'")

    def path_at_hamming(
        self, potentials: P, labels: CodeArray, errors: IntArray, most: int | None = None
    ) -> CodeArray:
        """Return the best labels of each sequence with some number of wrong labels, shape (N,).

        `labels` and `most` are as for :meth:`max_by_hamming`, `errors`, shape (S,), are the
        numbers: 0 gives `labels`. ValueError tells that a sequence has no such labeling of finite
        score, or the search takes too much memory.
        """
        raise self.lacks(Capability.ARGMAX_BY_HAMMING, "rescaling='margin' with cost='hamming'")

    def lacks(self, capability: Capability, instead: str) -> MissingCapabilityError:
        """Return the error that the structure has no such method."""
        return MissingCapabilityError(
            f"the structure {type(self).__name__} has no {capability.value}. Use {instead}."
        )

    @property
    def has_only_hard_constraints(self) -> bool:
        """Whether all that it adds to the potentials is 0 or ``-inf``."""
        return self.offset is None or self.offset.is_hard

    def with_offset(self, potentials: P) -> P:
        """Return the potentials with what it adds; ValueError if they are of another structure."""
        if not isinstance(potentials, self.potentials):
            raise ValueError(
                f"the structure {type(self).__name__} reads {self.potentials.__name__}, not "
                f"{type(potentials).__name__}."
            )
        return potentials if self.offset is None else self.offset.added_to(potentials)

    def without_offset(self) -> Self:
        """Return the structure that adds nothing."""
        if self.offset is None:
            return self
        plain = copy.copy(self)
        plain.offset = None
        return plain

    def offset_score(self, potentials: P, labels: CodeArray) -> FloatArray:
        """Return what it adds to the score of allowed labelings of the sequences, shape (S,)."""
        if self.has_only_hard_constraints:
            return np.zeros(len(potentials.offsets) - 1)
        none = potentials.with_arrays(*map(np.zeros_like, potentials.arrays()))
        return self.score(none, labels)


def check_prefixes(structure: Structure[Any]) -> None:
    """Raise MissingCapabilityError unless labelings of the structure have prefixes."""
    if Capability.PREFIXES not in structure.capabilities:
        raise structure.lacks(Capability.PREFIXES, "search=None")


def raise_if_dead(potentials: Potentials, status: IntArray) -> None:
    """Raise the error of the first sequence whose status is the token that no path gets past."""
    dead = np.flatnonzero(status >= 0)
    if len(dead):
        s, others = int(dead[0]), tuple((potentials.first + dead[1:]).tolist())
        raise NoPathError(potentials.first + s, int(status[s] - potentials.offsets[s]), others)


def longest(potentials: Potentials) -> int:
    """Return the length of the longest sequence."""
    return int(np.diff(potentials.offsets).max(initial=0))


def most_errors(potentials: Potentials, most: int | None) -> int:
    """Return the last number of errors that is told apart: `most`, or the longest length."""
    return max(longest(potentials) if most is None else most, 1)


def too_many_errors(potentials: Potentials, s: int, errors: int) -> ValueError:
    """Return the error that a sequence has no labeling with so many errors."""
    return ValueError(
        f"sequence {potentials.first + s}: no labeling of finite score has {errors} wrong labels."
    )
