"""Labels given the label before, and labels of single tokens."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from crfkit import (
    CRFClassifier,
    EarlyStopping,
    MEMMClassifier,
    SequenceVectorizer,
    SoftLabels,
    TokenClassifier,
    TransitionFeatures,
    TreeFeatures,
)
from crfkit.constraints import Ends
from crfkit.datasets import make_label_bias_data
from crfkit.persistence import dumps, loads
from crfkit.solvers import OEG, SAG, SGD, SOLVERS, DenseNewton
from tests.estimators.test_partial_fit import Steps
from tests.estimators.test_trees import FEATURES, treebank


def make(seed=0, count=25, longest=6):
    """Words and labels that depend on them and on the label before."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in rng.integers(1, longest + 1, count):
        words = rng.integers(4, size=length).tolist()
        labels = []
        for word in words:
            labels.append((word + labels[-1]) % 3 if labels and rng.random() < 0.8 else word % 3)
        X.append([{"w": str(word), "bias": True} for word in words])
        y.append([f"L{label}" for label in labels])
    return X, y


X, Y = make()
EVERYTHING = {"all_possible_states": True}
EACH = {**EVERYTHING, "all_possible_transitions": True}
TIGHT = DenseNewton(tol=0.0, gtol=1e-12)


def stack(rows):
    return np.concatenate([np.asarray(row) for row in rows])


def logistic_regression(data, y, c2):
    model = LogisticRegression(
        C=1 / (2 * c2), fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cg"
    )
    return model.fit(data.to_csr(), stack(y))


def test_single_tokens_are_logistic_regression():
    data = SequenceVectorizer().fit_transform(X)
    ours = TokenClassifier(c2=0.2, solver=TIGHT, **EVERYTHING).fit(data, Y)
    theirs = logistic_regression(data, Y, 0.2)
    np.testing.assert_allclose(ours.coef_.toarray(), theirs.coef_.T, atol=1e-9)
    proba = stack(ours.predict_proba(data))
    np.testing.assert_allclose(proba, theirs.predict_proba(data.to_csr()), atol=1e-9)
    # ... and a CRF of sequences that have no transitions
    alone, labels = [[t] for s in X for t in s], [[label] for s in Y for label in s]
    crf = CRFClassifier(c2=0.2, solver=TIGHT, **EVERYTHING).fit(alone, labels)
    np.testing.assert_allclose(crf.coef_.toarray(), ours.coef_.toarray(), atol=1e-9)
    crf = CRFClassifier().fit(X, Y)
    crf.coef_, crf.transitions_ = ours.coef_, np.zeros((3, 3))
    np.testing.assert_allclose(stack(crf.predict_proba(X)), proba, atol=1e-12)


def test_sequences_of_one_token_are_logistic_regression():
    alone, labels = [[t] for s in X for t in s], [[label] for s in Y for label in s]
    data = SequenceVectorizer().fit_transform(alone)
    memm = MEMMClassifier(c2=0.2, solver=TIGHT, **EACH).fit(data, labels)
    theirs = logistic_regression(data, labels, 0.2)
    np.testing.assert_allclose(memm.coef_.toarray(), theirs.coef_.T, atol=1e-9)
    assert not memm.transitions_.any()
    crf = CRFClassifier(c2=0.2, solver=TIGHT, **EACH).fit(data, labels)
    np.testing.assert_allclose(memm.coef_.toarray(), crf.coef_.toarray(), atol=1e-9)


def test_labels_given_those_before_are_logistic_regression_of_rewritten_tokens():
    rows, labels = [], []
    for tokens, row in zip(X, Y, strict=True):
        for t, (token, label) in enumerate(zip(tokens, row, strict=True)):
            more = (
                {"before": row[t - 1], "w|before": token["w"] + row[t - 1]} if t else {"first": 1}
            )
            rows.append([token | more])
            labels.append([label])
    data = SequenceVectorizer().fit_transform(rows)
    theirs = logistic_regression(data, labels, 0.2)
    steps = TransitionFeatures(SequenceVectorizer())
    words = [[{"w": token["w"]} for token in tokens] for tokens in X]
    packed = (
        SequenceVectorizer()
        .fit_transform(X)
        .with_transitions(steps.fit_transform(words).transitions)
    )
    memm = MEMMClassifier(c2=0.2, solver=TIGHT, boundary_weights=True, **EACH).fit(packed, Y)
    ours = memm.sequence_log_proba(packed, Y)
    told = theirs.predict_log_proba(data.to_csr())
    classes = theirs.classes_.tolist()
    each = [told[n, classes.index(label)] for n, (label,) in enumerate(labels)]
    lengths = np.cumsum([len(row) for row in Y])[:-1]
    np.testing.assert_allclose(ours, [sum(part) for part in np.split(each, lengths)], atol=1e-9)


def test_attributes_of_transitions_that_are_too_rare_for_weights_change_nothing():
    data = SequenceVectorizer().fit_transform(X)
    rare = [[{"at": f"{s} {t}"} for t, _ in enumerate(tokens)] for s, tokens in enumerate(X)]
    steps = TransitionFeatures(SequenceVectorizer()).fit_transform(rare).transitions
    memm = MEMMClassifier(c2=0.2, min_freq=2)
    plain = np.concatenate(memm.fit(data, Y).predict_proba(data))
    memm.fit(data.with_transitions(steps), Y)
    assert memm.transition_coef_.nnz == 0
    more = np.concatenate(memm.predict_proba(data.with_transitions(steps)))
    np.testing.assert_allclose(more, plain, rtol=1e-12)


def test_all_questions_are_those_of_one_distribution():
    memm = MEMMClassifier(c2=0.1, boundary_weights=True).fit(X, Y)
    new, classes = make(1, 4, 4)[0], memm.classes_.tolist()
    for tokens, proba, entropy in zip(new, memm.predict_proba(new), memm.entropy(new), strict=True):
        paths = [list(path) for path in itertools.product(classes, repeat=len(tokens))]
        shares = np.exp(memm.sequence_log_proba([tokens] * len(paths), paths))
        np.testing.assert_allclose(shares.sum(), 1.0, atol=1e-12)
        np.testing.assert_allclose(-(shares @ np.log(shares)), entropy, atol=1e-10)
        expected = [[shares @ [p[t] == c for p in paths] for c in classes]
                    for t in range(len(tokens))]  # fmt: skip
        np.testing.assert_allclose(proba, expected, atol=1e-12)
        best = paths[int(shares.argmax())]
        assert memm.predict([tokens])[0] == best == memm.predict_n_best([tokens], 2)[0][0].labels
        once = memm.predict_proba([tokens], constraints=Ends(last=["L1"]))[0]
        kept = shares * [path[-1] == "L1" for path in paths]
        expected = [[kept @ [p[t] == c for p in paths] for c in classes]
                    for t in range(len(tokens))]  # fmt: skip
        np.testing.assert_allclose(once, np.array(expected) / kept.sum(), atol=1e-10)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize(
    "estimator", [MEMMClassifier(**EACH), TokenClassifier(**EVERYTHING)], ids=str
)
def test_every_solver_comes_to_the_optimum(estimator, solver):
    estimator.set_params(c2=1.0, solver=TIGHT)
    best = estimator.fit(X, Y).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are slow
        chosen = {"oeg": OEG(tol=1e-8), "sag": SAG(tol=1e-8), "sgd": SGD(max_iter=200)}.get(
            solver, solver
        )
        found = estimator.set_params(solver=chosen).fit(X, Y).objective_
    np.testing.assert_allclose(found, best, rtol=1e-3 if solver == "sgd" else 1e-6)
    assert found >= best - 1e-9 * best


def test_the_label_bias():
    """Lafferty, McCallum and Pereira (2001), section 5.1."""
    train, test = (make_label_bias_data(n, random_state=n) for n in (1000, 500))
    memm = MEMMClassifier(**EACH).fit(train.X, train.y)
    crf = CRFClassifier(init=memm, **EACH).fit(train.X, train.y)
    assert memm.score(test.X, test.y) <= 0.70 and crf.score(test.X, test.y) >= 0.94


def test_a_crf_that_starts_from_one_comes_to_its_optimum_sooner():
    memm = MEMMClassifier(c2=0.1, **EACH).fit(X, Y)
    crf, cold = (
        CRFClassifier(c2=0.1, init=init, solver="lbfgs", **EACH).fit(X, Y)
        for init in (memm, "zeros")
    )
    np.testing.assert_allclose(crf.objective_, cold.objective_, rtol=1e-6)
    assert crf.n_iter_ <= cold.n_iter_
    back = MEMMClassifier(c2=0.1, init=crf, **EACH).fit(X, Y)
    np.testing.assert_allclose(back.objective_, memm.objective_, rtol=1e-6)


@pytest.mark.parametrize("estimator", [MEMMClassifier(), TokenClassifier()], ids=str)
def test_a_fit_goes_on_from_the_last_one_and_stops_early(estimator):
    estimator.set_params(warm_start=True, solver="lbfgs").fit(X, Y)
    again = estimator.n_iter_, estimator.fit(X, Y).n_iter_
    assert again[1] < again[0] / 2
    rules = EarlyStopping(patience=2, validation_fraction=0.4)
    dense = [np.array([[float(t["w"] == str(w)) for w in range(4)] for t in s]) for s in X]
    part = estimator.set_params(warm_start=False, early_stopping=rules).fit(dense, Y)
    assert part.best_score_ == max(part.validation_scores_.values()) > 0.4


def test_soft_labels_that_are_certain_are_labels():
    hard, soft = (MEMMClassifier(**EACH).fit(X, y) for y in (Y, SoftLabels.from_labels(Y)))
    np.testing.assert_allclose(soft.transitions_, hard.transitions_, atol=1e-5)


def test_labels_of_parents_are_learned():
    train, test = treebank(60), treebank(30, seed=1)
    data = FEATURES.fit_transform(train[0])
    memm = loads(dumps(MEMMClassifier(c2=0.01).fit(data, train[1])))
    assert memm.score(FEATURES.transform(test[0]), test[1]) > 0.95
    tokens = loads(dumps(TokenClassifier(c2=0.01).fit(data, train[1])))
    assert tokens.score(FEATURES.transform(test[0]), test[1]) < 0.9


def test_passes_over_the_same_data_are_the_iterations_of_a_fit():
    for dense in (False, True):
        X_used = [np.array([[float(t["w"] == str(w)) for w in range(4)] for t in s]) for s in X]
        data = X_used if dense else X
        for cls in (MEMMClassifier, TokenClassifier):
            fitted = cls(solver=Steps(max_iter=3)).fit(data, Y)
            passes = cls(solver=Steps())
            for _ in range(3):
                passes.partial_fit(data, Y, classes=["L0", "L1", "L2"])
            np.testing.assert_allclose(passes.coef_.toarray(), fitted.coef_.toarray(), atol=1e-12)
            np.testing.assert_allclose(passes.transitions_, fitted.transitions_, atol=1e-12)


def test_many_labels_are_read_as_few():
    rng = np.random.default_rng(0)
    y = [[int(rng.integers(60)) for _ in row] for row in [*X, *X, *X]]
    data = [*X, *X, *X]
    memm = MEMMClassifier(c2=1.0).fit(data, y)
    path = memm.predict(data[:3])
    every = memm.classes_.tolist()
    log_p = memm.sequence_log_proba([data[0][:1]] * 60, [[label] for label in every])
    np.testing.assert_allclose(np.exp(log_p).sum(), 1.0)
    two = data[0][:2]
    pairs = [list(pair) for pair in itertools.product(every, repeat=2)]
    np.testing.assert_allclose(
        np.exp(memm.sequence_log_proba([two] * len(pairs), pairs)).sum(), 1.0
    )
    assert len(path[0]) == len(data[0])


def test_tree_features_are_taken_by_the_parameter():
    features = TreeFeatures(SequenceVectorizer(), parent="head", first=1)
    X_train, y_train = treebank(10)
    model = MEMMClassifier(features=features).fit(X_train, y_train)
    assert model.predict(X_train[:2]) == loads(dumps(model)).predict(X_train[:2])
