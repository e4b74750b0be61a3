"""Potentials of graphs: weights of labels, and of pairs of them at the ends of edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from crfkit._parallel import Chunk, chunk_tokens
from crfkit._types import BoolArray, FloatArray, IntArray, ObjectArray, Potentials
from crfkit.data import Edges, PackedSequences
from crfkit.data.topology import Topology
from crfkit.data.validation import token_place
from crfkit.labels.base import LabelSpace
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.base import FeatureChoice, LabeledData
from crfkit.potentials.blocks import PotentialParts, WeightBlock
from crfkit.potentials.chain_blocks import (
    StateBlock,
    TransitionAttributeBlock,
    TransitionBlock,
    check_positive_edges,
)
from crfkit.potentials.choice import Choice
from crfkit.potentials.linear import LinearChainModel, LinearModel, WeightSpace, potentials_of
from crfkit.structures import Structure

# Which pairs of labels at the ends of an edge have weights: all, in each direction or in both
# alike, or two that are the same.
DIRECTED, UNDIRECTED, ASSOCIATIVE = "directed", "undirected", "associative"
PAIRS_OF_LABELS = (DIRECTED, UNDIRECTED, ASSOCIATIVE)
# Edges of a node that chunks have room for, where each may have a table of its own.
EDGES = 4


class GraphModel(LinearModel):
    """``unary_t[k] = sum_a x[t, a] w[a, k]``, ``pair_e[i, j] = v[i, j] + sum_b z[e, b] u_b[i, j]``.

    The edge e leads from label i at its source to label j at its target. Of `edge_weights`,
    "directed" has a weight for each pair of labels; "undirected" has ``v[i, j] = v[j, i]``, and u
    alike, one parameter for both, so that it does not matter in which direction an edge is written;
    "associative" has weights where ``i = j`` alone, none of which may be negative (Taskar,
    Chatalbashev and Koller 2004), so attributes of edges must not be either.

    Nodes of a type may have the labels `type_labels`, bool of shape (n_types, K), of it alone;
    `type_names`, shape (n_types,), are the names of types. None: nodes have no types.
    """

    block_types: ClassVar[dict[str, type[WeightBlock]]] = {
        block.name: block for block in (StateBlock, TransitionBlock, TransitionAttributeBlock)
    }
    linear = LinearChainModel.linear
    cells = LinearChainModel.cells
    check_counts = LinearChainModel.check_counts
    residuals = LinearChainModel.residuals
    other_tables: ClassVar[tuple[str, ...]] = ("edge_weights_", "type_labels_", "type_names_")

    def __init__(
        self,
        blocks: list[WeightBlock],
        structure: Structure,
        edge_weights: str = UNDIRECTED,
        type_labels: BoolArray | None = None,
        type_names: ObjectArray | None = None,
    ) -> None:
        super().__init__(blocks)
        self.structure, self.edge_weights = structure, edge_weights
        self.type_labels, self.type_names = type_labels, type_names
        self.n_labels = self.n_codes = self.n_columns
        own = self.transition_attributes is not None
        tokens = chunk_tokens(self.n_labels, own_transitions=own)
        self.chunk_tokens = max(1, tokens // EDGES) if own else tokens
        if edge_weights == ASSOCIATIVE:
            of_edges = (TransitionBlock.name, TransitionAttributeBlock.name)
            bounds = [np.full(b.n_parameters, b.name in of_edges) for b in self.blocks]
            self.nonnegative = np.concatenate(bounds)

    @classmethod
    def of_fitted(cls, blocks: list[WeightBlock], fitted: Mapping[str, Any]) -> Self:
        """Return the model of fitted weights, which stand at both places of a pair of labels."""
        kind, structure = fitted["edge_weights_"], fitted["structure_"]
        if kind == ASSOCIATIVE:
            blocks = [_positive(block) for block in blocks]
        return cls(blocks, structure, kind, fitted["type_labels_"], fitted["type_names_"])

    def complete(self, fitted: dict[str, Any], parameters: FloatArray) -> None:
        """Add which pairs of labels have weights, and the labels of types."""
        fitted["edge_weights_"] = self.edge_weights
        fitted["type_labels_"], fitted["type_names_"] = self.type_labels, self.type_names

    def finish(self, parts: PotentialParts, chunk: Chunk) -> Potentials:
        """Return the potentials that blocks have added to; nodes have labels of their type."""
        edges = edges_of(parts.topology)
        if self.type_labels is not None:
            codes = self._types(edges, chunk)
            parts.unary[~self.type_labels[codes]] = -np.inf
        elif edges.types is not None:
            raise ValueError(
                "X has types of nodes, but the model was fitted without: leave them out."
            )
        return potentials_of(self.structure, parts, chunk)

    def _types(self, edges: Edges, chunk: Chunk) -> IntArray:
        """Return the types of nodes among those of the fit; ValueError if one is not known."""
        names = () if self.type_names is None else self.type_names.tolist()
        if edges.types is None:
            raise ValueError(
                f"X has no types of nodes, but the model was fitted with {len(names)}: give each "
                "node one."
            )
        place = {name: i for i, name in enumerate(names)}
        known = np.array([place.get(name, -1) for name in edges.type_names.tolist()], np.int64)
        codes = known[edges.types]
        if codes.min(initial=0) < 0:
            t = int(np.argmax(codes < 0))
            s = int(np.searchsorted(edges.offsets, t, side="right")) - 1
            raise ValueError(
                f"graph {chunk.first + s}, node {t - edges.offsets[s]}: the type "
                f"{edges.type_names[edges.types[t]]!r:.80} was not among the training data."
            )
        return codes


def edges_of(topology: Topology | None) -> Edges:
    """Return the edges of graphs; ValueError if a topology is none of graphs."""
    if not isinstance(topology, Edges):
        what = "no edges" if topology is None else f"a {type(topology).__name__}, no graphs"
        raise ValueError(
            f"X has {what}: give graphs, such as crfkit.data.FeatureGraph, or packed sequences "
            "with X.with_topology(Edges(...))."
        )
    return topology


def _positive(block: WeightBlock) -> WeightBlock:
    """Return a block that checks that attributes of edges are not negative, if it has such."""
    if isinstance(block, TransitionAttributeBlock):
        return TransitionAttributeBlock(block.weights, is_positive=True)
    return block


class GraphWeights(WeightSpace):
    """Weights of graphs.

    `structure` reads the potentials; `edge_weights` says which pairs of labels have a weight, each
    of `PAIRS_OF_LABELS`, see :class:`GraphModel`. All such pairs have one, whether they occur in
    the training data or not, and so have they with each attribute of edges.
    """

    kind = GraphModel

    def __init__(
        self, labels: LabelSpace, structure: Structure, edge_weights: str = UNDIRECTED
    ) -> None:
        super().__init__(labels)
        self.structure, self.edge_weights = structure, edge_weights
        self.given = {"structure_": structure}

    def choose(self, features: FeatureChoice, training: LabeledData) -> LinearModel:
        """Return the model with the weights that are to be fitted."""
        data, size = training.data, len(training.classes)
        if features.boundary_weights:
            raise ValueError("graphs have no first and last nodes: set boundary_weights=False.")
        if data.segments is not None:
            raise ValueError(
                "X has attributes of segments, which graphs do not have: leave them out."
            )
        edges = edges_of(data.topology)
        if self.edge_weights == ASSOCIATIVE:
            check_positive_edges(data, slice(0, len(data)))
        options = self._options(features, training)
        choice = Choice(data, training.targets.states, size, **options)
        blocks: list[WeightBlock] = [StateBlock.choose(choice), *self._of_edges(data, size)]
        labels = None if edges.types is None else _labels_of_types(edges, training)
        names = None if edges.types is None else edges.type_names
        return GraphModel(blocks, self.structure, self.edge_weights, labels, names)

    def _of_edges(self, data: PackedSequences, size: int) -> list[WeightBlock]:
        """Return the weights of pairs of labels, and those with attributes of edges."""
        kind = self.edge_weights
        if kind == DIRECTED:
            source, target = np.divmod(np.arange(size * size), size)
        elif kind == UNDIRECTED:
            source, target = np.triu_indices(size)
        else:
            source = target = np.arange(size)
        both = kind == UNDIRECTED
        blocks: list[WeightBlock] = [TransitionBlock(source, target, size, is_mirrored=both)]
        rows = data.transitions
        if rows is not None:
            columns = np.tile((source * size + target).astype(np.int32), rows.n_features)
            ptr = np.arange(rows.n_features + 1, dtype=np.int64) * len(source)
            weights = AttributeWeights(ptr, columns, size * size, rows.n_sparse)
            positive = kind == ASSOCIATIVE
            blocks.append(TransitionAttributeBlock(weights, is_mirrored=both, is_positive=positive))
        return blocks


def _labels_of_types(edges: Edges, training: LabeledData) -> BoolArray:
    """Return the labels that nodes of each type have in training data, (n_types, K).

    ValueError if nodes of a type have none that is known.
    """
    targets, size, types = training.targets, len(training.classes), edges.types
    found = np.zeros((len(edges.type_names), size), bool)
    if types is None:
        return found
    counts = (training.weight > 0.0) & targets.known
    node, label = np.nonzero(targets.mask(size) & counts[:, None])
    found[types[node], label] = True
    bare = np.flatnonzero(~np.any(found, axis=1)[types])
    if len(bare):
        name = edges.type_names[types[bare[0]]]
        raise ValueError(
            f"{token_place(edges.offsets, int(bare[0]))}: no node of the type {name!r:.80} has a "
            "known label, so none can be learned for it: label some, or leave them out."
        )
    return found
