"""Kernels of segments against enumeration on tiny inputs; also run without the compiler."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._types import Counts
from crfkit.compiler.jit import frozen
from crfkit.kernels.semimarkov import sum as kernels
from crfkit.kernels.semimarkov.arrays import LogSegmentWorkspace, SegmentSums, SegmentViterbi
from crfkit.kernels.semimarkov.max import semimarkov_add_path, semimarkov_max, semimarkov_score
from crfkit.kernels.semimarkov.sum import semimarkov_sum_log
from crfkit.structures.potentials import exponentials, filled_up, segment_arrays
from crfkit.structures.semimarkov import segment_workspace
from tests.oracles import (
    all_segmentations,
    enumerated_segments,
    random_segment_scores,
    segment_scores,
)
from tests.sampling import examples
from tests.structures.test_semimarkov import SEGMENTS, assert_pulled_back, lost_and_found


def scaled_sum(scores, weight):
    raised, size = exponentials(scores), scores.n_labels
    tables = raised.tables
    out, count = np.zeros_like(scores.unary), len(weight)
    flows = [np.zeros_like(part) for part in (tables.transitions, tables.lengths, tables.spans)]
    log_z, status = np.empty(count), np.empty(count, np.int64)
    kernels.semimarkov_sum(
        segment_arrays(scores),
        raised,
        frozen(np.arange(count)),
        frozen(weight),
        segment_workspace(int(np.diff(scores.offsets).max(initial=0)), *tables.stay.shape),
        SegmentSums(out, *flows, log_z, status),
    )
    transitions = (flows[0] * tables.transitions)[:, :size, :size].reshape(-1, size)
    pair = np.concatenate([transitions, flows[1][:, :size], flows[2][:, :size]])
    return log_z, Counts(out, pair), status


@given(segment_scores((0.1, 1.0, 10.0)))
@examples(10)
def test_scaled_sums_equal_enumeration(scores):
    weight = np.linspace(0.5, 2.0, len(scores.offsets) - 1)
    log_z, out, status = scaled_sum(scores, weight)
    assert (status == kernels.OK).all()
    expected_z, expected = enumerated_segments(scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-11)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-11)


@given(segment_scores((1.0, 50.0, 1e4)))
@examples(10)
def test_sums_of_logarithms_equal_enumeration(scores):
    weight = np.linspace(0.5, 2.0, len(scores.offsets) - 1)
    expected_z, expected = enumerated_segments(scores, weight)
    out = Counts(np.zeros_like(scores.unary), np.zeros_like(scores.pair))
    size = scores.n_labels
    for s in np.flatnonzero(np.diff(scores.offsets)):
        begin, end = (int(i) for i in scores.offsets[s : s + 2])
        log_z, rooms = np.empty_like(weight), [np.empty((end - begin + 1, size)) for _ in range(3)]
        workspace = LogSegmentWorkspace(*rooms, np.empty((2, size)), np.empty(len(scores.unary)))
        position = semimarkov_sum_log(
            segment_arrays(scores), int(s), float(weight[s]), workspace, *out, log_z
        )
        assert position == -1
        np.testing.assert_allclose(log_z[s], expected_z[s], rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-10)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-10)


@given(segment_scores((1.0, 50.0, 1e3)), st.integers(0, 2**16))
@examples(10)
def test_slopes_of_codes_are_pulled_back(scores, seed):
    assert_pulled_back(SEGMENTS.posterior(scores), scores, seed)


def one_per_cause():
    spread = random_segment_scores(0, [3], 2, 2)
    spread.unary[1, 1] = -600.0
    vanishing = random_segment_scores(0, [3], 2, 2)
    vanishing.unary[0, 3] = -600.0
    dead = random_segment_scores(0, [3], 2, 2)
    dead.unary[2, :4] = -np.inf
    return {
        "fine": (random_segment_scores(0, [3], 2, 2), kernels.OK),
        "going on": (spread, kernels.UNDERFLOW),
        "beginning": (vanishing, kernels.UNDERFLOW),
        "lost on the way": (lost_and_found(), kernels.BROKEN),
        "no segmentation": (dead, 2),
    }


@pytest.mark.parametrize("cause", one_per_cause())
def test_the_status_tells_what_cannot_be_summed_so(cause):
    scores, expected = one_per_cause()[cause]
    with np.errstate(all="ignore"):
        *_, status = scaled_sum(scores, np.ones(1))
    assert status.tolist() == [expected]


@given(segment_scores((1.0, 50.0)))
@examples(10)
def test_the_best_segmentation_has_the_largest_score_and_its_parts_add_up_to_it(scores):
    arrays, tables = segment_arrays(scores), filled_up(scores)
    longest, count = int(np.diff(scores.offsets).max()), len(scores.offsets) - 1
    width = tables.stay.shape[1]
    codes, value = np.empty(len(scores.unary), np.int32), np.empty(count)
    status, score = np.empty(count, np.int64), np.empty(count)
    semimarkov_max(
        arrays, tables,
        SegmentViterbi(np.empty((longest + 1, width)), np.empty((longest, width)), codes),
        value, status,
    )  # fmt: skip
    assert (status == kernels.OK).all()
    best = [max(score for _, score in all_segmentations(scores, s)) for s in range(count)]
    np.testing.assert_allclose(value, best, rtol=1e-12, atol=1e-12)
    semimarkov_score(arrays, frozen(codes), score)
    np.testing.assert_allclose(score, best, rtol=1e-12, atol=1e-12)
    out = Counts(np.zeros_like(scores.unary), np.zeros_like(scores.pair))
    semimarkov_add_path(arrays, frozen(codes), frozen(np.ones(count)), *out)
    used = [(block[part > 0.0], part[part > 0.0]) for block, part in
            zip((scores.unary, scores.pair), out, strict=True)]  # fmt: skip
    total = sum(float(block @ part) for block, part in used)
    np.testing.assert_allclose(total, sum(best), rtol=1e-12, atol=1e-11)
