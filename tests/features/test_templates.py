"""Compiled templates against loops that format a string for each token and template."""

import pickle
import re
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from crfkit import SequenceVectorizer
from crfkit.features import TemplateFeatures, transition, window
from crfkit.persistence import dumps, loads
from tests.sampling import examples

SMALL = examples(24)
# Words that hold separators, marks, beginnings of each other, nothing, and other scripts.
WORDS = st.sampled_from(
    ["", "a", "b", "ab", "a/", "/", "/a", "a/b", "|", "a|", "=", "_B-1", "_B+1", "ß", "語/", "a "]
)  # fmt: skip
CORPUS = st.lists(st.lists(st.tuples(WORDS, WORDS), max_size=4), max_size=4)


def by_name(packed):
    """The names, sorted, and the matrix with its columns in that order."""
    names = packed.feature_names
    assert len(set(names)) == len(names) == packed.n_features
    order = np.argsort(names.astype(object)) if len(names) else np.zeros(0, int)
    return [names[i] for i in order], packed.to_csr()[:, order].toarray()


def check_rows(packed):
    """Rows are sorted and have no entry twice, none of value 0."""
    for begin, end in zip(packed.indptr, packed.indptr[1:], strict=False):
        assert np.all(np.diff(packed.indices[begin:end]) > 0)
    assert packed.values is None or np.all(packed.values != 0)


def assert_same(packed, oracle):
    check_rows(packed)
    names, matrix = by_name(packed)
    wanted, wanted_matrix = by_name(oracle)
    assert names == wanted
    np.testing.assert_array_equal(matrix, wanted_matrix)
    assert packed.offsets.tolist() == oracle.offsets.tolist()


# --- CRF++ ---------------------------------------------------------------------------------------

LITERALS = st.sampled_from(["", "/", "a", "|", "//", "/a", " ", "="])
CELLS = st.tuples(st.integers(-3, 3), st.integers(0, 1))
LINES = st.tuples(
    st.sampled_from(["U", "U:", "U0:", "U00:", "Ua", "B", "B:", "B1:"]),
    st.lists(st.tuples(CELLS, LITERALS), max_size=3),
)


def crfpp_text(lines):
    def write(cells):
        return "".join(f"%x[{row},{column}]{after}" for (row, column), after in cells)

    return "\n".join(lead + write(cells) for lead, cells in lines)


def crfpp_cell(sequence, place, column):
    if place < 0:
        return f"_B{place}"
    return sequence[place][column] if place < len(sequence) else f"_B+{place - len(sequence) + 1}"


def crfpp_strings(X, lines, kind):
    return [
        [
            [
                lead
                + "".join(crfpp_cell(s, t + row, column) + after for (row, column), after in cs)
                for lead, cs in lines
                if lead[0] == kind and (lead, cs) != ("B", []) and (kind == "U" or t > 0)
            ]
            for t in range(len(s))
        ]
        for s in X
    ]


@SMALL
@given(st.lists(LINES, min_size=1, max_size=5), CORPUS, CORPUS, st.integers(0, 3))
def test_crfpp_templates_are_formatted_strings(lines, X, unseen, min_freq):
    features = TemplateFeatures(crfpp_text(lines), syntax="crfpp", min_freq=min_freq)
    vectorizer = SequenceVectorizer(min_freq=min_freq)
    fitted = features.fit_transform(X)
    assert_same(fitted, vectorizer.fit_transform(crfpp_strings(X, lines, "U")))
    for data in (X, unseen):
        packed = features.transform(data)
        assert_same(packed, vectorizer.transform(crfpp_strings(data, lines, "U")))
        assert packed.names is fitted.names
    steps = SequenceVectorizer(min_freq=min_freq)
    expected = steps.fit_transform(crfpp_strings(X, lines, "B"))
    assert (fitted.transitions is None) == (expected.n_features == 0)
    if fitted.transitions is not None:
        assert_same(fitted.transitions, expected)
        later = features.transform(unseen).transitions
        assert_same(later, steps.transform(crfpp_strings(unseen, lines, "B")))


def test_strings_of_different_cells_that_are_equal_are_one_attribute():
    X = [[("a/b", "c"), ("a", "b/c")]]
    features = TemplateFeatures("U:%x[0,0]/%x[0,1]", syntax="crfpp")
    packed = features.fit_transform(X)
    assert packed.feature_names.tolist() == ["U:a/b/c"]
    assert packed.indices.tolist() == [0, 0]
    assert features.transform([[("", "a/b/c"), ("a/b", "c")]]).indices.tolist() == [0]


def test_an_attribute_that_occurs_twice_has_the_value_two():
    packed = TemplateFeatures("U:%x[0,0]\nU:%x[1,0]", syntax="crfpp").fit_transform([["a", "a"]])
    assert packed.feature_names.tolist() == ["U:a", "U:_B+1"]
    assert packed.to_csr().toarray().tolist() == [[2, 0], [1, 1]]


def test_the_line_b_alone_adds_nothing():
    packed = TemplateFeatures("B\n# B:%x[0,0]\n\nU:%x[0,0]", syntax="crfpp").fit_transform([["a"]])
    assert packed.transitions is None
    assert packed.n_features == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("X:%x[0,0]", "begins with U or B"),
        ("U:%x[0]", "whole numbers"),
        ("U:%t[0,0,\"a\"]", "syntax='wapiti'"),
        ("U:100%", "whole numbers"),
        ("U:%x[0,-1]", "whole numbers"),
    ],
)  # fmt: skip
def test_a_bad_line_of_crfpp_is_named(line, problem):
    with pytest.raises(ValueError, match="line 2 of the templates") as error:
        TemplateFeatures(f"U:%x[0,0]\n{line}", syntax="crfpp").fit([["a"]])
    assert problem in str(error.value)
    assert line in str(error.value).replace("\\", "")


# --- Wapiti --------------------------------------------------------------------------------------


def wapiti_cell(sequence, place, column):
    if place < 0:
        return f"_x-{-place if -place <= 4 else '#'}"
    after = place - len(sequence) + 1
    return sequence[place][column] if after <= 0 else f"_x+{after if after <= 4 else '#'}"


@SMALL
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ub*UB"), st.sampled_from("xX"), st.booleans(), st.integers(-6, 6),
            st.integers(0, 1), LITERALS,
        ),
        min_size=1, max_size=4,
    ),
    st.lists(
        st.lists(st.tuples(st.sampled_from(["A", "a", "É", "B/", "_X-1"]), WORDS), max_size=4)
    ),
)  # fmt: skip
def test_wapiti_patterns_are_formatted_strings(patterns, X):
    text = "\n".join(
        f"{kind}:%{command}[{'@' * absolute}{offset},{column}]{after}%x[0,0] # comment"
        for kind, command, absolute, offset, column, after in patterns
    )

    def strings(kinds):
        return [
            [
                [
                    f"{kind.lower()}:{lowered(command, cell)}{after}{s[t][0]}"
                    for kind, command, absolute, offset, column, after in patterns
                    if kind.lower() in kinds and ("u" in kinds or t > 0)
                    for cell in [wapiti_cell(s, place(t, len(s), absolute, offset), column)]
                ]
                for t in range(len(s))
            ]
            for s in X
        ]

    def lowered(command, cell):
        return cell if command == "x" else "".join(c.lower() if c < "\x80" else c for c in cell)

    def place(t, length, absolute, offset):
        if not absolute:
            return t + offset
        return length + offset if offset < 0 else offset - 1

    packed = TemplateFeatures(text, syntax="wapiti").fit_transform(X)
    assert_same(packed, SequenceVectorizer().fit_transform(strings("u*")))
    if packed.transitions is not None:
        assert_same(packed.transitions, SequenceVectorizer().fit_transform(strings("b*")))


def test_position_0_is_before_the_first_token():
    packed = TemplateFeatures("u:%x[@0,0]", syntax="wapiti").fit_transform([["a", "b"]])
    assert packed.feature_names.tolist() == ["u:_x-1"]


def test_wapiti_tests_and_matches_regular_expressions():
    text = 'u1:%t[0,0,"^\\u"]\nu2:%m[0,0,"\\d\\d*$"]\nu3:%M[-1,0,"^.?.?"]\n*4:%T[1,0,"x+"]\nb'
    packed = TemplateFeatures(text, syntax="wapiti").fit_transform([["Ab12", 'x"7']])
    names = packed.feature_names[packed.indices].tolist()
    assert names == ["u1:true", "u2:12", "u3:_x", "*4:false", "u1:false", "u2:7", "u3:ab",
                     "*4:true"]  # fmt: skip
    assert packed.transitions.feature_names.tolist() == ["*4:true"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("w:%x[0,0]", "begins with u, b or"),
        ("u:%x[*0,0]", "is not supported"),
        ('u:%x[0,0,"a"]', "takes no regex"),
        ("u:%t[0,0]", "needs a regex"),
        ('u:%t[0,0,"*a"]', "follows no character"),
        ("u:%t[0,0,\"a\\\\\\\"]", "must begin a command"),
    ],
)  # fmt: skip
def test_a_bad_line_of_wapiti_is_named(line, problem):
    with pytest.raises(ValueError, match="line 1 of the templates") as error:
        TemplateFeatures(line, syntax="wapiti").fit([["a"]])
    assert problem in str(error.value)


# --- Python's syntax -----------------------------------------------------------------------------

FUNCTIONS = {
    "lower(%s)": str.lower,
    "suffix(%s, 1)": lambda s: s[-1:],
    "prefix(%s, 2)": lambda s: s[:2],
    "is_alpha(%s)": str.isalpha,
    "ngrams(%s, 1, 2)": lambda s: [s[i : i + n] for n in (1, 2) for i in range(len(s) - n + 1)],
    "own(%s)": lambda s: {"a": True, "b": None, "ab": 2.5, "/": 0, "|": ["x", "y", "x"]}.get(s, s),
    "own(lower(%s))": lambda s: FUNCTIONS["own(%s)"](s.lower()),
    "lower(some(%s))": lambda s: s.lower() or None,
    "%s": lambda s: s,
}
PART = st.tuples(st.sampled_from(sorted(FUNCTIONS)), st.sampled_from("wp"), st.integers(-2, 2))
EXPRESSIONS = st.lists(st.lists(PART, min_size=1, max_size=3), min_size=1, max_size=4)


def part_text(part):
    pattern, column, offset = part
    return pattern % (f"{column}[{offset}]" if offset else column)


def part_items(part, sequence, t):
    """Pairs of a text, a flag or None (for a number) and the value."""
    pattern, column, offset = part
    if not 0 <= t + offset < len(sequence):
        return [(crfpp_cell(sequence, t + offset, 0), 1.0)]
    result = FUNCTIONS[pattern](sequence[t + offset]["wp".index(column)])
    if result is None:
        return []
    if isinstance(result, str):
        return [(result, 1.0)]
    if isinstance(result, bool):
        return [(result, float(result))]
    return [(r, 1.0) for r in result] if isinstance(result, list) else [(None, float(result))]


def expression_attributes(parts, sequence, t):
    name = "|".join(map(part_text, parts))
    items = [part_items(part, sequence, t) for part in parts]
    if len(parts) == 1:
        return [
            (f"{name}={text}" if isinstance(text, str) else name, value) for text, value in items[0]
        ]
    return [(name + "=" + "|".join(str(text) for text, _ in row), 1.0) for row in product(*items)]


def has_numbers(templates, X):
    """Whether a number would be a part of a conjunction."""
    return any(
        text is None
        for parts in templates
        if len(parts) > 1
        for s in X
        for t in range(len(s))
        for row in product(*(part_items(part, s, t) for part in parts))
        for text, _ in row
    )


def oracle_rows(templates, X):
    return [
        [attribute for parts in templates for attribute in expression_attributes(parts, s, t)]
        for s in X
        for t in range(len(s))
    ]


def oracle_columns(rows, min_freq):
    counts = Counter(name for row in rows for name, value in row if value)
    return sorted({name for row in rows for name, _ in row if counts[name] >= min_freq})


def oracle_matrix(rows, names):
    matrix = np.zeros((len(rows), len(names)))
    for row, attributes in zip(matrix, rows, strict=True):
        for name, value in attributes:
            if name in names:
                row[names.index(name)] += value
    return matrix


def make(templates, **params):
    functions = {"own": FUNCTIONS["own(%s)"], "some": lambda s: s or None}
    texts = ["|".join(map(part_text, parts)) for parts in templates]
    return TemplateFeatures(texts, columns=["w", "p"], functions=functions, **params)


@SMALL
@given(EXPRESSIONS, CORPUS, CORPUS, st.integers(0, 2))
def test_expressions_follow_the_value_rules(templates, X, unseen, min_freq):
    features = make(templates, min_freq=min_freq)
    if has_numbers(templates, X):
        with pytest.raises(TypeError, match="gave the number"):
            features.fit(X)
        return
    rows = oracle_rows(templates, X)
    names = oracle_columns(rows, min_freq)
    fitted = features.fit_transform(X)
    check_rows(fitted)
    found, matrix = by_name(fitted)
    assert found == names
    np.testing.assert_array_equal(matrix, oracle_matrix(rows, names))
    if not has_numbers(templates, unseen):
        later = by_name(features.transform(unseen))[1]
        np.testing.assert_array_equal(later, oracle_matrix(oracle_rows(templates, unseen), names))


X_WORDS = [[("The", "DT"), ("big", "JJ"), ("dog", "NN")], [("Dogs", "NNS")]]


def attributes(features, X=X_WORDS):
    packed = features.fit_transform(X)
    ends = packed.indptr.tolist()
    return [packed.feature_names[packed.indices[b:e]].tolist() for b, e in zip(ends, ends[1:],
            strict=False)]  # fmt: skip


def test_names_are_written_as_the_templates_are():
    features = TemplateFeatures(["w", "w[-1]|w", "suffix( w,2 )"], columns=["w", "pos"])
    assert attributes(features)[1] == ["w=big", "w[-1]|w=The|big", "suffix( w,2 )=ig"]


def test_windows_and_affixes_stand_for_several_templates():
    assert window("pos", -1, 1) == ["pos[-1]", "pos", "pos[1]"]
    assert window(1, -1, 0) == ["%x[-1,1]", "%x[0,1]"]
    assert window("lower(w[1])|col('a b')", 0, 1) == [
        "lower(w[1]) | col('a b')", "lower(w[2]) | col('a b')[1]"
    ]  # fmt: skip
    features = TemplateFeatures(["window(lower(w), -1, 0)", "affixes(w, 2)"], columns=["w", "pos"])
    assert attributes(features)[1] == [
        "lower(w[-1])=the", "lower(w)=big", "prefix(w, 1)=b", "prefix(w, 2)=bi",
        "suffix(w, 1)=g", "suffix(w, 2)=ig",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="first is larger"):
        window("w", 1, 0)


def test_numbers_of_columns_need_no_names():
    features = TemplateFeatures("%x[-1,1]|%x[0,0]\nsuffix(%x[0,0], 1)")
    assert attributes(features)[1] == ["%x[-1,1]|%x[0,0]=DT|big", "suffix(%x[0,0], 1)=g"]


def test_steps_describe_all_tokens_but_the_first():
    spaced = "transition( pos[-1]|pos )"
    for template in (transition("pos[-1]|pos"), 'transition("pos[-1]|pos")', spaced):
        features = TemplateFeatures(["w", template], columns=["w", "pos"])
        steps = features.fit_transform(X_WORDS).transitions
        assert steps.feature_names.tolist() == ["pos[-1]|pos=DT|JJ", "pos[-1]|pos=JJ|NN"]
        assert steps.indptr.tolist() == [0, 0, 1, 2, 2]
        assert steps.offsets.tolist() == [0, 3, 4]


def test_flags_of_the_position():
    features = TemplateFeatures(["bos()", "eos()", "position(2)", "bos()|w"], columns=["w", "p"])
    rows = attributes(features)
    assert rows[0] == ["bos()", "position(2)=0", "bos()|w=True|The"]
    assert rows[2] == ["eos()", "position(2)=1", "bos()|w=False|dog"]
    assert rows[3] == ["bos()", "eos()", "position(2)=0", "bos()|w=True|Dogs"]


def test_a_flag_that_is_never_set_keeps_its_column():
    features = TemplateFeatures(["is_digit(w)", "is_title(w)"], columns=["w", "pos"])
    packed = features.fit_transform(X_WORDS)
    assert packed.feature_names.tolist() == ["is_digit(w)", "is_title(w)"]
    assert packed.to_csr().toarray().tolist() == [[0, 1], [0, 0], [0, 0], [0, 1]]
    assert features.transform([[("7", "")]]).to_csr().toarray().tolist() == [[1, 0]]


def naive_runs(words, entries):
    out, t = [None] * len(words), 0
    while t < len(words):
        sizes = [len(e) for e in entries if tuple(words[t : t + len(e)]) == e]
        if sizes:
            out[t] = "B"
            out[t + 1 : t + max(sizes)] = ["I"] * (max(sizes) - 1)
        t += max(sizes, default=1)
    return out


@SMALL
@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=1, max_size=4),
    st.lists(st.lists(st.sampled_from("abcd"), max_size=8), max_size=3),
)
def test_lexicons_mark_the_longest_runs_from_the_left(entries, X):
    features = TemplateFeatures(
        'lexicon(w, "x")', columns=["w"], lexicons={"x": [" ".join(entry) for entry in entries]}
    )
    features.fit([list("abcab")])
    expected = [naive_runs(words, [tuple(entry) for entry in entries]) for words in X]
    names = [f'lexicon(w, "x")={run}' for runs in expected for run in runs if run]
    vocabulary = set(features.get_feature_names_out())
    packed = features.transform(X)
    found = packed.feature_names[packed.indices].tolist()
    assert found == [name for name in names if name in vocabulary]


def naive_phrases(words):
    """The longest phrase about each token, as (begin, end), None where there is none."""

    def is_phrase(a, b):
        gaps = "".join("C" if w[:1].isupper() else "j" if w in ("of", "la") else "x" for w in words)
        return re.fullmatch("C(j{0,2}C)*", gaps[a:b]) is not None

    size = len(words)
    found = [(a, b) for a in range(size) for b in range(a + 1, size + 1) if is_phrase(a, b)]
    about = [[pair for pair in found if pair[0] <= t < pair[1]] for t in range(size)]
    return [max(pairs, key=lambda pair: pair[1] - pair[0], default=None) for pairs in about]


NAMES = st.lists(st.sampled_from(["Al", "B", "of", "la", "xy7", "long", ","]), max_size=9)


@SMALL
@given(st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=3))
def test_phrases_are_the_longest_runs_of_words_with_capitals(X, X_new):
    templates = ["lower(phrase(w))", "phrase(w, -1)|phrase(w, 1)", "phrase(w[1])"]
    features = TemplateFeatures(templates, columns=["w"])
    trained = features.fit_transform(X)
    for sequences, packed in ((X, trained), (X_new, features.transform(X_new))):
        rows = []
        for words in sequences:
            phrases = [p and " ".join(words[slice(*p)]) for p in naive_phrases(words)]
            for t, pair in enumerate(naive_phrases(words)):
                names = []
                if pair:
                    before = words[pair[0] - 1] if pair[0] else "_B-1"
                    after = words[pair[1]] if pair[1] < len(words) else "_B+1"
                    names = [
                        f"{templates[0]}={phrases[t].lower()}",
                        f"{templates[1]}={before}|{after}",
                    ]
                following = phrases[t + 1] if t + 1 < len(words) else "_B+1"
                rows.append(names + ([f"phrase(w[1])={following}"] if following else []))
        known = set(trained.feature_names)
        cells = np.split(packed.indices, packed.indptr[1:-1]) if len(packed.indptr) > 1 else []
        assert [packed.feature_names[row].tolist() for row in cells] == [
            [name for name in names if name in known] for names in rows
        ]


def test_phrases_of_a_stored_transformer_are_the_same():
    X = [["El", "Banco", "de", "la", "Paz", "abre", "en", "Lima"]]
    features = TemplateFeatures(["phrase(w)", "suffix(phrase(w, -1), 1)"], columns=["w"])
    packed = features.fit_transform(X)
    again = loads(dumps(features)).transform(X)
    assert packed.feature_names.tolist() == again.feature_names.tolist()
    assert packed.feature_names[0] == "phrase(w)=El Banco de la Paz"
    assert packed.indices.tolist() == again.indices.tolist()


def test_a_lexicon_is_read_from_a_file_once(tmp_path):
    path = tmp_path / "animals.txt"
    path.write_text("big dog\n\ncat\n", encoding="utf-8")
    features = TemplateFeatures(
        'lexicon(lower(w), "animals")', columns=["w", "pos"], lexicons={"animals": path}
    )
    before = attributes(features)
    assert before[1:3] == [['lexicon(lower(w), "animals")=B'], ['lexicon(lower(w), "animals")=I']]
    path.unlink()
    assert features.lexicons_ == {"animals": ["big dog", "cat"]}
    assert pickle.loads(pickle.dumps(features)).transform(X_WORDS) == features.transform(X_WORDS)


def test_numbers_pass_through_and_zero_has_no_entry():
    X = [[{"w": "a", "x": 2.5}, {"w": "b", "x": 0}], [{"w": "a", "x": True}]]
    features = TemplateFeatures("w", numeric=["x"])
    packed = features.fit_transform(X)
    names, matrix = by_name(packed)
    assert names == ["w=a", "w=b", "x"]
    assert matrix.tolist() == [[1, 0, 2.5], [0, 1, 0], [1, 0, 1]]
    check_rows(packed)


@pytest.mark.parametrize(
    ("value", "kind", "problem"),
    [(float("nan"), ValueError, "nan"), (float("inf"), ValueError, "inf"), ("1", TypeError, "'1'"),
     (None, TypeError, "None")],
)  # fmt: skip
def test_a_bad_number_is_named(value, kind, problem):
    X = [[{"x": 1.0}], [{"x": 1.0}, {"x": value}]]
    with pytest.raises(kind, match="sequence 1, position 1, column 'x'") as error:
        TemplateFeatures([], numeric=["x"]).fit(X)
    assert problem in str(error.value)


def test_all_forms_of_input_agree():
    features = TemplateFeatures(["w|pos[-1]", "pos"], columns=["w", "pos"], by="s")
    expected = features.fit_transform(X_WORDS)
    dicts = [[{"w": w, "pos": pos, "s": "1"} for w, pos in s] for s in X_WORDS]
    frame = pd.DataFrame(
        [{"w": w, "pos": pos, "s": i} for i, s in enumerate(X_WORDS) for w, pos in s]
    )
    lists = ([list(token) for token in s] for s in X_WORDS)
    for X in (dicts, frame, lists):
        packed = clone(features).fit_transform(X)
        assert_same(packed, expected)
        assert packed == expected
    strings = TemplateFeatures("U:%x[0,0]", syntax="crfpp").fit_transform([["a"], np.array(["b"])])
    assert strings.feature_names.tolist() == ["U:a", "U:b"]


def test_a_generator_is_read_once():
    features = TemplateFeatures("w", columns=["w", "pos"])
    packed = features.fit_transform(iter(s) for s in X_WORDS)
    assert packed.n_tokens == 4


def test_nothing_at_all_has_no_rows():
    features = TemplateFeatures(["w|pos", transition("w")], columns=["w", "pos"]).fit(X_WORDS)
    for X in ([], [[]], [[], []]):
        packed = features.transform(X)
        assert (len(packed), packed.n_tokens, packed.n_features) == (len(X), 0, 4)
        assert packed.transitions.n_tokens == 0


def test_a_function_runs_once_for_each_string_and_never_again():
    seen = Counter()

    def count(string):
        seen[string] += 1
        return string.upper()

    X = [["a", "b", "a"], ["b"]]
    features = TemplateFeatures(
        ["count(w)", "count(w[1])|w"], columns=["w"], functions={"count": count}
    )
    features.fit(X)
    assert seen == {"a": 1, "b": 1}
    features.transform(X)
    assert seen == {"a": 1, "b": 1}
    features.transform([["c", "c", "a"]])
    assert seen == {"a": 1, "b": 1, "c": 1}


def shout(string):
    return string.upper()


def test_a_fitted_object_pickles_and_clones():
    features = TemplateFeatures(
        ["w|pos[-1]", "shout(w)", "is_title(w)", "ngrams(w, 2)", transition("pos|w"), "w in x"],
        columns=["w", "pos"], functions={"shout": shout}, lexicons={"x": {"big dog"}},
        bias=True,
    )  # fmt: skip
    expected = features.fit_transform(X_WORDS)
    restored = pickle.loads(pickle.dumps(features))
    restored._check_state()
    packed = restored.transform(X_WORDS)
    assert_same(packed, expected)
    assert_same(packed.transitions, expected.transitions)
    assert packed.names is restored.vocabulary_
    fresh = clone(features)
    assert fresh.get_params() == features.get_params()
    with pytest.raises(NotFittedError):
        fresh.transform(X_WORDS)
    assert fresh.set_output(transform="pandas") is fresh


def test_names_are_not_built_unless_asked_for():
    features = TemplateFeatures(["w|pos[-1]", "w"], columns=["w", "pos"])
    packed = features.fit_transform(X_WORDS)
    assert packed.names._built is None
    assert len(packed.names) == packed.n_features == features.n_features_in_
    assert features.get_feature_names_out() is packed.feature_names


def test_the_state_is_plain_data():
    features = TemplateFeatures(["w|pos[-1]", "ngrams(w, 2)"], columns=["w", "pos"]).fit(X_WORDS)

    def check(value):
        if hasattr(value, "_check_state"):
            value = value.__getstate__()
        if isinstance(value, dict):
            value = list(value.items())
        if isinstance(value, (list, tuple)):
            for item in value:
                check(item)
        else:
            assert value is None or isinstance(value, (str, bool, int, float, np.ndarray)), value

    check(features)


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: f.vocabulary_.columns[0].__setitem__(0, 99),
        lambda f: f.vocabulary_.columns.pop(),
        lambda f: f.vocabulary_.pairs[0][1].__setitem__(0, -1),
        lambda f: f.vocabulary_.pairs[0][1].__setitem__(0, 2**40),
        lambda f: f.vocabulary_.pairs[0].__setitem__(1, f.vocabulary_.pairs[0][1][:1]),
        lambda f: f._sources[0].codes.__setitem__(0, 99),
        lambda f: f._sources.pop(),
        lambda f: f._strings[0].strings.append("more"),
        lambda f: f._strings[0].strings.append(7),
        lambda f: f.vocabulary_.named.append(7),
        lambda f: f._parameters.update(templates=["w[-3]|pos[-1]", "w"]),
        lambda f: f._parameters.update(templates=["w|w", "w"]),
        lambda f: f._parameters.update(templates=["ngrams(w, 2)|pos[-1]", "w"]),
        lambda f: setattr(f, "_sources", 7),
        lambda f: setattr(f._sources[0], "codes", None),
        lambda f: setattr(f, "vocabulary_", None),
        lambda f: setattr(f.vocabulary_, "pairs", []),
        lambda f: setattr(f.vocabulary_, "blocks", [["", [7], [""]]]),
        lambda f: setattr(f.vocabulary_, "tables", {0: f._sources[1]}),
    ],
)
def test_a_damaged_state_is_refused(damage):
    features = TemplateFeatures(["w|pos[-1]", "w"], columns=["w", "pos"]).fit(X_WORDS)
    features._check_state()
    damage(features)
    with pytest.raises(ValueError, match="table|vocabulary|strings"):
        features._check_state()


# --- files and messages --------------------------------------------------------------------------


def test_a_file_is_read_and_its_syntax_told(tmp_path):
    path = tmp_path / "template é.txt"
    for text, syntax in (
        ("U:%x[0,0]\nB\n", "crfpp"),
        ("u:%x[0,0]\nb\n", "wapiti"),
        ("U:%X[0,0]\n", "wapiti"),
        ("lower(%x[0,0])\n", "python"),
    ):
        path.write_text("# comment\n" + text, encoding="utf-8")
        features = TemplateFeatures.from_file(path, min_freq=1)
        assert (features.syntax, features.min_freq) == (syntax, 1)
        path.unlink()
        assert clone(features).fit_transform([["a"]]).n_features == 1
    path.write_text("U:%x[0,0]\nU:%x[0]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"template é.txt: line 2 of the templates"):
        TemplateFeatures.from_file(path)
    path.write_text("upos\nupos|b", encoding="utf-8")
    assert TemplateFeatures.from_file(path).syntax == "python"
    with pytest.raises(ValueError, match="line 1 of the templates"):
        TemplateFeatures.from_file(path, syntax="crfpp")
    path.write_text("U0:%x[0,0]\nU1:lower(%x[0,0])", encoding="utf-8")
    with pytest.warns(UserWarning, match="line 2 .*has no functions, 'lower' is text"):
        TemplateFeatures.from_file(path)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("w[", "not an expression"),
        ("w[x]", "offset must be a whole number"),
        ("w[1.5]", "offset must be a whole number"),
        ("w[True]", "offset must be a whole number"),
        ("w + pos", "neither a column nor a function"),
        ("'w'", "neither a column nor a function"),
        ("nothing(w)", "there is no function 'nothing'"),
        ("is true(w)", "not an expression"),
        ("suffix(w)", "takes an expression and 1 numbers"),
        ("suffix(w, 0)", "whole numbers from 1"),
        ("ngrams(w, 3, 2)", "whole numbers from 1, the smaller first"),
        ("lower()", "needs an expression"),
        ("lower(is_title(w))", "needs a string"),
        ("lower(ngrams(w, 2))", "needs a string"),
        ("w.lower()", "not a call of a function by position"),
        ("suffix(w, n=2)", "not a call of a function by position"),
        ("bos(w)", "takes nothing"),
        ("position(0)", "number of parts"),
        ("lower(bos())", "cannot work on"),
        ('lexicon(w, "none")', "there is no lexicon 'none'"),
        ("lexicon(w)", "name of a lexicon"),
        ("seg.first.shape", "first(w), last(w) and single(w) describe the tokens of segments"),
        ("w|transition(w)", "stands outermost"),
        ("transition(transition(w))", "stands outermost"),
        ("affixes(w, 0)", "at least 1"),
        ("window(w, 1)", "two whole numbers"),
        ("lower(w)[1]", "is no column"),
        ("phrase()", "needs an expression"),
        ("phrase(lower(w))", "phrase() takes a column"),
        ("phrase(phrase(w))", "phrase() takes a column"),
        ("phrase(w, 2)", "-1 or 1 for the token before or after"),
        ("phrase(w, 1, 1)", "-1 or 1 for the token before or after"),
    ],
)
def test_a_bad_expression_is_named(template, problem):
    with pytest.raises(ValueError, match="template") as error:
        TemplateFeatures([template], columns=["w", "pos"]).fit(X_WORDS)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("params", "X", "kind", "problem"),
    [
        ({"templates": "x"}, X_WORDS, ValueError, r"column 'x', but columns=\['w', 'pos'\]"),
        ({"templates": "x", "columns": None}, X_WORDS, ValueError, "the tokens are tuples"),
        ({"templates": "%x[0,2]", "columns": None}, X_WORDS, ValueError, "tokens have 2 fields"),
        ({}, [[("a", "b")], [("a", "b"), ("c",)]], ValueError, "position 1: .* 1 field"),
        ({"columns": None, "templates": "%x[0,0]"}, [[("a", "b"), ("c",)]], ValueError,
         "the first token 2"),
        ({}, [[("a", "b"), (1, "c")]], TypeError, "sequence 0, position 1, column 'w': 1 is not"),
        ({}, [[("a", "b"), (None, "c")]], TypeError, "sequence 0, position 1, column 'w': None"),
        ({}, [[("a", "b"), (["x"], "c")]], TypeError, r"column 'w': \['x'\]"),
        ({}, [[{"w": "a"}, {"pos": "b"}]], ValueError, "position 1: the token has no field 'w'"),
        ({}, [[("a", "b"), {"w": "a"}]], TypeError, "must all be tuples"),
        ({}, [[("a", "b"), 7]], TypeError, "sequence 0, position 1: the token is a int"),
        ({}, [["a"]], ValueError, "have one field"),
        ({"columns": None}, [["a"]], ValueError, "the tokens are strings"),
        ({"templates": "%x[0,0]", "columns": None}, [[{"w": "a"}]], ValueError, "have names"),
        ({}, pd.DataFrame({"w": ["a"]}), ValueError, "by="),
        ({"by": "s"}, pd.DataFrame({"s": [1]}), ValueError, "no columns but 's'"),
        ({"by": "s"}, pd.DataFrame({"s": [1], "x": ["a"]}), ValueError, "no column 'w'"),
        ({"by": "s"}, pd.DataFrame({"s": [1, 1], "w": ["a", None]}), TypeError,
         "sequence 0, position 1, column 'w'"),
        ({"syntax": "crf++"}, X_WORDS, ValueError, "syntax='crf\\+\\+' is not known"),
        ({"min_freq": -1}, X_WORDS, ValueError, "min_freq"),
        ({"columns": ["w", "w"]}, X_WORDS, ValueError, "different names"),
        ({"functions": {"lower": str.lower}}, X_WORDS, ValueError, "'lower' is the name"),
        ({"functions": {"is": str.lower}}, X_WORDS, ValueError, "'is' cannot be the name"),
        ({"functions": {"f": 7}}, X_WORDS, TypeError, "cannot be called"),
        ({"templates": 7}, X_WORDS, TypeError, "templates must be"),
        ({"templates": [["U"]], "syntax": "crfpp"}, X_WORDS, TypeError, "templates must be"),
        ({"lexicons": {"x": []}}, X_WORDS, ValueError, "has no entries"),
        ({"lexicons": {"x": [1]}}, X_WORDS, TypeError, "is not a string"),
        ({"numeric": "w"}, X_WORDS, TypeError, "must be a list"),
    ],
)  # fmt: skip
def test_wrong_input_is_named(params, X, kind, problem):
    features = TemplateFeatures(**{"templates": "w", "columns": ["w", "pos"], **params})
    with pytest.raises(kind, match=problem):
        features.fit(X)


def test_a_function_that_gives_something_else_is_named():
    features = TemplateFeatures("f(w)", columns=["w"], functions={"f": lambda s: object()})
    with pytest.raises(TypeError, match=r"the function f\('a'\) gave"):
        features.fit([["a"]])
    features = TemplateFeatures("f(w)", columns=["w"], functions={"f": lambda s: float("nan")})
    with pytest.raises(ValueError, match="finite"):
        features.fit([["a"]])


def test_conll2000_has_the_attributes_of_crfsuite(data_home):
    folder = data_home / "conll2000"
    if not folder.is_dir():
        pytest.skip(f"no CoNLL-2000 in {data_home}")
    from crfkit.io import read_columns

    X = read_columns(folder / "train.txt.gz", columns=[0, 1])
    features = TemplateFeatures.from_file(folder / "template.crfpp")
    packed = features.fit_transform(X)
    assert (packed.n_tokens, packed.n_features) == (211_727, 338_551)
    assert packed.values is None
    assert packed.transitions is None
    assert features.transform(X[:100]) == packed[:100]


# --- sizes and strings out of the ordinary -------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "syntax"),
    [
        ("w[-1001]", "python"),
        ("lower(w[1000000000])", "python"),
        ("window(w, 0, 1001)", "python"),
        ("affixes(w, 1001)", "python"),
        ("position(1001)", "python"),
        ("transition(w[-1001])", "python"),
        ("w[{[1]: 2}]", "python"),
        ("# c\nU0:%x[-1001,0]", "crfpp"),
        ("# c\nu:%x[1001,0]", "wapiti"),
        ("# c\nu:%x[@1001,0]", "wapiti"),
    ],
)
def test_what_no_machine_can_hold_is_refused(template, syntax):
    place = "template|window" if syntax == "python" else "line 2 of the templates"
    with pytest.raises(ValueError, match=place):
        TemplateFeatures(template, syntax=syntax, columns=["w"]).fit([["a"]])


def test_the_farthest_cells_are_marks():
    packed = TemplateFeatures(["w[-1000]", "w[1000]"], columns=["w"]).fit_transform([["a"]])
    assert packed.feature_names.tolist() == ["w[-1000]=_B-1000", "w[1000]=_B+1000"]


def test_ngrams_are_no_longer_than_the_string():
    packed = TemplateFeatures("ngrams(w, 2, 1000000000)", columns=["w"]).fit_transform([["abc"]])
    names = [name.removeprefix("ngrams(w, 2, 1000000000)=") for name in packed.feature_names]
    assert names == ["ab", "bc", "abc"]


@given(st.lists(st.sampled_from(["U", "U1", "U1:", "U12", "Ua"]), min_size=1, max_size=5), CORPUS)
@SMALL
def test_names_that_several_templates_have_are_one_attribute(leads, corpus):
    text = "\n".join(f"{lead}%x[0,0]" for lead in leads)
    packed = TemplateFeatures(text, syntax="crfpp").fit_transform(corpus)
    tokens = [[Counter(lead + w for lead in leads) for w, _ in s] for s in corpus]
    assert_same(packed, SequenceVectorizer().fit_transform(tokens))


class Loud(str):
    """A string that prints as something else."""

    def __str__(self):
        return "loud"


def test_a_subclass_of_str_is_the_string_it_holds():
    features = TemplateFeatures(
        ["w", "w[-1]|w", "lower(w)", "same(w)"], columns=["w"], functions={"same": Loud}
    )
    plain = features.fit_transform([["A", "b"]])
    assert plain.feature_names.tolist()[-2:] == ["same(w)=A", "same(w)=b"]
    assert features.transform([[Loud("A"), Loud("b")]]) == plain
    assert features.transform([[Loud("A"), Loud("c")]]) == features.transform([["A", "c"]])
    loud = clone(features).fit_transform([[Loud("A"), Loud("b")]])
    assert loud.feature_names.tolist() == plain.feature_names.tolist()


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"U0:%x[0,0]\nU1:\xe4%x[0,0]\n")
    with pytest.raises(ValueError, match=r"latin\.txt: line 2 is not UTF-8"):
        TemplateFeatures.from_file(path)
    with pytest.raises(ValueError, match=r"latin\.txt: line 2 is not UTF-8"):
        TemplateFeatures("lexicon(w, 'l')", columns=["w"], lexicons={"l": path}).fit([["a"]])


@pytest.mark.parametrize(
    "changed", [{"templates": ["w[-1]", "suffix(w, 2)"]}, {"columns": ["p", "w"]}, {"bias": True}]
)
def test_parameters_that_change_after_fit_wait_for_the_next_one(changed):
    X = [[("ab", "x"), ("b", "y")]]
    features = TemplateFeatures(["w", "w[-1]|p"], columns=["w", "p"])
    expected = features.fit_transform(X)
    features.set_params(**changed)
    for again in (features, pickle.loads(pickle.dumps(features)), loads(dumps(features))):
        assert again.transform(X) == expected
    names = features.fit_transform(X).feature_names
    assert names.tolist() != expected.feature_names.tolist()


@pytest.mark.parametrize("templates", ["", [], "# only a comment\n"])
def test_no_templates_at_all_are_an_error(templates):
    with pytest.raises(ValueError, match="there are no templates"):
        TemplateFeatures(templates).fit([["a"]])
    assert TemplateFeatures(templates, bias=True).fit_transform([["a"]]).n_features == 1


def test_an_error_in_a_function_of_the_user_names_the_string():
    features = TemplateFeatures("f(w)", columns=["w"], functions={"f": lambda word: 1 / len(word)})
    with pytest.raises(ZeroDivisionError) as caught:
        features.fit([["a", ""]])
    assert caught.value.__notes__ == ["in the function f() of a template, for the string ''"]


def test_a_number_too_large_for_a_float_is_named():
    features = TemplateFeatures("w", columns=["w", "n"], numeric=["n"])
    with pytest.raises(ValueError, match="sequence 0, position 1, column 'n': .*inf"):
        features.fit([[("a", 1), ("b", 10**400)]])


def test_first_and_last_are_what_they_hold_under_another_name():
    X = [[("a", "x"), ("B", "y")], [("a", "y")]]
    columns = {"columns": ["w", "p"]}
    plain = ["w", "w[-1]|p", "is_upper(w)", "ngrams(p, 1)", "suffix(w, 1)", "prefix(w, 1)"]
    wanted = TemplateFeatures(plain, **columns).fit_transform(X)
    for part in ("first", "last", "single"):
        templates = [f"{part}({template})" for template in plain[:-2]]
        features = TemplateFeatures([*templates, f"{part}(affixes(w, 1))"], **columns)
        packed = features.fit_transform(X)
        names, matrix = by_name(packed)
        assert [name.removeprefix(f"seg.{part}.") for name in names] == by_name(wanted)[0]
        np.testing.assert_array_equal(matrix, by_name(wanted)[1])
        assert packed.transitions is None


def test_around_a_segment_is_around_its_first_and_last_token():
    features = TemplateFeatures(["first(window(w, -1, 0))", "last(w[1])", "w[-1]"])
    packed = features.set_params(columns=["w"]).fit_transform([["a"]])
    wanted = ["seg.first.w=a", "seg.first.w[-1]=_B-1", "seg.last.w[1]=_B+1", "w[-1]=_B-1"]
    assert sorted(packed.feature_names) == wanted


@pytest.mark.parametrize(
    "template", ["first()", "last(w, 1)", "first(last(w))", "lower(first(w))",
                 "first(transition(w))",
                 "transition(first(w))", "single(last(w))", "w|first(w)"],
)  # fmt: skip
def test_first_and_last_stand_outermost(template):
    with pytest.raises(ValueError, match="stands outermost"):
        TemplateFeatures(template, columns=["w"]).fit([["a"]])


@pytest.mark.parametrize(
    "pair",
    [
        ("lexicon(w, 'x')", "w in x"),
        ("lexicon(lower(w), x)", "lower(w) in 'x'"),
        ("lexicon(w[-1], 'x')|w", "(w[-1] in x)|w"),
        ("window(lexicon(w, x), -1, 1)", "window(w in x, -1, 1)"),
        ("transition(lexicon(w, 'x'))", "transition(w in x)"),
        ("first(lexicon(w, 'x'))", "first(w in x)"),
    ],
)
def test_a_lexicon_is_asked_in_two_ways(pair):
    X = [["in", "New", "York", "Rome"], ["new", "york"], ["York"]]
    lexicons = {"x": ["New York", "Rome", "new york"]}
    called, compared = (
        TemplateFeatures(template, columns=["w"], lexicons=lexicons).fit_transform(X)
        for template in pair
    )
    for a, b in ((called, compared), (called.transitions, compared.transitions)):
        if a is not None:
            np.testing.assert_array_equal(a.indptr, b.indptr)
            np.testing.assert_array_equal(a.indices, b.indices)
            assert len(a.feature_names) == len(b.feature_names)
    assert called.n_features + (called.transitions is not None) > 0


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("w in x|w", "put that in parentheses"),
        ("w in y", "there is no lexicon 'y'"),
        ("w in 3", "no name of a lexicon"),
        ("w not in x", "neither a column nor a function"),
        ("w in x in x", "neither a column nor a function"),
        ("lower(w in x)", "cannot work on what 'w in x' gives"),
        ("bos() in x", "a lexicon cannot work on"),
        ("lexicon(w)", "takes an expression and the name of a lexicon"),
    ],
)
def test_what_is_no_membership_is_refused(template, problem):
    with pytest.raises(ValueError, match=problem):
        TemplateFeatures(template, columns=["w"], lexicons={"x": ["a"]}).fit([["a"]])
