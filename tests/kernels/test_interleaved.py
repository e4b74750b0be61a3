"""Sequences side by side, against enumeration; also run with the compiler switched off."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit._types import Counts
from crfkit.kernels.chain import interleaved as kernels
from crfkit.kernels.chain.arrays import ChainSums
from crfkit.structures import Chain, NoPathError, chain
from crfkit.structures.interleaved import MAX_LABELS, MIN_LANES, deal, sum_lanes
from crfkit.structures.potentials import chain_arrays, exp_pair
from tests.oracles import enumerated_sum, random_scores

LENGTHS = [2, 0, 3, 1, 1, 4, 2, 3] * 6


def lanes_sum(scores, weight):
    scores = chain_arrays(scores)
    factor, pair_shift = exp_pair(scores)
    lanes = deal(scores)
    out = Counts(np.zeros(scores.unary.shape), np.zeros(scores.pair.shape))
    log_z = np.zeros(len(weight))
    sums = ChainSums(out.unary, out.pair, log_z, np.zeros(0, np.int64))
    failed = sum_lanes(lanes, scores, factor[0], float(pair_shift[0]), weight, sums)
    out.pair[...] *= factor
    return log_z, out, failed


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4])
def test_sums_of_lanes_equal_enumeration(n_labels):
    scores = random_scores(n_labels, LENGTHS, n_labels, scale=3.0)
    weight = np.linspace(0.5, 2.0, len(LENGTHS))
    log_z, out, failed = lanes_sum(scores, weight)
    assert len(failed) == 0
    expected_z, expected = enumerated_sum(scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-12)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-12)


def test_a_sequence_whose_probabilities_vanish_is_left_out_and_spoils_no_other():
    scores = random_scores(0, LENGTHS, 3)
    begin = scores.offsets[[5, 21, 30]]
    scores.unary[begin[0]] = [0.0, -600.0, 0.0]
    scores.unary[begin[1], 1] = -np.inf
    scores.unary[begin[2] + 1] = -np.inf
    weight = np.ones(len(LENGTHS))
    log_z, out, failed = lanes_sum(scores, weight)
    assert failed.tolist() == [5, 21, 30]
    others = scores._replace(unary=scores.unary.copy())
    mask = np.repeat(np.isin(np.arange(len(LENGTHS)), failed), LENGTHS)
    others.unary[mask] = 0.0
    weight[failed] = 0.0
    expected_z, expected = enumerated_sum(others, weight)
    kept = np.setdiff1d(np.arange(len(LENGTHS)), failed)
    np.testing.assert_allclose(log_z[kept], expected_z[kept], rtol=1e-12)
    np.testing.assert_allclose(out.unary[~mask], expected.unary[~mask], rtol=0, atol=1e-12)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-12)


def test_lanes_hold_each_token_of_their_sequences_once_and_in_order():
    scores = chain_arrays(random_scores(0, [*LENGTHS, 70], 2))
    lanes = deal(scores)
    assert len(LENGTHS) not in lanes.order  # it is as long as all others in a lane
    assert sorted(lanes.order) == np.flatnonzero(LENGTHS).tolist()
    for s, b, t in zip(lanes.order, lanes.lane, lanes.start, strict=True):
        tokens = np.arange(*scores.offsets[s : s + 2])
        np.testing.assert_array_equal(lanes.token[t : t + len(tokens), b], tokens)
        assert lanes.fresh[t : t + len(tokens), b].tolist() == [1.0] + [0.0] * (len(tokens) - 1)
    assert np.count_nonzero(lanes.token >= 0) == sum(LENGTHS)
    assert (lanes.fresh[lanes.token < 0] == 1.0).all()
    assert lanes.token.shape[1] >= MIN_LANES


def sum_without_lanes(monkeypatch, scores):
    monkeypatch.setattr(chain, "sum_interleaved", None)
    weight = np.ones(len(scores.offsets) - 1)
    return Chain(ThreadMap(1)).log_partition(scores, weight, Chain().zeros(scores))


@pytest.mark.parametrize("lengths", [[], [0, 0], [5], [4] * (MIN_LANES - 1)])
def test_too_few_sequences_are_not_dealt(monkeypatch, lengths):
    assert sum_without_lanes(monkeypatch, random_scores(0, lengths, 2)).shape == (len(lengths),)


def test_empty_sequences_are_not_dealt():
    assert deal(chain_arrays(random_scores(0, [0] * MIN_LANES, 2))) is None


@pytest.mark.parametrize(("n_labels", "own_steps"), [(2, True), (MAX_LABELS + 1, False)])
def test_own_tables_of_steps_or_very_many_labels_are_not_dealt(monkeypatch, n_labels, own_steps):
    scores = random_scores(0, LENGTHS, n_labels, own_steps=own_steps)
    assert np.isfinite(sum_without_lanes(monkeypatch, scores)).all()


def test_the_lane_with_fewest_steps_gets_the_next_sequence():
    offsets, order = np.array([0, 1, 4, 6, 8]), np.array([1, 2, 3, 0])
    filled, lane, start = (np.empty(n, np.int64) for n in (2, 4, 4))
    kernels.lanes_deal(offsets, order, filled, lane, start)
    assert (lane.tolist(), start.tolist()) == ([0, 1, 1, 0], [0, 0, 2, 3])
    assert filled.tolist() == [4, 4]


@pytest.mark.parametrize("n_labels", [1, 2, 5, 6, 7, MAX_LABELS])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e4])
def test_a_batch_sums_to_what_its_sequences_do_alone(n_labels, scale):
    lengths = [*LENGTHS, 40, 9, 7, 12]
    scores = random_scores(n_labels, lengths, n_labels, scale=scale)
    scores.unary[scores.offsets[3], 1:] = -np.inf
    weight = np.random.default_rng(0).normal(size=len(lengths))
    results = []
    for structure in (Chain(ThreadMap(1)), Chain()):
        out = structure.zeros(scores)
        results.append((structure.log_partition(scores, weight, out), out))
    (log_z, out), (expected_z, expected) = results
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-10)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-10)


def test_the_error_names_a_sequence_of_a_lane_that_has_no_path():
    scores = random_scores(3, LENGTHS, 2)._replace(first=10)
    scores.unary[scores.offsets[7] + 2] = -np.inf
    with pytest.raises(NoPathError, match=r"sequence 17: no path is left at position 2"):
        Chain(ThreadMap(1)).log_partition(scores, np.ones(len(LENGTHS)), Chain().zeros(scores))


def test_forbidden_steps_have_probability_zero_in_a_batch():
    scores = random_scores(0, LENGTHS, 3)
    scores.pair[0, 1, 2] = -np.inf
    weight = np.ones(len(LENGTHS))
    out = Chain().zeros(scores)
    log_z = Chain(ThreadMap(1)).log_partition(scores, weight, out)
    expected_z, expected = enumerated_sum(scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-12)
    assert out.pair[0, 1, 2] == 0.0
