"""Features as a parameter: tokens, rows and frames go in, and nothing is lost on the way."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    EarlyStopping,
    MaxMarginCRF,
    SemiMarkovCRF,
    SequenceVectorizer,
    StructuredPerceptron,
    TemplateFeatures,
    TransitionFeatures,
    WindowFeatures,
    load,
    make_sequence_union,
    save,
)
from crfkit.compat.pycrfsuite import Tagger
from crfkit.metrics import get_scorer

X = [
    [("the", "D"), ("dog", "N")],
    [("a", "D"), ("cat", "N"), ("runs", "V")],
    [("dogs", "N"), ("run", "V")],
    [("cat", "N")],
] * 3
y = [["D", "N"], ["D", "N", "V"], ["N", "V"], ["N"]] * 3
TEMPLATES = TemplateFeatures(["w", "w[-1]", "suffix(w, 1)"], columns=["w", "tag"])
MODELS = [
    CRFClassifier(), CRFClassifierCV(c2s=[1.0, 0.1], cv=3), SemiMarkovCRF(), MaxMarginCRF(),
    StructuredPerceptron(),
]  # fmt: skip


def frame():
    rows = [(s, word, tag) for s, sequence in enumerate(X) for word, tag in sequence]
    return pd.DataFrame(rows, columns=["sentence", "w", "tag"])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_model_of_tokens_is_the_model_of_their_features(model, tmp_path):
    model = clone(model).set_params(features=TEMPLATES).fit(X, y)
    packed = TEMPLATES.fit_transform(X)
    alone = clone(model).set_params(features=None).fit(packed, y)
    np.testing.assert_array_equal(model.coef_.data, alone.coef_.data)
    assert model.predict(X) == alone.predict(packed) == model.predict(packed)
    assert model.score(X, y) == alone.score(packed, y)
    assert model.features is TEMPLATES and model.vectorizer_ is not TEMPLATES
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.predict(X) == model.predict(X)
        assert again.features.templates == TEMPLATES.templates


def test_all_questions_take_tokens():
    crf = CRFClassifier(features=TEMPLATES).fit(X, y)
    assert [row.shape for row in crf.predict_proba(X)] == [(len(labels), 3) for labels in y]
    assert set(crf.predict_marginals(X)[0][0]) == {"D", "N", "V"}
    assert np.all(crf.sequence_log_proba(X, y) < 0)
    assert ("w=the", "D") in crf.state_features_
    semi = SemiMarkovCRF(features=TEMPLATES).fit(X, y)
    assert semi.predict_spans(X)[0] == [(0, 1, "D"), (1, 2, "N")]
    assert len(semi.predict_n_best(X, 2)[1]) == 2
    assert CRFClassifier(features=TEMPLATES).count_parameters(X, y).total == crf.n_parameters_


def test_options_of_features_are_searched():
    crf = CRFClassifier(features=WindowFeatures())
    grid = {"features__window": [0, 1], "c2": [0.1, 1.0]}
    search = GridSearchCV(crf, grid, cv=3, error_score="raise").fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert crf.set_params(features__window=2).features.window == 2
    names = search.best_estimator_.feature_names_in_
    wide = search.best_params_["features__window"] == 1
    assert any(name.startswith("-1:") for name in names) == wide


def test_a_validation_part_is_transformed():
    rules = EarlyStopping(patience=2)
    crf = CRFClassifier(features=TEMPLATES, early_stopping=rules).fit(
        X, y, X_val=X[:3], y_val=y[:3]
    )
    packed = TEMPLATES.fit_transform(X)
    alone = CRFClassifier(early_stopping=rules).fit(packed, y, X_val=packed[:3], y_val=y[:3])
    assert crf.validation_scores_ == alone.validation_scores_
    assert CRFClassifier(features=TEMPLATES, early_stopping=True).fit(X, y).best_score_ <= 1


def test_batches_keep_the_attributes_of_the_first_one_or_learn_more():
    fixed = CRFClassifier(features=TEMPLATES, solver="sgd")
    fixed.partial_fit(X[:1], y[:1], classes=["D", "N", "V"]).partial_fit(X, y)
    assert "w=cat" not in fixed.feature_names_in_ and "w=dog" in fixed.feature_names_in_
    growing = CRFClassifier(features=SequenceVectorizer(), solver="sgd")
    growing.partial_fit([[["a"]]], [["D"]], classes=["D", "N"]).partial_fit([[["b"]]], [["N"]])
    assert growing.feature_names_in_.tolist() == ["a", "b"]


def test_a_warm_start_learns_new_attributes():
    crf = CRFClassifier(features=TEMPLATES, warm_start=True).fit(X[:1], y[:1]).fit(X, y)
    again = CRFClassifier(features=TEMPLATES).fit(X, y)
    np.testing.assert_allclose(crf.coef_.toarray(), again.coef_.toarray(), atol=1e-3)


def words(X):
    return [[{"w": word} for word, _ in sequence] for sequence in X]


def lengths(X):
    return [np.array([[float(len(word))] for word, _ in sequence]) for sequence in X]


@pytest.mark.parametrize(
    "features",
    [
        FunctionTransformer(words),
        FunctionTransformer(lengths),
        make_pipeline(FunctionTransformer(words), SequenceVectorizer()),
        make_sequence_union(TEMPLATES, TransitionFeatures(WindowFeatures())),
    ],
    ids=["dicts", "matrices", "pipeline", "union"],
)
def test_any_transformer_whose_output_can_be_fitted(features, tmp_path):
    crf = CRFClassifier(features=features).fit(X, y)
    assert [len(labels) for labels in crf.predict(X)] == [len(labels) for labels in y]
    save(crf, tmp_path / "model")
    again = load(tmp_path / "model", allow=[words, lengths])
    assert again.predict(X) == crf.predict(X)


def test_frames_and_their_columns_of_labels():
    df = frame()
    features = TemplateFeatures(["w", "w[-1]", "suffix(w, 1)"], by="sentence")
    crf = CRFClassifier(features=features, early_stopping=True)
    crf.fit(df, df["tag"], X_val=df[:5], y_val=df["tag"][:5])
    crf = CRFClassifier(features=features).fit(df, df["tag"])
    alone = CRFClassifier(features=TEMPLATES).fit(X, y)
    assert crf.predict(df) == alone.predict(X)
    assert crf.score(df, df["tag"]) == alone.score(X, y)
    np.testing.assert_array_equal(crf.sequence_log_proba(df, df["tag"]),
                                  alone.sequence_log_proba(X, y))  # fmt: skip
    for scoring in (None, get_scorer("flat_f1_macro")):
        scores = cross_val_score(
            crf, df, df["tag"], groups=df["sentence"], cv=GroupKFold(3), scoring=scoring,
            error_score="raise",
        )  # fmt: skip
        assert np.all(scores > 0.4)
    with pytest.raises(TypeError, match="sequence 0 of y is the string"):
        crf.fit(df, df["tag"][:-1])


@pytest.mark.parametrize(
    ("features", "data", "error", "text"),
    [
        (TEMPLATES, TEMPLATES.fit_transform(X), ValueError, "X are PackedSequences"),
        (SequenceVectorizer, X, TypeError, "features=.* method 'fit_transform'"),
        ("window", X, TypeError, "features='window' must be None or an object"),
    ],
)
def test_features_that_cannot_be_used_are_refused(features, data, error, text):
    with pytest.raises(error, match=text):
        CRFClassifier(features=features).fit(data, y)


def test_a_tagger_of_attributes_needs_a_model_of_attributes():
    with pytest.raises(ValueError, match="not fitted on dicts or strings"):
        Tagger.from_classifier(CRFClassifier(features=TEMPLATES).fit(X, y))
