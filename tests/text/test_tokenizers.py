import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.text import TOKENIZERS, as_tokenizer


def tokens(tokenizer, text):
    return [text[start:stop] for start, stop in as_tokenizer(tokenizer)(text)]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=st.text("aé1.,- \n\u0301\u200d\U0001f469\U0001f1e9中\u05d0\u200c"))
def test_tokens_are_all_of_a_text_but_white_space(name, text):
    assert "".join(tokens(name, text)) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "words", "characters"),
    [
        ("Ann's 1,000.50 $.", "Ann ' s 1,000.50 $ .", "A n n ' s 1 , 0 0 0 . 5 0 $ ."),
        ("cafe\u0301s!", "cafe\u0301s !", "c a f e\u0301 s !"),
        ("हिन्दी में", "हिन्दी में", "हि न् दी में"),
        ("می\u200cخواهم", "می\u200cخواهم", "م ی\u200c خ و ا ه م"),
        ("a👩‍👩‍👧b👍🏽", "a 👩‍👩‍👧 b 👍🏽", "a 👩‍👩‍👧 b 👍🏽"),
        ("🇩🇪🇫🇷", "🇩🇪 🇫🇷", "🇩🇪 🇫🇷"),
        ("我在北京。", "我在北京 。", "我 在 北 京 。"),
        ("שלום, עולם", "שלום , עולם", "ש ל ו ם , ע ו ל ם"),
    ],
)
def test_marks_and_joined_signs_stay_with_their_characters(text, words, characters):
    assert tokens("words", text) == words.split(" ")
    assert tokens("characters", text) == characters.split(" ")


def test_tokenizers_of_users_return_strings_pairs_or_tokens_with_places():
    class Token:
        def __init__(self, idx, text):
            self.idx, self.text = idx, text

    for tokenizer in (
        r"\w+|[^\w\s]",
        re.compile(r"\w+|[^\w\s]|"),
        lambda text: ["Ann", "!"],
        lambda text: [(1, 4), [4, 5]],
        lambda text: [Token(1, "Ann"), Token(4, "!")],
    ):
        assert as_tokenizer(tokenizer)(" Ann!") == [(1, 4), (4, 5)]


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ("word", "'word' is not known; choose one of"),
        ("(", "no regular expression"),
        (3, "tokenizer=3 must be"),
        (lambda text: [3], "position 0: the token is 3"),
        (lambda text: [(0, 0.9)], "position 0: the token is .0, 0.9"),
        (lambda text: ["b"], "expected the token 'b'"),
        (lambda text: [(0, 3)], "behind the 1 characters"),
    ],
)
def test_tokenizers_that_find_nothing_of_the_text_are_refused(tokenizer, message):
    with pytest.raises((TypeError, ValueError), match=message):
        as_tokenizer(tokenizer)("a")
