"""The names of sklearn-crfsuite, side by side with sklearn-crfsuite."""

import inspect
import pickle
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import crfkit
from crfkit.compat import sklearn_crfsuite as ours
from crfkit.compat.crfsuite import load_crfsuite, save_crfsuite
from crfkit.compat.pycrfsuite import Tagger
from crfkit.compat.sklearn_crfsuite import metrics, scorers
from crfkit.features import SequenceVectorizer
from crfkit.testing import estimator_checks

theirs = pytest.importorskip("sklearn_crfsuite")
# `classes_` is a list in the order of appearance here, not a sorted array.
CHECKS = [
    check
    for check in estimator_checks(ours.CRF())
    if not check.__name__.startswith(("check_labels", "check_classes"))
]
EXACT = {"epsilon": 1e-8, "delta": 1e-11}


@pytest.fixture(scope="module")
def data():
    """Words, suffixes and numbers, some below 0."""
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(12)]

    def token():
        word = str(rng.choice(words))
        return {"w": word, "end": {"1": word[-1:]}, "n": float(np.round(rng.normal(), 1)),
                "odd": int(word[1:]) % 2 == 1}  # fmt: skip

    X = [[token() for _ in range(rng.integers(1, 8))] for _ in range(60)]
    y = [[("N" if t["odd"] else "V") if rng.random() < 0.8 else "O" for t in s] for s in X]
    return X, y


def fitted(data, **params):
    return [module.CRF(**params).fit(*data) for module in (ours, theirs)]


def test_the_constructor_has_the_parameters_of_sklearn_crfsuite():
    our, their = (inspect.signature(module.CRF).parameters for module in (ours, theirs))
    assert list(our)[: len(their)] == list(their)
    assert all(our[name].default == their[name].default for name in their)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"algorithm": "lbfgs", "c1": 0.2, "c2": 0.1, "all_possible_transitions": True},
        {"c2": 0.5, "all_possible_states": True, "min_freq": -1e6},
        {"min_freq": 2.5, "c2": 0.3},
    ],
)
def test_a_fit_gives_the_model_of_sklearn_crfsuite(data, params):
    our, their = fitted(data, **params, **EXACT)
    losses = [crf.training_log_.last_iteration["loss"] for crf in (our, their)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert our.classes_ == their.classes_
    assert list(our.predict(data[0])) == their.predict(data[0]).tolist()
    for name in ("state_features_", "transition_features_"):
        pair = dict(getattr(our, name)), getattr(their, name)
        for key in set(pair[0]) | set(pair[1]):
            assert pair[0].get(key, 0.0) == pytest.approx(pair[1].get(key, 0.0), abs=5e-3)


@pytest.mark.parametrize("min_freq", [-2.0, 0, 0.3, 1, 1.5, 2, 3.7])
@pytest.mark.parametrize("transitions", [False, True])
def test_frequencies_are_counted_as_crfsuite_counts_them(min_freq, transitions):
    X = [
        [{"a": 0.5, "b": -1.0}, {"a": 0.5, "c": 2.0, "d": 0.3}],
        [["e"], ["e", "e"], {"d": 1.2}],
        [{"b": 0.25, "f": 3.7, "a": False}, {"b": 0.5, "g": 0, "more": {"h": False}}],
    ]
    y = [["X", "X"], ["X", "Y", "X"], ["X", "Y"]]
    pair = [
        module.CRF(
            min_freq=min_freq, all_possible_transitions=transitions, max_iterations=300, c2=0.01
        ).fit(X, y)
        for module in (ours, theirs)
    ]
    assert pair[0].training_log_.featgen_num_features == pair[1].training_log_.featgen_num_features


def test_marginals_are_those_of_sklearn_crfsuite(data):
    X, y = data
    our, their = fitted(data, **EXACT)
    for tokens, mine, reference in zip(
        X, our.predict_marginals(X), their.predict_marginals(X), strict=True
    ):
        assert our.predict_single(tokens) == their.predict_single(tokens)
        assert mine == our.predict_marginals_single(tokens)
        for found, expected in zip(mine, reference, strict=True):
            assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("c2", [0.3, 10.0])
def test_sgd_comes_nearer_to_the_optimum_than_that_of_crfsuite(data, c2):
    sgd, reference = fitted(data, algorithm="l2sgd", c2=c2, calibration_eta=0.2)
    optimum = ours.CRF(algorithm="lbfgs", c2=c2, **EXACT).fit(*data).model_.objective_
    theirs_at_best = min(entry["loss"] for entry in reference.training_log_.iterations)
    assert optimum <= sgd.model_.objective_ <= theirs_at_best
    assert sgd.model_.objective_ == pytest.approx(optimum, rel=0.01)
    again = ours.CRF(algorithm="l2sgd", c2=c2).fit(*data)
    assert again.state_features_ == sgd.state_features_


def test_sgd_stops_by_the_rules_of_crfsuite(data):
    def entries(**params):
        return ours.CRF(algorithm="l2sgd", c2=0.3, **params).fit(*data).training_log_.iterations

    assert len(entries(period=2, delta=1e9)) == 2
    with pytest.warns(ConvergenceWarning, match="max_iter=9"):
        last = entries(period=0, delta=1e9, max_iterations=9)[-1]
    assert last["num"] == 9
    assert not {"error_norm", "linesearch_trials"} & set(last)  # CRFsuite has none either


def test_the_lines_of_the_tutorial_run(data):
    X, y = data
    crf = ours.CRF(
        algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=500, all_possible_transitions=True
    )
    crf.fit(X, y)
    labels = list(crf.classes_)
    labels.remove("O")
    y_pred = crf.predict(X)
    assert metrics.flat_f1_score(y, y_pred, average="weighted", labels=labels) > 0.5
    ordered = sorted(labels, key=lambda name: (name[1:], name[0]))
    assert "V" in metrics.flat_classification_report(y, y_pred, labels=ordered, digits=3)
    (best, weight), *_ = Counter(crf.transition_features_).most_common(20)
    assert crf.transition_features_[best] == weight == max(crf.transition_features_.values())
    (attribute, label), _ = Counter(crf.state_features_).most_common(1)[0]
    assert attribute in crf.attributes_ and label in crf.classes_
    assert crf.num_attributes_ == len(crf.attributes_)


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_estimator_suite_passes(check):
    check(ours.CRF())


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
def test_searches_work(data, search):
    X, y = data
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", zero_division=0)
    more = {"n_iter": 2, "random_state": 0} if search is RandomizedSearchCV else {}
    found = search(
        ours.CRF(max_iterations=200), {"c1": [0.05, 0.5], "c2": [0.1]}, cv=3, scoring=scorer,
        error_score="raise", **more,
    ).fit(X, y)  # fmt: skip
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert found.predict(X[:2]) == found.best_estimator_.predict(X[:2])


def test_scorers_take_the_estimator(data):
    X, y = data
    crf = ours.CRF().fit(X, y)
    assert scorers.flat_accuracy(crf, X, y) == pytest.approx(crf.score(X, y))
    assert 0.0 <= scorers.sequence_accuracy(crf, X, y) <= 1.0


def test_it_is_an_estimator_of_scikit_learn(data):
    X, y = data
    crf = ours.CRF(c2=0.5, period=7)
    assert clone(crf).get_params() == crf.get_params()
    assert repr(crf) == "CRF(c2=0.5, period=7)"
    pipeline = make_pipeline(FunctionTransformer(), crf).fit(X, y)
    assert pipeline.predict(X) == crf.predict(X)
    assert len(cross_val_predict(ours.CRF(), X, y, cv=3)) == len(X)
    again = pickle.loads(pickle.dumps(crf))
    assert again.predict(X) == crf.predict(X)
    assert again.predict_marginals(X) == crf.predict_marginals(X)
    packed = SequenceVectorizer().fit_transform(X)
    assert ours.CRF(c2=0.5, period=7).fit(packed, y).predict(packed) == crf.predict(X)


@pytest.mark.parametrize("labels", [(0, 1, 2), (("a", 1), ("b", 2), ("c", 3)), (True, "x", 1.5)])
def test_labels_may_be_any_hashable_objects(data, labels):
    X, y = data
    coded = [[labels["NVO".index(label)] for label in sequence] for sequence in y]
    crf = ours.CRF().fit(X, coded)
    assert set(crf.classes_) == set(labels)
    plain = ours.CRF().fit(X, y).predict(X)
    assert crf.predict(X) == [[labels["NVO".index(label)] for label in s] for s in plain]


def test_held_out_data_are_logged_and_do_not_change_the_model(data):
    X, y = data
    dev = X[:20], y[:20]
    alone = ours.CRF().fit(X[20:], y[20:])
    our, their = (module.CRF(**EXACT).fit(X[20:], y[20:], *dev) for module in (ours, theirs))
    logged = ours.CRF().fit(X[20:], y[20:], *dev)
    assert dict(logged.state_features_) == dict(alone.state_features_)
    last = our.training_log_.last_iteration, their.training_log_.last_iteration
    for name in ("item_accuracy", "instance_accuracy"):
        assert last[0][name] == last[1][name]
    for name in ("avg_precision", "avg_recall", "avg_f1"):
        assert last[0][name] == pytest.approx(last[1][name], abs=1e-6)
    assert our.training_log_.iterations[-1]["item_accuracy_float"] == pytest.approx(our.score(*dev))
    with pytest.raises(ValueError, match="both X_dev and y_dev"):
        ours.CRF().fit(X, y, X_dev=X)


def test_the_model_file_is_one_of_crfsuite(data, tmp_path):
    path = tmp_path / "model.crfsuite"
    crf = ours.CRF(c1=0.1, model_filename=str(path)).fit(*data)
    assert path.stat().st_size == crf.size_
    reference = theirs.CRF(model_filename=str(path))
    assert reference.predict(data[0]).tolist() == list(crf.predict(data[0]))
    opened = ours.CRF(model_filename=str(path))
    assert opened.predict(data[0]) == crf.predict(data[0])
    assert opened.size_ == crf.size_


def test_the_tagger_has_the_model(data):
    crf = ours.CRF().fit(*data)
    assert isinstance(crf.tagger_, Tagger)
    assert [crf.tagger_.tag(tokens) for tokens in data[0]] == list(crf.predict(data[0]))
    assert crf.tagger_.info().transitions == dict(crf.transition_features_)


def test_an_unfitted_estimator_says_so(data, tmp_path):
    for crf in (ours.CRF(), ours.CRF(model_filename=str(tmp_path / "missing.crfsuite"))):
        with pytest.raises(NotFittedError):
            crf.predict(data[0])
        assert not hasattr(crf, "classes_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"algorithm": "newton"}, "algorithm='newton' is not known"),
        ({"algorithm": "l2sgd", "c1": 0.1}, "has no parameter 'c1'"),
        ({"pa_type": 1}, "has no parameter 'pa_type'"),
        ({"c2": -1.0}, "c2=-1.0 must be at least 0"),
        ({"c2": float("nan")}, "c2=nan must be a finite number"),
        ({"linesearch": "zz"}, "linesearch='zz'"),
        ({"max_iterations": 2.5}, "max_iterations=2.5 must be a whole number"),
    ],
)
def test_wrong_parameters_are_errors_of_fit(data, params, message):
    with pytest.raises(ValueError, match=message):
        ours.CRF(**params).fit(*data)


def test_deprecated_parameters_warn_only_where_given(data):
    ours.CRF().fit(*data)
    for name in ("keep_tempfiles", "trainer_cls"):
        with pytest.warns(FutureWarning, match=name):
            ours.CRF(**{name: True}).fit(*data)


def test_a_period_of_zero_turns_its_test_off(data):
    with_test = ours.CRF(period=3, delta=0.5, epsilon=1e-6).fit(*data)
    without = ours.CRF(period=0, delta=0.5, epsilon=1e-6).fit(*data)
    assert with_test.model_.n_iter_ < without.model_.n_iter_


def test_verbose_prints_each_iteration(data, capsys):
    crf = ours.CRF(verbose=True).fit(iter(data[0]), iter(data[1]))
    assert capsys.readouterr().out.count("iteration ") >= len(crf.training_log_.iterations)


def test_a_model_file_keeps_the_model_and_its_log(data, tmp_path):
    X, _ = data
    crf = ours.CRF(c2=0.1).fit(*data)
    crf.save(tmp_path / "m.crfkit")
    again = crfkit.load(tmp_path / "m.crfkit")
    assert again.predict(X) == crf.predict(X)
    assert again.state_features_ == crf.state_features_
    assert again.training_log_.iterations == crf.training_log_.iterations


def test_it_is_written_for_crfsuite(data, tmp_path):
    X, _ = data
    crf = ours.CRF(c2=0.1).fit(*data)
    save_crfsuite(crf, tmp_path / "m.crfsuite")
    assert load_crfsuite(tmp_path / "m.crfsuite").predict(X) == crf.predict(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_iterations": -1}, "max_iterations=-1 must be at least 0"),
        ({"num_memories": 0}, "num_memories=0 must be at least 1"),
        ({"c2": -0.5}, "c2=-0.5 must be at least 0"),
        ({"epsilon": -1e-5}, "epsilon=-1e-05 must be at least 0"),
    ],
)
def test_messages_have_the_names_that_the_user_gave(data, params, message):
    with pytest.raises(ValueError, match=message):
        ours.CRF(**params).fit(*data)


def test_labels_that_are_known_in_part_are_refused():
    X, y = [[{"a": 1.0}, {"b": 1.0}]] * 2, [["A", "B"], ["A", crfkit.UNLABELED]]
    with pytest.raises((TypeError, ValueError), match="use crfkit.CRFClassifier"):
        ours.CRF().fit(X, y)
