"""Checks of parameters, whose messages name the parameter and the value, and named options."""

from __future__ import annotations

import math
from collections import UserDict
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np


def check_number(name: str, value: Any, least: float = 0.0) -> None:
    """Raise if a parameter is not a finite number of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name}={value!r} must be a number, not {type(value).__name__}.")
    if not math.isfinite(value) or value < least:
        raise ValueError(f"{name}={value!r} must be finite and at least {least:g}.")


def check_positive(name: str, value: Any) -> None:
    """Raise if a parameter is not a finite number above 0."""
    check_number(name, value)
    if value == 0.0:
        raise ValueError(f"{name}={value!r} must be above 0.")


def check_whole(name: str, value: Any, least: int | None = 0) -> None:
    """Raise if a parameter is not a whole number, or one below `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}={value!r} must be a whole number, not {type(value).__name__}.")
    if least is not None and value < least:
        raise ValueError(f"{name}={value!r} must be at least {least}.")


def check_option(name: str, value: Any, options: Iterable[str]) -> None:
    """Raise ValueError if a string parameter is not one of the options."""
    known = sorted(options)
    if value not in known:
        raise ValueError(
            f"{name}={value!r} is not known; choose one of {known}.{meant(value, known)}"
        )


def meant(given: Any, known: Iterable[str]) -> str:
    """Return a question for the known name that is most like a given one, if one is like it."""
    from difflib import get_close_matches  # only errors need it

    names = {name.casefold(): name for name in known}
    plain = str(given).casefold()
    swapped = [name for name in names if sorted(name) == sorted(plain)]
    close = swapped or get_close_matches(plain, names, n=1)
    return f" Did you mean {names[close[0]]!r}?" if close else ""


def check_method(name: str, value: Any, method: str, other: str = "a string") -> None:
    """Raise TypeError if a parameter that is no string (or other thing) has not a method."""
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        raise TypeError(
            f"{name}={value!r} must be {other} or an object with the method {method!r}."
        )


def find_named(
    name: str, value: Any, options: Mapping[str, Any], method: str, other: str = "a string"
) -> Any:
    """Return a parameter that is an object with a method, or names one of some classes."""
    if isinstance(value, str):
        check_option(name, value, options)
        return options[value]()
    check_method(name, value, method, other)
    return value


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError if a parameter is not a boolean."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}={value!r} must be True or False.")


class LazyClasses(UserDict[str, Any]):
    """Classes by short names; for the name of a class, a package is asked."""

    def __init__(self, classes: Mapping[str, Any], package: str = "") -> None:
        self.package = package
        super().__init__(classes)

    def __getitem__(self, key: str) -> Any:
        """Return a class."""
        value = self.data[key]
        if isinstance(value, str):
            value = self.data[key] = getattr(import_module(self.package), value)
        return value

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        """Return a dict of these and others."""
        return dict(self) | dict(other)


def refuse_mask(values: Any, where: str, advice: str) -> None:
    """Raise ValueError where values are masked, which would be read as if they were not."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{where} has masked values, which would be read as if they were not. {advice}"
        )
