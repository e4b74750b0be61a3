"""Random fields of a few variables: their graphs, and exact answers by enumeration."""

from crfkit.graphs.build import (
    chow_liu,
    complete,
    grid,
    multilabel_graphs,
    multilabel_indicators,
    multilabel_labels,
)
from crfkit.graphs.canonical import canonical_factors
from crfkit.graphs.factors import Factor
from crfkit.graphs.fields import RandomField
from crfkit.graphs.graph import Graph, Independence

__all__ = [
    "Factor",
    "Graph",
    "Independence",
    "RandomField",
    "canonical_factors",
    "chow_liu",
    "complete",
    "grid",
    "multilabel_graphs",
    "multilabel_indicators",
    "multilabel_labels",
]
