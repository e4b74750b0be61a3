"""Packed sequences of features, sequences of labels."""

from crfkit.data.edges import Edges, FeatureGraph
from crfkit.data.forest import Forest
from crfkit.data.frames import frame_from_sequences, labels_from_frame, sequences_from_frame
from crfkit.data.graph_forms import graph_from_networkx, graph_from_node_types
from crfkit.data.labels import UNLABELED, LabelSequences
from crfkit.data.packed import PackedSequences
from crfkit.data.segments import PackedSegments
from crfkit.data.soft import SoftLabels
from crfkit.data.weights import token_weights

__all__ = [
    "UNLABELED",
    "Edges",
    "FeatureGraph",
    "Forest",
    "LabelSequences",
    "PackedSegments",
    "PackedSequences",
    "SoftLabels",
    "frame_from_sequences",
    "graph_from_networkx",
    "graph_from_node_types",
    "labels_from_frame",
    "sequences_from_frame",
    "token_weights",
]
