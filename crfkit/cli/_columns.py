"""Rows of a file of one format for a model that was trained on another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from crfkit.cli.formats import DataFormat

UNUSED = "_"  # stands in columns that the model does not look at


def columns_read(features: Any) -> list[str | int] | None:
    """Return the columns that a pipeline looks at, None where that is not known."""
    found: list[str | int] = []
    for _, step in features.steps:
        parts = [part for _, part in getattr(step, "transformers", [("", step)])]
        if not all(hasattr(part, "columns_read") for part in parts):
            return None
        found += [reference for part in parts for reference in part.columns_read]
    return found


class ColumnMatch(NamedTuple):
    """Where the columns of a model stand in the rows of a file; None for those it does not need."""

    places: list[int | None]

    @classmethod
    def of(cls, model: Any, data: DataFormat, width: int) -> ColumnMatch:
        """Match columns by name; words are the first column of all.

        ValueError names a column that the model looks at and the file does not have.
        """
        names: Sequence[str | int] = model.columns or range(model.width)
        known: list[str | int] = list(data.columns or range(width))
        places = [known.index(name) if name in known else None for name in names]
        if places and places[0] is None and known:
            places[0] = 0
        used = [0] if model.features is None else columns_read(model.features)
        needed = range(len(names)) if used is None else {_place(each, names) for each in used}
        missing = [str(names[i]) for i in sorted(needed) if places[i] is None]
        if missing:
            has = f"has {', '.join(map(str, known))}" if data.columns else f"has {width} column(s)"
            raise ValueError(
                f"the model looks at the column {missing[0]!r}, which the data (--format "
                f"{data.name}) do not have: it {has}. Give data with that column, or a model whose "
                "templates look at words alone."
            )
        return cls(places)

    def rows(self, X: Sequence[Any]) -> list[Any]:
        """Return the rows of sequences as the model takes them."""
        return [
            [tuple(UNUSED if i is None else token[i] for i in self.places) for token in tokens]
            for tokens in X
        ]


def _place(reference: str | int, names: Sequence[str | int]) -> int:
    """Return the number of a column that a template names."""
    if isinstance(reference, int):
        return range(len(names))[reference]
    return list(names).index(reference)


def foreign_rows(features: Any, data: DataFormat, X: Sequence[Any]) -> Any:
    """Return the rows of a file for a model that does not say what it was trained on."""
    if not data.has_columns or not X or features is None:
        return X
    step = features[0]
    used, names = columns_read(features), data.columns
    if names is not None and getattr(step, "columns", None) is None and _are_names(used):
        return [[dict(zip(names, token, strict=True)) for token in tokens] for tokens in X]
    if not data.has_labels and len(X[0][0]) == 1:
        return [[token[0] for token in tokens] for tokens in X]
    return X


def _are_names(used: list[str | int] | None) -> bool:
    return used is not None and any(isinstance(reference, str) for reference in used)
