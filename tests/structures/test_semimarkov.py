"""Sums and maxima over segmentations are those of enumeration."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from crfkit.structures import (
    Chain,
    ChainPotentials,
    NoSegmentationError,
    SegmentPotentials,
    SemiMarkov,
    potentials,
    semimarkov,
)
from crfkit.structures.potentials import make_spans, no_spans
from tests.oracles import (
    all_segmentations,
    chain_scores,
    codes_of,
    enumerated_segments,
    random_segment_scores,
    segment_parts,
    segment_scores,
)
from tests.sampling import examples

SEGMENTS = SemiMarkov()


def summed(scores, weight=None):
    out = SEGMENTS.zeros(scores)
    weight = np.ones(len(scores.offsets) - 1) if weight is None else weight
    return SEGMENTS.log_partition(scores, weight, out), out


def summed_by_logarithms(monkeypatch, scores, weight=None):
    with monkeypatch.context() as patch:
        patch.setattr(potentials, "LARGE", -1.0)
        return summed(scores, weight)


def assert_sums_agree(scores, weight, tolerance=1e-9):
    log_z, out = summed(scores, weight)
    expected_z, expected = enumerated_segments(scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=tolerance)
    np.testing.assert_allclose(out.unary, expected.unary, atol=tolerance)
    np.testing.assert_allclose(out.pair, expected.pair, atol=tolerance)


def sequences(scores):
    return zip(scores.offsets[:-1].tolist(), scores.offsets[1:].tolist(), strict=True)


def of_codes(scores, s):
    """The score of each segmentation of a sequence, by its codes."""
    size = scores.pair.shape[1]
    return {tuple(codes_of(path, size)): score for path, score in all_segmentations(scores, s)}


def whole_scores(unary, pair, longest, *, lengths=None, spans=None, offsets=None):
    """Scores of one sequence with one table of steps."""
    size = pair.shape[1]
    pair = np.concatenate([pair, np.zeros((longest, size)) if lengths is None else lengths])
    offsets = np.array([0, len(unary)]) if offsets is None else offsets
    spans = no_spans(len(unary)) if spans is None else spans
    return SegmentPotentials(unary, pair, np.zeros(1, np.uint32), offsets, 0, size, longest, spans)


SCALES = (0.1, 1.0, 50.0, 1e3, 1e4)


@examples(30)
@given(segment_scores(SCALES))
def test_sums_are_those_of_enumeration(scores):
    weight = np.array([1.0, -0.5, 2.0])[: len(scores.offsets) - 1]
    assert_sums_agree(scores, weight)


@examples(20)
@given(
    segment_scores((1.0, 20.0)), st.sampled_from([1.0, 50.0, 200.0, 600.0]), st.integers(0, 2**16),
    st.booleans(),
)  # fmt: skip
def test_scores_of_tokens_may_be_spread_however_the_others_are(scores, spread, seed, ends):
    rng = np.random.default_rng(seed)
    size, unary = scores.pair.shape[1], scores.unary.copy()
    columns = slice(None) if ends else slice(None, 2 * size)
    unary[:, columns] += spread * rng.normal(size=unary[:, columns].shape)
    assert_sums_agree(scores._replace(unary=unary), np.ones(len(scores.offsets) - 1))


@examples(12)
@given(segment_scores(SCALES))
def test_the_best_segmentation_is_that_of_enumeration(scores):
    codes, value = SEGMENTS.argmax(scores)
    for s, (b, e) in enumerate(sequences(scores)):
        found = of_codes(scores, s)
        best = max(found.values())
        np.testing.assert_allclose(value[s], best, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found[tuple(codes[b:e])], best, rtol=1e-12, atol=1e-12)


@examples(10)
@given(segment_scores())
def test_scores_of_segmentations_are_those_of_their_parts(scores):
    size, n_tokens = scores.pair.shape[1], len(scores.unary)
    for s, (b, e) in enumerate(sequences(scores)):
        for path, expected in all_segmentations(scores, s)[::17]:
            codes = np.full(n_tokens, size, np.int32)
            codes[b:e] = codes_of(path, size)
            found = SEGMENTS.score(scores, codes)[s]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@examples(10)
@given(segment_scores(), st.integers(0, 2**16))
def test_add_path_adds_the_parts_of_the_score(scores, seed):
    rng = np.random.default_rng(seed)
    scores = scores._replace(unary=rng.normal(size=scores.unary.shape),
                             pair=rng.normal(size=scores.pair.shape))  # fmt: skip
    codes, weight = SEGMENTS.argmax(scores)[0], rng.normal(size=len(scores.offsets) - 1)
    out = SEGMENTS.zeros(scores)
    SEGMENTS.add_counts(scores, codes, weight, out)
    total = (out.unary * scores.unary).sum() + (out.pair * scores.pair).sum()
    np.testing.assert_allclose(total, weight @ SEGMENTS.score(scores, codes), atol=1e-11)


def test_a_segment_that_is_too_long_has_no_score_and_no_part():
    scores = random_segment_scores(0, [4], 2, 2)
    codes = np.array([2, 0, 0, 3], np.int32)
    assert SEGMENTS.score(scores, codes)[0] == -np.inf
    out = SEGMENTS.zeros(scores)
    SEGMENTS.add_counts(scores, codes, np.ones(1), out)
    lengths = out.pair[scores.n_transitions :][: scores.n_lengths]
    np.testing.assert_array_equal(lengths, [[0.0, 1.0], [0.0, 0.0]])


@examples(12)
@given(segment_scores(SCALES))
def test_the_expected_counts_fit_together(scores):
    _, out = summed(scores)
    size = scores.n_labels
    going, begins, ends, alone = np.split(out.unary, 4, axis=1)
    lengths = out.pair[scores.n_transitions :][: scores.n_lengths]
    np.testing.assert_allclose((going + begins).sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(begins.sum(axis=0), lengths.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(begins.sum(axis=0), ends.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(alone.sum(axis=0), lengths[0], atol=1e-9)
    assert (alone <= np.minimum(begins, ends) + 1e-9).all()
    tokens = np.arange(1, scores.n_lengths + 1) @ lengths
    np.testing.assert_allclose(tokens, (going + begins).sum(axis=0), atol=1e-8)
    first = scores.offsets[:-1][np.diff(scores.offsets) > 0]
    steps = out.pair[: scores.n_transitions].reshape(-1, size, size).sum(axis=(0, 1))
    later = begins.sum(axis=0) - begins[first].sum(axis=0)
    np.testing.assert_allclose(steps, later, atol=1e-9)


@examples(12)
@given(segment_scores(SCALES))
def test_the_best_segmentation_is_never_above_log_z_and_its_score_is_its_value(scores):
    codes, value = SEGMENTS.argmax(scores)
    log_z, _ = summed(scores)
    assert (value <= log_z + 1e-9 * np.maximum(1.0, np.abs(log_z))).all()
    np.testing.assert_allclose(SEGMENTS.score(scores, codes), value, rtol=1e-12, atol=1e-12)


def as_segments(scores):
    """The scores of a chain as those of segments of one token, to which three scores add up."""
    size, n_tokens = scores.unary.shape[1], len(scores.unary)
    half, quarter = (
        np.where(np.isfinite(scores.unary), share * scores.unary, scores.unary)
        for share in (0.5, 0.25)
    )
    unary = np.concatenate([np.full_like(half, 7.0), half, quarter, quarter], axis=1)
    pair = np.concatenate([scores.pair.reshape(-1, size), np.zeros((1, size))])
    return SegmentPotentials(
        unary, pair, scores.transition_index, scores.offsets, scores.first,
        len(scores.pair) * size, 1, no_spans(n_tokens),
    )  # fmt: skip


@examples(12)
@given(chain_scores((0.1, 1.0, 30.0, 1e4)))
def test_segments_of_one_token_are_a_chain(scores):
    size, segments = scores.unary.shape[1], as_segments(scores)
    weight = np.array([1.0, -0.5, 2.0])[: len(scores.offsets) - 1]
    expected = Chain().zeros(scores)
    expected_z = Chain().log_partition(scores, weight, expected)
    log_z, out = summed(segments, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-11)
    n_steps = segments.n_transitions
    np.testing.assert_allclose(
        out.pair[:n_steps], expected.pair.reshape(-1, size), rtol=0, atol=1e-10
    )
    going, *others = np.split(out.unary, 4, axis=1)
    for counts in others:
        np.testing.assert_allclose(counts, expected.unary, rtol=0, atol=1e-10)
    np.testing.assert_allclose(going, 0.0, atol=1e-10)
    labels, value = Chain().argmax(scores)
    codes, best = SEGMENTS.argmax(segments)
    np.testing.assert_allclose(best, value, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(codes, labels + size)


@pytest.mark.parametrize("n_labels", [8, 9, 17])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_labels_of_several_vectors(n_labels, forbidden):
    scores = random_segment_scores(
        n_labels, [3, 0, 2], n_labels, 3, forbidden=forbidden, own_steps=True
    )
    assert_sums_agree(scores, np.array([1.0, 2.0, -0.5]))
    codes, value = SEGMENTS.argmax(scores)
    for s, (b, e) in enumerate(sequences(scores)):
        found = of_codes(scores, s)
        np.testing.assert_allclose(value[s], max(found.values()), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found[tuple(codes[b:e])], value[s], rtol=1e-12, atol=1e-12)


def test_labels_whose_vectors_have_other_longest_lengths(monkeypatch):
    scores = random_segment_scores(1, [12, 5], 9, 7)
    lengths = scores.pair[scores.n_transitions :]
    lengths[3:7, :8] = -np.inf
    lengths[:2, 8] = -np.inf
    expected_z, expected = summed_by_logarithms(monkeypatch, scores)
    log_z, out = summed(scores)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-11)
    np.testing.assert_allclose(out.pair, expected.pair, atol=1e-11)


@pytest.mark.parametrize("longest", [5, 8, 64])
def test_lengths_that_no_sequence_has_change_nothing(longest):
    scores = random_segment_scores(3, [5, 1], 2, 5)
    n_steps = scores.n_transitions
    more = np.full((longest - 5, 2), 3.0)
    pair = np.insert(scores.pair, n_steps + 5, more, axis=0)
    wider = scores._replace(pair=pair, n_lengths=longest)
    assert_sums_agree(wider, np.ones(2))
    log_z, out = summed(wider)
    np.testing.assert_array_equal(log_z, summed(scores)[0])
    np.testing.assert_array_equal(out.pair[n_steps + 5 : n_steps + longest], 0.0)
    np.testing.assert_array_equal(SEGMENTS.argmax(wider)[0], SEGMENTS.argmax(scores)[0])


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_shortest_lengths_are_kept(scale):
    scores = random_segment_scores(4, [7, 6], 2, 5, scale=scale)
    scores.pair[scores.n_transitions :][:2] = -np.inf
    assert_sums_agree(scores, np.ones(2))
    _, out = summed(scores)
    np.testing.assert_array_equal(out.pair[scores.n_transitions :][:2], 0.0)
    codes, _ = SEGMENTS.argmax(scores)
    starts = np.append(np.flatnonzero(codes >= 2), 13)
    assert (np.diff(starts) >= 3).all()


def test_one_label_and_one_token_leave_one_segmentation():
    scores = random_segment_scores(0, [1], 1, 4, scale=1e4)
    log_z, out = summed(scores)
    codes, value = SEGMENTS.argmax(scores)
    np.testing.assert_allclose(log_z, value, rtol=1e-14)
    np.testing.assert_allclose(out.unary, [[0.0, 1.0, 1.0, 1.0]], rtol=1e-11)
    assert codes.tolist() == [1]


@pytest.mark.parametrize("lengths", [[], [0], [0, 0]])
def test_sequences_without_tokens_have_one_segmentation_of_score_zero(lengths):
    scores = random_segment_scores(0, lengths, 2, 3)
    log_z, out = summed(scores)
    codes, value = SEGMENTS.argmax(scores)
    assert log_z.tolist() == value.tolist() == [0.0] * len(lengths)
    assert len(codes) == 0
    assert not out.pair.any()
    assert SEGMENTS.score(scores, codes).tolist() == [0.0] * len(lengths)


def enumerated_posterior(scores, seed):
    """Logarithms of marginals, slopes drawn for them, and the gradient that these stand for."""
    rng, n_codes = np.random.default_rng(seed), scores.n_codes
    logs, gradient = np.full((len(scores.unary), n_codes), -np.inf), SEGMENTS.zeros(scores)
    slopes = np.zeros_like(logs)
    for s, (b, e) in enumerate(sequences(scores)):
        if b == e:
            continue
        found = [each for each in all_segmentations(scores, s) if each[1] > -np.inf]
        shares = np.array([score for _, score in found])
        shares -= logsumexp(shares)
        codes = np.array([codes_of(path, scores.n_labels) for path, _ in found])
        for i, t in enumerate(range(b, e)):
            np.logaddexp.at(logs[t], codes[:, i], shares)
            drawn = np.where(logs[t] > -np.inf, rng.normal(size=n_codes), 0.0)
            slopes[t] = [drawn, drawn * np.exp(logs[t])][rng.integers(2)]
            slopes[t, np.argmax(logs[t])] -= slopes[t].sum()
        parts = np.arange(b, e), codes
        moved = slopes[parts] * np.exp(shares[:, None] - logs[parts])
        for (path, _), amount in zip(found, moved.sum(axis=1), strict=True):
            for kind, place in segment_parts(scores, s, path):
                getattr(gradient, kind)[place] += amount
    return logs, slopes, gradient


def assert_pulled_back(posterior, scores, seed):
    logs, slopes, gradient = enumerated_posterior(scores, seed)
    np.testing.assert_allclose(posterior.marginals, np.exp(logs), atol=1e-9)
    tokens, codes = np.indices(logs.shape).reshape(2, -1)
    found = posterior.log_probability(tokens, codes).reshape(logs.shape)
    np.testing.assert_allclose(found, logs, rtol=1e-11, atol=1e-9)
    out = SEGMENTS.zeros(scores)
    posterior.pull_back(slopes, out)
    np.testing.assert_allclose(out.unary, gradient.unary, atol=1e-9)
    np.testing.assert_allclose(out.pair, gradient.pair, atol=1e-9)


@pytest.mark.parametrize("by_logarithms", [False, True])
@examples(10)
@given(segment_scores(SCALES), st.integers(0, 2**16))
def test_slopes_are_pulled_back_however_small_the_probabilities_are(by_logarithms, scores, seed):
    """Of functions that are steep where a probability underflows too."""
    with pytest.MonkeyPatch.context() as patch:
        if by_logarithms:
            patch.setattr(potentials, "LARGE", -1.0)
        posterior = SEGMENTS.posterior(scores)
    assert_pulled_back(posterior, scores, seed)


@pytest.mark.parametrize("by_logarithms", [False, True])
@examples(12)
@given(segment_scores((0.1, 1.0, 50.0, 1e3)), st.integers(0, 2**16))
def test_products_with_the_hessian_are_covariances(by_logarithms, scores, seed):
    rng = np.random.default_rng(seed)
    tangent = scores.with_arrays(*(rng.normal(size=each.shape) for each in scores.arrays()))
    weight, expected = rng.normal(size=len(scores.offsets) - 1), SEGMENTS.zeros(scores)
    for s in range(len(weight)):
        found = all_segmentations(scores, s)
        shares = np.array([score for _, score in found], float)
        shares = np.exp(shares - logsumexp(shares))
        places = [list(segment_parts(scores, s, path)) for path, _ in found]
        moves = np.array([sum(getattr(tangent, kind)[at] for kind, at in path) for path in places])
        for path, amount in zip(places, weight[s] * shares * (moves - shares @ moves), strict=True):
            for kind, place in path:
                getattr(expected, kind)[place] += amount
    out = SEGMENTS.zeros(scores)
    with pytest.MonkeyPatch.context() as patch:
        if by_logarithms:
            patch.setattr(potentials, "LARGE", -1.0)
        SEGMENTS.hessian_product(scores, tangent, weight, out)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-9)
    np.testing.assert_allclose(out.pair, expected.pair, atol=1e-9)


@pytest.mark.parametrize("constant", [0.0, 1e3])
def test_slopes_of_long_sequences_keep_their_digits(monkeypatch, constant):
    """A score that all lengths have, of tokens and of segments alike, moves no probability."""
    scores = random_segment_scores(5, [8_000, 3], 9, 6)
    scores.pair[scores.n_transitions :][: scores.n_lengths] += constant * np.arange(6)[:, None]
    posterior, found = SEGMENTS.posterior(scores), SEGMENTS.zeros(scores)
    monkeypatch.setattr(potentials, "LARGE", -1.0)
    slow, expected = SEGMENTS.posterior(scores), SEGMENTS.zeros(scores)
    labels = SEGMENTS.argmax(scores)[0]
    np.testing.assert_allclose(posterior.log_z, slow.log_z, rtol=1e-12)
    np.testing.assert_allclose(posterior.marginals, slow.marginals, atol=1e-10)
    slopes = slow.marginals - (labels[:, None] == np.arange(scores.n_codes))
    for each, out in ((posterior, found), (slow, expected)):
        each.pull_back(slopes, out)
    np.testing.assert_allclose(found.unary, expected.unary, atol=1e-9)
    np.testing.assert_allclose(found.pair, expected.pair, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("longest", [8, 64])
def test_a_hundred_thousand_tokens_agree_with_sums_of_logarithms(monkeypatch, longest):
    scores = random_segment_scores(0, [100_000 if longest == 8 else 10_000], 3, longest)
    log_z, out = summed(scores)
    expected_z, expected = summed_by_logarithms(monkeypatch, scores)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-9)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=1e-9)
    codes, value = SEGMENTS.argmax(scores)
    assert value[0] < log_z[0]
    np.testing.assert_allclose(SEGMENTS.score(scores, codes), value, rtol=1e-12)


def test_long_segments_keep_their_digits(monkeypatch):
    """Segments of 2,000 tokens each, which no score of a shorter one can replace."""
    n_tokens, longest = 6_000, 2_000
    lengths = np.full((longest, 2), -np.inf)
    lengths[-1] = 0.0
    rng = np.random.default_rng(0)
    scores = whole_scores(
        rng.normal(size=(n_tokens, 8)), rng.normal(size=(2, 2)), longest, lengths=lengths
    )
    log_z, out = summed(scores)
    expected_z, expected = summed_by_logarithms(monkeypatch, scores)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-9)
    codes, _ = SEGMENTS.argmax(scores)
    assert np.flatnonzero(codes >= 2).tolist() == [0, 2000, 4000]


def two_worlds(n_tokens):
    """Label 0 leads by 1 a token and may not have a last one; no step leads to label 1."""
    unary = np.zeros((n_tokens, 8))
    unary[:, [0, 2]] = 1.0
    unary[-1, [0, 2]] = -np.inf
    return whole_scores(unary, np.array([[0.0, -np.inf], [-np.inf, 0.0]]), 3)


def test_segments_of_vanishing_probability_may_win_in_the_end(monkeypatch):
    scores = two_worlds(1001)
    log_z, out = summed(scores)
    expected_z, expected = summed_by_logarithms(monkeypatch, scores)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-13)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-11)
    np.testing.assert_allclose(out.unary[:, [1, 3]].sum(axis=1), 1.0, rtol=1e-9)


def test_a_segment_that_never_ends_may_outweigh_all_that_do():
    """Its share of what ends so far is more than a number can hold, and times 0 it is none."""
    unary = np.zeros((18, 8))
    unary[:, [1, 3]] = -50.0
    lengths = np.zeros((20, 2))
    lengths[:-1, 0] = -np.inf
    scores = whole_scores(unary, np.zeros((2, 2)), 20, lengths=lengths)
    log_z, out = summed(scores)
    np.testing.assert_allclose(log_z, -50.0 * 18 + 17 * np.log(2.0), rtol=1e-13)
    np.testing.assert_allclose(out.unary[1:, [1, 3]], 0.5, rtol=1e-11)
    np.testing.assert_array_equal(out.unary[:, [0, 2, 4]], 0.0)


def lost_and_found():
    """Two segmentations of one score: of single tokens, and one segment beside them.

    Its share of what ends first grows beyond 1e280, and then falls back to one half. The products
    of its last scores underflow on the way, while it is not the only one that ends there.
    """
    unary = np.zeros((23, 8))
    unary[:, 0] = unary[1:22, 3] = unary[0, 5] = unary[22, 2] = -np.inf
    unary[:13, 2], unary[13:22, 1], unary[22, 3] = -50.0, -84.0, -106.0
    lengths = np.full((23, 2), -np.inf)
    lengths[0] = lengths[22, 1] = 0.0
    return whole_scores(unary, np.zeros((2, 2)), 23, lengths=lengths)


def test_a_share_that_is_lost_on_the_way_is_noticed():
    hard = lost_and_found()
    log_z, out = summed(hard)
    np.testing.assert_allclose(log_z, np.log(2.0) - 756.0, rtol=1e-13)
    np.testing.assert_allclose(out.unary[1:22, [1, 2]], 0.5, rtol=1e-10)
    easy = whole_scores(np.zeros((4, 8)), np.zeros((2, 2)), 23, lengths=hard.pair[2:])
    both = hard._replace(
        unary=np.concatenate([easy.unary, hard.unary]), offsets=np.array([0, 4, 27]),
        spans=no_spans(27),
    )  # fmt: skip
    together, counts = summed(both)
    expected_z, expected = summed(easy)
    np.testing.assert_array_equal(together, [*expected_z, *log_z])
    np.testing.assert_array_equal(counts.unary, np.concatenate([expected.unary, out.unary]))
    np.testing.assert_allclose(counts.pair, expected.pair + out.pair, rtol=1e-12)


def test_a_beginning_that_underflows_may_count_as_much_as_others():
    unary = np.zeros((3, 8))
    unary[:, 2:4] = [[0.0, -800.0], [-400.0, -np.inf], [-450.0, -400.0]]
    unary[1:, 0] = [-400.0, -450.0]
    unary[:2, 5] = -np.inf
    assert_sums_agree(whole_scores(unary, np.zeros((2, 2)), 3), np.ones(1))


def with_lengths(scores, lengths):
    """The scores with others of lengths."""
    pair, n_steps = scores.pair, scores.n_transitions
    after = pair[n_steps + scores.n_lengths :]
    pair = np.concatenate([pair[:n_steps], lengths, after])
    return scores._replace(pair=pair, n_lengths=len(lengths))


def slow_sequences(monkeypatch, scores):
    """Return which sequences are summed by logarithms, with the sums."""
    slow, plain = [], semimarkov.semimarkov_sum_log

    def counted(scores, s, *others):
        slow.append(s)
        return plain(scores, s, *others)

    with monkeypatch.context() as patch:
        patch.setattr(semimarkov, "semimarkov_sum_log", counted)
        log_z, out = summed(scores)
    return slow, log_z, out


@examples(30)
@given(segment_scores((1.0, 50.0)), st.integers(0, 2**16), st.sampled_from([0.5, 5.0, 90.0, 400.0]))
def test_lengths_may_score_along_any_line(scores, seed, steep):
    rng = np.random.default_rng(seed)
    n_steps, n_lengths = scores.n_transitions, scores.n_lengths
    slope = steep * rng.uniform(-1.0, 1.0, scores.pair.shape[1])
    lengths = scores.pair[n_steps : n_steps + n_lengths] + slope * np.arange(n_lengths)[:, None]
    forbidden = rng.random(lengths.shape) < 0.3
    forbidden[0, 0] = False
    lengths[forbidden] = -np.inf
    assert_sums_agree(with_lengths(scores, lengths), np.ones(len(scores.offsets) - 1))


def long_lengths(kind):
    """Scores of 450 lengths that grow or fall far, as they are named."""
    more = np.arange(450.0)[:, None]
    if kind == "poisson":
        return more * np.log([20.0, 200.0]) - gammaln(more + 1)
    if kind == "some":
        lengths = more * [-3.0, -2.5]
        lengths[[0, 5, 449], 0] = lengths[:100, 1] = lengths[300:, 1] = -np.inf
        return lengths
    return np.broadcast_to(more * kind, (450, 2)).copy()


@pytest.mark.parametrize("kind", ["poisson", "some", -5.0, -0.5, 0.5, 5.0])
def test_long_lengths_along_a_line_are_summed_fast_and_exactly(monkeypatch, kind):
    scores = with_lengths(random_segment_scores(2, [700, 3, 460], 2, 450), long_lengths(kind))
    expected_z, expected = summed_by_logarithms(monkeypatch, scores)
    slow, log_z, out = slow_sequences(monkeypatch, scores)
    assert slow == []
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, atol=1e-9)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("others", [[300], [2, 1000]])
@pytest.mark.parametrize("kind", ["poisson", 5.0])
def test_a_sequence_has_the_same_sums_among_others(kind, others):
    scores = with_lengths(random_segment_scores(2, [460, *others], 2, 450), long_lengths(kind))
    alone = scores.take(np.array([0]))
    log_z, out = summed(scores)
    expected_z, expected = summed(alone)
    assert log_z[0] == expected_z[0]
    np.testing.assert_array_equal(out.unary[:460], expected.unary)


def test_lengths_that_a_sequence_is_too_short_for_do_not_slow_it_down(monkeypatch):
    plain = random_segment_scores(7, [40, 60, 20], 2, 60)
    lengths = plain.pair[plain.n_transitions :][:60].copy()
    lengths[45:] = 250.0 * (-1.0) ** np.arange(15)[:, None]
    scores = with_lengths(plain, lengths)
    slow, log_z, _ = slow_sequences(monkeypatch, scores)
    assert slow == [1]
    np.testing.assert_allclose(log_z, summed_by_logarithms(monkeypatch, scores)[0], rtol=1e-12)


def test_a_line_that_fits_long_lengths_does_not_slow_down_short_sequences(monkeypatch):
    more = np.arange(1000.0)[:, None]
    plain = random_segment_scores(7, [60, 3, 60], 2, 1000)
    scores = with_lengths(plain, np.broadcast_to(-(more**2) / 200.0, (1000, 2)))
    slow, log_z, _ = slow_sequences(monkeypatch, scores)
    assert slow == []
    np.testing.assert_allclose(log_z, summed_by_logarithms(monkeypatch, scores)[0], rtol=1e-12)


def test_sequences_that_need_logarithms_leave_the_others_as_they_are():
    easy, hard = random_segment_scores(5, [6, 4], 2, 3), two_worlds(1001)
    both = whole_scores(
        np.concatenate([easy.unary[:6], hard.unary, easy.unary[6:]]), easy.pair[:2], 3,
        lengths=easy.pair[2:5], offsets=np.array([0, 6, 1007, 1011]),
    )  # fmt: skip
    alone = easy._replace(pair=both.pair, n_lengths=3, spans=no_spans(10))
    log_z, out = summed(both)
    expected_z, expected = summed(alone)
    np.testing.assert_array_equal(log_z[[0, 2]], expected_z)
    np.testing.assert_array_equal(out.unary[:6], expected.unary[:6])
    np.testing.assert_array_equal(out.unary[1007:], expected.unary[6:])


QUESTIONS = {
    "sum": lambda scores: summed(scores),
    "max": lambda scores: SEGMENTS.argmax(scores),
    "n best": lambda scores: SEGMENTS.k_best(scores, 2),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=list(QUESTIONS))
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize(
    ("forbid", "position"),
    [
        (lambda unary, lengths: unary.__setitem__((3, slice(2, 4)), -np.inf), None),
        (lambda unary, lengths: unary.__setitem__((3, slice(0, 4)), -np.inf), 3),
        (lambda unary, lengths: unary.__setitem__((slice(None), slice(4, 6)), -np.inf), 0),
        (lambda unary, lengths: lengths.__setitem__(slice(None), -np.inf), 0),
        (lambda unary, lengths: lengths.__setitem__(slice(0, 2), -np.inf), 3),
    ],
    ids=["no beginning", "no token", "no end", "no length", "too short"],
)
def test_the_error_names_the_sequence_and_the_position(ask, scale, forbid, position):
    scores = random_segment_scores(3, [5], 2, 3, scale=scale)._replace(first=10)
    n_steps = scores.n_transitions
    forbid(scores.unary, scores.pair[n_steps : n_steps + 3])
    if position is None:
        ask(scores)
        return
    words = rf"sequence 10: no segmentation is allowed: none gets past position {position}"
    with pytest.raises(NoSegmentationError, match=words) as error:
        ask(scores)
    assert (error.value.sequence, error.value.position) == (10, position)
    assert pickle.loads(pickle.dumps(error.value)).args == error.value.args


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_later_sequence_is_named_too(scale):
    scores = random_segment_scores(3, [2, 0, 3], 2, 3, scale=scale)._replace(first=10)
    scores.unary[3] = -np.inf
    for ask in (summed, SEGMENTS.argmax):
        with pytest.raises(NoSegmentationError) as error:
            ask(scores)
        assert (error.value.sequence, error.value.position) == (12, 1)


def test_scores_of_a_chain_are_refused():
    scores = ChainPotentials.of(np.zeros((2, 3)), np.zeros((1, 3, 3)), np.array([0, 2]))
    with pytest.raises(ValueError, match="SemiMarkov reads SegmentPotentials, not ChainPotentials"):
        SEGMENTS.argmax(scores)


def test_a_row_of_a_segment_that_is_too_long_is_never_used():
    scores = random_segment_scores(6, [4], 2, 2)
    spans = make_spans(4, np.array([3, 4, 4]), np.array([2, 2, 4]), np.array([0, 1, 2]))
    within = make_spans(4, np.array([3, 4]), np.array([2, 2]), np.array([0, 1]))
    for chosen in (spans, within):
        given = scores._replace(spans=chosen)
        assert_sums_agree(given, np.ones(1))
        if chosen is spans:
            log_z, out = summed(given)
        else:
            np.testing.assert_array_equal(summed(given)[0], log_z)
    np.testing.assert_array_equal(out.pair[-1], 0.0)
