"""Errors of known and of unknown words, against counts by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import UNLABELED
from crfkit.metrics import TokenErrors, flat_accuracy_score, token_errors
from tests.sampling import examples

TRUE, PRED = [["D", "N"], ["N", "V", "D"], []], [["D", "V"], ["N", "N", "N"], []]
WORDS = [["the", "dog"], ["Dogs", "eat", "the"], []]


@pytest.mark.parametrize("known", [
    [["the", "eat"], ["the"]], {"the", "eat"}, dict.fromkeys(["the", "eat"]).keys(),
    [np.array(["the", "eat"])], (iter(words) for words in [["eat"], ["the"]]),
], ids=["sequences", "set", "keys", "array", "generators"])  # fmt: skip
def test_errors_of_known_and_unknown_words(known):
    assert token_errors(TRUE, PRED, WORDS, known) == TokenErrors(3 / 5, 2 / 3, 1 / 2, 2 / 5)


TOKENS = st.lists(st.lists(st.tuples(*[st.sampled_from("ab")] * 3, st.integers(0, 3))), max_size=4)


@examples(15)
@given(TOKENS, st.sets(st.sampled_from("ab")))
def test_what_is_known_and_what_is_not_add_up(tokens, known):
    true, pred, words, weight = ([[t[i] for t in row] for row in tokens] for i in range(4))
    found = token_errors(true, pred, words, known, sample_weight=weight)
    share, total = found.unknown_share, sum(map(sum, weight))
    if not total:
        assert all(map(math.isnan, found))
        return
    parts = [(share, found.unknown), (1.0 - share, found.known)]
    assert all(math.isnan(error) == (part == 0.0) for part, error in parts)
    whole = sum(part * error for part, error in parts if part)
    assert found.overall == pytest.approx(whole)
    assert found.overall == pytest.approx(
        1.0 - flat_accuracy_score(true, pred, sample_weight=weight)
    )
    unknown = sum(t[3] for row in tokens for t in row if t[2] not in known)
    assert share == unknown / total


def test_tokens_without_a_label_are_left_out_and_a_set_has_what_is_right():
    true = [["D", UNLABELED], [{"N", "V"}, "V", UNLABELED], []]
    found = token_errors(true, PRED, WORDS, {"the"}, sample_weight=[1.0, 2.0, 1.0])
    assert found == TokenErrors(2 / 5, 0.0, 2 / 4, 4 / 5)


@pytest.mark.parametrize(("words", "known", "error", "message"), [
    ([["the", "dog"], ["Dogs", "eat"], []], set(), ValueError, "1 has 3 labels in y_true but 2 in"),
    (WORDS[:2], set(), ValueError, "y_true has 3 sequences but words has 2"),
    (WORDS, ["the", "dog"], TypeError, "^sequence 0 of known_words is the string 'the'"),
    (["the", "dog", "eat"], set(), TypeError, "sequence 0 of words is the string 'the'"),
    (WORDS, [[{"w": "the"}]], TypeError, "words must be hashable, as strings are"),
    ([[{}, "dog"], ["Dogs", "eat", "the"], []], set(), TypeError, "words must be hashable"),
])  # fmt: skip
def test_errors_say_what_is_wrong(words, known, error, message):
    with pytest.raises(error, match=message):
        token_errors(TRUE, PRED, words, known)
