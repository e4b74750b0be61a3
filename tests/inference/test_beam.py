"""Search with a beam, against the exact search and against lists of prefixes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.inference import BeamSearch, ViterbiDecoder
from crfkit.structures import Chain, ChainPotentials, SparseChain
from tests.oracles import random_scores, table_of


def prefixes(scores, width):
    """The prefixes in the beam at each token, best first: (score, labels)."""
    beam, kept = [(0.0, ())], []
    for t in range(len(scores.unary)):
        longer = {}
        for score, path in sorted(beam, key=lambda item: item[1][-1:]):
            for k in range(scores.unary.shape[1]):
                step = scores.pair[table_of(scores, t), path[-1], k] if t else 0.0
                value = (score + step) + scores.unary[t, k]
                if k not in longer or value > longer[k][0]:
                    longer[k] = (value, (*path, k))
        beam = sorted(longer.values(), key=lambda item: (-item[0], item[1][-1]))[:width]
        kept.append(beam)
    return kept


def gold_score(scores, labels, stop):
    part = scores.take_tokens(np.arange(stop), np.array([0, stop]))
    return Chain().score(part, labels[:stop])[0]


SEARCH = {
    "seed": st.integers(0, 2**32 - 1), "length": st.integers(1, 6), "n_labels": st.integers(1, 5),
    "width": st.integers(1, 5), "own": st.booleans(), "whole": st.booleans(),
}  # fmt: skip


def draw(seed, length, n_labels, own, whole):
    scores = random_scores(seed, [length], n_labels, own_steps=own)
    if whole:  # many ties
        scores = scores._replace(unary=np.round(scores.unary), pair=np.round(scores.pair))
    labels = np.random.default_rng(seed).integers(n_labels, size=length).astype(np.int32)
    return scores, labels


@given(**SEARCH)
def test_labels_are_the_best_prefix_at_the_end(seed, length, n_labels, width, own, whole):
    scores, _ = draw(seed, length, n_labels, own, whole)
    found = BeamSearch(width=width).decode(Chain(), scores)
    assert tuple(found.tolist()) == prefixes(scores, width)[-1][0][1]


@given(**SEARCH)
def test_early_update_stops_where_the_true_prefix_is_lost(
    seed, length, n_labels, width, own, whole
):
    scores, labels = draw(seed, length, n_labels, own, whole)
    path, stop = BeamSearch(width=width, update="early").violation(scores, labels)
    beams, gold = prefixes(scores, width), tuple(labels.tolist())
    if beams[-1][0][1] == gold:
        assert (tuple(path.tolist()), stop) == (gold, length)
        return
    lost = [t for t in range(length) if gold[: t + 1] not in [p for _, p in beams[t]]]
    assert stop == (lost[0] + 1 if lost else length)
    assert tuple(path[:stop].tolist()) == beams[stop - 1][0][1]


@given(**SEARCH)
def test_a_violation_is_the_largest_and_never_negative(seed, length, n_labels, width, own, whole):
    scores, labels = draw(seed, length, n_labels, own, whole)
    path, stop = BeamSearch(width=width).violation(scores, labels)
    beams = prefixes(scores, width)
    if (path[:stop] == labels[:stop]).all():
        assert stop == length
        return
    above = [beam[0][0] - gold_score(scores, labels, t + 1) for t, beam in enumerate(beams)]
    assert above[stop - 1] >= -1e-9
    assert tuple(path[:stop].tolist()) == beams[stop - 1][0][1]
    lost = any(tuple(labels[: t + 1]) not in [p for _, p in beam] for t, beam in enumerate(beams))
    if lost:
        assert above[stop - 1] >= max(above) - 1e-9
    else:
        assert stop == length


def test_a_wide_beam_is_the_exact_search(rng):
    scores = random_scores(0, [5, 0, 7, 1], 6, shared_tables=True)
    exact = ViterbiDecoder().decode(Chain(), scores)
    np.testing.assert_array_equal(BeamSearch(width=6).decode(Chain(), scores), exact)
    narrow = BeamSearch(width=1).decode(Chain(), scores)
    assert Chain().score(scores, narrow).sum() <= Chain().score(scores, exact).sum()


def test_what_cannot_be_searched_is_told():
    scores = random_scores(0, [3], 3)
    with pytest.raises(ValueError, match="width=0"):
        BeamSearch(width=0).decode(Chain(), scores)
    with pytest.raises(ValueError, match="update='late'"):
        BeamSearch(update="late").decode(Chain(), scores)
    thin = SparseChain([0], [1], 3)
    few = ChainPotentials.of(scores.unary, np.zeros((1, 1)), scores.offsets)
    with pytest.raises(ValueError, match="needs a table of all steps"):
        BeamSearch().decode(thin, few)
