"""Solvers of max-margin problems by their names."""

from __future__ import annotations

from crfkit.solvers.base import Solver
from crfkit.solvers.historical.margin_dual import SMO, MarginEG
from crfkit.solvers.margin.cutting_plane import CuttingPlane
from crfkit.solvers.margin.frank_wolfe import BlockFrankWolfe
from crfkit.solvers.margin.kernel_frank_wolfe import KernelFrankWolfe
from crfkit.solvers.margin.subgradient import Subgradient

MARGIN_SOLVERS: dict[str, type[Solver]] = {
    "bcfw": BlockFrankWolfe,
    "eg": MarginEG,
    "smo": SMO,
    "subgradient": Subgradient,
    "cutting_plane": CuttingPlane,
}

__all__ = [
    "MARGIN_SOLVERS",
    "SMO",
    "BlockFrankWolfe",
    "CuttingPlane",
    "KernelFrankWolfe",
    "MarginEG",
    "Subgradient",
]
