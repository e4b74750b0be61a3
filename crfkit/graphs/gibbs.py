"""Marginals and samples by Gibbs sampling."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crfkit._params import check_whole
from crfkit._types import BoolArray, FloatArray, IntArray, Random
from crfkit.graphs.allowed import allowed_values
from crfkit.graphs.chance import of_states
from crfkit.graphs.links import links_of
from crfkit.graphs.methods import NONE, SumMethod, Sums
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.gibbs import FIRST_MODULUS, SECOND_MODULUS, Chains, draw_sweeps
from crfkit.kernels.graph.links import Links
from crfkit.structures import Capability

# Of a statistic of Gelman and Rubin (1992), below which chains agree.
AGREE = 1.1


class GibbsSampling(SumMethod):
    """Samples, and marginals as their means (Geman and Geman 1984).

    Each chain starts at values that are allowed, and draws each variable in turn given all others.
    Marginals are means of these conditional probabilities, which vary less than the values that are
    drawn (Gelfand and Smith 1990); beliefs of factors likewise. There is no estimate of log Z: it
    is nan, or ``-inf`` where nothing is allowed. `converged` says whether the marginals of the
    chains agree: that the variance of the mean of all is not above what independent samples
    would have by more than Gelman and Rubin's (1992) factor 1.1; never of a single chain.

    Where scores forbid something, a chain may never reach other values that are allowed, nor may it
    where these are far away; then chains agree or not, and the marginals are wrong.

    Parameters
    ----------
    n_samples : int, default=1000
        Sweeps of each chain that count.
    burn_in : int, default=200
        Sweeps before these.
    n_chains : int, default=4
        Chains, which start at different values.
    random_state : int, default=0
        All the chance there is; a graph has the same whatever is beside it.

    Raises
    ------
    ValueError
        If no allowed values are found.

    Examples
    --------
    >>> from crfkit.graphs.gibbs import GibbsSampling
    >>> from crfkit.graphs.tables import factor_tables
    >>> agree = [[1.0, 0.0], [0.0, 1.0]]
    >>> ring = factor_tables([2, 2, 2], [[0, 1], [1, 2], [2, 0], [0]], [agree] * 3 + [[0.0, 1.0]])
    >>> GibbsSampling().sums(ring).marginals[:2].round(1)
    array([0.3, 0.7])
    >>> GibbsSampling().sample(ring, np.random.RandomState(0).random_sample((2, 3))).shape
    (2, 3)
    """

    bound: ClassVar[str] = NONE
    has_log_z: ClassVar[bool] = False
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.SAMPLE})

    def __init__(
        self, n_samples: int = 1000, burn_in: int = 200, n_chains: int = 4, random_state: int = 0
    ) -> None:
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.random_state = random_state

    def sums(self, graph: FactorTables) -> Sums:
        """Return the marginals; log Z is nan."""
        check_whole("n_samples", self.n_samples, 1)
        check_whole("burn_in", self.burn_in)
        check_whole("n_chains", self.n_chains, 1)
        check_whole("random_state", self.random_state)
        count, links = len(graph.factor_ptr) - 1, links_of(graph)
        random = Random(self.random_state)
        found, squares, beliefs = (np.zeros(n) for n in (*[graph.state_ptr[-1]] * 2,
                                                         len(graph.scores)))  # fmt: skip
        some = np.ones(count, bool)
        for turn in range(self.n_chains):
            seeds = np.tile(random.random_sample(2), (count, 1))
            chains, some = self._started(graph, links, turn, seeds)
            draw_sweeps(graph, links, self.n_samples, 1.0 / self.n_samples, chains)
            found += chains.marginals / self.n_chains
            squares += chains.marginals**2 / self.n_chains
            beliefs += chains.beliefs / self.n_chains
        beliefs[graph.score_ptr[:-1][np.diff(graph.scope_ptr) == 0]] = 1.0  # of constants
        states = np.repeat(some, np.diff(graph.state_ptr[graph.variable_ptr]))
        entries = np.repeat(some, np.diff(graph.score_ptr[graph.factor_ptr]))
        agree = self._agreement(graph, found, squares)
        return Sums(
            np.where(some, np.nan, -np.inf), np.where(states, found, 0.0),
            np.where(entries, beliefs, 0.0), ~some, agree | ~some,
            np.full(count, self.burn_in + self.n_samples),
        )  # fmt: skip

    def _agreement(
        self, graph: FactorTables, found: FloatArray, squares: FloatArray
    ) -> BoolArray:  # fmt: skip
        """Return whether the chains of each graph agree about all marginals."""
        count = len(graph.factor_ptr) - 1
        if self.n_chains == 1:
            return np.zeros(count, bool)
        between = np.maximum(squares - found**2, 0.0) * self.n_chains / (self.n_chains - 1)
        apart = between > (AGREE**2 - 1.0) * found * (1.0 - found) + 1e-12
        owner = np.repeat(np.arange(count), np.diff(graph.state_ptr[graph.variable_ptr]))
        agree: BoolArray = np.bincount(owner, apart, minlength=count) == 0.0
        return agree

    def sample(self, graph: FactorTables, uniforms: FloatArray) -> IntArray:
        """Return values of all variables, each sample drawn by a chain of its own.

        A sample is what a chain has after `burn_in` sweeps, hence only about a draw from the
        distribution.

        Parameters
        ----------
        graph : FactorTables
            The factor graphs.
        uniforms : ndarray of shape (n, V)
            Numbers from 0 up to, not including, 1: all the chance there is. Those of the first
            and the last variable of a graph seed its chain.

        Returns
        -------
        ndarray of shape (n, V)
            All 0 in a graph of which each combination is forbidden.
        """
        check_whole("burn_in", self.burn_in, 1)
        count, links = len(graph.factor_ptr) - 1, links_of(graph)
        samples = np.zeros(uniforms.shape, np.int64)
        filled = np.diff(graph.variable_ptr) > 0
        for turn, row in enumerate(uniforms):
            seeds = np.zeros((count, 2))
            seeds[filled, 0] = row[graph.variable_ptr[:-1][filled]]
            seeds[filled, 1] = row[graph.variable_ptr[1:][filled] - 1]
            chains, some = self._started(graph, links, turn, seeds)
            samples[turn] = np.where(np.repeat(some, np.diff(graph.variable_ptr)), chains.values, 0)
        return samples

    def _started(
        self, graph: FactorTables, links: Links, turn: int, seeds: FloatArray
    ) -> tuple[Chains, BoolArray]:
        """Return chains after `burn_in` sweeps, and which graphs have values that are allowed."""
        chance = of_states(graph, self.random_state, turn)
        values, some = allowed_values(graph, links, chance)
        moduli = np.array([FIRST_MODULUS, SECOND_MODULUS])
        chains = Chains(
            values, 1 + (seeds * (moduli - 1)).astype(np.int64), np.zeros(graph.state_ptr[-1]),
            np.zeros(len(graph.scores)), np.empty(graph.sizes.max(initial=1)),
        )  # fmt: skip
        draw_sweeps(graph, links, self.burn_in, 0.0, chains)
        return chains, some
