"""A genome drawn from known laws, on which models with a label a base are wrong.

The experiment of Gross, Russakovsky, Do and Batzoglou (2006), "Training conditional random fields
for maximum labelwise accuracy", section 4, without a real genome.
"""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch, check_random_state

from crfkit._params import check_positive, check_whole
from crfkit._types import CodeArray, FloatArray
from crfkit.datasets.synthetic import RandomState, RandomStream

BASES = "ACGT"
INTERGENIC, CODING, INTRON = LABELS = ("intergenic", "coding", "intron")
COMPOSITION = np.array([0.29, 0.21, 0.21, 0.29])
START, STOPS = "ATG", ("TAA", "TAG", "TGA")
# Means of the geometric distributions that are mixed, and the share of the first.
LENGTHS = {INTERGENIC: (300, 2000, 0.5), CODING: (60, 250, 0.4), INTRON: (70, 700, 0.7)}
# No part is shorter: an exon holds a codon, an intron its ends.
SHORTEST = {INTERGENIC: 1, CODING: 3, INTRON: 6}
MEAN_EXONS = 3
OUTSIDE = -1  # the codon phase of what is not coding


def _codes(text: str) -> CodeArray:
    return np.array([BASES.index(base) for base in text], np.int32)


class _Laws(NamedTuple):
    """What the parts of a genome are drawn from.

    Attributes
    ----------
    trimers : dict of str to ndarray of shape (4, 4, 4)
        Of what is not coding: the distribution of a base (last axis), given the two before it.
    codons : ndarray of shape (4, 4, 4)
        The distribution of the codons of a gene; stops have the probability 0.
    """

    trimers: dict[str, FloatArray]
    codons: FloatArray

    @classmethod
    def drawn(cls, concentration: float, random: RandomStream) -> _Laws:
        """Draw laws that differ the more from independent bases, the smaller `concentration` is."""
        trimers = {
            label: random.dirichlet(concentration * COMPOSITION, size=(4, 4))
            for label in (INTERGENIC, INTRON)
        }
        independent = np.multiply.outer(np.outer(COMPOSITION, COMPOSITION), COMPOSITION)
        codons = random.gamma(concentration / 4.0, size=(4, 4, 4)) * independent
        for stop in STOPS:
            codons[tuple(_codes(stop))] = 0.0
        return cls(trimers, codons / codons.sum())

    def text(self, label: str, length: int, random: RandomStream) -> CodeArray:
        """Draw what is not coding, base by base."""
        rows = np.cumsum(self.trimers[label], axis=-1)[..., :-1].reshape(16, 3).tolist()
        codes, (before, last) = [], random.choice(4, size=2, p=COMPOSITION).tolist()
        for share in random.uniform(size=length).tolist():
            before, last = last, bisect(rows[4 * before + last], share)
            codes.append(last)
        return np.array(codes, np.int32)

    def coding(self, n_codons: int, random: RandomStream) -> CodeArray:
        """Draw the codons of a gene, with its start and its stop."""
        drawn = random.choice(64, size=n_codons, p=self.codons.ravel())
        codes = np.stack(np.unravel_index(drawn, (4, 4, 4)), axis=1).astype(np.int32)
        codes[0], codes[-1] = _codes(START), _codes(STOPS[random.randint(len(STOPS))])
        return codes.ravel()


def _draw_lengths(label: str, n: int, random: RandomStream) -> list[int]:
    """Draw lengths from a mixture of two geometric distributions."""
    short, long, share = LENGTHS[label]
    means = np.where(random.uniform(size=n) < share, short, long)
    lengths: list[int] = np.maximum(random.geometric(1.0 / means), SHORTEST[label]).tolist()
    return lengths


Part = tuple[str, CodeArray]


def _draw_gene(laws: _Laws, random: RandomStream) -> list[Part]:
    """Draw a gene: exons, and between them introns, which may part a codon."""
    lengths = _draw_lengths(CODING, random.geometric(1.0 / MEAN_EXONS), random)
    lengths[-1] += -sum(lengths) % 3 + 3  # whole codons, two at least
    coding = laws.coding(sum(lengths) // 3, random)
    exons = np.split(coding, list(accumulate(lengths))[:-1])
    parts: list[Part] = [(CODING, exons[0])]
    for exon, length in zip(exons[1:], _draw_lengths(INTRON, len(exons) - 1, random), strict=True):
        intron = laws.text(INTRON, length, random)
        intron[:2], intron[-2:] = _codes("GT"), _codes("AG")
        parts += [(INTRON, intron), (CODING, exon)]
    return parts


def _draw_sequence(n_genes: int, laws: _Laws, random: RandomStream) -> list[list[Part]]:
    """Draw genes, and what lies before, between and behind them."""
    genes = [_draw_gene(laws, random) for _ in range(n_genes)]
    gaps = [
        [(INTERGENIC, laws.text(INTERGENIC, length, random))]
        for length in _draw_lengths(INTERGENIC, n_genes + 1, random)
    ]
    mixed = [part for pair in zip(gaps, genes, strict=False) for part in pair]
    return [*mixed, gaps[-1]]


def _phases(parts: list[Part]) -> CodeArray:
    """Return the place of each base of a gene in its codon, `OUTSIDE` where it has none."""
    found, seen = [], 0
    for label, codes in parts:
        places = np.arange(seen, seen + len(codes)) % 3
        found.append(places if label == CODING else np.full(len(codes), OUTSIDE))
        seen += len(codes) * (label == CODING)
    return np.concatenate(found).astype(np.int32)


def _exons(sequence: list[list[Part]]) -> list[list[tuple[int, int]]]:
    """Return the exons of each gene, as first base and the one after the last."""
    found, end = [], 0
    for parts in sequence:
        exons = []
        for label, codes in parts:
            if label == CODING:
                exons.append((end, end + len(codes)))
            end += len(codes)
        found += [exons] if exons else []
    return found


def make_gene_sequences(
    n_sequences: int = 30,
    n_genes: int = 5,
    *,
    concentration: float = 40.0,
    random_state: RandomState = None,
) -> Bunch:
    """Draw sequences of bases with genes: exons, introns between them, and what is around.

    A base that is not coding is drawn given the two before it, by a law of introns and one of what
    is intergenic. Coding bases are codons, drawn from one law, so that a base has one of three laws
    by its place in the codon, which the label ``"coding"`` hides. A gene begins with ``ATG`` and
    ends with its only stop codon; introns begin with ``GT`` and end with ``AG``, and the codons go
    on behind them. Lengths are mixtures of two geometric distributions, short ones and long ones.

    A chain with three labels and weights of trimers is wrong about both, codons and lengths: the
    weights that make the labels most probable need not be those that make most of them right.

    Parameters
    ----------
    n_sequences, n_genes : int, default=30 and 5
        S sequences of so many genes each, about 2,000 bases a gene with what lies before it.
    concentration : float, default=40
        The laws of introns, of codons and of what is intergenic are drawn around independent bases
        of one composition, the nearer the larger this is: the labels are then harder to find.
    random_state : int, RandomState or None
        Seeds the laws and the sequences. Data of one genome for training and testing are drawn
        together and split.

    Returns
    -------
    data : Bunch
        X, y : list of list of list of str, list of list of str
            The base of each token as its only attribute, and its label.
        genes : list of list of list of (int, int)
            The exons of each gene of each sequence: first base, and the one after the last.
        phases : list of ndarray of shape (T,)
            The place in its codon, 0, 1 or 2, of each coding base; -1 of others.
        trimers : dict of str to ndarray of shape (4, 4, 4)
            Of introns and of what is intergenic: the last axis is the base, before it the two bases
            before, oldest first.
        codons : ndarray of shape (4, 4, 4)
            The distribution of codons within a gene.
        states, symbols : list of str
            The labels, and the bases in the order of the tables; `concentration` is as given.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of another type.

    References
    ----------
    Gross, Russakovsky, Do and Batzoglou (2006), section 4.

    Examples
    --------
    >>> data = make_gene_sequences(1, 1, random_state=2)
    >>> data.genes
    [[[(769, 979)]]]
    >>> "".join(base for [base] in data.X[0][769:778])
    'ATGATATTC'
    """
    check_whole("n_sequences", n_sequences)
    check_whole("n_genes", n_genes)
    check_positive("concentration", concentration)
    random = check_random_state(random_state)
    laws = _Laws.drawn(float(concentration), random)
    genome = [_draw_sequence(n_genes, laws, random) for _ in range(n_sequences)]
    flat = [[part for parts in sequence for part in parts] for sequence in genome]
    return Bunch(
        X=[[[BASES[code]] for _, codes in parts for code in codes.tolist()] for parts in flat],
        y=[[label for label, codes in parts for _ in range(len(codes))] for parts in flat],
        genes=[_exons(sequence) for sequence in genome],
        phases=[np.concatenate([_phases(parts) for parts in sequence]) for sequence in genome],
        **laws._asdict(),
        states=list(LABELS),
        symbols=list(BASES),
        concentration=concentration,
    )
