"""Warnings of what users pass in that is of another size than the rest."""

import warnings

import numpy as np
import pytest

from crfkit import CRFClassifier, PackedSequences, SemiMarkovCRF
from crfkit.data import PackedSegments
from tests.estimators.segmentations import TAGS, packed

UNEVEN = np.array([1.0, 1e6, 1.0])


def warned(estimator, data):
    """Return the warnings of the sizes of features."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(data, TAGS)
    return [str(w.message) for w in caught if "in size, most features" in str(w.message)]


def test_a_large_feature_is_said_to_be_one_of_tokens_of_steps_or_of_segments(rng):
    data = packed()
    values = rng.normal(size=(data.n_tokens, 3)) * UNEVEN
    of_tokens = PackedSequences(dense=values, offsets=data.offsets)
    rows = PackedSequences(dense=values[:4], offsets=[0, 4])
    segments = PackedSegments(rows, data.offsets, [0, 1, 2, 3], [2, 3, 4, 5], [0, 1, 2, 3])
    for given, found in (
        (of_tokens, "feature 1 is about"),
        (data.with_transitions(of_tokens), "feature 1 of transitions is about"),
        (data.with_segments(segments), "feature 1 of segments is about"),
    ):
        (message,) = warned(SemiMarkovCRF(max_iter=2), given)
        assert found in message
    assert len(warned(CRFClassifier(max_iter=2), data.with_transitions(of_tokens))) == 1


@pytest.mark.parametrize("length", ["seg.length ** 9", ["buckets", "1e4 * seg.length"]])
def test_a_large_feature_of_lengths_is_named(length):
    (message,) = warned(SemiMarkovCRF(length=length, max_iter=2), packed())
    name = length if isinstance(length, str) else length[1]
    assert message.startswith(f"feature {name!r} of lengths is about ")
    assert "most features are about 1:" in message


@pytest.mark.parametrize("length", [None, "indicator", ["buckets", "geometric"], "poisson"])
def test_usual_features_of_lengths_are_not_too_large(length):
    assert warned(SemiMarkovCRF(length=length, max_length=3000, max_iter=2), packed()) == []
