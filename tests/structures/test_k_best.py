"""The best labelings of sequences, where enumeration of the contracts does not reach."""

from itertools import product

import numpy as np
import pytest

from crfkit.structures import Chain, ChainPotentials, SemiMarkov
from tests.oracles import all_segmentations, codes_of, random_scores, random_segment_scores


@pytest.mark.parametrize("n_labels", [9, 22, 30])
@pytest.mark.parametrize("ties", [False, True])
def test_many_labels_are_searched_as_few_are(n_labels, ties):
    scores = random_scores(n_labels, [3, 2], n_labels, shared_tables=ties, forbidden=0.2)
    if ties:
        scores = scores.with_arrays(*map(np.round, scores.arrays()))
    found, table = Chain().k_best(scores, 40), np.broadcast_to(scores.transition_index, 5)
    for s, rows in enumerate((range(3), range(3, 5))):
        paths = np.array(list(product(range(n_labels), repeat=len(rows))))[:, ::-1]
        value = sum(scores.unary[t, paths[:, i]] for i, t in enumerate(rows))
        value += sum(
            scores.pair[table[t], paths[:, i], paths[:, i + 1]] for i, t in enumerate(rows[1:])
        )
        best = np.argsort(-value, kind="stable")[:40]  # lowest last labels first
        np.testing.assert_allclose(found.scores[40 * s :][:40], value[best], rtol=1e-12)
        own = found.codes[120 * s :][: 40 * len(rows)].reshape(40, -1)
        if ties:
            np.testing.assert_array_equal(own, paths[best])
        else:
            assert set(map(tuple, own.tolist())) == set(map(tuple, paths[best].tolist()))


@pytest.mark.parametrize("n_labels", [9, 17])
def test_segments_of_many_labels_are_searched_as_those_of_few(n_labels):
    scores = random_segment_scores(n_labels, [3], n_labels, 3, own_steps=True)
    scores = scores.with_arrays(*map(np.round, scores.arrays()))
    found = SemiMarkov().k_best(scores, 60)
    ranked = sorted(
        (-score, [(label, stop - start) for start, stop, label in reversed(path)], path)
        for path, score in all_segmentations(scores, 0)
    )[:60]
    assert found.scores.tolist() == [-score for score, _, _ in ranked]
    expected = [codes_of(path, n_labels) for _, _, path in ranked]
    assert found.codes.reshape(60, 3).tolist() == expected


@pytest.mark.parametrize("structure", [Chain(), SemiMarkov()], ids=["chain", "segments"])
def test_lists_of_long_sequences_are_exact(structure):
    draw = random_scores if structure.is_chain else random_segment_scores
    sizes = (5,) if structure.is_chain else (5, 7)
    for seed, (lengths, k) in enumerate([([150, 40], 300), ([4_000], 3)]):
        scores = draw(seed, lengths, *sizes, scale=3.0)
        found = structure.k_best(scores, k)
        assert found.counts.tolist() == [k] * len(lengths)
        for s, value in enumerate(np.split(found.scores, len(lengths))):
            one = scores.take(np.array([s]))
            paths = np.split(found.codes, np.cumsum(k * np.array(lengths))[:-1])[s].reshape(k, -1)
            assert len(np.unique(paths, axis=0)) == k
            np.testing.assert_array_equal(paths[0], structure.argmax(one)[0])
            assert (np.diff(value) <= 0.0).all()
            again = one.take(np.zeros(k, np.int64))
            np.testing.assert_allclose(structure.score(again, paths.reshape(-1)), value, rtol=1e-11)


def test_all_labelings_of_equal_score_are_listed_in_order():
    scores = ChainPotentials.of(np.zeros((5, 3)), np.zeros((1, 3, 3)), np.array([0, 5]))
    found = Chain().k_best(scores, 10**9)
    expected = [path[::-1] for path in product(range(3), repeat=5)]
    assert list(map(tuple, found.codes.reshape(-1, 5).tolist())) == expected
    assert not found.scores.any()


@pytest.mark.parametrize("k", [1, 3])
def test_sequences_without_tokens_have_one_labeling(k):
    segments = random_segment_scores(0, [0, 0], 2, 3)
    chain = ChainPotentials.of(np.zeros((0, 3)), np.zeros((1, 3, 3)), np.zeros(3, np.int64))
    for found in (Chain().k_best(chain, k), SemiMarkov().k_best(segments, k)):
        assert (len(found.codes), found.scores.tolist(), found.counts.tolist()) == (
            0,
            [0.0] * 2,
            [1, 1],
        )
    nothing = ChainPotentials.of(np.zeros((0, 3)), np.zeros((1, 3, 3)), np.zeros(1, np.int64))
    assert Chain().k_best(nothing, k).counts.shape == (0,)
