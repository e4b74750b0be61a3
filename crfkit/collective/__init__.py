"""Labels of the nodes of a graph, found together: baselines beside graph CRFs, and features."""

from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.collective.features import NeighborFeatures as NeighborFeatures
    from crfkit.collective.gibbs import GibbsClassifier as GibbsClassifier
    from crfkit.collective.iterative import IterativeClassifier as IterativeClassifier
    from crfkit.collective.nodes import NodeClassifier as NodeClassifier
    from crfkit.collective.propagation import LabelPropagation as LabelPropagation

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "features": "NeighborFeatures",
        "gibbs": "GibbsClassifier",
        "iterative": "IterativeClassifier",
        "nodes": "NodeClassifier",
        "propagation": "LabelPropagation",
    },
)
