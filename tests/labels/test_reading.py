"""What codes say of spans: by the tables of schemes, of runs of labels, and of segments."""

import itertools

import numpy as np
import pytest

from crfkit.labels.reading import read_labels, read_segment_codes
from crfkit.labels.schemes import SCHEMES, get_scheme
from crfkit.labels.segmentation import segmentation_of
from crfkit.labels.spans import illegal_tags, spans_from_tags
from crfkit.metrics import Segment

MIXED = ["B-X", "I-X", "X", "O", "B-Y"]


def spans_of(reading, codes, lengths=None):
    """Return the spans of codes, of one sequence or of some of these lengths, one after another."""
    offsets = np.cumsum([0, *([len(codes)] if lengths is None else lengths)])
    found = reading.spans(np.array(codes, np.int32), offsets)
    rows = zip(found.start.tolist(), found.stop.tolist(), found.type.tolist(), strict=True)
    return [Segment(start, stop, reading.types[type_]) for start, stop, type_ in rows]


def tags_of(scheme):
    letters = [letter for letter, role in scheme.roles.items() if role]
    return ["O", *(f"{letter}-{kind}" for kind in "XY" for letter in letters)]


@pytest.mark.parametrize("name", sorted({scheme.name for scheme in SCHEMES.values()}))
def test_tags_are_read_as_their_scheme_reads_them(name):
    rules = get_scheme(name)
    tags = tags_of(rules)
    reading, loose = read_labels(tags, rules), read_labels(tags)
    for length in range(4):
        for codes in itertools.product(range(len(tags)), repeat=length):
            if np.random.default_rng([length, *codes]).random() > 120 / len(tags) ** length:
                continue
            sequence = [tags[code] for code in codes]
            legal = not illegal_tags([sequence], name)
            if legal or name != "IOB1":  # there, a tag that goes on with an illegal one may begin
                assert spans_of(reading, codes) == spans_from_tags(sequence, name)
            assert spans_of(loose, codes) == spans_from_tags(sequence)
            assert not legal or spans_of(loose, codes) == spans_of(reading, codes)


def test_sequences_are_read_one_by_one():
    reading = read_labels(["B-X", "I-X", "O"])
    lengths = [2, 0, 1, 3, 0]
    found = spans_of(reading, [0, 1, 1, 1, 2, 0], lengths)
    assert found == [(0, 2, "X"), (2, 3, "X"), (3, 4, "X"), (5, 6, "X")]
    assert spans_of(reading, [], [0, 0]) == []


@pytest.mark.parametrize(
    ("classes", "types", "spans"),
    [
        (["A", "C", "O"], ["A", "C"], [(0, 2, "A"), (2, 3, "C")]),
        ([3, 7, "O"], [3, 7], [(0, 2, 3), (2, 3, 7)]),
        (["S-BAR", "NP", "O"], ["S-BAR", "NP"], [(0, 2, "S-BAR"), (2, 3, "NP")]),
        (["B", "I", "O"], ["_"], [(0, 1, "_"), (1, 3, "_")]),
        (["B", "C", "O"], ["B", "C"], [(0, 2, "B"), (2, 3, "C")]),
        (["B_A", "I_A", "O"], ["A"], [(0, 1, "A"), (1, 3, "A")]),
        (["A-B", "A-I", "O"], ["A"], [(0, 1, "A"), (1, 3, "A")]),
        (["A_B", "A_I", "O"], ["A"], [(0, 1, "A"), (1, 3, "A")]),
        (["A_B", "C_I", "O"], ["A_B", "C_I"], [(0, 2, "A_B"), (2, 3, "C_I")]),
        (["S-A", "S-C", "O"], ["A", "C"], [(0, 1, "A"), (1, 2, "A"), (2, 3, "C")]),
    ],
)
def test_labels_are_tags_or_their_runs_are_spans(classes, types, spans):
    reading = read_labels(classes)
    assert reading.types == types
    assert spans_of(reading, [0, 0, 1, 2]) == spans


def test_other_labels_among_tags_are_read_by_their_runs():
    reading = read_labels(MIXED)
    assert reading.types == ["X", "Y"] and reading.type_of.tolist() == [0, 0, 0, -1, 1]
    found = spans_of(reading, [0, 1, 2, 2, 1, 4, 2])
    assert found == [(0, 2, "X"), (2, 4, "X"), (4, 5, "X"), (5, 6, "Y"), (6, 7, "X")]


def test_labels_must_be_tags_of_a_scheme_that_is_given():
    suffixed = get_scheme("IOB2", suffix=True, delimiter="_")
    assert spans_of(read_labels(["X_B", "X_I", "O"], suffixed), [0, 1, 2]) == [(0, 2, "X")]
    with pytest.raises(ValueError, match="'E-X' is not a tag of IOB2"):
        read_labels(["E-X", "O"], get_scheme("IOB2"))


def test_what_is_outside_may_be_a_span():
    reading = read_labels(["B-X", "I-X", "O"], outside=True)
    assert spans_of(reading, [2, 2, 0, 1, 2]) == [(0, 2, "O"), (2, 4, "X"), (4, 5, "O")]
    codes = read_segment_codes(["A", "O"], outside=True)
    assert spans_of(codes, [3, 3, 1, 2, 0]) == [(0, 1, "O"), (1, 3, "O"), (3, 5, "A")]


def test_copies_of_codes_are_read_as_these():
    reading = read_labels(["B-X", "I-X", "O"])
    copies = np.array([0, 0, 1, 2, 2])
    taken = reading.taken(copies)
    assert spans_of(taken, [0, 2, 3, 1, 0]) == spans_of(reading, copies[[0, 2, 3, 1, 0]])
    withheld = np.array([0, 1, -1, 1, 2])
    assert spans_of(reading, withheld) == [(0, 2, "X"), (3, 4, "X")]


@pytest.mark.parametrize("classes", [["A", "O"], ["A", "B-X", "O"], ["A"], ["O"]])
def test_codes_of_segments_say_where_they_begin(classes):
    reading, size = read_segment_codes(classes), len(classes)
    assert reading.types == [label for label in classes if label != "O"]
    for codes in itertools.product(range(2 * size), repeat=3):
        goes_on = np.array(codes) < size
        labels = np.array(codes) % size
        if goes_on[0] or (goes_on[1:] & (labels[1:] != labels[:-1])).any():
            continue
        runs = segmentation_of(np.array(codes), np.array([0, 3]), size)
        expected = [(a, b, classes[k]) for a, b, k in zip(*runs, strict=True) if classes[k] != "O"]
        assert spans_of(reading, codes) == expected
