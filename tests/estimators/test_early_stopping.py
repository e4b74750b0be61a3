"""Early stopping: what is held out, when the fit ends, and which weights are kept."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import crfkit
from crfkit import CRFClassifier, EarlyStopping, PackedSequences, SequenceVectorizer
from crfkit._types import IterationRecord, SolverResult
from crfkit.losses import AnnealedHingeLoss, SoftenedHingeLoss
from crfkit.metrics import get_scorer
from crfkit.solvers import LBFGS, SOLVERS
from crfkit.training.early_stopping import Watch


def make(seed, sequences=40, noise=0.3):
    """Sequences whose labels follow their words but for noise."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 7, sequences)
    y = [rng.integers(3, size=n).tolist() for n in lengths]
    wrong = [rng.random(n) < noise for n in lengths]
    words = [
        np.where(w, rng.integers(12, size=len(w)), np.array(s) * 4 + rng.integers(4, size=len(w)))
        for s, w in zip(y, wrong, strict=True)
    ]
    X = [[{"w": str(w), "id": f"{seed}-{i}-{t}"} for t, w in enumerate(s)]
         for i, s in enumerate(words)]  # fmt: skip
    return X, y


X, Y = make(0)
X_DEV, Y_DEV = make(1, 20)
PACKED = SequenceVectorizer().fit_transform(X)
HALF = EarlyStopping(validation_fraction=0.5)


def fit(early=True, X_val=X_DEV, y_val=Y_DEV, **parameters):
    crf = CRFClassifier(early_stopping=early, **{"c2": 0.001} | parameters)
    return crf.fit(X, Y, X_val=X_val, y_val=y_val)


def weights(crf):
    return np.concatenate([crf.coef_.toarray().ravel(), crf.transitions_.ravel()])


def stopped_at(iteration, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CRFClassifier(**{"c2": 0.001} | parameters, max_iter=iteration).fit(X, Y)


@pytest.mark.parametrize("parameters", [{}, {"c1": 0.01}, {"solver": "owlqn"}], ids=str)
def test_the_weights_are_those_of_the_iteration_with_the_best_score(parameters):
    crf = fit(EarlyStopping(patience=4), **parameters)
    scores = crf.validation_scores_
    assert crf.best_iteration_ == max(scores, key=scores.get)
    assert 0 < crf.best_iteration_ < crf.n_iter_ == max(scores)
    assert crf.n_iter_ == crf.best_iteration_ + 4 < 100
    assert list(scores) == list(range(crf.n_iter_ + 1))
    np.testing.assert_array_equal(
        weights(crf), weights(stopped_at(crf.best_iteration_, **parameters))
    )
    assert crf.best_score_ == scores[crf.best_iteration_] == crf.score(X_DEV, Y_DEV)
    assert crf.objective_ == crf.training_log_[crf.best_iteration_].value
    assert len(crf.training_log_) == crf.n_iter_ + 1 and not crf.converged_


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_solver_is_stopped_and_restored(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of solvers that hit max_iter first
        crf = fit(EarlyStopping(patience=2), solver=name, max_iter=60, random_state=0)
    assert crf.score(X_DEV, Y_DEV) == crf.best_score_ == max(crf.validation_scores_.values())


def test_a_buffer_that_the_solver_uses_again_does_not_change_the_best_weights():
    class Reusing(LBFGS):
        def solve(self, objective, start, callback=None):
            buffer = np.empty_like(start)

            def reuse(record, parameters):
                buffer[:] = parameters
                stop = callback(record, buffer)
                buffer[:] = np.nan
                return stop

            return super().solve(objective, start, reuse)

    np.testing.assert_array_equal(weights(fit()), weights(fit(solver=Reusing())))


@pytest.mark.parametrize("every", [1, 3])
def test_only_every_nth_iteration_is_scored_and_counts_for_patience(every):
    crf = fit(EarlyStopping(patience=2, every=every))
    assert all(iteration % every == 0 for iteration in crf.validation_scores_)
    assert crf.n_iter_ - crf.best_iteration_ == 2 * every


def test_the_last_iteration_is_scored_where_it_was_not_its_turn():
    crf = fit(EarlyStopping(every=50, patience=50), c2=1.0)
    assert crf.converged_ and crf.n_iter_ % 50
    assert list(crf.validation_scores_) == [0, crf.n_iter_]
    np.testing.assert_array_equal(weights(crf), weights(CRFClassifier(c2=1.0).fit(X, Y)))


@pytest.mark.parametrize("solver", ["auto", "sgd"])
def test_only_the_last_stage_of_a_loss_is_scored_and_stopped(solver):
    loss = AnnealedHingeLoss(temperatures=(1.0, 0.3, 0.1))
    crf = fit(EarlyStopping(patience=1), loss=loss, solver=solver, c2=0.1)
    stages = [record.iteration for record in crf.training_log_ if record.gap == np.inf]
    assert len(stages) > 3
    scored = list(crf.validation_scores_)
    assert scored == list(range(max(stages) + 1, crf.n_iter_ + 1))
    assert crf.best_score_ == crf.score(X_DEV, Y_DEV) == max(crf.validation_scores_.values())
    assert not crf.converged_ and np.isfinite(crf.gap_) == (solver == "auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        last = CRFClassifier(
            loss=SoftenedHingeLoss(temperature=0.1), c2=0.1, max_iter=0, warm_start=True
        )
        for name, value in vars(crf).items():
            if name.endswith("_") or name.startswith("_"):
                setattr(last, name, value)
        last.fit(X, Y)
    np.testing.assert_allclose(crf.objective_, last.objective_, rtol=1e-9)


def test_a_score_must_exceed_the_best_one_by_tol():
    scores = iter([0.5, 0.55, 0.65, 0.69, 0.71, 0.72])
    rules = EarlyStopping(scoring=lambda *_: next(scores), patience=3, tol=0.1)
    crf = fit(rules)
    assert (crf.best_iteration_, crf.best_score_, crf.n_iter_) == (2, 0.65, 5)


def test_any_number_is_better_than_nan():
    scores = iter([float("nan"), float("nan"), 0.1, float("nan"), 0.05])
    crf = fit(EarlyStopping(scoring=lambda *_: next(scores), patience=2))
    assert (crf.best_iteration_, crf.best_score_, crf.n_iter_) == (2, 0.1, 4)


def test_stopping_early_is_no_warning_and_is_told(capsys):
    fit(verbose=1)
    assert "stopped early after" in capsys.readouterr().out.splitlines()[-1]


def test_a_fit_that_ends_before_it_is_stopped_still_warns():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        crf = fit(max_iter=2)
    assert crf.best_score_ == max(crf.validation_scores_.values())


def test_a_random_part_of_the_sequences_is_held_out():
    seen = []

    def scoring(estimator, X, y):
        seen.append((X, y))
        return estimator.score(X, y)

    rules = EarlyStopping(scoring=scoring, validation_fraction=0.25)
    crf = CRFClassifier(early_stopping=rules, random_state=3).fit(X, Y)
    data, labels = seen[0]
    assert len(data) == len(labels) == 10
    assert all(x is data and y is labels for x, y in seen)
    packed = crf.vectorizer_.transform(X)
    held = [i for i in range(40) if any(packed[[i]] == data[[j]] for j in range(10))]
    assert len(held) == 10 and [Y[i] for i in held] == labels
    kept = [i for i in range(40) if i not in held]
    given = CRFClassifier(early_stopping=True).fit(
        [X[i] for i in kept], [Y[i] for i in kept],
        X_val=[X[i] for i in held], y_val=[Y[i] for i in held],
    )  # fmt: skip
    assert given.n_parameters_ == crf.n_parameters_
    assert given.validation_scores_ == crf.validation_scores_
    for ours, theirs in zip(crf.predict_proba(X_DEV), given.predict_proba(X_DEV), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_the_held_out_part_depends_on_random_state_alone():
    def scores(random_state):
        crf = CRFClassifier(early_stopping=True, random_state=random_state, c2=0.1)
        return crf.fit(X, Y).validation_scores_

    assert scores(0) == scores(0) == scores(np.random.RandomState(0))
    assert len({tuple(scores(seed).values()) for seed in range(6)}) > 1


def test_a_generator_is_split_like_a_list():
    plain = CRFClassifier(early_stopping=True, random_state=0).fit(X, Y)
    streamed = CRFClassifier(early_stopping=True, random_state=0).fit(iter(X), iter(Y))
    np.testing.assert_array_equal(weights(plain), weights(streamed))


def test_labels_and_attributes_of_the_validation_part_only_are_not_learned():
    crf = CRFClassifier(early_stopping=True).fit(X, Y, X_val=[[{"w": "new"}]], y_val=[["NEW"]])
    assert crf.classes_.tolist() == [0, 1, 2]
    assert set(crf.validation_scores_.values()) == {0.0}
    assert "w:new" not in crf.feature_names_in_
    rare = [*Y[:-1], ["rare"] * len(Y[-1])]
    held = next(s for s in range(100) if 39 in np.random.RandomState(s).permutation(40)[:4])
    crf = CRFClassifier(early_stopping=True, random_state=held).fit(X, rare)
    assert "rare" not in crf.classes_
    only = [name for name in crf.feature_names_in_ if name.startswith("id:0-39-")]
    assert only and not any((name, k) in crf.state_features_ for name in only for k in range(3))


@pytest.mark.parametrize("scoring", ["accuracy", "flat_f1_macro", get_scorer("sequence_accuracy")])
def test_any_metric_scores_the_validation_part(scoring):
    crf = fit(EarlyStopping(scoring=scoring))
    scorer = scoring if callable(scoring) else None
    if isinstance(scoring, str) and scoring != "accuracy":
        scorer = get_scorer(scoring)
    expected = crf.score(X_DEV, Y_DEV) if scorer is None else scorer(crf, X_DEV, Y_DEV)
    assert crf.best_score_ == expected


def test_packed_validation_data_are_used_as_they_are():
    vectorizer = SequenceVectorizer()
    packed = vectorizer.fit_transform(X)
    crf = CRFClassifier(c2=0.001, early_stopping=True)
    crf.fit(packed, Y, X_val=vectorizer.transform(X_DEV), y_val=Y_DEV)
    assert crf.validation_scores_ == fit().validation_scores_


def test_control_c_keeps_the_best_weights_so_far():
    calls = []

    def scoring(estimator, X, y):
        calls.append(0)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return [0.1, 0.2, 0.9, 0.3, 0.4][len(calls) - 1]

    with pytest.warns(ConvergenceWarning, match="interrupted by the user"):
        crf = fit(EarlyStopping(scoring=scoring))
    assert (crf.best_iteration_, crf.best_score_, crf.n_iter_) == (2, 0.9, 5)
    np.testing.assert_array_equal(weights(crf), weights(stopped_at(2)))


def test_control_c_while_the_best_weights_are_copied_keeps_those_before():
    class Interrupting:
        def __array__(self, *args, **kwargs):
            raise KeyboardInterrupt

    scores = iter([0.25, 0.5])
    watch = Watch(EarlyStopping(), lambda w: next(scores))
    records = [IterationRecord(i, 9.0 - i, 1.0, i, 1, 0.0) for i in range(2)]
    watch(records[0], np.array([3.0]))
    with pytest.raises(KeyboardInterrupt):
        watch(records[1], Interrupting())
    result = SolverResult(np.array([7.0]), 8.0, 1, False, "interrupted", records, True)
    kept = watch.finish(result)
    assert kept.parameters.tolist() == [3.0] and kept.value == 9.0
    assert watch.attributes()["best_score_"] == 0.25


def test_control_c_before_the_first_score_keeps_the_start():
    def scoring(estimator, X, y):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted by the user"):
        crf = fit(EarlyStopping(scoring=scoring))
    assert crf.best_iteration_ is None and not weights(crf).any()


def test_a_warm_start_that_cannot_be_bettered_keeps_its_weights():
    crf = fit(c2=0.1)
    before, score = weights(crf), crf.best_score_
    crf.set_params(warm_start=True, c2=0.1, early_stopping=EarlyStopping(scoring=lambda *_: 0.0))
    crf.fit(X, Y, X_val=X_DEV, y_val=Y_DEV)
    assert crf.best_iteration_ == 0 and crf.n_iter_ == 5
    np.testing.assert_array_equal(weights(crf), before)
    assert crf.score(X_DEV, Y_DEV) == score


def test_a_refit_without_early_stopping_tells_of_no_validation():
    crf = fit()
    crf.set_params(early_stopping=False).fit(X, Y)
    assert not hasattr(crf, "validation_scores_") and not hasattr(crf, "best_score_")


def test_the_seed_reaches_a_solver_made_by_name(monkeypatch):
    class Seeded(LBFGS):
        is_random = True

        def __init__(self, *, max_iter=1000, random_state=0):
            super().__init__(max_iter=max_iter)
            self.random_state = random_state

    monkeypatch.setitem(SOLVERS, "seeded", Seeded)
    assert CRFClassifier(solver="seeded", random_state=7)._problem().solver.random_state == 7
    assert CRFClassifier(solver="seeded")._problem().solver.random_state == 0
    assert (
        CRFClassifier(solver=Seeded(random_state=None), random_state=7)
        ._problem()
        .solver.random_state
        is None
    )
    assert CRFClassifier(solver=Seeded(random_state=1))._problem().solver.random_state == 1


def test_it_works_in_a_search_and_is_cloned_and_saved(tmp_path):
    crf = CRFClassifier(early_stopping=EarlyStopping(patience=2), random_state=0)
    search = GridSearchCV(crf, {"c2": [0.1, 1.0], "early_stopping__patience": [1, 2]}, cv=2)
    search.fit(X, Y)
    best = search.best_estimator_
    assert clone(best).get_params()["early_stopping__patience"] in (1, 2)
    crfkit.save(best, tmp_path / "model")
    loaded = crfkit.load(tmp_path / "model")
    assert loaded.validation_scores_ == best.validation_scores_
    assert loaded.predict(X_DEV) == best.predict(X_DEV)
    search = GridSearchCV(crf, {"c2": [0.1, 1.0]}, cv=2, error_score="raise")
    search.fit(X, Y, X_val=X_DEV, y_val=Y_DEV)
    assert search.best_estimator_.best_score_ == search.best_estimator_.score(X_DEV, Y_DEV)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"early_stopping": 1}, "early_stopping=1 must be"),
        ({"early_stopping": "yes"}, "early_stopping='yes' must be"),
        ({"early_stopping": EarlyStopping(validation_fraction=0)}, "validation_fraction=0 must"),
        ({"early_stopping": EarlyStopping(validation_fraction=1.0)}, "fraction=1.0 must be"),
        ({"early_stopping": EarlyStopping(validation_fraction="a")}, "='a' must be a number"),
        ({"random_state": "seed"}, "seed"),
        ({"early_stopping": EarlyStopping(scoring="f1")}, "unknown scorer 'f1'"),
        ({"early_stopping": EarlyStopping(scoring=3)}, "scoring=3 must be"),
        ({"early_stopping": EarlyStopping(patience=0)}, "patience=0 must be at least 1"),
        ({"early_stopping": EarlyStopping(every=0)}, "every=0 must be at least 1"),
        ({"early_stopping": EarlyStopping(tol=-1)}, "tol=-1 must be"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CRFClassifier(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"X_val": X_DEV}, "X_val was given without y_val"),
        ({"y_val": Y_DEV}, "y_val was given without X_val"),
        ({"X_val": X_DEV, "y_val": Y_DEV[:-1]}, "in X_val or y_val: X has 20 sequences"),
        ({"X_val": [["a"]], "y_val": [["b"]]}, "in X_val or y_val: sequence 0, position 0"),
        ({"X_val": [], "y_val": []}, "X_val has no tokens"),
        ({"X_val": PackedSequences(dense=np.eye(2), offsets=[0, 2]), "y_val": [[0, 1]]},
         "in X_val or y_val: X has 2 features"),
        ({"X_val": PACKED._from_arrays(**PACKED.__dict__ | {"names": PACKED.names[::-1]}),
          "y_val": Y}, "in X_val or y_val: The feature names should match"),
        ({"X_val": PACKED.with_transitions(PACKED), "y_val": Y},
         "in X_val or y_val: X has [0-9]+ attributes of transitions, but the model was fitted "
         "with no"),
    ], ids=["no y", "no X", "numbers", "token", "empty", "features", "names", "steps"],
)  # fmt: skip
def test_bad_validation_data_are_refused_before_the_fit_begins(held, message, monkeypatch):
    monkeypatch.setattr(CRFClassifier, "_learn", None)
    with pytest.raises((TypeError, ValueError), match=message):
        CRFClassifier(early_stopping=True).fit(X, Y, **held)


def test_validation_data_without_early_stopping_are_refused():
    with pytest.raises(ValueError, match="set early_stopping=True"):
        CRFClassifier().fit(X, Y, X_val=X_DEV, y_val=Y_DEV)


def test_too_few_sequences_to_hold_some_out_are_refused():
    with pytest.raises(ValueError, match="holds out 1 of 1 sequences"):
        CRFClassifier(early_stopping=True).fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="all have the sample weight 0"):
        CRFClassifier(early_stopping=HALF, random_state=0).fit(
            X[:2], Y[:2], sample_weight=np.eye(2)[np.random.RandomState(0).permutation(2)[0]]
        )


def test_a_scorer_that_returns_no_number_is_named():
    with pytest.raises(TypeError, match="scoring returned 'good'"):
        fit(EarlyStopping(scoring=lambda *_: "good"))
