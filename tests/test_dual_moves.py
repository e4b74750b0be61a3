"""Steps of the dual: the compiled ones of a chain are those for any structure."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.dual_moves import ChainMoves, Moves, make_moves
from crfkit.objective import Objective
from crfkit.scores.selection import choose_features
from crfkit.structures import Chain
from tests.test_objective import make_data, make_objective

LENGTHS = (3, 0, 1, 5, 2, 0, 6, 0)


def assert_same_steps(objective, scale, rng, tokens=6):
    """Three steps of each batch, one after the other."""
    batches = objective.minibatches(tokens, 0)
    fast, plain = make_moves(batches), Moves(batches)
    assert type(fast) is ChainMoves
    for index in range(len(batches)):
        block = None
        for rate in (0.5, 0.3, 1.0):
            bound = batches.bind(scale * rng.normal(size=objective.n_parameters))
            found, expected = (moves(bound, index, block, rate) for moves in (fast, plain))
            np.testing.assert_array_equal(found.places, expected.places)
            for name in ("rise", "slope", "gradient"):
                a, b = getattr(found, name), getattr(expected, name)
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * scale)
            block = expected.block
            np.testing.assert_allclose(found.block.scores, block.scores, rtol=1e-12)
            np.testing.assert_allclose(found.block.expected, block.expected, atol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("lengths", [LENGTHS, (0, 0), (1,)])
def test_the_steps_of_a_chain_are_those_of_any_structure(rng, scale, values, lengths):
    data, codes = make_data(rng, "sparse", lengths)
    if not values:
        data = data._from_arrays(**data.__dict__ | {"values": None})
    weight = np.repeat(rng.random(len(lengths)), lengths)
    with ThreadMap(1) as threads:
        assert_same_steps(make_objective(data, codes, threads, weight=weight), scale, rng)


def test_one_label_has_steps_too(rng):
    data, codes = make_data(rng, "sparse", LENGTHS)
    codes[:] = 0
    with ThreadMap(1) as threads:
        base = make_objective(data, codes, threads)
        model = choose_features(data, codes, 1)
        objective = Objective(
            model, Chain(), base.loss, base.penalty, data, codes, base.weight, threads
        )
        assert_same_steps(objective, 1.0, rng)


def test_what_the_compiled_steps_leave_is_summed_in_another_way(rng, monkeypatch):
    found = []
    plain = Moves.__call__

    def counted(self, bound, index, block, rate):
        found.append(index)
        return plain(self, bound, index, block, rate)

    data, codes = make_data(rng, "sparse", LENGTHS)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads)
        batches = objective.minibatches(6, 0)
        fast = ChainMoves(batches)
        monkeypatch.setattr(Moves, "__call__", counted)
        for scale in (1.0, 1e4):
            w = scale * rng.normal(size=objective.n_parameters)
            for index in range(len(batches)):
                fast(batches.bind(w), index, None, 1.0)
            assert bool(found) == (scale > 1.0)


def test_other_models_take_the_general_way(rng):
    with ThreadMap(1) as threads:
        dense = make_objective(*make_data(rng, "sparse dense", LENGTHS), threads)
        ends = make_objective(*make_data(rng, "sparse", LENGTHS), threads, boundaries=True)
        for objective in (dense, ends):
            assert type(make_moves(objective.minibatches(6, 0))) is Moves
