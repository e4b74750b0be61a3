import io
import math

import numpy as np
import pycrfsuite
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import CRFClassifier
from crfkit.io import ColumnFormatError, iter_crfsuite_text, read_crfsuite_text, write_crfsuite_text
from tests.sampling import examples

TEXT = "B\tw=An\tpos=DT\t__BOS__\nI\tw=A.P.\tcaps:0.5\n\n@weight:2.5\nO\tw=said\n"


def test_sequences_labels_and_weights_are_read():
    X, y, weight = read_crfsuite_text(io.StringIO(TEXT))
    assert X == [
        [{"w=An": 1.0, "pos=DT": 1.0, "__BOS__": 1.0}, {"w=A.P.": 1.0, "caps": 0.5}],
        [{"w=said": 1.0}],
    ]
    assert y == [["B", "I"], ["O"]]
    np.testing.assert_array_equal(weight, [1.0, 2.5])


@pytest.mark.parametrize(
    ("line", "label", "attributes"),
    [
        (r"a\:b	x\:y:2", "a:b", {"x:y": 2.0}),
        (r"a\\	\\\::1e-3", "a\\", {"\\:": 1e-3}),
        (r"\n	\w", r"\n", {r"\w": 1.0}),
        ("a\tend\\", "a", {"end\\": 1.0}),
        ("a\tx:\ty: 2", "a", {"x": 1.0, "y": 2.0}),
        ("a\t\tx\t", "a", {"x": 1.0}),
        ("a\tx\tx:0.5", "a", {"x": 1.5}),
        ("#a\t#x b", "#a", {"#x b": 1.0}),
        ("a", "a", {}),
    ],
)
def test_escapes_and_values(line, label, attributes):
    ((tokens, labels, weight),) = iter_crfsuite_text([line])
    assert (labels, tokens, weight) == ([label], [attributes], 1.0)


def test_the_weight_may_stand_anywhere_in_its_sequence():
    assert read_crfsuite_text(["a", "@weight:3", "b", "", "c"]).sample_weight.tolist() == [3, 1]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a", "\tx"], "line 2: the line begins with a tab"),
        (["a:b\tx"], "line 1: the label 'a:b' holds a colon"),
        (["a\tx:b"], "line 1: the value of 'x' is 'b'; it must be a finite number"),
        (["a\tx:nan"], "line 1: the value of 'x' is 'nan'"),
        (["a\tx:1_0"], "line 1: the value of 'x' is '1_0'"),
        (["a\tx:\u0663"], "line 1: the value of 'x' is '\u0663'"),
        (["a\tx:1:2"], "line 1: 'x:1:2' has several colons"),
        (["a\t:1"], "line 1: the attribute ':1' has no name"),
        (["@scale:1"], "line 1: '@scale:1' is no declaration"),
        (["@weight"], "line 1: '@weight' is no declaration"),
        (["@weight:1\tx"], "line 1: '@weight:1' is no declaration"),
        (["@weight:-1"], "line 1: the weight is -1.0"),
        (["@weight:x"], "line 1: the value of '@weight' is 'x'"),
        (["@weight:1", "@weight:1"], "line 2: the sequence has two weights"),
        (["@weight:1", ""], "line 2: a weight without tokens"),
        (["a", "", "@weight:1"], "line 4: a weight without tokens"),
    ],
)
def test_broken_files_are_refused_with_their_line(lines, message):
    with pytest.raises(ColumnFormatError, match=f"<lines>, {message}"):
        list(iter_crfsuite_text(lines))


def test_reading_is_lazy_and_wrong_sources_are_told_apart():
    sequences = iter_crfsuite_text(["a", "", "\t"])
    assert next(sequences).labels == ["a"]
    with pytest.raises(ValueError, match="pass io.StringIO"):
        read_crfsuite_text("a\tb\n")


NAMES = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\n\r\ufeff"), min_size=1
)
LABELS = NAMES.filter(lambda text: not text.startswith("@"))
VALUES = st.floats(allow_nan=False, allow_infinity=False)
TOKENS = st.tuples(st.dictionaries(NAMES, VALUES, max_size=3), LABELS)


@examples(12)
@given(st.lists(st.tuples(st.lists(TOKENS, min_size=1, max_size=3), st.floats(0, 10)), max_size=3))
def test_what_was_written_reads_back(sequences):
    X = [[attributes for attributes, _ in tokens] for tokens, _ in sequences]
    y = [[label for _, label in tokens] for tokens, _ in sequences]
    weight = [value for _, value in sequences]
    file = io.StringIO(newline="\n")
    write_crfsuite_text(file, X, y, weight)
    file.seek(0)
    data = read_crfsuite_text(file)
    assert (data.X, data.y) == (X, y)
    np.testing.assert_array_equal(data.sample_weight, weight)


@examples(40)
@given(st.lists(st.text("a1.:\\\t@# "), max_size=4))
def test_any_text_is_read_or_refused_by_line(lines):
    try:
        data = read_crfsuite_text(lines)
    except ColumnFormatError as error:
        assert str(error).startswith("<lines>, line ")
    else:
        assert sum(map(len, data.y)) == sum(map(bool, lines))


def test_features_are_written_by_the_rules_of_the_vectorizer(tmp_path):
    path = tmp_path / "a.txt.gz"
    token = {"w": "a:b", "caps": True, "next": {"w": "c", "size": 2}, "in": ["x", "y"]}
    write_crfsuite_text(path, [[token, ["plain"]]], [["N", "V"]])
    names = {"w:a:b": 1.0, "caps": 1.0, "next:w:c": 1.0, "next:size": 2.0, "in:x": 1, "in:y": 1}
    assert read_crfsuite_text(path).X == [[names, {"plain": 1.0}]]


def test_a_written_model_input_trains_the_same_model(tmp_path):
    X = [[{"w": "the"}, {"w": "dog", "size": 0.5}], [{"w": "dog"}]]
    y = [["DT", "NN"], ["NN"]]
    write_crfsuite_text(tmp_path / "a.txt", X, y)
    again = read_crfsuite_text(tmp_path / "a.txt")
    first, second = CRFClassifier().fit(X, y), CRFClassifier().fit(again.X, again.y)
    assert first.state_features_ == second.state_features_
    items = [pycrfsuite.ItemSequence(tokens).items() for tokens in X]
    assert items == [pycrfsuite.ItemSequence(tokens).items() for tokens in again.X]


@pytest.mark.parametrize(
    ("X", "y", "weight", "error", "message"),
    [
        ([[["a\tb"]]], [["x"]], None, ColumnFormatError, r"sequence 0, position 0: .*holds '\\t'"),
        ([[["a"], [""]]], [["x", "y"]], None, ColumnFormatError, "position 1: .*is empty"),
        ([[["a"]]], [["x\n"]], None, ColumnFormatError, "the label .* holds"),
        ([[["a"]]], [["@x"]], None, ColumnFormatError, "begins with '@'"),
        ([[["a"]]], [[1]], None, TypeError, "sequence 0, position 0: the label 1 is not a str"),
        ([["a"]], [["x"]], None, TypeError, "sequence 0, position 0: the token is the string"),
        ([[["a"]], []], [["x"], []], None, ColumnFormatError, "sequence 1 is empty"),
        ([[["a"]]], [["x", "y"]], None, ValueError, "sequence 0: tokens and labels differ"),
        ([[["a"]]], [], None, ValueError, "X, y and sample_weight differ"),
        ([[["a"]]], [["x"]], [], ValueError, "X, y and sample_weight differ"),
        ([[["a"]]], [["x"]], [-1.0], ValueError, "the weight is -1.0"),
        ([[["a"]]], [["x"]], [math.nan], ValueError, "the weight is nan"),
        ([[["a"]]], [["\ufeffx"]], None, ColumnFormatError, "byte order mark"),
    ],
)
def test_what_the_format_cannot_express_is_refused(X, y, weight, error, message):
    with pytest.raises(error, match=message):
        write_crfsuite_text(io.StringIO(), X, y, weight)
