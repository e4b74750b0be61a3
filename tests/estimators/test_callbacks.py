"""scikit-learn's callbacks on the fit of a CRF."""

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from crfkit import CRFClassifier, LabelSequences, PackedSequences, SequenceVectorizer
from tests.processes import run_in_new_process

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has none")
ProgressBar, ScoringMonitor = callback.ProgressBar, callback.ScoringMonitor

X = [[{"w": "a"}, {"w": "b"}], [{"w": "a"}], [{"w": "b"}, {"w": "b"}, {"w": "a"}]] * 2
y = [["A", "B"], ["A"], ["B", "B", "A"]] * 2


def test_callbacks_are_imported_for_estimators_that_have_some(tmp_path):
    code = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from crfkit import CRFClassifier\n"
        "CRFClassifier(max_iter=1).fit([[['a']]] * 2, [['x'], ['y']])\n"
        "print('rich' in sys.modules)"
    )
    assert run_in_new_process(code, tmp_path)[0] == "False\n"


class Recorder:
    """Notes each hook; stops the fit at an iteration."""

    def __init__(self, stop_at=None):
        self.events = []
        self.stop_at = stop_at

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {context.task_name}")
        return self.stop_at is not None and self.count("end iteration") >= self.stop_at

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def count(self, event):
        return self.events.count(event)


class Inspector(Recorder):
    """Keeps what a callback may ask for."""

    def __init__(self, stop_at=None):
        super().__init__(stop_at)
        self.seen = []

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        predicted = fitted_estimator.predict(X)
        self.seen.append((context.task_name, X, y, fitted_estimator, predicted))
        return super().on_fit_task_end(estimator, context)


class Forwarded(Recorder):
    """Is passed on by meta-estimators."""

    max_propagation_depth = None


def token_accuracy(estimator, X, y):
    return estimator.score(X, y)


def fit(callback, **parameters):
    return CRFClassifier(**parameters).set_callbacks(callback).fit(X, y)


def test_hooks_are_called_in_order():
    recorder = Recorder()
    model = fit(recorder)
    assert model.n_iter_ > 1
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events[-2:] == ["end fit", "teardown"]
    iterations = ["begin iteration", "end iteration"] * model.n_iter_
    assert recorder.events[2:-2] == iterations


def test_a_callback_does_not_change_the_fit():
    np.testing.assert_array_equal(fit(Inspector()).coef_.data, CRFClassifier().fit(X, y).coef_.data)


@pytest.mark.parametrize("parameters", [{}, {"c1": 0.1}, {"boundary_weights": True}], ids=str)
def test_a_callback_gets_a_usable_model_and_the_training_data(parameters):
    inspector = Inspector()
    model = fit(inspector, **parameters)
    assert len(inspector.seen) == model.n_iter_ + 1
    for task, data, labels, fitted, predicted in inspector.seen:
        assert isinstance(data, PackedSequences) and isinstance(labels, LabelSequences)
        assert labels == y and len(data) == len(X)
        assert predicted == fitted.predict(X) and task in ("fit", "iteration")
        assert 0 <= fitted.score(data, labels) <= 1
        assert fitted.predict_proba(X)[0].shape == (2, 2)
    last = inspector.seen[-1][3]
    np.testing.assert_array_equal(last.coef_.toarray(), model.coef_.toarray())
    assert last.predict(X) == model.predict(X)


def test_models_of_the_iterations_become_more_likely():
    inspector = Inspector()
    fit(inspector, c2=0.01)
    likelihoods = [fitted.sequence_log_proba(X, y).sum() for *_, fitted, _ in inspector.seen]
    assert likelihoods[0] < likelihoods[-1] < 0


@pytest.mark.parametrize("parameters", [{}, {"c1": 0.1}], ids=str)
def test_a_callback_stops_the_fit_by_returning_true(parameters):
    recorder = Recorder(stop_at=2)
    with pytest.warns(ConvergenceWarning, match="stopped by a callback"):
        model = fit(recorder, **parameters)
    assert model.n_iter_ == recorder.count("end iteration") == 2
    assert not model.converged_
    assert recorder.events[-2:] == ["end fit", "teardown"]
    assert [len(labels) for labels in model.predict(X)] == [len(labels) for labels in y]


def test_the_model_of_a_stopped_fit_is_the_one_the_callback_saw_last():
    inspector = Inspector(stop_at=2)
    with pytest.warns(ConvergenceWarning):
        model = fit(inspector)
    last = inspector.seen[-1][3]
    np.testing.assert_array_equal(last.coef_.toarray(), model.coef_.toarray())


def test_a_refit_shows_callbacks_nothing_of_the_last_fit():
    inspector = Inspector()
    model = CRFClassifier(boundary_weights=True).fit([[["p"], ["q"], ["r"]]], [["P", "Q", "R"]])
    model.predict([[["p"]]])
    model.set_params(boundary_weights=False).set_callbacks(inspector).fit(X, y)
    fitted = inspector.seen[-1][3]
    for rows, ours in zip(fitted.predict_proba(X), CRFClassifier().fit(X, y).predict_proba(X),
                          strict=True):  # fmt: skip
        np.testing.assert_array_equal(rows, ours)


def test_callbacks_are_torn_down_after_an_error():
    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("out of disk")

    failing = Failing()
    with pytest.raises(RuntimeError, match="out of disk"):
        fit(failing)
    assert failing.events[-1] == "teardown"


def test_a_fitted_model_with_callbacks_is_cloned_and_predicts():
    model = fit(Recorder())
    assert clone(model).get_params() == model.get_params()
    assert copy.deepcopy(model).predict(X) == model.predict(X)


def test_what_is_no_callback_is_refused():
    with pytest.raises(TypeError, match="callback"):
        CRFClassifier().set_callbacks(print)


def test_progress_bar_shows_the_fit(capsys):
    pytest.importorskip("rich")
    model = fit(ProgressBar())
    assert model.converged_
    assert "CRFClassifier" in capsys.readouterr().out


@pytest.mark.parametrize(
    "scoring",
    [
        {"tokens": token_accuracy},
        make_scorer(lambda t, p: np.mean([a == b for a, b in zip(t, p, strict=True)])),
    ],
    ids=["dict", "make_scorer"],
)
def test_scoring_monitor_logs_a_score_for_each_iteration(scoring):
    monitor = ScoringMonitor(scoring=scoring)
    model = fit(monitor)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    assert len(rows) == model.n_iter_
    (name,) = {"score", "tokens"} & set(rows[0])
    assert all(0 <= row[name] <= 1 for row in rows)
    assert rows[-1][name] == 1.0 == model.score(X, y)


def test_callbacks_of_a_step_work_in_a_pipeline():
    inspector = Inspector()
    crf = CRFClassifier().set_callbacks(inspector)
    model = Pipeline([("features", SequenceVectorizer()), ("crf", crf)]).fit(X, y)
    assert len(inspector.seen) == model["crf"].n_iter_ + 1
    packed = model[:-1].transform(X)
    assert inspector.seen[-1][3].predict(packed) == model.predict(X)


# scikit-learn warns for each step without callbacks of its own, as a vectorizer has none.
@pytest.mark.filterwarnings("ignore:The estimator SequenceVectorizer does not support callbacks")
def test_a_pipeline_passes_callbacks_on():
    recorder = Forwarded()
    model = Pipeline([("features", SequenceVectorizer()), ("crf", CRFClassifier())])
    model.set_callbacks(recorder).fit(X, y)
    assert recorder.count("end iteration") == model["crf"].n_iter_


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grid_search_passes_callbacks_on(n_jobs):
    monitor = ScoringMonitor(scoring={"tokens": token_accuracy})
    crf = CRFClassifier().set_callbacks(monitor)
    search = GridSearchCV(crf, {"c2": [0.1, 1.0]}, cv=2, n_jobs=n_jobs).fit(X, y)
    rows = [row for log in monitor.get_logs(select="all") for row in log.data]
    assert len([r for r in rows if r["task_name"] == "iteration"]) > search.best_estimator_.n_iter_
    assert search.best_estimator_.predict(X) == y


def test_progress_bar_of_a_grid_search(capsys):
    pytest.importorskip("rich")
    search = GridSearchCV(CRFClassifier(), {"c2": [0.1, 1.0]}, cv=2)
    search.set_callbacks(ProgressBar()).fit(X, y)
    assert "GridSearchCV" in capsys.readouterr().out
    assert search.best_estimator_.predict(X) == y


def test_grid_search_hooks_reach_the_fits():
    recorder = Forwarded()
    search = GridSearchCV(CRFClassifier(), {"c2": [0.1, 1.0]}, cv=2).set_callbacks(recorder)
    search.fit(X, y)
    assert recorder.count("setup") == recorder.count("teardown") == 1
    assert recorder.count("end iteration") > search.best_estimator_.n_iter_
