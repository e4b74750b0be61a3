import io
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import CRFClassifier
from crfkit.data.frames import frame_from_sequences, labels_from_frame, sequences_from_frame
from tests.sampling import examples

FRAME = pd.DataFrame(
    {"line": ["a", "a", "b"], "word": ["the", "dog", "yes"], "tag": ["DT", "NN", "UH"]}
)


def test_labels_belong_to_the_sequences_of_the_frame():
    X = sequences_from_frame(FRAME, "line", ["word"])
    y = labels_from_frame(FRAME, "line", "tag")
    assert X == [[{"word": "the"}, {"word": "dog"}], [{"word": "yes"}]]
    assert y == [["DT", "NN"], ["UH"]]
    assert CRFClassifier().fit(X, y).predict(X) == y


def test_labels_keep_their_type():
    frame = FRAME.assign(tag=[1, 2, 1])
    assert labels_from_frame(frame, "line", "tag") == [[1, 2], [1]]
    assert type(labels_from_frame(frame, "line", "tag")[0][0]) is int


@pytest.mark.parametrize(
    ("frame", "column", "message"),
    [
        (FRAME, "pos", "no column 'pos'; it has"),
        (FRAME.drop(columns="line"), "tag", "no column 'line'"),
        (FRAME.assign(line=["a", "b", "a"]), "tag", "row 2: group 'a' comes back"),
        (FRAME.assign(line=["a", None, "b"]), "tag", "row 1: the group is missing"),
        (FRAME.assign(line=pd.array([1, pd.NA, 2], "Int64")), "tag", "row 1: the group is missing"),
    ],
)
def test_frames_that_are_no_sequences_are_refused(frame, column, message):
    with pytest.raises(ValueError, match=message):
        labels_from_frame(frame, "line", column)


def test_an_estimator_names_a_missing_label_of_a_frame():
    y = labels_from_frame(FRAME.assign(tag=["DT", np.nan, "UH"]), "line", "tag")
    with pytest.raises(ValueError, match="sequence 0, position 1"):
        CRFClassifier().fit(sequences_from_frame(FRAME, "line", ["word"]), y)


def test_predictions_stand_beside_the_tokens():
    X = sequences_from_frame(FRAME, "line", ["word"])
    y = labels_from_frame(FRAME, "line", "tag")
    predicted = CRFClassifier().fit(X, y).predict(X)
    frame = frame_from_sequences(X, {"tag": y, "predicted": predicted}, by="line")
    assert list(frame.columns) == ["line", "word", "tag", "predicted"]
    assert frame["line"].tolist() == [0, 0, 1]
    assert frame[["word", "tag"]].equals(FRAME[["word", "tag"]])
    assert frame["predicted"].tolist() == FRAME["tag"].tolist()


def test_tokens_may_be_strings_or_tuples():
    words = frame_from_sequences([["the", "dog"], ["yes"]])
    assert words["token"].tolist() == ["the", "dog", "yes"]
    rows = frame_from_sequences([[("the", "DT")]], columns=["word", "pos"])
    assert rows.to_dict("records") == [{"sequence": 0, "word": "the", "pos": "DT"}]


def test_a_token_may_lack_a_column():
    frame = frame_from_sequences([[{"a": 1}, {"b": "x"}]])
    assert list(frame.columns) == ["sequence", "a", "b"]
    assert frame.isna().to_numpy().tolist() == [[False, False, True], [False, True, False]]


def test_no_sequences_are_a_frame_without_rows():
    frame = frame_from_sequences([], {"tag": []})
    assert (len(frame), list(frame.columns)) == (0, ["sequence", "token", "tag"])


@pytest.mark.parametrize(
    ("X", "labels", "message"),
    [
        ([["a"], []], None, "sequence 1 is empty"),
        ([["a"]], {"tag": []}, "'tag' has 0 sequences, X has 1"),
        ([["a"], ["b"]], {"tag": [["x"], []]}, "sequence 1: 'tag' has 0 values, X has 1"),
        ([["a"]], {"token": [["x"]]}, "a column 'token' already"),
        ([[("a", "b")]], None, "sequence 0, position 0: the token has 2 cells"),
        ([[{"sequence": 1}]], None, "sequence 0, position 0: .* column 'sequence'"),
    ],
)
def test_what_a_frame_cannot_hold_is_refused(X, labels, message):
    with pytest.raises(ValueError, match=message):
        frame_from_sequences(X, labels)


def test_without_pandas_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas: install it"):
        frame_from_sequences([["a"]])


TOKENS = st.fixed_dictionaries({"word": st.text(), "size": st.integers(-5, 5)})


@examples(10)
@given(st.lists(st.lists(TOKENS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_sequences_come_back_from_their_frame(X):
    y = [[token["size"] % 2 for token in sequence] for sequence in X]
    frame = frame_from_sequences(X, {"label": y})
    assert sequences_from_frame(frame, "sequence", ["word", "size"]) == X
    assert labels_from_frame(frame, "sequence", "label") == y


def test_a_frame_survives_a_csv_file():
    X = [[{"word": "the"}, {"word": "dog"}], [{"word": "yes"}]]
    file = io.StringIO()
    frame_from_sequences(X).to_csv(file, index=False)
    file.seek(0)
    assert sequences_from_frame(pd.read_csv(file), "sequence") == X
