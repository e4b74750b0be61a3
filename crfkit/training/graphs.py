"""Training data that are graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit.data import PackedSequences
from crfkit.data.graph_forms import as_graph
from crfkit.data.packed_graphs import as_graphs, of_nodes
from crfkit.data.targets import Targets
from crfkit.data.validation import is_matrix
from crfkit.features import GraphVectorizer
from crfkit.potentials.examples import Examples
from crfkit.training.data import Packed, TrainingData, pack_made
from crfkit.training.mistakes import warn_of_rows


def pack_graphs(X: Any, y: Any = None, features: Any = None) -> Packed:
    """Pack graphs to be learned from; where they need it, fit a clone of `features`."""
    if features is not None:
        data, vectorizer = pack_made(X, y, features, pack_graphs)
    elif isinstance(X, PackedSequences):
        data, vectorizer = X, None
    else:
        vectorizer = GraphVectorizer()
        data = vectorizer.fit_transform(X)
        if isinstance(X, list):
            nodes = [as_graph(graph).nodes for graph in X[:1]]
            warn_of_rows([tokens for tokens in nodes if not is_matrix(tokens)])
    return as_graphs(data), vectorizer


def known_nodes(model: Any, training: TrainingData) -> Examples:
    """Return the nodes whose label is known, in full or in part, and the edges between these."""
    if training.targets.allowed is None or training.known.all():
        return Examples(model, training)
    kept = training.targets.known
    tokens = np.flatnonzero(kept)
    targets = Targets.of_allowed(training.targets.allowed[tokens])
    data = of_nodes(training.data, kept)
    return Examples(
        model,
        training._replace(
            data=data, targets=targets, weight=training.weight[tokens], vectorizer=None
        ),
    )
