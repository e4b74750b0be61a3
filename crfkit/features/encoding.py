"""From tokens, given as dicts or lists of strings, to the numbers of their attributes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import accumulate, chain, compress, repeat
from numbers import Real
from operator import itemgetter
from struct import Struct
from typing import Any

import numpy as np

from crfkit._progress import working
from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.data.labels import iterate_sequences
from crfkit.data.validation import token_place
from crfkit.features.attributes import SKIP, ZERO, AttributeRows, check_name, expand, finite_number

VALUED = -2  # entries from here down to `ZERO` stand for attributes whose value is not 1
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
            number = SKIP if number is None else self.index.zero(number)
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


# What dicts with the same keys have in common: tables of the numbers of their values, what gets
# these values, and under which keys a dict or list was met, with what is known of those. Plain
# tuples, which are unpacked in less time than records.
Containers = list[tuple[str, "Keys", Callable[[int], "Layout | None"]]]
Layout = tuple[list[Numbers], Callable[[dict[Any, Any]], Iterable[Any]], Containers]


class Keys(dict[str, Numbers]):
    """The keys of the dicts at one place, where names begin alike: tokens, or under a key."""

    def __init__(self, index: AttributeIndex, prefix: str) -> None:
        self.index = index
        self.prefix = prefix
        self.flags = Numbers(index, prefix)
        self.layouts: dict[tuple[str, ...], Layout] = {}
        # The layout of all dicts of a size so far, without containers; None where they differ.
        self.of_size: dict[int, Layout | None] = {}

    def learn(self, item: dict[Any, Any]) -> Layout:
        """Return the layout of a dict, with what it holds beyond dicts of the same keys.

        LookupError where keys are too rarely the same; TypeError if one is not a string.
        """
        known = self.layouts.get(tuple(item))
        before = set() if known is None else {key for key, *_ in known[2]}
        held = before | {key for key, value in item.items() if value.__class__ in _CONTAINERS}
        if known is not None and held == before:
            return known
        if not self.index.layouts_left:
            raise LookupError
        self.index.layouts_left -= 1
        plain: list[str] = []
        tables: list[Numbers] = []
        containers: Containers = []
        for key in item:
            if key in held:
                inner = self[key].inner
                containers.append((key, inner, inner.of_size.get))
            else:
                plain.append(key)
                tables.append(self[key])
        get = itemgetter(*plain) if len(plain) > 1 else lambda item: [item[key] for key in plain]
        layout = self.layouts[tuple(item)] = tables, get, containers
        alone = not containers and len(item) not in self.of_size
        self.of_size[len(item)] = layout if alone else None
        return layout

    def learn_all(self, item: dict[Any, Any]) -> None:
        """Learn the layouts of a dict and of those in it."""
        for key, inner, _ in self.learn(item)[2]:
            if item[key].__class__ is dict:
                inner.learn_all(item[key])

    def __missing__(self, key: Any) -> Numbers:
        if self.index.kept_keys >= KEPT_KEYS:
            self.index.forget()  # keys that come again are soon known again
        self.index.kept_keys += 1
        name = self.prefix + check_name(key)
        values = self[key] = Numbers(self.index, name + ":", name)
        return values


class AttributeIndex(ABC):
    """Names to numbers; `keys_of_tokens` finds those of what stands in dicts."""

    look_up: Callable[..., int | None]  # gives the number of a name, None where it is to be skipped
    keeps_zeros = False

    def __init__(self, *numbers: Mapping[str, int]) -> None:
        super().__init__(*numbers)
        self.has_values, self.layouts_left = False, KEPT_LAYOUTS
        self.forget()

    def forget(self) -> None:
        """Forget what `keys_of_tokens` has found so far."""
        self.kept = self.kept_keys = self.kept_unknown = 0
        self.keys_of_tokens = Keys(self, "")

    def release(self) -> None:
        """Let go of what refers back to the index: it and its names are then freed at once."""
        del self.keys_of_tokens

    @abstractmethod
    def __getitem__(self, name: Any) -> int:
        """Return the number of a name, `SKIP` where there is none."""

    @abstractmethod
    def numbers(self, names: list[Any]) -> Sequence[int]:
        """Return the numbers of names; TypeError if one is no string."""

    def zero(self, number: int) -> int:
        """Return the entry of an attribute whose value is 0."""
        return ZERO - number if self.keeps_zeros else SKIP


class GrowingIndex(AttributeIndex, dict[str, int]):
    """Names to numbers; a new name gets the next number."""

    look_up = dict.__getitem__

    __getitem__ = dict.__getitem__

    def __missing__(self, name: Any) -> int:
        if name.__class__ is not str:
            return self[check_name(name)]
        number = self[name] = len(self)
        return number

    def numbers(self, names: list[Any]) -> Sequence[int]:
        """Return the numbers of names, new or not."""
        return list(map(self.__getitem__, names))

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

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._known, self._unknown_left = dict(numbers), KEPT_UNKNOWN
        self.look_up = self._known.get
        super().__init__()

    def __getitem__(self, name: Any) -> int:
        """Return the number of a name, `SKIP` where there is none."""
        plain = check_name(name)
        if self._unknown_left and plain not in self._known:
            self._unknown_left -= 1
            self._known[plain] = SKIP
        return self._known.get(plain, SKIP)

    def numbers(self, names: list[Any]) -> Sequence[int]:
        """Return the numbers of names, `SKIP` for unknown ones."""
        with suppress(KeyError):
            if len(names) > 1:
                return itemgetter(*names)(self._known)  # type: ignore[no-any-return]
        found = map(self._known.get, names)
        return [self[name] if n is None else n for name, n in zip(names, found, strict=True)]


def encode(X: Iterable[Any], index: AttributeIndex) -> AttributeRows:
    """Turn sequences of tokens into rows of attribute numbers, reading `X` once.

    TypeError or ValueError as of :func:`expand`, naming the sequence and the position.
    """
    if X.__class__ is list and len(X) == 1 and X[0].__class__ is list:
        return encode_sequence(X[0], index)
    return _TokenEncoder(index).rows(X)


def encode_sequence(tokens: list[Any], index: AttributeIndex) -> AttributeRows:
    """Turn one sequence of tokens into rows of attribute numbers."""
    found = read_at_once(tokens, index) if len(tokens) <= BATCH else None
    if found is None:
        return _TokenEncoder(index).rows([tokens])
    entries, indptr, values = found
    return AttributeRows(*_split(entries, values), indptr, _offsets(len(tokens)))


@lru_cache(512)
def _offsets(size: int) -> IntArray:
    """Return the offsets of one sequence."""
    return frozen(np.array((0, size)))


# What was read of some tokens: entries, where those of each token begin, and the end, (N + 1,), and
# values. An entry is the number of an attribute of value 1, `SKIP`, or ``VALUED - number`` for an
# attribute whose value waits in the list.
Read = tuple[CodeArray, IntArray, list[float]]


def read_at_once(tokens: list[Any], index: AttributeIndex) -> Read | None:
    """Return the entries of tokens that are all dicts, or lists of strings; None if they are not.

    This is what users wait for: all is done by loops of the interpreter itself. Tokens of rarer
    forms are left to :func:`collect`, and then to :func:`expand`.
    """
    kinds = set(map(type, tokens))
    if kinds == _LISTS:
        try:
            numbers = index.numbers(list(chain.from_iterable(tokens)))
            # In half the time that NumPy takes to read them.
            entries = np.frombuffer(Struct(f"{len(numbers)}i").pack(*numbers), np.int32)
            return entries, np.array([*accumulate(map(len, tokens), initial=0)]), []
        except TypeError:  # not all are strings
            return None
    return _read_dicts(tokens, index) if kinds == _DICTS else None


def _read_dicts(tokens: list[dict[Any, Any]], index: AttributeIndex) -> Read | None:
    """Return the entries of tokens that are dicts; None where some are of a rarer form."""
    tables: list[Numbers] = []
    values: list[Any] = []
    keys = index.keys_of_tokens
    try:
        ends = _line_up(keys, tokens, tables, values)
        found = map(dict.__getitem__, tables, values)
        entries = np.fromiter(found, np.int32, len(values))
    except LookupError:
        return None
    except (TypeError, ValueError, RecursionError):  # maybe there is a container where none was
        with suppress(LookupError, TypeError, RecursionError):
            for token in tokens:
                keys.learn_all(token)
        return None
    valued = np.flatnonzero(_are_valued(entries)).tolist() if index.has_values else []
    return entries, np.array(ends), [float(values[place]) for place in valued] if valued else []


def _are_valued(entries: CodeArray) -> BoolArray:
    """Return which entries stand for a value that is not 1."""
    found: BoolArray = (entries <= VALUED) & (entries > ZERO)
    return found


def _split(entries: CodeArray, values: Sequence[float]) -> tuple[CodeArray, FloatArray | None]:
    """Return the attributes of entries and their values; None where all are 1."""
    if not len(values):
        return entries, None
    found, valued = np.ones(len(entries)), _are_valued(entries)
    found[valued] = values
    return np.where(valued, np.int32(VALUED) - entries, entries), found


def _line_up(
    keys: Keys, items: list[dict[Any, Any]], tables: list[Numbers], values: list[Any]
) -> list[int]:
    """Add the values of dicts, and for each of them the table that its entry is looked up in.

    Returns where those of each dict end.
    """
    ends, layouts = [0], keys.layouts
    for item in items:
        try:
            numbers, plain, containers = layouts[tuple(item)]
        except KeyError:
            numbers, plain, containers = keys.learn(item)
        tables += numbers
        values += plain(item) if containers else item.values()
        for key, inner, of_size in containers:
            value = item[key]
            if value.__class__ is dict:
                known = of_size(len(value))
                if known is None:
                    _line_up(inner, [value], tables, values)
                    continue
                numbers, plain, _ = known
                try:
                    values += plain(value)
                    tables += numbers
                except KeyError:  # as many keys, but others
                    _line_up(inner, [value], tables, values)
            elif value.__class__ in _MANY:
                tables += repeat(inner.flags, len(value))
                values += value
            else:
                tables.append(keys[key])
                values.append(value)
        ends.append(len(values))
    return ends


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
        elif value is True:
            add(flags[key])
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
    """Collects entries, as of `Read`, in arrays, which grow in place."""

    def __init__(self, index: AttributeIndex) -> None:
        self.index = index
        self.values = array("d")
        self._entries = array("i")
        self._indptr, self._offsets = array("q", [0]), array("q", [0])

    def rows(self, X: Iterable[Any]) -> AttributeRows:
        """Return the rows of sequences of tokens; those of a list are read several at a time."""
        together, first, waiting = TOGETHER if X.__class__ is list else 0, 0, list[Any]()
        with working("features", len(X) if X.__class__ is list else None, "sequences") as task:
            for sequence in iterate_sequences(X, "X"):
                waiting.extend(sequence)
                self._offsets.append(first + len(waiting))
                if len(waiting) > together:
                    self._add(first, waiting)
                    first, waiting = first + len(waiting), []
                    task.update(len(self._offsets) - 1)
            self._add(first, waiting)
            task.tell(sequences=len(self._offsets) - 1)
        indices, values = _split(np.asarray(self._entries), self.values)
        return AttributeRows(indices, values, np.asarray(self._indptr), np.asarray(self._offsets))

    def _add(self, first: int, tokens: list[Any]) -> None:
        """Append tokens, from the one of number `first` on; half of them each, if that helps."""
        found = read_at_once(tokens, self.index) if len(tokens) <= BATCH else None
        if found is not None:
            entries, indptr, values = found
            self._indptr.frombytes((indptr[1:] + len(self._entries)).tobytes())
            self._entries.frombytes(entries.tobytes())
            self.values.extend(values)
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
            return SKIP if number == SKIP else self.index.zero(number)
        self.values.append(plain)
        return VALUED - number
