"""Checks that every sequence classifier has to pass, for tests of one's own estimators too."""

from crfkit.testing.suite import (
    check_estimator,
    estimator_checks,
    parametrize_with_checks,
    yield_checks,
)

__all__ = ["check_estimator", "estimator_checks", "parametrize_with_checks", "yield_checks"]
