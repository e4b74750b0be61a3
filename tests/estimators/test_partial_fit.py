"""Learning from one batch after another, with a solver that makes one gradient step a pass."""

import numpy as np
import pytest

import crfkit
from crfkit import CRFClassifier, PackedSequences, SequenceVectorizer
from crfkit._types import IterationRecord, SolverResult
from crfkit.solvers import SOLVERS, Solver
from tests.estimators.test_early_stopping import make

X, Y = make(0, 30)
CLASSES = [0, 1, 2]


@crfkit.persistence.register(name="tests.Steps")
class Steps(Solver):
    """Gradient steps; its state counts the passes, and for each weight the steps it has seen."""

    requires = ("value_and_grad",)
    handles_l1 = False
    handles_partial = True

    def __init__(self, max_iter=3, rate=0.05):
        self.max_iter = max_iter
        self.rate = rate

    def partial(self, objective, start, state):
        state = state or {"passes": 0, "steps": np.zeros(len(start)), "note": "any"}
        assert state["steps"].shape == start.shape
        w = start - self.rate * objective.value_and_grad(start)[1]
        return w, {"passes": state["passes"] + 1, "steps": state["steps"] + 1, "note": "any"}

    def solve(self, objective, start, callback=None):
        w = start
        for _ in range(self.max_iter):
            w = w - self.rate * objective.value_and_grad(w)[1]
        history = [IterationRecord(self.max_iter, 0.0, 0.0, self.max_iter, 0, 0.0)]
        return SolverResult(w, 0.0, self.max_iter, True, "done", history)


def make_crf(**parameters):
    return CRFClassifier(solver=Steps(), c2=0.1, **parameters)


def weights(crf):
    return {**crf.state_features_, **crf.transition_features_, **crf.transition_attributes_}


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose(list(ours.values()), [theirs[key] for key in ours], rtol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"boundary_weights": True}, {"all_possible_states": True}, {"n_jobs": 2}],
    ids=str,
)
def test_passes_over_the_same_data_are_the_iterations_of_a_fit(parameters):
    crf = make_crf(**parameters)
    for _ in range(3):
        assert crf.partial_fit(X, Y, classes=CLASSES) is crf
    whole = make_crf(**parameters).fit(X, Y)
    assert_same(weights(crf), weights(whole))
    np.testing.assert_allclose(crf.start_weights_, whole.start_weights_, rtol=1e-12)
    assert crf.n_iter_ == 3 and crf.n_parameters_ == whole.n_parameters_
    assert crf.predict(X) == whole.predict(X)


def test_new_attributes_and_pairs_get_weights_and_old_ones_keep_theirs():
    crf = make_crf().partial_fit(X[:15], Y[:15], classes=CLASSES)
    names, before = crf.feature_names_in_.tolist(), weights(crf)
    crf.set_params(solver__rate=0.0).partial_fit(X[15:], Y[15:])
    assert crf.feature_names_in_.tolist()[: len(names)] == names
    assert set(crf.feature_names_in_) == set(SequenceVectorizer().fit(X).vocabulary_)
    assert_same(weights(crf), before)
    crf.set_params(solver__rate=0.05).partial_fit(X[15:], Y[15:])
    assert set(before) < set(weights(crf))
    assert crf.n_parameters_ == CRFClassifier().fit(X, Y).n_parameters_


def test_the_state_of_the_solver_follows_the_weights():
    crf = make_crf(boundary_weights=True).partial_fit(X[:15], Y[:15], classes=CLASSES)
    first = dict(crf.state_features_)
    crf.partial_fit(X, Y)
    state = crf._partial_state
    assert state["others"] == {"passes": 2, "note": "any"}
    steps = state["arrays"]["steps"]
    counts = {key: steps["coef_"][crf.vectorizer_.vocabulary_[key[0]], CLASSES.index(key[1])]
              for key in crf.state_features_}  # fmt: skip
    assert {key for key, count in counts.items() if count == 2} == set(first)
    assert {key for key, count in counts.items() if count == 1} == set(counts) - set(first)
    np.testing.assert_array_equal(steps["start_weights_"], [2, 2, 2])


def test_steps_with_attributes_grow_and_continue():
    packed = SequenceVectorizer().fit_transform(X)
    data = packed.with_transitions(packed)
    crf = make_crf()
    crf.partial_fit(data[:15], Y[:15], classes=CLASSES)
    before = dict(crf.transition_attributes_)
    crf.partial_fit(data, Y).partial_fit(data, Y)
    assert set(before) < set(crf.transition_attributes_)
    crf = make_crf()
    for _ in range(3):
        crf.partial_fit(data, Y, classes=CLASSES)
    assert_same(weights(crf), weights(make_crf().fit(data, Y)))
    with pytest.raises(ValueError, match="no attributes of transitions"):
        crf.partial_fit(packed, Y)


def test_a_saved_model_continues_as_if_it_had_not_been_saved(tmp_path):
    crf = make_crf().partial_fit(X[:15], Y[:15], classes=CLASSES)
    crfkit.save(crf, tmp_path / "model")
    loaded = crfkit.load(tmp_path / "model")
    for model in (crf, loaded):
        model.partial_fit(X[10:], Y[10:]).partial_fit(X, Y)
    assert weights(loaded) == weights(crf)
    assert loaded._partial_state["others"] == crf._partial_state["others"] == {
        "passes": 3, "note": "any",
    }  # fmt: skip
    ours, theirs = (m._partial_state["arrays"]["steps"]["coef_"] for m in (crf, loaded))
    assert (ours != theirs).nnz == 0


def test_it_continues_from_a_fit_and_a_fit_forgets_it():
    crf = make_crf().fit(X, Y)
    whole = make_crf().set_params(solver__max_iter=4).fit(X, Y)
    crf.partial_fit(X, Y)
    assert_same(weights(crf), weights(whole))
    assert crf.n_iter_ == 4 and not hasattr(crf, "objective_")
    assert crf._partial_state["others"]["passes"] == 1
    crf.fit(X, Y)
    assert not hasattr(crf, "_partial_state")
    assert_same(weights(crf), weights(make_crf().fit(X, Y)))


def test_a_label_may_come_late():
    crf = make_crf().partial_fit([[["a"]]], [["A"]], classes=["B", "A", "C"])
    assert crf.classes_.tolist() == ["A", "B", "C"]
    assert crf.predict_proba([[["a"]]])[0].shape == (1, 3)
    for _ in range(20):
        crf.partial_fit([[["b"], ["c"]]], [["B", "C"]])
    assert crf.predict([[["b"], ["c"]]]) == [["B", "C"]]


@pytest.mark.parametrize("form", ["packed", "arrays", "generator"])
def test_all_forms_of_data_are_taken(form):
    packed = SequenceVectorizer().fit_transform(X)
    arrays = [matrix.toarray() for matrix in packed]
    forms = {"packed": lambda: packed, "arrays": lambda: arrays,
             "generator": lambda: ((token for token in s) for s in X)}  # fmt: skip
    crf, plain = make_crf(), make_crf()
    for _ in range(2):
        crf.partial_fit(forms[form](), iter(Y), classes=CLASSES)
        plain.partial_fit(X, Y, classes=CLASSES)
    np.testing.assert_allclose(crf.coef_.toarray(), plain.coef_.toarray(), rtol=1e-12)


def test_sample_weights_count():
    crf = make_crf().partial_fit(X, Y, classes=CLASSES, sample_weight=np.full(30, 2.0))
    twice = make_crf().partial_fit(X + X, Y + Y, classes=CLASSES)
    assert_same(weights(crf), weights(twice))


def test_a_batch_without_new_attributes_keeps_the_vocabulary():
    crf = make_crf().partial_fit(X, Y, classes=CLASSES)
    vectorizer = crf.vectorizer_
    assert crf.partial_fit(X[:3], Y[:3]).vectorizer_ is vectorizer


def test_only_solvers_that_learn_from_batches_are_taken(monkeypatch):
    with pytest.raises(ValueError, match="which LBFGS does not: set solver to one of"):
        CRFClassifier(solver="lbfgs").partial_fit(X, Y, classes=CLASSES)
    monkeypatch.setitem(SOLVERS, "steps", Steps)
    with pytest.raises(ValueError, match="one of .*'steps'"):
        CRFClassifier(solver="lbfgs").partial_fit(X, Y, classes=CLASSES)


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([(X, Y, None)], "first call of partial_fit needs classes"),
        ([(X, Y, [0, 1])], r"sequence \d+, position \d+: the label 2 is not one of the classes"),
        ([(X, Y, CLASSES), (X, Y, [0, 1])], "are not those of the model"),
        ([(X, Y, CLASSES), ([[["a"]]], [["new"]], None)],
         "sequence 0, position 0: the label 'new'"),
        ([(X, Y, CLASSES), (X, Y[:-1], None)], "X has 30 sequences, but y has 29"),
        ([(X, Y, CLASSES), ([np.eye(2)], [[0, 1]], None)], "sequence 0, position 0"),
        ([(X, Y, CLASSES), (PackedSequences(dense=np.eye(2), offsets=[0, 2]), [[0, 1]], None)],
         "X has 2 features"),
        ([([np.eye(2)], [[0, 1]], CLASSES), ([np.eye(3)], [[0, 1, 2]], None)], "3"),
        ([([np.eye(2)], [[0, 1]], CLASSES), ([["a"]], [[0]], None)], "fitted on matrices"),
        ([([], [], CLASSES)], "no sequences"),
        ([(X, Y, "012")], "classes='012' must be a list of labels"),
        ([(X, Y, 3)], "classes=3 must be a list of labels"),
        ([(X, Y, [0, 1, None])], "in classes: .*the label is None"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_refused_and_leaves_the_model(calls, message):
    crf = make_crf()
    for X_batch, y_batch, classes in calls[:-1]:
        crf.partial_fit(X_batch, y_batch, classes=classes)
    before = weights(crf) if len(calls) > 1 else None
    X_batch, y_batch, classes = calls[-1]
    with pytest.raises((TypeError, ValueError), match=message):
        crf.partial_fit(X_batch, y_batch, classes=classes)
    assert (weights(crf) if hasattr(crf, "coef_") else None) == before


@pytest.mark.parametrize("form", [set, tuple, iter, dict.fromkeys, np.array])
def test_classes_may_be_listed_in_any_form(form):
    crf = make_crf().partial_fit(X, Y, classes=form([2, 0, 1]))
    assert crf.classes_.tolist() == CLASSES


def test_the_names_of_packed_features_must_stay_the_same():
    packed = SequenceVectorizer().fit_transform(X)
    crf = make_crf().partial_fit(packed, Y, classes=CLASSES)
    with pytest.raises(ValueError, match="Feature 0 of X is "):
        other = PackedSequences(packed.to_csr(), offsets=packed.offsets,
                                feature_names=packed.feature_names[::-1])  # fmt: skip
        crf.partial_fit(other, Y)


@pytest.mark.parametrize("first", ["named", "nameless"])
def test_names_of_the_first_batch_stay_those_of_the_model(first):
    """As in scikit-learn: data without names, or with some, are a warning and no more."""
    named = SequenceVectorizer().fit_transform(X)
    nameless = PackedSequences(named.to_csr(), offsets=named.offsets)
    batches = (named, nameless) if first == "named" else (nameless, named)
    crf = make_crf().partial_fit(batches[0], Y, classes=CLASSES)
    message = "does not have valid feature names" if first == "named" else "has feature names"
    with pytest.warns(UserWarning, match=f"X {message}, but the model was fitted with"):
        crf.partial_fit(batches[1], Y)
    if first == "named":
        assert crf.feature_names_in_.tolist() == named.feature_names.tolist()
    else:
        assert not hasattr(crf, "feature_names_in_")
    with pytest.warns(UserWarning, match="feature names"):
        crf.predict(batches[1])
    twice = make_crf().partial_fit(batches[0], Y, classes=CLASSES).partial_fit(batches[0], Y)
    assert_same(weights(crf), weights(twice))


@pytest.mark.parametrize(
    "name", sorted(n for n, s in SOLVERS.items() if getattr(s, "handles_partial", False))
)
def test_each_solver_that_learns_from_batches_learns(name):
    crf = CRFClassifier(solver=name, c2=0.01, random_state=0)
    for _ in range(10):
        for batch in (slice(0, 15), slice(15, 30)):
            crf.partial_fit(X[batch], Y[batch], classes=CLASSES)
    assert crf.score(X, Y) > 0.9
