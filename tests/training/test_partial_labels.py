"""Labels of which some are not known, or known to be one of several."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from crfkit import UNLABELED, CRFClassifier, EarlyStopping, MaxMarginCRF, StructuredPerceptron
from crfkit.data.targets import Targets
from crfkit.inference import BeamSearch
from crfkit.metrics import get_scorer
from crfkit.model_selection import StratifiedSequenceKFold
from crfkit.solvers import MIRA


@pytest.fixture
def drawn(rng):
    """Sequences with attributes of tokens, labels, and which of these are known."""
    lengths = [1, *rng.integers(1, 7, 11)]
    X = [[{f"a{rng.integers(4)}": 1.0, f"b{rng.integers(3)}": 1.0} for _ in range(length)]
         for length in lengths]  # fmt: skip
    y = [rng.integers(0, 3, length).tolist() for length in lengths]
    known = [rng.random(length) < 0.6 for length in lengths]
    known[0][:] = False
    return X, y, known


def hidden(y, known):
    """Return labels of which only some are known."""
    return [[label if is_known else UNLABELED for label, is_known in zip(*row, strict=True)]
            for row in zip(y, known, strict=True)]  # fmt: skip


@pytest.mark.parametrize("options", [
    {}, {"min_freq": 2, "boundary_weights": True}, {"c1": 0.1, "all_possible_states": True},
    {"solver": "sgd", "max_iter": 3},
], ids=str)  # fmt: skip
@pytest.mark.filterwarnings("ignore:fit did not converge")
def test_a_token_without_a_label_is_one_of_weight_0(drawn, options):
    X, y, known = drawn
    y[1][:] = [9] * len(y[1])  # a label that only unknown tokens have
    known[1][:] = False
    model = CRFClassifier(random_state=0, **options)
    one = clone(model).fit(X, hidden(y, known))
    other = clone(model).fit(X, y, sample_weight=[row.astype(float) for row in known])
    assert one.classes_.tolist() == other.classes_.tolist() == [0, 1, 2]
    for name in ("coef_", "transitions_"):
        a, b = (getattr(fit, name) for fit in (one, other))
        np.testing.assert_array_equal(*((x.toarray() if name == "coef_" else x) for x in (a, b)))
    assert one.objective_ == other.objective_ and one.converged_ == other.converged_
    assert np.isnan([one.gap_, other.gap_]).all()


WITH_LATENT_LABELS = [
    CRFClassifier(solver="newton"), CRFClassifier(solver="dense_newton"),
    CRFClassifier(solver="sag", random_state=0), CRFClassifier(loss="softmax_margin"),
    CRFClassifier(loss="hinge", random_state=0, max_iter=30),
    MaxMarginCRF(solver="subgradient", random_state=0, max_iter=5),
    StructuredPerceptron(random_state=0), StructuredPerceptron(update=MIRA(n_best=3)),
    StructuredPerceptron(averaging="batch", max_iter=40), StructuredPerceptron(averaging="vote"),
    StructuredPerceptron(search=BeamSearch()),
]  # fmt: skip


@pytest.mark.parametrize("model", WITH_LATENT_LABELS, ids=repr)
@pytest.mark.filterwarnings("ignore:fit did not converge")
def test_models_learn_from_some_of_the_labels(model, rng):
    y = [rng.integers(0, 3, 6).tolist() for _ in range(30)]
    X = [[[f"a{label}", f"b{rng.integers(3)}"] for label in row] for row in y]
    kinds = rng.integers(0, 3, (30, 6))
    some = [[(label, UNLABELED, {label, kind})[kind] for label, kind in zip(*row, strict=True)]
            for row in zip(y, kinds, strict=True)]  # fmt: skip
    fitted = clone(model).fit(X, some)
    assert fitted.score(X, y) > 0.9
    assert np.isnan(fitted.gap_)


@pytest.mark.parametrize("model", [
    CRFClassifier(solver="oeg"), CRFClassifier(solver="gis"), MaxMarginCRF(),
    MaxMarginCRF(kernel="rbf"), MaxMarginCRF(solver="eg"), MaxMarginCRF(solver="cutting_plane"),
], ids=repr)  # fmt: skip
def test_solvers_for_convex_objectives_refuse_labels_that_are_known_in_part(model):
    with pytest.raises(ValueError, match="needs one known label for each token.*solver='"):
        model.fit([[["a"], ["b"]]] * 2, [["A", "B"], [UNLABELED, "A"]])


@pytest.mark.filterwarnings("ignore:fit did not converge")
def test_the_solver_is_chosen_by_what_is_known():
    """A hinge loss has no dual then, and L1 norms are left to OWL-QN."""
    X, y = [[["a"], ["b"]]] * 8, [["A", "B"], ["A", {"B", "C"}]] * 4
    for options in ({}, {"c1": 0.1}, {"loss": "hinge", "max_iter": 3}):
        model = CRFClassifier(random_state=0, **options).fit(X, y)
        assert model.predict(X[:1]) == [["A", "B"]] and np.isnan(model.gap_)


def test_what_an_online_learner_cannot_do_with_labels_that_are_known_in_part():
    with pytest.raises(ValueError, match="a cost counts errors against one known label"):
        StructuredPerceptron(cost="hamming").fit(
            [[["a"], ["b"]]] * 2, [["A", "B"], [UNLABELED, "A"]]
        )


def test_scores_and_searches_take_labels_that_are_known_in_part(drawn):
    X, y, known = drawn
    part = hidden(y, known)
    model = CRFClassifier().fit(X, part)
    weight = [row.astype(float) for row in known]
    assert model.score(X, part) == model.score(X, y, sample_weight=weight)
    assert get_scorer("flat_accuracy")(model, X, part) == pytest.approx(model.score(X, part))
    wrong = [[({0, 1, 2} - {label}, {label})[i % 2] for i, label in enumerate(row)]
             for row in model.predict(X)]  # fmt: skip
    assert model.score(X, wrong) == sum(len(row) // 2 for row in y) / sum(map(len, y))
    assert np.isnan(model.score(X[:1], [[UNLABELED]]))
    for cv in (3, StratifiedSequenceKFold(3)):
        scores = cross_val_score(CRFClassifier(), X[1:], part[1:], cv=cv)
        assert np.isfinite(scores).all()
    scoring = get_scorer("flat_accuracy")
    search = GridSearchCV(CRFClassifier(), {"c2": [0.1, 1.0]}, scoring=scoring, cv=2).fit(X, part)
    assert search.best_score_ > 0.0


def test_early_stopping_holds_labels_out_that_are_known_in_part(drawn):
    X, y, known = drawn
    part = hidden(y, known)
    for scoring in ("accuracy", "flat_f1_macro"):
        rules = EarlyStopping(scoring=scoring, patience=2, validation_fraction=0.5)
        model = CRFClassifier(early_stopping=rules, random_state=0)
        model.fit(X, part)
        assert model.best_score_ > 0.0
        model.fit(X, y, X_val=X, y_val=part)
        assert model.best_score_ > 0.0


def test_batches_may_be_labeled_in_part(drawn):
    X, y, known = drawn
    part = hidden(y, known)
    one = CRFClassifier(solver="sgd", random_state=0).partial_fit(X, part, classes=[0, 1, 2])
    other = CRFClassifier(solver="sgd", random_state=0).partial_fit(
        X, y, classes=[0, 1, 2], sample_weight=[row.astype(float) for row in known]
    )
    np.testing.assert_allclose(one.transitions_, other.transitions_, rtol=1e-12, atol=1e-14)
    perceptron = StructuredPerceptron(random_state=0).partial_fit(X, part, classes=[0, 1, 2])
    assert perceptron.partial_fit(X, part).score(X, part) > 0.3
    with pytest.raises(ValueError, match="position .: the label 'new' is not one of the classes"):
        perceptron.partial_fit(X[1:2], [[{0, "new"}] * len(X[1])])


def test_nothing_is_learned_from_nothing():
    X = [[["a"], ["b"]]]
    with pytest.raises(ValueError, match="no token of y has a known label"):
        CRFClassifier().fit(X, [[UNLABELED, UNLABELED]])
    with pytest.raises(ValueError, match="all are UNLABELED, or sets of all labels"):
        CRFClassifier().fit(X, [[{"A", "B"}, UNLABELED]])
    X, y = X * 2, [["A", "C"], [{"A", "B"}, UNLABELED]]  # of which the second is left: A or B
    with pytest.raises(ValueError, match="left to learn from all have no known label"):
        CRFClassifier().fit(X, y, sample_weight=[0.0, 1.0])


@pytest.mark.parametrize("n_codes", [1, 2, 33, 70])
def test_different_sets_of_labels_are_listed_once(n_codes, rng):
    allowed = rng.random((40, n_codes)) < 0.5
    allowed[20:] = allowed[rng.integers(20, size=20)]
    sets, which = Targets(np.zeros(40, np.int32), allowed).sets(n_codes)
    np.testing.assert_array_equal(sets[which], allowed)
    assert len(sets) == len(np.unique(allowed, axis=0))


def test_the_likelihood_is_that_of_all_labelings_that_are_allowed(drawn):
    """The objective of a fit, by enumeration through what the model says of whole labelings."""
    X, y, known = drawn
    y[2] = [{0, 2} if label else {0, 1} for label in y[2]]
    part = hidden(y, known)
    crf = CRFClassifier(c2=0.3, solver="lbfgs").fit(X, part)
    log_proba = []
    for tokens, labels in zip(X, part, strict=True):
        options = [[0, 1, 2] if label is UNLABELED else sorted(label if isinstance(label, set)
                   else {label}) for label in labels]  # fmt: skip
        paths = [list(path) for path in itertools.product(*options)]
        found = crf.sequence_log_proba([tokens] * len(paths), paths)
        log_proba.append(np.logaddexp.reduce(found))
    np.testing.assert_allclose(crf.sequence_log_proba(X, part), log_proba, atol=1e-12)
    impossible = [[{8, 9}] * len(X[0]), [{0, 8}] * len(X[1])]
    assert np.isneginf(crf.sequence_log_proba(X[:2], impossible)).tolist() == [True, False]
    loss = -np.sum(log_proba)
    weights = np.concatenate([crf.coef_.data, crf.transitions_.ravel()])
    np.testing.assert_allclose(crf.objective_, loss + 0.3 * weights @ weights, rtol=1e-9)


def test_every_label_of_a_set_counts_as_seen():
    X = [[{"a": 1.0}, {"b": 1.0}, {"c": 1.0}]] * 2
    y = [["A", {"A", "B"}, "B"], ["A", UNLABELED, {"A", "C"}]]
    crf = CRFClassifier().fit(X, y)
    assert set(crf.state_features_) == {
        ("a", "A"), ("b", "A"), ("b", "B"), ("c", "B"), ("c", "A"), ("c", "C")}  # fmt: skip
    assert set(crf.transition_features_) == {("A", "A"), ("A", "B"), ("B", "B")}
    fewer = CRFClassifier(min_freq=2).fit(X, y)
    assert set(fewer.state_features_) == {("a", "A")}
    open_ = [["A", UNLABELED, {"A", "B"}], [{"B", "A"}, UNLABELED, {"A", "C"}]]
    open_[0][0] = {"A", "C"}  # nothing to count, so nothing to start from but zeros
    assert np.isfinite(CRFClassifier(init="counts").fit(X, open_).objective_)
