"""Beliefs about single labels, and the way back from slopes: enumeration, extremes, blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from crfkit._parallel import ThreadMap
from crfkit._types import Counts
from crfkit.structures import Chain, NoPathError, Tree, TreePotentials, chain, chain_posterior
from crfkit.structures.tree_posterior import LogTreePosterior, TreePosterior
from tests.oracles import add_path, chain_paths, chain_scores, random_scores
from tests.sampling import examples

SIDE_BY_SIDE = Chain(ThreadMap(1))  # which short sequences are with threads


def enumerated(scores, labels):
    """Log P(y_t) of each label, and the gradient of minus their sum, as differences of means."""
    logs, gradient = np.zeros(len(labels)), Chain().zeros(scores)
    for s, begin in enumerate(scores.offsets[:-1].tolist()):
        paths = list(chain_paths(scores, s))
        values = np.array([value for _, value in paths])
        log_z = logsumexp(values)
        for t in range(begin, int(scores.offsets[s + 1])):
            with_label = np.array([path[t - begin] == labels[t] for path, _ in paths])
            clamped = np.where(with_label, values, -np.inf)
            log_clamped = logsumexp(clamped)
            logs[t] = log_clamped - log_z
            shares = np.exp(values - log_z) - np.exp(clamped - log_clamped)
            for (path, _), share in zip(paths, shares, strict=True):
                add_path(scores, s, path, share, gradient)
    return logs, gradient


def pointwise(posterior, labels):
    """The slopes of minus the sum of the logarithms."""
    slopes = posterior.marginals.copy()
    slopes[np.arange(len(labels)), labels] -= 1.0
    return slopes


def pulled_back(posterior, slopes, scores):
    out = Counts(np.full(scores.unary.shape, 7.0), np.zeros(scores.pair.shape))
    posterior.pull_back(slopes, out)
    return out


def as_paths(scores):
    """Chains as forests, which keep logarithms."""
    order = np.concatenate([np.arange(n) for n in np.diff(scores.offsets)])
    return TreePotentials(*scores, order - 1, order)


def possible(scores, labels):
    """The labels, but 0 where they are forbidden."""
    logs = LogTreePosterior(as_paths(scores)).log_probability(np.arange(len(labels)), labels)
    return np.where(np.isneginf(logs), 0, labels)


@given(chain_scores(scales=(1.0, 30.0, 1e3)), st.integers(0, 2**32 - 1))
@examples(12)
def test_gradients_of_marginals_are_those_of_enumeration(scores, seed):
    labels = np.random.default_rng(seed).integers(scores.n_labels, size=len(scores.unary))
    labels = possible(scores, labels)
    logs, gradient = enumerated(scores, labels)
    asked = ((Chain(), scores), (SIDE_BY_SIDE, scores), (Tree(), as_paths(scores)))
    for structure, potentials in asked:
        posterior = structure.posterior(potentials)
        found = posterior.log_probability(np.arange(len(labels)), labels)
        np.testing.assert_allclose(found, logs, rtol=1e-12, atol=1e-11)
        out = pulled_back(posterior, pointwise(posterior, labels), scores)
        for ours, expected in zip(out, gradient, strict=True):
            np.testing.assert_allclose(ours, expected, atol=1e-10)


@pytest.mark.parametrize("size", [1, 3, 8, 9, 22, 26, 50])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("tables", [False, True])
def test_rows_of_any_length_are_those_of_logarithms(size, forbidden, tables, monkeypatch):
    """Without leaving the linear domain, through several windows, and sequences of one token."""
    scores = random_scores(
        size, [70, 0, 1, 130, 2], size, forbidden=forbidden, shared_tables=tables, scale=3.0
    )
    for kind in (chain_posterior.ChainPosterior, TreePosterior):
        monkeypatch.setattr(kind, "_in_logs", None)
    labels = possible(scores, np.random.default_rng(0).integers(size, size=len(scores.unary)))
    expected = LogTreePosterior(as_paths(scores))
    slopes = pointwise(expected, labels)
    gradient = pulled_back(expected, slopes, scores)
    asked = ((Chain(), scores), (SIDE_BY_SIDE, scores), (Tree(), as_paths(scores)))
    for structure, potentials in asked:
        posterior = structure.posterior(potentials)
        np.testing.assert_allclose(posterior.marginals, expected.marginals, atol=1e-12)
        found = pulled_back(posterior, slopes, scores)
        for ours, right in zip(found, gradient, strict=True):
            np.testing.assert_allclose(ours, right, atol=1e-10)


@pytest.mark.parametrize("structure", [Chain(), SIDE_BY_SIDE], ids=["one by one", "side by side"])
def test_what_is_too_improbable_is_left_to_logarithms(structure, monkeypatch):
    """A label of probability 0 to rounding, others beside it: nothing of a first try is left."""
    scores = random_scores(1, [5, 4, 6], 9)
    scores.unary[5:9] *= 1e3
    labels = scores.unary.argmin(axis=1)
    logs, gradient = enumerated(scores.take(np.array([1])), labels[5:9])
    assert logs.min() < -1e3
    posterior, asked = structure.posterior(scores), []
    original = chain_posterior.ChainPosterior._in_logs
    monkeypatch.setattr(
        chain_posterior.ChainPosterior, "_in_logs",
        lambda self, chosen: asked.append(chosen.tolist()) or original(self, chosen),
    )  # fmt: skip
    found = posterior.log_probability(np.arange(15), labels)
    np.testing.assert_allclose(found[5:9], logs, rtol=1e-12)
    slopes = pointwise(posterior, labels)
    out = pulled_back(posterior, slopes, scores)
    assert asked == [[1], [1]]
    np.testing.assert_allclose(out.unary[5:9], gradient.unary, atol=1e-10)
    slopes[5:9] = 0.0  # the others alone, to take what they add to transitions away
    rest = pulled_back(posterior, slopes, scores)
    np.testing.assert_allclose(out.pair - rest.pair, gradient.pair, atol=1e-10)
    np.testing.assert_allclose(out.unary[:5], rest.unary[:5], atol=1e-12)


@pytest.mark.parametrize("size", [3, 9])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_a_long_sequence_is_the_same_for_any_number_of_threads(size, scale, monkeypatch):
    scores = random_scores(0, [601], size, scale=scale)
    labels = Chain().argmax(scores)[0] if scale > 1.0 else scores.unary.argmin(axis=1)
    whole = Chain().posterior(scores)
    expected = pulled_back(whole, pointwise(whole, labels), scores)
    for module in (chain, chain_posterior):
        monkeypatch.setattr(module, "LONG_TOKENS", 100)
    found = []
    for n_jobs in (1, 2, 3):
        with ThreadMap(n_jobs) as threads:
            posterior = Chain(threads).posterior(scores)
            found.append(pulled_back(posterior, pointwise(posterior, labels), scores))
    for out in found:
        for ours, first, right in zip(out, found[0], expected, strict=True):
            np.testing.assert_array_equal(ours, first)
            np.testing.assert_allclose(ours, right, atol=1e-10)


def test_a_dead_end_is_named():
    scores = random_scores(0, [3, 4], 9)
    scores.unary[5] = -np.inf
    with pytest.raises(NoPathError) as error:
        Chain().posterior(scores._replace(first=10))
    assert (error.value.sequence, error.value.position) == (11, 2)


def test_slopes_of_long_sequences_stay_centered(rng):
    """Rounding does not add up along a sequence: all that is carried has the mass 0."""
    scores = random_scores(0, [40_000], 3)
    posterior, out = Chain().posterior(scores), Chain().zeros(scores)
    slopes = posterior.marginals * rng.normal(size=posterior.marginals.shape)
    slopes -= posterior.marginals * slopes.sum(axis=1, keepdims=True)
    posterior.pull_back(slopes, out)
    assert abs(out.pair.sum()) < 1e-11
