"""Enumeration of factor graphs, against the random field that adds up all of them."""

import numpy as np
import pytest

from crfkit.graphs import RandomField
from crfkit.graphs.enumeration import Enumeration
from crfkit.graphs.methods import BudgetError
from crfkit.graphs.tables import factor_tables, scores_of


def random_tables(rng, sizes=(2, 3, 2, 4), forbidden=0.1):
    scopes = [[0], [2, 1], [1, 2, 3], [3, 0], []]
    tables = [rng.normal(size=[sizes[v] for v in scope]) for scope in scopes]
    for table in tables[1:3]:
        table[rng.random(table.shape) < forbidden] = -np.inf
    return list(sizes), scopes, tables


@pytest.mark.parametrize("seed", range(3))
def test_enumeration_gives_the_answers_of_a_random_field(seed):
    sizes, scopes, tables = random_tables(np.random.default_rng(seed))
    graph = factor_tables(sizes, scopes, tables)
    field = RandomField(zip(scopes, tables, strict=True), nodes=range(len(sizes)))
    sums, maximum = Enumeration().sums(graph), Enumeration().maximum(graph)
    assert sums.log_partition[0] == pytest.approx(field.log_partition, rel=1e-12)
    expected = np.concatenate([field.marginal(v) for v in range(len(sizes))])
    np.testing.assert_allclose(sums.marginals, expected, atol=1e-14)
    beliefs = [np.ravel(field.marginal(*scope)) for scope in scopes]
    np.testing.assert_allclose(sums.beliefs, np.concatenate(beliefs), atol=1e-14)
    assert dict(enumerate(maximum.values)) == field.argmax()
    assert scores_of(graph, maximum.values)[0] == pytest.approx(maximum.score[0], rel=1e-12)
    assert maximum.exact.all()


def test_too_many_combinations_are_an_error():
    graph = factor_tables([2] * 23, [], [])
    with pytest.raises(BudgetError, match=r"2\^23.0 combinations"):
        Enumeration().sums(graph)
