import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crfkit.features import functions
from crfkit.features.functions import FUNCTIONS, as_items, evaluate, wapiti_regex
from tests.sampling import examples


@pytest.mark.parametrize(
    ("calls", "string", "expected"),
    [
        ((("shape", ()),), "Äb-12 x", "Xx-dd x"),
        ((("short_shape", ()),), "AAbb--11a", "Xx-dx"),
        ((("short_shape", ()),), "", ""),
        ((("prefix", (2,)),), "a", "a"),
        ((("suffix", (2,)),), "語学生", "学生"),
        ((("digits", ()),), "a1²٣", "a0²0"),
        ((("length", ()),), "abc", "3"),
        ((("ngrams", (2,)),), "abca", ["ab", "bc", "ca"]),
        ((("ngrams", (1, 2)),), "ab", ["a", "b", "ab"]),
        ((("ngrams", (3,)),), "ab", []),
        ((("lower", ()), ("suffix", (1,))), "AB", "b"),
        ((("is_upper", ()),), "AB", True),
        ((("is_digit", ()),), "", False),
        ((("ascii lower", ()),), "AÉ", "aÉ"),
        ((("spelling", ()),), "", []),
        ((("spelling", ()),), "word", []),
        ((("spelling", ()),), "Édition", ["upper", "-ion", "-tion"]),
        ((("spelling", ()),), "2-STAGED", ["digit", "hyphen", "-ed"]),
        ((("spelling", ()),), "co-deities", ["hyphen", "-s", "-ies"]),
        ((("spelling", ()),), "biology", ["-ogy"]),
        ((("spelling", ()),), "Only-", ["upper", "hyphen"]),
        ((("lower", ()), ("spelling", ())), "PURITY", ["-ity"]),
    ],
)
def test_functions_of_a_string(calls, string, expected):
    assert evaluate(calls, {}, string) == expected


@given(st.text(max_size=8))
def test_functions_take_any_string(string):
    for name, function in FUNCTIONS.items():
        result = function.call(string, *[1] * function.least)
        assert isinstance(result, {"text": str, "flag": bool, "items": list}[function.kind]), name


def test_none_stays_none_and_a_wrong_inner_result_is_named():
    assert evaluate((("f", ()), ("lower", ())), {"f": lambda s: None}, "a") is None
    with pytest.raises(TypeError, match=r"lower\(\) needs a string but .* gave 7 for 'a'"):
        evaluate((("f", ()), ("lower", ())), {"f": lambda s: 7}, "a")


def test_items_of_a_set_have_an_order():
    assert as_items({"b", "a"}, "f") == [("a", 1.0), ("b", 1.0)]


# --- Wapiti's regular expressions, by its own words: at each place, characters in turn ------------


def matches_one(unit, character):
    if unit == ".":
        return True
    if unit[0] != "\\":
        return unit == character
    ascii_classes = {
        "a": str.isalpha, "d": str.isdigit, "l": str.islower, "u": str.isupper, "w": str.isalnum,
        "s": str.isspace, "p": lambda c: c.isprintable() and not c.isalnum() and c != " ",
    }  # fmt: skip
    test = ascii_classes.get(unit[1].lower())
    if test is None:
        return unit[1] == character
    return (character.isascii() and test(character)) != unit[1].isupper()


def match_here(units, string):
    """The length of the match at the start of a string, None if there is none."""
    if not units:
        return 0
    if units == ["$"]:
        return None if string else 0
    unit, repeat, rest = units[0], units[1:2], units[1:]
    if repeat == ["*"]:
        for n in range(len(string) + 1):
            length = match_here(units[2:], string[n:])
            if length is not None:
                return n + length
            if n == len(string) or not matches_one(unit, string[n]):
                return None
    if repeat == ["?"]:
        if string and matches_one(unit, string[0]):
            length = match_here(units[2:], string[1:])
            if length is not None:
                return 1 + length
        return match_here(units[2:], string)
    if string and matches_one(unit, string[0]):
        length = match_here(rest, string[1:])
        return None if length is None else 1 + length
    return None


def naive_search(regex, string):
    units = re.findall(r"\\.|.", regex, re.DOTALL)
    starts = range(len(string) + 1)
    if units[:1] == ["^"]:
        units, starts = units[1:], [0]
    for start in starts:
        length = match_here(units, string[start:])
        if length is not None:
            return string[start : start + length]
    return None


UNIT = st.sampled_from([".", "a", "B", "(", "+", "^", "$", "\\d", "\\D", "\\a", "\\l", "\\U", "\\p",
                        "\\w", "\\S", "\\*", "\\\\"])  # fmt: skip
REGEX = st.lists(st.tuples(UNIT, st.sampled_from(["", "", "*", "?"])), max_size=5)


@examples(60)
@given(st.booleans(), REGEX, st.booleans(), st.text("aB(1é*$^ \n\\", max_size=6))
def test_wapiti_expressions_match_as_a_walk_over_characters(start, units, end, string):
    regex = "^" * start + "".join(map("".join, units)) + "$" * end
    assume(not regex.startswith(("^*", "^?")))
    found = wapiti_regex(regex).search(string)
    expected = naive_search(regex, string)
    assert (found.group() if found else None) == expected
    assert functions.wapiti_match(string, regex) == (expected or "")
    assert functions.wapiti_test(string, regex) == ("false" if expected is None else "true")


@pytest.mark.parametrize("regex", ["*", "?a", "^*", "a**", "a\\"])
def test_a_wapiti_expression_that_repeats_nothing_is_refused(regex):
    with pytest.raises(ValueError, match="follows no character|ends in a backslash"):
        wapiti_regex(regex)
