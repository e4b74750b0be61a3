"""The rules by which the items of a token become named attributes with values.

They are python-crfsuite's, because they define which features a model has:

=========================  ==========================================
item                       attributes
=========================  ==========================================
``{"w": "dog"}``           ``w:dog`` = 1
``{"w": True}``            ``w`` = 1 (False: 0)
``{"w": 2.5}``             ``w`` = 2.5
``{"w": ["a", "b"]}``      ``w:a`` = 1, ``w:b`` = 1 (sets too)
``{"w": {"x": 2}}``        ``w:x`` = 2 (to any depth)
``["a", "b"]``, a set      ``a`` = 1, ``b`` = 1
=========================  ==========================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import FloatArray, IntArray
from crfkit.data import PackedSequences
from crfkit.data.labels import iterate_sequences
from crfkit.data.names import Names

SKIP = -1  # what has no entry: an attribute that is not in the vocabulary, or has the value 0
VALUED = -2  # entries from here down stand for attributes whose value is not 1
_PLAIN_NUMBERS = frozenset((bool, int, float))  # tested first: an abstract class is slow to ask
_MANY = frozenset((list, tuple, set, frozenset))
BATCH = 1 << 16  # tokens whose entries are held as Python numbers at a time
KEPT = 100_000  # values that an index remembers under their keys
KEPT_KEYS = 1000  # keys that it remembers; each takes as much room as many values


class Numbers(dict[str, int]):
    """Numbers of the names that begin alike: of the values of a key, or of the keys themselves.

    Most come again, and to find one here saves putting its name together.

    Parameters
    ----------
    index : AttributeIndex
        Numbers of names.
    prefix : str
        What the names begin with.
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


class Values(Numbers):
    """Numbers of ``key:value`` for the values of a key, and what is known of dicts under it."""

    def __init__(self, index: AttributeIndex, prefix: str) -> None:
        super().__init__(index, prefix)
        self.inner = Keys(index, prefix)


class Keys(dict[str, Values]):
    """The keys of the dicts at one place: tokens, or what stands under a key.

    Parameters
    ----------
    index : AttributeIndex
        Numbers of names.
    prefix : str
        What names at this place begin with.
    """

    def __init__(self, index: AttributeIndex, prefix: str) -> None:
        self.index = index
        self.prefix = prefix
        self.flags = Numbers(index, prefix)

    def __missing__(self, key: Any) -> Values:
        if self.index.kept_keys >= KEPT_KEYS:
            self.index.forget()  # keys that come again are soon known again
        self.index.kept_keys += 1
        values = self[key] = Values(self.index, f"{self.prefix}{check_name(key)}:")
        return values


class AttributeIndex(dict[str, int]):
    """Names to numbers; `keys_of_tokens` finds those of what stands in dicts."""

    look_up: Callable[[str], int | None]

    def __init__(self, numbers: Mapping[str, int] | None = None) -> None:
        super().__init__(numbers or {})
        self.look_up = self._look_up()
        self.forget()

    def _look_up(self) -> Callable[[str], int | None]:
        """Return what gives the number of a name, None where it is to be skipped."""
        raise NotImplementedError

    def forget(self) -> None:
        """Forget what `keys_of_tokens` has found so far."""
        self.kept = self.kept_keys = self.kept_unknown = 0
        self.keys_of_tokens = Keys(self, "")


class GrowingIndex(AttributeIndex):
    """Names to numbers; a new name gets the next number."""

    def _look_up(self) -> Callable[[str], int | None]:
        return self.__getitem__

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


class FrozenIndex(AttributeIndex):
    """Names to numbers; a new name is skipped."""

    def _look_up(self) -> Callable[[str], int | None]:
        return self.get

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
    """Yield the attributes of a token with their values.

    Parameters
    ----------
    token : Mapping, list, tuple, set or frozenset
        The token, or what stands under a key of one.
    prefix : str
        What names begin with: the keys above and a colon each.

    Raises
    ------
    TypeError
        If the token is a string or not a container, or a name or value has no rule.
    ValueError
        If a value is NaN or infinite.
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
    """Attributes of tokens, in the order of the tokens.

    Attributes
    ----------
    indices : ndarray of shape (n,)
        Columns of the entries.
    values : ndarray of shape (n,) or None
        Their values; None where all are 1.
    indptr : ndarray of shape (N + 1,)
        Where the entries of each token begin, and the end.
    offsets : ndarray of shape (S + 1,)
        Where the sequences begin, and the end.
    """

    indices: NDArray[np.int32]
    values: FloatArray | None
    indptr: IntArray
    offsets: IntArray

    def packed(self, names: Names) -> PackedSequences:
        """Return packed sequences with these attributes, sorted and added up within each token."""
        return PackedSequences._from_arrays(
            **self._asdict(), n_sparse=len(names), dense=None, names=names, transitions=None
        )


def encode(X: Iterable[Any], index: AttributeIndex) -> AttributeRows:
    """Turn sequences of tokens into rows of attribute numbers, reading `X` once.

    Parameters
    ----------
    X : iterable of sequences of tokens
        Tokens as :func:`expand` takes them.
    index : GrowingIndex or FrozenIndex
        Numbers of the attributes.

    Raises
    ------
    TypeError, ValueError
        As :func:`expand`, naming the sequence and the position.
    """
    encoder = _TokenEncoder(index)
    for s, sequence in enumerate(iterate_sequences(X, "X")):
        encoder.add_sequence(s, sequence)
    return encoder.rows()


def collect(
    keys: Keys,
    item: dict[Any, Any],
    add: Callable[[int], None],
    valued: Callable[[int, str, float], int],
) -> None:
    """Add the numbers of the attributes of a dict, `SKIP` for one that is not known.

    This loop is what users wait for.

    Parameters
    ----------
    keys : Keys
        What is known of dicts at this place.
    item : dict
        The dict; dicts within it are entered.
    add : callable
        Takes a number.
    valued : callable
        Takes number, name and value of an attribute that is a number; returns what to add.

    Raises
    ------
    TypeError
        Where a key or value has a rarer form, or none that there is a rule for: :func:`expand`
        tells. Some attributes have been added then.
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
    """Collects entries; what is finished is kept in arrays.

    An entry is the number of an attribute of value 1, `SKIP`, or ``VALUED - number`` for an
    attribute whose value waits in `values`.
    """

    def __init__(self, index: AttributeIndex) -> None:
        self.index = index
        self.entries: list[int] = []
        self.counts: list[int] = []
        self.values: list[float] = []
        self.lengths: list[int] = []
        self.blocks: list[tuple[NDArray[np.int32], FloatArray | None, IntArray]] = []

    def add_sequence(self, s: int, sequence: Iterable[Any]) -> None:
        """Append the tokens of sequence `s`."""
        tokens = sequence if isinstance(sequence, list) else list(sequence)
        if not self._add_lists(tokens):
            for t, token in enumerate(tokens):
                try:
                    self._add_token(token)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"sequence {s}, position {t}: {error}.") from error
                except RecursionError:
                    raise ValueError(
                        f"sequence {s}, position {t}: the dicts of the token are nested too "
                        "deeply, or one contains itself."
                    ) from None
        self.lengths.append(len(tokens))
        if len(self.counts) >= BATCH:
            self._flush()

    def _add_lists(self, tokens: list[Any]) -> bool:
        """Append tokens that are all lists of strings at once; False where they are not."""
        if set(map(type, tokens)) != {list}:
            return False
        before = len(self.entries)
        try:
            self.entries.extend(map(self.index.__getitem__, chain.from_iterable(tokens)))
        except TypeError:  # the slow way tells where
            del self.entries[before:]
            return False
        self.counts.extend(map(len, tokens))
        return True

    def _add_token(self, token: Any) -> None:
        """Append the attributes of one token."""
        before, waiting = len(self.entries), len(self.values)
        try:
            if token.__class__ is not dict:
                raise TypeError("another rule applies")
            collect(self.index.keys_of_tokens, token, self.entries.append, self._entry)
        except (TypeError, ValueError):  # forms that are rare, and errors, which `expand` tells of
            del self.entries[before:], self.values[waiting:]
            rare = [self._entry(self.index[name], name, v) for name, v in expand(token)]
            self.entries.extend(rare)
        self.counts.append(len(self.entries) - before)

    def _entry(self, number: int, name: str, value: float) -> int:
        """Return the entry of an attribute with a value."""
        if value is True or value == 1.0:
            return number
        plain = finite_number(name, value)
        if number == SKIP or plain == 0.0:
            return SKIP
        self.values.append(plain)
        return VALUED - number

    def _flush(self) -> None:
        """Move what was collected into arrays, without what is to be skipped."""
        indices = np.array(self.entries, dtype=np.int32)
        counts = np.array(self.counts, dtype=np.int64)
        values = None
        if self.values:
            valued = indices <= VALUED
            values = np.ones(len(indices))
            values[valued] = self.values
            indices[valued] = VALUED - indices[valued]
        keep = indices != SKIP
        if not keep.all():
            rows = np.repeat(np.arange(len(counts)), counts)
            counts = np.bincount(rows[keep], minlength=len(counts))
            indices = indices[keep]
            values = None if values is None else values[keep]
        self.blocks.append((indices, values, counts))
        self.entries, self.counts, self.values = [], [], []

    def rows(self) -> AttributeRows:
        """Return all that was added."""
        self._flush()
        indices = np.concatenate([block[0] for block in self.blocks])
        counts = np.concatenate([block[2] for block in self.blocks])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        values = None
        if any(block[1] is not None for block in self.blocks):
            parts = [np.ones(len(b[0])) if b[1] is None else b[1] for b in self.blocks]
            values = np.concatenate(parts)
        offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        return AttributeRows(indices, values, indptr, offsets)


def sort_rows(rows: AttributeRows, n_columns: int) -> AttributeRows:
    """Sort the entries of each row and add up equal ones.

    The order of a sum of scores is then the same for any order of the items of a token, which a
    set does not have.
    """
    data = np.ones(len(rows.indices), np.int32) if rows.values is None else rows.values
    shape = (len(rows.indptr) - 1, n_columns)
    matrix = sp.csr_array((data, rows.indices, rows.indptr), shape=shape)
    matrix.sum_duplicates()
    values = matrix.data.astype(np.float64)
    plain = bool(np.all(values == 1.0))
    indices, indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64)
    return AttributeRows(indices, None if plain else values, indptr, rows.offsets)


def keep_columns(rows: AttributeRows, numbers: NDArray[np.int32]) -> AttributeRows:
    """Renumber the columns; those with the number `SKIP` are left out."""
    indices = numbers[rows.indices]
    keep = indices != SKIP
    if keep.all():
        return rows._replace(indices=indices)
    counts = np.add.reduceat(np.append(keep, False), rows.indptr[:-1]) * (np.diff(rows.indptr) > 0)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    values = None if rows.values is None else rows.values[keep]
    return AttributeRows(indices[keep], values, indptr, rows.offsets)
