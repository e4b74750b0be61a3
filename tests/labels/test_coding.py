"""Tags, runs of labels and listed segments become codes, and tags again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.labels.fields import check_apart, lists, read_listed
from crfkit.labels.segmentation import SegmentCoding, read_segments, segmentation_of
from crfkit.metrics import Segment, repair_tags, spans_from_tags, tags_from_spans
from tests.sampling import examples

CHEAP = examples(12)
SCHEMES = ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES", "BMEWO", "IO"]


@st.composite
def segmentations(draw, labels=("A", "B", "O")):
    """Draw the spans, without tokens outside, and the number of tokens of a few sequences."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.integers(1, 3), max_size=5))
        names = draw(st.lists(st.sampled_from(labels), min_size=len(sizes), max_size=len(sizes)))
        stops = np.cumsum(sizes, dtype=int).tolist()
        segments = [
            (stop - size, stop, name)
            for stop, size, name in zip(stops, sizes, names, strict=True)
            if name != "O"
        ]
        found.append((segments, sum(sizes)))
    return found


def offsets_of(sequences):
    return np.concatenate([[0], np.cumsum([len(s) for s in sequences])]).astype(np.int64)


def tags_of(drawn, scheme):
    return [tags_from_spans(segments, length, scheme) for segments, length in drawn]


def read(y, scheme="auto", offsets=None):
    y = list(y)
    return read_segments(y, offsets_of(y) if offsets is None else offsets, scheme, "O")


def listed(coded, offsets):
    """Return the coded segments but those outside, as (start, stop, label) of the whole data."""
    classes = coded.classes.tolist()
    runs = zip(
        *(a.tolist() for a in segmentation_of(coded.codes, offsets, len(classes))), strict=True
    )
    return [(start, stop, classes[k]) for start, stop, k in runs if classes[k] != "O"]


def write(coded, offsets):
    return coded.coding.write(coded.codes, coded.classes, offsets)


@pytest.mark.parametrize("scheme", SCHEMES)
@CHEAP
@given(drawn=segmentations())
def test_tags_are_written_as_they_were_read(scheme, drawn):
    tags = tags_of(drawn, scheme)
    coded = read(tags, scheme)
    assert write(coded, offsets_of(tags)) == tags


@pytest.mark.parametrize("scheme", SCHEMES)
@CHEAP
@given(drawn=segmentations())
def test_the_scheme_is_found_with_the_same_segments(scheme, drawn):
    tags = tags_of(drawn, scheme)
    offsets = offsets_of(tags)
    coded, given_scheme = read(tags), read(tags, scheme)
    assert listed(coded, offsets) == listed(given_scheme, offsets)
    assert [[t == "O" for t in row] for row in write(coded, offsets)] == [
        [t == "O" for t in row] for row in tags
    ]


@CHEAP
@given(drawn=segmentations())
def test_listed_segments_become_iob2_tags(drawn):
    tags, offsets = tags_of(drawn, "IOB2"), np.cumsum([0, *(n for _, n in drawn)])
    segments = [one for one, _ in drawn]
    coded = read_segments(segments, offsets, "IOB2", "O")
    assert write(coded, offsets) == tags
    as_spans = [[Segment(i, j, k) for i, j, k in one[::-1]] for one in segments]
    np.testing.assert_array_equal(read_segments(as_spans, offsets, "IOB2", "O").codes, coded.codes)


def test_listed_segments_are_iob2_if_no_scheme_is_given():
    assert read([[(0, 2, "A")]], offsets=np.array([0, 3])).coding.scheme == "IOB2"
    assert read([[(0, 2, "A")]], "bioes", np.array([0, 3])).coding.scheme == "IOBES"


@CHEAP
@given(st.lists(st.lists(st.sampled_from(["A", "B", 3, ("x", 1), "O"]), max_size=6), max_size=3))
def test_plain_labels_are_runs(y):
    offsets = offsets_of(y)
    coded = read(y, "runs")
    assert write(coded, offsets) == y
    for start, stop, label in listed(coded, offsets):
        s = int(np.searchsorted(offsets, start, side="right")) - 1
        row, begin, end = y[s], start - offsets[s], stop - offsets[s]
        assert row[begin:end] == [label] * (end - begin)
        assert begin == 0 or row[begin - 1] != label
        assert end == len(row) or row[end] != label


def test_tokens_outside_are_one_by_one():
    coded = read([["O", "O", "A", "A"], ["O"]], "runs")
    size = len(coded.classes)
    assert (coded.codes >= size).tolist() == [True, True, True, False, True]


def test_marks_do_not_reach_over_the_end_of_a_sequence():
    tags = [["I-A"], ["I-A", "B-A"], ["I-A"]]
    assert write(read(tags, "IOB1"), offsets_of(tags)) == tags
    tags = [["I-A"], ["E-A", "I-A"], ["I-A"]]
    assert write(read(tags, "IOE1"), offsets_of(tags)) == tags


def test_bare_tags_are_read_with_a_scheme():
    tags = [["B", "I", "B"], ["B"]]
    coded = read(tags, "IOB2")
    assert listed(coded, offsets_of(tags)) == [(0, 2, "_"), (2, 3, "_"), (3, 4, "_")]
    assert write(coded, offsets_of(tags)) == tags
    assert write(read(tags, "runs"), offsets_of(tags)) == tags
    assert write(read([["B", "M", "E", "S"]], "BMES"), np.array([0, 4])) == [["B", "M", "E", "S"]]


PLAIN = {
    "words": [["A", "A", "O"], ["noun", "verb"]],
    "numbers": [[1, 1, 2], ["O", 3]],
    "look like tags, some": [["E-mail", "E-mail", "phone"], ["I-Phone", "S-curve", "O"]],
    "one letter": [["B", "B", "O"], ["B"]],
    "letters, without B": [["I", "E", "O"], ["S"]],
    "letters of tags and others": [["B", "I", "C"]],
    "tuples": [[("x", 1), ("x", 2, 1), ("x", "y", 1)], [("x", True, False), (1.0, 0.0, 1.0)]],
    "nothing": [["O", "O"], ["O"]],
}


@pytest.mark.parametrize("case", PLAIN)
def test_other_labels_are_runs_without_a_word(case):
    assert read(PLAIN[case]).coding.scheme == "runs"


UNCLEAR = {
    "one is no tag": ([["O", "B-LOC", "I-LOC"], ["O", "MISC"]],
                      ["sequence 1, position 1: the label 'MISC' is no tag such as 'B-LOC'"]),
    "one is a number": ([["B-LOC", "I-LOC", 3]], ["sequence 0, position 2", "label 3 is no tag"]),
    "letters": ([["O"], ["O", "B", "I"]], ["sequence 1, position 1: the labels are letters"]),
    "letters of words": ([["B", "M", "E"], ["S"]], ["sequence 0, position 0", "scheme='BMES'"]),
}  # fmt: skip


@pytest.mark.parametrize("case", UNCLEAR)
def test_labels_that_may_be_tags_or_not_are_not_guessed(case):
    y, parts = UNCLEAR[case]
    with pytest.raises(ValueError) as info:
        read(y)
    for part in (*parts, "scheme='runs'", "scheme='IOB2'" if case != "letters of words" else ""):
        assert part in str(info.value)
    assert write(read(y, "runs"), offsets_of(y)) == y


def test_labels_that_only_look_like_tags_are_told_the_way_out():
    with pytest.raises(ValueError, match="sequence 0, position 0: 'E-mail'.*scheme='runs'"):
        read([["E-mail", "I-Phone", "S-curve", "S-curve", "B-side"]])


def test_a_slip_is_told_of_the_scheme_that_the_others_follow():
    tags = [["B-A", "E-A", "S-B", "O"], ["S-A", "B-B", "I-B", "E-B"], ["B-A", "S-B"]]
    with pytest.raises(ValueError, match="sequence 2, position 1: 'S-B' may not follow 'B-A' in"
                       " IOBES, the nearest one; pass"):  # fmt: skip
        read(tags)


def test_conll_reads_what_is_illegal_and_writes_iob2():
    tags = [["O", "I-A", "B-B", "E-B", "S-B"]]
    with pytest.raises(ValueError, match="legal in no scheme; sequence 0, position 1"):
        read(tags)
    coded = read(tags, "conll")
    assert coded.coding.scheme == "conll"
    assert write(coded, offsets_of(tags)) == [["O", "B-A", "B-B", "I-B", "B-B"]]
    spans = [(span.start, span.stop, span.label) for span in spans_from_tags(tags[0])]
    assert listed(coded, offsets_of(tags)) == spans


def test_true_tags_of_conll_are_rewritten_as_predictions_are():
    y = [["O", "I-PER", "I-PER"], ["I-LOC", "O", "O"], ["I-PER", "X", 3], [], ["B-O", "I-LOC"]]
    found = SegmentCoding("conll", "O").as_predicted(y, offsets_of(y))
    assert found == [["O", "B-PER", "I-PER"], ["B-LOC", "O", "O"], *y[2:]]
    assert SegmentCoding("conll", "O").as_predicted([["X"]], np.array([0, 1])) == [["X"]]


def test_tags_that_may_be_io_are_read_as_iob1():
    assert read([["I-A", "I-A", "I-B", "O"]]).coding.scheme == "IOB1"
    assert read([["I-A"]], "IO").coding.scheme == "IO"


def test_the_scheme_to_name_is_one_that_can_read_the_tags():
    for y, scheme in (
        ([["B", "S"]], "conll"), ([["S-A", "B-A", "E-A", "x"]], "IOBES"),
        ([["B-A", "x", "E-A"]], "conll"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"scheme='{scheme}'"):
            read(y)


def test_what_broken_tags_are_advised_helps():
    y = [["O", "I-A", "B-B"]]
    with pytest.raises(ValueError, match=r"scheme='conll'.*crfkit\.metrics\.repair_tags.*'runs'"):
        read(y)
    assert write(read(y, "conll"), offsets_of(y)) == [repair_tags(y[0])] == [["O", "B-A", "B-B"]]
    assert read([repair_tags(y[0])]).coding.scheme == "IOB2"


def test_tags_that_are_all_outside_are_runs():
    coded = read([["O", "O"], ["O"]])
    assert coded.coding.scheme == "runs" and coded.classes.tolist() == ["O"]


@pytest.mark.parametrize("scheme", ["auto", "IOB2", "IO", "runs"])
def test_empty_lists_for_tokens_say_that_there_are_no_segments(scheme):
    offsets = np.array([0, 2, 3])
    coded = read([[], []], scheme, offsets)
    assert write(coded, offsets) == [["O", "O"], ["O"]]
    assert coded.coding.scheme == ("IOB2" if scheme == "auto" else scheme)
    assert coded.coding.as_predicted([[], []], offsets) == [["O", "O"], ["O"]]
    assert write(read([[], []], scheme, np.array([0, 0, 0])), np.array([0, 0, 0])) == [[], []]
    for y in ([], [[]], [[], [], []]):
        with pytest.raises(ValueError, match=f"has 2 sequences, but y has {len(y)}"):
            read(y, scheme, offsets)


def test_labels_that_are_no_strings_are_found_by_their_names_in_tags():
    offsets = np.array([0, 4])
    coded = read([[(0, 2, 7), (2, 4, None or "b")]], "IOB2", offsets)
    tags = write(coded, offsets)
    assert tags == [["B-7", "I-7", "B-b", "I-b"]]
    again = read(tags, "IOB2")
    assert coded.coding.places(again.classes, coded.classes).tolist() == [
        coded.classes.tolist().index(label) for label in (7, "b")
    ]
    assert SegmentCoding("runs", "O").places(again.classes, coded.classes).tolist()[0] == -1


def test_true_labels_take_the_form_of_predicted_ones():
    offsets = np.array([0, 3, 4])
    coding = SegmentCoding("IOBES", "O")
    assert coding.as_predicted([[(1, 3, "A")], []], offsets) == [["O", "B-A", "E-A"], ["O"]]
    tags = (("O", "S-A", "O"), iter(["O"]))
    assert coding.as_predicted(tags, offsets) == [["O", "S-A", "O"], ["O"]]
    runs = SegmentCoding("runs", "O")
    assert runs.as_predicted([[(1, 3, "A")], []], offsets) == [["O", "A", "A"], ["O"]]


BAD = {
    "mixed": ([[(0, 1, "A")], ["A"]], TypeError, ["sequence 1 of y", "'A' is no segment"]),
    "mixed within": ([[(0, 1, "A"), "A"], []], TypeError, ["sequence 0 of y", "'A'"]),
    "not whole": ([[(0, 1, "A"), (1, 2.5, "A")], []], TypeError, ["(1, 2.5, 'A')", "whole"]),
    "empty segment": ([[], [(0, 0, "A")]], ValueError, ["sequence 1 of y", "(0, 0, 'A') is empty"]),
    "too far": ([[], [(0, 2, "A")]], ValueError, ["sequence 1", "not within the 1 tokens"]),
    "negative": ([[(-1, 1, "A")], []], ValueError, ["sequence 0", "(-1, 1, 'A')", "within the 2"]),
    "overlap": ([[(1, 2, "B"), (0, 2, "A")], []], ValueError,
                ["sequence 0", "(0, 2, 'A') and (1, 2, 'B') overlap"]),
    "fewer": ([[(0, 1, "A")]], ValueError, ["X has 2 sequences, but y has 1"]),
    "no label": ([[(0, 1, None)], []], TypeError, ["sequence 0 of y", "not None or NaN"]),
    "NaN": ([[(0, 1, float("nan"))], []], TypeError, ["sequence 0 of y", "not None or NaN"]),
    "unhashable": ([[(0, 1, ["A"])], []], TypeError, ["sequence 0 of y", "hashable"]),
    "same tags": ([[(0, 1, "1"), (1, 2, 1)], []], ValueError, ["'1' and 1", "the same tags"]),
    "not as long": ([["A"], ["A"]], ValueError, ["sequence 0"]),
    "outside": ([["B-O", "O"], ["O"]], ValueError, ["sequence 0, position 0", "type 'O'"]),
    "label first": ([[("P", 0, 2)], []], TypeError, ["sequence 0 of y: segments are (start, stop,",
                    "('P', 0, 2) looks like (label, start, stop). Give Segment(start"]),
    "label first, as many as tokens": ([[("P", 0, 1), ("P", 1, 2)], [("L", 0, 1)]], TypeError,
                                       ["('P', 0, 1) looks like (label, start, stop)"]),
    "label between": ([[], [(0, "P", 1)]], TypeError, ["sequence 1 of y", "(start, label, stop)"]),
    "ends that are floats": ([[(0.0, 2.0, "P")], []], TypeError, ["whole numbers", "other ends"]),
    "with a confidence": ([[(0, 2, "P", 0.9)], []], TypeError, ["one with more than these"]),
    "a string": (["AB", "A"], TypeError, ["sequence 0"]),
    "a dict": ({"a": 1}, TypeError, ["y must be a list"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_told_with_its_place(case):
    y, error, parts = BAD[case]
    with pytest.raises(error) as info:
        read_segments(y, np.array([0, 2, 3]), "auto", "O")
    for part in parts:
        assert part in str(info.value)


@pytest.mark.parametrize(
    ("scheme", "tags", "part"),
    [
        ("IOB2", [["O", "O"], ["I-A"]], "sequence 1, position 0: 'I-A' may not be first in IOB2"),
        ("IO", [["O", "I-A"], ["B-A"]], "sequence 1, position 0: 'B-A' is not a tag of IO"),
        ("IOBES", [["O", "B-A"], ["O"]], "sequence 0, position 1: 'B-A' may not be last in IOBES"),
        ("IOB2", [["O", "X"], ["O"]], "sequence 0, position 1: 'X' is not a tag"),
        ("IOB3", [["O", "O"], ["O"]], "unknown tag scheme 'IOB3'"),
    ],
)
def test_tags_that_a_scheme_does_not_allow_are_told_with_their_place(scheme, tags, part):
    with pytest.raises(ValueError) as info:
        read(tags, scheme)
    assert part in str(info.value)


def test_labels_that_are_no_tags_are_refused_where_tags_are_asked_for():
    with pytest.raises(TypeError, match="sequence 0, position 1"):
        read([["O", 3]], "IOB2")


def test_segments_may_be_listed_in_any_form_and_order():
    offsets = np.array([0, 3, 3, 8])
    forms = [[Segment(1, 3, "A"), (np.int64(0), np.int32(1), "B")], [], [["0", "5", "C"]][:0]]
    found = read_listed(lists([*forms[:2], [Segment(1, 5, "C")]]), offsets, "y")
    assert found.start.tolist() == [1, 0, 4] and found.stop.tolist() == [3, 1, 8]
    assert found.labels == ["A", "B", "C"]
    check_apart(found, offsets, "y")


def test_codes_of_labels_that_occur_are_numbered_again():
    tags = [["B-A", "I-A", "O"], ["B-B", "B-C", "I-C"]]
    coded = read(tags)
    part = coded.targets(offsets_of(tags), False).take(slice(3, 6))
    present, fewer = coded.coding.restrict(part, len(coded.classes), np.ones(3, bool))
    assert coded.classes[present].tolist() == ["B", "C"]
    assert coded.coding.write(fewer.labels, coded.classes[present], np.array([0, 3])) == tags[1:]
