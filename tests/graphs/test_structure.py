"""What a structure of graphs tells beside what all structures do."""

import numpy as np

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
