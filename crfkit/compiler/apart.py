"""Large kernels that other kernels call, without a copy of their machine code in each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numba

from crfkit.compiler.simd import emitted

# The types of the arguments of each kernel that is called by its address.
_kinds: dict[Any, tuple[Any, ...]] = {}


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a way for kernels to call a large kernel where its machine code is.

    Numba compiles what a kernel calls into the machine code of the caller: a large kernel that
    several others call takes as long again with each.

    Parameters
    ----------
    function : callable
        A kernel, for which there is one kind of arguments only.

    Returns
    -------
    callable
        Called with the result of `address_of` before the arguments.

    Raises
    ------
    TypeError
        While a caller is compiled, if the kernel is called by its address with other types.
    """

    def call(address: int, *arguments: Any) -> Any:
        return function(*arguments)

    def result(address: Any, *kinds: Any) -> Any:
        return _compiled(function, kinds).signature.return_type(address, *kinds)

    def emit(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
        found = _compiled(function, kinds[1:]).signature.return_type
        kind = context.call_conv.get_function_type(found, kinds[1:])
        code = builder.inttoptr(values[0], kind.as_pointer())
        return context.call_conv.call_function(builder, code, found, kinds[1:], values[1:])[1]

    first = inspect.Parameter("address", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    others = inspect.signature(function).parameters.values()
    call.__signature__ = inspect.Signature([first, *others])  # type: ignore[attr-defined]
    return emitted(result, emit)(call)


def address_of(function: Callable[..., Any], *arguments: Any) -> int:
    """Return where the machine code of a kernel for such arguments begins; 0 without the compiler.

    Parameters
    ----------
    function : callable
        A kernel that others call by way of `apart`.
    *arguments : object
        Of exactly the types that callers give it, or they would read garbage. Nothing else is done
        with them.

    Raises
    ------
    TypeError
        If the kernel is called by its address with other types.
    """
    if numba.config.DISABLE_JIT:
        return 0
    kinds = tuple(numba.typeof(argument) for argument in arguments)
    code = _compiled(function, kinds)
    return int(code.library.get_pointer_to_function(code.fndesc.llvm_func_name))


def _compiled(function: Any, kinds: tuple[Any, ...]) -> Any:
    """Return the machine code of a kernel, for these types of arguments and for no others."""
    before = _kinds.setdefault(function, kinds)
    if before != kinds:
        raise TypeError(
            f"{function.__name__} is called by its address with arguments of the types {kinds}, "
            f"but with {before} elsewhere: give it the same types everywhere."
        )
    function.compile(kinds)
    return function.overloads[kinds]
