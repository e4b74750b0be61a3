"""Graphs in which nodes of one label are joined more often."""

import numpy as np
import pytest

from crfkit.datasets import make_planted_partition


def test_planted_partitions_are_what_they_are_said_to_be():
    data = make_planted_partition(2000, 3, homophily=0.7, p_correct=0.5, degree=6, random_state=0)
    y = np.array(data.y[0])
    edges = data.X[0].edges
    assert len(edges) == 6000 == len(np.unique(edges, axis=0))
    assert (edges[:, 0] < edges[:, 1]).all()
    assert abs((y[edges[:, 0]] == y[edges[:, 1]]).mean() - 0.7) < 0.03
    about = [f"class {words[0].split()[1].split('.')[0]}" for words in data.X[0].nodes]
    assert abs((y == about).mean() - 0.5) < 0.03
    again = make_planted_partition(2000, 3, homophily=0.7, p_correct=0.5, degree=6, random_state=0)
    assert (again.X[0].edges == edges).all() and again.y == data.y
    with pytest.raises(ValueError, match="are too many"):
        make_planted_partition(5, degree=10.0)
