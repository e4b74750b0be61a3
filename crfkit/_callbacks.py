"""Scikit-learn's callbacks of estimators, which are experimental since 1.9.

No other module knows them. They are imported where an estimator has some: they bring progress bars
of their own along.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])

MODULE = "sklearn.callback"
# What an estimator has that was given callbacks, or whose fit is part of one that was.
_GIVEN = {"_skl_callbacks", "_parent_callback_ctx"}


class _Untold:
    """Stands for the context of a fit: nobody is told of it."""

    def subcontext(self, **told: Any) -> _Untold:
        """Return that of a part of the fit."""
        return self

    def call_on_fit_task_begin(self, **told: Any) -> bool:
        """Do nothing, and do not end the fit."""
        return False

    call_on_fit_task_end = call_on_fit_task_begin


class CallbackSupportMixin:
    """In place of scikit-learn's class of this name, which there is not before 1.9."""

    if find_spec(MODULE) is not None:

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set the callbacks of the next fits; without arguments, take away those there are.

            Parameters
            ----------
            callbacks : callbacks of scikit-learn
                Such as :class:`crfkit.ProgressBar`, or those of :mod:`sklearn.callback`.

            Returns
            -------
            object
                This one.

            Raises
            ------
            TypeError
                If one is no callback.
            """
            known = import_module(MODULE).CallbackSupportMixin
            return cast(Self, known.set_callbacks(self, *callbacks))

    def _init_callback_context(self, **options: Any) -> Any:
        """Return what is told of a fit that begins."""
        if _has_callbacks(self):
            known = import_module(MODULE).CallbackSupportMixin
            return known._init_callback_context(self, **options)
        return _Untold()


def _has_callbacks(estimator: Any) -> bool:
    """Whether somebody is to be told of the fits of an estimator."""
    return not _GIVEN.isdisjoint(vars(estimator))


def with_callbacks(fit: Method) -> Method:
    """Return a method that ends what callbacks of the estimator have begun, if there are some."""

    @wraps(fit)
    def told(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        if _has_callbacks(estimator):
            return import_module(MODULE).with_callbacks(fit)(estimator, *args, **kwargs)
        return fit(estimator, *args, **kwargs)

    return cast(Method, told)


def told_as_a_whole(fit: Method) -> Method:
    """Return a method of which callbacks are told that it begins, and that it has ended."""

    @wraps(fit)
    def told(estimator: Any, *args: Any, **options: Any) -> Any:
        if "_skl_callbacks" not in vars(estimator):
            return fit(estimator, *args, **options)
        data = dict(zip(("X", "y"), args, strict=False))
        context = estimator._init_callback_context()
        context.call_on_fit_task_begin(estimator=estimator, **data)
        found = fit(estimator, *args, **options)
        context.call_on_fit_task_end(estimator=estimator, **data)
        return found

    return with_callbacks(cast(Method, told))


__all__ = ["CallbackSupportMixin", "told_as_a_whole", "with_callbacks"]
