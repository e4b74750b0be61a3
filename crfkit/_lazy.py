"""Public names of packages; names that are imported when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def public_names(package: str) -> list[str]:
    """Return ``__all__`` of a package whose modules are imported with it, but for modules."""
    members = vars(sys.modules[package]).items()
    public = {name for name, value in members if not isinstance(value, ModuleType)}
    return sorted(name for name in public - {"public_names"} if not name.startswith("_"))


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__``, ``__dir__`` of a package whose names are in modules."""
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{modules[name]}", package), name)
        setattr(sys.modules[package], name, value)  # asked for once
        return value

    return sorted(modules), find, lambda: sorted({*vars(sys.modules[package]), *modules})
