import numpy as np
import pytest
from scipy.special import logsumexp

from crfkit.losses import LogLoss
from crfkit.structures import Chain
from tests.oracles import chain_paths, evaluate, random_scores


def value(scores, labels, weight):
    return evaluate(LogLoss(), Chain(), scores, labels, weight)[0]


def marginal_log_proba(scores, labels, fixed):
    """Log-probability of some labels of a single sequence, by enumeration."""
    paths = list(chain_paths(scores, 0))
    agree = [score for path, score in paths if all(path[t] == labels[t] for t in fixed)]
    return logsumexp(agree) - logsumexp([score for _, score in paths])


@pytest.fixture
def problem(rng):
    scores = random_scores(0, [4], 3)
    return scores, rng.integers(3, size=4).astype(np.int32)


def test_loss_is_minus_the_log_probability_of_the_path(problem):
    scores, labels = problem
    expected = -marginal_log_proba(scores, labels, range(4))
    np.testing.assert_allclose(value(scores, labels, np.ones(4)), expected, rtol=1e-12)


def test_a_token_of_weight_zero_is_summed_out(problem):
    scores, labels = problem
    expected = -marginal_log_proba(scores, labels, [0, 2, 3])
    weight = np.array([1.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(value(scores, labels, weight), expected, rtol=1e-12)


def test_token_weights_integrate_over_thresholds(problem):
    scores, labels = problem
    weight = np.array([0.5, 2.0, 0.5, 3.0])
    levels = [(0.5, [0, 1, 2, 3]), (1.5, [1, 3]), (1.0, [3])]
    expected = -sum(width * marginal_log_proba(scores, labels, fixed) for width, fixed in levels)
    np.testing.assert_allclose(value(scores, labels, weight), expected, rtol=1e-12)


@pytest.mark.parametrize("weight", [np.ones(4), np.array([1.0, 2.0, 1.0, 1.0])])
def test_forbidden_labels_in_the_data_are_an_error_that_names_the_sequence(problem, weight):
    scores, labels = problem
    scores.unary[1, labels[1]] = -np.inf
    with pytest.raises(ValueError, match="sequence 7: .*forbidden"):
        value(scores._replace(first=7), labels, weight)


def test_an_overflow_of_the_scores_is_no_forbidden_label(problem):
    scores, labels = problem
    with np.errstate(all="ignore"):
        assert not np.isfinite(
            value(scores._replace(unary=scores.unary * 1e308), labels, np.ones(4))
        )
