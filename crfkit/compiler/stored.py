"""Machine code that was read from the disk; what it was made from is read where that is needed.

Numba keeps with machine code what other kernels would be compiled from, and parses it: that takes
longer, and ten times the memory, of the machine code itself. LLVM loads only what
:mod:`crfkit.compiler.object_files` does not.
"""

from __future__ import annotations

import builtins
import ctypes
import zlib
from functools import cache
from typing import Any

from numba import _dynfunc, _helperlib
from numba.core.codegen import JITCodeLibrary, ll
from numba.core.compiler import CompileResult
from numba.core.intrinsics import INTR_MATH

from crfkit.compiler.jit import is_tested
from crfkit.compiler.object_files import NotLoadableError, load_object
from crfkit.compiler.target import CONTEXT

OBJECT = "object"  # numba's name of machine code


# Where the code of kernels is that was loaded without LLVM.
_ADDRESSES: dict[str, int] = {}


class _WithSource:
    """Machine code with its source, for other kernels to be compiled with."""

    _source: bytes
    _shared_module: Any = None

    def _get_module_for_linking(self) -> Any:
        _tell_llvm()
        if self._shared_module is None:
            self._shared_module = ll.parse_bitcode(zlib.decompress(self._source))
        return self._shared_module


class _StoredLibrary(_WithSource, JITCodeLibrary):  # type: ignore[misc]
    """The machine code of a kernel, loaded by LLVM."""

    def take(self, machine_code: bytes, source: bytes, symbols: set[str]) -> None:
        _tell_llvm()
        self._source = source
        self.enable_object_caching()
        self._set_compiled_object(machine_code)
        self._finalize_final_module()
        self.codegen._engine._defined_symbols |= symbols


class _LoadedLibrary(_WithSource, JITCodeLibrary):  # type: ignore[misc]
    """The same, loaded without LLVM."""

    _finalized = True

    def __init__(self, name: str) -> None:
        self._name = name  # and no module of LLVM, which numba makes
        self._dynamic_globals, self._linking_libraries = list[str](), list[Any]()
        self._reload_init = set[Any]()

    def take(self, machine_code: bytes, source: bytes, symbols: set[str]) -> None:
        self._source = source
        self._symbols = load_object(machine_code, _find)
        _ADDRESSES.update((name, self._symbols[name]) for name in symbols)

    def get_pointer_to_function(self, name: str) -> int:
        return self._symbols.get(name, 0)

    @property
    def codegen(self) -> Any:
        """What is told the environment of machine code: the code itself."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Write the address of an environment to where the code reads it."""
        if name in self._symbols:
            ctypes.c_void_p.from_address(self._symbols[name]).value = id(environment)


def _find(name: str) -> int:
    """Return the address of what machine code calls or reads; 0 if there is none."""
    known = _ADDRESSES.get(name) or helpers().get(name)
    if known:
        return known
    if CONTEXT.is_made:
        engine = CONTEXT.codegen()._engine
        if engine.is_symbol_defined(name):  # compiled in this process
            return int(engine.get_function_address(name))
    found = getattr(_library(), name, None)
    return 0 if found is None else ctypes.cast(found, ctypes.c_void_p).value or 0


@cache
def _library() -> ctypes.CDLL:
    """Return what is loaded already."""
    return ctypes.CDLL(None)


@cache
def helpers() -> dict[str, int]:
    """Return the addresses of what numba gives machine code, by the names that it has there."""
    kinds: Any = _helperlib, _dynfunc
    found = {name: kinds[0].c_helpers[name] for name in INTR_MATH}
    for module in kinds:
        found |= {f"numba_{name}": address for name, address in module.c_helpers.items()}
    for kind in vars(builtins).values():
        if isinstance(kind, type) and issubclass(kind, BaseException):
            found[f"PyExc_{kind.__name__}"] = id(kind)
    return found | {"_Py_NoneStruct": id(None)}


def _tell_llvm() -> None:
    """Tell LLVM, which is going to compile or load code, where that is that it did not load."""
    for name, address in _ADDRESSES.items():
        ll.add_symbol(name, address)


class _Target:
    """The target of numba, whose code generator makes libraries of what was stored."""

    def __init__(self, context: Any, symbols: set[str]) -> None:
        self._context, self._symbols = context, symbols

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def codegen(self) -> _Target:
        return self

    def unserialize_library(self, stored: Any) -> _StoredLibrary:
        name, kind, (machine_code, source) = stored
        if kind != OBJECT:
            raise ValueError(f"not machine code but {kind}")
        library: Any = _LoadedLibrary(name)
        try:
            library.take(machine_code, source, self._symbols)
        except NotLoadableError:
            library = _StoredLibrary(self._context.codegen(), name)
            library.take(machine_code, source, self._symbols)
        return library  # type: ignore[no-any-return]

    def get_executable(self, library: Any, described: Any, environment: Any) -> Any:
        """Return what is called from Python."""
        wrapper = library.get_pointer_to_function(described.llvm_cpython_wrapper_name)
        name = described.qualname.split(".")[-1]
        made = _dynfunc.make_function(
            described.lookup_module(), name, f"compiled {described.qualname}", wrapper,
            environment, (library,),
        )  # fmt: skip
        library.codegen.set_env(described.env_name, environment)
        return made


def reduced(compiled: Any) -> tuple[Any, ...]:
    """Return the fields that are stored of what was compiled: those of numba, some of them less."""
    library, *others = compiled._reduce()
    if is_tested() and library[1] == OBJECT:
        name, kind, (machine_code, source) = library
        library = name, kind, (machine_code, zlib.compress(source))
    return library, *others


def rebuild(context: Any, stored: tuple[Any, ...]) -> Any:
    """Return what was compiled, from the fields that are stored of it."""
    if not is_tested():
        return CompileResult._rebuild(context, *stored)
    described = stored[1]
    symbols = {described.llvm_func_name, described.llvm_cpython_wrapper_name}
    found = CompileResult._rebuild(_Target(context, symbols), *stored)
    return found._replace(target_context=context)
