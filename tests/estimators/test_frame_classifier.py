"""Rows of a frame of pandas or polars go in, a column comes out."""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import crfkit
from crfkit import CRFClassifier, FrameClassifier, MaxMarginCRF, TemplateFeatures
from crfkit.data import frame_from_sequences, labels_from_frame, sequences_from_frame
from crfkit.model_selection import StratifiedSequenceKFold

ROWS = {
    "doc": [1, 1, 1, 1, 2, 2, 2], "line": [1, 1, 2, 2, 1, 1, 2],
    "word": ["a", "dog", "the", "cat", "a", "cat", "dog"],
    "tag": ["O", "B-X", "O", "B-X", "O", "B-X", "B-X"], "size": [0.5, 1.0, 0.2, 3.0, 0.1, 2.0, 1.5],
}  # fmt: skip
BY, STARTS = ["doc", "line"], [0, 2, 4, 6]


@pytest.fixture(params=["pandas", "polars"])
def frame(request):
    make = pytest.importorskip(request.param).DataFrame
    return make(ROWS, index=range(10, 17)) if request.param == "pandas" else make(ROWS)


def by_hand(frame, columns=("word", "size")):
    X, y = sequences_from_frame(frame, BY, columns), labels_from_frame(frame, BY, "tag")
    return X, y, CRFClassifier().fit(X, y)


def test_a_column_is_the_answer_of_the_sequences_beside_its_rows(frame):
    X, y, model = by_hand(frame)
    for fitted in (
        FrameClassifier(by=BY, label="tag").fit(frame),
        FrameClassifier(by=BY).fit(frame, frame["tag"]),  # the name of y tells what is no feature
        FrameClassifier(by=BY, columns=["word", "size"]).fit(frame, frame["tag"].to_list()),
    ):
        assert fitted.columns_ == ["word", "size"] and fitted.sequences(frame) == X
        found, proba = fitted.predict(frame), fitted.predict_proba(frame)
        assert type(found) is type(frame["tag"])
        assert found.to_list() == sum(model.predict(X), [])
        np.testing.assert_array_equal(proba.to_numpy(), np.vstack(model.predict_proba(X)))
        assert list(proba.columns) == ["B-X", "O"]
    assert fitted.predict(frame[:0]).to_list() == []
    spans = fitted.predict_spans(frame)
    rows = [begin + span.start for begin, found in zip(STARTS, model.predict_spans(X), strict=True)
            for span in found]  # fmt: skip
    assert spans["row"].to_list() == rows
    assert spans["line"].to_list() == [ROWS["line"][row] for row in rows]


def test_the_index_of_a_frame_and_the_name_of_the_labels_are_kept():
    frame = pd.DataFrame(ROWS, index=list("abcdefg"))
    model = FrameClassifier(by=BY, label="tag").fit(frame)
    assert model.predict(frame).name == "tag"
    of_one = FrameClassifier(by=BY).fit(frame, frame[["tag"]])  # a frame of one column
    assert (of_one.label_, of_one.columns_) == ("tag", model.columns_)
    for found in (model.predict(frame), model.predict_proba(frame)):
        assert found.index.equals(frame.index)


def test_numbers_are_numbers_and_templates_read_columns(frame):
    numbers = FrameClassifier(by=BY, label="tag", columns=["size"]).fit(frame)
    assert numbers.estimator_.vectorizer_ is None
    assert numbers.estimator_.feature_names_in_.tolist() == ["size"]
    crf = CRFClassifier(features=TemplateFeatures(["word", "word[-1]"], by="line"))
    templates = FrameClassifier(crf, by="line", label="tag").fit(frame[:4])
    y = labels_from_frame(frame[:4], "line", "tag")
    own = clone(crf).fit(frame[:4], frame["tag"][:4])
    assert own.predict(frame[:4]) == y
    assert templates.predict(frame[:4]).to_list() == sum(y, [])


def test_scores_and_folds_are_those_of_whole_sequences(frame):
    X, y, model = by_hand(frame)
    fitted = FrameClassifier(by=BY, label="tag", scoring="entity_f1").fit(frame)
    assert fitted.score(frame) == crfkit.metrics.get_scorer("entity_f1")(model, X, y)
    weights = np.arange(7.0)
    plain = FrameClassifier(by=BY, label="tag").fit(frame)
    cut = np.split(weights, [2, 4, 6])
    assert plain.score(frame, sample_weight=weights) == model.score(X, y, cut)
    folds = StratifiedSequenceKFold(2, by=BY)
    for train, test in folds.split(frame, frame["tag"]):
        whole = [{(ROWS["doc"][i], ROWS["line"][i]) for i in part} for part in (train, test)]
        assert whole[0].isdisjoint(whole[1]) and len(train) + len(test) == 7
    for scoring in (None, "accuracy"):
        scores = cross_val_score(plain, frame, frame["tag"], cv=folds, scoring=scoring)
        assert np.isfinite(scores).all()


def test_scorers_of_frames_score_their_sequences_or_name_scoring(frame):
    X, y, model = by_hand(frame)
    plain = FrameClassifier(by=BY, label="tag").fit(frame)
    for name in ("segment_f1", "neg_token_log_loss", "neg_sequence_log_loss"):
        scorer = crfkit.metrics.get_scorer(name)
        assert scorer(plain, frame, frame["tag"]) == pytest.approx(scorer(model, X, y))
    with pytest.raises(TypeError, match=r"FrameClassifier\(by=\.\.\., scoring='entity_f1'\)"):
        crfkit.metrics.get_scorer("entity_f1")(plain, frame, frame["tag"])


def test_a_saved_model_labels_frames(frame):
    model, file = FrameClassifier(by=BY, label="tag").fit(frame), io.BytesIO()
    model.save(file)
    file.seek(0)
    assert crfkit.load(file).predict(frame).to_list() == model.predict(frame).to_list()


def test_sequences_that_become_a_frame_come_back(frame):
    X, y, _ = by_hand(frame)
    library = type(frame).__module__.partition(".")[0]
    made = frame_from_sequences(X, {"tag": y}, library=library)
    assert type(made) is type(frame)
    assert sequences_from_frame(made, "sequence", ["word", "size"]) == X
    assert labels_from_frame(made, "sequence", "tag") == y


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"by": "lin"}, ValueError, "no column 'lin'; it has"),
        ({"by": []}, ValueError, "must name the column"),
        ({"label": None}, ValueError, "no labels: give y"),
        ({"label": "tags"}, ValueError, "no column 'tags' of labels"),
        ({"columns": "word"}, TypeError, r"must be a list of names: \['word'\]"),
        ({"columns": ["words"]}, ValueError, "no column 'words'"),
        ({"by": "tag"}, ValueError, "group 'O' comes back"),
    ],
)
def test_what_a_frame_lacks_is_named(frame, change, error, message):
    with pytest.raises(error, match=message):
        FrameClassifier(**{"by": BY, "label": "tag"} | change).fit(frame)


def test_what_is_no_frame_or_does_not_fit_to_it_is_refused():
    frame = pd.DataFrame(ROWS)
    model = FrameClassifier(by=BY, label="tag")
    with pytest.raises(TypeError, match="must be a data frame .*, not list"):
        model.fit(frame.to_dict("records"))
    with pytest.raises(ValueError, match="y has 2 labels, but the frame has 7 rows"):
        model.fit(frame, ["O", "O"])
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"not LazyFrame: give X\.collect\(\)"):
        model.fit(polars.DataFrame(ROWS).lazy())
    assert not hasattr(FrameClassifier(MaxMarginCRF(), by=BY), "predict_proba")
    with pytest.raises(TypeError, match="LogisticRegression is a classifier of single rows"):
        FrameClassifier(LogisticRegression(), by=BY, label="tag").fit(frame)
    with pytest.raises(TypeError, match="row 0: the group .* holds, a list"):
        model.fit(frame.assign(doc=[[n] for n in frame["doc"]]).assign(line=0))
    named = frame.rename(columns={"line": "row"})
    found = FrameClassifier(by=["doc", "row"], label="tag").fit(named)
    with pytest.raises(ValueError, match=r"\['row'\] of `by` have names of the columns that spans"):
        found.predict_spans(named)


def test_a_frame_of_polars_is_a_matrix_of_its_numbers():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"n": [1, None], "b": [True, False], "x": [0.5, 1.5]})
    packed = crfkit.PackedSequences.from_matrices([frame.drop("n"), frame[:1].drop("n")])
    np.testing.assert_array_equal(packed.dense, [[1, 0.5], [0, 1.5], [1, 0.5]])
    with pytest.raises(ValueError, match="sequence 0, position 1"):
        crfkit.PackedSequences.from_matrices([frame])
    with pytest.raises(TypeError, match="column 'w' is not numeric"):
        crfkit.PackedSequences.from_matrices([polars.DataFrame({"w": ["a"]})])
