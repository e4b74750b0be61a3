"""A genome drawn from known laws."""

import numpy as np
import pytest

from crfkit.datasets import make_gene_sequences


@pytest.fixture(scope="module")
def genome():
    return make_gene_sequences(16, 6, random_state=0)


def spliced(data):
    """The coding bases of each gene."""
    return [
        "".join(row[t][0] for start, stop in exons for t in range(start, stop))
        for row, genes in zip(data.X, data.genes, strict=True)
        for exons in genes
    ]


def test_genes_are_whole_codons_with_one_start_and_one_stop(genome):
    assert {len(genes) for genes in genome.genes} == {6}
    stops = {"TAA", "TAG", "TGA"}
    for text in spliced(genome):
        codons = [text[i : i + 3] for i in range(0, len(text), 3)]
        assert len(text) % 3 == 0 and codons[0] == "ATG" and codons[-1] in stops
        assert not stops & set(codons[:-1])


def test_labels_and_phases_say_where_the_exons_are(genome):
    parts = zip(genome.X, genome.y, genome.genes, genome.phases, strict=True)
    for row, labels, genes, phases in parts:
        expected = ["intergenic"] * len(row)
        for exons in genes:
            start, stop = exons[0][0], exons[-1][1]
            expected[start:stop] = ["intron"] * (stop - start)
            places = np.concatenate([phases[first:last] for first, last in exons])
            np.testing.assert_array_equal(places, np.arange(len(places)) % 3)
            for first, last in exons:
                expected[first:last] = ["coding"] * (last - first)
            for (_, last), (first, _) in zip(exons[:-1], exons[1:], strict=True):
                intron = "".join(base for (base,) in row[last:first])
                assert intron.startswith("GT") and intron.endswith("AG")
        assert labels == expected
        np.testing.assert_array_equal(phases >= 0, np.array(labels) == "coding")


def test_the_parts_have_the_share_that_their_lengths_give(genome):
    labels = np.concatenate([np.array(row) for row in genome.y])
    # Three exons a gene with two introns, seven parts between and around six genes.
    expected = {"coding": 6 * 3 * 174.0, "intron": 6 * 2 * 259.0, "intergenic": 7 * 1150.0}
    whole = sum(expected.values())
    for label, bases in expected.items():
        assert np.mean(labels == label) == pytest.approx(bases / whole, abs=0.06)
    assert len(labels) == pytest.approx(16 * whole, rel=0.15)


def test_bases_follow_the_laws(genome):
    text = np.array([genome.symbols.index(base) for row in genome.X for (base,) in row])
    inside = np.concatenate([np.array(row) for row in genome.y]) == "intergenic"
    inside[2:] &= inside[1:-1] & inside[:-2]
    places = np.flatnonzero(inside)[2:]
    counts = np.zeros((4, 4, 4))
    np.add.at(counts, (text[places - 2], text[places - 1], text[places]), 1)
    found = counts / counts.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found, genome.trimers["intergenic"], atol=0.06)


def test_a_seed_gives_the_same_genome_and_parameters_are_checked():
    first, again = (make_gene_sequences(2, 1, random_state=7) for _ in range(2))
    assert (first.X, first.y) == (again.X, again.y)
    assert first.X != make_gene_sequences(2, 1, random_state=8).X
    assert make_gene_sequences(0, 1).X == []
    [alone] = make_gene_sequences(1, 0, random_state=0).y
    assert set(alone) == {"intergenic"}
    for options in ({"n_sequences": -1}, {"n_genes": 1.5}, {"concentration": 0}):
        with pytest.raises((ValueError, TypeError), match=next(iter(options))):
            make_gene_sequences(**options)
