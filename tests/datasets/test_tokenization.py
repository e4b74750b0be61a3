import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit.datasets import tokenize_ingredient


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("200g/7oz caster sugar", "200 g / 7 oz caster sugar"),
        ("2-3 sprigs", "2 - 3 sprigs"),
        ("2–3 sprigs", "2 – 3 sprigs"),
        ("one 14-ounce can", "one 14 - ounce can"),
        ("1 (14.5 ounce) can", "1 ( 14.5 ounce ) can"),
        ("1½lb all-purpose flour", "1½ lb all-purpose flour"),
        ("½ cup 2% milk", "½ cup 2% milk"),
        (".5l or 1,5 l", ".5 l or 1,5 l"),
        ("omega-3 eggs, low- or no-fat", "omega - 3 eggs , low - or no-fat"),
        ("1 1/2 tsp. salt,pepper", "1 1/2 tsp. salt , pepper"),
        ("1⁄2 cup", "1⁄2 cup"),
        ("butter (110°F)*", "butter ( 110 °F ) *"),
        ("confectioners' sugar", "confectioners' sugar"),
        ("V8 and M&M's", "V8 and M&M's"),
        ("~2 cups+1 tbsp: oil; “00” flour", "~ 2 cups + 1 tbsp : oil ; “ 00 ” flour"),
        ("oil - for frying", "oil - for frying"),
        ("half-and-half", "half-and-half"),
        ("and/or", "and / or"),
    ],
)
def test_documented_rules(text, expected):
    assert tokenize_ingredient(text) == expected.split()


@pytest.mark.parametrize("text", ["", " ", "\t\n"])
def test_blank_text_has_no_tokens(text):
    assert tokenize_ingredient(text) == []


@settings(deadline=None)
@given(st.text(alphabet=st.one_of(st.sampled_from("12½¼/-,.%()ab 'é°"), st.characters())))
def test_no_character_is_lost(text):
    assert "".join(tokenize_ingredient(text)) == "".join(text.split())


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("12½/-,.%()ab '+é")))
def test_tokens_hold_no_white_space_and_are_not_empty(text):
    assert all(token and not any(map(str.isspace, token)) for token in tokenize_ingredient(text))


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("12½/-,.%()ab '+")))
def test_a_token_is_not_split_again(text):
    for token in tokenize_ingredient(text):
        assert tokenize_ingredient(token) == [token]
