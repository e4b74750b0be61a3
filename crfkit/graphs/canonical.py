"""The potentials of a positive distribution: the theorem of Hammersley and Clifford."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain, combinations

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import FloatArray
from crfkit.graphs.factors import Factor


def canonical_factors(
    probabilities: ArrayLike,
    nodes: Sequence[Hashable],
    reference: Mapping[Hashable, int] | None = None,
    tol: float = 1e-9,
) -> list[Factor]:
    r"""Return the canonical factors of a distribution, none of which says what smaller ones say.

    The score of the values of a set A of variables is

    .. math:: Q_A(x_A) = \sum_{B \subseteq A} (-1)^{|A| - |B|} \log P(x_B, r)

    where the variables outside B have their reference values r (Möbius inversion; Besag 1974,
    Clifford 1990). It is 0 where a variable of A has its reference value. The scores of all sets
    add up to log P, so the random field of these factors has this distribution, and log Z = 0. If
    the distribution has the local Markov property of a graph, Q_A vanishes unless A is a clique.

    Parameters
    ----------
    probabilities : array-like
        Of all combinations of values, an axis for each variable. All positive: there is no such
        theorem about others (Moussouri 1974).
    nodes : sequence
        The variables.
    reference : mapping, optional
        The reference values, 0 where none is given.
    tol : float, default=1e-9
        Factors whose scores are all this small are left out.

    Returns
    -------
    list of Factor
        First that of no variable (log P of the reference values), then those of single ones, of
        pairs and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.graphs import canonical_factors
    >>> first, step = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> chain = np.einsum("a,ab,bc->abc", first, step, step)  # P(a) P(b | a) P(c | b)
    >>> [factor.nodes for factor in canonical_factors(chain, "abc")]
    [(), ('a',), ('b',), ('c',), ('a', 'b'), ('b', 'c')]
    """
    table = np.array(probabilities, float)
    if not (table > 0.0).all():
        raise ValueError("some combinations of values have no positive probability.")
    base = [(reference or {}).get(node, 0) for node in nodes]
    scores = np.log(Factor.of(nodes, table).scores)
    for axis, value in enumerate(base):  # differences to the reference value along each axis
        along = np.moveaxis(scores, axis, 0)
        kept = along[value].copy()
        along -= kept
        along[value] = kept
    every = range(len(nodes) + 1)
    chosen = chain.from_iterable(combinations(range(len(nodes)), size) for size in every)
    factors = (_factor_of(axes, scores, nodes, base) for axes in chosen)
    return [each for each in factors if not each.nodes or abs(each.scores).max() > tol]


def _factor_of(
    chosen: tuple[int, ...], scores: FloatArray, nodes: Sequence[Hashable], base: list[int]
) -> Factor:
    """Return the factor of some axes; entries with a reference value are scores of smaller sets."""
    place = tuple(slice(None) if i in chosen else value for i, value in enumerate(base))
    table = np.array(scores[place])
    for axis, i in enumerate(chosen):
        np.moveaxis(table, axis, 0)[base[i]] = 0.0
    return Factor.of([nodes[i] for i in chosen], table)
