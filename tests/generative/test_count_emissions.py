"""Emissions of counts and of attributes: scikit-learn's naive Bayes, draws, tables of files."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, MultinomialNB

from crfkit import HMMClassifier, PackedSequences
from crfkit.generative import Additive
from crfkit.generative.emissions import Bernoulli, Categorical, Multinomial
from tests.sampling import examples

K, D = 3, 4
MODELS = {"multinomial": (Multinomial, MultinomialNB), "bernoulli": (Bernoulli, BernoulliNB)}
FORMS = ("dense", "sparse", "both")


def packed(rows, form="sparse"):
    blocks = {
        "dense": {"dense": rows},
        "sparse": {"sparse": sp.csr_array(rows)},
        "both": {"sparse": sp.csr_array(rows[:, :1]), "dense": rows[:, 1:]},
    }
    return PackedSequences(**blocks[form], offsets=[0, len(rows)])


def fitted(emission, data, codes, weight):
    statistics = emission.count_labels(data, codes.astype(np.int32), weight, K)
    return emission.estimate(statistics, data)


def scores(emission, tables, data):
    out = np.zeros((data.n_tokens, K))
    emission.scores(tables, data, slice(0, data.n_tokens), out)
    return out


@pytest.mark.parametrize("model", MODELS)
@examples(10)
@given(
    arrays(float, (7, D), elements=st.integers(0, 3).map(float)),
    st.sampled_from([1.0, 0.3]),
    st.sampled_from(FORMS),
)
def test_naive_bayes_is_that_of_scikit_learn(model, rows, alpha, form):
    kind, reference = MODELS[model]
    codes, weight = np.array([0, 1, 2, 0, 1, 2, 0]), np.linspace(0.5, 2.0, 7)
    data, emission = packed(rows, form), kind(alpha=alpha)
    emission.check(data)
    tables = fitted(emission, data, codes, weight)
    emission.check_tables(tables, K, D)
    expected = reference(alpha=alpha, force_alpha=True).fit(rows, codes, weight)
    found = scores(emission, tables, data) + expected.class_log_prior_
    assert np.allclose(found, expected.predict_joint_log_proba(rows), rtol=1e-12, atol=1e-12)
    parts = [
        emission.count(data, tokens, (np.eye(K)[codes] * weight[:, None])[tokens])
        for tokens in (slice(0, 3), slice(3, 7))
    ]
    added = tuple(a + b for a, b in zip(*parts, strict=True))
    assert all(
        np.allclose(a, b) for a, b in zip(tables, emission.estimate(added, data), strict=True)
    )


def test_categorical_naive_bayes_is_that_of_scikit_learn():
    rng = np.random.RandomState(0)
    rows, codes = rng.randint(0, 4, (50, 2)), rng.randint(0, K, 50)
    emission = Categorical(alpha=0.7)
    data = emission.vectorizer().fit_transform([rows])
    tables = fitted(emission, data, codes, np.ones(50))
    expected = CategoricalNB(alpha=0.7, min_categories=5).fit(rows, codes)
    found = scores(emission, tables, data) + expected.class_log_prior_
    assert np.allclose(found, expected.predict_joint_log_proba(rows), rtol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_scores_are_linear_and_draws_are_of_their_labels(model):
    rng = np.random.RandomState(0)
    rows, codes = rng.randint(0, 2, (40, D)).astype(float), rng.randint(0, K, 40)
    emission, data = MODELS[model][0](), packed(rows)
    tables = fitted(emission, data, codes, np.ones(40))
    linear = emission.linear(tables)
    assert np.allclose(
        rows @ linear.coef.toarray() + linear.constant, scores(emission, tables, data)
    )
    labels = np.repeat(np.arange(K, dtype=np.int32), 1500)
    drawn = emission.draw(tables, labels, np.random.RandomState(1), None)
    again = fitted(emission, packed(drawn.toarray()), labels, np.ones(len(labels)))
    assert np.abs(np.exp(again[0]) - np.exp(tables[0])).max() < 0.04
    start = emission.initial(data, K, np.random.RandomState(0))
    emission.check_tables(start, K, D)
    assert len(np.unique(start[0][0])) == K
    statistics = emission.count_labels(data, codes.astype(np.int32), np.ones(40), K)
    larger = emission.extend(statistics, np.arange(1, D + 1), D + 1)
    assert np.array_equal(larger[0][1:], statistics[0]) and not larger[0][0].any()
    for part in (tables[0] + 1.0, tables[0][1:], tables[0].astype(np.float32)):
        with pytest.raises(ValueError, match=r"probabilit|array"):
            emission.check_tables(type(tables)(part, *tables[1:]), K, D)


@pytest.mark.parametrize("model", MODELS)
def test_priors_make_smoothing_the_most_probable_estimate(model):
    rng = np.random.RandomState(0)
    rows, codes = rng.randint(0, 2, (40, D)).astype(float), rng.randint(0, K, 40)
    emission, data = MODELS[model][0](alpha=0.6), packed(rows)
    best = fitted(emission, data, codes, np.ones(40))

    def value(tables):
        found = scores(emission, tables, data)[np.arange(40), codes].sum()
        return found + emission.log_prior(tables)

    for step in (1e-3, -1e-3):
        other = np.exp(best[0])
        other[0] += step
        if model == "multinomial":
            changed = best._replace(logs=np.log(other / other.sum(axis=0)))
        else:
            changed = best._replace(present=np.log(other), absent=np.log1p(-other))
        assert value(changed) < value(best)


def test_errors():
    negative = packed(np.array([[0.0, 1.0], [0.0, -2.0]]))
    with pytest.raises(ValueError, match="sequence 0, position 1, feature 1: the value is -2"):
        Multinomial().check(negative)
    Bernoulli().check(negative)
    counts = packed(np.array([[0.0, 2.0], [1.0, 0.0]]))
    tables = fitted(Bernoulli(), counts, np.array([0, 1]), np.ones(2))
    with pytest.raises(ValueError, match="linear function of values that are 0 and 1"):
        Bernoulli().linear(tables)
    with pytest.raises(ValueError, match="alpha"):
        fitted(Bernoulli(alpha=0.0), counts, np.array([0, 1]), np.ones(2))
    exact = fitted(Multinomial(alpha=0.0), counts, np.array([0, 1]), np.ones(2))
    assert np.array_equal(np.exp(exact.logs), [[0, 1, 0.5], [1, 0, 0.5]])


@pytest.mark.parametrize("model", [*MODELS, "categorical"])
def test_hidden_markov_models_without_transitions_are_naive_bayes(model):
    rng = np.random.RandomState(0)
    rows, codes = rng.randint(0, 3, (40, D)), rng.randint(0, K, 40)
    classes = np.array(["a", "b", "c"])
    if model == "categorical":
        emission, expected = Categorical(alpha=1.0), CategoricalNB(min_categories=4)
    else:
        emission, expected = (kind() for kind in MODELS[model])
        rows = sp.csr_array(rows.astype(float))
    expected.fit(rows, codes)
    X, y = [rows[:15], rows[15:]], [classes[codes[:15]], classes[codes[15:]]]
    bayes = HMMClassifier(order=0, emissions=emission, smoothing=Additive(alpha=0)).fit(X, y)
    found = np.log(np.concatenate(bayes.predict_proba(X)))
    assert np.abs(found - expected.predict_log_proba(rows)).max() < 1e-10
    joint = expected.predict_joint_log_proba(rows)
    logs = np.logaddexp.reduce(joint, axis=1)
    assert np.abs(bayes.log_likelihood(X) - [logs[:15].sum(), logs[15:].sum()]).max() < 1e-10
