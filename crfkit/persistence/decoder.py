"""From the header and the arrays of a model file to objects; the grammar stands in `encoder`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest

from crfkit.data import PackedSequences
from crfkit.persistence.checks import check_csr
from crfkit.persistence.container import Container, ModelFileError, check_shape, parse_dtype
from crfkit.persistence.encoder import CSR_CLASSES, MAX_DEPTH, REQUESTS, VERSION_KEY
from crfkit.persistence.registry import REGISTRY, find_functions

# What a file may unfold to, in bytes of memory, for each of its bytes.
_BYTES_A_BYTE = 128
_BYTES_AT_LEAST = 2**25
# What things take: a place in a list, a number, a string without its text, a place in a dict.
_PLACE, _NUMBER, _STRING, _SLOT = 8, 32, 56, 64
_MOST_OF_A_HASH = 64  # different keys
_SCALARS = (bool, int, float, str)
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset,
}  # fmt: skip
_HASHABLE = ("tuple", "frozenset", "record")
_OLD_ATTRIBUTES = {
    "step_coef_": "transition_coef_",
    "step_vocabulary_": "transition_vocabulary_",
    "_step_names": "_transition_names",
    "visit_steps": "max_steps",
}
# Parts of the arrays that `partial_fit` remembers.
_OLD_PARTS = {
    "state": "coef_",
    "pair": "transitions_",
    "start": "start_weights_",
    "end": "end_weights_",
    "steps": "transition_coef_",
}


class Decoder:
    """Builds the objects of a file, entry by entry; ModelFileError if one is damaged or unknown."""

    def __init__(self, container: Container, known: dict[str, Callable[..., Any] | None]) -> None:
        self._container = container
        self._known = known
        self._built: list[Any] = []
        self._heights: list[int] = []
        self._sizes: list[int] = []  # of the entries, in bytes, without what they refer to
        self._expanded: list[int] = []  # bytes that are read to hash an entry
        self._used: list[int] = []  # entries that the current one refers to
        self._size = 0  # of the current entry
        self._read = 0  # bytes that are read to hash it, without what it refers to
        self._texts: dict[tuple[int, int], list[str]] = {}
        self._left = _BYTES_AT_LEAST + _BYTES_A_BYTE * container.size

    def decode(self) -> Any:
        """Return the object of the file."""
        table = self._container.header.get("table")
        if not isinstance(table, list):
            raise ModelFileError("the header has no table of objects")
        names = []
        for entry in table:
            match entry:
                case ["function", str(name)]:
                    names.append(name)
        self._functions = find_functions(self._known, names)
        for number, entry in enumerate(table):
            try:
                self._add(entry)
            except MemoryError:
                raise
            except Exception as error:  # a damaged state may upset a class in any way
                kind = entry[:2] if isinstance(entry, list) else entry
                raise ModelFileError(
                    f"entry {number} of the table ({kind!r:.80}) is damaged: {error}"
                ) from error
        try:
            return self.value(self._container.header.get("root"))
        except ValueError as error:
            raise ModelFileError(f"the root of the table: {error}") from error

    def value(self, node: Any) -> Any:
        """Return a value that stands inside an entry; ValueError if there is none such."""
        if node is None or type(node) in _SCALARS:
            return node
        if type(node) is not list or not node:
            raise ValueError(f"{node!r:.40} is no value")
        match node:
            case ["ref", int(number)] if 0 <= number < len(self._built):
                self._used.append(number)
                return self._built[number]
            case ["int", str(digits)]:
                return int(digits, 16)
            case ["float", str(name)]:
                return _FLOATS[name]
            case ["str_", str(text)]:
                return np.str_(text)
            case ["scalar", dtype, str(digits)]:
                return _scalar(parse_dtype(dtype), bytes.fromhex(digits))
        raise ValueError(f"{node!r:.40} is no value")

    def _add(self, entry: Any) -> None:
        """Build an entry of the table."""
        self._used, self._size, self._read = [], 0, _PLACE
        self._spend(_SLOT)
        self._built.append(self._build(entry))
        height = 1 + max((self._heights[n] for n in self._used), default=0)
        if height > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        self._heights.append(height)
        self._sizes.append(self._size)
        self._expanded.append(self._expansion() if entry[0] in _HASHABLE else _PLACE)

    def _build(self, entry: Any) -> Any:
        match entry:
            case [("list" | "tuple") as kind, items]:
                return _SEQUENCES[kind](self._items(items))
            case [("set" | "frozenset") as kind, items]:
                return _SEQUENCES[kind](self._slots(items))
            case ["dict", keys, values]:
                return dict(zip(self._slots(keys), self._items(values), strict=True))
            case ["bytes", number]:
                data = self._vector(number, "u1")
                self._spend(data.nbytes)
                return data.tobytes()
            case ["array", number]:
                array = self._container.array(number)
                self._spend(array.nbytes)
                return array
            case ["objects", shape, items]:
                return _object_array(shape, self._keys(items))
            case ["csr", name, shape, data, indices, indptr]:
                parts = self.value(data), self.value(indices), self.value(indptr)
                self._spend_on_parts()
                check_csr(*parts, shape)
                return CSR_CLASSES[name](parts, shape=tuple(shape))
            case ["record", name, items]:
                return _record(REGISTRY.find(name), self._items(items))
            case ["object", name, state]:
                return self._object(REGISTRY.find(name), state)
            case ["function", str(name)]:
                return self._functions[name]
        raise ValueError("it is of an unknown kind")

    def _items(self, node: Any) -> list[Any]:
        """Return the items of a compound value."""
        match node:
            case {"strings": [text, lengths]}:
                self._spend(_PLACE * len(self._vector(lengths, "u1", "u2", "u4")))
                items = list(self._strings(text, lengths))
            case {"numbers": array}:
                numbers = self._vector(array, "i4", "i8", "f8")
                self._spend((_PLACE + _NUMBER) * len(numbers))
                items = numbers.tolist()
            case list():
                self._spend(_PLACE * len(node))
                items = [self.value(item) for item in node]
            case _:
                raise ValueError(f"{node!r:.40} are no items")
        self._read += _PLACE * len(items)
        return items

    def _keys(self, node: Any) -> list[Any]:
        """Return items to be hashed; tuples of the same tuples may unfold without end."""
        items = self._items(node)
        self._spend(self._expansion())
        _check_hashes(items)
        return items

    def _slots(self, node: Any) -> list[Any]:
        """Return the different items of a set, or the keys of a dict."""
        items = self._keys(node)
        self._spend(_SLOT * len(items))
        return items

    def _expansion(self) -> int:
        return self._read + sum(self._expanded[number] for number in self._used)

    def _spend_on_parts(self) -> None:
        """Note that the current entry may copy what it refers to."""
        self._spend(sum(self._sizes[number] for number in self._used))

    def _spend(self, size: int) -> None:
        """Note how many bytes the current entry takes, before it takes them."""
        self._size += size
        self._left -= size
        if self._left < 0:
            raise ValueError("the file unfolds to more than its size accounts for")

    def _vector(self, number: Any, *kinds: str) -> NDArray[Any]:
        """Return an array of one dimension and one of the given types."""
        array = self._container.array(number)
        if array.ndim != 1 or array.dtype.str[1:] not in kinds:
            raise ValueError(f"array {number} is not of the type {' or '.join(kinds)}")
        return array

    def _strings(self, text: Any, lengths: Any) -> list[str]:
        """Return strings that stand one after the other, made once."""
        counts = self._vector(lengths, "u1", "u2", "u4")
        if (text, lengths) not in self._texts:
            encoded = self._vector(text, "u1")
            self._spend(_STRING * len(counts) + 4 * len(encoded))
            joined = encoded.tobytes().decode("utf-8", "surrogatepass")
            ends = np.cumsum(counts, dtype=np.int64).tolist()
            if (ends[-1] if ends else 0) != len(joined):
                raise ValueError(f"the lengths in array {lengths} do not fit the text")
            starts = [0, *ends[:-1]]
            self._texts[text, lengths] = [
                joined[begin:end] for begin, end in zip(starts, ends, strict=bool(ends))
            ]
        return self._texts[text, lengths]

    def _object(self, cls: type, state: Any) -> Any:
        """Return an object without calling its `__init__`."""
        if issubclass(cls, (tuple, list)):
            raise ValueError(f"{cls.__name__} is a record")
        new = cls.__new__(cls)
        if state is not None:
            stored = {name: self.value(node) for name, node in state.items()}
            self._spend_on_parts()  # such as an index of a vocabulary
            attributes = _with_new_names(cls, stored)
            attributes |= {k: v for k, v in _defaults(cls).items() if k not in attributes}
            if REQUESTS in attributes:
                attributes[REQUESTS] = _requests(new, attributes[REQUESTS])
            if cls.__module__.startswith("sklearn."):
                attributes[VERSION_KEY] = sklearn.__version__  # it would warn otherwise
            if hasattr(new, "__setstate__"):
                new.__setstate__(attributes)
            else:
                new.__dict__.update(attributes)
            _refuse_derived(new, attributes)
        if isinstance(new, BaseEstimator):
            new.get_params(deep=False)  # raises where a parameter without a default is missing
        REGISTRY.check(new)
        return new


def _refuse_derived(new: Any, attributes: dict[str, Any]) -> None:
    """Raise ValueError if an object took over what it never stores: tables are not checked."""
    unknown = set(attributes) - set(new.__getstate__() or ())
    taken = sorted(n for n in unknown if vars(new).get(n) is attributes[n])
    if taken:
        raise ValueError(f"it holds {taken}, which no file stores")


def _with_new_names(cls: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an object of the package under the names that they have by now."""
    if not cls.__module__.startswith("crfkit."):
        return attributes
    names = _OLD_ATTRIBUTES | ({"steps": "transitions"} if cls is PackedSequences else {})
    renamed = {names.get(name, name): value for name, value in attributes.items()}
    match renamed.get("_partial_state"):
        case {"arrays": dict() as arrays, **others}:
            new = {
                name: {_OLD_PARTS.get(part, part): value for part, value in parts.items()}
                if isinstance(parts, dict)
                else parts
                for name, parts in arrays.items()
            }
            renamed["_partial_state"] = {"arrays": new, **others}
    return renamed


def _requests(owner: Any, plain: dict[str, dict[str, Any]]) -> MetadataRequest:
    """Return the metadata requests of an estimator."""
    request = MetadataRequest(owner=owner)
    for method, parameters in plain.items():
        for parameter, alias in parameters.items():
            getattr(request, method).add_request(param=parameter, alias=alias)
    return request


def _defaults(cls: type) -> dict[str, Any]:
    """Return the defaults of an estimator's parameters: a file may be older than one of them."""
    if not issubclass(cls, BaseEstimator):
        return {}
    parameters = inspect.signature(cls).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _scalar(dtype: np.dtype[Any], data: bytes) -> Any:
    if len(data) != dtype.itemsize:
        raise ValueError(f"{len(data)} bytes for a scalar of {dtype.itemsize}")
    if dtype.kind == "b" and data not in (b"\0", b"\1"):
        raise ValueError("a boolean that is neither 0 nor 1")
    return np.frombuffer(data, dtype)[0]


def _check_hashes(items: list[Any]) -> None:
    """Raise ValueError if many different keys have one hash: each is compared with all others."""
    if set(map(type, items)) <= {str}:  # whose hashes are others in each process
        return
    try:
        hashes = np.fromiter(map(hash, items), np.int64, len(items))
    except TypeError:  # an array of objects may hold what has no hash
        return
    found, counts = np.unique(hashes, return_counts=True)
    for common in found[counts > _MOST_OF_A_HASH].tolist():
        different: list[Any] = []
        for place in np.flatnonzero(hashes == common).tolist():
            if items[place] not in different:
                different.append(items[place])
            if len(different) > _MOST_OF_A_HASH:
                raise ValueError("its keys are made to have the same hash")


def _object_array(shape: Any, items: list[Any]) -> NDArray[np.object_]:
    if math.prod(check_shape(shape)) != len(items):
        raise ValueError(f"an array of shape {shape!r:.80} with {len(items)} items")
    return np.fromiter(items, dtype=object, count=len(items)).reshape(shape)


def _record(cls: type, items: list[Any]) -> Any:
    """Return a NamedTuple, or an object of a subclass of list."""
    if not issubclass(cls, (tuple, list)):
        raise ValueError(f"{cls.__name__} is no record")
    # By the arguments: a file of an older version may lack fields that have a default by now.
    new = cls(*items) if hasattr(cls, "_make") else cls(items)
    REGISTRY.check(new)
    return new
