"""Checks of what users pass in; messages name the sequence, the position and the feature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from crfkit._params import refuse_mask
from crfkit._types import FloatArray, IntArray
from crfkit._warnings import warn_user
from crfkit.data.frames import is_frame, numeric_block, shared_columns

BADLY_SCALED = 1e3  # from where on a feature is reported as too large beside the others


def warn_if_lengths_badly_scaled(basis: sp.csr_array, names: list[str], lengths: IntArray) -> None:
    """Warn of a feature of lengths, (L, F), a thousand times larger than most others, or than 1."""
    counts = np.bincount(lengths, minlength=basis.shape[0] + 1)[1:]
    uses, squares = (basis != 0.0).T @ counts, basis.power(2).T @ counts
    sizes = np.sqrt(squares / np.maximum(uses, 1))
    # Steps from label to label are features of size 1 in any model.
    warn_of_one(
        sizes, lambda feature: repr(names[feature]), "of lengths ", 1.0,
        "Give length=\"log(seg.length)\" or length=\"buckets\" instead of a feature that grows so.",
    )  # fmt: skip


def warn_of_one(
    sizes: FloatArray, name: Callable[[int], Any], of: str, most: float,
    advice: str = "Scale numeric features to about 1.",
) -> None:  # fmt: skip
    """Warn of a size far above the middle one, or above `most` where that is less."""
    used = sizes > 0.0
    if not used.any():
        return
    largest, middle = int(np.argmax(sizes)), min(float(np.median(sizes[used])), most)
    if sizes[largest] > BADLY_SCALED * middle:
        warn_user(
            f"feature {name(largest)} {of}is about {sizes[largest]:.2g} in size, most features "
            f"are about {middle:.2g}: the solver may be slow or stop too early, and the penalty "
            f"falls on the small ones. {advice}"
        )


def token_place(offsets: IntArray, token: int) -> str:
    """Return how messages name a token, given by its number through all sequences."""
    s = int(np.searchsorted(offsets, token, side="right")) - 1
    return f"sequence {s}, position {int(token) - int(offsets[s])}"


_DIMENSIONS = (
    "{} must have 2 dimensions (tokens, features), not {}. "
    "X is a list with one matrix for each sequence: for one sequence pass [X]."
)


def is_matrix(item: Any) -> bool:
    """Whether an item is an array or a sparse matrix, of any dimensions, or a data frame."""
    if isinstance(item, np.ndarray):
        return item.dtype != object or item.ndim != 1  # else an array of tokens
    return is_frame(item) or bool(sp.issparse(item))


def plain_array(item: Any) -> Any:
    """Return an array of another library (PyTorch, JAX, TensorFlow) as one of NumPy.

    Anything else is returned as it is; errors are those of that library.
    """
    if isinstance(item, (list, tuple, np.ndarray, np.generic)) or hasattr(item, "to_numpy"):
        return item
    if hasattr(item, "__array__"):
        return np.asarray(item)
    return np.from_dlpack(item) if hasattr(item, "__dlpack__") else item


def numeric_array(values: Any, where: str) -> FloatArray:
    """Return values as float64; TypeError where they are anything but real numbers.

    ValueError where a mask hides some: the numbers under it would count like all others.
    """
    refuse_mask(
        values, where,
        "Fill them in (values.filled(0.0)), or leave the features of these tokens out: give tokens "
        "as dicts.",
    )  # fmt: skip
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmMSUV":
            raise TypeError(f"the type is {array.dtype}")
        if array.dtype.kind == "O":
            for value in array.flat:  # text, which NumPy would convert
                if not (value is None or isinstance(value, (Number, np.bool_))):
                    raise TypeError(f"{value!r:.80} is of type {type(value).__name__}")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where} must be numbers: {error}. Convert the values first.") from error


def check_dense(dense: ArrayLike, where: str = "the dense block") -> FloatArray:
    """Return a float64 block in C order: a view, where it is one already."""
    block = numeric_block(dense, where) if is_frame(dense) else numeric_array(dense, where)
    if block.ndim != 2:
        raise ValueError(_DIMENSIONS.format(where, block.ndim))
    return np.ascontiguousarray(block).view()


def check_sparse(sparse: Any, where: str = "the sparse block") -> sp.csr_array:
    """Return a copy of a sparse matrix as float64 rows.

    SciPy and kernels do not look at bounds: pointers and columns are checked before anything else.
    """
    if not sp.issparse(sparse):
        raise TypeError(f"{where} must be a SciPy sparse matrix, not {type(sparse).__name__}.")
    if sparse.ndim != 2:
        raise ValueError(_DIMENSIONS.format(where, sparse.ndim))
    if sparse.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"{where} has {sparse.shape[1]} features; at most 2**31 - 1 are possible.")
    if sparse.dtype.kind not in "biuf":
        raise TypeError(f"{where} must be numbers, not {sparse.dtype}.")
    if sparse.format in ("csr", "csc", "bsr"):
        _check_compressed(sparse, where)
    else:
        sparse = sparse.tocoo()
        for axis, places in enumerate(sparse.coords):
            _check_places(places, sparse.shape[axis], ("row", "column")[axis], where)
        sparse = sparse.astype(np.float64)  # before SciPy adds up entries of one place
    return sp.csr_array(sparse, dtype=np.float64, copy=True)


def _check_compressed(sparse: Any, where: str) -> None:
    """Raise ValueError if pointers or indices of rows, of columns or of blocks are damaged."""
    blocks = sparse.blocksize if sparse.format == "bsr" else (1, 1)
    sides = [size // block for size, block in zip(sparse.shape, blocks, strict=True)]
    names = ["row", "column"]
    if sparse.format == "csc":
        sides, names = sides[::-1], names[::-1]
    check_rows(sparse.indptr, sparse.indices[: len(sparse.data)], sides, where, names[1])


def check_rows(
    pointers: NDArray[Any],
    indices: NDArray[Any],
    shape: Sequence[int],
    where: str,
    name: str = "column",
) -> None:
    """Raise ValueError if pointers do not rise from 0 to entries, or one of these is outside."""
    if (
        pointers.dtype.kind not in "iu"
        or len(pointers) != shape[0] + 1
        or pointers[0] != 0
        or (pointers[1:] < pointers[:-1]).any()
        or pointers[-1] > len(indices)
    ):
        raise ValueError(
            f"{where} is a damaged sparse matrix: its indptr must rise from 0 to the number of its "
            f"entries, in {shape[0]} steps. Build it anew, for instance from a coo_array."
        )
    _check_places(indices[: pointers[-1]], shape[1], name, where)


def _check_places(places: NDArray[Any], size: int, name: str, where: str) -> None:
    """Raise ValueError if places of entries are not within the matrix."""
    if places.dtype.kind not in "iu":
        raise ValueError(f"{where} is a damaged sparse matrix: its indices are {places.dtype}.")
    if len(places) == 0:
        return
    least, most = places.min(), places.max()
    if least < 0 or most >= size:
        worst = least if least < 0 else most
        raise ValueError(
            f"{where} is a damaged sparse matrix: it has an entry in {name} {worst}, but {name}s "
            f"0 to {size - 1} only. Build it anew with indices within its shape."
        )


def stack_matrices(container: Any, sequences: Iterable[Any], n_features: int | None) -> Any:
    """Pack one matrix a sequence into a container with ``from_flat``."""
    items = list(map(plain_array, sequences))
    rows = _stacked_rows(items)
    if rows is not None and n_features in (None, rows.shape[1]):
        with suppress(TypeError, ValueError):  # to look at each matrix tells which is wrong
            return container.from_flat(rows, [item.shape[0] for item in items])
    blocks = [_block(s, item) for s, item in enumerate(items)]
    names = shared_columns(items)
    filled = [(s, block) for s, block in enumerate(blocks) if block is not None]
    if n_features is None or names is not None:  # names tell more of what is missing
        n_features = filled[0][1].shape[1] if filled else n_features or 0
    for s, block in filled:
        if block.shape[1] != n_features:
            raise ValueError(
                f"sequence {s} has {block.shape[1]} features a token, but {n_features} are expected"
                ": all sequences must have the same columns."
            )
    lengths = [0 if block is None else block.shape[0] for block in blocks]
    matrices = [block for _, block in filled] or [np.zeros((0, n_features))]
    if any(sp.issparse(matrix) for matrix in matrices):
        return container.from_flat(sp.vstack(matrices, format="csr"), lengths, names)
    return container.from_flat(np.vstack(matrices), lengths, names)


def _stacked_rows(items: list[Any]) -> sp.csr_array | None:
    """Return csr matrices as one, whose entries can be checked at once; None where some differ."""
    if not items or not set(map(type, items)) <= {sp.csr_array, sp.csr_matrix}:
        return None
    ptr, indices, data = (
        np.concatenate([getattr(item, name) for item in items])
        for name in ("indptr", "indices", "data")
    )
    sizes = [(len(x.indptr) - 1, x.shape[0], len(x.indices), len(x.data)) for x in items]
    rows, shapes, entries, values = np.array(sizes, np.int64).T
    last = np.cumsum(rows + 1) - 1
    kinds = ptr.dtype.kind + indices.dtype.kind + data.dtype.kind
    alike = kinds in ("iib", "iii", "iiu", "iif") and len({item.shape[1:] for item in items}) == 1
    whole = np.array_equal(rows, shapes) and np.array_equal(entries, values)
    if not (alike and whole and items[0].ndim == 2):
        return None
    if (ptr[last] != entries).any() or ptr[last - rows].any():
        return None
    ptr = np.delete(ptr + np.repeat(np.cumsum(entries) - entries, rows + 1), (last - rows)[1:])
    return sp.csr_array((data, indices, ptr), shape=(int(rows.sum()), items[0].shape[1]))


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
