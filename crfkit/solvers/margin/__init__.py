"""Solvers of max-margin problems by their names."""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names
from crfkit._params import LazyClasses
from crfkit.solvers.base import Solver

if TYPE_CHECKING:
    from crfkit.solvers.historical.margin_dual import SMO as SMO
    from crfkit.solvers.historical.margin_dual import MarginEG as MarginEG
    from crfkit.solvers.margin.cutting_plane import CuttingPlane as CuttingPlane
    from crfkit.solvers.margin.frank_wolfe import BlockFrankWolfe as BlockFrankWolfe
    from crfkit.solvers.margin.kernel_frank_wolfe import KernelFrankWolfe as KernelFrankWolfe
    from crfkit.solvers.margin.subgradient import Subgradient as Subgradient

# Solvers of max-margin problems by the names that `solver=` takes.
MARGIN_SOLVERS: MutableMapping[str, type[Solver]] = LazyClasses(
    {
        "bcfw": "BlockFrankWolfe",
        "eg": "MarginEG",
        "smo": "SMO",
        "subgradient": "Subgradient",
        "cutting_plane": "CuttingPlane",
    },
    __name__,
)

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".historical.margin_dual": "SMO MarginEG",
        "cutting_plane": "CuttingPlane",
        "frank_wolfe": "BlockFrankWolfe",
        "kernel_frank_wolfe": "KernelFrankWolfe",
        "subgradient": "Subgradient",
    },
)
__all__ += ["MARGIN_SOLVERS"]
