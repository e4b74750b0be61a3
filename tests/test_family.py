"""Naive Bayes is to logistic regression as hidden Markov models are to CRFs (Wang's figure 1).

One small corpus; two features a token that overlap, so that the four models differ.
"""

import numpy as np
import pytest
from scipy.special import softmax

from crfkit import CRFClassifier, HMMClassifier, TokenClassifier
from crfkit.generative import Additive
from crfkit.solvers import LBFGS

LABELS = ["A", "B", "C"]
EVERY = {"all_possible_states": True}
EXACT = LBFGS(tol=0.0, gtol=1e-9)


def corpus(seed, count):
    """Labels that stay or go on; words that mostly tell them, their sounds, an attribute of all."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        label, rows, labels = int(rng.integers(3)), [], []
        for _ in range(rng.integers(1, 6)):
            label = (label + int(rng.random() < 0.4)) % 3
            word = int(rng.integers(9)) if rng.random() < 0.4 else 3 * int(rng.integers(3)) + label
            rows.append(["any", f"word:{word}", f"sound:{word % 4}"])
            labels.append(LABELS[label])
        X.append(rows)
        y.append(labels)
    return X, y


X, Y = corpus(0, 60)
X_NEW, Y_NEW = corpus(1, 20)


def generative(order, **parameters):
    return HMMClassifier(order=order, emissions="multinomial", **parameters)


def single(X, y):
    """Each token as a sequence of its own."""
    return [[token] for row in X for token in row], [[label] for row in y for label in row]


def assert_same_posterior(one, other, X=X_NEW, y=Y_NEW):
    for ours, theirs in zip(one.predict_proba(X), other.predict_proba(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    found, expected = (model.sequence_log_proba(X, y) for model in (one, other))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert one.predict(X) == other.predict(X)


@pytest.fixture(scope="module")
def bayes():
    return generative(0).fit(X, Y)


@pytest.fixture(scope="module")
def hmm():
    return generative(1).fit(X, Y)


@pytest.fixture(scope="module")
def regression():
    return TokenClassifier(c2=0.05, solver=EXACT, **EVERY).fit(X, Y)


@pytest.fixture(scope="module")
def crf():
    return CRFClassifier(
        c2=0.05, solver=EXACT, boundary_weights=True, all_possible_transitions=True, **EVERY
    ).fit(X, Y)


def test_each_generative_model_is_a_linear_one(bayes, hmm):
    """From the left to the right of the square: the same posterior, with other weights of it."""
    for model in (bayes, hmm):
        linear = model.to_crf()
        assert type(linear) is CRFClassifier
        assert_same_posterior(model, linear)
    assert not np.ptp(bayes.to_crf().transitions_, axis=0).any()  # whatever the label before
    assert np.ptp(hmm.to_crf().transitions_, axis=0).min() > 0.5


def test_without_transitions_a_hidden_markov_model_is_naive_bayes(bayes, hmm):
    """From the bottom to the top, on the left: the next label has its share, whatever came."""
    left = generative(1, stop=False).fit(X, Y)
    left.start_probabilities_ = bayes.start_probabilities_
    left.transition_probabilities_ = np.tile(bayes.start_probabilities_, (3, 1))
    assert_same_posterior(left, bayes)
    with pytest.raises(AssertionError):
        assert_same_posterior(hmm, bayes)
    # Emissions are counted in the same way in both.
    for ours, theirs in zip(hmm.emission_tables_, bayes.emission_tables_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_without_transitions_a_crf_is_logistic_regression(crf, regression):
    """On the right: the weights that are left are those of a softmax for each token."""
    zeros = np.zeros(3)
    dropped = CRFClassifier(init=crf, max_iter=0, solver=LBFGS(gtol=0.0), **EVERY)
    with pytest.warns(match="max_iter=0"):
        dropped.fit(X, Y)
    dropped.transitions_ = np.zeros((3, 3))
    np.testing.assert_array_equal(dropped.start_weights_, zeros)
    packed = dropped.vectorizer_.transform(X_NEW)
    found = softmax(packed.sparse @ dropped.coef_.toarray(), axis=1)
    np.testing.assert_allclose(
        np.concatenate(dropped.predict_proba(X_NEW)), found, rtol=0, atol=1e-12
    )
    dropped.coef_ = regression.coef_
    assert_same_posterior(dropped, regression)
    # Fitted without transitions, it has the optimum of logistic regression.
    tokens = single(X, Y)
    alone = CRFClassifier(c2=0.05, solver=EXACT, **EVERY).fit(*tokens)
    np.testing.assert_allclose(alone.objective_, regression.objective_, rtol=1e-10)
    np.testing.assert_allclose(alone.coef_.toarray(), regression.coef_.toarray(), atol=1e-6)


def test_sequences_of_one_token_are_the_upper_row():
    tokens, labels = single(X, Y)
    new = single(X_NEW, Y_NEW)
    assert_same_posterior(
        generative(1, smoothing=Additive(alpha=0)).fit(tokens, labels),
        generative(0, smoothing=Additive(alpha=0)).fit(X, Y),
        *new,
    )
    chain = CRFClassifier(c2=0.05, solver=EXACT, **EVERY).fit(tokens, labels)
    alone = TokenClassifier(c2=0.05, solver=EXACT, **EVERY).fit(X, Y)
    np.testing.assert_allclose(
        np.concatenate(chain.predict_proba(new[0])),
        np.concatenate(alone.predict_proba(X_NEW)),
        rtol=0,
        atol=1e-7,
    )


def test_each_model_is_the_best_of_its_row_and_column_by_its_own_measure():
    """Generative models by log P(x, y), discriminative ones by log P(y | x), on what was learned.

    The discriminative partner starts from the weights of the generative one.
    """
    by_counts = [generative(order, stop=False).fit(X, Y) for order in (0, 1)]
    joint = [model.log_likelihood(X, Y).sum() for model in by_counts]
    assert joint[1] > joint[0] + 1.0
    starts = [model.to_crf() for model in by_counts]
    conditional = [model.sequence_log_proba(X, Y).sum() for model in starts]
    options = {"c2": 0.0, "solver": "lbfgs", **EVERY}
    regression = TokenClassifier(init=starts[0], **options).fit(X, Y)
    options |= {"boundary_weights": True, "all_possible_transitions": True}
    crf = CRFClassifier(init=starts[1], **options).fit(X, Y)
    np.testing.assert_allclose(crf.training_log_[0].value, -conditional[1], rtol=1e-10)
    learned = [model.sequence_log_proba(X, Y).sum() for model in (regression, crf)]
    for row in (0, 1):
        assert learned[row] > conditional[row] + 1.0
    assert learned[1] > learned[0] + 1.0
    # What the discriminative models say of labels, these say without a model of tokens.
    assert not hasattr(crf, "log_likelihood")
