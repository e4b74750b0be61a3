"""Solvers move the parameters; all they see is the objective."""

from crfkit.solvers.auto import AutoSolver
from crfkit.solvers.base import Solver
from crfkit.solvers.batch.conjugate_gradient import ConjugateGradient
from crfkit.solvers.batch.lbfgs import LBFGS, OWLQN
from crfkit.solvers.batch.newton import NewtonCG
from crfkit.solvers.batch.proximal import ProximalQuasiNewton
from crfkit.solvers.batch.rprop import Rprop
from crfkit.solvers.historical.iterative_scaling import GIS, IIS
from crfkit.solvers.online.passes import OnlineSolver
from crfkit.solvers.online.updates import AROW, MIRA, PassiveAggressive, Perceptron
from crfkit.solvers.stochastic.exponentiated_gradient import OEG
from crfkit.solvers.stochastic.sag import SAG
from crfkit.solvers.stochastic.sgd import SGD

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
