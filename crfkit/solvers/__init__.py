"""Solvers move the parameters; all they see is the objective."""

from crfkit.solvers.auto import AutoSolver
from crfkit.solvers.averaged_gradient import SAG
from crfkit.solvers.base import Solver
from crfkit.solvers.conjugate_gradient import ConjugateGradient
from crfkit.solvers.exponentiated_gradient import OEG
from crfkit.solvers.gradient_descent import SGD
from crfkit.solvers.iterative_scaling import GIS, IIS
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.newton import NewtonCG
from crfkit.solvers.owlqn import OWLQN
from crfkit.solvers.proximal import ProximalQuasiNewton
from crfkit.solvers.rprop import Rprop

SOLVERS: dict[str, type[Solver]] = {
    "auto": AutoSolver,
    "lbfgs": LBFGS,
    "owlqn": OWLQN,
    "oeg": OEG,
    "sag": SAG,
    "sgd": SGD,
    "proximal": ProximalQuasiNewton,
    "cg": ConjugateGradient,
    "newton": NewtonCG,
    "rprop": Rprop,
    "gis": GIS,
    "iis": IIS,
}

__all__ = [
    "AutoSolver",
    "GIS",
    "IIS",
    "LBFGS",
    "OEG",
    "OWLQN",
    "SAG",
    "SGD",
    "SOLVERS",
    "ConjugateGradient",
    "NewtonCG",
    "ProximalQuasiNewton",
    "Rprop",
    "Solver",
]
