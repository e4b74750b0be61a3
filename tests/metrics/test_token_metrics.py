from itertools import chain

import numpy as np
import pytest
from sklearn import metrics

from crfkit.metrics import (
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    flat_fbeta_score,
    flat_precision_score,
    flat_recall_score,
    sequence_accuracy_score,
)

Y_TRUE = [["a", "b", "c"], ["a"], [], ["c", "c", "b", "a"]]
Y_PRED = [["a", "c", "c"], ["b"], [], ["c", "a", "b", "a"]]
WEIGHTS = [0.5, 2.0, 7.0, 1.0]

SCORES = {
    "precision": (flat_precision_score, metrics.precision_score),
    "recall": (flat_recall_score, metrics.recall_score),
    "f1": (flat_f1_score, metrics.f1_score),
    "fbeta": (flat_fbeta_score, metrics.fbeta_score),
    "report": (flat_classification_report, metrics.classification_report),
}


def flat(y):
    return list(chain.from_iterable(y))


def relabel(y, names):
    return [[names[label] for label in sequence] for sequence in y]


@pytest.fixture(params=sorted(SCORES))
def score_pair(request):
    return SCORES[request.param], {"beta": 0.5} if request.param == "fbeta" else {}


@pytest.mark.parametrize("labels", [None, ["c", "a"], ["b", "unseen"]])
@pytest.mark.parametrize("average", [None, "micro", "macro", "weighted"])
def test_scores_equal_scikit_learn_on_flat_labels(score_pair, labels, average):
    (ours, theirs), kwargs = score_pair
    if ours is not flat_classification_report:
        kwargs = {**kwargs, "average": average}
    kwargs = {**kwargs, "labels": labels, "zero_division": 0}
    np.testing.assert_array_equal(
        ours(Y_TRUE, Y_PRED, **kwargs), theirs(flat(Y_TRUE), flat(Y_PRED), **kwargs)
    )


@pytest.mark.parametrize("pos_label", ["a", "b"])
@pytest.mark.parametrize("name", ["precision", "recall", "f1", "fbeta"])
def test_positive_label_is_the_given_one(name, pos_label):
    ours, theirs = SCORES[name]
    kwargs = {"beta": 0.5} if name == "fbeta" else {}
    y_true, y_pred = [["a", "b"], ["b"]], [["b", "b"], ["a"]]
    kwargs = {**kwargs, "pos_label": pos_label, "zero_division": 0}
    assert ours(y_true, y_pred, **kwargs) == theirs(flat(y_true), flat(y_pred), **kwargs)


def test_default_positive_label_is_the_label_one():
    # Sorted, 1 is the first of these two labels: its number is 0.
    y_true, y_pred = [[1, 2, 2, 1, 1]], [[1, 2, 2, 2, 2]]
    assert flat_recall_score(y_true, y_pred) == 1 / 3
    assert flat_recall_score(y_true, y_pred, pos_label=2) == 1


def test_missing_positive_label_is_an_error():
    with pytest.raises(ValueError, match=r"pos_label=1 is not a valid label; .*\['a', 'b'\]"):
        flat_f1_score([["a", "b"]], [["a", "a"]])


def test_several_labels_need_an_average():
    with pytest.raises(ValueError, match="average='binary'"):
        flat_f1_score(Y_TRUE, Y_PRED)


def test_report_as_dictionary_equals_scikit_learn():
    ours = flat_classification_report(Y_TRUE, Y_PRED, digits=3, output_dict=True)
    assert ours == metrics.classification_report(flat(Y_TRUE), flat(Y_PRED), output_dict=True)


def test_report_takes_labels_by_position_and_target_names():
    report = flat_classification_report(Y_TRUE, Y_PRED, ["c", "a"], target_names=["C", "A"])
    assert [line.split()[0] for line in report.splitlines()[2:4]] == ["C", "A"]


def test_functions_agree_with_sklearn_crfsuite():
    theirs = pytest.importorskip("sklearn_crfsuite.metrics")
    assert flat_accuracy_score(Y_TRUE, Y_PRED) == theirs.flat_accuracy_score(Y_TRUE, Y_PRED)
    kwargs = {"average": "weighted", "labels": ["a", "c"]}
    assert flat_f1_score(Y_TRUE, Y_PRED, **kwargs) == theirs.flat_f1_score(Y_TRUE, Y_PRED, **kwargs)
    for labels in (None, ["b", "c"]):
        ours = flat_classification_report(Y_TRUE, Y_PRED, labels=labels, digits=3)
        assert ours == theirs.flat_classification_report(Y_TRUE, Y_PRED, labels=labels, digits=3)
    ragged_score = theirs.sequence_accuracy_score(Y_TRUE, Y_PRED)
    assert sequence_accuracy_score(Y_TRUE, Y_PRED) == ragged_score


@pytest.mark.parametrize(
    "names",
    [
        {"a": 0, "b": 1, "c": 2},
        {"a": ("N", 1), "b": ("N", 2), "c": ("V", 1)},
        {"a": 1, "b": "1", "c": ("1",)},
        {"a": None, "b": True, "c": 2.5},
    ],
    ids=["integers", "tuples", "mixed", "odd"],
)
def test_labels_may_be_any_hashable_objects(names):
    y_true, y_pred = relabel(Y_TRUE, names), relabel(Y_PRED, names)
    assert flat_accuracy_score(y_true, y_pred) == flat_accuracy_score(Y_TRUE, Y_PRED)
    assert sequence_accuracy_score(y_true, y_pred) == sequence_accuracy_score(Y_TRUE, Y_PRED)
    found = flat_f1_score(y_true, y_pred, average=None, labels=list(names.values()))
    np.testing.assert_array_equal(found, flat_f1_score(Y_TRUE, Y_PRED, average=None))


def test_labels_that_look_alike_stay_apart_in_a_report():
    report = flat_classification_report([[1, "1", "1"]], [[1, "1", 1]], output_dict=True)
    assert (report["1"]["support"], report["'1'"]["support"]) == (1, 2)


@pytest.mark.parametrize(
    "convert",
    [
        lambda y: [tuple(labels) for labels in y],
        lambda y: [np.array(labels, dtype="U1") for labels in y],
        lambda y: [np.array(labels, dtype=object) for labels in y],
        lambda y: np.array([*map(np.array, y), None], dtype=object)[:-1],
        lambda y: (iter(labels) for labels in y),
        lambda y: tuple(y),
    ],
    ids=["tuples", "arrays", "object arrays", "array of arrays", "generators", "outer tuple"],
)
def test_containers_do_not_matter(convert):
    assert flat_accuracy_score(convert(Y_TRUE), convert(Y_PRED)) == 5 / 8
    assert sequence_accuracy_score(convert(Y_TRUE), convert(Y_PRED)) == 1 / 4


@pytest.mark.parametrize("dtype", [str, object, int])
@pytest.mark.parametrize("length", [1, 4])
def test_sequence_accuracy_of_a_matrix_stays_a_share(dtype, length):
    y = np.zeros((30, length), dtype=dtype)
    assert sequence_accuracy_score(y, y) == 1
    wrong = y.copy()
    wrong[:3, 0] = 1
    assert sequence_accuracy_score(y, wrong) == 0.9
    assert sequence_accuracy_score(list(y), wrong) == 0.9


def test_sequence_accuracy_counts_whole_sequences():
    assert sequence_accuracy_score([["a", "b"], ["a"], []], [["b", "b"], ["a"], []]) == 2 / 3
    assert sequence_accuracy_score([], []) == 0


def test_sequence_accuracy_weighs_sequences():
    score = sequence_accuracy_score([["a"], ["a"]], [["a"], ["b"]], sample_weight=[3, 1])
    assert score == 0.75


def test_accuracy_counts_tokens_if_not_normalized():
    assert flat_accuracy_score(Y_TRUE, Y_PRED, normalize=False) == 5


@pytest.mark.parametrize(
    "weights",
    [
        WEIGHTS,
        np.array(WEIGHTS),
        [[w] * len(y) for w, y in zip(WEIGHTS, Y_TRUE, strict=True)],
        [np.full(len(y), w) for w, y in zip(WEIGHTS, Y_TRUE, strict=True)],
        np.repeat(WEIGHTS, [len(y) for y in Y_TRUE]),
    ],
    ids=["per sequence", "array per sequence", "lists per token", "arrays per token", "flat"],
)
def test_weights_per_sequence_and_per_token_agree(score_pair, weights):
    (ours, theirs), kwargs = score_pair
    token_weights = np.repeat(WEIGHTS, [len(y) for y in Y_TRUE])
    if ours is not flat_classification_report:
        kwargs = {**kwargs, "average": "macro"}
    expected = theirs(flat(Y_TRUE), flat(Y_PRED), sample_weight=token_weights, **kwargs)
    assert ours(Y_TRUE, Y_PRED, sample_weight=weights, **kwargs) == expected
    accuracy = flat_accuracy_score(Y_TRUE, Y_PRED, sample_weight=weights)
    right = np.array(flat(Y_TRUE)) == np.array(flat(Y_PRED))
    assert accuracy == np.average(right, weights=token_weights)


def test_weight_two_is_the_sequence_twice():
    weighted = flat_accuracy_score(Y_TRUE, Y_PRED, sample_weight=[1, 2, 1, 1])
    assert weighted == flat_accuracy_score([*Y_TRUE, Y_TRUE[1]], [*Y_PRED, Y_PRED[1]])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2, 3], "sample_weight has 3 values, but there are 4 sequences and 8 tokens"),
        ([[1, 1, 1], [1], []], "y_true has 4 sequences but sample_weight has 3"),
        ([[1, 1], [1], [], [1] * 4], "sequence 0 has 3 labels in y_true but 2 in sample_weight"),
    ],
)
def test_weights_of_wrong_shape_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        flat_accuracy_score(Y_TRUE, Y_PRED, sample_weight=weights)


@pytest.mark.parametrize("metric", [flat_accuracy_score, sequence_accuracy_score])
@pytest.mark.parametrize(
    ("y_true", "y_pred", "error", "message"),
    [
        ([["a"]] * 3, [["a"]] * 2, ValueError, "y_true has 3 sequences but y_pred has 2"),
        (
            [["a"], ["a", "b"]],
            [["a"], ["a"]],
            ValueError,
            "sequence 1 has 2 labels in y_true but 1 in y_pred",
        ),
        (["a", "b"], ["a", "b"], TypeError, r"0 of y_true is the string 'a'.*pass \[y_true\]"),
        ("ab", "ab", TypeError, "y_true must be a list of sequences, not str"),
        ([["a"]], ["a"], TypeError, "sequence 0 of y_pred is the string 'a'"),
        ([1, 2], [1, 2], TypeError, "sequence 0 of y_true is a single int"),
        (np.array(["a", "b"]), np.array(["a", "b"]), TypeError, r"0 of y_true is .*\[y_true\]"),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), TypeError, "0 of y_true is an array of 2 dim"),
        ([{"a", "b"}], [{"a", "b"}], TypeError, "sequence 0 of y_true is a set"),
        (3, 3, TypeError, "y_true must be a list of sequences, not int"),
        ([["a", ["b"]]], [["a", "b"]], TypeError, "sequence 0, position 1 is not hashable"),
        (
            [["a"], [], [{}]],
            [["a"], [], ["b"]],
            TypeError,
            "sequence 2, position 0 is not hashable",
        ),
    ],
)
def test_errors_say_what_is_wrong(metric, y_true, y_pred, error, message):
    with pytest.raises(error, match=message):
        metric(y_true, y_pred)


def test_no_tokens_is_an_error_for_token_scores():
    with pytest.raises(ValueError, match="empty"):
        flat_accuracy_score([[]], [[]])
