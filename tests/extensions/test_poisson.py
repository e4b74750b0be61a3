"""Emissions of the user serve hidden Markov models as those of the package do."""

import numpy as np
import pytest
from scipy.stats import poisson

from crfkit import HMMClassifier
from crfkit.persistence import dumps, loads
from tests.extensions.poisson import Poisson, PoissonTables

RATES = np.array([[1.0, 6.0], [5.0, 2.0]])


@pytest.fixture(scope="module")
def data():
    steps, tables = [[0.9, 0.1], [0.2, 0.8]], PoissonTables(RATES)
    model = HMMClassifier.from_probabilities(
        ["a", "b"], [0.5, 0.5], steps, tables, emissions=Poisson()
    )
    return model.generate([20] * 30, random_state=0)


def test_labels_that_are_known_are_counted(data):
    X, y = data
    model = HMMClassifier(emissions=Poisson(alpha=1e-9)).fit(X, y)
    tokens, labels = np.concatenate(X), np.concatenate([np.array(each) for each in y])
    for rate, label in zip(model.emission_tables_.rate, model.classes_, strict=True):
        np.testing.assert_allclose(rate, tokens[labels == label].mean(0), rtol=1e-9)
    single = HMMClassifier(emissions=Poisson(), order=0, stop=False).fit(X, y)
    table, prior = single.emission_tables_.rate, single.start_probabilities_
    joint = np.log(prior) + poisson.logpmf(X[0][:, None], table).sum(2)
    np.testing.assert_allclose(
        single.log_likelihood(X[:1])[0], np.logaddexp(*joint.T).sum(), rtol=1e-12
    )


def test_em_rises_and_finds_the_rates(data):
    X, _ = data
    model = HMMClassifier(emissions=Poisson(), n_states=2, max_iter=20, random_state=0).fit(X)
    values = [record.value for record in model.training_log_]
    assert np.all(np.diff(values) <= 1e-9 * abs(values[0]))
    rate = model.emission_tables_.rate
    np.testing.assert_allclose(rate[np.argsort(rate[:, 0])], RATES, atol=0.5)


def test_a_crf_says_the_same_and_files_keep_it(data):
    X, y = data
    model = HMMClassifier(emissions=Poisson()).fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    proba = np.concatenate(model.predict_proba(X))
    np.testing.assert_allclose(np.concatenate(model.to_crf().predict_proba(X)), proba, atol=1e-12)
    np.testing.assert_array_equal(np.concatenate(loads(dumps(model)).predict_proba(X)), proba)
    with pytest.raises(ValueError, match="sequence 1, position 0: a value is no count"):
        model.predict([X[0], X[1] - 0.5])
