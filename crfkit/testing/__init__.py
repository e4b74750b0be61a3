"""Checks that every sequence classifier has to pass, for tests of one's own estimators too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from inspect import signature
from typing import Any

from crfkit.testing import checks_api, checks_input, checks_prediction
from crfkit.testing._data import REPEATS, Check, fitted, has_parameter, make_data

__all__ = ["check_estimator", "estimator_checks", "parametrize_with_checks", "yield_checks"]

_MODULES = checks_api, checks_input, checks_prediction


def estimator_checks(estimator: Any) -> list[Check]:
    """Return the checks that an instance of a sequence classifier has to pass.

    Functions ``check_...(estimator)`` that raise, mostly AssertionError, where the property in
    their docstring does not hold. They work on copies. Those of what it does not offer
    (`predict_proba`, weights, `n_jobs`, `warm_start` ...) are left out.
    """
    return list(yield_checks(estimator))


def yield_checks(estimator: Any) -> Iterator[Check]:
    """Yield the checks of :func:`estimator_checks` one by one."""
    yield from checks_api.SKLEARN_CHECKS
    yield from checks_input.LABEL_CHECKS
    for module in _MODULES:
        for name, check in vars(module).items():
            own = name.startswith("check_") and check.__module__ == module.__name__
            if own and all(_offers(estimator, need) for need in getattr(check, "needs", ())):
                yield _given_data(check)


def _given_data(check: Callable[..., None]) -> Check:
    """Return a check of an estimator, which gets new data and a model of these if it names them."""
    named = signature(check).parameters

    @wraps(check)
    def run(estimator: Any) -> None:
        X, y = make_data()
        given = {"estimator": estimator, "X": X, "y": y}
        if "model" in named:
            given["model"] = fitted(estimator, X, y)
        check(**{name: given[name] for name in named})

    return run


def _offers(estimator: Any, name: str) -> bool:
    """Whether an estimator has a method, a parameter, or a parameter of ``fit``."""
    if name == REPEATS:
        # An online learner sees a sequence of weight 3 once; only minimizers of a sum see it
        # thrice. Chance decides what is learned; with a `solver`, it does not by default.
        return not has_parameter(estimator, "random_state") or has_parameter(estimator, "solver")
    known = has_parameter(estimator, name) or name in signature(estimator.fit).parameters
    return known or callable(getattr(estimator, name, None))


def check_estimator(estimator: Any) -> None:
    """Run all checks on an instance of a sequence classifier.

    AssertionError names the checks that failed; the first failure is its cause.

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
    """Return a pytest decorator that runs each check on each instance as a test of its own.

    It is for a test function with the arguments `estimator` and `check`.

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
