"""Metrics where true labels are not known, or known to be one of several: made by hand."""

import numpy as np
import pytest

from crfkit import UNLABELED as U
from crfkit.metrics import (
    conlleval_report,
    entity_f1_score,
    entity_precision_recall_fscore_support,
    flat_accuracy_score,
    flat_classification_report,
    segment_f1_score,
    segment_precision_recall_fscore_support,
    sequence_accuracy_score,
)

SETS = [["a", U, {"b", "c"}, frozenset("bc")]], [["a", "z", "c", "a"]]


def test_tokens_without_a_label_are_left_out_and_a_set_has_what_is_right():
    assert flat_accuracy_score(*SETS) == pytest.approx(2 / 3)
    assert flat_accuracy_score(*SETS, sample_weight=[[1, 5, 2, 3]]) == 0.5
    found = flat_classification_report(*SETS, output_dict=True, zero_division=0)
    assert {name: row["support"] for name, row in found.items() if len(name) == 1} == {
        "a": 1, "b": 1, "c": 1}  # fmt: skip
    truth, predicted = [["a", U], [U], [], ["b"]], [["a", "x"], ["y"], [], ["c"]]
    assert sequence_accuracy_score(truth, predicted) == pytest.approx(2 / 3)
    weight = np.array([1.0, 9.0, 1.0, 2.0])
    assert sequence_accuracy_score(truth, predicted, sample_weight=weight) == 0.5


@pytest.mark.parametrize(("truth", "predicted", "expected"), [
    ("B-P U O B-L", "B-P O O B-L", (1, 1, 1)),  # the first may go on
    ("B-P I-P U", "B-P I-P O", (0, 0, 0)),
    ("B-P E-P U S-L", "B-P E-P O S-L", (2, 2, 2)),  # ends are told
    ("O U B-P O", "O O B-P O", (1, 1, 1)),  # as are beginnings
    ("O U I-P O", "O O I-P O", (0, 0, 0)),
    ("O O U", "B-P O B-P", (0, 1, 0)),  # what is predicted where nothing is known is not judged
    ("O U O", "B-P I-P O", (0, 0, 0)),
    ("S-P U O", "B-P I-P O", (1, 0, 0)),
], ids=str)  # fmt: skip
def test_entities_count_whose_ends_are_known(truth, predicted, expected):
    tags = [[U if tag == "U" else tag for tag in truth.split()]]
    found = entity_precision_recall_fscore_support(tags, [predicted.split()], average="micro")
    true, pred, correct = expected
    assert found[3] == true
    assert found[0] == correct / max(pred, 1) and found[1] == correct / max(true, 1)


def test_entities_of_a_scheme_and_of_sets():
    truth, predicted = [["B-P", U, "E-P", "O"]], [["B-P", "I-P", "E-P", "S-X"]]
    reading = {"mode": "strict", "scheme": "IOBES", "average": "micro"}
    assert entity_precision_recall_fscore_support(truth, predicted, **reading)[::3] == (0.0, 0)
    assert entity_f1_score([["O", {"B-P", "B-L"}]], [["O", "B-P"]]) == 1.0
    report = conlleval_report([["B-P", U, "O", "B-L"]], [["B-P", "O", "O", "B-L"]])
    assert report.startswith("processed 3 tokens with 1 phrases; found: 1 phrases; correct: 1.")


@pytest.mark.parametrize(("truth", "predicted", "expected"), [
    ("a U b b c", "a a b b c", (1.0, 1.0, 1)),
    ("a O U O c", "a O z O d", (0.5, 0.5, 2)),
    ("a a U", "a a a", (0.0, 0.0, 0)),
], ids=str)  # fmt: skip
def test_runs_count_whose_ends_are_known(truth, predicted, expected):
    labels = [[U if label == "U" else label for label in truth.split()], ["a"], ["O"]]
    pairs = labels[:1] + labels[2:], [predicted.split(), ["O"]]
    p, r, _, n = segment_precision_recall_fscore_support(*pairs, scheme="runs", average="micro")
    assert (p, r, n) == expected


def test_what_no_prediction_can_be_is_refused():
    with pytest.raises(ValueError, match="sequence 0, position 1 of y_pred: UNLABELED is no label"):
        flat_accuracy_score([["a", "b"]], [["a", U]])
    with pytest.raises(ValueError, match="sequence 0, position 0 of y_true: the set .* is empty"):
        flat_accuracy_score([[set()]], [["a"]])


@pytest.mark.parametrize(
    ("true", "pred", "expected"),
    [
        ([(0, 2, "A"), U], [(0, 2, "A"), (2, 3, "B"), (4, 6, "A")], (1, 1, 1)),
        ([(0, 2, "A"), U], [(0, 1, "A"), (1, 3, "A")], (0, 1, 1)),
        ([(0, 2, "A"), (3, 5, U)], [(2, 3, "B"), (3, 4, "A"), (4, 6, "A")], (0, 1, 1)),
        ([(0, 2, "A"), (3, 4, "O"), U], [(3, 4, "B"), (5, 6, "B")], (0, 1, 1)),
        ([(0, 2, {"A", "B"}), (2, 3, {"B", "C"})], [(0, 2, "B"), (2, 3, "A")], (1, 2, 2)),
        ([U], [(0, 2, "A")], (0, 0, 0)),
    ],
)
def test_listed_segments_are_compared_where_the_true_ones_are_known(true, pred, expected):
    right, predicted, support = expected
    found = segment_precision_recall_fscore_support(
        [true, [(0, 1, "A")]], [pred, [(0, 1, "A")]], average="micro"
    )
    assert found[0] == pytest.approx((right + 1) / (predicted + 1))
    assert found[1] == pytest.approx((right + 1) / (support + 1))


@pytest.mark.parametrize("label", [U, {"A", "B"}])
def test_predicted_segments_have_known_labels(label):
    with pytest.raises(ValueError, match=r"y_pred, sequence 0: the label of .* is open"):
        segment_f1_score([[(0, 2, "A")]], [[(0, 2, label)]])
