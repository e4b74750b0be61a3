"""The doors of scikit-learn: what works on sequences, and what says where else to go."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFECV
from sklearn.inspection import permutation_importance
from sklearn.metrics import ConfusionMatrixDisplay, f1_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import resample

from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    FrameClassifier,
    LabelSequences,
    SemiMarkovCRF,
    SequenceVectorizer,
    TemplateFeatures,
    load,
    make_sequence_union,
    save,
)
from crfkit.data.labels import object_array
from crfkit.metrics import get_scorer, get_scorer_names
from crfkit.model_selection import StratifiedSequenceKFold, cross_val_proba

WORDS = {"the": "D", "a": "D", "dog": "N", "cat": "N", "runs": "V", "sees": "V"}


@pytest.fixture(params=[False, True], ids=["ragged", "equal"])
def data(request):
    rng = np.random.default_rng(0)
    lengths = [4] * 12 if request.param else [1 + i % 5 for i in range(12)]
    words = [rng.choice(list(WORDS), size) for size in lengths]
    X = [[{"w": str(word), "length": len(word)} for word in row] for row in words]
    return X, [[WORDS[word] for word in row] for row in words]


@pytest.mark.parametrize("form", ["lists", "packed", "pipeline"])
def test_probabilities_out_of_fold_are_those_of_folds_by_hand(data, form):
    X, y = data
    model = CRFClassifier()
    if form == "pipeline":
        model = make_pipeline(SequenceVectorizer(), model)
    found = cross_val_proba(
        model, SequenceVectorizer().fit_transform(X) if form == "packed" else X, y, cv=3
    )
    assert found.classes.tolist() == ["D", "N", "V"]
    assert [rows.shape for rows in found.proba] == [(len(labels), 3) for labels in y]
    alone = CRFClassifier().fit(X[4:], y[4:])
    for rows, own in zip(found.proba[:4], alone.predict_proba(X[:4]), strict=True):
        np.testing.assert_allclose(rows, own, atol=1e-4)


def test_a_label_that_a_fold_does_not_know_has_probability_0(data):
    X, y = data
    y = [["X"] * len(y[0]), *y[1:]]
    found = cross_val_proba(CRFClassifier(), X, LabelSequences(y), cv=3)
    assert found.classes.tolist() == ["D", "N", "V", "X"]
    assert not found.proba[0][:, 3].any() and found.proba[5][:, 3].all()


def test_probabilities_of_segments_by_groups(data):
    X, y = data
    spans = [[(t, t + 1, label) for t, label in enumerate(labels)] for labels in y]
    groups = np.arange(12) // 3
    found = cross_val_proba(SemiMarkovCRF(), X, spans, groups=groups, cv=GroupKFold(3))
    assert {"D", "N", "V"} <= set(found.classes)


def test_each_sequence_must_be_tested(data):
    with pytest.raises(ValueError, match="sequence 2 is in no test part"):
        cross_val_proba(CRFClassifier(), *data, cv=PredefinedSplit([0, 1, -1, *[0, 1] * 4, 0]))


@pytest.mark.parametrize("shuffled", [False, True])
def test_probabilities_of_a_frame_are_those_of_its_sequences(frame, data, shuffled):
    """Whatever the labels of its rows: a Series would choose by them."""
    if shuffled:
        frame = frame.set_index(np.random.default_rng(0).permutation(len(frame)))
    crf = CRFClassifier(features=TemplateFeatures(["word"], by="line"))
    cv = StratifiedSequenceKFold(3, by="line")
    found = cross_val_proba(crf, frame, frame["tag"], cv=cv)
    assert [len(rows) for rows in found.proba] == [*map(len, data[1])]
    X = [[(word,) for word in group["word"]] for _, group in frame.groupby("line")]
    y = pd.Series([[*group["tag"]] for _, group in frame.groupby("line")], index=range(12, 0, -1))
    by_hand = clone(crf).set_params(features=TemplateFeatures(["w[0]"], columns=["w"]))
    same = cross_val_proba(by_hand, X, y, cv=[
        ([*{*range(12)} - {*test}], test) for test in
        (np.unique(frame["line"].to_numpy()[rows]) for _, rows in cv.split(frame, frame["tag"]))
    ])  # fmt: skip
    np.testing.assert_allclose(np.vstack(found.proba), np.vstack(same.proba), atol=1e-3)
    with pytest.raises(TypeError, match="cross_val_predict"):
        cross_val_proba(FrameClassifier(by="line"), frame, frame["tag"], cv=cv)
    with pytest.raises(ValueError, match="row .* is in no test"):
        cross_val_proba(crf, frame, frame["tag"], cv=[*cv.split(frame, frame["tag"])][1:])


def test_folds_have_equal_shares_of_labels():
    rng = np.random.default_rng(0)
    y = [rng.choice(["O", "A", "B"], p=[0.9, 0.08, 0.02], size=rng.integers(1, 9)).tolist()
         for _ in range(300)]  # fmt: skip

    def spread(cv):
        shares = [
            [sum(y[place].count(label) for place in test) for label in "OAB"]
            for _, test in cv.split(y, y)
        ]
        return np.ptp(shares, axis=0)

    for cv in (StratifiedSequenceKFold(5), StratifiedSequenceKFold(5, random_state=0)):
        tests = [test for _, test in cv.split(y, y)]
        assert sorted(np.concatenate(tests)) == list(range(300))
        assert np.all(spread(cv) <= [3, 2, 2])
        assert cv.get_n_splits() == 5
    assert np.any(spread(KFold(5)) > [20, 5, 2])
    first, second = (StratifiedSequenceKFold(3, random_state=s) for s in (0, 1))
    assert any((a != b).any() for (a, _), (b, _) in zip(first.split(y, y), second.split(y, y),
               strict=True) if len(a) == len(b))  # fmt: skip


def test_folds_of_segments_and_of_sequences_without_any():
    y = [[(0, 1, "A")], [], [(1, 2, "A")], [(0, 1, "B"), (2, 4, "B")], [(3, 4, "B")], []]
    tests = [test.tolist() for _, test in StratifiedSequenceKFold(2).split(y, y)]
    assert sorted(tests[0] + tests[1]) == [0, 1, 2, 3, 4, 5]
    assert all(len({0, 2} & set(test)) == 1 and len({1, 5} & set(test)) == 1 for test in tests)


@pytest.mark.parametrize(
    ("n_splits", "y", "error", "text"),
    [(1, [["A"]] * 3, ValueError, "n_splits"), (4, [["A"]] * 3, ValueError, "4 folds .* 3 seq"),
     (2, None, ValueError, "no labels"), (2.5, [["A"]] * 3, TypeError, "n_splits")],
)  # fmt: skip
def test_folds_that_cannot_be_made_are_refused(n_splits, y, error, text):
    with pytest.raises(error, match=text):
        list(StratifiedSequenceKFold(n_splits).split([["a"]] * 3, y))


def test_stratified_folds_serve_searches_and_files(data, tmp_path):
    X, y = data
    cv = StratifiedSequenceKFold(3)
    scores = cross_val_score(CRFClassifier(), X, y, cv=cv, error_score="raise")
    search = GridSearchCV(CRFClassifier(), {"c2": [1.0]}, cv=cv, error_score="raise").fit(X, y)
    path = CRFClassifierCV(c2s=[1.0], cv=cv).fit(X, y)
    assert search.best_score_ == pytest.approx(np.mean(scores)) == pytest.approx(path.best_score_)
    save(path, tmp_path / "path")
    assert load(tmp_path / "path").cv.n_splits == 3


def test_a_learning_curve_by_batches_is_told_the_labels(data):
    crf = CRFClassifier(solver="sgd")
    options = {"cv": 3, "exploit_incremental_learning": True, "error_score": "raise"}
    with pytest.raises(ValueError, match="params={'classes': labels}"):
        learning_curve(crf, *data, **options)
    _, scores, _ = learning_curve(crf, *data, params={"classes": ["D", "N", "V"]}, **options)
    assert scores.shape == (5, 3) and np.all(scores > 0.3)


def test_labels_are_permuted_among_sequences_of_one_length(data):
    X, y = data
    score, permuted, _ = permutation_test_score(
        CRFClassifier(), X, y, groups=[len(labels) for labels in y], cv=list(KFold(3).split(X)),
        n_permutations=5, random_state=0,
    )  # fmt: skip
    assert score > permuted.mean()


@pytest.mark.parametrize("name", ["flat_accuracy", "flat_f1_weighted"])
def test_scorers_of_sequences_take_the_place_of_those_of_items(data, name):
    scores = cross_val_score(CRFClassifier(), *data, cv=3, scoring=get_scorer(name))
    assert np.all(scores > 0.5)


def test_a_union_of_sequences_takes_the_place_of_that_of_tables(data):
    X, y = data
    parts = SequenceVectorizer(), SequenceVectorizer(min_freq=2)
    with pytest.raises(
        NotImplementedError, match="scikit-learn's FeatureUnion .*make_sequence_union"
    ):
        FeatureUnion([("all", parts[0]), ("frequent", parts[1])]).fit_transform(X)
    crf = CRFClassifier(features=make_sequence_union(*parts)).fit(X, y)
    assert "sequencevectorizer-2__w:the" in crf.feature_names_in_


DOORS = {
    "bagging": (lambda crf, X, y: BaggingClassifier(crf).fit(X, y), "resample"),
    "self-training": (lambda crf, X, y: SelfTrainingClassifier(crf).fit(X, y), "weight of 0"),
    "calibration": (lambda crf, X, y: CalibratedClassifierCV(crf).fit(X, y),
                    "CalibratedSequenceClassifier"),
    "thresholds": (lambda crf, X, y: TunedThresholdClassifierCV(crf).fit(X, y), "MinimumRisk"),
    "elimination": (lambda crf, X, y: RFECV(crf).fit(X, y), "min_freq"),
    "pairs": (lambda crf, X, y: OneVsOneClassifier(crf).fit(X, y), "any number of labels"),
    "confusion": (lambda crf, X, y: ConfusionMatrixDisplay.from_estimator(crf.fit(X, y), X, y),
                  "EntityConfusionDisplay"),
    "probabilities": (lambda crf, X, y: cross_val_predict(crf, X, y, method="predict_proba"),
                      "cross_val_proba"),
    "accuracy": (lambda crf, X, y: cross_val_score(crf, X, y, scoring="accuracy",
                                                   error_score="raise"), "get_scorer"),
    "search": (lambda crf, X, y: GridSearchCV(crf, {"c2": [1.0]}, error_score="raise",
                                              scoring=make_scorer(f1_score)).fit(X, y),
               "f1_score compares single labels"),
    "folds": (lambda crf, X, y: cross_val_score(crf, X, y, cv=StratifiedKFold(3)),
              "StratifiedSequenceKFold"),
    "search-folds": (lambda crf, X, y: GridSearchCV(crf, {}, cv=StratifiedKFold(3)).fit(X, y),
                     "StratifiedSequenceKFold"),
}  # fmt: skip


@pytest.mark.parametrize("form", ["lists", "packed", "objects"])
@pytest.mark.parametrize("door", DOORS)
def test_doors_for_tables_stay_shut_and_name_the_way_out(data, form, door):
    X, y = data
    if door == "confusion":
        pytest.importorskip("matplotlib")  # which scikit-learn asks for first
    if form == "packed":
        X, y = SequenceVectorizer().fit_transform(X), LabelSequences(y)
    elif form == "objects":
        X, y = object_array(X), object_array(y)
    enter, words = DOORS[door]
    with pytest.raises(NotImplementedError, match=f"scikit-learn's .*{words}"):
        enter(CRFClassifier(), X, y)


def test_doors_are_refused_to_a_pipeline_too(data):
    model = make_pipeline(SequenceVectorizer(), CRFClassifier())
    for door in ("bagging", "accuracy", "probabilities"):
        with pytest.raises(NotImplementedError, match=DOORS[door][1]):
            DOORS[door][0](model, *data)


def test_labels_shuffled_among_sequences_of_other_lengths_are_told_how_to_stay(data):
    X, y = [row[: 1 + s % 3] for s, row in enumerate(data[0])], data[1]
    y = [labels[: 1 + s % 3] for s, labels in enumerate(y)]
    y = [labels[: len(row)] for row, labels in zip(X, y, strict=True)]
    piped = make_pipeline(SequenceVectorizer(), CRFClassifier())
    for model in (CRFClassifier(), piped):
        with pytest.raises(NotImplementedError, match="groups="):
            permutation_test_score(model, X, y, cv=3)


def test_doors_that_work_for_rows_of_a_frame_are_open(frame):
    model, columns = FrameClassifier(by="line"), frame.columns[:-1]
    cv, X, y = StratifiedSequenceKFold(3, by="line"), frame[columns], frame["tag"]
    found = cross_val_predict(model, X, y, cv=cv, method="predict_proba")
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert cross_val_score(model, X, y, cv=cv, scoring="accuracy", error_score="raise").all()
    with pytest.raises(NotImplementedError, match="scikit-learn's BaggingClassifier.*resample"):
        BaggingClassifier(model).fit(X, y)
    with pytest.raises(
        NotImplementedError, match="scikit-learn's permutation_importance.*score again"
    ):
        permutation_importance(model.fit(X, y), X, y, n_repeats=1)
    crf = CRFClassifier(features=TemplateFeatures(["word"], by="line"))
    with pytest.raises(NotImplementedError, match="each row.*FrameClassifier"):
        cross_val_predict(crf, frame, y, cv=cv)
    with pytest.raises(NotImplementedError, match="scikit-learn's ColumnTransformer.*templates"):
        ColumnTransformer([("w", crf.features, ["line", "word"])]).fit_transform(frame)


@pytest.mark.parametrize(
    ("ask", "words"),
    [(np.asarray, "are .* no table"),
     (lambda X: permutation_importance(CRFClassifier(), X, X), "importance .*score again")],
)  # fmt: skip
def test_packed_sequences_say_that_they_are_no_table(data, ask, words):
    if ask is not np.asarray and sklearn.__version__ < "1.9":
        pytest.skip("older versions ask for other attributes of arrays first")
    with pytest.raises(
        (TypeError, NotImplementedError), match=f"{words}.* guide to model selection"
    ):
        ask(SequenceVectorizer().fit_transform(data[0]))


def test_columns_of_a_frame_are_no_sequences_before_they_are_cut():
    frame = pd.DataFrame({"sentence": [0, 0, 1], "w": ["a", "dog", "dog"]})
    columns = ColumnTransformer([("w", SequenceVectorizer(), ["w"])])
    with pytest.raises(TypeError, match="data frame.*sequences_from_frame"):
        columns.fit_transform(frame)


def test_a_validation_part_passes_through_a_pipeline_that_is_told_so(data):
    X, y = data
    plain = Pipeline(
        [("features", SequenceVectorizer()), ("crf", CRFClassifier(early_stopping=True))]
    )
    with pytest.raises(TypeError, match=r"X_val.*pipeline\[:-1\]\.transform"):
        plain.fit(X, y, crf__X_val=X[:4], crf__y_val=y[:4])
    with config_context(enable_metadata_routing=True):
        crf = CRFClassifier(early_stopping=True).set_fit_request(X_val=True, y_val=True)
        model = Pipeline([("features", SequenceVectorizer()), ("crf", crf)],
                         transform_input=["X_val"])  # fmt: skip
        model.fit(X, y, X_val=X[:4], y_val=y[:4])
    alone = CRFClassifier(early_stopping=True).fit(X, y, X_val=X[:4], y_val=y[:4])
    assert model[-1].validation_scores_ == alone.validation_scores_


def test_the_last_step_of_a_pipeline_answers_all_questions(data):
    X, y = data
    model = make_pipeline(SequenceVectorizer(), CRFClassifier()).fit(X, y)
    packed = model[:-1].transform(X)
    assert len(model[-1].predict_marginals(packed)) == len(model[-1].sequence_log_proba(packed, y))


def test_a_fitted_search_is_not_saved_but_its_model_is(data, tmp_path):
    search = GridSearchCV(CRFClassifier(), {"c2": [1.0]}, cv=3).fit(*data)
    with pytest.raises(TypeError, match="best_estimator_"):
        save(search, tmp_path / "search")
    save(search.best_estimator_, tmp_path / "model")
    assert load(tmp_path / "model").predict(data[0]) == search.predict(data[0])


def test_the_oldest_scikit_learn_has_what_is_used():
    assert tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 6)


def test_positions_of_sequences_of_one_length_have_a_permutation_importance(data):
    """A table of tokens is what scikit-learn makes of them: it permutes those of a position."""
    X, y = data
    crf = CRFClassifier().fit(X, y)
    if len({*map(len, X)}) > 1:
        with pytest.raises(ValueError, match="inhomogeneous"):
            permutation_importance(crf, X, y)
        return
    found = permutation_importance(crf, X, y, n_repeats=1, random_state=0)
    rng, alone = np.random.RandomState(0), []
    seed = rng.randint(np.iinfo(np.int32).max + 1)
    for position in range(len(X[0])):
        order = np.arange(len(X))
        np.random.RandomState(seed).shuffle(order)
        other = [[*row] for row in X]
        for row, source in zip(other, order, strict=True):
            row[position] = X[source][position]
        alone.append(crf.score(X, y) - crf.score(other, y))
    np.testing.assert_allclose(found.importances_mean, alone)


def test_keys_of_tokens_have_a_permutation_importance_by_hand(data):
    X, y = data
    crf, rng = CRFClassifier().fit(X, y), np.random.default_rng(0)

    def shuffled(key):
        values = iter(rng.permutation([token[key] for row in X for token in row]).tolist())
        return [[token | {key: next(values)} for token in row] for row in X]

    worth = {key: crf.score(X, y) - crf.score(shuffled(key), y) for key in ("w", "length")}
    assert worth["w"] > 0.2 > worth["length"]


def test_bags_of_sequences_are_averaged_by_hand(data):
    """In place of BaggingClassifier."""
    X, y = data
    bags = [resample(X, y, random_state=seed) for seed in range(5)]
    models = [CRFClassifier().fit(*bag) for bag in bags]
    assert all(model.classes_.tolist() == ["D", "N", "V"] for model in models)
    proba = np.mean([np.concatenate(model.predict_proba(X)) for model in models], axis=0)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    found = models[0].classes_[proba.argmax(axis=1)]
    assert np.mean(found == np.concatenate(y)) > 0.8


def test_sure_labels_are_learned_from_and_the_others_are_not(data):
    """In place of SelfTrainingClassifier: a token of weight 0 has no label."""
    X, y = data
    first = CRFClassifier(c2=0.1).fit(X[:4], y[:4])
    labels = y[:4] + first.predict(X[4:])
    sure = [rows.max(axis=1) > 0.7 for rows in first.predict_proba(X[4:])]
    weight = [*(np.ones(len(row)) for row in y[:4]), *(row.astype(float) for row in sure)]
    assert {0.0, 1.0} <= set(np.concatenate(weight))
    second = CRFClassifier(c2=0.1).fit(X, labels, sample_weight=weight)
    hidden = [["?" if not s else t for s, t in zip(a, b, strict=True)]
              for a, b in zip(weight, labels, strict=True)]  # fmt: skip
    third = CRFClassifier(c2=0.1).fit(X, hidden, sample_weight=weight)
    assert third.classes_.tolist() == second.classes_.tolist()
    np.testing.assert_allclose(
        np.concatenate(third.predict_proba(X)), np.concatenate(second.predict_proba(X)), atol=1e-3
    )


def test_probabilities_are_judged_out_of_fold(data):
    """In place of CalibratedClassifierCV: are labels right as often as the model says?"""
    X, y = data
    found = cross_val_proba(CRFClassifier(), X, y, cv=3)
    proba, truth = np.concatenate(found.proba), np.concatenate(y)
    right = truth[:, None] == found.classes
    share, said = calibration_curve(right.ravel(), proba.ravel(), n_bins=2)
    assert np.all(np.diff(share) > 0.0) and np.all(np.diff(said) > 0.0)


def test_templates_name_columns_in_place_of_a_column_transformer(frame):
    features = TemplateFeatures(["word", "suffix(word, 2)"], by="line")
    crf = CRFClassifier(features=features).fit(frame, frame["tag"])
    assert crf.score(frame, frame["tag"]) > 0.9
    assert len(crf.predict_marginals(frame)) == frame["line"].nunique()


@pytest.fixture
def frame(data):
    rows = [(s, token["w"], "B-" + label) for s, row in enumerate(zip(*data, strict=True))
            for token, label in zip(*row, strict=True)]  # fmt: skip
    return pd.DataFrame(rows, columns=["line", "word", "tag"])


@pytest.mark.parametrize("kind", [CRFClassifier, SemiMarkovCRF])
def test_every_scorer_takes_the_column_of_labels(frame, kind):
    crf = kind(features=TemplateFeatures(["word"], by="line")).fit(frame, frame["tag"])
    groups = [group for _, group in frame.groupby("line")]
    y = [group["tag"].tolist() for group in groups]
    for name in get_scorer_names():
        scorer = get_scorer(name)
        assert scorer(crf, frame, frame["tag"]) == scorer(crf, frame, y), name


def test_weights_are_a_column_of_the_frame_too(frame):
    crf = CRFClassifier(features=TemplateFeatures(["word"], by="line"))
    frame["weight"] = np.where(frame["word"] == "dog", 0.5, 1.0)
    weight = [group["weight"].to_numpy() for _, group in frame.groupby("line")]
    one = clone(crf).fit(frame, frame["tag"], sample_weight=frame["weight"])
    other = clone(crf).fit(frame, frame["tag"], sample_weight=weight)
    assert (one.coef_ != other.coef_).nnz == 0
    scores = [one.score(frame, frame["tag"], w) for w in (frame["weight"], weight)]
    assert scores[0] == scores[1]
    with pytest.raises(ValueError, match="sample_weight has"):
        crf.fit(frame, frame["tag"], sample_weight=frame["weight"][1:])
    found = cross_val_score(
        crf, frame, frame["tag"], groups=frame["line"], cv=GroupKFold(3),
        params={"sample_weight": frame["weight"]}, error_score="raise",
    )  # fmt: skip
    assert np.all(found > 0.5)


def test_a_fitted_search_goes_through_pickle(data):
    search = GridSearchCV(CRFClassifier(), {"c2": [0.1, 1.0]}, cv=3).fit(*data)
    other = pickle.loads(pickle.dumps(search))
    assert other.predict(data[0]) == search.predict(data[0])
    assert other.best_params_ == search.best_params_
