"""CRFClassifierCV: the scores of a grid search, by warm starts along the path."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_val_score

import crfkit
from crfkit import CRFClassifier, CRFClassifierCV, SequenceVectorizer
from crfkit.metrics import get_scorer
from crfkit.solvers import LBFGS, OWLQN
from tests.estimators.checks import parametrize_variants
from tests.estimators.test_early_stopping import make
from tests.ids import stable
from tests.processes import run_in_new_process

X, Y = make(0, 30)
EXACT = {"lbfgs": LBFGS(tol=0.0, gtol=1e-7), "owlqn": OWLQN(tol=0.0, gtol=1e-6)}
C1S, C2S = [0.5, 0.05], [1.0, 0.1, 0.01]


@parametrize_variants([CRFClassifierCV(c2s=[1.0, 0.1])], reading=False)
def test_the_estimator_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("parameters", "c1s", "form"),
    [
        ({"solver": EXACT["lbfgs"]}, [0.0], "tokens"),
        ({"solver": EXACT["owlqn"]}, C1S, "packed"),
        ({"solver": EXACT["lbfgs"], "all_possible_states": True, "min_freq": 1,
          "all_possible_transitions": True, "boundary_weights": True}, [0.0], "tokens"),
        ({"solver": EXACT["lbfgs"], "decoding": "posterior", "min_freq": 3}, [0.0], "packed"),
    ],
    ids=["l2", "l1", "all weights", "posterior"],
)  # fmt: skip
def test_the_scores_are_those_of_a_grid_search(parameters, c1s, form):
    data = X if form == "tokens" else SequenceVectorizer().fit_transform(X)
    crf = CRFClassifierCV(c1s=c1s, c2s=C2S, cv=3, **parameters).fit(data, Y)
    search = GridSearchCV(CRFClassifier(**parameters), {"c1": c1s, "c2": C2S}, cv=3).fit(data, Y)
    folds = [search.cv_results_[f"split{f}_test_score"] for f in range(3)]
    np.testing.assert_array_equal(crf.scores_.reshape(3, -1), folds)
    assert {"c1": crf.c1_, "c2": crf.c2_} == search.best_params_
    assert crf.best_score_ == search.best_score_
    for ours, theirs in zip(crf.predict_proba(data),
                            search.best_estimator_.predict_proba(data), strict=True):  # fmt: skip
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("scoring", ["flat_f1_macro", get_scorer("sequence_accuracy")])
def test_the_scores_are_those_of_any_scorer(scoring):
    crf = CRFClassifierCV(c2s=[0.1], cv=3, scoring=scoring, solver=EXACT["lbfgs"]).fit(X, Y)
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    expected = cross_val_score(
        CRFClassifier(c2=0.1, solver=EXACT["lbfgs"]), X, Y, cv=3, scoring=scorer
    )
    np.testing.assert_array_equal(crf.scores_.ravel(), expected)


def test_fits_start_at_the_weights_of_a_stronger_penalty():
    crf = CRFClassifierCV(c2s=[1.0, 0.999], cv=2).fit(X, Y)
    assert np.all(crf.n_iter_[:, 0, 1] < crf.n_iter_[:, 0, 0] / 2)
    crf = CRFClassifierCV(c1s=[0.1, 0.0999], c2s=[1.0, 0.999], cv=2).fit(X, Y)
    others = crf.n_iter_.reshape(2, -1)[:, 1:]
    assert np.all(others < crf.n_iter_[:, :1, 0])


def test_the_final_model_is_an_ordinary_fit_to_all_data():
    crf = CRFClassifierCV(c2s=[0.1, 1.0], cv=3).fit(X, Y)
    plain = CRFClassifier(c1=crf.c1_, c2=crf.c2_).fit(X, Y)
    np.testing.assert_array_equal(crf.coef_.toarray(), plain.coef_.toarray())
    assert crf.objective_ == plain.objective_
    assert len(crf.training_log_) == len(plain.training_log_)
    assert crf.predict(X) == plain.predict(X)
    assert dict(crf.state_features_) == dict(plain.state_features_)


def test_numbers_stand_for_logarithmic_grids_from_strong_to_weak():
    crf = CRFClassifierCV(c1s=3, c2s=np.array([0.1, 1.0, 0.1]), cv=2, max_iter=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        crf.fit(X, Y)
    np.testing.assert_allclose(crf.c1s_, [10.0, 0.1, 0.001])
    np.testing.assert_array_equal(crf.c2s_, [1.0, 0.1])
    assert crf.scores_.shape == crf.n_iter_.shape == (2, 3, 2)


def test_equal_scores_choose_the_stronger_penalty():
    crf = CRFClassifierCV(c1s=[0.0, 0.001], c2s=[0.1, 1.0, 0.01], cv=2, scoring=lambda *_: 0.5)
    crf.fit(X, Y)
    assert (crf.c1_, crf.c2_, crf.best_score_) == (0.001, 1.0, 0.5)


def test_penalties_whose_scores_are_nan_are_not_chosen():
    scores = iter([float("nan"), 0.1, 0.3, 0.3])
    crf = CRFClassifierCV(c2s=[0.1, 1.0], cv=2, scoring=lambda *_: next(scores)).fit(X, Y)
    assert (crf.c2_, crf.best_score_) == (0.1, pytest.approx(0.2))
    with pytest.raises(ValueError, match="all penalties are NaN"):
        CRFClassifierCV(c2s=[1.0], cv=2, scoring=lambda *_: float("nan")).fit(X, Y)


@pytest.mark.parametrize("splitter", [2, KFold(3), ShuffleSplit(2, random_state=0), "pairs"])
def test_any_splitter_of_sequences_is_taken(splitter):
    pairs = [(np.arange(20), np.arange(20, 30)), (np.arange(30) > 9, np.arange(30) <= 9)]
    cv = pairs if splitter == "pairs" else splitter
    crf = CRFClassifierCV(c2s=[1.0], cv=cv).fit(X, Y)
    if splitter == "pairs":
        cv = [(np.arange(20), np.arange(20, 30)), (np.arange(10, 30), np.arange(10))]
    expected = cross_val_score(CRFClassifier(c2=1.0), X, Y, cv=cv)
    np.testing.assert_array_equal(crf.scores_[:, 0, 0], expected)


def test_groups_stay_together():
    groups = np.arange(30) // 3
    crf = CRFClassifierCV(c2s=[1.0], cv=GroupKFold(3)).fit(X, Y, groups=groups)
    expected = cross_val_score(CRFClassifier(c2=1.0), X, Y, groups=groups, cv=GroupKFold(3))
    np.testing.assert_array_equal(crf.scores_[:, 0, 0], expected)


def test_weights_reach_the_fits_of_the_folds():
    weight = np.random.default_rng(0).random(30)
    crf = CRFClassifierCV(c2s=[0.01], cv=KFold(2), solver=EXACT["lbfgs"])
    weighted = crf.fit(X, Y, sample_weight=weight).scores_.ravel()
    for fold, (train, test) in enumerate(KFold(2).split(X)):
        model = CRFClassifier(c2=0.01, solver=EXACT["lbfgs"])
        model.fit([X[i] for i in train], [Y[i] for i in train], sample_weight=weight[train])
        assert model.score([X[i] for i in test], [Y[i] for i in test]) == weighted[fold]


def test_labels_of_a_test_part_only_count_as_errors():
    y = [*Y[:-1], ["rare"] * len(Y[-1])]
    crf = CRFClassifierCV(c2s=[1.0], cv=[(np.arange(29), [29])]).fit(X, y)
    assert crf.scores_.ravel() == [0.0]
    assert "rare" in crf.classes_


def test_without_refit_there_are_scores_only():
    crf = CRFClassifierCV(c2s=[0.1, 1.0], cv=2).fit(X, Y)
    expected = crf.scores_
    crf.set_params(refit=False).fit(X, Y)
    np.testing.assert_array_equal(crf.scores_, expected)
    assert crf.c2_ in (0.1, 1.0) and not hasattr(crf, "coef_")
    for method in (crf.predict, crf.predict_proba):
        with pytest.raises(NotFittedError, match="refit=False"):
            method(X)


def test_results_do_not_depend_on_the_number_of_threads():
    one, two = (CRFClassifierCV(c2s=[0.1, 0.01], cv=2, n_jobs=n).fit(X, Y) for n in (1, 2))
    np.testing.assert_array_equal(one.n_iter_, two.n_iter_)
    np.testing.assert_array_equal(one.coef_.data, two.coef_.data)


def test_fits_that_did_not_converge_are_told_once():
    with pytest.warns(ConvergenceWarning) as caught:
        CRFClassifierCV(c2s=[0.1, 0.01], cv=2, max_iter=2, refit=False).fit(X, Y)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(
        "4 of 4 fits did not converge; the first is fold 1, c1=0, c2=0.1: max"
    )
    assert caught[0].filename == __file__


def test_a_warning_of_the_last_fit_names_the_line_of_the_user(monkeypatch):
    monkeypatch.setattr("crfkit.training.fit.LARGE", 1)
    search = CRFClassifierCV(c2s=[0.1], cv=2, max_iter=2)
    with pytest.warns((ConvergenceWarning, UserWarning)) as caught:
        line = inspect.currentframe().f_lineno + 1
        search.fit(X, Y)
    assert len(caught) == 3
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, line)}


def test_control_c_ends_the_search(monkeypatch):
    calls = []

    def scoring(estimator, X, y):
        calls.append(0)
        return 1.0

    def solve(self, objective, start, callback=None):
        result = LBFGS().solve(objective, start, callback)
        return result._replace(interrupted=len(calls) == 3, converged=len(calls) != 3)

    solver = type("Interrupted", (LBFGS,), {"solve": solve})()
    with pytest.raises(KeyboardInterrupt):
        CRFClassifierCV(c2s=4, cv=2, scoring=scoring, solver=solver).fit(X, Y)
    assert len(calls) == 3


def test_progress_is_printed(capsys):
    CRFClassifierCV(c2s=[1.0], cv=2, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:11] for line in lines] == ["fold 1 of 2", "fold 2 of 2"]
    assert "c1=0, c2=1;" in lines[0]
    scores = iter([float("nan"), 0.25, 0.5, 0.5])
    CRFClassifierCV(c2s=[1.0, 0.1], cv=2, verbose=1, scoring=lambda *_: next(scores)).fit(X, Y)
    assert "fold 1 of 2: score 0.25 at c1=0, c2=0.1;" in capsys.readouterr().out


def test_it_is_saved_cloned_and_searched_in(tmp_path):
    crf = CRFClassifierCV(c2s=np.array([0.1, 1.0]), cv=KFold(2)).fit(X, Y)
    crfkit.save(crf, tmp_path / "model")
    loaded = crfkit.load(tmp_path / "model")
    assert loaded.predict(X) == crf.predict(X)
    np.testing.assert_array_equal(loaded.scores_, crf.scores_)
    script = f"import crfkit; print(crfkit.load({str(tmp_path / 'model')!r}).cv)"
    assert run_in_new_process(script, tmp_path)[0].startswith("KFold(n_splits=2")
    assert clone(crf).get_params()["cv"].n_splits == 2
    scores = cross_val_score(CRFClassifierCV(c2s=[1.0, 0.1], cv=2), X, Y, cv=2, error_score="raise")
    assert scores.shape == (2,)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"c2s": 0.5}, r"c2s=0.5 must be a list of numbers, or how many.*give \[0.5\]"),
        ({"c2s": "all"}, "c2s='all' must be a list"),
        ({"c1s": []}, "c1s is empty"),
        ({"c1s": 0}, "c1s=0 must be at least 1"),
        ({"c1s": True}, "c1s=True must be a whole number"),
        ({"c2s": [1.0, -1.0]}, r"c2s\[1\]=-1.0 must be finite and at least 0"),
        ({"c2s": [1.0, "a"]}, r"c2s\[1\]='a' must be a number"),
        ({"scoring": "f1"}, "unknown scorer 'f1'"),
        ({"scoring": lambda *_: "good"}, "scoring returned 'good'"),
        ({"refit": 1}, "refit=1 must be True or False"),
        ({"solver": "newtons"}, "solver='newtons' is not known"),
        ({"cv": 31}, "n_splits=31"),
        ({"cv": "five"}, "cv"),
        ({"cv": iter([])}, "cv gives no folds"),
        ({"c1s": [1.0], "solver": LBFGS()}, "c1=1"),
    ],
    ids=stable,
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CRFClassifierCV(**{"cv": 2} | parameters).fit(X, Y)
