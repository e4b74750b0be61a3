"""What scikit-learn's callbacks are told, which are experimental since 1.9.

No other module imports them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9 there are no callbacks

    class _Untold:
        """Stands for the context of a fit: nobody is told of it."""

        def subcontext(self, **told: Any) -> _Untold:
            """Return that of a part of the fit."""
            return self

        def call_on_fit_task_begin(self, **told: Any) -> bool:
            """Do nothing, and do not end the fit."""
            return False

        call_on_fit_task_end = call_on_fit_task_begin

    _members = {"_init_callback_context": lambda estimator, **options: _Untold()}
    CallbackSupportMixin = type("CallbackSupportMixin", (), _members)

    def with_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method itself."""
        return fit


def told_as_a_whole(fit: Method) -> Method:
    """Return a method of which callbacks are told that it begins, and that it has ended."""

    @functools.wraps(fit)
    def told(estimator: Any, *args: Any, **options: Any) -> Any:
        if "_skl_callbacks" not in vars(estimator):
            return fit(estimator, *args, **options)
        data = dict(zip(("X", "y"), args, strict=False))
        context = estimator._init_callback_context()
        context.call_on_fit_task_begin(estimator=estimator, **data)
        found = fit(estimator, *args, **options)
        context.call_on_fit_task_end(estimator=estimator, **data)
        return found

    return cast(Method, with_callbacks(told))


__all__ = ["CallbackSupportMixin", "told_as_a_whole", "with_callbacks"]
