"""From parameters of estimators, checked, to the parts of a problem."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from sklearn.utils import check_random_state

from crfkit._params import check_flag, check_method, check_number, check_option, check_whole
from crfkit.estimators.segments import Segments
from crfkit.labels.tokens import TokenLabels
from crfkit.losses import LOSSES, Loss
from crfkit.objective.penalties import ElasticNet
from crfkit.training.data import TrainingData
from crfkit.training.early_stopping import find_rules
from crfkit.training.problem import FeatureChoice, Problem


def make_problem(estimator: Any, **parts: Any) -> Problem:
    """Return a problem with these parts, and what all estimators say by the same parameters.

    Raises
    ------
    TypeError, ValueError
        If a parameter cannot be used.
    """
    _check_shared(estimator)
    usual: dict[str, Any] = FeatureChoice()._asdict()
    features = FeatureChoice(**{name: getattr(estimator, name, usual[name]) for name in usual})
    given = estimator.get_params(deep=False)
    return Problem(
        features=features, early_stopping=find_rules(given.get("early_stopping", False)),
        validation_fraction=given.get("validation_fraction", 0.1),
        random_state=estimator.random_state, n_jobs=estimator.n_jobs,
        verbose=int(estimator.verbose), **parts,
    )  # fmt: skip


def _check_shared(estimator: Any) -> None:
    """Check the parameters that mean the same for all estimators that have them."""
    given = estimator.get_params(deep=False)
    check_whole("min_freq", given["min_freq"])
    if not isinstance(given["verbose"], bool):
        check_whole("verbose", given["verbose"])
    if given["n_jobs"] is not None:
        check_whole("n_jobs", given["n_jobs"], None)
    if given["max_iter"] is not None:
        check_whole("max_iter", given["max_iter"])
    for name in ("all_possible_states", "all_possible_transitions", "boundary_weights",
                 "warm_start"):  # fmt: skip
        check_flag(name, given.get(name, False))
    _check_early_stopping(given.get("early_stopping", False), given.get("validation_fraction", 0.1))
    check_random_state(given["random_state"])
    estimator._decoder()


def _check_early_stopping(rules: Any, fraction: Any) -> None:
    find_rules(rules)
    check_number("validation_fraction", fraction)
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"validation_fraction={fraction!r} must be between 0 and 1.")


def elastic_net(estimator: Any) -> ElasticNet:
    """Return the penalty of the parameters `c1` and `c2`."""
    check_number("c1", estimator.c1)
    check_number("c2", estimator.c2)
    return ElasticNet(float(estimator.c1), float(estimator.c2))


def chosen_solver(estimator: Any, solvers: Mapping[str, Any]) -> Any:
    """Return the solver of the parameter `solver`, with its number of iterations, and seed, set.

    None leaves `max_iter` to the solver; `random_state` is only for one that is named.
    """
    solver = estimator.solver
    if isinstance(solver, str):
        check_option("solver", solver, solvers)
        solver = solvers[solver]()
        if estimator.random_state is not None and solver.is_random:
            solver.random_state = estimator.random_state
    else:
        check_method("solver", solver, "solve")
    if estimator.max_iter is not None:
        check_whole("max_iter", estimator.max_iter)
        solver = copy.copy(solver)
        solver.max_iter = int(estimator.max_iter)
    return solver


def chosen_loss(estimator: Any) -> Callable[[TrainingData], Loss]:
    """Return how the loss of the parameters `loss` and `cost` is made."""
    loss, cost = estimator.loss, estimator.cost
    if isinstance(loss, str):
        check_option("loss", loss, LOSSES)
    else:
        check_method("loss", loss, "value_and_grad")
    if isinstance(cost, str):
        check_option("cost", cost, ("hamming", "zero_one"))

    def make(training: TrainingData) -> Loss:
        found: Any = LOSSES[loss]() if isinstance(loss, str) else loss
        if not getattr(found, "takes_cost", False):
            return found  # type: ignore[no-any-return]
        found = copy.copy(found)
        given = cost if isinstance(loss, str) else found.cost
        found.cost = given if hasattr(given, "total") else training.cost(given)
        return found  # type: ignore[no-any-return]

    return make


def labels_of(structure: Any, warm_start: bool) -> Any:
    """Return the label space of the parameter `structure`."""
    if isinstance(structure, Segments):
        structure._check_parameters()
        if warm_start:
            raise ValueError(
                "warm_start=True carries weights of the labels of tokens over, not of segments: "
                "use structure='chain', or warm_start=False."
            )
        return structure._layout()
    message = f"structure={structure!r:.80} must be 'chain' or Segments()."
    if not isinstance(structure, str):
        raise TypeError(message)
    if structure != "chain":
        raise ValueError(message)
    return TokenLabels()
