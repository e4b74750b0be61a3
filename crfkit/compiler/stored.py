"""Machine code that was read from the disk; what it was made from is read where that is needed.

Numba keeps with machine code what other kernels would be compiled from, and parses it: that takes
longer, and ten times the memory, of the machine code itself.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary, ll
from numba.core.compiler import CompileResult

from crfkit.compiler.jit import is_tested


class _StoredLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The machine code of a kernel, and its source for other kernels to be compiled with."""

    _shared_module: Any

    def take(self, machine_code: bytes, source: bytes, symbols: set[str]) -> None:
        self._source = source
        self.enable_object_caching()
        self._set_compiled_object(machine_code)
        self._finalize_final_module()
        self.codegen._engine._defined_symbols |= symbols

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = ll.parse_bitcode(self._source)
        return self._shared_module


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
        if kind != "object":
            raise ValueError(f"not machine code but {kind}")
        library = _StoredLibrary(self._context.codegen(), name)
        library.take(machine_code, source, self._symbols)
        return library


def rebuild(context: Any, stored: tuple[Any, ...]) -> Any:
    """Return what was compiled, from the fields that numba stores of it."""
    if not is_tested():
        return CompileResult._rebuild(context, *stored)
    described = stored[1]
    symbols = {described.llvm_func_name, described.llvm_cpython_wrapper_name}
    found = CompileResult._rebuild(_Target(context, symbols), *stored)
    return found._replace(target_context=context)
