from collections import Counter
from itertools import product

import numpy as np
import pytest

from crfkit import CRFClassifier
from crfkit.datasets import make_label_bias_data, make_markov_sequences

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


def test_a_crf_reaches_the_best_possible_label_error():
    data = make_label_bias_data(6000, random_state=2)
    crf = CRFClassifier(c2=0.1).fit(data.X[:2000], data.y[:2000])
    best = 4 / 3 * data.noise
    error = 1.0 - crf.score(data.X[2000:], data.y[2000:])
    spread = np.sqrt(2 / 3 * 2 * data.noise / 4000)
    assert abs(error - best) <= N_SIGMA * spread


def test_without_noise_the_words_are_clean():
    data = make_label_bias_data(50, noise=0, random_state=0)
    assert {"".join(token[0] for token in word) for word in data.X} == {"rib", "rob"}


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
        (make_label_bias_data, {"n_sequences": -1}, "n_sequences=-1"),
    ],
)
def test_parameters_out_of_range_are_named(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
