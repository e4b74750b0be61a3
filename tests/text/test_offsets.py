import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import UNLABELED
from crfkit.io import spans_to_tags, tags_to_spans, token_offsets
from crfkit.metrics import Segment
from tests.sampling import examples

OFFSETS = [(0, 3), (4, 7), (7, 9), (10, 13)]  # "Ann Lee's dog"


@given(st.lists(st.text("ab", min_size=1)), st.lists(st.text(" \n\u00a0"), min_size=20))
def test_found_tokens_are_the_text_at_their_offsets(tokens, blanks):
    pieces = [blank + token for blank, token in zip(blanks, tokens, strict=False)]
    kept = tokens[: len(pieces)]
    text = "".join(pieces) + " "
    found = token_offsets(text, kept)
    assert [text[start:stop] for start, stop in found] == kept
    assert all(left[1] <= right[0] for left, right in zip(found, found[1:], strict=False))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["a", ""], "position 1: the token is empty"),
        (["a", "c"], "position 1: expected the token 'c' at character 2, found 'b'"),
        (["a", "b", "b"], "position 2: expected the token 'b' at character 3, found ''"),
    ],
)
def test_tokens_that_are_not_in_the_text_are_named(tokens, message):
    with pytest.raises(ValueError, match=message):
        token_offsets("a b", tokens)


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [("IOB2", ["B-P", "I-P", "O", "B-X"]), ("BILOU", ["B-P", "L-P", "O", "U-X"])],
)
def test_fitting_spans_become_tags_in_any_scheme(scheme, tags):
    assert spans_to_tags(OFFSETS, [(10, 13, "X"), (0, 7, "P")], scheme) == tags
    assert tags_to_spans(OFFSETS, tags) == [Segment(0, 7, "P"), Segment(10, 13, "X")]


@pytest.mark.parametrize(
    ("span", "expanded", "contracted"),
    [
        ((1, 8, "P"), "B I I O", "O B O O"),
        ((3, 10, "P"), "O B I O", "O B I O"),
        ((0, 5, "P"), "B I O O", "B O O O"),
        ((9, 14, "P"), "O O O B", "O O O B"),
    ],
)
def test_spans_that_do_not_fit_follow_the_policy(span, expanded, contracted):
    def letters(misfit):
        return " ".join(tag[0] for tag in spans_to_tags(OFFSETS, [span], misfit=misfit))

    with pytest.raises(ValueError, match=r"Segment\(.*label='P'\) does not end where"):
        spans_to_tags(OFFSETS, [span])
    assert letters("expand") == expanded
    assert letters("contract") == contracted


@pytest.mark.parametrize(
    ("spans", "options", "message"),
    [
        ([(3, 4, "P")], {}, "start=3, stop=4, label='P'. holds no token"),
        ([(20, 24, "P")], {"misfit": "expand"}, "stop=24.* holds no token"),
        ([(1, 2, "P")], {"misfit": "contract"}, "holds no whole token"),
        ([(3, 3, "P")], {}, "is empty"),
        ([(-1, 3, "P")], {}, "begins before the text"),
        ([(0, 7, "P"), (4, 9, "Q")], {}, "label='P'. and Segment.*label='Q'. overlap"),
        ([(0, 5, "P"), (5, 7, "Q")], {"misfit": "expand"}, "share a token"),
        ([], {"misfit": "skip"}, "misfit='skip' is not known"),
    ],
)
def test_spans_that_cannot_be_tags_are_named(spans, options, message):
    with pytest.raises(ValueError, match=message):
        spans_to_tags(OFFSETS, spans, **options)


@pytest.mark.parametrize("offsets", [[(3, 4), (0, 1)], [(0, 2), (1, 3)], [(1, 1)], [(-1, 1)]])
def test_offsets_out_of_order_are_refused(offsets):
    for convert in (lambda: spans_to_tags(offsets, []), lambda: tags_to_spans(offsets, ["O"])):
        with pytest.raises(ValueError, match="position . *: the token"):
            convert()


def test_tags_and_tokens_must_be_as_many():
    with pytest.raises(ValueError, match="4 tokens, but 1 tags"):
        tags_to_spans(OFFSETS, ["O"])


@st.composite
def tokens_and_spans(draw):
    lengths = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=8))
    offsets, end = [], 0
    for gap, length in lengths:
        offsets.append((end + gap, end + gap + length))
        end += gap + length
    cuts = sorted(draw(st.sets(st.integers(0, len(offsets)))))
    bounds = list(zip(cuts, cuts[1:], strict=False))[:: draw(st.integers(1, 2))]
    labels = draw(st.lists(st.sampled_from("PQ"), min_size=len(bounds), max_size=len(bounds)))
    spans = [
        Segment(offsets[a][0], offsets[b - 1][1], label)
        for label, (a, b) in zip(labels, bounds, strict=True)
    ]
    return offsets, spans


@examples(12)
@given(tokens_and_spans(), st.sampled_from(["IOB2", "IOBES", "BMEWO"]))
def test_spans_come_back_from_their_tags(case, scheme):
    offsets, spans = case
    assert tags_to_spans(offsets, spans_to_tags(offsets, spans, scheme), scheme) == spans


@examples(12)
@given(tokens_and_spans(), st.integers(0, 12), st.integers(1, 12))
def test_policies_take_what_the_definition_says(case, start, length):
    offsets, _ = case
    stop = start + length
    touched = [t for t, (b, e) in enumerate(offsets) if b < stop and start < e]
    inside = [t for t, (b, e) in enumerate(offsets) if start <= b and e <= stop]
    for misfit, expected in (("expand", touched), ("contract", inside)):
        if expected:
            tags = spans_to_tags(offsets, [(start, stop, "P")], "IO", misfit=misfit)
            assert [t for t, tag in enumerate(tags) if tag != "O"] == expected
        else:
            with pytest.raises(ValueError, match="holds no"):
                spans_to_tags(offsets, [(start, stop, "P")], misfit=misfit)


def test_texts_may_be_annotated_in_part():
    offsets = [(0, 3), (4, 7), (8, 11)]
    assert spans_to_tags(offsets, [(0, 7, "P")], "IOBES", partial=True) == ["B-P", "E-P", UNLABELED]
    assert spans_to_tags(offsets, [], partial=True) == [UNLABELED] * 3
    with pytest.raises(TypeError, match="partial"):
        spans_to_tags(offsets, [], partial="yes")
