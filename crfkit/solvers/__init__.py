"""Solvers move the parameters; all they see is the objective."""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from crfkit._lazy import lazy_names
from crfkit._params import LazyClasses
from crfkit.solvers.base import Solver as Solver

if TYPE_CHECKING:
    from crfkit.solvers.auto import AutoSolver as AutoSolver
    from crfkit.solvers.batch.conjugate_gradient import ConjugateGradient as ConjugateGradient
    from crfkit.solvers.batch.dense_newton import DenseNewton as DenseNewton
    from crfkit.solvers.batch.lbfgs import LBFGS as LBFGS
    from crfkit.solvers.batch.lbfgs import OWLQN as OWLQN
    from crfkit.solvers.batch.newton import NewtonCG as NewtonCG
    from crfkit.solvers.batch.rprop import Rprop as Rprop
    from crfkit.solvers.historical.iterative_scaling import GIS as GIS
    from crfkit.solvers.historical.iterative_scaling import IIS as IIS
    from crfkit.solvers.online.passes import OnlineSolver as OnlineSolver
    from crfkit.solvers.online.updates import AROW as AROW
    from crfkit.solvers.online.updates import MIRA as MIRA
    from crfkit.solvers.online.updates import PassiveAggressive as PassiveAggressive
    from crfkit.solvers.online.updates import Perceptron as Perceptron
    from crfkit.solvers.stochastic.exponentiated_gradient import OEG as OEG
    from crfkit.solvers.stochastic.sag import SAG as SAG
    from crfkit.solvers.stochastic.sgd import SGD as SGD

# Solvers by the names that `solver=` takes.
SOLVERS: MutableMapping[str, type[Solver]] = LazyClasses(
    {
        "auto": "AutoSolver",
        "lbfgs": "LBFGS",
        "owlqn": "OWLQN",
        "oeg": "OEG",
        "sag": "SAG",
        "sgd": "SGD",
        "cg": "ConjugateGradient",
        "newton": "NewtonCG",
        "dense_newton": "DenseNewton",
        "rprop": "Rprop",
        "gis": "GIS",
        "iis": "IIS",
    },
    __name__,
)

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "auto": "AutoSolver",
        "base": "Solver",
        "batch.conjugate_gradient": "ConjugateGradient",
        "batch.dense_newton": "DenseNewton",
        "batch.lbfgs": "LBFGS OWLQN",
        "batch.newton": "NewtonCG",
        "batch.rprop": "Rprop",
        "historical.iterative_scaling": "GIS IIS",
        "online.passes": "OnlineSolver",
        "online.updates": "AROW MIRA PassiveAggressive Perceptron",
        "stochastic.exponentiated_gradient": "OEG",
        "stochastic.sag": "SAG",
        "stochastic.sgd": "SGD",
    },
)
__all__ += ["SOLVERS"]
