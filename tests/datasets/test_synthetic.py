from collections import Counter
from itertools import product

import numpy as np
import pytest

from crfkit import CRFClassifier
from crfkit.datasets import (
    bayes_posteriors,
    make_gaussian_sequences,
    make_label_bias_data,
    make_markov_sequences,
)

N_SIGMA = 5.0


def codes(data):
    """Return labels and symbols as arrays of shape (S, T)."""
    states = np.array([[data.states.index(label) for label in row] for row in data.y])
    symbols = np.array([[data.symbols.index(token[0]) for token in row] for row in data.X])
    return states, symbols


def assert_drawn_from(outcomes, probabilities):
    """Check that outcomes occur as often as they should, and impossible ones never."""
    n = len(outcomes)
    counts = np.bincount(outcomes, minlength=len(probabilities))
    spread = np.sqrt(n * probabilities * (1 - probabilities))
    assert (np.abs(counts - n * probabilities) <= N_SIGMA * spread + 1e-9).all()


def assert_table_fits(table, past, outcomes):
    """Check every row of a table of shape (..., n_outcomes) that was used often."""
    used = 0
    for row in np.ndindex(table.shape[:-1]):
        here = np.all([p == r for p, r in zip(past, row, strict=True)], axis=0)
        if here.sum() >= 50:
            used += 1
            assert_drawn_from(outcomes[here], table[row])
    assert used > 1


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_every_step_is_drawn_from_the_mixture(alpha):
    data = make_markov_sequences(
        4000, 6, alpha=alpha, n_states=3, n_symbols=4, n_emitted=2, random_state=1
    )
    y, x = codes(data)
    assert_drawn_from(y[:, 0], data.start)
    assert_table_fits(data.emission1, [y[:, 0]], x[:, 0])
    assert_table_fits(data.transition1, [y[:, 0]], y[:, 1])
    mixed = alpha * data.transition2 + (1 - alpha) * data.transition1[None]
    assert_table_fits(mixed, [y[:, :-2].ravel(), y[:, 1:-1].ravel()], y[:, 2:].ravel())
    mixed = alpha * data.emission2 + (1 - alpha) * data.emission1[:, None]
    assert_table_fits(mixed, [y[:, 1:].ravel(), x[:, :-1].ravel()], x[:, 1:].ravel())


def path_probability(data, y, x, second):
    """Return the probability of one sequence from the source of first or second order."""
    p = data.start[y[0]] * data.emission1[y[0], x[0]]
    for t in range(1, len(y)):
        of_second_order = second and t > 1
        p *= data.transition2[y[t - 2], y[t - 1], y[t]] if of_second_order else 1.0
        p *= 1.0 if of_second_order else data.transition1[y[t - 1], y[t]]
        p *= data.emission2[y[t], x[t - 1], x[t]] if second else data.emission1[y[t], x[t]]
    return p


def test_global_mixing_draws_whole_sequences_from_one_source():
    data = make_markov_sequences(
        20_000, 3, alpha=0.4, n_states=2, n_symbols=2, mixing="global", random_state=3
    )
    y, x = codes(data)
    found = Counter(map(tuple, np.hstack([y, x]).tolist()))
    paths = list(product(range(2), repeat=6))
    expected = np.array(
        [
            0.4 * path_probability(data, path[:3], path[3:], True)
            + 0.6 * path_probability(data, path[:3], path[3:], False)
            for path in paths
        ]
    )
    np.testing.assert_allclose(expected.sum(), 1.0)
    outcomes = np.repeat(np.arange(len(paths)), [found[path] for path in paths])
    assert len(outcomes) == 20_000
    assert_drawn_from(outcomes, expected)


def step_probability(data, y, x):
    """Return the probability of one sequence from the source of mixed steps."""
    p, a = data.start[y[0]] * data.emission1[y[0], x[0]], data.alpha
    for t in range(1, len(y)):
        first, shown = data.transition1[y[t - 1], y[t]], data.emission1[y[t], x[t]]
        if t > 1:
            first = a * data.transition2[y[t - 2], y[t - 1], y[t]] + (1 - a) * first
        p *= first * (a * data.emission2[y[t], x[t - 1], x[t]] + (1 - a) * shown)
    return p


@pytest.mark.parametrize("mixing", ["local", "global"])
@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_posteriors_of_the_source_are_those_of_all_paths(alpha, mixing):
    options = {"alpha": alpha, "mixing": mixing, "n_states": 3, "n_symbols": 4, "n_emitted": 2}
    data = make_markov_sequences(6, 4, random_state=2, **options)
    X = [row[:length] for row, length in zip(data.X, (4, 1, 4, 0, 2, 3), strict=True)]
    for row, found in zip(X, bayes_posteriors(data, X), strict=True):
        x = [data.symbols.index(symbol) for [symbol] in row]
        expected = np.zeros((len(x), 3))
        for y in product(range(3), repeat=len(x)) if x else ():
            p = step_probability(data, y, x)
            if mixing == "global":
                p = sum(
                    weight * path_probability(data, y, x, second)
                    for weight, second in ((alpha, True), (1 - alpha, False))
                )
            expected[np.arange(len(x)), y] += p
        np.testing.assert_allclose(found, expected / (expected.sum(axis=1)[:, None]), atol=1e-12)


def test_tables_are_sparse_distributions():
    data = make_markov_sequences(0, random_state=0)
    shapes = {"transition1": (5, 5), "transition2": (5, 5, 5)}
    shapes |= {"emission1": (5, 26), "emission2": (5, 26, 26)}
    for name, shape in shapes.items():
        table = data[name]
        assert table.shape == shape
        np.testing.assert_allclose(table.sum(axis=-1), 1.0)
        assert set(np.count_nonzero(table, axis=-1).ravel()) == {2 if "tr" in name else 3}
    assert (data.X, data.y) == ([], [])
    assert (data.states, data.symbols[-1]) == (list("abcde"), "Z")


def test_a_seed_gives_the_same_data():
    first, again = (make_markov_sequences(5, random_state=7) for _ in range(2))
    other = make_markov_sequences(5, random_state=8)
    assert (first.X, first.y) == (again.X, again.y)
    assert first.X != other.X
    assert make_label_bias_data(9, random_state=1).X == make_label_bias_data(9, random_state=1).X


def test_more_states_than_letters_are_numbered():
    data = make_markov_sequences(2, 3, n_states=30, n_symbols=27, random_state=0)
    assert (data.states[29], data.symbols[26]) == ("a29", "A26")


def test_a_first_order_model_gets_worse_with_the_second_order():
    def error(alpha):
        data = make_markov_sequences(400, alpha=alpha, random_state=5)
        crf = CRFClassifier(c2=0.1).fit(data.X[:200], data.y[:200])
        return 1.0 - crf.score(data.X[200:], data.y[200:])

    assert error(0.0) + 0.1 < error(1.0)


def test_label_bias_words_are_drawn_from_their_tables():
    data = make_label_bias_data(20_000, random_state=0)
    y, x = codes(data)
    assert {tuple(row) for row in data.y} == {("1", "2", "3"), ("4", "5", "3")}
    assert_drawn_from(y[:, 0], data.start)
    assert_table_fits(data.emission, [y.ravel()], x.ravel())
    assert sorted(set(data.emission.ravel())) == [1 / 32, 29 / 32]
    np.testing.assert_array_equal(data.transition.sum(axis=1), [1, 1, 0, 1, 1])


def joint_of_words(data):
    """Each word's probability with each of the two labelings: an array of shape (2, 4, 4, 4)."""
    paths = [[data.states.index(label) for label in path] for path in ("123", "453")]
    joint = np.empty((2, 4, 4, 4))
    for row, path in zip(joint, paths, strict=True):
        p = data.start[path[0]] * np.prod(data.transition[path[:-1], path[1:]])
        row[:] = p * np.einsum("i,j,k->ijk", *data.emission[path])
    return joint


@pytest.mark.parametrize("noise", [0.0, 1 / 32, 0.25])
def test_the_best_possible_errors_are_those_of_all_words(noise):
    data = make_label_bias_data(0, noise=noise)
    joint = joint_of_words(data)
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    assert data.bayes_word_error == pytest.approx(1.0 - joint.max(axis=0).sum(), abs=1e-12)
    # Of two labelings that differ in two of three labels; each label is best for itself, too.
    assert data.bayes_label_error == pytest.approx(2 / 3 * data.bayes_word_error, abs=1e-12)
    blind = joint.sum(axis=2)
    assert data.biased_word_error == pytest.approx(1.0 - blind.max(axis=0).sum(), abs=1e-12)
    assert data.biased_label_error == pytest.approx(2 / 3 * data.biased_word_error, abs=1e-12)


def test_a_crf_reaches_the_best_possible_label_error():
    data = make_label_bias_data(6000, random_state=2)
    crf = CRFClassifier(c2=0.1).fit(data.X[:2000], data.y[:2000])
    error = 1.0 - crf.score(data.X[2000:], data.y[2000:])
    spread = np.sqrt(2 / 3 * data.bayes_word_error / 4000)
    assert abs(error - data.bayes_label_error) <= N_SIGMA * spread


def test_without_noise_the_words_are_clean():
    data = make_label_bias_data(50, noise=0, random_state=0)
    assert {"".join(token[0] for token in word) for word in data.X} == {"rib", "rob"}


def test_frames_are_drawn_from_their_distributions():
    data = make_gaussian_sequences(400, 50, n_states=7, n_features=2, random_state=0)
    y = np.array([[data.states.index(label) for label in row] for row in data.y])
    assert_drawn_from(y[:, 0], data.start)
    np.testing.assert_allclose(data.transition.sum(axis=1), 1.0)
    assert_table_fits(data.transition, [y[:, :-1].ravel()], y[:, 1:].ravel())
    for code, (mean, covariance) in enumerate(zip(data.means, data.covariances, strict=True)):
        frames = np.concatenate(data.X)[y.ravel() == code]
        # As standard normal numbers: means, squares and products have known deviations.
        plain = np.linalg.solve(np.linalg.cholesky(covariance), (frames - mean).T)
        near = N_SIGMA / np.sqrt(len(frames))
        assert np.abs(plain.mean(axis=1)).max() <= near
        deviations = np.sqrt([[2.0, 1.0], [1.0, 2.0]])
        assert (np.abs(plain @ plain.T / len(frames) - np.eye(2)) <= near * deviations).all()


@pytest.mark.parametrize(("n_states", "stay", "kinds"), [(1, 0.0, 1), (3, 1.0, 1), (2, 0.0, 2)])
def test_gestures_last_as_long_as_they_stay(n_states, stay, kinds):
    data = make_gaussian_sequences(5, 4, n_states=n_states, stay=stay, random_state=0)
    assert {len(set(row)) for row in data.y} == {kinds}
    again = make_gaussian_sequences(5, 4, n_states=n_states, stay=stay, random_state=0)
    np.testing.assert_array_equal(data.X, again.X)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_markov_sequences, {"alpha": 1.5}, "alpha=1.5 must be at most 1"),
        (make_markov_sequences, {"alpha": -0.1}, "alpha=-0.1"),
        (make_markov_sequences, {"length": 0}, "length=0"),
        (make_markov_sequences, {"n_states": 0}, "n_states=0"),
        (make_markov_sequences, {"n_successors": 0}, "n_successors=0"),
        (make_markov_sequences, {"mixing": "both"}, "mixing='both' is not known"),
        (make_label_bias_data, {"noise": 0.3}, "noise=0.3 must be at most 0.25"),
        (make_gaussian_sequences, {"stay": 1.5}, "stay=1.5 must be at most 1"),
        (make_gaussian_sequences, {"n_features": 0}, "n_features=0"),
        (make_gaussian_sequences, {"separation": -1.0}, "separation=-1.0"),
        (make_label_bias_data, {"n_sequences": -1}, "n_sequences=-1"),
    ],
)
def test_parameters_out_of_range_are_named(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
