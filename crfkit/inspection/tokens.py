"""Tokens as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crfkit.data import PackedSequences
from crfkit.inspection.scored import row_of

# Attributes of dicts that hold the word itself, the likely ones first.
WORDS = ("word", "w", "token", "form", "text", "word.lower()", "word.lower", "lower", "surface")
_MOST = 40  # letters of a token that are shown


def token_texts(x: Any, data: PackedSequences, model: Any) -> list[str]:
    """Return how the tokens of a sequence are shown: words where they are found."""
    items = list(x) if isinstance(x, (list, tuple)) else []
    if len(items) != data.n_tokens or not items:
        return [_attribute(data, t, model) for t in range(data.n_tokens)]
    return [text_of(item) or _attribute(data, t, model) for t, item in enumerate(items)]


def text_of(item: Any) -> str:
    """Return the word of a raw token; "" if it is not found."""
    if isinstance(item, str):
        return item[:_MOST]
    if isinstance(item, Mapping):
        found = next((item[key] for key in WORDS if isinstance(item.get(key), str)), None)
        if found is None:
            keys = (str(k) for k in item if str(k).startswith(("w=", "word=", "w[0]=", "w:")))
            found = next((key.split("=", 1)[-1] for key in keys), "")
        return str(found)[:_MOST]
    if isinstance(item, (list, tuple)) and item and isinstance(item[0], str):
        first: str = item[0]
        for lead in ("w[0]=", "w=", "word="):
            named = [part for part in item if isinstance(part, str) and part.startswith(lead)]
            if named:
                return str(named[0][len(lead) :])[:_MOST]
        return first[:_MOST]
    return ""


def _attribute(data: PackedSequences, t: int, model: Any) -> str:
    """Return the word that a packed token has as an attribute, or its number."""
    names = vars(model).get("_feature_names")
    if names is None:
        return f"#{t}"
    columns, _ = row_of(data, t)
    for lead in ("w[0]=", "w=", "w:", "word=", "symbol=", "U00:"):
        for name in model.feature_names_in_[columns].tolist():
            if str(name).startswith(lead):
                return str(name)[len(lead) :][:_MOST]
    return f"#{t}"
