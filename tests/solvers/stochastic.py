"""Objectives that the tests of the stochastic solvers share."""

import contextlib

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit.objective.penalties import ElasticNet
from crfkit.solvers import LBFGS
from tests.objective.test_batch import make_data, make_objective


@contextlib.contextmanager
def problem(seed=0, penalty=(0.0, 1.0), n_jobs=1, count=16, lengths=None, **options):
    """A small objective; some sequences are empty."""
    rng = np.random.default_rng(seed)
    lengths = tuple(rng.integers(0, 9, size=count)) if lengths is None else lengths
    blocks = options.pop("blocks", "sparse dense")
    data, codes = make_data(rng, blocks, lengths=lengths, n_features=options.pop("features", 6))
    with ThreadMap(n_jobs) as threads:
        yield make_objective(data, codes, threads, ElasticNet(*penalty), boundaries=True, **options)


def optimum(objective):
    """The least value and its parameters."""
    result = LBFGS(tol=0.0, gtol=1e-10).solve(objective, np.zeros(objective.n_parameters))
    return result.value, result.parameters
