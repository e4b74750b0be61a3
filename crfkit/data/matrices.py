"""Blocks of rows: checks, and the stacking of one matrix a sequence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from crfkit._types import FloatArray, IntArray

_DIMENSIONS = (
    "{} must have 2 dimensions (tokens, features), not {}. "
    "X is a list with one matrix for each sequence: for one sequence pass [X]."
)


def is_matrix(item: Any) -> bool:
    """Whether an item is an array or a sparse matrix, of any dimensions, or a data frame."""
    if isinstance(item, np.ndarray):
        return item.dtype != object or item.ndim != 1  # else an array of tokens
    frame = hasattr(item, "to_numpy") and getattr(item, "ndim", 0) == 2
    return frame or bool(sp.issparse(item))


def numeric_array(values: Any, where: str) -> FloatArray:
    """Return values as float64; TypeError where they are text, complex or other objects."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cSUV":
            raise TypeError(f"the type is {array.dtype}")
        return array.astype(np.float64, copy=False)
    except TypeError as error:
        raise TypeError(f"{where} must be numbers: {error}. Convert the values first.") from error


def check_dense(dense: ArrayLike, where: str = "the dense block") -> FloatArray:
    """Return a float64 block in C order; not a copy, where it is one already."""
    try:
        block = numeric_array(dense, where)
    except ValueError as error:  # ragged rows
        raise TypeError(f"{where} must be numbers: {error}") from error
    if block.ndim != 2:
        raise ValueError(_DIMENSIONS.format(where, block.ndim))
    return np.ascontiguousarray(block)


def check_sparse(sparse: Any, where: str = "the sparse block") -> sp.csr_array:
    """Return a copy of a sparse matrix as float64 rows."""
    if not sp.issparse(sparse):
        raise TypeError(f"{where} must be a SciPy sparse matrix, not {type(sparse).__name__}.")
    if sparse.ndim != 2:
        raise ValueError(_DIMENSIONS.format(where, sparse.ndim))
    if sparse.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"{where} has {sparse.shape[1]} features; at most 2**31 - 1 are possible.")
    if sparse.dtype.kind not in "biuf":
        raise TypeError(f"{where} must be numbers, not {sparse.dtype}.")
    return sp.csr_array(sparse, dtype=np.float64, copy=True)


def stack_matrices(container: Any, sequences: Iterable[Any], n_features: int | None) -> Any:
    """Pack one matrix a sequence into a container with ``from_flat``."""
    blocks = [_block(s, item) for s, item in enumerate(sequences)]
    filled = [(s, block) for s, block in enumerate(blocks) if block is not None]
    if n_features is None:
        n_features = filled[0][1].shape[1] if filled else 0
    for s, block in filled:
        if block.shape[1] != n_features:
            raise ValueError(
                f"sequence {s} has {block.shape[1]} features a token, but {n_features} are expected"
                ": all sequences must have the same columns."
            )
    lengths = [0 if block is None else block.shape[0] for block in blocks]
    matrices = [block for _, block in filled] or [np.zeros((0, n_features))]
    if any(sp.issparse(matrix) for matrix in matrices):
        return container.from_flat(sp.vstack(matrices, format="csr"), lengths)
    return container.from_flat(np.vstack(matrices), lengths)


def _block(s: int, item: Any) -> Any:
    """Return one sequence as a matrix, or None for an empty list."""
    if not is_matrix(item):
        if len(item) == 0:
            return None
        raise TypeError(
            f"sequence {s} of X is a {type(item).__name__} among matrices. Give all sequences in "
            "the same form: matrices of shape (tokens, features), or lists of tokens."
        )
    where = f"sequence {s} of X"
    return check_sparse(item, where) if sp.issparse(item) else check_dense(item, where)


def sparse_arrays(
    sparse: Any, n_tokens: int
) -> tuple[IntArray, NDArray[np.int32], FloatArray | None, int]:
    """Return pointers, indices in row order, values or None, and the number of columns."""
    if sparse is None:
        return np.zeros(n_tokens + 1, np.int64), np.zeros(0, np.int32), None, 0
    rows = check_sparse(sparse)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    values = None if np.all(rows.data == 1.0) else rows.data
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), values, rows.shape[1]
