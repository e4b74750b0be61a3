"""Which weights a model has: attributes of transitions, and many labels."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit.data import PackedSequences
from crfkit.potentials.linear import choose_features


def make(rng, n_labels, lengths, blocks):
    """Sequences whose steps have attributes, some of them 0."""
    n_tokens = sum(lengths)
    x = rng.normal(size=(n_tokens, 3)) * (rng.random((n_tokens, 3)) < 0.5)
    parts = {"sparse": sp.csr_array(x)} if blocks == "sparse" else {"dense": x}
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    steps = PackedSequences(**parts, offsets=offsets)
    data = PackedSequences(dense=np.ones((n_tokens, 1)), offsets=offsets).with_transitions(steps)
    return data, x, rng.integers(n_labels, size=n_tokens).astype(np.int32)


@pytest.mark.parametrize("min_freq", [0, 2])
@pytest.mark.parametrize("blocks", ["sparse", "dense"])
def test_triples_that_occur_often_enough_have_a_weight(rng, blocks, min_freq):
    lengths = (4, 1, 6, 3)
    data, x, codes = make(rng, 2, lengths, blocks)
    steps = choose_features(data, codes, 2, min_freq=min_freq).transition_attributes
    found = [
        (attribute, *divmod(int(column), 2))
        for attribute in range(3)
        for column in steps.columns[steps.ptr[attribute] : steps.ptr[attribute + 1]]
    ]
    firsts = np.cumsum((0, *lengths[:-1]))
    counts = {}
    for token in set(range(len(codes))) - set(firsts):
        for attribute in np.flatnonzero(x[token]):
            triple = int(attribute), int(codes[token - 1]), int(codes[token])
            counts[triple] = counts.get(triple, 0) + 1
    assert found == sorted(triple for triple, n in counts.items() if n >= max(1, min_freq))


@pytest.mark.parametrize("blocks", ["sparse", "dense"])
def test_steps_between_many_labels_take_little_room(rng, blocks):
    data, _, codes = make(rng, 1500, (30, 20), blocks)
    tracemalloc.start()
    try:
        model = choose_features(data, codes, 1500)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.transition_attributes.n_columns == 1500**2
    assert peak < 16 * 1500**2  # one table of counts, and which of them are not 0


@pytest.mark.parametrize("blocks", ["sparse", "dense"])
def test_nothing_occurs_as_often_as_asked_for(rng, blocks):
    data, _, codes = make(rng, 2, (4, 3), blocks)
    assert choose_features(data, codes, 2, min_freq=10**30).transition_attributes.n_parameters == 0
