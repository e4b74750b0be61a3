"""Data frames as sequences: one row a token, a column that tells the sequences apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import FloatArray, Frame, IntArray


def group_offsets(groups: ArrayLike) -> IntArray:
    """Return the offsets of the runs of equal group values.

    Parameters
    ----------
    groups : array of shape (N,)
        Any values.

    Returns
    -------
    ndarray of shape (S + 1,)
        Where the runs start, and the end.

    Raises
    ------
    ValueError
        If a value comes back after another one.
    """
    values = np.asarray(groups)
    if values.ndim != 1:
        raise ValueError(f"groups must have one value a token, not the shape {values.shape}.")
    starts = np.flatnonzero(values[1:] != values[:-1]) + 1
    offsets = np.concatenate([[0], starts, [len(values)]]).astype(np.int64)
    offsets = np.unique(offsets)
    seen: set[Any] = set()
    for start, value in zip(offsets[:-1], values[offsets[:-1]].tolist(), strict=True):
        if value is None or value != value:
            raise ValueError(
                f"row {start}: the group is missing ({value!r}); every token needs one."
            )
        if value in seen:
            raise ValueError(
                f"row {start}: group {value!r} comes back after another one. "
                "Sort the rows by group, keeping the order of the tokens."
            )
        seen.add(value)
    return offsets


def frame_columns(df: Frame, by: str, columns: Sequence[str] | None) -> list[str]:
    """Return the feature columns of a frame; a missing one raises ValueError."""
    chosen = [name for name in df.columns if name != by] if columns is None else list(columns)
    if len(set(df.columns)) < len(df.columns):
        raise ValueError(f"the frame has columns of the same name: {list(df.columns)}.")
    if not chosen:
        raise ValueError(f"the frame has no columns but {by!r}: there are no features.")
    missing = [name for name in [by, *chosen] if name not in df.columns]
    if missing:
        raise ValueError(f"the frame has no column {missing[0]!r}; it has {list(df.columns)}.")
    return chosen


def numeric_block(df: Frame, names: Sequence[str]) -> FloatArray:
    """Return columns as a block of shape (N, F); TypeError names a column that is not numeric."""
    for name in names:
        if df[name].dtype.kind not in "biuf":
            raise TypeError(
                f"column {name!r} is not numeric ({df[name].dtype}). Text needs a vocabulary: use "
                "SequenceVectorizer().fit_transform(sequences_from_frame(df, by))."
            )
    return np.column_stack([df[name].to_numpy(dtype=np.float64) for name in names])


def sequences_from_frame(
    df: Frame, by: str, columns: Sequence[str] | None = None
) -> list[list[dict[str, Any]]]:
    """Return the rows of a data frame as sequences of dicts.

    Parameters
    ----------
    df : DataFrame
        A pandas data frame, one row a token.
    by : str
        The column that tells the sequences apart; its equal values must be neighbors.
    columns : sequence of str, optional
        The columns to keep; all but `by` if not given.

    Returns
    -------
    list of list of dict
        One dict ``{column: value}`` a token.

    Raises
    ------
    ValueError
        If a column is missing or a group comes back after another one.
    """
    names = frame_columns(df, by, columns)
    offsets = group_offsets(df[by].to_numpy())
    values = [df[name].tolist() for name in names]
    keys = [str(name) for name in names]
    rows = [dict(zip(keys, row, strict=True)) for row in zip(*values, strict=True)]
    return [rows[b:e] for b, e in zip(offsets[:-1], offsets[1:], strict=True)]
