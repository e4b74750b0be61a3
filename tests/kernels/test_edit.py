"""Edit distances to the nearest entry against those to all entries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.features.segments.similarity import Letters
from tests.oracles import edit_similarity
from tests.sampling import examples

STRINGS = st.text("abc", max_size=7)


@examples(30)
@given(
    st.lists(STRINGS, max_size=6),
    st.lists(STRINGS.filter(bool), min_size=1, max_size=12, unique=True),
    st.sampled_from([0.0, 0.2, 0.5, 0.6, 2 / 3, 0.75, 0.8, 1.0]),
)
def test_the_nearest_entry_is_that_of_a_search_through_all(texts, entries, least):
    trie = Letters(entries)
    wanted = [max(edit_similarity(text, entry) for entry in entries) for text in texts]
    found = trie.nearest(texts, least)
    assert found.tolist() == [value if value >= least else 0.0 for value in wanted]
    near = trie.candidates(np.array([len(text) for text in texts], np.int64), least)
    assert np.all((near > 0) | (found == 0.0))


@examples(10)
@given(st.data(), st.sampled_from([0.0, 0.5, 0.9]))
def test_strings_of_more_bits_than_a_word_has(data, least):
    base = data.draw(st.text("ab", min_size=55, max_size=200))
    entry = data.draw(st.text("abc", max_size=5)) + base[data.draw(st.integers(0, 20)) :]
    texts = [base, base[:62], base[1:63] + "c", base[:10] + base[30:], "c" * 130]
    found = Letters([entry]).nearest(texts, least)
    wanted = [edit_similarity(text, entry) for text in texts]
    assert found.tolist() == [value if value >= least else 0.0 for value in wanted]


@pytest.mark.parametrize(
    ("text", "value"),
    [("\U0001f600b", 0.5), ("ß", 0.5), ("\ud800é", 1.0), ("", 0.0), ("x" * 300, 0.0)],
)
def test_characters_may_be_any(text, value):
    assert Letters(["\U0001f600a", "ßß", "\ud800é"]).nearest([text], 0.0).tolist() == [value]


def test_a_long_entry_and_many_alike_are_no_harm():
    entries = ["a" * n for n in range(1, 200)] + ["b" * 500]
    trie = Letters(entries)
    found = trie.nearest(["a" * 150, "b" * 499, "a" * 400, "c"], 0.3)
    assert found.tolist() == [1.0, 1 - 1 / 500, 1 - 201 / 400, 0.0]


def test_only_entries_of_a_length_that_may_be_near_are_looked_at():
    entries = ["a" * n for n in range(1, 21)] + ["b" * 10]
    counts = Letters(entries).candidates(np.array([0, 2, 10, 19], np.int64), 0.8)
    # 8 to 12 characters of 10, 16 to 23 of 19; the smallest length is one of two.
    assert counts.tolist() == [0, 1, 6, 5]


@pytest.mark.parametrize("entry", ["a" * 5 + "b" * 4, "a" * 300, "".join(map(chr, range(97, 300)))])
def test_counts_of_characters_leave_out_no_entry_that_is_near(entry):
    texts = [entry, entry[1:], entry + "z", "z" + entry[:-1], entry[::-1], entry * 2]
    found = Letters([entry, "q"]).nearest(texts, 0.0)
    assert found.tolist() == [edit_similarity(text, entry) for text in texts]
