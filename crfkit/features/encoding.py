"""From tokens, given as dicts or lists of strings, to the numbers of their attributes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, chain, compress, repeat
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import protect
from crfkit.data.labels import iterate_sequences
from crfkit.data.validation import token_place
from crfkit.features.attributes import SKIP, AttributeRows, check_name, expand, finite_number

VALUED = -2  # entries from here down stand for attributes whose value is not 1
_PLAIN_NUMBERS = frozenset((bool, int, float))  # tested first: an abstract class is slow to ask
_MANY = frozenset((list, tuple, set, frozenset))
_CONTAINERS = _MANY | {dict}
_DICTS, _LISTS = {dict}, {list}
BATCH = 1 << 15  # tokens whose values are held in lists at a time, at most
TOGETHER, FEW = 500, 32  # tokens that are read at once, where they are short sequences; one by one
KEPT = 100_000  # values that an index remembers under their keys
KEPT_UNKNOWN = 10_000  # names that it does not have, and remembers that
KEPT_KEYS = 1000  # keys that it remembers; each takes as much room as many values
KEPT_LAYOUTS = 200  # lists of keys that it remembers, or looks at again, in all
_HELD = object()  # stands in the place of a dict or list: its own attributes follow


class Numbers(dict[Any, int]):
    """Numbers of the names that begin alike: of the values of a key, or of the keys themselves.

    Most come again, and to find one here saves putting its name together. Of a `key`, values may be
    numbers, too.
    """

    def __init__(self, index: AttributeIndex, prefix: str, key: str | None = None) -> None:
        self.index = index
        self.prefix, self.key = prefix, key
        self.look_up = index.look_up

    def __missing__(self, text: Any) -> int:
        if text.__class__ is not str:
            return self._entry(text)
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

    def _entry(self, value: Any) -> int:
        """Return the entry of a number; 1 and 0 are remembered."""
        if self.key is None or not isinstance(value, (Real, np.bool_)):
            raise TypeError("another rule applies")
        number = self.look_up(self.key)
        if number is None or value == 0:
            number = SKIP
        if value in (0, 1):
            self[value] = number
            return number
        finite_number(self.key, value)
        self.index.has_values = True
        return SKIP if number == SKIP else VALUED - number

    @cached_property
    def inner(self) -> Keys:
        """What is known of the dicts under this key."""
        return Keys(self.index, self.prefix)


# What dicts with the same keys have in common: the numbers of the values of each key, and where,
# from the end, a dict or list was met. A plain tuple, which is unpacked in less time than a record.
Layout = tuple[list[Numbers], list[tuple[int, "Keys"]]]


class Keys(dict[str, Numbers]):
    """The keys of the dicts at one place, where names begin alike: tokens, or under a key."""

    def __init__(self, index: AttributeIndex, prefix: str) -> None:
        self.index = index
        self.prefix = prefix
        self.flags = Numbers(index, prefix)
        self.layouts: dict[tuple[str, ...], Layout] = {}

    def learn(self, item: dict[Any, Any]) -> Layout:
        """Return the layout of a dict, with what it holds beyond dicts of the same keys.

        LookupError where keys are too rarely the same; TypeError if one is not a string.
        """
        known = self.layouts.get(tuple(item))
        places = set() if known is None else {place for place, _ in known[1]}
        held = {place for place, value in enumerate(item.values(), -len(item))
                if value.__class__ in _CONTAINERS}  # fmt: skip
        if known is not None and held <= places:
            return known
        if not self.index.layouts_left:
            raise LookupError
        self.index.layouts_left -= 1
        numbers = [self[key] for key in item]
        containers = [(place, numbers[place].inner) for place in sorted(places | held)]
        for place, _ in containers:
            numbers[place][_HELD] = SKIP
        layout = self.layouts[tuple(item)] = numbers, containers
        return layout

    def learn_all(self, item: dict[Any, Any]) -> None:
        """Learn the layouts of a dict and of those in it."""
        values = list(item.values())
        for place, inner in self.learn(item)[1]:
            if values[place].__class__ is dict:
                inner.learn_all(values[place])

    def __missing__(self, key: Any) -> Numbers:
        if self.index.kept_keys >= KEPT_KEYS:
            self.index.forget()  # keys that come again are soon known again
        self.index.kept_keys += 1
        name = self.prefix + check_name(key)
        values = self[key] = Numbers(self.index, name + ":", name)
        return values


class AttributeIndex(dict[str, int]):
    """Names to numbers; `keys_of_tokens` finds those of what stands in dicts."""

    look_up: Callable[..., int | None]  # gives the number of a name, None where it is to be skipped

    def __init__(self, numbers: Mapping[str, int] | None = None) -> None:
        super().__init__(numbers or {})
        self.has_values, self.layouts_left = False, KEPT_LAYOUTS
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
    unknown_left = KEPT_UNKNOWN

    def __missing__(self, name: Any) -> int:
        if name.__class__ is not str:
            return self.get(check_name(name), SKIP)
        if self.unknown_left:
            self.unknown_left -= 1
            self[name] = SKIP
        return SKIP


def encode(X: Iterable[Any], index: AttributeIndex) -> AttributeRows:
    """Turn sequences of tokens into rows of attribute numbers, reading `X` once.

    TypeError or ValueError as of :func:`expand`, naming the sequence and the position.
    """
    if X.__class__ is list and len(X) == 1 and X[0].__class__ is list:
        found = read_at_once(X[0], index) if len(X[0]) <= BATCH else None
        if found is not None:
            offsets = np.array((0, len(X[0])))
            rows = AttributeRows(*_split(found.entries, found.values), found.indptr, offsets)
            protect(rows._asdict())
            return rows
    return _TokenEncoder(index).rows(X)


class Read(NamedTuple):
    """What was read of some tokens.

    An entry is the number of an attribute of value 1, `SKIP`, or ``VALUED - number`` for an
    attribute whose value waits in `values`.
    """

    entries: CodeArray
    indptr: IntArray  # (N + 1,) where those of each token begin, and the end
    values: list[float]


def read_at_once(tokens: list[Any], index: AttributeIndex) -> Read | None:
    """Return the entries of tokens that are all dicts, or lists of strings; None if they are not.

    This is what users wait for: all is done by loops of the interpreter itself. Tokens of rarer
    forms are left to :func:`collect`, and then to :func:`expand`.
    """
    kinds = set(map(type, tokens))
    if kinds == _LISTS:
        ends = accumulate(map(len, tokens), initial=0)
        indptr = np.fromiter(ends, np.int64, len(tokens) + 1)
        found = map(index.__getitem__, chain.from_iterable(tokens))
        try:
            return Read(np.fromiter(found, np.int32, int(indptr[-1])), indptr, [])
        except TypeError:  # not all are strings
            return None
    return _read_dicts(tokens, index) if kinds == _DICTS else None


def _read_dicts(tokens: list[dict[Any, Any]], index: AttributeIndex) -> Read | None:
    """Return the entries of tokens that are dicts; None where some are of a rarer form."""
    tables: list[Numbers] = []
    values: list[Any] = []
    keys = index.keys_of_tokens
    try:
        indptr = _line_up(keys, tokens, tables, values)
        found = map(dict.__getitem__, tables, values)
        entries = np.fromiter(found, np.int32, len(values))
    except LookupError:
        return None
    except (TypeError, ValueError, RecursionError):  # maybe there is a container where none was
        with suppress(LookupError, TypeError, RecursionError):
            for token in tokens:
                keys.learn_all(token)
        return None
    if not index.has_values:
        return Read(entries, indptr, [])
    valued = np.flatnonzero(entries <= VALUED).tolist()
    return Read(entries, indptr, [float(values[place]) for place in valued])


def _split(entries: CodeArray, values: Sequence[float]) -> tuple[CodeArray, FloatArray | None]:
    """Return the attributes of entries and their values; None where all are 1."""
    if not len(values):
        return entries, None
    found, valued = np.ones(len(entries)), entries <= VALUED
    found[valued] = values
    return np.where(valued, np.int32(VALUED) - entries, entries), found


def _line_up(
    keys: Keys, tokens: list[dict[Any, Any]], tables: list[Numbers], values: list[Any]
) -> IntArray:
    """Add the values of tokens, and for each of them the table that its entry is looked up in.

    Returns where those of each token end.
    """
    ends, lists = [0], list[tuple[Keys, Any]]()
    for token in tokens:
        waiting = [(keys, token)]
        for under, item in waiting:  # grows on the way
            try:
                numbers, containers = under.layouts[tuple(item)]
            except KeyError:
                numbers, containers = under.learn(item)
            tables += numbers
            values += item.values()
            for place, inner in containers:
                value = values[place]
                if value.__class__ is dict:
                    values[place] = _HELD
                    waiting.append((inner, value))
                elif value.__class__ in _MANY:
                    values[place] = _HELD
                    lists.append((inner, value))
        while lists:
            under, items = lists.pop()
            tables += repeat(under.flags, len(items))
            values += items
        ends.append(len(values))
    return np.array(ends)


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
            parts = keys[key].inner.flags
            for part in value:
                add(parts[part])
        elif kind in _PLAIN_NUMBERS:
            add(valued(flags[key], keys.prefix + key, value))
        else:
            raise TypeError("another rule applies")


class _TokenEncoder:
    """Collects entries, as of :class:`Read`, in arrays, which grow in place."""

    def __init__(self, index: AttributeIndex) -> None:
        self.index = index
        self.values = array("d")
        self._entries = array("i")
        self._indptr, self._offsets = array("q", [0]), array("q", [0])

    def rows(self, X: Iterable[Any]) -> AttributeRows:
        """Return the rows of sequences of tokens; those of a list are read several at a time."""
        together, first, waiting = TOGETHER if X.__class__ is list else 0, 0, list[Any]()
        for sequence in iterate_sequences(X, "X"):
            waiting.extend(sequence)
            self._offsets.append(first + len(waiting))
            if len(waiting) > together:
                self._add(first, waiting)
                first, waiting = first + len(waiting), []
        self._add(first, waiting)
        indices, values = _split(np.asarray(self._entries), self.values)
        return AttributeRows(indices, values, np.asarray(self._indptr), np.asarray(self._offsets))

    def _add(self, first: int, tokens: list[Any]) -> None:
        """Append tokens, from the one of number `first` on; half of them each, if that helps."""
        found = read_at_once(tokens, self.index) if len(tokens) <= BATCH else None
        if found is not None:
            before = len(self._entries)
            self._entries.frombytes(found.entries.tobytes())
            self._indptr.frombytes((found.indptr[1:] + before).tobytes())
            self.values.extend(found.values)
        elif len(tokens) > FEW:
            half = len(tokens) // 2
            self._add(first, tokens[:half])
            self._add(first + half, tokens[half:])
        else:
            for number, token in enumerate(tokens, first):
                self._add_token(token, number)

    def _add_token(self, token: Any, number: int) -> None:
        """Append the attributes of a token of any form, or raise what is wrong."""
        entries, waiting = list[int](), len(self.values)
        try:
            if token.__class__ is not dict:
                raise TypeError("another rule applies")
            collect(self.index.keys_of_tokens, token, entries.append, self._entry)
        except (TypeError, ValueError, RecursionError):
            del self.values[waiting:]
            entries = self._rare(token, number)
        self._entries.extend(entries)
        self._indptr.append(len(self._entries))

    def _rare(self, token: Any, number: int) -> list[int]:
        """Return the entries of a token of a form that is rare, or raise what is wrong."""
        try:
            return [self._entry(self.index[name], name, v) for name, v in expand(token)]
        except (TypeError, ValueError) as error:
            place = token_place(np.asarray(self._offsets), number)
            raise type(error)(f"{place}: {error}.") from error
        except RecursionError:
            place = token_place(np.asarray(self._offsets), number)
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
