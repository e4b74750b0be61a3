"""The list of checks that every sequence classifier has to pass, and ways to run it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from inspect import signature
from typing import Any

from crfkit.testing._data import has_parameter
from crfkit.testing.checks_api import (
    API_CHECKS,
    DATA_FREE_CHECKS,
    check_random_state,
    check_warm_start,
)
from crfkit.testing.checks_errors import ERROR_CHECKS
from crfkit.testing.checks_input import INPUT_CHECKS
from crfkit.testing.checks_prediction import (
    LOG_PROBA_CHECKS,
    PREDICTION_CHECKS,
    PROBA_CHECKS,
    check_log_proba_agrees_with_proba,
    check_n_jobs,
)
from crfkit.testing.checks_weights import EXACT_WEIGHT_CHECKS, WEIGHT_CHECKS

Check = Callable[[Any], None]


def estimator_checks(estimator: Any) -> list[Check]:
    """Return the checks that a sequence classifier has to pass.

    Parameters
    ----------
    estimator : estimator
        An instance. Checks of what it does not offer (`predict_proba`, `sequence_log_proba`,
        weights, `n_jobs`, `random_state`, `warm_start`) are left out.

    Returns
    -------
    list of callables
        Functions ``check_...(estimator)`` that raise, mostly AssertionError, where the property
        in their docstring does not hold. They work on copies.
    """
    return list(yield_checks(estimator))


def yield_checks(estimator: Any) -> Iterator[Check]:
    """Yield the checks of :func:`estimator_checks` one by one.

    Parameters
    ----------
    estimator : estimator
        An instance.
    """
    yield from DATA_FREE_CHECKS
    yield from API_CHECKS
    yield from INPUT_CHECKS
    yield from PREDICTION_CHECKS
    yield from ERROR_CHECKS
    yield from _checks_of_parameters(estimator)
    yield from _checks_of_probabilities(estimator)
    yield from _checks_of_weights(estimator)


def _checks_of_parameters(estimator: Any) -> Iterator[Check]:
    """Yield the checks of parameters that an estimator need not have."""
    checks = {
        "n_jobs": check_n_jobs,
        "random_state": check_random_state,
        "warm_start": check_warm_start,
    }
    return (check for name, check in checks.items() if has_parameter(estimator, name))


def _checks_of_probabilities(estimator: Any) -> Iterator[Check]:
    tokens, paths = (hasattr(estimator, n) for n in ("predict_proba", "sequence_log_proba"))
    if tokens:
        yield from PROBA_CHECKS
    if paths:
        yield from LOG_PROBA_CHECKS
    if tokens and paths:
        yield check_log_proba_agrees_with_proba


def _checks_of_weights(estimator: Any) -> Iterator[Check]:
    if "sample_weight" not in signature(estimator.fit).parameters:
        return
    yield from WEIGHT_CHECKS
    # An online learner sees a sequence of weight 3 once; only minimizers of a sum see it thrice.
    if hasattr(estimator, "predict_proba") and not _learns_online(estimator):
        yield from EXACT_WEIGHT_CHECKS


def _learns_online(estimator: Any) -> bool:
    """Whether chance decides what is learned; with a `solver`, it does not by default."""
    return has_parameter(estimator, "random_state") and not has_parameter(estimator, "solver")


def check_estimator(estimator: Any) -> None:
    """Run all checks on a sequence classifier.

    Parameters
    ----------
    estimator : estimator
        An instance.

    Raises
    ------
    AssertionError
        Naming the checks that failed; the first failure is its cause.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.testing import check_estimator
    >>> check_estimator(CRFClassifier())
    """
    failures: list[tuple[str, Exception]] = []
    for check in yield_checks(estimator):
        try:
            check(estimator)
        except Exception as error:
            failures.append((check.__name__, error))
    if failures:
        names = ", ".join(name for name, _ in failures)
        raise AssertionError(f"{estimator!r} fails {names}") from failures[0][1]


def parametrize_with_checks(estimators: Iterable[Any]) -> Any:
    """Return a pytest decorator that runs each check on each estimator as a test of its own.

    Parameters
    ----------
    estimators : iterable of estimators
        Instances.

    Returns
    -------
    decorator
        For a test function with the arguments `estimator` and `check`.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.testing import parametrize_with_checks
    >>> @parametrize_with_checks([CRFClassifier(), CRFClassifier(c1=0.1)])
    ... def test_estimator(estimator, check):
    ...     check(estimator)
    """
    import pytest

    cases = [
        pytest.param(estimator, check, id=f"{_name(estimator)}-{check.__name__}")
        for estimator in estimators
        for check in yield_checks(estimator)
    ]
    return pytest.mark.parametrize(("estimator", "check"), cases)


def _name(estimator: Any) -> str:
    """Return ``Class`` or ``Class(parameter=value)`` without spaces."""
    return re.sub(r"\s|\(\)$", "", repr(estimator))
