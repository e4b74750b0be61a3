"""Data frames as sequences: one row a token, a column that tells the sequences apart.

Frames are those of pandas and of polars. Neither is imported before one of its frames is given, or
asked for, and this module alone knows how they differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._params import check_option, refuse_mask
from crfkit._tables import refuse_tables
from crfkit._types import FloatArray, Frame, IntArray, ObjectArray

Keys = str | Sequence[str]  # the columns that tell sequences apart


def is_frame(item: Any) -> bool:
    """Whether an item is a data frame of pandas or polars."""
    return hasattr(item, "to_numpy") and hasattr(item, "columns")


def is_column(item: Any) -> bool:
    """Whether an item is a column of a data frame."""
    return hasattr(item, "to_numpy") and hasattr(item, "to_list")


def column_name(item: Any) -> Any:
    """Return the name of a column, or of that of a frame of one; None of anything else."""
    if is_frame(item) and len(item.columns) == 1:
        return item.columns[0]
    return getattr(item, "name", None) if is_column(item) else None


def check_frame(item: Any, name: str = "X") -> None:
    """Raise TypeError if an item is no data frame, saying how to make one of what it is."""
    if is_frame(item):
        return
    remedies = {"collect": ".collect()", "to_pandas": ".to_pandas()", "compute": ".compute()"}
    remedy = next((call for method, call in remedies.items() if hasattr(item, method)), None)
    raise TypeError(
        f"{name} must be a data frame of pandas or polars, with one row a token, not "
        f"{type(item).__name__}{f': give {name}{remedy}' if remedy else ''}."
    )


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or a missing value that compares with nothing."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def group_offsets(groups: ArrayLike) -> IntArray:
    """Return where runs of equal values start, and the end; ValueError if a value comes back."""
    refuse_mask(groups, "groups", "Leave out the rows without a group.")
    values = np.asarray(groups)
    if values.ndim != 1:
        raise ValueError(f"groups must have one value a token, not the shape {values.shape}.")
    _refuse_missing(values)
    starts = np.flatnonzero(values[1:] != values[:-1]) + 1
    offsets = np.unique(np.concatenate([[0], starts, [len(values)]]).astype(np.int64))
    seen: set[Any] = set()
    for start, value in zip(offsets[:-1], values[offsets[:-1]].tolist(), strict=True):
        try:
            again = value in seen
        except TypeError:
            raise TypeError(
                f"row {start}: the group {value!r:.60} is, or holds, a list or the like: give "
                "strings, numbers or tuples."
            ) from None
        if again:
            refuse_tables(failed=True)
            raise ValueError(
                f"row {start}: group {value!r} comes back after another one. "
                "Sort the rows by group, keeping the order of the tokens."
            )
        seen.add(value)
    return offsets


def _refuse_missing(values: ObjectArray) -> None:
    """Raise ValueError if a group is missing."""
    if values.dtype.kind in "biuUS":
        return
    for row, value in enumerate(values.tolist()):
        if is_missing(value) or (value.__class__ is tuple and any(map(is_missing, value))):
            raise ValueError(f"row {row}: the group is missing ({value!r}); every token needs one.")


def frame_offsets(df: Frame, by: Keys) -> IntArray:
    """Return where the sequences of a frame start, and the end, (S + 1,); errors as above."""
    keys = [df[name].to_list() if several(by) else df[name].to_numpy() for name in key_names(by)]
    return group_offsets(np.fromiter(zip(*keys, strict=True), object) if several(by) else keys[0])


def several(by: Keys) -> bool:
    """Whether sequences are told apart by a list of columns."""
    return isinstance(by, (list, tuple))


def key_names(by: Keys) -> list[str]:
    """Return the columns that tell sequences apart."""
    names: list[Any] = list(by) if several(by) else [by]
    if not names:
        raise ValueError("by=[] must name the column, or columns, that tell sequences apart.")
    return names


def frame_columns(df: Frame, by: Keys, columns: Sequence[str] | None) -> list[str]:
    """Return the feature columns of a frame; a missing one raises ValueError."""
    check_frame(df, "the frame")
    keys = key_names(by)
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r} must be a list of names: [{columns!r}].")
    chosen = [name for name in df.columns if name not in keys] if columns is None else [*columns]
    if len(set(df.columns)) < len(df.columns):
        raise ValueError(f"the frame has columns of the same name: {list(df.columns)}.")
    missing = [name for name in [*keys, *chosen] if name not in df.columns]
    if missing:
        raise ValueError(f"the frame has no column {missing[0]!r}; it has {list(df.columns)}.")
    if not chosen:
        raise ValueError(f"the frame has no columns but {by!r}: there are no features.")
    return chosen


def is_numeric(df: Frame) -> bool:
    """Whether all columns of a frame are numbers or booleans."""
    return all(map(_is_number, df.dtypes))


def kind_of(dtype: Any) -> str:
    """Return the letter of NumPy for what a column holds."""
    if hasattr(dtype, "kind"):
        return str(dtype.kind)
    kinds = {"is_integer": "i", "is_numeric": "f"}  # of polars
    kind = next((kind for method, kind in kinds.items() if getattr(dtype, method)()), "O")
    return "b" if str(dtype) == "Boolean" else kind


def _is_number(dtype: Any) -> bool:
    return kind_of(dtype) in "biuf"


def numeric_block(df: Frame, where: str) -> FloatArray:
    """Return a frame as a block (N, F), NaN where a value is missing; TypeError if not numeric."""
    for name, dtype in zip(df.columns, df.dtypes, strict=True):
        if not _is_number(dtype):
            raise TypeError(
                f"{where}: column {name!r} is not numeric ({dtype}), but features must be numbers. "
                "Convert it; text and categories need a vocabulary: give tokens as dicts, by "
                "sequences_from_frame(df, by) or, for each sequence, frame.to_dict('records') "
                "(frame.to_dicts() of polars), to the estimator or a SequenceVectorizer; or take a "
                "FrameClassifier."
            )
    if _of_polars(df):
        return np.asarray(df.to_numpy(), dtype=np.float64)
    block: FloatArray = df.to_numpy(dtype=np.float64, na_value=np.nan)
    return block


def _of_polars(item: Any) -> bool:
    return type(item).__module__.partition(".")[0] == "polars"


def column_beside(df: Frame, values: Sequence[Any], name: Any) -> Any:
    """Return a column of N values, one for each row of a frame, with its index, if it has one."""
    if _of_polars(df):
        return import_module("polars").Series(name, values, strict=False)
    return import_module("pandas").Series(values, index=df.index, name=name)


def columns_beside(df: Frame, columns: Mapping[Any, Any]) -> Frame:
    """Return a frame of columns of N values, with the index of another one, if it has one."""
    if _of_polars(df):
        return import_module("polars").DataFrame(columns, strict=False)
    return import_module("pandas").DataFrame(columns, index=df.index)


def take_rows(items: Any, rows: IntArray) -> Any:
    """Return chosen rows of a frame or of a column, or items of an array or a list, by number."""
    if hasattr(items, "iloc"):
        return items.iloc[rows]
    return items[rows] if hasattr(items, "shape") else [items[row] for row in rows]


def frame_alike(df: Frame, columns: Mapping[Any, Sequence[Any]]) -> Frame:
    """Return a frame of columns by the library of another one, with rows of its own."""
    if _of_polars(df):
        return columns_beside(df, columns)
    return import_module("pandas").DataFrame(columns)


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
    df: Frame, by: Keys, columns: Sequence[str] | None = None
) -> list[list[dict[str, Any]]]:
    """Return the rows of a data frame as sequences of dicts.

    Parameters
    ----------
    df : DataFrame
        A frame of pandas or polars, one row a token.
    by : str or list of str
        The column that tells the sequences apart, or several that do so together; equal values
        must be neighbors.
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
    return _split_rows(records(df, names), df, by)


def records(df: Frame, names: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Return rows of a frame as dicts of all columns, or of those that are named."""
    names = list(df.columns) if names is None else names
    keys, values = [str(name) for name in names], [df[name].to_list() for name in names]
    return [dict(zip(keys, row, strict=True)) for row in zip(*values, strict=True)]


def labels_from_frame(df: Frame, by: Keys, column: str) -> list[list[Any]]:
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
    return _split_rows(df[name].to_list(), df, by)


def _split_rows(rows: list[Any], df: Frame, by: Keys) -> list[list[Any]]:
    return [rows[b:e] for b, e in pairwise(frame_offsets(df, by).tolist())]


def frame_from_sequences(
    X: Iterable[Iterable[Any]],
    labels: Mapping[str, Iterable[Iterable[Any]]] | None = None,
    *,
    by: str = "sequence",
    columns: Sequence[str] = ("token",),
    library: str = "pandas",
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
    library : {"pandas", "polars"}, default="pandas"
        Whose frame it is.

    Returns
    -------
    DataFrame
        A frame with the columns `by`, those of the tokens and those of `labels`.

    Raises
    ------
    ImportError
        If the library is not installed.
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
    check_option("library", library, ("pandas", "polars"))
    try:
        make = import_module(library).DataFrame
    except ImportError as error:
        raise ImportError(
            f"a data frame needs {library}: install it, or keep the sequences as lists"
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
    names = list(dict.fromkeys(chain.from_iterable(rows))) if rows else [by, *columns]
    cells = {name: [row.get(name) for row in rows] for name in names}
    for name, values in (labels or {}).items():
        if name in cells:
            raise ValueError(f"the frame has a column {name!r} already; name the labels otherwise.")
        cells[name] = _flat_labels(name, values, lengths)
    return make(cells, **({"strict": False} if library == "polars" else {}))


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
