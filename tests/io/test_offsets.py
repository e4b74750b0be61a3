import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit.io import spans_to_tags, tags_to_spans, token_offsets
from crfkit.metrics import Span

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
    assert spans_to_tags(OFFSETS, [("X", 10, 13), ("P", 0, 7)], scheme) == tags
    assert tags_to_spans(OFFSETS, tags) == [Span("P", 0, 7), Span("X", 10, 13)]


@pytest.mark.parametrize(
    ("span", "expanded", "contracted"),
    [
        (("P", 1, 8), "B I I O", "O B O O"),
        (("P", 3, 10), "O B I O", "O B I O"),
        (("P", 0, 5), "B I O O", "B O O O"),
        (("P", 9, 14), "O O O B", "O O O B"),
    ],
)
def test_spans_that_do_not_fit_follow_the_policy(span, expanded, contracted):
    def letters(misfit):
        return " ".join(tag[0] for tag in spans_to_tags(OFFSETS, [span], misfit=misfit))

    with pytest.raises(ValueError, match=r"Span\(label='P', .* does not end where tokens do"):
        spans_to_tags(OFFSETS, [span])
    assert letters("expand") == expanded
    assert letters("contract") == contracted


@pytest.mark.parametrize(
    ("spans", "options", "message"),
    [
        ([("P", 3, 4)], {}, r"start=3, stop=4\) holds no token"),
        ([("P", 20, 24)], {"misfit": "expand"}, "stop=24.* holds no token"),
        ([("P", 1, 2)], {"misfit": "contract"}, "holds no whole token"),
        ([("P", 3, 3)], {}, "is empty"),
        ([("P", -1, 3)], {}, "begins before the text"),
        ([("P", 0, 7), ("Q", 4, 9)], {}, "label='P', .* and Span.label='Q', .* overlap"),
        ([("P", 0, 5), ("Q", 5, 7)], {"misfit": "expand"}, "share a token"),
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
        Span(label, offsets[a][0], offsets[b - 1][1])
        for label, (a, b) in zip(labels, bounds, strict=True)
    ]
    return offsets, spans


@settings(max_examples=60)
@given(tokens_and_spans(), st.sampled_from(["IOB2", "IOBES", "BMEWO"]))
def test_spans_come_back_from_their_tags(case, scheme):
    offsets, spans = case
    assert tags_to_spans(offsets, spans_to_tags(offsets, spans, scheme), scheme) == spans


@settings(max_examples=60)
@given(tokens_and_spans(), st.integers(0, 12), st.integers(1, 12))
def test_policies_take_what_the_definition_says(case, start, length):
    offsets, _ = case
    stop = start + length
    touched = [t for t, (b, e) in enumerate(offsets) if b < stop and start < e]
    inside = [t for t, (b, e) in enumerate(offsets) if start <= b and e <= stop]
    for misfit, expected in (("expand", touched), ("contract", inside)):
        if expected:
            tags = spans_to_tags(offsets, [("P", start, stop)], "IO", misfit=misfit)
            assert [t for t, tag in enumerate(tags) if tag != "O"] == expected
        else:
            with pytest.raises(ValueError, match="holds no"):
                spans_to_tags(offsets, [("P", start, stop)], misfit=misfit)
