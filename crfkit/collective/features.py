"""Attributes of nodes that tell of the attributes of their neighbors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from crfkit._params import check_option, check_whole
from crfkit.collective.links import adjacency_of, inverse
from crfkit.data import PackedSequences
from crfkit.data.names import Names
from crfkit.features.composition import side_by_side
from crfkit.features.vectorizer import SequenceTransformer
from crfkit.persistence import check_steps, register
from crfkit.training.graphs import pack_graphs


def _mean(links: sp.csr_array) -> sp.csr_array:
    return sp.diags_array(inverse(links.sum(axis=1))) @ links


def _normalized(links: sp.csr_array) -> sp.csr_array:
    with_self = links + sp.eye_array(links.shape[0])
    scale = sp.diags_array(1.0 / np.sqrt(with_self.sum(axis=1)))
    return scale @ with_self @ scale


# What the attributes of a hop are multiplied by to give those of the next.
_STEPS: dict[str, Callable[[sp.csr_array], sp.csr_array]] = {
    "mean": _mean, "sum": sp.csr_array, "count": sp.csr_array, "normalized": _normalized
}  # fmt: skip


@register(check=check_steps)
@dataclass(kw_only=True, eq=False, repr=False)
class NeighborFeatures(SequenceTransformer):
    """Give each node the attributes of its neighbors, beside its own.

    Parameters
    ----------
    transformer : transformer or None, default=None
        Makes the attributes of nodes: turns graphs into PackedSequences, which keep their edges.
        None is for graphs as :class:`crfkit.GraphCRF` reads them, and for PackedSequences.
    hops : sequence of int, default=(0, 1)
        Which attributes nodes get: 0 stands for their own, 1 for those of their neighbors, 2 for
        those of the neighbors of neighbors, each of which may be reached in several ways, and so
        on.
    aggregate : {"mean", "sum", "count", "normalized"}, default="mean"
        What is made of the values of neighbors. With A the numbers of edges between nodes and D
        those at each node, hop h of the attributes X is ``(D^-1 A)^h X`` ("mean"), ``A^h X``
        ("sum"), ``A^h`` times which values are not 0 ("count"), or ``((D + I)^-1/2 (A + I)
        (D + I)^-1/2)^h X`` ("normalized"), in which a node is a neighbor of itself (Wu et al.
        2019).

    Attributes
    ----------
    transformer_ : transformer or None
        The fitted transformer; None for PackedSequences.

    Notes
    -----
    Attributes stay sparse, but each hop has more of them. The edges and their attributes are kept.
    Names tell the hop: ``1 mean__word``.

    References
    ----------
    Wu, Souza, Zhang, Fifty, Yu and Weinberger (2019), "Simplifying graph convolutional networks".

    Examples
    --------
    >>> from crfkit.collective import NeighborFeatures
    >>> from crfkit.data import FeatureGraph
    >>> X = [FeatureGraph([["a"], ["b"], ["c"]], [(0, 1), (1, 2)])]
    >>> packed = NeighborFeatures().fit_transform(X)
    >>> packed.to_dicts()[0][1]
    {'0__b': 1.0, '1 mean__a': 0.5, '1 mean__c': 0.5}
    """

    transformer: Any = field(default=None, kw_only=False)
    hops: Sequence[int] = (0, 1)
    aggregate: str = "mean"

    def _fit(self, X: Any, y: Any) -> PackedSequences:
        check_option("aggregate", self.aggregate, _STEPS)
        hops = list(self.hops)
        for hop in hops:
            check_whole("a hop", hop)
        if not hops or len(set(hops)) < len(hops):
            raise ValueError(f"hops={self.hops!r} must name different hops, one at least.")
        packed, self.transformer_ = self._learned(X, y)
        made = _made(packed, hops, self.aggregate)
        self.hops_, self.aggregate_, self._names = hops, self.aggregate, made.names
        return made

    def _learned(self, X: Any, y: Any) -> tuple[PackedSequences, Any]:
        """Return the attributes of nodes, and the fitted transformer that made them."""
        if self.transformer is not None:
            transformer = clone(self.transformer)
            return transformer.fit_transform(X, y), transformer
        return (X, None) if isinstance(X, PackedSequences) else pack_graphs(X)

    def _transform(self, X: Any) -> PackedSequences:
        packed = X if isinstance(X, PackedSequences) else self.transformer_.transform(X)
        made = _made(packed, self.hops_, self.aggregate_)
        made.names = self._names
        return made

    def _token_names(self) -> Names:
        assert self._names is not None  # what was joined has names
        return self._names


def _made(packed: PackedSequences, hops: list[int], aggregate: str) -> PackedSequences:
    """Return the attributes of chosen hops side by side."""
    step, blocks = _STEPS[aggregate](adjacency_of(packed)), {0: _plain(packed)}
    sparse, dense = packed.sparse, packed.dense
    if aggregate == "count":
        sparse = None if sparse is None else (sparse != 0.0).astype(float)
        dense = None if dense is None else (dense != 0.0).astype(float)
    for hop in range(1, max(hops) + 1):
        sparse = None if sparse is None else step @ sparse
        dense = None if dense is None else step @ dense
        blocks[hop] = PackedSequences(sparse, dense, offsets=packed.offsets)
        blocks[hop].names = packed.names
    named = {hop: f"{hop} {aggregate}__" if hop else "0__" for hop in hops}
    joined = side_by_side([(name, blocks[hop]) for hop, name in named.items()])
    return joined.with_topology(packed.topology).with_transitions(packed.transitions)


def _plain(packed: PackedSequences) -> PackedSequences:
    """Return the attributes of nodes alone."""
    return packed.with_transitions(None).with_topology(None)
