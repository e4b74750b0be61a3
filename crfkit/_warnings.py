"""Warnings that name the line of the user."""

from __future__ import annotations

import sys
import warnings

# Packages between the user and a warning: this one, and those that call it for the user.
_PASSED_BY = frozenset({"crfkit", "sklearn", "joblib", "numba"})


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is in none of the packages between the user and here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _package(frame.f_globals) in _PASSED_BY:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _package(namespace: dict[str, object]) -> str:
    return str(namespace.get("__name__", "")).partition(".")[0]
