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
from crfkit.solvers.online import OnlineSolver
from crfkit.solvers.owlqn import OWLQN
from crfkit.solvers.proximal import ProximalQuasiNewton
from crfkit.solvers.rprop import Rprop
from crfkit.solvers.updates import AROW, MIRA, PassiveAggressive, Perceptron

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
    "AROW",
    "AutoSolver",
    "GIS",
    "IIS",
    "LBFGS",
    "MIRA",
    "OEG",
    "OWLQN",
    "SAG",
    "SGD",
    "SOLVERS",
    "ConjugateGradient",
    "NewtonCG",
    "OnlineSolver",
    "PassiveAggressive",
    "Perceptron",
    "ProximalQuasiNewton",
    "Rprop",
    "Solver",
]
