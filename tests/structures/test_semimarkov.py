"""Sums and maxima over segmentations are those of enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from crfkit._types import Scores, SegmentParts
from crfkit.structures import Chain, NoSegmentationError, SemiMarkov
from crfkit.structures.semimarkov import no_spans
from tests.oracles import (
    all_segmentations,
    codes_of,
    enumerated_segments,
    random_scores,
    random_segment_scores,
    segment_scores,
)


def summed(scores, weight):
    out = SemiMarkov().empty(scores)
    return SemiMarkov().sum(scores, weight, out), out


def assert_sums_agree(scores, weight, tolerance=1e-9):
    log_z, out = summed(scores, weight)
    expected_z, expected = enumerated_segments(scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=tolerance)
    np.testing.assert_allclose(out.unary, expected.unary, atol=tolerance)
    np.testing.assert_allclose(out.pair, expected.pair, atol=tolerance)


@settings(max_examples=60)
@given(segment_scores())
def test_sums_are_those_of_enumeration(scores):
    weight = np.array([1.0, -0.5, 2.0])[: len(scores.offsets) - 1]
    assert_sums_agree(scores, weight)


@settings(max_examples=60)
@given(segment_scores())
def test_the_best_segmentation_is_that_of_enumeration(scores):
    codes, value = SemiMarkov().max(scores)
    size = scores.pair.shape[1]
    for s, (b, e) in enumerate(zip(scores.offsets[:-1], scores.offsets[1:], strict=True)):
        found = all_segmentations(scores, s)
        best = max(score for _, score in found)
        np.testing.assert_allclose(value[s], best, rtol=1e-12, atol=1e-12)
        of_codes = {tuple(codes_of(path, size)): score for path, score in found}
        np.testing.assert_allclose(of_codes[tuple(codes[b:e])], best, rtol=1e-12, atol=1e-12)


@settings(max_examples=30)
@given(segment_scores())
def test_scores_of_segmentations_are_those_of_their_parts(scores):
    size, n_tokens = scores.pair.shape[1], len(scores.unary)
    for s, (b, e) in enumerate(zip(scores.offsets[:-1], scores.offsets[1:], strict=True)):
        for path, expected in all_segmentations(scores, s)[::17]:
            codes = np.full(n_tokens, size, np.int32)
            codes[b:e] = codes_of(path, size)
            found = SemiMarkov().score(scores, codes)[s]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
