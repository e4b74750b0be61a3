"""Symbols in columns: reading, what is unknown, suffixes, growing, files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.features import SuffixClasses, SymbolVectorizer
from crfkit.persistence import dumps, loads
from tests.sampling import examples

FORMS = {
    "symbols": [["b", "a"], [], ["b"]],
    "tuples": [[("b", 1), ("a", 2)], [], [("b", 1)]],
    "dicts": [[{"w": "b", "p": 1}, {"w": "a", "p": 2}], [], [{"w": "b", "p": 1}]],
    "numbers": [np.array([2, 1]), np.array([], int), np.array([2])],
    "rows of numbers": [np.array([[2, 7], [1, 5]]), np.zeros((0, 2), int), np.array([[2, 7]])],
    "strings": [np.array(["b", "a"]), [], np.array(["b"], object)],
}


def listed(sequence):
    rows = sequence.tolist() if isinstance(sequence, np.ndarray) else sequence
    return [tuple(row) if isinstance(row, list) else row for row in rows]


@pytest.mark.parametrize("form", FORMS)
def test_tokens_of_any_form_come_back(form):
    X = FORMS[form]
    vectorizer = SymbolVectorizer()
    packed = vectorizer.fit_transform(X)
    assert vectorizer.inverse_transform(packed) == list(map(listed, X))
    assert vectorizer.transform(X) == packed
    assert np.array_equal(
        vectorizer.counts_, np.bincount(packed.indices, minlength=len(vectorizer.names_))
    )
    assert loads(dumps(vectorizer)).transform(X) == packed
    assert loads(dumps(packed)) == packed


def test_each_column_has_its_symbols_in_order_and_one_for_those_that_are_unknown():
    vectorizer = SymbolVectorizer().fit([[("the", 3), ("a", -1)], [("the", 3)]])
    names = ["0=a", "0=the", "0=<unknown>", "1=-1", "1=3", "1=<unknown>"]
    assert vectorizer.get_feature_names_out().tolist() == names
    assert vectorizer.names_.starts.tolist() == [0, 3, 6]
    assert vectorizer.transform([[("cat", np.int64(3)), ("<unknown>", 4)]]).indices.tolist() == [
        2,
        4,
        2,
        5,
    ]
    rare = SymbolVectorizer(columns=["w", "n"], min_freq=2)
    assert rare.fit_transform([[("the", 3), ("a", -1)], [("the", 3)]]).indices.tolist() == [
        0,
        2,
        1,
        3,
        0,
        2,
    ]
    assert rare.get_feature_names_out().tolist() == ["w=the", "w=<unknown>", "n=3", "n=<unknown>"]


def test_rows_of_one_column_are_symbols():
    """What is read from files are rows, whatever the model has learned from."""
    vectorizer = SymbolVectorizer(suffixes=SuffixClasses()).fit([["the", "dog"]])
    plain, rows = ["The", "dog", "x"], [("The",), ["dog"], ("x",)]
    found = vectorizer.transform([rows])
    np.testing.assert_array_equal(found.indices, vectorizer.transform([plain]).indices)
    with pytest.raises(TypeError, match="position 1: the token .* is no symbol"):
        vectorizer.transform([["the", ("dog", "N")]])


def test_chosen_columns_of_dicts_that_have_more():
    vectorizer = SymbolVectorizer(columns=["w"])
    packed = vectorizer.fit_transform([[{"w": "a", "other": 1.5}, {"w": "b"}]])
    assert vectorizer.inverse_transform(packed) == [[{"w": "a"}, {"w": "b"}]]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([["a", None]], "sequence 0, position 1: the symbol is None"),
        ([["a"], ["b", 1.5]], "sequence 1, position 1: the symbol 1.5 is of type float"),
        ([[("a", float("nan"))]], "sequence 0, position 0, column '1': the symbol is nan"),
        ([["a", ("b",)]], "sequence 0, position 1: the token .* is no symbol"),
        ([[("a", "b")], [("a",)]], "sequence 1, position 0: .* has 1 symbols, but there are 2"),
        ([[{"a": 1}, {"b": 1}]], "sequence 0, position 1: the token has no column 'a'"),
        ([[{"a": 1}, {"a": 1, "b": 2}]], "position 1: the token has the further column 'b'"),
        ([[{"a": [1]}]], "sequence 0, position 0, column 'a': the symbol .* is of type list"),
        ([["a"], np.zeros((2, 2))], "sequence 1 of X is a matrix of float64"),
        ([[1, "1"]], "the symbols 1 and '1' in one column"),
        ([[()]], "sequence 0, position 0: the token .* has no symbols"),
        ([[], []], "X has no tokens"),
        (["abc"], "sequence 0 of X is the string"),
    ],
)  # fmt: skip
def test_errors_tell_where(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SymbolVectorizer().fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"columns": "w"}, "columns='w' must be a list"),
        ({"columns": ["w", "w"]}, "must be distinct"),
        ({"columns": ["w", "v"]}, "has 1 symbols, but there are 2 columns"),
        ({"min_freq": -1}, "min_freq=-1"),
        ({"suffixes": SuffixClasses(column=1)}, "column=1 of words is none of the columns"),
        ({"suffixes": SuffixClasses(max_length=-1)}, "max_length=-1"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SymbolVectorizer(**parameters).fit([["a"]])


WORDS = [["The", "dog", "is", "running", "barking"], ["The", "cats", "1984", "2001", "NATO", "UNO"]]


def test_unknown_words_are_read_as_their_longest_known_suffix():
    vectorizer = SymbolVectorizer(suffixes=SuffixClasses(max_count=1)).fit(WORDS)

    def read(*sequence):
        return vectorizer.inverse_transform(vectorizer.transform([sequence]))[0]

    assert read("dog", "jumping", "king", "bus") == [
        "dog", "<unknown a*ing>", "<unknown a*ing>", "<unknown a*s>",
    ]  # fmt: skip
    assert read("dog", "1066", "CIAO", "TUV", "Hill", "blob") == [
        "dog", "<unknown a*0000>", "<unknown A*o>", "<unknown A AA>", "<unknown A>",
        "<unknown a a>",
    ]  # fmt: skip
    # In lower case where a sequence begins, and if there are no other letters.
    assert read("Dog", "Dog", "DOG") == ["dog", "<unknown A>", "dog"]
    # What was drawn from a model is read as what it stands for.
    assert read("<unknown a*ing>", "<unknown>") == ["<unknown a*ing>", "<unknown>"]
    assert loads(dumps(vectorizer)).transform(WORDS) == vectorizer.transform(WORDS)
    with pytest.raises(TypeError, match="the symbol 3, which has no suffixes"):
        SymbolVectorizer(suffixes=SuffixClasses()).fit([[3]])


TOKENS = st.lists(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=4),
    min_size=1,
    max_size=4,
)


@examples(10)
@given(TOKENS.filter(any), TOKENS)
def test_extending_keeps_what_was_known(X, more):
    vectorizer = SymbolVectorizer()
    packed = vectorizer.fit_transform(X)
    added, larger = vectorizer.extend(more)
    assert larger.inverse_transform(added) == more
    columns = larger.columns_of(vectorizer)
    names = larger.get_feature_names_out()
    assert names[columns].tolist() == vectorizer.get_feature_names_out().tolist()
    assert np.array_equal(columns[packed.indices], larger.transform(X).indices)
    both = np.concatenate([columns[packed.indices], added.indices])
    assert np.array_equal(larger.counts_, np.bincount(both, minlength=len(names)))


def test_damaged_files_are_refused():
    vectorizer = SymbolVectorizer().fit([["a", "b"]])
    for damage in (
        lambda v: v.names_.symbols[0].reverse(),
        lambda v: v.names_.symbols.append(["<unknown>"]),
        lambda v: v.names_.n_known.__setitem__(0, 3),
        lambda v: v.names_.symbols[0].__setitem__(0, 1.5),
        lambda v: setattr(v, "counts_", v.counts_[1:]),
        lambda v: setattr(v, "form_", "other"),
        lambda v: setattr(v, "n_features_in_", 4),
    ):
        damaged = loads(dumps(vectorizer))
        damage(damaged)
        with pytest.raises(ValueError, match="damaged"):
            loads(dumps(damaged))


def test_what_a_fit_has_learned_of_suffixes_is_what_follows_from_its_classes():
    suffixes, more = SuffixClasses(max_count=1), ["a1", "b2", "ing", "Sing", "nato", "nato"]
    for min_freq in (0, 2):
        vectorizer = SymbolVectorizer(suffixes=suffixes, min_freq=min_freq)
        names = vectorizer.fit([*WORDS, more]).names_
        learned = names.suffix_tree(0, suffixes)
        again = suffixes.tree(names.known(0), names.symbols[0][names.n_known[0] :])
        assert all(map(np.array_equal, learned, again))
        assert [len(level) for level in learned.levels()][:2] == [1, 2]
