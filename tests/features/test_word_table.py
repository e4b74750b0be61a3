"""Words of whole batches: their numbers, what they consist of and end in, one by one as oracles."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.data import UNLABELED
from crfkit.data.labels import LabelStream
from crfkit.features import SuffixClasses, SymbolVectorizer, suffixes, symbol_reader
from crfkit.features.letters import Letters
from crfkit.features.word_table import Lines, StringNumbers, WordTable
from tests.sampling import examples

ODD = ["", "\0", "a\0", "\ud800", "\udfff\ud800", "\U00010000", "é", "e\u0301", "\r", "ﬀ", "\x85"]
words = st.sampled_from(ODD) | st.text(max_size=5) | st.text("ab\n\ud800", max_size=4)
# Letters whose lower case depends on what follows, or is longer, or of two cases; digits that are
# no decimal numbers.
letters = st.text("abAB-.01ßΣσςİıǅǆ٣²Ⅷ\n", max_size=4)
classes = st.sampled_from(["<unknown>", "<unknown a*a>", "<UNKNOWN A*B>", "<unknown x"])
sentences = st.lists(st.lists(letters | classes, max_size=4), min_size=1, max_size=5)


class Name(str):
    __slots__ = ()


@examples(20)
@given(st.lists(st.lists(words, max_size=6), max_size=5), st.lists(words))
def test_words_are_numbered_in_order_and_found_again(parts, others):
    flat = [word for part in parts for word in part]
    lines = Lines.of([list(map(Name, part)) for part in parts], len(flat))
    if not flat or any("\n" in word for word in flat):
        assert lines is None
        return
    index, table = {}, WordTable()
    assert table.number(lines).tolist() == [index.setdefault(w, len(index)) for w in flat]
    assert table.words() == list(index)
    others = [word for word in others if "\n" not in word] + flat
    asked = Lines.of([others], len(others))
    assert table.find(asked).tolist() == [index.get(word, -1) for word in others]
    chosen = np.arange(0, len(others), 2)
    assert asked.string(chosen) == "".join(others[n] + "\n" for n in chosen)


def test_a_table_grows_with_its_words_and_keeps_their_numbers():
    many = [f"{n:b}" * (1 + n % 7) for n in range(2_000)] + ["x" * 100_000, ""]
    table = WordTable()
    for part in (many[:700], many, many[::-1]):
        table.number(Lines.of([part], len(part)))
    assert table.words() == list(dict.fromkeys(many))
    assert WordTable.of(table.words()).words() == table.words()


def test_what_is_no_line_of_a_text_is_no_word():
    for other in (1, None, b"a", ("a",), "a\n", "\n"):
        assert Lines.of([["a"], ["b", other]], 3) is None
        assert WordTable.of(["a", other]) is None


@examples(20)
@given(sentences.filter(any), sentences, st.integers(0, 3), st.sampled_from((0, 2)))
def test_many_words_are_read_as_each_of_them(X, more, max_length, min_freq):
    patch = pytest.MonkeyPatch()
    classes = SuffixClasses(max_count=2, max_length=max_length)
    for vectorizer in (
        SymbolVectorizer(suffixes=classes, min_freq=min_freq), SymbolVectorizer(min_freq=min_freq),
    ):  # fmt: skip
        with patch.context() as patched:
            patched.setattr(symbol_reader, "FEW", -1)
            packed = vectorizer.fit_transform(X)
            found = vectorizer.transform([*more, *X])
            _, larger = vectorizer.extend(more)
        with patch.context() as patched:
            patched.setattr(symbol_reader, "FEW", 1 << 30)
            assert vectorizer.fit_transform(X) == packed
            assert vectorizer.transform([*more, *X]) == found
            assert vectorizer.extend(more)[1].names_.symbols == larger.names_.symbols


@examples(20)
@given(st.lists(letters, unique=True), st.integers(0, 3))
def test_classes_are_those_of_two_words(some, max_length):
    found = Counter()
    for word in some:
        case, shape, plain = suffixes._case(word), suffixes._shape(word), suffixes._plain(word)
        ends = {plain[-size:] for size in range(1, min(max_length, len(plain)) + 1)}
        found.update([f"<unknown {case}>", f"<unknown {case} {shape}>"])
        found.update(f"<unknown {case}*{end}>" for end in ends)
    learned = SuffixClasses(max_length=max_length).learn(some, np.ones(len(some), np.int64))
    assert learned.names == sorted(name for name, count in found.items() if count > 1)
    tree = SuffixClasses(max_length=max_length).tree(some, [*learned.names, suffixes.UNKNOWN])
    assert all(map(np.array_equal, tree[:3], learned.words))
    assert np.array_equal(tree.parent, learned.finder.parents())
    number = {name: h for h, name in enumerate([*learned.names, suffixes.UNKNOWN])}
    one = SuffixClasses(max_length=max_length)
    assert tree.leaf.tolist() == [number[one._class_of(word, number)] for word in some]


@examples(20)
@given(st.lists(words | st.text("ab", max_size=90), unique=True))
def test_the_order_of_letters_is_that_of_words(some):
    assert [some[n] for n in Letters.of(some).order().tolist()] == sorted(some)


def test_lower_case_and_lengths_are_those_of_each_word():
    some = ["İ", "aΣ", "Σ", "", "a\nΣ", "\n", "ǅ"]
    for one in (some, some[:4]):
        found = Letters.of(one, in_lower_case=True)
        text = found.codes.tobytes().decode("utf-32-le")
        pairs = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
        assert [text[b:e] for b, e in pairs] == [word.lower() for word in one]


@examples(20)
@given(
    st.lists(st.lists(words, max_size=4), max_size=5), st.sampled_from((None, 1, "-", UNLABELED))
)
def test_labels_that_are_strings_are_read_as_all_labels(y, other):
    if other is not None:
        y = [*y, ["a", other, "b"]]
    general = LabelStream(y, partial=True)
    found = LabelStream(y, partial=True, read_strings=StringNumbers().of)
    assert (list(found.index), found.options) == (list(general.index), general.options)
    assert np.array_equal(found.codes, general.codes)
    assert np.array_equal(found.offsets, general.offsets)
