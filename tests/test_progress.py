"""What progress bars show of work, and that nothing else changes."""

import io
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    EarlyStopping,
    HMMClassifier,
    ProgressBar,
    TemplateFeatures,
)
from crfkit._progress import is_heard, working
from crfkit.compat.sklearn_crfsuite import CRF
from crfkit.persistence import dumps, loads
from crfkit.progress import duration, share_of
from crfkit.training.expected import IterationsLeft

X = [["a", "b"], ["a"], ["b", "b", "a"]] * 4
NAMED = [[[word] for word in words] for words in X]
y = [["A", "B"], ["A"], ["B", "B", "A"]] * 4


def pipeline(**parameters):
    return make_pipeline(TemplateFeatures(["w"], columns=["w"]), CRFClassifier(**parameters))


def tokens(X):
    return [[(word,) for word in words] for words in X]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def on_terminal(work, columns=80):
    """What a bar writes on a terminal, and each state of its line."""
    stream = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        patch.setenv("TERM", "xterm")
        with ProgressBar(stream, every=0.0):
            work()
    lines = stream.getvalue().split("\n")
    return [state for line in lines for state in line.split("\r")], lines


def test_phases_get_a_line_each_where_none_can_be_written_over():
    stream = io.StringIO()
    plain = pipeline().fit(tokens(X), y)
    with ProgressBar(stream):
        assert is_heard()
        shown = pipeline().fit(tokens(X), y)
    assert not is_heard()
    lines = stream.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["features", "fitting"]
    assert "12 sequences, 2 attributes" in lines[0]
    assert f"{plain[-1].n_iter_} iterations, objective {plain[-1].objective_:.4f}" in lines[1]
    np.testing.assert_array_equal(shown[-1].coef_.data, plain[-1].coef_.data)


@pytest.mark.parametrize("columns", [80, 40, 20])
def test_no_line_is_wider_than_the_terminal_and_old_ones_leave_nothing_behind(columns):
    def work():
        with working("features", 200, "templates") as task:
            for _ in range(200):
                task.advance()
        with working("fitting", None, "iterations") as task:
            for i in range(40):
                task.update(i, objective=1e6 - i, left=(40 - i) * 1.0, score=0.5)

    states, lines = on_terminal(work, columns)
    assert max(map(len, states)) < columns
    assert any("%" in state for state in states)
    for line in lines:
        width = 0
        for state in line.split("\r"):
            assert len(state) >= width or not state
            width = len(state.rstrip())


def test_searches_show_their_fits_and_keep_few_lines():
    grid = GridSearchCV(pipeline(), {"crfclassifier__c2": [0.1, 1.0]}, cv=2)
    states, lines = on_terminal(lambda: grid.fit(tokens(X), y))
    assert sum(state.startswith("fitting") for state in states) >= 5
    assert len(lines) <= 5
    states, _ = on_terminal(lambda: CRFClassifierCV(c2s=[0.1, 1.0], cv=2).fit(NAMED, y))
    assert any(state.startswith("search") and "4/4 fits" in state for state in states)


def test_scores_of_early_stopping_are_shown():
    crf = CRFClassifier(early_stopping=EarlyStopping(patience=2))
    states, _ = on_terminal(lambda: crf.fit(NAMED, y))
    assert f"score {crf.best_score_:.4f}" in states[-2]


def test_an_error_ends_the_line_and_the_bar():
    stream = io.StringIO()
    with pytest.raises(ValueError, match="c2"), ProgressBar(stream):
        with working("reading"):
            pass
        CRFClassifier(c2=-1).fit(NAMED, y)
    assert not is_heard()
    with pytest.raises(KeyboardInterrupt), ProgressBar(stream), working("fitting"):
        raise KeyboardInterrupt
    assert stream.getvalue().splitlines()[-1].startswith("fitting  interrupted")


def test_it_is_a_callback_where_scikit_learn_has_such():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has none")
    stream = io.StringIO()
    crf = CRFClassifier().set_callbacks(ProgressBar(stream)).fit(NAMED, y)
    assert f"{crf.n_iter_} iterations" in stream.getvalue()
    assert not is_heard()
    assert pickle.loads(pickle.dumps(ProgressBar())).shown is False
    assert loads(dumps(crf)).predict(NAMED) == crf.predict(NAMED)  # without the callback


@pytest.mark.filterwarnings("error:.*does not support callbacks")
@pytest.mark.parametrize(
    ("model", "X", "labels", "shown"),
    [
        (pipeline(), tokens(X), y, ["features", "fitting"]),
        (CRFClassifierCV(c2s=[1.0], cv=2), NAMED, y, ["features", "search", "fitting"]),
        (CRF(), NAMED, y, ["features", "fitting"]),
        (HMMClassifier(n_states=2, emissions="categorical", random_state=0), X, None,
         ["features", "fitting"]),
    ],
)  # fmt: skip
def test_all_estimators_take_it_as_a_callback(model, X, labels, shown):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has none")
    stream = io.StringIO()
    model.set_callbacks(ProgressBar(stream)).fit(X, labels)
    assert [line.split()[0] for line in stream.getvalue().splitlines()] == shown
    assert not is_heard()


class Context(NamedTuple):
    """A task of scikit-learn, as callbacks see it."""

    parent: Any = None
    max_subtasks: int = 0
    sequential_subtasks: bool = True


def test_fits_in_other_processes_are_counted():
    stream, search = io.StringIO(), Context(Context(), 3, False)
    bar = ProgressBar(stream)
    bar.setup(None, search.parent)
    bar.on_fit_task_begin(None, search)
    elsewhere, fit = pickle.loads(pickle.dumps(bar)), Context(search)
    for of, task in [(elsewhere, fit), (elsewhere, Context(fit)), (bar, fit), (elsewhere, fit)]:
        of.on_fit_task_end(None, task)
    bar.on_fit_task_end(None, search)
    elsewhere.on_fit_task_end(None, fit)  # late: there is nobody to be told
    elsewhere.on_fit_task_end(None, fit)
    bar.teardown(None, search.parent)
    assert stream.getvalue().startswith("search   3/3 fits") and not is_heard()
    bar.on_fit_task_begin(None, search)  # of a search that fails
    bar.setup(None, search.parent)
    bar.teardown(None, search.parent)


def test_a_search_counts_its_fits():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has none")
    stream = io.StringIO()
    grid = GridSearchCV(CRFClassifier(), {"c2": [0.1, 1.0]}, cv=2)
    grid.set_callbacks(ProgressBar(stream)).fit(NAMED, y)
    lines = stream.getvalue().splitlines()
    assert sum(line.startswith("search   4/4 fits") for line in lines) == 1
    assert not is_heard() and pickle.loads(pickle.dumps(grid)).best_params_ == grid.best_params_


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (3.0, "3 s"), (9.94, "9.9 s"), (9.96, "10 s"),
     (59.4, "59 s"), (59.6, "1:00 min"),
     (3599.7, "1:00 h"), (7265, "2:01 h")],
)  # fmt: skip
def test_durations_are_written_as_people_say_them(seconds, text):
    assert duration(seconds) == text


def test_the_end_is_expected_from_how_fast_a_fit_converges():
    """The value falls by four fifths of what it fell before, so that the end is known."""
    from crfkit._types import IterationRecord
    from crfkit.solvers import LBFGS

    expected = IterationsLeft(LBFGS(tol=1e-5, period=10))
    for i in range(30):
        record = IterationRecord(i, 100.0 + 50.0 * 0.8**i, np.nan, i, 0, 0.0)
        left = expected.after(record)
    meets = next(i for i in range(100) if 50.0 * (0.8 ** (i - 10) - 0.8**i) < 1e-5 * 100.0)
    assert left == pytest.approx(meets - 29, abs=1.5)


def test_shares_are_of_what_is_known():
    with ProgressBar(io.StringIO()), working("fitting", 100, "iterations") as task:
        task.update(25)
        assert share_of(task) == 0.25
        task.tell(left=25.0)
        assert share_of(task) == 0.5
