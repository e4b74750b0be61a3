"""Comma-separated values, and rows of Hugging Face data sets."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import UNLABELED
from crfkit.io import (
    ColumnFormatError,
    hugging_face_columns,
    iter_conll,
    iter_csv,
    iter_hugging_face,
    known_labels,
    read_csv,
    read_hugging_face,
    write_csv,
    write_hugging_face,
)
from tests.sampling import examples

KAGGLE = (
    "Sentence #,Word,POS,Tag\r\nSentence: 1,Ann,NNP,B-per\r\n"
    ',"5,000",CD,O\r\n,"""\n",x,O\r\nSentence: 2,Yes,UH,O\r\n'
)

rows = st.lists(
    st.lists(
        st.tuples(st.text('ab,;" \t\n\ré中\u2028', min_size=1), st.sampled_from(["O", "B-x"])),
        min_size=1,
        max_size=3,
    ),
    max_size=3,
)


@examples(30)
@given(rows, st.sampled_from(["sequence", None, "json"]), st.sampled_from(",;\t"))
def test_tables_come_back(sequences, by, sep):
    X = [[{"w": word, "n": word[::-1]} for word, _ in row] for row in sequences]
    y = [[tag if tag == "O" else UNLABELED for _, tag in row] for row in sequences]
    form = {"within": "json"} if by == "json" else {"by": by}
    file = io.StringIO(newline="")
    write_csv(file, X, y, sep=sep, unlabeled="_", **form)
    found, labels = read_csv(io.StringIO(file.getvalue(), newline=""), sep=sep, **form)
    assert (found, known_labels(labels, unlabeled="_")) == (X, y)


def test_tables_with_the_sentence_in_the_first_row_alone(tmp_path):
    path = tmp_path / "ner.csv"
    path.write_bytes(b"\xef\xbb\xbf" + KAGGLE.encode())
    X, y = read_csv(path, by="Sentence #", columns=["Word"])
    assert X == [[{"Word": "Ann"}, {"Word": "5,000"}, {"Word": '"\n'}], [{"Word": "Yes"}]]
    assert y == [["B-per", "O", "O"], ["O"]]
    path.write_bytes("w;t\r\ncafé;O\r\n;\r\nb;O\r\n".encode("cp1252"))
    assert read_csv(path, sep=";", encoding="cp1252")[0] == [[{"w": "café"}], [{"w": "b"}]]
    with pytest.raises(ColumnFormatError, match="ner.csv, line 2: byte 0xe9"):
        read_csv(path, sep=";")


def test_a_sequence_may_be_a_row_or_the_table_without_header():
    lines = ["a b\tO B-x\n", "c\tO\n"]
    assert read_csv(lines, sep="\t", within=" ", header=False) == (
        [[("a",), ("b",)], [("c",)]],
        [["O", "B-x"], ["O"]],
    )
    assert read_csv(["a,O\n"], header=False, label=None)[0] == [[("a", "O")]]
    assert read_csv([]) == ([], [])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: read_csv(["a,b\n", '"x,1\n']), "line 2: unexpected end"),
        (lambda: read_csv(["a,b\n", "x\n"]), "line 2: expected 2 cells.*found 1"),
        (lambda: read_csv(["a,b\n"], by="c"), "no column is named 'c'"),
        (lambda: read_csv(["a,a\n"], by="a"), "more than one column"),
        (lambda: read_csv(["a\n"]), "no column is left"),
        (lambda: read_csv(["a,b\n"], label=2), "label=2 asks for more"),
        (lambda: read_csv(["a,b\n"], header=False, by="a"), "columns are numbers"),
        (lambda: read_csv(["i,w\n", "1,a\n", "2,b\n", "1,a\n"], by=0, label=None), "comes back"),
        (lambda: read_csv(["i,w,t\n", ",a,O\n"], by=0), "first row names no sequence"),
        (lambda: read_csv(["w,t\n", "a b,O\n"], within=" "), r"line 2: .*\[1, 2\] parts"),
        (lambda: read_csv(["w,t\n", "a,O\n"], within="json"), "no JSON"),
        (lambda: read_csv(["a,b\n"], sep=""), "sep has to be"),
        (lambda: read_csv(["a,b\n"], delimiter=";"), r"without \['delimiter'\]"),
        (lambda: write_csv(io.StringIO(), [["a"]], [[UNLABELED]]), "position 0: .*UNLABELED"),
        (lambda: write_csv(io.StringIO(), [["a"]], [[]]), "1 tokens, but"),
        (lambda: write_csv(io.StringIO(), [["a"]], [["O"], ["O"]]), "more sequences of labels"),
        (lambda: write_csv(io.StringIO(), [[""]], by=None), "would end the sequence"),
        (lambda: write_csv(io.StringIO(), [[]]), "sequence 0 is empty"),
        (lambda: write_csv(io.StringIO(), [[3]]), "not iterable"),
        (
            lambda: write_csv(io.StringIO(), [["a"]], [["_"]], unlabeled="_"),
            "position 0: the label '_' is what stands for UNLABELED",
        ),
        (lambda: write_csv(io.StringIO(), [["a b"]], within=" "), "a cell holds ' '"),
        (lambda: write_csv(io.StringIO(), [[{"a": "x"}, {"b": "x"}]]), "position 1: the columns"),
        (lambda: read_hugging_face([{"tokens": ["a"], "ner_tags": [0]}]), "pass names="),
        (lambda: read_hugging_face([{"tokens": ["a"]}]), "record 0: there is no column 'ner_tags'"),
        (lambda: read_hugging_face({"train": [], "test": []}), "one split, such as"),
        (lambda: read_hugging_face([{"tokens": [], "ner_tags": [0]}]), "0 tokens, but 1"),
        (lambda: read_hugging_face({"tokens": [["a"]], "ner_tags": []}), "1 rows, but"),
        (lambda: read_hugging_face([{"tokens": ["a"], "ner_tags": [5]}], names=["O"]), "label 5"),
        (lambda: read_hugging_face([{"tokens": ["a"], "ner_tags": [None]}]), "expected an integer"),
        (lambda: read_hugging_face([{"tokens": [1], "ner_tags": ["O"]}]), "the token is 1"),
        (lambda: hugging_face_columns([["a"]], [["X"]], ["O"]), "position 0: the label 'X'"),
        (lambda: hugging_face_columns([["a"]], [[]]), "1 tokens, but 0"),
        (
            lambda: hugging_face_columns([["a"]], []),
            "more sequences of tokens than the 0 of labels",
        ),
    ],
)
def test_what_breaks_a_table_is_named(call, message):
    with pytest.raises((ColumnFormatError, TypeError, ValueError), match=message):
        call()


X, Y = [["Ann", "é中"], ["b"]], [["B-PER", UNLABELED], ["O"]]


def test_rows_of_data_sets_come_back_in_every_form(tmp_path):
    columns, names = hugging_face_columns(X, Y)
    assert (columns["ner_tags"], names) == ([[1, -100], [0]], ["O", "B-PER"])
    assert read_hugging_face(columns, names=names) == (X, Y)
    assert read_hugging_face(columns, names=dict(enumerate(names)), ignored="skip") == (
        [["Ann"], ["b"]],
        [["B-PER"], ["O"]],
    )
    assert write_hugging_face(tmp_path / "a.jsonl", X, Y) == names
    assert read_hugging_face(tmp_path / "a.jsonl", names=names) == (X, Y)
    row = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    assert row == {"id": "0", "tokens": ["Ann", "é中"], "ner_tags": [1, -100]}
    assert read_hugging_face([{"words": ["a"], "tags": ["O"]}], tokens="words", tags="tags") == (
        [["a"]],
        [["O"]],
    )


def test_data_sets_say_the_names_of_their_labels():
    class Tags:
        names = ["O", "B-PER"]

    class Feature:
        feature = Tags

    class Rows:
        column_names = ["tokens", "ner_tags"]
        features = {"ner_tags": Feature}

        def __len__(self):
            return 2

        def __getitem__(self, part):
            return {"tokens": X[part], "ner_tags": [[1, -100], [0]][part]}

    assert read_hugging_face(Rows()) == (X, Y)


def test_data_sets_of_the_library_come_back():
    datasets = pytest.importorskip("datasets")
    columns, names = hugging_face_columns(X, Y)
    sequence = getattr(datasets, "List", datasets.Sequence)
    features = datasets.Features(
        tokens=sequence(datasets.Value("string")),
        ner_tags=sequence(datasets.ClassLabel(names=names)),
    )
    found = datasets.Dataset.from_dict(columns, features=features)
    assert read_hugging_face(found) == (X, Y)
    assert read_hugging_face(found.select([1])) == ([X[1]], [Y[1]])


def test_one_sequence_is_read_at_a_time_and_labels_may_be_missing():
    table = io.StringIO("w,t\na,O\nb,\n\n" + "c,A|B\n\n" * 999)
    sequences = iter_csv(table, unlabeled="", alternatives="|")
    assert next(sequences) == ([{"w": "a"}, {"w": "b"}], ["O", UNLABELED])
    assert next(sequences)[1] == [frozenset("AB")]
    columns = io.StringIO("a O\nb _\n\n" + "c O\n\n" * 999)
    assert next(iter_conll(columns, unlabeled="_")) == ([("a",), ("b",)], ["O", UNLABELED])
    rows = io.StringIO('{"tokens": ["a"], "ner_tags": [-100]}\n' * 999)
    assert next(iter_hugging_face(rows, names=["O"])) == (["a"], [UNLABELED])
    assert all(file.tell() < 99 for file in (table, columns, rows))


def test_a_table_of_another_form_is_warned_of():
    with pytest.warns(UserWarning, match="'B' is a label of other rows, too: .*--no-header"):
        read_csv(["a,B\n", "b,B\n"])
    with pytest.warns(UserWarning, match="all 600 rows are one sequence.*--by"):
        read_csv(["w,t\n", *["a,B\n"] * 600])
