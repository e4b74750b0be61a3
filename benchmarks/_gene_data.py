"""Genomes with their genes: bases, and which are intergenic, coding or of an intron.

A base counts as coding, or of an intron, if it is that in a gene of either strand; what is not
translated counts as intergenic. Chromosomes are cut in the middle of what lies between genes.
"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from _conll import data_home

from crfkit import PackedSequences
from crfkit.datasets import make_gene_sequences
from crfkit.features import TemplateFeatures, transition
from crfkit.metrics import (
    flat_accuracy_score,
    flat_precision_score,
    flat_recall_score,
    segment_precision_recall_fscore_support,
)

INTERGENIC, CODING, INTRON = LABELS = ("intergenic", "coding", "intron")
# The trimer that ends at a base; and for the transition to it, those that end before it and begin
# with it, which tell where exons begin and end.
TRIMERS, WITH_ENDS = "trimers", "trimers, also of transitions"
FEATURES: dict[str, list[Any]] = {
    TRIMERS: ["w[-2]|w[-1]|w"],
    WITH_ENDS: [
        "w[-2]|w[-1]|w", transition("w[-3]|w[-2]|w[-1]"), transition("w|w[1]|w[2]"),
    ],
}  # fmt: skip
PREFIXES = {"genes_dmel": "dmel", "genes_athal": "athal"}
ORGANELLES = ("ChrM", "ChrC")
# Bases of a piece, at least.
PIECE = 10_000
SYNTHETIC = "synthetic genome"
NAMES = (*PREFIXES, SYNTHETIC)
SEQUENCES = 48
Labels = list[list[str]]


class Part(NamedTuple):
    """The trimers of each base, and the labels."""

    X: PackedSequences
    y: Labels


class Genome(NamedTuple):
    """Two halves of a genome: each is learned from, and the other one tested on."""

    even: Part
    odd: Part

    def sizes(self) -> dict[str, int | float]:
        """Return what there is of everything."""
        labels = np.concatenate([np.array(row) for part in self for row in part.y])
        shares = {label: round(float(np.mean(labels == label)), 3) for label in LABELS}
        genes = sum(map(len, transcripts([row for part in self for row in part.y])))
        return {"sequences": sum(len(part.y) for part in self), "bases": len(labels),
                "genes": genes, **shares}  # fmt: skip


def chromosomes(name: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the bases of the records of a FASTA file."""
    path = data_home() / name / f"{PREFIXES[name]}.fa.gz"
    with gzip.open(path, "rt", encoding="ascii") as file:
        for record in file.read().split(">")[1:]:
            head, *lines = record.split("\n")
            yield head.split()[0], "".join(lines)


def labels_of(name: str, lengths: dict[str, int]) -> dict[str, np.ndarray]:
    """Return the codes of the labels of each chromosome."""
    found = {chromosome: np.zeros(length, np.int8) for chromosome, length in lengths.items()}
    path = data_home() / name / f"{PREFIXES[name]}.genes.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        genes = [row for row in csv.DictReader(file, delimiter="\t") if row["#seq"] in found]
    every = [
        (found[row["#seq"]], [tuple(map(int, exon.split("-"))) for exon in row["cds"].split(";")])
        for row in genes
    ]
    for codes, exons in every:
        codes[exons[0][0] - 1 : exons[-1][1]] = LABELS.index(INTRON)
    for codes, exons in every:
        for first, last in exons:
            codes[first - 1 : last] = LABELS.index(CODING)
    return found


def pieces(codes: np.ndarray) -> list[slice]:
    """Return parts of a chromosome that end in the middle of what lies between genes."""
    ends = np.flatnonzero(np.diff(codes == 0, prepend=False, append=False))
    middles = (ends[::2] + ends[1::2]) // 2
    cuts = [0]
    for middle in middles.tolist():
        if middle - cuts[-1] >= PIECE and len(codes) - middle >= PIECE:
            cuts.append(middle)
    return [slice(a, b) for a, b in zip(cuts, [*cuts[1:], len(codes)], strict=True)]


Rows = tuple[list[str], list[list[str]]]


def real(name: str) -> tuple[list[str], Labels]:
    """Return pieces of the chromosomes of the nucleus, and their labels."""
    texts = {key: text for key, text in chromosomes(name) if key not in ORGANELLES}
    codes = labels_of(name, {key: len(text) for key, text in texts.items()})
    found: tuple[list[str], Labels] = ([], [])
    for key, text in texts.items():
        for part in pieces(codes[key]):
            found[0].append(text[part])
            found[1].append([LABELS[code] for code in codes[key][part].tolist()])
    return found


def drawn() -> tuple[list[str], Labels]:
    """Return the synthetic genome, and its labels."""
    data = make_gene_sequences(SEQUENCES, random_state=0)
    return ["".join(base for (base,) in row) for row in data.X], data.y


def load(name: str, features: str = TRIMERS, share: float = 1.0) -> Genome:
    """Return a genome, or so much of its sequences, spread over it: every other one in a half."""
    texts, labels = drawn() if name == SYNTHETIC else real(name)
    chosen = [i for i in range(len(texts)) if (i * share) % 1.0 < share]
    rows = [[[base] for base in texts[i]] for i in chosen]
    X = TemplateFeatures(FEATURES[features], columns=["w"]).fit_transform(rows)
    y = [labels[i] for i in chosen]
    return Genome(*(Part(X[half::2], y[half::2]) for half in (0, 1)))


def transcripts(y: Labels) -> list[list[tuple[int, int, str]]]:
    """Return the genes of each sequence, as segments whose labels list their exons.

    A gene is a run without intergenic bases that has a coding one; so the metrics of segments count
    it as right if all of its exons and its ends are.
    """
    found = []
    for row in y:
        genes: list[tuple[int, int, str]] = []
        start, exons = 0, []
        for label, run in itertools.groupby(row):
            length = len(list(run))
            if label == INTERGENIC and exons:
                genes.append((exons[0][0], exons[-1][1], str(exons)))
                exons = []
            if label == CODING:
                exons.append((start, start + length))
            start += length
        found.append([*genes, (exons[0][0], exons[-1][1], str(exons))] if exons else genes)
    return found


def scores(y: Labels, found: Labels) -> dict[str, float]:
    """Return accuracy, and sensitivity and specificity of coding bases, exons and genes, in %.

    As usual for genes, specificity is the share of what is found that is right: the precision.
    """
    bases = [flat(y, found, labels=[CODING], average="micro", zero_division=0)
             for flat in (flat_recall_score, flat_precision_score)]  # fmt: skip
    exons = segment_precision_recall_fscore_support(
        y, found, labels=[CODING], average="micro", scheme="runs"
    )
    genes = segment_precision_recall_fscore_support(
        transcripts(y), transcripts(found), average="micro"
    )
    values = {
        "accuracy": flat_accuracy_score(y, found),
        "transcript Sn": genes[1], "transcript Sp": genes[0],
        "exon Sn": exons[1], "exon Sp": exons[0],
        "nucleotide Sn": bases[0], "nucleotide Sp": bases[1],
    }  # fmt: skip
    return {name: 100.0 * float(value) for name, value in values.items()}
