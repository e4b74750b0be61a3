"""Mini-batches are the objective, cut into pieces."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.objective.penalties import ElasticNet
from crfkit.structures import NoPathError
from tests.objective.test_batch import make_data, make_objective

LENGTHS = (3, 0, 1, 5, 2, 4, 6)


@pytest.fixture(params=[1, 2])
def threads(request):
    with ThreadMap(request.param) as opened:
        yield opened


@pytest.mark.parametrize("tokens", [1, 6, 1000])
def test_values_and_gradients_add_up_to_the_objective(rng, threads, tokens):
    data, codes = make_data(rng, lengths=LENGTHS)
    weight = rng.random(len(codes))
    objective = make_objective(data, codes, threads, ElasticNet(0.7, 0.2), weight)
    w = rng.normal(size=objective.n_parameters)
    batches = objective.minibatches(tokens, 0)
    gradient = 2.0 * 0.2 * w
    for index in range(len(batches)):
        _, residual = batches.value_and_residual(batches.scores(batches.bind(w), index), index)
        np.add.at(gradient, batches.places(index), batches.gradient(index, residual))
    value, expected = objective.value_and_grad(w)
    np.testing.assert_allclose(batches.value(w), value + 0.7 * np.abs(w).sum(), rtol=1e-12)
    np.testing.assert_allclose(gradient, expected, atol=1e-11)


def test_every_sequence_is_in_one_batch(rng, threads):
    data, codes = make_data(rng, lengths=LENGTHS)
    batches = make_objective(data, codes, threads).minibatches(4, 1)
    lengths = [n for i in range(len(batches)) for n in np.diff(batches.chunks[i].offsets)]
    assert sorted(lengths) == sorted(LENGTHS)
    assert batches.n_tokens == sum(LENGTHS)


def test_the_random_state_deals_the_sequences(rng, threads):
    data, codes = make_data(rng, lengths=LENGTHS)
    objective = make_objective(data, codes, threads)
    dealt = [objective.minibatches(100, seed).labels(0).tolist() for seed in (0, 0, 1, 2, 3)]
    assert dealt[0] == dealt[1]
    assert any(labels != dealt[0] for labels in dealt[2:])


def test_the_mean_square_is_that_of_the_rows(rng, threads):
    data, codes = make_data(rng, lengths=LENGTHS)
    batches = make_objective(data, codes, threads).minibatches(4, 0)
    expected = data.to_csr().power(2).sum() / data.n_tokens
    np.testing.assert_allclose(batches.mean_square, expected, rtol=1e-12)


def test_an_error_names_the_sequence_by_its_number_in_the_data(rng):
    data, codes = make_data(rng, lengths=LENGTHS)
    with ThreadMap(1) as threads:
        batches = make_objective(data, codes, threads).minibatches(4, 5)
        bound = batches.bind(np.zeros(batches.n_parameters))
        for index in range(len(batches)):
            scores = batches.scores(bound, index)
            lengths = np.diff(scores.offsets)
            s = int(lengths.argmax())
            scores.unary[scores.offsets[s]] = -np.inf
            with pytest.raises(NoPathError) as caught:
                batches.value_and_residual(scores, index)
            assert LENGTHS[caught.value.sequence] == lengths[s]
