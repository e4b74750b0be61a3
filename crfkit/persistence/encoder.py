"""From objects to the header and the arrays of a model file.

Every compound value is an entry of one list, the table, and refers to entries before it: the order
rules out cycles, what is shared is stored once, and the JSON is flat however deep the values are.
A value inside an entry is one of

- ``null``, a boolean, a number or a string: itself;
- ``["ref", n]``: entry n of the table;
- ``["int", "0x.."]``, ``["float", "nan"]``, ``["str_", text]``, ``["scalar", dtype, hex]``: numbers
  that JSON does not have, and scalars of NumPy.

An entry of the table is one of

- ``["list", items]``, also "tuple", "set" and "frozenset"; ``["dict", keys, values]``;
- ``["bytes", array]``, ``["array", array]``, ``["objects", shape, items]``;
- ``["csr", class, shape, data, indices, indptr]``, the last three values of their own;
- ``["object", class, state]`` with a dict of values, or null; ``["record", class, items]``;
- ``["function", "module:name"]``.

`array` is a number in the list of arrays. `items` is a list of values or, for 16 or more of one
type, ``{"numbers": array}`` or ``{"strings": [text, lengths]}``: the strings one after the other in
UTF-8 (surrogates included) and their lengths in characters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit.persistence.container import ArrayStore, is_storable
from crfkit.persistence.registry import FUNCTION_TYPES, REGISTRY, function_name

MAX_DEPTH = 64
VERSION_KEY = "_sklearn_version"  # scikit-learn puts it into states; the header has the versions
CALLBACKS = "_skl_callbacks"  # of scikit-learn's `set_callbacks`: of this process, not of the model
REQUESTS = "_metadata_request"  # of scikit-learn's `set_fit_request`: stored as plain dicts
CSR_CLASSES = {"csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix}

_NOT_KEPT = (VERSION_KEY, CALLBACKS)
_PACKED_FROM = 16  # items; for fewer, an array would take more room than JSON
_MAX_USES = 16  # of equal texts; a reader allows a multiple of the size of the file
_ADVICE = (
    "turn it into plain values (lists, dicts, numbers, strings, arrays), or decorate its class "
    "with crfkit.persistence.register"
)
_ARRAY_TYPES = (np.ndarray, np.memmap)
_CSR_NAMES = {cls: name for name, cls in CSR_CLASSES.items()}


class Encoder:
    """Turns one object, with all it consists of, into a table; TypeError of what has no name."""

    def __init__(self) -> None:
        self.table: list[Any] = []
        self.arrays = ArrayStore()
        self._place: list[tuple[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._heights: list[int] = []
        self._below = [0]  # for each open entry, the tallest of its parts
        self._open: set[int] = set()
        self._alive: list[Any] = []  # an id is that of one object only while the object lives
        self._texts: dict[tuple[Any, ...], tuple[list[str], list[int], int]] = {}

    def value(self, item: Any) -> Any:
        """Return a value as it stands inside an entry."""
        kind = type(item)
        if item is None or kind in (bool, str):
            return item
        if kind is int:
            return item if -(2**63) <= item < 2**63 else ["int", hex(item)]
        if kind is float:
            return item if math.isfinite(item) else ["float", repr(item)]
        if kind is np.str_:
            return ["str_", str(item)]
        if isinstance(item, np.generic) and is_storable(item.dtype):
            plain = item.astype(item.dtype.newbyteorder("<"))
            return ["scalar", plain.dtype.newbyteorder("<").str, plain.tobytes().hex()]
        return ["ref", self._entry(item)]

    def _entry(self, item: Any) -> int:
        """Return the number of an item in the table, where it is put at first sight."""
        number = self._numbers.get(id(item))
        if number is None:
            number = self._add(item)
        self._below[-1] = max(self._below[-1], self._heights[number])
        return number

    def _add(self, item: Any) -> int:
        if id(item) in self._open:
            raise ValueError(f"{self._where()} contains itself: such a cycle cannot be saved.")
        self._open.add(id(item))
        self._below.append(0)
        self._check_depth(len(self._place))
        entry = self._encode(item)
        height = self._below.pop() + 1
        self._check_depth(height)
        self._open.remove(id(item))
        self._alive.append(item)
        self.table.append(entry)
        self._heights.append(height)
        self._numbers[id(item)] = len(self.table) - 1
        return len(self.table) - 1

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ValueError(f"{self._where()}: nested deeper than {MAX_DEPTH} levels.")

    def _encode(self, item: Any) -> list[Any]:
        kind = type(item)
        if kind in (list, tuple):
            return [kind.__name__, self._items(item, item)]
        if kind in (set, frozenset):  # in an order that is the same in each process
            ordered = sorted(item, key=lambda part: (type(part).__name__, repr(part)))
            return [kind.__name__, self._items(ordered, item)]
        if kind is dict:
            return self._dict(item)
        if kind is bytes:
            return ["bytes", self.arrays.add(np.frombuffer(item, np.uint8))]
        if kind in _ARRAY_TYPES:
            return self._array(item)
        if kind in _CSR_NAMES:
            return self._csr(item)
        if isinstance(item, FUNCTION_TYPES):
            try:
                return ["function", function_name(item)]
            except TypeError as error:
                raise TypeError(f"{self._where()}: {error}.") from error
        name = REGISTRY.name(kind)
        if name is None:
            self._refuse(item, _advice(item))
        if isinstance(item, (tuple, list)):
            if getattr(item, "__dict__", None):
                self._refuse(item, "it is a list with attributes, which would be lost")
            return ["record", name, self._items(item, item)]
        return ["object", name, self._state(item)]

    def _refuse(self, item: Any, why: str) -> NoReturn:
        kind = type(item)
        raise TypeError(
            f"{self._where()}: a {kind.__module__}.{kind.__qualname__} cannot be saved; {why}."
        )

    def _dict(self, item: dict[Any, Any]) -> list[Any]:
        keys, values = list(item), list(item.values())
        packed: Any = self._packed(values)
        if packed is None:
            packed = [self._inside(f"item {key!r:.60}", item, value) for key, value in item.items()]
        return ["dict", self._items(keys, item, "key"), packed]

    def _array(self, item: NDArray[Any]) -> list[Any]:
        if item.dtype == object:
            return ["objects", list(item.shape), self._items(item.ravel().tolist(), item)]
        if not is_storable(item.dtype):
            raise TypeError(
                f"{self._where()}: an array of dtype {item.dtype} cannot be saved; convert it to "
                "numbers or to objects."
            )
        return ["array", self.arrays.add(item)]

    def _csr(self, item: Any) -> list[Any]:
        matrix = item
        if len(item.indices) != item.indptr[-1] or len(item.data) != item.indptr[-1]:
            matrix = item.copy()
            matrix.prune()
        names = ("data", "indices", "indptr")
        parts = [self._inside(name, item, getattr(matrix, name)) for name in names]
        return ["csr", _CSR_NAMES[type(item)], [int(size) for size in item.shape], *parts]

    def _state(self, item: Any) -> dict[str, Any] | None:
        state = item.__getstate__()
        if state is None:
            return None
        if not isinstance(state, dict) or not all(type(name) is str for name in state):
            raise TypeError(
                f"{self._where()}: the __getstate__ of {type(item).__qualname__} must return a "
                f"dict of attributes, not {type(state).__name__}."
            )
        attributes = {name: part for name, part in state.items() if name not in _NOT_KEPT}
        if REQUESTS in attributes:  # {method: {parameter: alias or flag}}, without the owner
            methods = {k: m for k, m in vars(attributes[REQUESTS]).items() if k != "owner"}
            attributes[REQUESTS] = {k: dict(m.requests) for k, m in methods.items() if m.requests}
        self._alive.append(attributes)
        return {
            name: self._inside(f"attribute {name}", item, part) for name, part in attributes.items()
        }

    def _inside(self, place: str, parent: Any, item: Any) -> Any:
        with self._at(place, parent):
            return self.value(item)

    def _items(self, items: Iterable[Any], parent: Any, word: str = "item") -> Any:
        """Return items as a list of values, or packed into arrays."""
        listed = list(items)
        packed = self._packed(listed)
        if packed is not None:
            return packed
        return [self._inside(f"{word} {n}", parent, part) for n, part in enumerate(listed)]

    def _packed(self, items: list[Any]) -> dict[str, Any] | None:
        """Return items of one type in arrays, None where JSON suits them better."""
        kinds = set(map(type, items)) if len(items) >= _PACKED_FROM else set()
        if kinds == {str}:
            return {"strings": self._strings(items)}
        if kinds == {float}:
            return {"numbers": self.arrays.add(np.array(items, np.float64))}
        if kinds == {int} and -(2**63) <= min(items) and max(items) < 2**63:
            small = -(2**31) <= min(items) and max(items) < 2**31
            return {"numbers": self.arrays.add(np.array(items, np.int32 if small else np.int64))}
        return None

    def _strings(self, items: list[str]) -> list[int]:
        """Return the arrays of the text and the lengths of strings; equal lists share them."""
        key = (len(items), items[0], items[len(items) // 2], items[-1])
        known, stored, uses = self._texts.get(key, ([], [], 0))
        if uses == _MAX_USES or known != items:
            text = "".join(items).encode("utf-8", "surrogatepass")
            counts = np.fromiter(map(len, items), np.int64, len(items))
            lengths = counts.astype(np.min_scalar_type(counts.max()))
            stored = [self.arrays.add(np.frombuffer(text, np.uint8)), self.arrays.add(lengths)]
            uses = 0
        self._texts[key] = (items, stored, uses + 1)
        return stored

    def _where(self) -> str:
        """Return the place of the item that is being encoded."""
        return ", ".join(_readable(self._place)) or "the object"

    @contextmanager
    def _at(self, place: str, parent: Any) -> Iterator[None]:
        self._place.append((place, parent))
        yield
        self._place.pop()


def _advice(item: Any) -> str:
    """Return how what an object of an unknown class holds can be saved."""
    if sp.issparse(item):
        return "call its method tocsr()"
    if hasattr(item, "refit") and hasattr(item, "estimator"):  # a search over parameters
        return "fit it, with refit=True, and save its best_estimator_"
    return _ADVICE


def _readable(place: list[tuple[str, Any]]) -> Iterator[str]:
    """Yield the parts of a place; a step of a Pipeline or FeatureUnion is one of them."""
    n = 0
    while n < len(place):
        text, parent = place[n]
        if n == 0:
            yield type(parent).__name__
        named = place[n + 2][1] if n + 2 < len(place) else None
        if text in _STEPS and type(named) is tuple and type(named[0]) is str:
            yield f"step {place[n + 1][0].removeprefix('item ')} {named[0]!r}"
            n += 3
        else:
            yield text
            n += 1


_STEPS = ("attribute steps", "attribute transformer_list")
