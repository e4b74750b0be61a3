"""The rules by which the items of a token become named attributes with values.

They are python-crfsuite's, because they define which features a model has;
:class:`crfkit.features.SequenceVectorizer` tells them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.data.names import Names
from crfkit.data.packed import UNIT
from crfkit.kernels.design.gather import REPEATED, rows_in_order
from crfkit.kernels.text.tokens import SKIP, ZERO

BLOCK = 1 << 18  # entries that are counted at a time
_ALL = frozen(np.zeros(0, np.int32))


def check_name(name: Any, prefix: str = "") -> str:
    """Return the name of an attribute as a plain string; TypeError if it is not a string.

    A member of a string enumeration is its value, not what it prints as.
    """
    if not isinstance(name, str):
        place = f" in feature {prefix[:-1]!r}" if prefix else ""
        remedy = "For vectors of numbers give each sequence as an array of shape (tokens, features)"
        if isinstance(name, (Mapping, list, tuple)):
            remedy = "Are X or its tokens nested one level too deep? X has sequences, these tokens"
        if isinstance(name, bytes):
            remedy = _DECODE
        raise TypeError(
            f"the attribute {name!r:.80}{place} is not a string but {type(name).__name__}. {remedy}"
        )
    return str.__str__(name)


def expand(token: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the attributes of a token, or of what stands under keys, with their values.

    Names begin with `prefix`: the keys above and a colon each. TypeError if the token is a string
    or not a container, or a name or value has no rule; ValueError if a value is not finite.
    """
    if isinstance(token, Mapping):
        for key, value in token.items():
            yield from _expand_item(prefix + check_name(key, prefix), value)
    elif isinstance(token, (list, tuple, set, frozenset)):
        yield from ((prefix + check_name(name, prefix), 1.0) for name in token)
    elif isinstance(token, str):
        raise TypeError(
            f"the token is the string {token!r}, which has no attributes. Give each token a dict "
            f"({{'word': {token!r}}}) or a list of attribute strings ([{token!r}]), or have "
            "features=WindowFeatures() or TemplateFeatures([...]) make them of words"
        )
    else:
        remedy = f". {_DECODE}" if isinstance(token, bytes) else ""
        if isinstance(token, np.ndarray):
            remedy = (". A sequence of vectors is one array of shape (tokens, features); or X is "
                      "nested one level too deep")  # fmt: skip
        elif isinstance(token, Real):
            remedy = ". A number that names something is a string in a dict: {'id': '7'}"
        raise TypeError(
            f"the token is a {type(token).__name__}; it must be a dict of features, or a "
            f"list or set of attribute strings{remedy}"
        )


def finite_number(key: str, value: Any) -> float:
    """Return a value as float; ValueError if it is NaN, infinite or too large."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(
            f"feature {key!r} has the value {number}; values must be finite. Impute it or leave "
            "the feature out"
        )
    return number


def _expand_item(key: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, str):
        yield f"{key}:{check_name(value)}", 1.0
    elif isinstance(value, (Real, np.bool_)):
        yield key, finite_number(key, value)
    elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
        yield from expand(value, key + ":")
    else:
        raise TypeError(
            f"feature {key!r} has the value {value!r} of type {type(value).__name__}; a value must "
            f"be a string, a boolean, a number, or a list, set or dict of such. {_remedy(value)}"
        )


_DECODE = "Decode bytes to text first: value.decode()"


def _remedy(value: Any) -> str:
    """Return what to do about a value that is none."""
    if isinstance(value, bytes):
        return _DECODE
    if hasattr(value, "__array__"):
        return (
            "A vector has a name for each number, {'x0': 0.1, 'x1': 0.7}; or give each sequence as "
            "an array of shape (tokens, features)"
        )
    return "Leave the feature out of a token that does not have it"


class ZeroValues(NamedTuple):
    """Which attributes have the value 0 in which token; packed features have no entry for them."""

    columns: CodeArray  # (n,)
    tokens: IntArray  # (n,)

    def of_tokens(self, kept: BoolArray) -> ZeroValues:
        """Return those of the tokens that are `kept`, (N,), numbered anew."""
        chosen = kept[self.tokens]
        return ZeroValues(self.columns[chosen], (np.cumsum(kept) - 1)[self.tokens[chosen]])


class AttributeRows(NamedTuple):
    """Attributes of tokens, in the order of the tokens."""

    indices: CodeArray  # (n,) columns of the entries
    values: FloatArray | None  # (n,) their values; None where all are 1
    indptr: IntArray  # (N + 1,) where the entries of each token begin, and the end
    offsets: IntArray  # (S + 1,) where the sequences begin, and the end

    @classmethod
    def of_entries(
        cls, rows: IntArray, columns: CodeArray, values: FloatArray, offsets: IntArray
    ) -> AttributeRows:
        """Return entries in any order as rows in order, without those of `SKIP` or the value 0."""
        kept = np.flatnonzero((columns != SKIP) & (values != 0.0))
        kept = kept[np.argsort(rows[kept], kind="stable")]
        indptr = _pointers(np.bincount(rows[kept], minlength=int(offsets[-1])))
        return cls(columns[kept], values[kept], indptr, offsets).in_order()

    @classmethod
    def joined(cls, parts: Sequence[AttributeRows]) -> AttributeRows:
        """Return the rows of several parts, one after the other."""
        plain = all(part.values is None for part in parts)
        return cls(
            np.concatenate([part.indices for part in parts]),
            None if plain else np.concatenate([part.value_array() for part in parts]),
            _pointers(np.concatenate([np.diff(part.indptr) for part in parts])),
            _pointers(np.concatenate([np.diff(part.offsets) for part in parts])),
        )

    def value_array(self) -> FloatArray:
        """Return the values, shape (n,)."""
        return np.ones(len(self.indices)) if self.values is None else self.values

    def counts(self, n_columns: int) -> IntArray:
        """Return the number of entries of each column, shape (D,)."""
        counts, size = np.zeros(n_columns, np.int64), max(BLOCK, n_columns)
        for begin in range(0, len(self.indices), size):
            part = self.indices[begin : begin + size]
            counts += np.bincount(part[part >= 0], minlength=n_columns)
        return counts

    def zeros(self) -> ZeroValues:
        """Return where attributes have the value 0, if that was kept."""
        places = np.flatnonzero(self.indices <= ZERO)
        counts = np.diff(np.searchsorted(places, self.indptr))
        tokens = np.repeat(np.arange(len(counts)), counts)
        return ZeroValues(ZERO - self.indices[places], tokens)

    def in_order(self, numbers: CodeArray | None = None) -> AttributeRows:
        """Return rows with their entries sorted, equal ones added up, without those of `SKIP`.

        The order of a sum of scores is then the same for any order of the items of a token, which a
        set does not have. Columns get the `numbers`, if given; those of `SKIP` are left out.
        """
        indptr, indices = np.empty_like(self.indptr), np.empty_like(self.indices)
        keys = np.empty(int(np.diff(self.indptr).max(initial=0)), np.int64)
        out = keys, indptr, indices.view(np.uint32)
        mapped = _ALL if numbers is None else frozen(numbers)
        rows = frozen(self.indptr), frozen(self.indices), mapped
        values, size = None, REPEATED
        if self.values is None:
            size = rows_in_order(*rows, UNIT, 0, *out, np.empty(0))
        if size == REPEATED:
            given, found = self.value_array(), np.empty(len(indices))
            size = rows_in_order(*rows, frozen(given), 1, *out, found)
            values = None if np.all(found[:size] == 1) else found[:size]
        if size < len(indices):
            indices = indices[:size].copy()
        return AttributeRows(indices, values, indptr, self.offsets)

    def packed(self, names: Names | None, n_features: int | None = None) -> PackedSequences:
        """Return packed sequences with these attributes; their number, where they have no names."""
        size = n_features if names is None else len(names)
        return PackedSequences._from_arrays(
            **self._asdict(), n_sparse=size, dense=None, names=names, transitions=None
        )


def _pointers(counts: Any) -> IntArray:
    """Return where lists of these lengths begin, one after the other, and the end."""
    pointers = np.zeros(len(counts) + 1, np.int64)
    np.add.accumulate(counts, out=pointers[1:])
    return pointers
