import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import UNLABELED
from crfkit.metrics import Segment
from crfkit.text import AnnotatedText, from_tokens, to_tokens
from tests.sampling import examples

LETTERS = "ab1 \n.é\u0301\U0001f469\u200d中\u05d0"
TEXT = "Ann Lee's dog"


@st.composite
def annotated(draw):
    text = draw(st.text(LETTERS, max_size=12))
    bounds = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    spans = [(a, b, draw(st.sampled_from("PQ"))) for a, b in draw(st.lists(bounds, max_size=4))]
    return AnnotatedText(text, [span for span in spans if span[0] < span[1]])


@pytest.mark.filterwarnings("ignore:.* not fit the tokens")
@examples(30)
@given(
    annotated(),
    st.sampled_from(["words", "characters"]),
    st.sampled_from(["report", "expand", "contract"]),
    st.sampled_from(["longest", "first"]),
)
def test_every_span_comes_back_or_is_reported(one, tokenizer, misfit, overlap):
    found = to_tokens([one], tokenizer, misfit=misfit, overlap=overlap)
    (back,) = from_tokens(found.tokens, found.tags, texts=[one.text], offsets=found.offsets)
    reported = {record.span for record in found.misaligned}
    assert set(one.spans) - reported <= set(back.spans)
    assert len(set(one.spans) & set(back.spans)) + len(found.misaligned) >= len(set(one.spans))
    assert {record.text_id for record in found.misaligned} <= {0}


@examples(20)
@given(
    st.lists(
        st.lists(
            st.tuples(
                st.text("ab é中", min_size=1), st.sampled_from(["O", "B-P", "I-P", UNLABELED])
            )
        )
    ),
    st.sampled_from([" ", ""]),
)
def test_tokens_and_tags_come_back_from_their_text(rows, separator):
    tokens, tags = ([[pair[i] for pair in row] for row in rows] for i in (0, 1))
    texts = from_tokens(tokens, tags, separator=separator)
    again = to_tokens(texts)
    assert again.tokens == tokens
    assert from_tokens(again.tokens, again.tags, separator=separator) == texts
    assert not again.misaligned


def test_tokens_that_a_misaligned_span_touches_are_unlabeled_and_told():
    one = AnnotatedText(TEXT, [(0, 3, "PER"), (5, 8, "ORG"), (3, 4, "X")], id="a7")
    with pytest.warns(UserWarning, match="2 spans do not fit.*text 'a7': the span \"ee'\""):
        found = to_tokens([one], "whitespace")
    assert found.tags == [["B-PER", UNLABELED, "O"]]
    assert found.misaligned == [
        ("a7", Segment(5, 8, "ORG"), "ee'", ["Lee's"], "unlabeled"),
        ("a7", Segment(3, 4, "X"), " ", [], "left out"),
    ]


@pytest.mark.filterwarnings("ignore:a span does not fit the tokens")
@pytest.mark.parametrize(
    ("misfit", "tags", "outcome"),
    [
        ("expand", ["B-P", "I-P", "O"], "expanded"),
        ("contract", ["B-P", "O", "O"], "contracted"),
        ("report", [UNLABELED, UNLABELED, "O"], "unlabeled"),
    ],
)
def test_policies_for_spans_that_do_not_fit(misfit, tags, outcome):
    found = to_tokens([AnnotatedText(TEXT, [(0, 7, "P")])], "whitespace", misfit=misfit)
    assert (found.tags, found.misaligned[0].outcome) == ([tags], outcome)


@pytest.mark.filterwarnings("ignore:a span does not fit the tokens")
@pytest.mark.parametrize(("overlap", "kept"), [("longest", (4, 13)), ("first", (0, 7))])
def test_policies_for_spans_that_overlap(overlap, kept):
    one = AnnotatedText(TEXT, [(0, 7, "P"), (4, 13, "Q")])
    found = to_tokens([one], overlap=overlap)
    (back,) = from_tokens(found.tokens, found.tags, texts=[TEXT])
    assert [span[:2] for span in back.spans] == [kept]
    assert "shares a token with" in found.misaligned[0].outcome
    with pytest.raises(ValueError, match="text 0: .*overlap or share a token.*overlap='longest'"):
        to_tokens([one])


def test_neighbors_that_a_scheme_cannot_part_are_told():
    one = AnnotatedText("Ann Bob Rome", [(0, 3, "P"), (4, 7, "P"), (8, 12, "L")])
    assert to_tokens([one], scheme="IOB2").misaligned == []
    with pytest.warns(UserWarning, match="the scheme cannot part it from"):
        found = to_tokens([one], scheme="IO")
    assert [record.span for record in found.misaligned] == [Segment(4, 7, "P")]


def test_parts_of_which_nothing_is_known_are_unlabeled():
    one = AnnotatedText(TEXT, [(0, 3, "P"), (4, 9, UNLABELED)])
    assert to_tokens([one], "whitespace").tags == [["B-P", UNLABELED, "O"]]
    assert to_tokens([one], "whitespace", partial=True).tags == [["B-P", UNLABELED, UNLABELED]]
    own = AnnotatedText(TEXT, [(0, 3, "P")], offsets=[(0, 3), (4, 13)])
    assert to_tokens([own]).tokens == [["Ann", "Lee's dog"]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AnnotatedText(3), "the text is a int"),
        (lambda: AnnotatedText("ab", [(1, 3, "P")], id=5), "text 5: Segment.*within its 2"),
        (lambda: AnnotatedText("ab", [(0, 1, "P")], span_probabilities=[]), "1 spans, but 0"),
        (lambda: AnnotatedText("ab", ["P"]), "span 0: 'P' is no segment"),
        (lambda: AnnotatedText("ab", offsets=[(0, 3)]), "ends behind its 2"),
        (lambda: AnnotatedText("ab", offsets=[(1, 1)]), "position 0: the token"),
        (lambda: to_tokens(AnnotatedText("ab")), "put it into a list"),
        (lambda: to_tokens([3]), "text 0 is a int"),
        (lambda: to_tokens([AnnotatedText("ab", [(0, 1, "P")])], misfit="raise"), "text 0: .*'a'"),
        (lambda: to_tokens([AnnotatedText("ab", id=9)], lambda t: ["c"]), "text 9, tokenizer"),
        (lambda: from_tokens([["a"]], [["O", "O"]]), "sequence 0 has 1 tokens, but 2 tags"),
        (lambda: from_tokens([["a"]], []), "1 sequences of tokens, but 0"),
        (lambda: from_tokens(["a"], [["O"]]), "give lists of strings"),
        (lambda: from_tokens([["a", ""]], [["O", "O"]]), "position 1: the token is empty"),
        (lambda: from_tokens([["a"]], [["O"]], texts=["b"]), "text 0: position 0: expected"),
    ],
)
def test_what_is_no_text_with_spans_is_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
