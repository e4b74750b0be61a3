"""Solvers move the parameters; all they see is the objective."""

from crfkit.solvers.base import Solver
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.owlqn import OWLQN

SOLVERS: dict[str, type[Solver]] = {"lbfgs": LBFGS, "owlqn": OWLQN}

__all__ = ["LBFGS", "OWLQN", "SOLVERS", "Solver"]
