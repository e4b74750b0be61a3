"""Which weights a model has: attributes of transitions, and many labels."""

import itertools
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


@pytest.mark.parametrize("in_part", [False, True])
@pytest.mark.parametrize("min_freq", [0, 2])
@pytest.mark.parametrize("blocks", ["sparse", "dense"])
def test_triples_that_occur_often_enough_have_a_weight(rng, blocks, min_freq, in_part):
    lengths = (4, 1, 6, 3)
    data, x, codes = make(rng, 3, lengths, blocks)
    labels, allowed = [{int(code)} for code in codes], None
    if in_part:  # a token that may have any label counts for none
        allowed = rng.random((len(codes), 3)) < 0.6
        allowed[np.arange(len(codes)), codes] = True
        labels = [set() if row.all() else set(np.flatnonzero(row).tolist()) for row in allowed]
    model = choose_features(data, codes, 3, min_freq=min_freq, allowed=allowed)
    steps = model.transition_attributes
    found = [
        (attribute, *divmod(int(column), 3))
        for attribute in range(3)
        for column in steps.columns[steps.ptr[attribute] : steps.ptr[attribute + 1]]
    ]
    firsts = np.cumsum((0, *lengths[:-1]))
    counts, pairs = {}, {}
    for token in set(range(len(codes))) - set(firsts):
        for pair in itertools.product(labels[token - 1], labels[token]):
            pairs[pair] = pairs.get(pair, 0) + 1
            for attribute in np.flatnonzero(x[token]):
                triple = int(attribute), *pair
                counts[triple] = counts.get(triple, 0) + 1
    assert found == sorted(triple for triple, n in counts.items() if n >= max(1, min_freq))
    chosen = zip(model.transition_from.tolist(), model.transition_to.tolist(), strict=True)
    assert list(chosen) == sorted(pair for pair, n in pairs.items() if n >= max(1, min_freq))
    uses = {k: sum(k in row for row in labels) for k in range(3)}  # of the attribute of all tokens
    assert model.state.columns.tolist() == [k for k in uses if uses[k] >= max(1, min_freq)]


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
