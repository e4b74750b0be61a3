"""Data frames as sequences: one row a token, a column that tells the sequences apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import FloatArray, Frame, IntArray


def group_offsets(groups: ArrayLike) -> IntArray:
    """Return where runs of equal values start, and the end; ValueError if a value comes back."""
    values = np.asarray(groups)
    if values.ndim != 1:
        raise ValueError(f"groups must have one value a token, not the shape {values.shape}.")
    starts = np.flatnonzero(values[1:] != values[:-1]) + 1
    offsets = np.unique(np.concatenate([[0], starts, [len(values)]]).astype(np.int64))
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


def numeric_block(df: Frame, where: str) -> FloatArray:
    """Return a frame as a block (N, F), NaN where a value is missing; TypeError if not numeric."""
    for name, dtype in zip(df.columns, df.dtypes, strict=True):
        if dtype.kind not in "biuf":
            raise TypeError(
                f"{where}: column {name!r} is not numeric ({dtype}), but features must be numbers. "
                "Convert it; text and categories need a vocabulary: give tokens as dicts, by "
                "frame.to_dict('records') for each sequence or sequences_from_frame(df, by), to "
                "the estimator or a SequenceVectorizer."
            )
    block: FloatArray = df.to_numpy(dtype=np.float64, na_value=np.nan)
    return block


def shared_columns(items: Sequence[Any]) -> list[str] | None:
    """Return the names of the columns of frames, None if there are none; they must not differ."""
    frames = {s: list(item.columns) for s, item in enumerate(items) if hasattr(item, "columns")}
    first = next(iter(frames.values()), [])
    for s, item in enumerate(items if frames else ()):
        if s not in frames and hasattr(item, "shape"):
            raise ValueError(
                f"sequence {s} of X is a {type(item).__name__} among data frames, so that nothing "
                "tells which column is which: give all sequences as frames, or as arrays."
            )
        if frames.get(s, first) != first:
            raise ValueError(
                f"sequence {s} of X has the columns {frames[s]!r:.200}, but the first frame has "
                f"{first!r:.200}: all must have the same columns, in the same order."
            )
    strings = [isinstance(name, str) for name in first]
    if any(strings) and not all(strings):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but the "
            f"frames of X have {sorted({type(name).__qualname__ for name in first})} as types of "
            "names: convert them, for example by frame.columns = frame.columns.astype(str)."
        )
    return first if all(strings) and first else None


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
    values = [df[name].tolist() for name in names]
    keys = [str(name) for name in names]
    rows = [dict(zip(keys, row, strict=True)) for row in zip(*values, strict=True)]
    return _split_rows(rows, df, by)


def labels_from_frame(df: Frame, by: str, column: str) -> list[list[Any]]:
    """Return a column of a data frame as the labels of its sequences.

    Parameters
    ----------
    df, by
        As for :func:`sequences_from_frame`.
    column : str
        The column of the labels.

    Returns
    -------
    list of list, length S
        The labels of the sequences that :func:`sequences_from_frame` returns. Missing values
        stay in; an estimator refuses them, naming their place.

    Raises
    ------
    ValueError
        If a column is missing or a group comes back after another one.
    """
    (name,) = frame_columns(df, by, [column])
    return _split_rows(df[name].tolist(), df, by)


def _split_rows(rows: list[Any], df: Frame, by: str) -> list[list[Any]]:
    return [rows[b:e] for b, e in pairwise(group_offsets(df[by].to_numpy()).tolist())]


def frame_from_sequences(
    X: Iterable[Iterable[Any]],
    labels: Mapping[str, Iterable[Iterable[Any]]] | None = None,
    *,
    by: str = "sequence",
    columns: Sequence[str] = ("token",),
) -> Frame:
    """Return sequences as a data frame with one row a token, labels beside them.

    Parameters
    ----------
    X : iterable of iterable, length S
        Tokens: dicts ``{column: value}``, tuples or lists with one cell for each of `columns`, or
        single strings. The dicts of a token need not have all columns.
    labels : dict of str to sequences, optional
        Further columns with one value a token, such as ``{"tag": y, "predicted": y_pred}``.
    by : str, default="sequence"
        The name of the column that tells the sequences apart; it holds their numbers from 0.
    columns : sequence of str, default=("token",)
        The names of the cells of tokens that are not dicts.

    Returns
    -------
    DataFrame
        A pandas data frame with the columns `by`, those of the tokens and those of `labels`.

    Raises
    ------
    ImportError
        If pandas is not installed.
    ValueError
        Naming the sequence, if it is empty or a column has another number of values for it;
        naming the token, if its cells are not as many as `columns`; if two columns have one name.

    See Also
    --------
    sequences_from_frame : The way back.

    Examples
    --------
    >>> frame_from_sequences([["a", "dog"]], {"tag": [["DT", "NN"]]})
       sequence token tag
    0         0     a  DT
    1         0   dog  NN
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "a data frame needs pandas: install it, or keep the sequences as lists"
        ) from error
    sequences = [list(sequence) for sequence in X]
    rows = [
        {by: s, **_cells(token, columns, f"sequence {s}, position {t}", by)}
        for s, sequence in enumerate(sequences)
        for t, token in enumerate(sequence)
    ]
    lengths = [len(sequence) for sequence in sequences]
    if 0 in lengths:
        raise ValueError(f"sequence {lengths.index(0)} is empty: a frame has no row for it.")
    df = pd.DataFrame(rows) if rows else pd.DataFrame(columns=[by, *columns])
    for name, values in (labels or {}).items():
        if name in df.columns:
            raise ValueError(f"the frame has a column {name!r} already; name the labels otherwise.")
        df[name] = pd.Series(_flat_labels(name, values, lengths), index=df.index)
    return df


def _cells(token: Any, columns: Sequence[str], where: str, by: str) -> Mapping[str, Any]:
    """Return the cells of a token by column."""
    if isinstance(token, Mapping):
        cells = token
    else:
        row = [token] if isinstance(token, str) else list(token)
        if len(row) != len(columns):
            raise ValueError(
                f"{where}: the token has {len(row)} cells, but columns={list(columns)}."
            )
        cells = dict(zip(columns, row, strict=True))
    if by in cells:
        raise ValueError(f"{where}: the token has a column {by!r}; give `by` another name.")
    return cells


def _flat_labels(name: str, values: Iterable[Iterable[Any]], lengths: list[int]) -> list[Any]:
    sequences = [list(sequence) for sequence in values]
    if len(sequences) != len(lengths):
        raise ValueError(f"{name!r} has {len(sequences)} sequences, X has {len(lengths)}.")
    for s, (sequence, length) in enumerate(zip(sequences, lengths, strict=True)):
        if len(sequence) != length:
            raise ValueError(
                f"sequence {s}: {name!r} has {len(sequence)} values, X has {length} tokens."
            )
    return list(chain.from_iterable(sequences))
