"""Functions are stored by name and imported only where the caller allows it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any

FUNCTION_TYPES = (FunctionType, BuiltinFunctionType)


def function_name(function: Callable[..., Any]) -> str:
    """Return ``module:name`` of a function at the top of an importable module.

    TypeError tells that it is a lambda, stands inside something else or in ``__main__``, or that
    its name means another object.
    """
    module, name = function.__module__, function.__qualname__
    if module == "__main__":
        raise TypeError(
            f"the function {name!r} stands in __main__, where no other program finds it: put it "
            "into a module and import it from there"
        )
    found = getattr(sys.modules.get(module), name, None) if module else None
    if found is not function:
        raise TypeError(
            f"the function {module}:{name} cannot be imported by its name: only functions at the "
            "top of a module can be saved, no lambdas, methods or inner functions"
        )
    return f"{module}:{name}"


def known_functions(
    allow: Iterable[str | Callable[..., Any]],
) -> dict[str, Callable[..., Any] | None]:
    """Return the functions that a file may name, None where one is still to be imported.

    TypeError tells that `allow` is a string or holds anything but ``"module:name"`` and functions.
    """
    if isinstance(allow, str):
        raise TypeError(f"allow must be a list of names or functions, such as [{allow!r}].")
    known: dict[str, Callable[..., Any] | None] = {}
    for item in allow:
        if isinstance(item, str):
            known.setdefault(item, None)
        elif isinstance(item, FUNCTION_TYPES):
            known[f"{item.__module__}:{item.__qualname__}"] = item
        else:
            raise TypeError(f"allow holds {item!r}, which is neither a name nor a function.")
    return known


def find_functions(
    known: dict[str, Callable[..., Any] | None], wanted: Iterable[str]
) -> dict[str, Callable[..., Any]]:
    """Return the functions that a file wants, by name.

    ValueError names all that are not allowed, or one that cannot be imported.
    """
    names = sorted(set(wanted))
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"the model uses the functions {missing}, which would run as a part of it. If you "
            f"know and trust them, load it with allow={missing}"
        )
    return {name: known[name] or _imported(name) for name in names}


def _imported(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"the allowed function {name!r} cannot be imported ({error}): install or restore the "
            "module that has it"
        ) from error
    if not isinstance(found, FUNCTION_TYPES):
        raise ValueError(f"{name!r} is no function but {type(found).__name__}")
    return found
