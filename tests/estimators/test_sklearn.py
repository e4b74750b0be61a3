"""scikit-learn's tools on sequences, ragged and of equal length."""

import joblib
import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    LeaveOneGroupOut,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
    validation_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import shuffle

from crfkit import CRFClassifier, LabelSequences, PackedSequences, SequenceVectorizer

WORDS = {"the": "D", "a": "D", "dog": "N", "cat": "N", "runs": "V", "sees": "V"}
C2 = [0.1, 1.0]


def needs(version):
    """Skip what scikit-learn refuses itself before some version."""
    old = sklearn.__version__.split(".")[:2] < version.split(".")
    return pytest.mark.skipif(old, reason=f"scikit-learn before {version} refuses it")


def make(equal):
    """Return 12 sequences of dicts and their labels, some of which are wrong."""
    rng = np.random.default_rng(0)
    lengths = [4] * 12 if equal else [1 + i % 5 for i in range(12)]
    words = [rng.choice(list(WORDS), size) for size in lengths]
    X = [[{"w": str(word), "last": word[-1]} for word in row] for row in words]
    y = [[WORDS[word] if rng.random() < 0.9 else "N" for word in row] for row in words]
    return X, y


def as_objects(items):
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array


def pack(X):
    return SequenceVectorizer().fit_transform(X)


def pipeline():
    return Pipeline([("features", SequenceVectorizer()), ("crf", CRFClassifier())])


X_FORMS = {
    "dicts": list,
    "packed": pack,
    "sparse": lambda X: list(pack(X)),
    "arrays": lambda X: [matrix.toarray() for matrix in pack(X)],
    "objects": as_objects,
}
Y_FORMS = {"lists": list, "LabelSequences": LabelSequences, "objects": as_objects}


@pytest.fixture(params=[False, True], ids=["ragged", "equal"])
def data(request):
    return make(request.param)


@pytest.fixture(params=X_FORMS)
def X_form(request):
    return X_FORMS[request.param]


PAIRS = [*zip(X_FORMS, ["lists", "LabelSequences", "objects", "lists", "objects"], strict=True),
         ("dicts", "LabelSequences"), ("packed", "lists"), ("packed", "objects")]  # fmt: skip


@pytest.fixture(params=PAIRS, ids="-".join)
def forms(request):
    """A form of X and a form of y."""
    X_name, y_name = request.param
    return X_FORMS[X_name], Y_FORMS[y_name]


def share_of_right_sequences(y_true, y_pred):
    return float(np.mean([list(t) == list(p) for t, p in zip(y_true, y_pred, strict=True)]))


def confidence(y_true, y_prob):
    """Return the mean largest probability, a score of what `predict_proba` returns."""
    return float(np.mean(np.concatenate(y_prob).max(axis=1)))


def test_grid_search_takes_all_forms(data, forms):
    X, y = (form(part) for form, part in zip(forms, data, strict=True))
    search = GridSearchCV(CRFClassifier(), {"c2": C2}, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["c2"] in C2
    assert search.predict(X) == search.best_estimator_.predict(X)
    assert len(np.asarray(search.predict(X)).shape) == 1
    assert 0.5 < search.score(X, y) <= 1


def test_grid_search_on_a_pipeline_in_processes(data):
    X, y = data
    search = GridSearchCV(pipeline(), {"crf__c2": C2, "features__min_freq": [0, 2]}, cv=3, n_jobs=2)
    search.fit(X, y)
    alone = GridSearchCV(pipeline(), search.param_grid, cv=3).fit(X, y)
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_array_equal(search.cv_results_[name], alone.cv_results_[name])
    assert search.predict(X) == alone.predict(X)


@pytest.mark.parametrize("form", ["dicts", "packed", "sparse"])
def test_grid_search_of_the_bare_estimator_in_processes(data, form):
    X, y = X_FORMS[form](data[0]), LabelSequences(data[1])
    search = GridSearchCV(CRFClassifier(), {"c2": C2}, cv=3, n_jobs=2, error_score="raise")
    scores = search.fit(X, y).cv_results_["mean_test_score"]
    search.set_params(n_jobs=1)
    np.testing.assert_array_equal(search.fit(X, y).cv_results_["mean_test_score"], scores)


@pytest.mark.parametrize(
    "scoring",
    [
        None,
        lambda estimator, X, y: estimator.score(X, y),
        make_scorer(share_of_right_sequences),
        pytest.param(make_scorer(confidence, response_method="predict_proba"), marks=needs("1.9")),
    ],
    ids=["own", "callable", "make_scorer", "probabilities"],
)
def test_search_takes_scorers(data, scoring):
    X, y = data
    search = GridSearchCV(pipeline(), {"crf__c2": C2}, cv=3, scoring=scoring, error_score="raise")
    scores = search.fit(X, y).cv_results_["mean_test_score"]
    assert np.all((scores >= 0) & (scores <= 1))


def test_search_takes_several_scorers(data):
    X, y = data
    scoring = {
        "sequences": make_scorer(share_of_right_sequences),
        "tokens": lambda estimator, X, y: estimator.score(X, y),
    }
    search = GridSearchCV(
        CRFClassifier(), {"c2": C2}, cv=3, scoring=scoring, refit="tokens", error_score="raise"
    ).fit(X, y)
    results = search.cv_results_
    assert np.all(results["mean_test_sequences"] <= results["mean_test_tokens"] + 1e-12)
    assert 0.5 < search.score(X, y) <= 1


def test_randomized_search(data):
    X, y = data
    search = RandomizedSearchCV(
        pipeline(), {"crf__c2": [0.1, 0.5, 1.0]}, n_iter=2, cv=3, random_state=0
    )
    assert search.fit(X, y).best_params_["crf__c2"] in (0.1, 0.5, 1.0)


@pytest.mark.parametrize("form", ["dicts", "packed", "sparse"])
def test_halving_search(data, form):
    X, y = X_FORMS[form](data[0]), data[1]
    search = HalvingGridSearchCV(
        CRFClassifier(), {"c2": [0.1, 0.5, 1.0]}, cv=2, factor=2, min_resources=4, random_state=0
    )
    assert search.fit(X, y).n_iterations_ == 2
    assert search.best_params_["c2"] in (0.1, 0.5, 1.0)


def test_cross_val_predict_gives_one_sequence_of_labels_for_each(data, forms):
    X, y = (form(part) for form, part in zip(forms, data, strict=True))
    predicted = cross_val_predict(CRFClassifier(), X, y, cv=3)
    assert predicted.shape == (len(y),)
    assert [len(labels) for labels in predicted] == [len(labels) for labels in data[1]]


def test_cross_val_predict_equals_folds_by_hand(data):
    X, y = data
    predicted = cross_val_predict(CRFClassifier(), X, y, cv=3, n_jobs=2)
    by_hand = []
    for fold in (slice(0, 4), slice(4, 8), slice(8, 12)):
        rest = [i for i in range(12) if i not in range(12)[fold]]
        model = CRFClassifier().fit([X[i] for i in rest], [y[i] for i in rest])
        by_hand += model.predict(X[fold])
    assert list(predicted) == by_hand


def test_cross_val_score_is_the_same_in_processes(data, X_form):
    X, y = X_form(data[0]), data[1]
    scores = cross_val_score(CRFClassifier(), X, y, cv=3, error_score="raise")
    assert scores.shape == (3,) and np.all((scores >= 0) & (scores <= 1))
    again = cross_val_score(CRFClassifier(n_jobs=2), X, y, cv=3, error_score="raise")
    np.testing.assert_array_equal(again, scores)


def test_forms_of_the_data_do_not_change_scores(data):
    X, y = data
    expected = cross_val_score(CRFClassifier(), pack(X), y, cv=3)
    for form in ("sparse", "arrays"):
        scores = cross_val_score(CRFClassifier(), X_FORMS[form](X), y, cv=3)
        np.testing.assert_allclose(scores, expected)


def test_cross_validate_returns_fitted_estimators(data):
    X, y = data
    result = cross_validate(pipeline(), X, y, cv=3, return_estimator=True, return_indices=True)
    for model, score, test in zip(
        result["estimator"], result["test_score"], result["indices"]["test"], strict=True
    ):
        assert model.score([X[i] for i in test], [y[i] for i in test]) == score


def test_learning_curve(data):
    X, y = data
    sizes, train, test = learning_curve(pipeline(), X, y, train_sizes=[4, 8], cv=3)
    assert sizes.tolist() == [4, 8] and train.shape == test.shape == (2, 3)
    assert np.isfinite(test).all()


def test_validation_curve(data):
    X, y = data
    train, test = validation_curve(
        pipeline(), X, y, param_name="crf__c2", param_range=[0.01, 100.0], cv=3
    )
    assert train.shape == test.shape == (2, 3)
    assert train[0].mean() > train[1].mean()


def test_train_test_split_keeps_forms_and_pairs(data, forms):
    X, y = (form(part) for form, part in zip(forms, data, strict=True))
    parts = train_test_split(X, y, test_size=4, random_state=0)
    assert [len(part) for part in parts] == [8, 4, 8, 4]
    order = train_test_split(np.arange(12), test_size=4, random_state=0)
    assert [list(labels) for labels in parts[3]] == [list(data[1][i]) for i in order[1]]
    if isinstance(X, PackedSequences):
        assert isinstance(parts[0], PackedSequences)
    model = CRFClassifier().fit(parts[0], parts[2])
    assert 0 <= model.score(parts[1], parts[3]) <= 1


def test_shuffle_keeps_pairs(data):
    X, y = data
    packed, labels = shuffle(pack(X), LabelSequences(y), random_state=0)
    assert isinstance(packed, PackedSequences)
    assert packed.lengths.tolist() == [len(row) for row in labels]


def test_groups_stay_together(data):
    X, y = data
    groups = np.arange(12) // 2
    for cv, n_folds in ((GroupKFold(3), 3), (LeaveOneGroupOut(), 6)):
        scores = cross_val_score(pipeline(), X, y, groups=groups, cv=cv, error_score="raise")
        assert scores.shape == (n_folds,)
    predicted = cross_val_predict(CRFClassifier(), pack(X), y, groups=groups, cv=GroupKFold(3))
    assert predicted.shape == (12,)


def test_clone_keeps_parameters_and_forgets_the_fit(data):
    model = CRFClassifier(c1=0.1, c2=0.2, decoding="posterior").fit(*data)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "coef_")


def test_pipeline_takes_parameters_of_its_parts(data):
    X, y = data
    model = pipeline().set_params(crf__c2=0.3, features__min_freq=2).fit(X, y)
    assert model["crf"].c2 == 0.3
    alone = CRFClassifier(c2=0.3).fit(SequenceVectorizer(min_freq=2).fit_transform(X), y)
    np.testing.assert_array_equal(model["crf"].coef_.toarray(), alone.coef_.toarray())
    with pytest.raises(ValueError, match="Invalid parameter 'c3'"):
        model.set_params(crf__c3=1)


@pytest.mark.parametrize("kind", ["default", "pandas"])
def test_set_output_leaves_packed_sequences(data, kind):
    X, y = data
    plain = make_pipeline(SequenceVectorizer(), CRFClassifier()).fit(X, y)
    model = make_pipeline(SequenceVectorizer(), CRFClassifier()).set_output(transform=kind)
    assert model.fit(X, y).predict(X) == plain.predict(X)
    assert isinstance(model[:-1].transform(X), PackedSequences)
    assert model[:-1].get_feature_names_out().tolist() == sorted(model[0].vocabulary_)


def weights(y, per_token):
    """Return weights, the same for all tokens of a sequence, in one of two forms."""
    weight = np.array([3.0, 1.0, 0.5, 0.25] * 3)
    if not per_token:
        return weight
    return as_objects([np.full(len(t), w) for t, w in zip(y, weight, strict=True)])


@pytest.mark.parametrize("per_token", [False, True], ids=["sequences", "tokens"])
def test_weights_reach_fit_without_routing(data, per_token):
    X, y = data
    weight = weights(y, per_token)
    search = GridSearchCV(CRFClassifier(), {"c2": C2}, cv=3, refit=True)
    search.fit(X, y, sample_weight=weight)
    best = CRFClassifier(**search.best_params_).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(search.best_estimator_.coef_.data, best.coef_.data)
    plain = CRFClassifier(**search.best_params_).fit(X, y)
    assert not np.allclose(search.best_estimator_.transitions_, plain.transitions_)


@pytest.mark.parametrize("per_token", [False, True], ids=["sequences", "tokens"])
def test_weights_reach_a_step_of_a_pipeline_without_routing(data, per_token):
    X, y = data
    weight = weights(y, per_token)
    model = pipeline().fit(X, y, crf__sample_weight=weight)
    alone = CRFClassifier().fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model["crf"].coef_.data, alone.coef_.data)


@needs("1.8")
@pytest.mark.parametrize("per_token", [False, True], ids=["sequences", "tokens"])
def test_weights_are_routed_to_fit_and_score(data, per_token):
    X, y = data
    weight = weights(y, per_token)
    with config_context(enable_metadata_routing=True):
        crf = CRFClassifier().set_fit_request(sample_weight=True)
        crf.set_score_request(sample_weight=True)
        model = Pipeline([("features", SequenceVectorizer()), ("crf", crf)])
        scores = cross_val_score(
            model, X, y, cv=3, params={"sample_weight": weight}, error_score="raise"
        )
        search = GridSearchCV(model, {"crf__c2": C2}, cv=3).fit(X, y, sample_weight=weight)
    by_hand = []
    for fold in range(3):
        test = range(12)[4 * fold : 4 * fold + 4]
        train = [i for i in range(12) if i not in test]
        fitted = CRFClassifier().fit(
            [X[i] for i in train], [y[i] for i in train], sample_weight=weight[train]
        )
        by_hand.append(fitted.score([X[i] for i in test], [y[i] for i in test], weight[list(test)]))
    np.testing.assert_allclose(scores, by_hand)
    best = CRFClassifier(c2=search.best_params_["crf__c2"]).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(search.best_estimator_["crf"].coef_.data, best.coef_.data)


def test_weights_that_nobody_asked_for_are_refused_by_routing(data):
    X, y = data
    with config_context(enable_metadata_routing=True), pytest.raises(Exception, match="requested"):
        cross_val_score(pipeline(), X, y, cv=3, params={"sample_weight": np.ones(12)})


def test_threads_within_processes_give_the_same_scores(data):
    X, y = data
    expected = cross_val_score(CRFClassifier(), X, y, cv=3)
    scores = cross_val_score(CRFClassifier(n_jobs=2), X, y, cv=3, n_jobs=2)
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("form", ["packed", "arrays"])
def test_memory_mapped_data_and_model_predict_the_same(data, form, tmp_path):
    X, y = X_FORMS[form](data[0]), data[1]
    model = CRFClassifier().fit(X, y)
    joblib.dump((model, X), tmp_path / "file")
    mapped, mapped_X = joblib.load(tmp_path / "file", mmap_mode="r")
    assert mapped.predict(mapped_X) == model.predict(X)
    refitted = clone(mapped).fit(mapped_X, y)
    np.testing.assert_array_equal(refitted.coef_.data, model.coef_.data)


def test_a_model_goes_through_a_process_and_back(data):
    X, y = data
    model = CRFClassifier().fit(X, y)
    calls = (joblib.delayed(model.predict)(part) for part in (X[:6], X[6:]))
    first, second = joblib.Parallel(n_jobs=2)(calls)
    assert isinstance(first, LabelSequences)
    assert first + second == model.predict(X)
