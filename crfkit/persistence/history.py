"""Attributes that had other names when a file was written."""

from __future__ import annotations

from typing import Any

from crfkit.data import PackedSequences

_ATTRIBUTES = {
    "step_coef_": "transition_coef_",
    "step_vocabulary_": "transition_vocabulary_",
    "_step_names": "_transition_names",
}
# Parts of the arrays that `partial_fit` remembers.
_PARTS = {
    "state": "coef_",
    "pair": "transitions_",
    "start": "start_weights_",
    "end": "end_weights_",
    "steps": "transition_coef_",
}


def with_new_names(cls: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an object of the package under the names that they have by now."""
    if not cls.__module__.startswith("crfkit."):
        return attributes
    names = _ATTRIBUTES | ({"steps": "transitions"} if cls is PackedSequences else {})
    renamed = {names.get(name, name): value for name, value in attributes.items()}
    match renamed.get("_partial_state"):
        case {"arrays": dict() as arrays, **others}:
            new = {name: _parts(parts) for name, parts in arrays.items()}
            renamed["_partial_state"] = {"arrays": new, **others}
    return renamed


def _parts(parts: Any) -> Any:
    """Return one of the arrays by the fitted attributes that it has the form of."""
    if not isinstance(parts, dict):
        return parts
    return {_PARTS.get(name, name): value for name, value in parts.items()}
