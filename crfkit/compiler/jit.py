"""The ``@kernel`` decorator: with the other modules of this room, all there is of numba.

A kernel is a plain function over arrays: the caller allocates, the kernel loops. Everything a
kernel may rely on is fixed here once: the interpreter lock is released, floating point follows
IEEE rules for ``inf`` and ``nan`` (only reassociation, contraction and the like are allowed), and
the machine code is cached on disk.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.options import DefaultOptions
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Scalar = TypeVar("Scalar", bound=np.generic)

# `True` would also allow the compiler to assume that no value is inf or nan,
# which turns the log-sum-exp of forbidden labels into nan.
FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}
# Kernels allocate nothing and return no arrays: references need not be counted (numba would do so
# for each array that is read from a named tuple, in inner loops too).
NO_REFERENCES = "_nrt"
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": FASTMATH,
    "no_cfunc_wrapper": True,
}
if hasattr(DefaultOptions, NO_REFERENCES):
    OPTIONS[NO_REFERENCES] = False
# Nor can helpers be called from Python: what translates the arguments is compiled for nothing.
HELPER_OPTIONS = OPTIONS | {"no_cpython_wrapper": True}
# All kernels that are compiled on their own.
KERNELS: list[Any] = []

_PACKAGE = Path(__file__).parents[1]


_IMPORT = re.compile(r"^from (crfkit\.(?:kernels|compiler)[\w.]*) import", re.MULTILINE)


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Return the source files of kernels and of the compiler that a file imports."""
    found = []
    for name in _IMPORT.findall(path.read_text(encoding="utf-8")):
        stem = _PACKAGE.joinpath(*name.split(".")[1:])
        found.append(stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py"))
    return tuple(found)


@cache
def _source_hash(path: Path) -> str:
    """Hash a source file and all files of kernels that it imports, directly or not."""
    seen, todo = set(), [path]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo.extend(_imported(file))
    digest = hashlib.sha256()
    for file in sorted(seen):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _named_tuples(kinds: Iterable[Any]) -> Iterator[type]:
    """Yield the classes of the named tuples among types of arguments, also of nested ones."""
    for kind in kinds:
        named = getattr(kind, "instance_class", None)
        if isinstance(named, type):
            yield named
        yield from _named_tuples(getattr(kind, "types", ()))


# Files with functions that a class of named tuples chooses, beside the one of the class.
_BODIES: dict[type, set[Path]] = {}


def depends_on(kind: type, body: Callable[..., Any]) -> None:
    """Say that machine code for arguments of a class depends on a function's source."""
    _BODIES.setdefault(kind, set()).add(Path(inspect.getfile(body)))


def _salt(function: Callable[..., Any], kinds: Iterable[Any]) -> tuple[str, ...]:
    """Return hashes of the sources that the machine code of a function depends on.

    The file of the function, and those of the classes of named tuples among its arguments, whose
    type may choose what the function calls.
    """
    salt = [_source_hash(Path(inspect.getfile(function)))]
    for cls in _named_tuples(kinds):
        files = sorted({Path(inspect.getfile(cls)), *_BODIES.get(cls, ())})
        salt += [f"{cls.__module__}.{cls.__qualname__}", *map(_source_hash, files)]
    return tuple(salt)


def _salted_cache(function: Callable[..., Any]) -> Any:
    """Return a disk cache whose key also covers the helpers a kernel calls.

    Numba's own key covers the file of the kernel alone, so that an edited helper in another file
    (or an upgrade of the package) would keep serving the old machine code. The key is of strings:
    an index that held classes could not be read where one of them cannot be imported. What is
    stored for older sources is dropped by their contents, not by the date of the file, so that a
    package that is installed again keeps its machine code.
    """
    from numba.core.caching import FunctionCache, IndexDataCacheFile

    class SaltedCache(FunctionCache):  # type: ignore[misc]
        def __init__(self, py_func: Callable[..., Any]) -> None:
            super().__init__(py_func)
            stamp = _source_hash(Path(inspect.getfile(py_func)))
            self._cache_file = IndexDataCacheFile(
                cache_path=self._cache_path,
                filename_base=self._impl.filename_base,
                source_stamp=stamp,
            )

        def _index_key(self, sig: Any, codegen: Any) -> Any:
            try:
                salt = _salt(function, sig)
            except OSError:  # sources not readable, as in a zipped application
                salt = ("unreadable sources",)
            return str(sig), codegen.magic_tuple(), salt

        # These are methods that numba may change, on files that anybody may damage: where one of
        # them fails, the kernel is compiled. Numba would load all that it can compile, 30 MB;
        # machine code that is there needs its run time at most, where references are counted.

        def load_overload(self, signature: Any, context: Any) -> Any:
            load: Any = getattr(self, "_load_overload", super().load_overload)
            with suppress(Exception):
                if OPTIONS.get(NO_REFERENCES, True):
                    context.refresh()
                return load(signature, context)

        def save_overload(self, *arguments: Any) -> None:
            with suppress(Exception):
                super().save_overload(*arguments)

    return SaltedCache(function)


def _enable_cache(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Cache with the salted key, else plainly, else not at all: never fail at import."""
    try:
        dispatcher._cache = _salted_cache(function)
    except Exception:
        with suppress(Exception):  # a read-only installation without a home folder
            dispatcher.enable_caching()


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a read-only view in C order, as all inputs of kernels are passed.

    Numba compiles a kernel anew for read-only arrays (memory maps in worker processes, say) and
    for other layouts; so that there is one machine code, every input is of this kind.
    """
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array = array.view()
        array.setflags(write=False)
    return array


def _compiled(function: F, **options: Any) -> Any:
    """Compile a function lazily; for kernels that call it, a constant is a number like any other.

    Numba would compile it once more for each constant among the arguments.
    """
    compiled: Any = numba.njit(**options)(function)
    find = getattr(compiled, "get_call_template", None)
    if find is not None:  # a function of numba, and not of a version without the method

        def find_plain(kinds: Any, named: Any) -> Any:
            try:
                return find([numba.types.unliteral(kind) for kind in kinds], named)
            except TypeError:  # the types are given in another way
                return find(kinds, named)

        compiled.get_call_template = find_plain
    return compiled


def kernel(function: F) -> F:
    """Compile a function lazily, without the interpreter lock, cached on disk.

    Of arrays and scalars: no classes, no closures, no function arguments. Returns the function
    itself where ``NUMBA_DISABLE_JIT`` is set.
    """
    compiled = _compiled(function, **OPTIONS)
    if compiled is not function:
        _enable_cache(compiled, function)
        KERNELS.append(compiled)
    return compiled  # type: ignore[no-any-return]


def count_references() -> None:
    """Let kernels that are compiled from now on return arrays, as vectors in Python do."""
    for options in (OPTIONS, HELPER_OPTIONS):
        options.pop(NO_REFERENCES, None)


def part(function: F) -> F:
    """Compile a function into each place in kernels that calls it; Python cannot call it."""
    return _compiled(function, **HELPER_OPTIONS, forceinline=True)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Write a function out in the kernels that call it: it has no machine code of its own.

    For a function that calls large kernels: each machine code that refers to a kernel holds that
    once more, and takes as long to compile. Python cannot call it.
    """
    return _compiled(function, **HELPER_OPTIONS, inline="always")  # type: ignore[no-any-return]
