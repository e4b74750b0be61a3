"""What a structure of graphs tells beside what all structures do."""

import numpy as np

from crfkit.graphs.auto import AutoSearch
from crfkit.graphs.structure import GraphStructure
from crfkit.inference.base import expectations
from tests.contracts.structures import MAKERS


def test_marginals_of_edges_are_those_of_labelings_and_add_up_to_expected_counts():
    structure = GraphStructure()
    for seed in range(3):
        case = MAKERS["graph"](3, 1.0)
        scores = case.potentials(seed, [3, 0, 1, 4], 0.2, True)
        found, labels = structure.infer(scores), structure.best(scores)
        expected, log_z = expectations(structure, scores)
        np.testing.assert_allclose(found.nodes, expected.unary)
        np.testing.assert_allclose(found.sums.log_partition, log_z)
        total = np.zeros_like(expected.pair)
        np.add.at(total, np.broadcast_to(scores.transition_index, len(found.edges)), found.edges)
        np.testing.assert_allclose(total, expected.pair)
        np.testing.assert_allclose(found.edges.sum(axis=2), found.nodes[scores.rows.source])
        np.testing.assert_allclose(found.edges.sum(axis=1), found.nodes[scores.rows.target])
        np.testing.assert_array_equal(labels[0], structure.argmax(scores)[0])
        assert labels[1].exact.all() and found.sums.exact.all()


def test_the_search_is_exact_where_that_is_cheap_and_a_cut_is():
    rng = np.random.default_rng(0)
    agree = GraphStructure(search=AutoSearch(budget=4))
    agree.gaps = []
    case = MAKERS["graph"](2, 1.0)
    scores = case.potentials(0, [2, 8, 0, 9], 0.0, False)
    wide = rng.normal(size=(1, 2, 2)) + 2.0 * np.eye(2)
    for pair in (wide, -wide):  # that a cut takes, and that none does
        own = scores._replace(pair=pair)
        found, best = agree.best(own), GraphStructure().argmax(own)
        assert (found[1].bound >= best[1] - 1e-9).all() and found[1].exact[[0, 2]].all()
        np.testing.assert_allclose(agree.score(own, found[0]), found[1].score)
        if pair is wide:
            assert found[1].exact.all() and agree.gaps == []
            np.testing.assert_array_equal(found[0], best[0])
    assert len(agree.gaps) == np.sum(~found[1].exact)
