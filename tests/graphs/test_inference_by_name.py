"""Random fields, asked by methods of inference by name."""

import math

import numpy as np
import pytest

from crfkit.graphs import RandomField
from crfkit.graphs.belief_propagation import BeliefPropagation
from crfkit.graphs.enumeration import Enumeration
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.methods import BudgetError

AGREE = np.eye(2)


def ring(n):
    return RandomField(((i, (i + 1) % n), AGREE) for i in range(n))


def test_answers_by_name_are_those_of_the_field():
    rng = np.random.default_rng(0)
    field = RandomField([("ab", rng.normal(size=(2, 3))), ("cb", rng.normal(size=(2, 3))), ("", 1)])
    for method, search in (("exact", "auto"), (Enumeration(), Enumeration())):
        found, best = field.infer(method), field.map(search)
        assert found.exact_ and found.converged_ and found.bound_ == "exact" and best.exact_
        assert found.log_partition == pytest.approx(field.log_partition, rel=1e-13)
        for node in "abc":
            np.testing.assert_allclose(found.marginals[node], field.marginal(node), atol=1e-14)
        np.testing.assert_allclose(found.beliefs[1], field.marginal("c", "b"), atol=1e-14)
        assert best.values == field.argmax()
        assert best.score == best.score_bound == pytest.approx(field.score(best.values))
    values = field.sample(5000, random_state=0)
    shares = np.bincount(values[:, 1], minlength=3) / 5000
    np.testing.assert_allclose(shares, field.marginal("b"), atol=0.03)
    assert (field.sample(7, random_state=3) == field.sample(7, random_state=3)).all()


def test_a_large_field_answers_without_enumeration():
    """A ring of spins, whose answers have a closed form (Ising 1925)."""
    n, large, small = 40, math.e + 1.0, math.e - 1.0
    field = ring(n)
    assert field.log_partition == pytest.approx(math.log(large**n + small**n), rel=1e-13)
    for k in (1, 7, 20):
        moment = (small**k * large ** (n - k) + large**k * small ** (n - k)) / (large**n + small**n)
        expected = 0.25 * np.array([[1 + moment, 1 - moment], [1 - moment, 1 + moment]])
        np.testing.assert_allclose(field.marginal(3, 3 + k), expected, atol=1e-14)
    assert len(set(field.argmax().values())) == 1
    assert field.clamped({0: 1}).map().score == n
    assert field.log_probability({0: 1}) == pytest.approx(math.log(0.5))
    assert field.dependence([0], [10], given=[5, 20]) < 1e-14
    with pytest.raises(ValueError, match="at most 2\\^22 are enumerated"):
        field.joint  # noqa: B018
    dead = RandomField([*field.factors, ([0], [-np.inf, -np.inf])])
    assert dead.infer().log_partition == dead.map().score == -math.inf
    none = RandomField([("ab", np.full((2, 2), -np.inf))])
    for question in (
        lambda: dead.log_partition, lambda: dead.marginal(1, 2), dead.argmax, dead.sample,
        none.argmax, none.sample, lambda: none.sample(2, "gibbs"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="each combination of values has the score -inf"):
            question()


def test_what_is_no_method_and_what_is_too_large_are_errors():
    with pytest.raises(ValueError, match="method='loopy' is not known; choose one of"):
        ring(4).infer("loopy")
    with pytest.raises(TypeError, match="an object with the method 'maximum'"):
        ring(4).map(BeliefPropagation())
    with pytest.raises(NotImplementedError, match="draws no samples: take .exact. or .gibbs."):
        ring(4).sample(method="bp")
    with pytest.raises(BudgetError, match=r"2\^3.0 entries, and the budget is 2\^2.0"):
        ring(4).sample(method=JunctionTree(budget=4))
