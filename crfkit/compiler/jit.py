"""The ``@kernel`` decorator: with the other modules of this room, all there is of numba.

A kernel is a plain function over arrays: the caller allocates, the kernel loops. Everything a
kernel may rely on is fixed here once: the interpreter lock is released, floating point follows
IEEE rules for ``inf`` and ``nan`` (only reassociation, contraction and the like are allowed), and
the machine code is cached on disk.
"""

from __future__ import annotations

import gc
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

import numba
import numpy as np
import scipy.sparse as sp
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.options import DefaultOptions
from numpy.typing import NDArray

from crfkit._progress import say
from crfkit.compiler.cache import KernelCache
from crfkit.compiler.interrupts import held_interrupts
from crfkit.compiler.target import CONTEXT, KernelDispatcher

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
# A kernel of so many instructions, and some for each number that is passed, is called by other
# kernels; a smaller one is compiled into each of them.
LARGE, PASSED = 200, 4
TESTED = (0, 68)  # the newest version of numba that is known to work as its private names say
# What numba does for programs that are no kernels: closures, tuples of many types, whole arrays.
LEFT_OUT = {
    "AnnotateTypes", "DeadBranchPrune", "DumpParforDiagnostics", "InlineClosureLikes",
    "InlineOverloads", "LiteralPropagationSubPipelinePass", "LiteralUnroll",
    "MakeFunctionToJitFunction", "NoPythonSupportedFeatureValidation", "NopythonRewrites",
    "RewriteDynamicRaises", "RewriteSemanticConstants", "WithLifting",
}  # fmt: skip
LAST_PASS = "nopython_backend"  # numba's name of the pass after machine code is made
WRAPPER = "wrapper"  # numba's name of the code that is called from Python
COMPILING = "compiling kernels, once for this machine ..."
# All kernels that are compiled on their own.
KERNELS: list[Any] = []


class _WhileCompiling(event.Listener):  # type: ignore[misc]
    """Pauses the garbage collector, which finds nothing in what numba holds on to, and Ctrl-C."""

    depth, collects, tells = 0, False, False

    def on_start(self, found: Any) -> None:
        if found.data["dispatcher"] in KERNELS:
            if self.depth == 0:
                self.collects = gc.isenabled()
                gc.disable()
                held_interrupts.__enter__()
            if self.tells and sys.stderr is not None:
                self.tells = False
                say(COMPILING)
            self.depth += 1

    def on_end(self, found: Any) -> None:
        if found.data["dispatcher"] in KERNELS:
            self.depth -= 1
            if self.depth == 0:
                if self.collects:
                    gc.enable()
                held_interrupts.__exit__()


class _BetweenPasses(event.Listener):  # type: ignore[misc]
    """Lets an interrupt through, but where machine code is made already: it is kept first."""

    def on_start(self, found: Any) -> None:
        if not found.data["name"].startswith(LAST_PASS):
            held_interrupts.pass_on()

    def on_end(self, found: Any) -> None:
        """Do nothing."""


_while_compiling = _WhileCompiling()
event.register("numba:compile", _while_compiling)
event.register("numba:run_pass", _BetweenPasses())


def tell_of_compiling() -> None:
    """Write a line to standard error when a kernel is first compiled, and not read from disk."""
    _while_compiling.tells = True


def is_tested() -> bool:
    """Whether this version of numba is none after the tested ones."""
    return tuple(int(number) for number in re.findall(r"\d+", numba.__version__)[:2]) <= TESTED


def protect(attributes: Mapping[str, Any]) -> None:
    """Make arrays read-only: what was checked, or derived from them, would not see them change."""
    for value in attributes.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        elif sp.issparse(value):
            protect(vars(value))


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
    if not numba.config.DISABLE_JIT:  # numba asks several times
        function.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    compiled = _dispatcher(function, **options)
    find = getattr(compiled, "get_call_template", None)
    if find is not None:  # a function of numba, and not of a version without the method

        def find_plain(kinds: Any, named: Any) -> Any:
            CONTEXT.make()  # what calls it is being compiled
            try:
                found = find([numba.types.unliteral(kind) for kind in kinds], named)
            except TypeError:  # the types are given in another way
                found = find(kinds, named)
            if compiled in KERNELS:
                with suppress(Exception):  # what numba may change
                    _call_if_large(compiled, tuple(found[2]))
            return found

        compiled.get_call_template = find_plain
    return compiled


def _dispatcher(function: Any, **options: Any) -> Any:
    """Return what numba makes of a function, without what it needs only to compile it."""
    if numba.config.DISABLE_JIT or not is_tested():
        return numba.njit(**options)(function)
    chosen = {name: options.pop(name) for name in ("pipeline_class",) if name in options}
    told = options | {"nopython": True, "boundscheck": None}
    return KernelDispatcher(function, locals={}, targetoptions=told, **chosen)


def _call_if_large(compiled: Any, kinds: tuple[Any, ...]) -> None:
    """Let kernels that are compiled from now on call the machine code of a large kernel.

    Numba would compile it once more into each of them. A kernel that is read from the disk has
    numba load first what it calls.
    """
    code = compiled.overloads[kinds]
    library, symbol = code.library, code.fndesc.llvm_func_name
    library._reload_init.update(code.reload_init)  # what it calls, if it was read from the disk
    body = library._get_module_for_linking().get_function(symbol)
    size = str(body).count("\n  ")  # each instruction is a line
    if not body.is_declaration and size >= LARGE + PASSED * len(list(body.arguments)):
        from numba.core.codegen import ll

        name = compiled.__module__, compiled.__qualname__
        library._reload_init.add(partial(_load_called, *name, kinds, symbol))
        library._shared_module = ll.parse_assembly("")  # nothing is copied


def _load_called(module: str, name: str, kinds: tuple[Any, ...], symbol: str) -> None:
    """Load the machine code of a kernel that another one calls, by the name that it has there."""
    compiled = getattr(import_module(module), name)
    compiled.compile(kinds)
    if compiled.overloads[kinds].fndesc.llvm_func_name != symbol:
        raise RuntimeError(f"{name} was compiled anew, and so must be what calls it.")


def kernel(function: F) -> F:
    """Compile a function lazily, without the interpreter lock, cached on disk.

    Of arrays and scalars: no classes, no closures, no function arguments. Returns the function
    itself where ``NUMBA_DISABLE_JIT`` is set.
    """
    return _kept(function, OPTIONS)


def object_kernel(function: F) -> F:
    """Compile a kernel that reads objects of the interpreter, whose lock it keeps."""
    return _kept(function, OPTIONS | {"nogil": False})


def quick_kernel(function: F) -> F:
    """Compile a kernel of which each call counts: arguments are passed a little faster."""
    return _kept(function, QUICK_OPTIONS)


def _kept(function: F, options: dict[str, Any]) -> F:
    """Return a function as a kernel, whose machine code is kept on disk."""
    compiled = _compiled(function, **options)
    if compiled is not function:
        compiled._cache = KernelCache(function, counts_references)
        KERNELS.append(compiled)
    return compiled  # type: ignore[no-any-return]


def for_types_of(compiled: F, *arguments: Any) -> F:
    """Return a kernel for arguments of the same types, at which it does not look any more."""
    if compiled not in KERNELS:  # without the compiler
        return compiled
    machine_code = compiled.compile(tuple(map(numba.typeof, arguments)))  # type: ignore[attr-defined]
    return machine_code if callable(machine_code) else compiled


def counts_references() -> bool:
    """Whether machine code counts references, for which it needs the run time of numba."""
    return bool(OPTIONS.get(NO_REFERENCES, True))


def count_references() -> None:
    """Let kernels that are compiled from now on return arrays, as vectors in Python do."""
    for options in (OPTIONS, QUICK_OPTIONS, HELPER_OPTIONS, PART_OPTIONS, LOOP_OPTIONS):
        options.pop(NO_REFERENCES, None)


class _QuickLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel, as numba makes it."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.enable_object_caching()


class _KernelLibrary(_QuickLibrary):
    """The code of a kernel; what translates its arguments, as much code again, is not optimized."""

    def add_ir_module(self, ir_module: Any) -> None:
        if ir_module.name == WRAPPER:
            for function in ir_module.functions:
                if not function.is_declaration and "alwaysinline" not in function.attributes:
                    function.attributes.add("noinline")
                    function.attributes.add("optnone")
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        if ll_module.name == WRAPPER:
            ll_module.data_layout = self.codegen._data_layout
        else:
            super()._optimize_functions(ll_module)


class _LoopLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a loop, for kernels to be compiled into: no machine code is made of it alone."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """What is told the environment of machine code: nothing."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _PartLibrary(_LoopLibrary):
    """The code of a part, which is optimized in the kernels that it is compiled into."""

    def _optimize_final_module(self) -> None:
        pass


def _compiled_by(library: type[JITCodeLibrary]) -> dict[str, Any]:
    """Return the options of functions whose code is of this kind.

    What the compiler leaves out changes nothing: the machine code is the same.
    """

    class KernelCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            codegen, name = self.state.targetctx.codegen(), self.state.func_id.func_qualname
            self.state.library = library(codegen, name)
            pipelines = super().define_pipelines()
            for steps in pipelines:
                steps.passes[:] = [
                    each for each in steps.passes if each[0].__name__ not in LEFT_OUT
                ]
                steps._ENFORCING = False  # else what is known of variables is found after each
            return pipelines

    return {"pipeline_class": KernelCompiler} if is_tested() else {}


QUICK_OPTIONS = OPTIONS | _compiled_by(_QuickLibrary)
OPTIONS |= _compiled_by(_KernelLibrary)
_INLINE = HELPER_OPTIONS | {"forceinline": True}
PART_OPTIONS, LOOP_OPTIONS = (_INLINE | _compiled_by(kind) for kind in (_PartLibrary, _LoopLibrary))


def part(function: F) -> F:
    """Compile a function into each place in kernels that calls it; Python cannot call it."""
    return _compiled(function, **PART_OPTIONS)  # type: ignore[no-any-return]


def loop(function: F) -> F:
    """Compile a part that is optimized before it becomes part of a kernel.

    For inner loops that keep vectors in registers, and are slower if they are optimized together
    with what surrounds them. It takes longer to compile.
    """
    return _compiled(function, **LOOP_OPTIONS)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Write a function out in the kernels that call it: it has no machine code of its own.

    For a function that calls small kernels: each machine code that refers to one holds it once
    more, and takes as long to compile. Python cannot call it.
    """
    return _compiled(function, **HELPER_OPTIONS, inline="always")  # type: ignore[no-any-return]
