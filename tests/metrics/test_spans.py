from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._types import ProbableSegment
from crfkit.io import spans_to_tags
from crfkit.labels.spans import spans_of_all
from crfkit.metrics import (
    IllegalTag,
    Segment,
    allowed_transitions,
    convert_tags,
    detect_scheme,
    illegal_tags,
    repair_tags,
    spans_from_tags,
    tags_from_spans,
    validate_tags,
)
from tests.sampling import examples

SCHEMES = ("IO", "IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES", "BMEWO")
# IO writes neighboring spans of one type as one.
LOSSLESS = SCHEMES[1:]
MAX_LENGTH = 4


def all_span_lists(length, types, start=0):
    """Yield every list of spans that fits into a sequence."""
    if start == length:
        yield []
        return
    yield from all_span_lists(length, types, start + 1)
    for stop in range(start + 1, length + 1):
        for type_ in types:
            for rest in all_span_lists(length, types, stop):
                yield [Segment(start, stop, type_), *rest]


@st.composite
def span_lists(draw):
    types = st.sampled_from(["PER", "LOC", "A-B", "_"])
    cuts = draw(st.lists(st.tuples(st.integers(1, 4), st.none() | types), max_size=8))
    spans, start = [], 0
    for length, label in cuts:
        if label is not None:
            spans.append(Segment(start, start + length, label))
        start += length
    return spans, start


@pytest.mark.parametrize("scheme", SCHEMES)
def test_legal_sequences_are_those_that_spans_write(scheme, letters, tag_set):
    tags = tag_set(letters[scheme], "XY")
    for length in range(MAX_LENGTH + 1):
        written = {
            tuple(tags_from_spans(spans, length, scheme)) for spans in all_span_lists(length, "XY")
        }
        candidates = list(product(tags, repeat=length))
        faulty = {illegal.sequence for illegal in illegal_tags(candidates, scheme)}
        assert {c for i, c in enumerate(candidates) if i not in faulty} == written


@pytest.mark.parametrize("scheme", SCHEMES)
def test_transitions_are_allowed_exactly_where_sequences_are_legal(scheme, letters, tag_set):
    tags = tag_set(letters[scheme], ["X", "Y", ""])
    tags = [tag.rstrip("-") for tag in tags]
    allowed, start, end = allowed_transitions(tags, scheme)
    for length in range(1, 4):
        candidates = list(product(range(len(tags)), repeat=length))
        sequences = [[tags[i] for i in candidate] for candidate in candidates]
        faulty = {illegal.sequence for illegal in illegal_tags(sequences, scheme)}
        for i, codes in enumerate(candidates):
            steps = all(allowed[pair] for pair in pairwise(codes))
            assert (start[codes[0]] and steps and end[codes[-1]]) == (i not in faulty)


def test_every_transition_is_allowed_by_conll():
    for allowed in allowed_transitions(["B-X", "I-X", "E-Y", "S-Y", "O"], "conll"):
        assert allowed.all()


def test_allowed_transitions_have_known_values_in_iobes():
    allowed, start, end = allowed_transitions(["E-X", "B-X", "E-Y", "O"], "IOBES")
    np.testing.assert_array_equal(allowed, [[0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1]])
    np.testing.assert_array_equal(start, [0, 1, 0, 1])
    np.testing.assert_array_equal(end, [1, 0, 1, 1])


@given(span_lists(), st.sampled_from(LOSSLESS), st.booleans(), st.sampled_from(["-", "_", "::"]))
def test_spans_survive_writing_and_reading(data, scheme, suffix, delimiter):
    spans, length = data
    kwargs = {"suffix": suffix, "delimiter": delimiter}
    tags = tags_from_spans(spans, length, scheme, **kwargs)
    assert len(tags) == length
    assert spans_from_tags(tags, scheme, **kwargs) == spans
    assert spans_from_tags(tags, "conll", **kwargs) == spans


@given(span_lists(), st.sampled_from(LOSSLESS), st.sampled_from(LOSSLESS))
def test_conversion_there_and_back_changes_nothing(data, source, target):
    tags = tags_from_spans(*data, source)
    converted = convert_tags(tags, source, target)
    assert converted == tags_from_spans(*data, target)
    assert convert_tags(converted, target, source) == tags


@given(
    st.lists(st.sampled_from(["O", *(f"{x}-{t}" for x in "BIES" for t in "XY")]), max_size=8),
    st.sampled_from(LOSSLESS),
)
def test_repair_is_legal_and_keeps_the_spans(tags, scheme):
    repaired = repair_tags(tags, scheme)
    validate_tags([repaired], scheme)
    assert spans_from_tags(repaired, scheme) == spans_from_tags(tags)
    assert repair_tags(repaired, scheme) == repaired


def test_io_joins_neighboring_spans_of_one_type():
    tags = tags_from_spans([(0, 1, "X"), (1, 2, "X"), (2, 3, "Y")], 3, "IO")
    assert tags == ["I-X", "I-X", "I-Y"]
    assert spans_from_tags(tags, "IO") == [(0, 2, "X"), (2, 3, "Y")]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("IO", "I-X I-X I-X O I-X I-Y"),
        ("IOB1", "I-X I-X B-X O I-X I-Y"),
        ("IOB2", "B-X I-X B-X O B-X B-Y"),
        ("BIO", "B-X I-X B-X O B-X B-Y"),
        ("IOE1", "I-X E-X I-X O I-X I-Y"),
        ("IOE2", "I-X E-X E-X O E-X E-Y"),
        ("IOBES", "B-X E-X S-X O S-X S-Y"),
        ("BILOU", "B-X L-X U-X O U-X U-Y"),
        ("bmes", "B-X E-X S-X O S-X S-Y"),
        ("BMEWO", "B-X E-X W-X O W-X W-Y"),
    ],
)
def test_schemes_write_the_textbook_tags(scheme, tags):
    spans = [(0, 2, "X"), (2, 3, "X"), (4, 5, "X"), (5, 6, "Y")]
    assert tags_from_spans(spans, 6, scheme) == tags.split()


def test_long_spans_have_an_inside():
    assert tags_from_spans([(0, 4, "X")], 4, "BMES") == ["B-X", "M-X", "M-X", "E-X"]


@pytest.mark.parametrize(
    ("tags", "conll", "strict"),
    [
        ("O I-X I-X", [(1, 3, "X")], []),
        ("B-X I-Y", [(0, 1, "X"), (1, 2, "Y")], [(0, 1, "X")]),
        ("I-X B-X", [(0, 1, "X"), (1, 2, "X")], [(1, 2, "X")]),
        ("B-X O I-X", [(0, 1, "X"), (2, 3, "X")], [(0, 1, "X")]),
    ],
)
def test_strict_reading_drops_what_conll_reads_leniently(tags, conll, strict):
    assert spans_from_tags(tags.split()) == conll
    assert spans_from_tags(tags.split(), "IOB2") == strict


def test_bare_tags_and_empty_types_are_untyped():
    assert spans_from_tags(["B", "I", "B-"]) == [(0, 2, "_"), (2, 3, "_")]
    assert tags_from_spans([(0, 2, "_")], 3, "BMES") == ["B", "E", "O"]


def test_empty_sequence_has_no_spans_and_no_tags():
    assert spans_from_tags([]) == []
    assert tags_from_spans([], 0) == []
    assert illegal_tags([[], []], "IOB2") == []


def test_spans_may_be_given_in_any_order():
    assert tags_from_spans([(2, 3, "Y"), (0, 1, "X")], 3) == ["B-X", "O", "B-Y"]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 2, "X"), (1, 3, "Y")], "overlap"),
        ([(0, 1, "X"), (0, 1, "Y")], "overlap"),
        ([(2, 5, "X")], "not within the 4 tokens"),
        ([(-1, 1, "X")], "not within"),
        ([(1, 1, "X")], "empty"),
    ],
)
def test_impossible_spans_are_refused(spans, message):
    with pytest.raises(ValueError, match=message):
        tags_from_spans(spans, 4)


@pytest.mark.parametrize(
    "spans",
    [
        [Segment(3, 4, 7), Segment(0, 2, "PER")],
        [ProbableSegment(0, 2, "PER", 0.9), ProbableSegment(3, 4, 7, 0.8)],
        [Segment(0, 2, "PER"), (np.int64(3), np.int64(4), "7")],
        [Segment(3, 4, 7), [0, 2, "PER"]],
    ],
)
def test_spans_are_read_by_the_names_of_their_fields(spans):
    assert tags_from_spans(spans, 4) == ["B-PER", "I-PER", "O", "B-7"]
    offsets = [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert spans_to_tags(offsets, spans) == tags_from_spans(spans, 4)


@pytest.mark.parametrize(
    ("span", "error", "message"),
    [
        (("PER", 0, 2), TypeError, r"\('PER', 0, 2\) is no segment .*Give Segment\(start, stop"),
        ((1, "2", 3), TypeError, "is no segment"),
        (["PER", 0, 2], TypeError, "is no segment"),
        (("0", 2, "PER"), TypeError, "with whole numbers"),
        ((0.0, 2, "PER"), TypeError, "with whole numbers"),
        ((True, 2, "PER"), TypeError, "with whole numbers"),
        ((0, 2), TypeError, "is no segment"),
        ("PER", TypeError, "0.*: 'PER' is no segment"),
    ],
)
def test_what_cannot_be_told_from_a_span_is_refused(span, error, message):
    with pytest.raises(error, match=message):
        tags_from_spans([span], 4)
    with pytest.raises(error, match=message):
        spans_to_tags([(0, 1), (1, 2)], [span])


def test_conll_is_not_written():
    with pytest.raises(ValueError, match="way to read"):
        tags_from_spans([], 1, "conll")


def test_illegal_tags_name_sequence_position_and_reason():
    y = [["O"], ["O", "I-X"], ["I-X", "B-Y", "E-Y"], []]
    assert illegal_tags(y, "IOB2") == [
        IllegalTag(1, 1, "I-X", "'I-X' may not follow 'O' in IOB2"),
        IllegalTag(2, 0, "I-X", "'I-X' may not be first in IOB2"),
        IllegalTag(2, 2, "E-Y", "'E-Y' is not a tag of IOB2"),
    ]
    assert illegal_tags([[], ["O", "B-X"]], "BILOU") == [
        IllegalTag(1, 1, "B-X", "'B-X' may not be last in BILOU")
    ]


def test_validate_counts_the_other_faults():
    message = r"sequence 0, position 1: 'I-X' may not follow 'O' in IOB2 \(and 1 more\)"
    with pytest.raises(ValueError, match=message):
        validate_tags([["O", "I-X"], ["I-X"]], "IOB2")


def test_conversion_refuses_illegal_tags_unless_read_by_conll():
    with pytest.raises(ValueError, match="position 0: 'I-X' may not be first"):
        convert_tags(["I-X"], "IOB2", "IOBES")
    assert convert_tags(["I-X"], "conll", "IOBES") == ["S-X"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_detected_scheme_has_the_same_spans(scheme, letters):
    y = [
        tags_from_spans(spans, 4, scheme) for spans in list(all_span_lists(4, "XY"))[:: len(scheme)]
    ]
    detected = detect_scheme(y)
    assert [spans_from_tags(tags, detected) for tags in y] == [
        spans_from_tags(tags, scheme) for tags in y
    ]
    assert set(letters[detected]) == set(letters[scheme])


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O O", "IOB2"),
        ("B-X I-X O", "IOB2"),
        ("I-X I-X O", "IO"),
        ("I-X B-X O", "IOB1"),
        ("I-X E-X O", "IOE2"),
        ("E-X I-X O", "IOE1"),
        ("B-X E-X S-X", "IOBES"),
        ("B-X L-X U-X", "BILOU"),
        ("B M E S", "BMES"),
        ("B M E W", "BMEWO"),
    ],
)
def test_detection_of_small_examples(tags, scheme):
    assert detect_scheme([tags.split()]) == scheme


def test_detection_of_the_undetectable_says_so():
    with pytest.raises(ValueError, match="legal in no scheme; sequence 0, position 1"):
        detect_scheme([["O", "I-X", "B-Y"]])


def test_transitions_refuse_foreign_labels():
    with pytest.raises(ValueError, match="'S-X' is not a tag of IOB2"):
        allowed_transitions(["O", "S-X"], "IOB2")


@pytest.mark.parametrize("scheme", ["IOB", None, 2])
def test_unknown_schemes_are_named(scheme):
    with pytest.raises(ValueError, match="unknown tag scheme .*known schemes: .*IOBES"):
        spans_from_tags(["O"], scheme)


@pytest.mark.parametrize("function", [spans_from_tags, repair_tags])
def test_a_string_is_not_a_sequence_of_tags(function):
    with pytest.raises(TypeError, match="sequence 0 of tags is the string 'B-PER'"):
        function("B-PER")


@pytest.mark.parametrize("scheme", [*SCHEMES, "conll"])
@examples(10)
@given(st.lists(span_lists(), max_size=4))
def test_spans_of_all_sequences_are_those_of_each(scheme, lists):
    written = "IOBES" if scheme == "conll" else scheme
    y = [tags_from_spans(spans, length, written) for spans, length in lists]
    expected = [
        (s, start, stop, label)
        for s, tags in enumerate(y)
        for start, stop, label in spans_from_tags(tags, scheme)
    ]
    names, types, *places = spans_of_all(y, scheme)
    rows = zip(*(place.tolist() for place in places), types.tolist(), strict=True)
    assert [(s, start, stop, names[k]) for s, start, stop, k in rows] == expected


def test_spans_of_all_sequences_refuse_what_is_illegal():
    y = [["B-X"], ["O", "I-X"], ["I-Y", "O"]]
    with pytest.raises(ValueError, match=r"^sequence 1, position 1: 'I-X' may .* \(and 1 more\)$"):
        spans_of_all(y, "IOB2")
    with pytest.raises(ValueError, match=r"^sequence 0, position 0: 'B-X' is not a tag of IO$"):
        spans_of_all(y, "IO")
