"""Parameters of rules as what JSON can hold, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from crfkit.data.labels import UNLABELED

ANY_OF = "any_of"  # the key of a set


def plain(value: Any) -> Any:
    """Return a parameter as lists, dicts, strings and numbers; TypeError if it cannot be.

    Sets become ``{"any_of": [...]}``, `UNLABELED` becomes None.
    """
    if value is UNLABELED:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return {ANY_OF: sorted(map(plain, value), key=lambda item: (str(type(item)), repr(item)))}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(item) for item in value]
    raise TypeError(f"{value!r:.60} is no string, number, list or dict, which JSON can hold.")


def read_plain(value: Any, key: type = str) -> Any:
    """Return a parameter that `plain` has written; the keys of a dict are of some type."""
    if isinstance(value, dict):
        if set(value) == {ANY_OF}:
            return frozenset(value[ANY_OF])
        return {key(name): read_plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [UNLABELED if item is None else read_plain(item) for item in value]
    return value
