"""Normally distributed tokens: densities, moments, estimates and priors."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from crfkit.data import PackedSequences
from crfkit.generative.emissions.gaussian import (
    COVARIANCES,
    Gaussian,
    GaussianTables,
    full_covariances,
)
from tests.sampling import examples

EVERY = pytest.mark.parametrize("covariance", COVARIANCES)


def drawn(n_labels, n_features, seed=0, n_tokens=60, offset=0.0):
    """Return data of random tokens, their labels and weights."""
    random = np.random.RandomState(seed)
    codes = np.append(np.arange(n_labels), random.randint(0, n_labels, n_tokens - n_labels))
    rows = random.standard_normal((n_tokens, n_features)) + 2.0 * codes[:, None] + offset
    data = PackedSequences.from_flat(rows, [n_tokens // 3, n_tokens - n_tokens // 3])
    return data, codes.astype(np.int32), random.uniform(0.1, 2.0, n_tokens)


def fitted(covariance, prior, data, codes, weight, n_labels):
    normal = Gaussian(covariance, prior)
    tables = normal.estimate(normal.count_labels(data, codes, weight, n_labels), data)
    normal.check_tables(tables, n_labels, data.n_features)
    return normal, tables


@EVERY
@pytest.mark.parametrize(("n_labels", "n_features"), [(1, 1), (3, 2), (8, 3), (10, 5)])
def test_densities_are_those_of_scipy(covariance, n_labels, n_features):
    data, codes, weight = drawn(n_labels, n_features)
    normal, tables = fitted(covariance, 0.5, data, codes, weight, n_labels)
    out = np.ones((25, n_labels))
    normal.scores(tables, data, slice(7, 32), out)
    full = full_covariances(tables, covariance)
    for k in range(n_labels):
        density = scipy.stats.multivariate_normal(tables.mean[k], full[k])
        np.testing.assert_allclose(out[:, k] - 1.0, density.logpdf(data.dense[7:32]), rtol=1e-11)


@EVERY
def test_estimates_of_maximum_likelihood(covariance):
    data, codes, weight = drawn(4, 3)
    _, tables = fitted(covariance, 0.0, data, codes, weight, 4)
    parts = [(data.dense[codes == k], weight[codes == k]) for k in range(4)]
    mean = np.array([np.average(rows, axis=0, weights=w) for rows, w in parts])
    scatter = [np.cov(rows.T, aweights=w, ddof=0) * w.sum() for rows, w in parts]
    of_each = np.array([each / w.sum() for each, (_, w) in zip(scatter, parts, strict=True)])
    expected = {
        "full": of_each,
        "diag": np.array([np.diag(each) for each in of_each]),
        "tied": sum(scatter) / weight.sum(),
        "spherical": np.array([np.trace(each) / 3.0 for each in of_each]),
    }
    np.testing.assert_allclose(tables.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(tables.covariance, expected[covariance], rtol=1e-12, atol=1e-14)


@EVERY
@given(prior=st.floats(0.01, 30.0), seed=st.integers(0, 50))
@examples(10)
def test_no_other_covariance_is_more_probable(covariance, prior, seed):
    data, codes, weight = drawn(2, 2, seed, n_tokens=12)
    normal, tables = fitted(covariance, prior, data, codes, weight, 2)

    def value(tables):
        scores = np.zeros((12, 2))
        normal.scores(tables, data, slice(0, 12), scores)
        return weight @ scores[np.arange(12), codes] + normal.log_prior(tables)

    best, random = value(tables), np.random.RandomState(seed)
    for size in (1e-3, 0.1):
        other = tables.covariance * random.uniform(1.0 - size, 1.0 + size, tables.covariance.shape)
        if covariance in ("full", "tied"):
            other = (other + np.swapaxes(other, -1, -2)) / 2.0
        moved = tables.mean + size * random.standard_normal(tables.mean.shape)
        assert value(tables._replace(covariance=other)) <= best + 1e-9
        assert value(tables._replace(mean=moved)) <= best + 1e-9


@EVERY
def test_moments_add_up_far_from_zero(covariance):
    data, codes, weight = drawn(3, 2, offset=1e6)
    near = PackedSequences.from_flat(data.dense - 1e6, data.lengths)
    normal, (first, tokens) = Gaussian(covariance, 0.0), (slice(0, 20), slice(20, 60))
    shares = np.random.RandomState(1).dirichlet(np.ones(3), 60) * weight[:, None]
    parts = [normal.count(data, each, shares[each])[0] for each in (first, tokens)]
    whole = normal.count(near, slice(0, 60), shares)[0]
    for added in (parts[0] + parts[1], parts[1] + parts[0]):
        np.testing.assert_allclose(added.mass, whole.mass, rtol=1e-12)
        np.testing.assert_allclose(added.mean - 1e6, whole.mean, atol=1e-8)
        np.testing.assert_allclose(added.scatter, whole.scatter, rtol=1e-6, atol=1e-6)


@EVERY
def test_one_token_of_a_label_and_constant_features(covariance):
    rows = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    data, codes = PackedSequences.from_flat(rows, [3]), np.arange(3, dtype=np.int32)
    normal, tables = fitted(covariance, 1.0, data, codes, np.ones(3), 4)
    assert np.linalg.eigvalsh(full_covariances(tables, covariance)).min() > 0.0
    np.testing.assert_allclose(tables.mean[3], rows.mean(axis=0))  # a label without tokens
    scores = np.zeros((3, 4))
    normal.scores(tables, data, slice(0, 3), scores)
    assert np.isfinite(scores).all() and np.all(scores.argmax(axis=1)[:3] == codes)
    with pytest.raises(ValueError, match=r"label number \d is singular.*prior=1"):
        fitted(covariance, 0.0, data, codes, np.ones(3), 4)


@EVERY
def test_samples_and_clusters(covariance):
    data, codes, weight = drawn(3, 2, n_tokens=90, offset=-3.0)
    normal, tables = fitted(covariance, 1.0, data, codes, weight, 3)
    labels = np.repeat(np.arange(3, dtype=np.int32), 4000)
    rows = normal.draw(tables, labels, np.random.RandomState(0))
    for k, full in enumerate(full_covariances(tables, covariance)):
        np.testing.assert_allclose(rows[labels == k].mean(axis=0), tables.mean[k], atol=0.1)
        np.testing.assert_allclose(np.cov(rows[labels == k].T), full, atol=0.15)
    start, again = (normal.initial(data, 3, np.random.RandomState(5)) for _ in range(2))
    normal.check_tables(start, 3, 2)
    assert np.array_equal(start.mean, again.mean)
    lone = normal.initial(data[[0]], 30, np.random.RandomState(5))
    normal.check_tables(lone, 30, 2)


def test_linear_log_odds_of_tied_covariances():
    data, codes, weight = drawn(3, 2)
    normal, tables = fitted("tied", 1.0, data, codes, weight, 3)
    scores = np.zeros((60, 3))
    normal.scores(tables, data, slice(0, 60), scores)
    coef, constant = normal.linear(tables)[:2]
    linear = data.dense @ coef.toarray() + constant
    odds = [each - each[:, :1] for each in (scores, linear)]
    np.testing.assert_allclose(*odds, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("covariance", ["full", "diag", "spherical"])
def test_log_densities_are_linear_in_products(covariance):
    data, codes, weight = drawn(3, 2)
    normal, tables = fitted(covariance, 1.0, data, codes, weight, 3)
    scores = np.zeros((60, 3))
    normal.scores(tables, data, slice(0, 60), scores)
    coef, constant, features = normal.linear(tables)
    linear = features.transform(data).dense @ coef.toarray() + constant
    np.testing.assert_allclose(linear, scores, rtol=1e-9, atol=1e-9)


def test_what_is_no_table_of_numbers():
    normal, tables = Gaussian("diag"), GaussianTables(np.zeros((2, 3)), np.ones((2, 3)), None)
    normal.check_tables(tables, 2, 3)
    assert normal.log_prior(tables) == 0.0
    wrong = [
        (tables, 3, "means"),
        (tables._replace(covariance=np.ones(2)), 2, "covariances"),
        (tables._replace(covariance=np.zeros((2, 3))), 2, "singular"),
        (tables._replace(mean=np.full((2, 3), np.nan)), 2, "finite"),
        (tables._replace(spread=np.zeros(3)), 2, "above 0"),
        ((1, 2), 2, "no GaussianTables"),
    ]
    for found, n_labels, message in wrong:
        with pytest.raises(ValueError, match=message):
            normal.check_tables(found, n_labels, 3)
    skew = GaussianTables(np.zeros((1, 2)), np.array([[[1.0, 0.5], [0.0, 1.0]]]))
    with pytest.raises(ValueError, match="not symmetric"):
        Gaussian("full").check_tables(skew, 1, 2)
    words = PackedSequences(sp.eye_array(3), offsets=[0, 3])
    with pytest.raises(ValueError, match="sparse"):
        normal.check(words)
    with pytest.raises(ValueError, match="continued"):
        normal.extend((), np.arange(3), 4)
    far = PackedSequences.from_flat(np.array([[1e200], [-1e200]]), [2])
    with pytest.raises(ValueError, match="scale the features"), np.errstate(over="ignore"):
        fitted("diag", 1.0, far, np.zeros(2, np.int32), np.ones(2), 1)
    with pytest.raises(ValueError, match="covariance='round'"):
        Gaussian("round").check(words)
