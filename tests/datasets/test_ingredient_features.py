import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit.datasets import ingredient_features

LINE = ["½", "Cup", "olive", "oil", ",", "(", "extra", ")", ",", "2"]


def test_every_token_gets_its_own_distinct_attributes():
    described = ingredient_features(LINE)
    assert len(described) == len(LINE)
    assert all(len(attributes) == len(set(attributes)) for attributes in described)
    assert all(15 <= len(attributes) <= 18 for attributes in described)


def test_window_reaches_two_words_and_marks_the_ends():
    first, second, *_ = ingredient_features(["Two", "Eggs", "beaten"])
    assert {"word-2=BOS", "word-1=BOS", "word+1=eggs", "word+2=beaten"} <= set(first)
    assert {"word-2=BOS", "word-1=two", "word+1=beaten", "word+2=EOS"} <= set(second)
    assert {"word-1,0=two|eggs", "word0,+1=eggs|beaten"} <= set(second)


@pytest.mark.parametrize(
    ("token", "attribute", "holds"),
    [
        ("14.5", "is_number", True),
        ("1½", "is_number", True),
        ("70%", "is_number", True),
        ("-", "is_number", False),
        ("V8", "is_number", False),
        ("1/2", "is_fraction", True),
        ("½", "is_fraction", True),
        ("12", "is_fraction", False),
        ("Maldon", "is_title", True),
        ("BOS", "is_title", False),
        ("(", "is_punctuation", True),
        ("tsp.", "is_punctuation", False),
        ("Rao's", "shape=Xx'x", True),
        ("14.5", "shape=d.d", True),
        ("purée", "shape=x", True),
        ("Flour", "prefix3=flo", True),
        ("Flour", "suffix2=ur", True),
    ],
)
def test_word_attributes(token, attribute, holds):
    assert (attribute in ingredient_features([token])[0]) is holds


def test_place_counts_commas_and_open_brackets_before_the_token():
    described = ingredient_features(LINE)
    assert "commas=0" in described[4]
    assert "commas=1" in described[5]
    assert "commas=2" in described[9]
    assert ["in_brackets" in attributes for attributes in described[5:9]] == [
        False,
        True,
        True,
        False,
    ]
    assert "position=5" in described[9]


@settings(deadline=None)
@given(st.lists(st.text(min_size=1)))
def test_any_tokens_are_described_the_same_way_twice(tokens):
    assert ingredient_features(tokens) == ingredient_features(tuple(tokens))
    assert len(ingredient_features(tokens)) == len(tokens)


def test_affixes_and_words_ignore_case():
    lower, upper = ingredient_features(["salt"])[0], ingredient_features(["SALT"])[0]
    assert set(lower) ^ set(upper) == {"shape=x", "shape=X"}
