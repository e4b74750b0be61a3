"""The rules by which the items of a token become named attributes with values.

They are python-crfsuite's, because they define which features a model has;
:class:`crfkit.features.SequenceVectorizer` tells them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, compress, pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data import PackedSequences
from crfkit.data.labels import iterate_sequences
from crfkit.data.names import Names

SKIP = -1  # what has no entry: an attribute that is not in the vocabulary, or has the value 0
VALUED = -2  # entries from here down stand for attributes whose value is not 1
_PLAIN_NUMBERS = frozenset((bool, int, float))  # tested first: an abstract class is slow to ask
_MANY = frozenset((list, tuple, set, frozenset))
BATCH = 1 << 15  # tokens whose entries are held as Python numbers at a time
BLOCK = 1 << 18  # entries that are sorted at a time
MOST_COLUMNS = 2**31 - 1
FEW = 500  # so few entries are sorted sooner than a matrix is made of them
KEPT = 100_000  # values that an index remembers under their keys
KEPT_KEYS = 1000  # keys that it remembers; each takes as much room as many values


class Numbers(dict[str, int]):
    """Numbers of the names that begin alike: of the values of a key, or of the keys themselves.

    Most come again, and to find one here saves putting its name together.
    """

    def __init__(self, index: AttributeIndex, prefix: str) -> None:
        self.index = index
        self.prefix = prefix
        self.look_up = index.look_up

    def __missing__(self, text: Any) -> int:
        if text.__class__ is not str:
            raise TypeError("another rule applies")
        number = self.look_up(self.prefix + text)
        if number is None:  # may be asked for in every token, but there may be any number of such
            if self.index.kept_unknown < KEPT_KEYS:
                self.index.kept_unknown += 1
                self[text] = SKIP
            return SKIP
        if self.index.kept < KEPT:
            self.index.kept += 1
            self[text] = number
        return number

    @cached_property
    def inner(self) -> Keys:
        """What is known of the dicts under this key."""
        return Keys(self.index, self.prefix)


class Keys(dict[str, Numbers]):
    """The keys of the dicts at one place, where names begin alike: tokens, or under a key."""

    def __init__(self, index: AttributeIndex, prefix: str) -> None:
        self.index = index
        self.prefix = prefix
        self.flags = Numbers(index, prefix)

    def __missing__(self, key: Any) -> Numbers:
        if self.index.kept_keys >= KEPT_KEYS:
            self.index.forget()  # keys that come again are soon known again
        self.index.kept_keys += 1
        values = self[key] = Numbers(self.index, f"{self.prefix}{check_name(key)}:")
        return values


class AttributeIndex(dict[str, int]):
    """Names to numbers; `keys_of_tokens` finds those of what stands in dicts."""

    look_up: Callable[..., int | None]  # gives the number of a name, None where it is to be skipped

    def __init__(self, numbers: Mapping[str, int] | None = None) -> None:
        super().__init__(numbers or {})
        self.forget()

    def forget(self) -> None:
        """Forget what `keys_of_tokens` has found so far."""
        self.kept = self.kept_keys = self.kept_unknown = 0
        self.keys_of_tokens = Keys(self, "")


class GrowingIndex(AttributeIndex):
    """Names to numbers; a new name gets the next number."""

    look_up = dict.__getitem__

    def __missing__(self, name: Any) -> int:
        if name.__class__ is not str:
            return self[check_name(name)]
        number = self[name] = len(self)
        return number

    def truncate(self, size: int) -> None:
        """Forget all names but the first ones."""
        for name in list(self)[size:]:
            del self[name]
        self.forget()

    def sorted_columns(self, counts: IntArray, least: int) -> tuple[list[str], CodeArray]:
        """Return the sorted names that occur often enough, and the column of each number."""
        names = sorted(compress(self, (counts >= least).tolist()))
        columns = np.full(len(self), SKIP, np.int32)
        columns[list(map(self.__getitem__, names))] = np.arange(len(names))
        return names, columns


class FrozenIndex(AttributeIndex):
    """Names to numbers; a new name is skipped."""

    look_up = dict.get

    def __missing__(self, name: Any) -> int:
        return SKIP if name.__class__ is str else self.get(check_name(name), SKIP)


def check_name(name: Any, prefix: str = "") -> str:
    """Return the name of an attribute as a plain string; TypeError if it is not a string.

    A member of a string enumeration is its value, not what it prints as.
    """
    if not isinstance(name, str):
        place = f" in feature {prefix[:-1]!r}" if prefix else ""
        raise TypeError(
            f"the attribute {name!r}{place} is not a string but {type(name).__name__}. For vectors "
            "of numbers give each sequence as an array of shape (tokens, features)"
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
            f"({{'word': {token!r}}}) or a list of attribute strings ([{token!r}])"
        )
    else:
        raise TypeError(
            f"the token is a {type(token).__name__}; it must be a dict of features, or a list or "
            "set of attribute strings"
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
            "be a string, a boolean, a number, or a list, set or dict of such. Leave the feature "
            "out of a token that does not have it"
        )


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
            counts += np.bincount(self.indices[begin : begin + size], minlength=n_columns)
        return counts

    def in_order(self, numbers: CodeArray | None = None) -> AttributeRows:
        """Return rows with their entries sorted, and equal ones added up.

        The order of a sum of scores is then the same for any order of the items of a token, which a
        set does not have. Columns get the `numbers`, if given; those of `SKIP` are left out.
        """
        if numbers is None and self.values is None and len(self.indices) <= FEW:
            starts = np.arange(len(self.indptr) - 1) * MOST_COLUMNS
            rows = starts.repeat(self.indptr[1:] - self.indptr[:-1])
            keys = rows + self.indices
            keys.sort()
            if not (keys[1:] == keys[:-1]).any():
                return self._replace(indices=(keys - rows).astype(np.int32))
        indices, values, size = np.empty_like(self.indices), None, 0
        indptr = np.zeros_like(self.indptr)
        last = np.flatnonzero(np.diff(self.indptr[1:] // BLOCK, append=-1))
        for begin, end in pairwise([0, *(last + 1).tolist()]):
            columns, found, ends = self._sorted(begin, end, numbers)
            place = slice(size, size + len(columns))
            indices[place], indptr[begin + 1 : end + 1] = columns, size + ends
            if values is None and not np.all(found == 1):
                values = np.ones(len(indices))
            if values is not None:
                values[place] = found
            size = place.stop
        if size < len(indices):
            indices, values = indices[:size].copy(), None if values is None else values[:size]
        return AttributeRows(indices, values, indptr, self.offsets)

    def _sorted(
        self, begin: int, end: int, numbers: CodeArray | None
    ) -> tuple[CodeArray, FloatArray, IntArray]:
        """Return columns and values of some rows, in order, and where those of each row end."""
        part, ptr = slice(self.indptr[begin], self.indptr[end]), self.indptr[begin : end + 1]
        columns = self.indices[part].copy() if numbers is None else numbers[self.indices[part]]
        ones = np.ones(len(columns), np.int32)
        values = ones if self.values is None else self.values[part].copy()
        ptr = ptr - ptr[0]
        kept = columns != SKIP
        if not kept.all():
            ptr = np.concatenate([[0], np.cumsum(kept)])[ptr]
            columns, values = columns[kept], values[kept]
        matrix = sp.csr_array((values, columns, ptr), shape=(end - begin, MOST_COLUMNS))
        matrix.sum_duplicates()
        return matrix.indices, matrix.data, matrix.indptr[1:]

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


def encode(X: Iterable[Any], index: AttributeIndex) -> AttributeRows:
    """Turn sequences of tokens into rows of attribute numbers, reading `X` once.

    TypeError or ValueError as of :func:`expand`, naming the sequence and the position.
    """
    return _TokenEncoder(index).rows(X)


def collect(
    keys: Keys,
    item: dict[Any, Any],
    add: Callable[[int], None],
    valued: Callable[[int, str, float], int],
) -> None:
    """Add the numbers of the attributes of a dict, `SKIP` for one that is not known.

    This loop is what users wait for. `valued` takes number, name and value of an attribute that is
    a number and returns what to add. TypeError where a key or value has a rarer form, or none that
    there is a rule for: :func:`expand` tells. Some attributes have been added then.
    """
    flags = keys.flags
    for key, value in item.items():
        kind = value.__class__
        if kind is str:
            add(keys[key][value])
        elif kind is bool:
            number = flags[key]
            if value:
                add(number)
        elif kind is dict:
            collect(keys[key].inner, value, add, valued)
        elif kind in _MANY:
            values = keys[key]
            for part in value:
                add(values[part])
        elif kind in _PLAIN_NUMBERS:
            add(valued(flags[key], keys.prefix + key, value))
        else:
            raise TypeError("another rule applies")


class _TokenEncoder:
    """Collects entries; those of finished sequences are kept in arrays, which grow in place.

    An entry is the number of an attribute of value 1, `SKIP`, or ``VALUED - number`` for an
    attribute whose value waits in `values`.
    """

    def __init__(self, index: AttributeIndex) -> None:
        self.index = index
        self.entries: list[int] = []
        self.counts: list[int] = []
        self.values: list[float] = []
        self._indices, self._values = array("i"), array("d")
        self._sizes, self._lengths = array("q"), array("q")

    def rows(self, X: Iterable[Any]) -> AttributeRows:
        """Return the rows of sequences of tokens."""
        entries, counts, values = self.entries, self.counts, self.values
        for s, sequence in enumerate(iterate_sequences(X, "X")):
            tokens = sequence if isinstance(sequence, list) else list(sequence)
            if set(map(type, tokens)) != {list} or not self._add_lists(tokens):
                for t, token in enumerate(tokens):
                    before, waiting = len(entries), len(values)
                    try:
                        if token.__class__ is not dict:
                            raise TypeError("another rule applies")
                        collect(self.index.keys_of_tokens, token, entries.append, self._entry)
                    except (TypeError, ValueError, RecursionError):
                        del entries[before:], values[waiting:]
                        self._add_rare(token, f"sequence {s}, position {t}")
                    counts.append(len(entries) - before)
            self._lengths.append(len(tokens))
            if len(counts) >= BATCH:
                self._keep()
        self._keep()
        return AttributeRows(
            np.asarray(self._indices),
            np.asarray(self._values) if self._values else None,
            _pointers(self._sizes),
            _pointers(self._lengths),
        )

    def _add_lists(self, tokens: list[list[Any]]) -> bool:
        """Append tokens that are all lists of strings at once; False where they are not."""
        before = len(self.entries)
        try:
            self.entries.extend(map(self.index.__getitem__, chain.from_iterable(tokens)))
        except TypeError:  # the slow way tells where
            del self.entries[before:]
            return False
        self.counts.extend(map(len, tokens))
        return True

    def _add_rare(self, token: Any, place: str) -> None:
        """Append the attributes of a token of a form that is rare, or raise what is wrong."""
        try:
            self.entries += [self._entry(self.index[name], name, v) for name, v in expand(token)]
        except (TypeError, ValueError) as error:
            raise type(error)(f"{place}: {error}.") from error
        except RecursionError:
            raise ValueError(
                f"{place}: the dicts of the token are nested too deeply, or one contains itself."
            ) from None

    def _entry(self, number: int, name: str, value: float) -> int:
        """Return the entry of an attribute with a value."""
        if value is True or value == 1.0:
            return number
        plain = finite_number(name, value)
        if number == SKIP or plain == 0.0:
            return SKIP
        self.values.append(plain)
        return VALUED - number

    def _keep(self) -> None:
        """Move what was collected into the arrays, without what is to be skipped."""
        indices, sizes = np.array(self.entries, np.int32), np.array(self.counts, np.int64)
        values = np.ones(len(indices)) if self.values or self._values else None
        if values is not None:
            valued = indices <= VALUED
            values[valued] = self.values
            indices[valued] = VALUED - indices[valued]
            if not self._values:
                self._values.frombytes(np.ones(len(self._indices)).tobytes())
        kept = indices != SKIP
        if not kept.all():
            rows = np.repeat(np.arange(len(sizes)), sizes)
            indices, sizes = indices[kept], np.bincount(rows[kept], minlength=len(sizes))
        self._indices.frombytes(indices.tobytes())
        self._sizes.frombytes(sizes.tobytes())
        if values is not None:
            self._values.frombytes(values[kept].tobytes())
        for collected in (self.entries, self.counts, self.values):
            collected.clear()
