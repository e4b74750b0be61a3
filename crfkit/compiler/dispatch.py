"""Parts of kernels whose body is chosen by the class of their first argument.

A solver's kernel is written once, against parts such as ``gather(problem, s, workspace)``; a
structure gives them bodies for its own class of problems, a NamedTuple of arrays. In compiled code
the body is chosen by type and inlined. A problem may be any Python object too: `interpreted` makes
Python functions of kernels, which look bodies up by class.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any, TypeVar

from numba.extending import overload

from crfkit.compiler.cache import depends_on
from crfkit.compiler.jit import PART_OPTIONS

F = TypeVar("F", bound=Callable[..., Any])


class Dispatched:
    """A part of kernels that has a body for each class of its first argument."""

    def __init__(self, declaration: Callable[..., Any]) -> None:
        self.name, self.bodies = declaration.__name__, dict[type, Callable[..., Any]]()

    def body(self, kind: type) -> Callable[..., Any]:
        """Return the body for a class of problems; TypeError if there is none."""
        if kind not in self.bodies:
            raise TypeError(f"{kind.__name__} has no {self.name}: see crfkit.compiler.dispatch.")
        return self.bodies[kind]


def dispatched(declaration: F) -> F:
    """Declare a part of kernels that has a body for each class of its first argument.

    The declaration says what the arguments are, and what is returned; its own body is not run. In
    Python, the part calls the body for the class of its first argument.
    """
    part = Dispatched(declaration)

    def call(problem: Any, *rest: Any) -> Any:
        return interpreted(part.body(type(problem)))(problem, *rest)

    def choose(problem: Any, *rest: Any) -> Callable[..., Any]:
        return part.body(problem.instance_class)

    update_wrapper(call, declaration)
    call.dispatched = part  # type: ignore[attr-defined]
    overload(call, strict=False, jit_options=PART_OPTIONS)(choose)
    return call  # type: ignore[return-value]


def implements(declaration: Callable[..., Any], *kinds: type) -> Callable[[F], F]:
    """Return a decorator that makes a function the body of a part for classes of problems.

    A body that other bodies call too is a helper of kernels besides.
    """

    def register(body: F) -> F:
        plain = getattr(body, "py_func", body)
        for kind in kinds:
            declaration.dispatched.bodies[kind] = plain  # type: ignore[attr-defined]
            depends_on(kind, plain)
        return body

    return register


@cache
def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel, or a helper of kernels, as a Python function.

    Other kernels that it calls stay compiled; helpers, which Python cannot call, do not.
    """
    plain = getattr(function, "py_func", function)
    names = {name: plain.__globals__.get(name) for name in plain.__code__.co_names}
    helpers = {name: interpreted(value) for name, value in names.items() if _is_helper(value)}
    if not helpers:
        return plain
    return types.FunctionType(plain.__code__, plain.__globals__ | helpers, plain.__name__)


def _is_helper(value: Any) -> bool:
    """Whether a value is compiled, but not to be called from Python."""
    return bool(getattr(value, "targetoptions", {}).get("no_cpython_wrapper"))
