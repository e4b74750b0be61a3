from itertools import groupby
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._types import ProbableSegment
from crfkit.metrics import (
    Segment,
    conlleval_report,
    entity_f1_score,
    entity_precision_recall_fscore_support,
    flat_accuracy_score,
    segment_classification_report,
    segment_f1_score,
    segment_precision_recall_fscore_support,
    segment_precision_score,
    segment_recall_score,
    sequence_accuracy_score,
    spans_from_tags,
)

TRUE = [[(0, 2, "a"), (2, 3, "b")], [], [(1, 2, "a")]]
PRED = [[(2, 3, "b"), (0, 1, "a")], [(0, 1, "c")], [(1, 2, "a")]]


@st.composite
def segment_lists(draw):
    """Truth and prediction of as many sequences; segments may overlap."""
    segment = st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from(["a", "b", 7]))
    lists = st.lists(segment, max_size=4, unique=True)
    pairs = draw(st.lists(st.tuples(lists, lists), max_size=4))
    spread = [[(i, i + n, k) for i, n, k in one] for pair in pairs for one in pair]
    return spread[::2], spread[1::2]


def listed(y, as_label=lambda tag: tag):
    """The runs of equal labels of each sequence, without those outside."""
    found = []
    for sequence in y:
        own, start = [], 0
        for label, run in groupby(sequence):
            stop = start + len(list(run))
            own += [] if label == "O" else [(start, stop, as_label(label))]
            start = stop
        found.append(own)
    return found


@given(segment_lists())
def test_counts_are_those_of_sets(pair):
    true, pred = ({(s, *g) for s, one in enumerate(y) for g in one} for y in pair)
    labels = ["a", "b", 7]
    precision, recall, fscore, support = segment_precision_recall_fscore_support(
        *pair, labels=labels
    )
    for i, label in enumerate(labels):
        own, found = ({g for g in side if g[3] == label} for side in (true, pred))
        right = len(own & found)
        assert support[i] == len(own)
        assert precision[i] == (right / len(found) if found else 0)
        assert recall[i] == (right / len(own) if own else 0)
        assert fscore[i] == pytest.approx(2 * right / max(len(own) + len(found), 1))
    micro = 2 * len(true & pred) / max(len(true) + len(pred), 1)
    assert segment_f1_score(*pair) == pytest.approx(micro)


def test_small_numbers_are_right():
    assert segment_precision_score(TRUE, PRED) == 0.5
    assert segment_recall_score(TRUE, PRED) == pytest.approx(2 / 3)
    np.testing.assert_allclose(segment_f1_score(TRUE, PRED, average=None), [0.5, 1, 0])
    assert segment_f1_score(TRUE, PRED, average="macro") == pytest.approx(0.5)
    assert segment_f1_score(TRUE, PRED, average="weighted") == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "form",
    [
        lambda i, j, k: Segment(i, j, k),
        lambda i, j, k: ProbableSegment(i, j, k, 0.5),
        lambda i, j, k: SimpleNamespace(label=k, start=i, stop=j),
        lambda i, j, k: [np.int64(i), np.int64(j), k],
    ],
)
def test_segments_may_be_written_in_any_form_and_order(form):
    other = [[form(*segment) for segment in reversed(one)] for one in PRED]
    assert segment_f1_score(TRUE, other) == segment_f1_score(TRUE, PRED)
    assert segment_f1_score(other, PRED) == 1.0


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", "conll"])
def test_tags_are_read_as_for_entities(random_pair, tag_set, scheme):
    for seed in range(20):
        y_true, y_pred = random_pair(seed, tag_set("OBIES" if scheme != "IOB2" else "OBI", "XY"))
        strict = {} if scheme == "conll" else {"mode": "strict", "scheme": scheme}
        expected = entity_precision_recall_fscore_support(y_true, y_pred, **strict)
        spans = [[spans_from_tags(tags, scheme) for tags in y] for y in (y_true, y_pred)]
        for pair in ((y_true, y_pred), (spans[0], y_pred), (y_true, spans[1]), spans):
            found = segment_precision_recall_fscore_support(*pair, scheme=scheme)
            np.testing.assert_array_equal(found, expected)


def test_runs_of_equal_labels_are_segments_and_those_outside_are_none():
    rng = np.random.default_rng(0)
    labels = np.array(["O", "a", "b"], object)
    for _ in range(20):
        lengths = rng.integers(0, 6, size=4)
        y_true, y_pred = (
            [labels[rng.integers(0, 3, size=n)].tolist() for n in lengths] for _ in range(2)
        )
        expected = segment_precision_recall_fscore_support(listed(y_true), listed(y_pred))
        for pair in ((y_true, y_pred), (listed(y_true), y_pred), (y_true, listed(y_pred))):
            found = segment_precision_recall_fscore_support(*pair, scheme="runs")
            np.testing.assert_array_equal(found, expected)


def test_listed_segments_outside_do_not_count():
    outside = [[*one, (5, 6, "O")] for one in TRUE]
    assert segment_f1_score(outside, TRUE) == segment_f1_score(TRUE, outside) == 1.0


def test_labels_beside_tags_are_their_names_in_tags():
    tags = [["B-7", "I-7", "B", "B-LOC"]]
    assert segment_f1_score([[(0, 2, 7), (2, 3, ""), (3, 4, "LOC")]], tags, scheme="IOB2") == 1.0


def test_truth_without_segments_is_read_beside_labels():
    assert segment_precision_score([[], []], [["B-X"], ["O"]], scheme="IOB2") == 0.0
    assert segment_recall_score([["a"], ["O"]], [[], []], scheme="runs") == 0.0
    assert segment_f1_score([[], []], [[], []], zero_division=1) == 1.0


def test_the_report_has_the_scores_of_each_label():
    report = segment_classification_report(TRUE, PRED, output_dict=True)
    assert list(report) == ["a", "b", "c", "micro avg", "macro avg", "weighted avg"]
    assert report["a"] == {"precision": 0.5, "recall": 0.5, "f1-score": 0.5, "support": 2}
    assert report["micro avg"]["f1-score"] == segment_f1_score(TRUE, PRED)
    lines = segment_classification_report(TRUE, PRED, digits=3).splitlines()
    assert lines[2].split() == ["a", "0.500", "0.500", "0.500", "2"]
    assert "b" not in segment_classification_report(TRUE, PRED, labels=["a"], output_dict=True)


def test_different_labels_have_different_names_in_the_report():
    y = [[(0, 1, 1), (1, 2, "1")]]
    assert {"1", "'1'"} < segment_classification_report(y, y, output_dict=True).keys()


@pytest.mark.parametrize(
    ("y_true", "y_pred", "scheme", "error", "message"),
    [
        ([[]], [[], []], None, ValueError, "y_true has 1 sequences but y_pred has 2"),
        ([["B-X"]], [["B-X"]], None, TypeError, "y_true, sequence 0: 'B-X' .* scheme='runs'"),
        ([[]], [[("X", 0, 1)]], None, TypeError, r"y_pred, sequence 0: \('X', 0, 1\) is no segm"),
        ([[(0, 1.5, "X")]], [[]], None, TypeError, "with whole numbers"),
        ([[], [(1, 1, "X")]], [[], []], None, ValueError, "y_true, sequence 1: .* is empty"),
        ([[(-1, 1, "X")]], [[]], None, ValueError, "does not begin at a token"),
        ([[(0, 1, ["X"])]], [[]], None, TypeError, "not hashable"),
        ([[(0, 1, "X"), (0, 1, "X")]], [[]], None, ValueError, "'X'. is listed twice"),
        ([["a", "a"]], [["a"]], "runs", ValueError, "sequence 0 has 2 labels in y_true but 1"),
        ([["a", "a"]], [[(1, 3, "a")]], "runs", ValueError, r"\(1, 3, 'a'\) is not within the 2 "),
        ([[(0, 3, "a")]], [["O", "B-a"]], "IOB2", ValueError, "y_true, sequence 0: .* not within"),
        ([["a"]], [["a"]], "IOB2", ValueError, "sequence 0, position 0: 'a' is not a tag of IOB2"),
        ([["a"]], [["a"]], "run", ValueError, "unknown tag scheme 'run'"),
        ("a", [["a"]], None, TypeError, "y_true must be a list of seq"),
    ],
)
def test_errors_name_the_place_and_the_way_out(y_true, y_pred, scheme, error, message):
    for metric in (segment_f1_score, segment_classification_report):
        with pytest.raises(error, match=message):
            metric(y_true, y_pred, scheme=scheme)


@pytest.mark.parametrize(
    "metric", [entity_f1_score, flat_accuracy_score, sequence_accuracy_score, conlleval_report]
)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "name"),
    [
        ([[(0, 1, "X")]], [["B-X", "O"]], "y_true"),
        ([["B-X", "O"]], [[(0, 1, "X")]], "y_pred"),
        ([["B-X"]], [[Segment(0, 1, "X")]], "y_pred"),
        ([[(0, 1, "X")]], [[Segment(0, 1, "X")]], "y_true"),
    ],
)
def test_metrics_of_tokens_and_tags_refuse_segments(metric, y_true, y_pred, name):
    with pytest.raises(TypeError, match=f"{name} has segments, such as .*'segment_f1'"):
        metric(y_true, y_pred)


def test_labels_of_tokens_may_be_triples():
    y = [[(0, 1, 2), (0, 1, 3)]]
    assert flat_accuracy_score(y, [[(0, 1, 2), (0, 1, 2)]]) == 0.5
    assert flat_accuracy_score([[(1, 2, "x"), "O"]], [["O", "O"]]) == 0.5
    assert sequence_accuracy_score([["O"], ["O"]], [["O"], [(1, 2, "x")]]) == 0.5


@pytest.mark.parametrize("label", ["street", 3])
def test_entity_metrics_of_runs_name_the_metric_to_take(label):
    with pytest.raises((TypeError, ValueError), match=r"scheme='runs'\) \(as a scorer, 'segment_f"):
        entity_f1_score([[label]], [[label]])


@pytest.mark.parametrize(
    ("y", "kwargs"),
    [
        ([["PER-B", "PER-I"]], {}),
        ([["S-PER", "O"]], {"mode": "strict", "scheme": "IOB2"}),
        ([["B-PER", "I-PER", "X-PER"]], {}),
        ([["O", ["O"]]], {}),
    ],
)
def test_the_metric_of_runs_is_not_proposed_for_tags(y, kwargs):
    with pytest.raises((TypeError, ValueError)) as caught:
        entity_f1_score(y, y, **kwargs)
    assert "segment_f1" not in str(caught.value)
