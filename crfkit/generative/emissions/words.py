"""Words, of which many are rare, and more are not known: what these end in tells their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._params import check_number
from crfkit._types import BoolArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.features.suffixes import SuffixClasses, SuffixTree
from crfkit.features.symbols import SymbolNames, SymbolVectorizer
from crfkit.generative.base import Statistics
from crfkit.generative.emissions.categorical import additive
from crfkit.generative.emissions.symbols import (
    SymbolEmission,
    SymbolTables,
    listed_cells,
    listed_counts,
)
from crfkit.kernels.symbols import classes_abstract

# Labels less probable than this, times how frequent they are, have one probability for all words.
NEGLIGIBLE = 1e-5
ROWS = 1 << 20  # numbers of a dense block of words
TINY = 1e-300  # where 0 is divided by 0


class _Joint(NamedTuple):
    """Weights of words and labels together: those that are listed, and of any other pair."""

    listed: sp.csr_array  # (n, K)
    floor: FloatArray  # (K,)


@dataclass(kw_only=True, eq=False, repr=False)
class Words(SymbolEmission):
    """Words in one column, with what unknown ones end in, as in TnT; symbols in all others.

    A known word has the relative frequency ``n_wk / n_k``, and only labels that it was seen with.
    An unknown word is one of a class, its longest suffix that is known: see
    :class:`crfkit.features.SuffixClasses`. ``P(k | suffix)`` is estimated from rare words by
    successive abstraction, from shorter suffixes to longer ones::

        P(k | s) = (f(k | s) + theta P(k | s without its first letter)) / (1 + theta)

    where ``f`` are relative frequencies, the shortest suffix is none, apart for upper and lower
    case, and before that come all rare words and ``P(k)``. The joint distribution of classes and
    labels is ``P(k | s)`` times the share of the class among rare words, times how many words occur
    once, since so many tokens are expected to be of words that are new (Good and Turing). So what a
    label emits, known words and classes of unknown ones, adds up to 1.

    Labels that are hardly possible for a class all have one small probability. No class forbids a
    label.

    Parameters
    ----------
    column : int or str, default=0
        The column of the words; all others are :class:`Categorical`.
    max_length : int, default=10
        Letters of a suffix at most.
    max_count : int, default=10
        Words that occur so often, or less, are those that suffixes are learned from.
    theta : float, optional
        Weight of the more general suffix; if not given, the standard deviation of ``P(k)``.
    backoff : float, default=0.0
        Above 0, words may have labels that they were not seen with: as if each had been seen so
        many times more, with the labels of its suffix.
    alpha : float, default=0.1
        As of `Categorical`, for the other columns.
    columns, min_freq
        As of :class:`crfkit.features.SymbolVectorizer`, which reads the tokens.

    Notes
    -----
    The estimates do not maximize the likelihood, so that EM, which labels that are not known need,
    refuses them.

    References
    ----------
    T. Brants: TnT - a statistical part-of-speech tagger. ANLP 2000.
    C. Samuelsson: Morphological tagging based entirely on Bayesian inference. NODALIDA 1993.
    I. J. Good: The population frequencies of species and the estimation of population parameters.
    Biometrika 40 (1953).
    """

    is_maximizer = False

    column: int | str = 0
    max_length: int = 10
    max_count: int = 10
    theta: float | None = None
    backoff: float = 0.0
    alpha: float = 0.1
    columns: list[str] | None = None
    min_freq: int = 0

    def vectorizer(self) -> SymbolVectorizer:
        """Return what packs words and symbols."""
        return SymbolVectorizer(
            columns=self.columns, min_freq=self.min_freq, suffixes=self._suffixes()
        )

    def estimate(self, statistics: Statistics, data: PackedSequences) -> SymbolTables:
        """Return the distributions of counts of words, and of classes of unknown ones."""
        self._check_parameters()
        counts, names = listed_counts(statistics[0]), data.names
        if not isinstance(names, SymbolNames):
            raise ValueError(
                "emissions='words' needs to know what words end in: give X as words, not as "
                "PackedSequences of other attributes."
            )
        suffixes = self._suffixes()
        c, starts = suffixes.place(names.columns), names.starts.tolist()
        parts = [
            additive(counts[b:e], [0, e - b], self.alpha)
            if n != c
            else self._of_words(counts[b:e], names.suffix_tree(c, suffixes))
            for n, (b, e) in enumerate(zip(starts[:-1], starts[1:], strict=True))
        ]
        return SymbolTables.joined(parts)

    def log_prior(self, tables: SymbolTables) -> float:
        """Return 0: there is none."""
        return 0.0

    def _suffixes(self) -> SuffixClasses:
        return SuffixClasses(
            column=self.column, max_length=self.max_length, max_count=self.max_count
        )

    def _check_parameters(self) -> None:
        for name in ("alpha", "backoff"):
            check_number(name, getattr(self, name))
        if self.theta is not None:
            check_number("theta", self.theta)

    def _of_words(self, counts: sp.csr_array, tree: SuffixTree) -> SymbolTables:
        """Return the tables of words and of classes, given how often each has a label."""
        n_words = len(tree.leaf)
        totals = counts.sum(axis=0)
        size = float(totals.sum())
        prior = totals / size if size > 0 else totals
        words, others = counts[:n_words], counts[n_words:]
        uses = words.sum(axis=1)
        rare = (uses > 0) & (uses <= self.max_count)
        labels = class_labels(tree, words, rare, prior, self._theta(prior))
        weight = np.ones(len(labels))
        weight += np.bincount(tree.leaf[rare], uses[rare], minlength=len(labels))
        once = uses[(uses > 0) & (uses <= 1.0)].sum()
        weight *= max(float(once), size / (size + 1.0)) / weight.sum()
        least = NEGLIGIBLE * prior
        listed = listed_cells(labels, (labels >= least) & (prior > 0))
        listed.data *= np.repeat(weight, np.diff(listed.indptr))
        listed = listed + others if others.nnz else listed
        of_classes = _Joint(listed, least * float(weight.min()))
        of_words = self._joint(words, uses, labels, weight, tree.leaf, prior)
        return normalized(of_words, of_classes)

    def _theta(self, prior: FloatArray) -> float:
        if self.theta is not None:
            return self.theta
        return float(prior.std(ddof=1)) if len(prior) > 1 else 0.0

    def _joint(
        self,
        words: sp.csr_array,
        uses: FloatArray,
        labels: FloatArray,
        weight: FloatArray,
        leaf: IntArray,
        prior: FloatArray,
    ) -> _Joint:
        """Return the weights of known words; those without counts are as unknown ones."""
        least = NEGLIGIBLE * prior
        backoff, unseen = self.backoff, uses == 0
        mixed = np.flatnonzero(unseen) if backoff == 0.0 else np.arange(len(uses))
        step = max(1, ROWS // max(len(prior), 1))
        blocks = []
        for n in range(0, len(mixed), step):
            chosen = mixed[n : n + step]
            of_class, count = labels[leaf[chosen]], uses[chosen, None]
            shares = words[chosen].toarray() + backoff * of_class
            shares /= np.maximum(count + backoff, TINY)
            shares = np.where(unseen[chosen, None], of_class, shares)
            mass = np.where(count > 0, count, weight[leaf[chosen], None])
            blocks.append(sp.csr_array(np.where(shares >= least, shares, 0.0) * mass))
        floor = least * float(uses[~unseen].min(initial=1.0)) if backoff > 0 else 0.0 * prior
        if not blocks:
            return _Joint(words, floor)
        stacked = sp.csr_array(sp.vstack(blocks, format="csr"))
        if backoff > 0:
            return _Joint(stacked, floor)
        rows = sp.coo_array(stacked)
        placed = rows.data, (mixed[rows.coords[0]], rows.coords[1])
        return _Joint(sp.csr_array(words + sp.csr_array(placed, shape=words.shape)), floor)


def class_labels(
    tree: SuffixTree, words: sp.csr_array, rare: BoolArray, prior: FloatArray, theta: float
) -> FloatArray:
    """Return ``P(k | class)`` by successive abstraction, (H, K), from counts of words, (W, K)."""
    labels = _sums(np.where(rare, tree.end, -1), words, (len(tree.parent), len(prior)))
    kinds = np.unique(tree.shape[tree.shape >= 0])
    places = np.where(rare & (tree.shape >= 0), np.searchsorted(kinds, tree.shape), -1)
    more = _sums(places, words, (len(kinds), len(prior)))
    order = frozen(np.concatenate(tree.levels())), frozen(tree.parent)
    classes_abstract(*order, frozen(kinds), frozen(more), frozen(prior), float(theta), labels)
    return labels


def _sums(places: IntArray, rows: sp.csr_array, shape: tuple[int, int]) -> FloatArray:
    """Return the sums of the rows of each place, (H, K); those of -1 are left out."""
    every = np.repeat(places, np.diff(rows.indptr))
    kept = every >= 0
    cells = every[kept] * shape[1] + rows.indices[kept]
    sums = np.bincount(cells, rows.data[kept], shape[0] * shape[1])
    return sums.astype(np.float64, copy=False).reshape(shape)


def normalized(*blocks: _Joint) -> SymbolTables:
    """Return the conditional distributions of weights of symbols and labels, a column of blocks."""
    listed = sp.csr_array(sp.vstack([block.listed for block in blocks], format="csr"))
    listed.eliminate_zeros()
    listed.sort_indices()
    sizes = [block.listed.shape[0] for block in blocks]
    starts = np.cumsum([0, *sizes])
    floor = np.array([block.floor for block in blocks])
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = SymbolTables.of(starts, np.zeros(len(sizes), np.int64), listed, floor)
        totals = joint.sums(joint.values, floor)[0]
        floor = np.where(totals > 0, np.log(floor) - np.log(totals), -np.log(starts[-1]))
        values = np.log(joint.values) - np.log(totals)[joint.labels]
        return joint._replace(values=values, floor=floor)
