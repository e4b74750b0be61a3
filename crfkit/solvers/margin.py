"""Solvers of max-margin problems by their names."""

from __future__ import annotations

from crfkit.solvers.base import Solver
from crfkit.solvers.cutting_plane import CuttingPlane
from crfkit.solvers.frank_wolfe import BlockFrankWolfe
from crfkit.solvers.kernel_frank_wolfe import KernelFrankWolfe
from crfkit.solvers.margin_gradient import MarginEG
from crfkit.solvers.smo import SMO
from crfkit.solvers.subgradient import Subgradient

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
