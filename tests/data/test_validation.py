"""What users pass in that is of another size, or means something else, than the rest."""

import warnings

import numpy as np
import pytest

from crfkit import CRFClassifier, PackedSequences, SemiMarkovCRF
from crfkit.data import PackedSegments, labels
from crfkit.data.label_checks import check_labels
from crfkit.data.labels import LabelStream
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


def check(y, known=()):
    check_labels(LabelStream(y), known)


@pytest.mark.parametrize(
    "y",
    [
        [[0, 1, -100], [1, 0, 2]],
        [[0, 1], [1, -100]],
        np.array([[-100, 3, -100], [-100, 0, 2]]),
        [np.array([0.0, -100.0]), np.array([0.0, 1.0])],
        [[100, 0, 1], [2, -100, 0]],
        [["A", "B", -100], ["B", "A", -100]],
    ],
    ids=str,
)
def test_tokens_that_are_marked_not_to_count_are_not_learned(y):
    with pytest.raises(ValueError, match="sequence ., position .: the label is -100, .*UNLABELED"):
        check(y)
    X = [np.ones((len(row), 1)) for row in y]
    with pytest.raises(ValueError, match="the label is -100"):
        CRFClassifier().fit(X, y)
    check(y, known=[-100, 0, 1])  # as classes of `partial_fit`


def test_a_score_does_not_count_tokens_that_are_marked_not_to_count():
    X, y = [np.eye(2)] * 2, [[0, 1]] * 2
    model = CRFClassifier().fit(X, y)
    with pytest.raises(ValueError, match="sequence 1, position 1: the label is -100"):
        model.score(X, [[0, 1], [0, -100]])
    assert model.score(X, [[0, 1], [0, 7]]) == 0.75


def test_the_label_of_a_token_of_weight_zero_is_not_learned():
    X, weight = [np.eye(2), np.eye(2)[::-1]], [[1, 0], [1, 1]]
    every = {"all_possible_states": True, "all_possible_transitions": True}
    first = CRFClassifier(**every).fit(X, [[0, 1], [1, 0]], sample_weight=weight)
    other = CRFClassifier(**every).fit(X, [[0, 0], [1, 0]], sample_weight=weight)
    np.testing.assert_array_equal(other.coef_.toarray(), first.coef_.toarray())


@pytest.mark.parametrize(
    "y",
    [
        [[-1, 1, 1], [1, -1, -1]],  # two classes
        [[1, 1, -1], [1, -1, -1]],  # these too, wherever they stand
        [[-100, 100], [100, -100]],
        [[-100, 0, 100], [0, 0, -100]],
        [[-100, -50, 0], [0, -50, -50]],
        [[-1, 0, 1], [1, 0, -1]],
        [[0, 1, -1], [1, -1]],  # of several lengths
        [[0, 1, -1]],
        [["-100", "A"], ["A", "B"]],
        [["-1", "0"], ["0", "-1"]],
        [[0.0, 1.0], [2.0, 1.0]],
        [[1, "one"], ["two", 2]],
        [[True, False], [False, True]],
        [[-1, -1], [0, 1]],
    ],
    ids=str,
)
def test_labels_that_may_well_be_meant_are_taken_without_a_word(y):
    check(y)


@pytest.mark.parametrize(
    "y",
    [np.array([[0, 1, 0, -1]] * 3), [[0, 1, 2], [1, -1, -1]], [[0.0, -1.0], [1.0, -1.0]]],
    ids=str,
)
def test_minus_one_at_the_ends_of_one_length_is_said_to_be_learned(y):
    with pytest.warns(UserWarning, match="position .: the label is -1, .*UNLABELED"):
        check(y)
    check(y, known=[-1, 0, 1])
    with pytest.warns(UserWarning, match="the label is -1"):
        model = CRFClassifier().fit([np.ones((len(row), 1)) for row in y], y)
    assert -1 in model.classes_


def test_numbers_and_the_same_as_strings_are_said_to_be_two_labels():
    with pytest.warns(UserWarning, match="labels 1 and '1', which are two different labels"):
        check([[1, 2], ["1", "x"]])


def test_labels_of_a_tensor_are_its_numbers():
    class Tensor:
        """As of a library of which crfkit knows nothing: items are objects that differ."""

        def __init__(self, values):
            self.values = np.asarray(values)

        def __array__(self, dtype=None, copy=None):
            return self.values

        def __iter__(self):
            return (Tensor(value) for value in self.values)

    stream = LabelStream([Tensor([3, 1]), Tensor([1])])
    assert list(stream.index) == [3, 1] and stream.codes.tolist() == [0, 1, 1]


@pytest.mark.parametrize("many", [False, True])
def test_labels_under_a_mask_are_missing(many, monkeypatch):
    if many:
        monkeypatch.setattr(labels, "MANY", 2)
    y = [np.ma.masked_array([0, 1, 0, 1], [False, False, True, False])]
    with pytest.raises(ValueError, match="sequence 0, position 2: the label is None"):
        LabelStream(y)
