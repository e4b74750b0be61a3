"""Estimators on trees: whatever learns from chains learns from forests."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline

from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    MaxMarginCRF,
    SemiMarkovCRF,
    SequenceVectorizer,
    StructuredPerceptron,
    TreeFeatures,
)
from crfkit.data import Forest
from crfkit.inference import BeamSearch
from crfkit.io import conllu_features_and_labels, read_conllu
from crfkit.losses import LOSSES
from crfkit.persistence import dumps, loads
from crfkit.solvers import SOLVERS
from crfkit.solvers.margin import BlockFrankWolfe
from crfkit.structures import MissingCapabilityError


def treebank(count, seed=0):
    """Labels that depend on the word and on the label of the parent, not on the token before."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        length = int(rng.integers(1, 8))
        order, heads, labels = rng.permutation(length).tolist(), [0] * length, [0] * length
        words = rng.integers(3, size=length).tolist()
        for place, t in enumerate(order):
            up = order[rng.integers(place)] if place else None
            heads[t] = 0 if up is None else up + 1
            labels[t] = words[t] if up is None or words[t] else (labels[up] + 1) % 3
        X.append([{"w": str(w), "head": h} for w, h in zip(words, heads, strict=True)])
        y.append([f"L{label}" for label in labels])
    return X, y


X, Y = treebank(60)
FEATURES = TreeFeatures(SequenceVectorizer(), parent="head", first=1)
DATA = FEATURES.fit_transform(X)


def test_labels_of_parents_are_learned():
    new, truth = treebank(40, seed=1)
    packed = FEATURES.transform(new)
    margin = MaxMarginCRF(C=3.0, solver=BlockFrankWolfe(tol=0.05))
    for estimator in (CRFClassifier(c2=0.01), StructuredPerceptron(), margin):
        tree = clone(estimator).fit(DATA, Y).score(packed, truth)
        chain = estimator.fit(DATA.with_topology(None), Y)
        assert tree > 0.95 and tree > chain.score(packed.with_topology(None), truth) + 0.1


def test_a_path_is_fitted_as_a_chain():
    plain = DATA.with_topology(None)
    offsets = plain.offsets
    before = np.arange(plain.n_tokens) - np.repeat(offsets[:-1], plain.lengths) - 1
    path = plain.with_topology(Forest(before, offsets))
    for options in ({}, {"boundary_weights": True}, {"solver": "newton"}):
        chain, tree = (CRFClassifier(**options).fit(data, Y) for data in (plain, path))
        np.testing.assert_allclose(tree.objective_, chain.objective_, rtol=1e-9)
        np.testing.assert_allclose(tree.transitions_, chain.transitions_, atol=1e-4)
        ours, theirs = tree.predict_proba(path[:5]), chain.predict_proba(plain[:5])
        np.testing.assert_allclose(np.vstack(ours), np.vstack(theirs), atol=1e-4)


@pytest.mark.parametrize("solver", sorted({*SOLVERS} - {"iis"}))  # as gis, but slower
def test_every_solver_comes_to_the_optimum(solver):
    best = CRFClassifier(c2=1.0).fit(DATA, Y).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are slow
        found = CRFClassifier(c2=1.0, solver=solver).fit(DATA, Y)
    np.testing.assert_allclose(found.objective_, best, rtol=1e-2)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_is_learned(loss):
    count = 30 if loss == "hinge" else len(Y)  # its solver is not compiled for forests
    data, y = DATA[:count], Y[:count]
    found = CRFClassifier(loss=loss, c2=0.03).fit(data, y).score(data, y)
    # Labels whose neighbors are known are no more than a hint at those of whole trees.
    assert found > (0.9 if loss == "pseudolikelihood" else 0.96)


def test_results_do_not_depend_on_the_number_of_threads():
    one, two = (CRFClassifier(n_jobs=n).fit(DATA, Y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_.toarray(), two.coef_.toarray())
    np.testing.assert_array_equal(one.transitions_, two.transitions_)


def test_models_are_copied_and_saved_with_their_structure():
    crf = CRFClassifier(boundary_weights=True).fit(DATA, Y)
    for again in (loads(dumps(crf)), pickle.loads(pickle.dumps(crf))):
        assert again.predict(DATA) == crf.predict(DATA)
    assert loads(dumps(DATA)) == DATA


def test_scikit_learn_takes_trees_apart():
    model = make_pipeline(clone(FEATURES), CRFClassifier())
    search = GridSearchCV(model, {"crfclassifier__c2": [0.1, 10.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"crfclassifier__c2": 0.1}
    assert len(cross_val_predict(CRFClassifier(), DATA, Y, cv=3)) == len(Y)
    assert CRFClassifierCV(c2s=[0.1, 10.0], cv=3).fit(DATA, Y).c2_ == 0.1
    assert CRFClassifier(early_stopping=True).fit(DATA, Y).score(DATA, Y) > 0.7


def test_what_reads_chains_alone_says_so():
    segments = SemiMarkovCRF(scheme="runs").fit(DATA.with_topology(None), Y)
    kernel = MaxMarginCRF(kernel="rbf").fit(DATA.with_topology(None), Y)
    for estimator in (segments, kernel):
        for ask in (lambda e: e.predict(DATA), lambda e: clone(e).fit(DATA, Y)):
            with pytest.raises(ValueError, match="X has a Forest, which a model of .* cannot use"):
                ask(estimator)
    with pytest.raises(MissingCapabilityError, match="Tree has no search with a beam"):
        StructuredPerceptron(search=BeamSearch(width=2)).fit(DATA, Y)
    crf = CRFClassifier().fit(DATA, Y)
    with pytest.raises(ValueError, match="does not say which token each transition comes from"):
        crf.predict(DATA.with_topology(None))


def test_training_of_a_known_tree(data_home):
    """Two equal trees of 10 tokens: objective, probability and marginals of another program."""
    folder = data_home / "graphs_small" / "tree_training"
    tokens = [line.split("\t") for line in (folder / "test_tree_2.input").read_text().split("\n")]
    tokens = [row for row in tokens if len(row) > 1][:10]
    x = [{"head": None if up == "_" else int(up), **dict.fromkeys(own, True)}
         for _, _, up, *own in tokens]  # fmt: skip
    y = [label for label, *_ in tokens]
    data = TreeFeatures(SequenceVectorizer(), parent="head").fit_transform([x, x])
    crf = CRFClassifier(c2=1.0).fit(data, [y, y])
    np.testing.assert_allclose(crf.objective_, 12.428445, atol=1e-6)
    np.testing.assert_allclose(np.exp(crf.sequence_log_proba(data, [y, y])), 0.0284238, atol=1e-6)
    lines = (folder / "test_tree_2_1.expected").read_text().split("\n")[1:11]
    proba = crf.predict_proba(data)[0]
    for t, (label, known) in enumerate(line.split(":") for line in lines):
        found = proba[t, crf.classes_.tolist().index(label)]
        np.testing.assert_allclose(found, float(known), atol=2e-6)
        assert label == y[t]


def test_dependency_trees(data_home):
    """Parts of speech of parents tell of those of children."""
    sentences = read_conllu(data_home / "ud_english_ewt" / "en_ewt-ud-dev.conllu.gz")[:400]
    X, y = conllu_features_and_labels(sentences, fields=["form", "head"])
    features = TreeFeatures(SequenceVectorizer(), parent="head", first=1)
    train, test = features.fit_transform(X[:300]), features.transform(X[300:])
    crf = CRFClassifier(c2=0.5).fit(train, y[:300])
    alone = CRFClassifier(c2=0.5)
    roots = Forest(np.full(train.n_tokens, -1), train.offsets)
    alone.fit(train.with_topology(roots), y[:300])
    apart = test.with_topology(Forest(np.full(test.n_tokens, -1), test.offsets))
    assert crf.score(test, y[300:]) > alone.score(apart, y[300:]) + 0.02
