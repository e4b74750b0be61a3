"""The one place that knows scikit-learn's callbacks (experimental since 1.9)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sklearn.callback import CallbackSupportMixin, with_callbacks

from crfkit._types import FloatArray, IterationRecord

__all__ = ["CallbackSupportMixin", "FitProgress", "with_callbacks"]


class FitProgress:
    """Tells scikit-learn's callbacks of the iterations of a solver.

    Parameters
    ----------
    estimator : CallbackSupportMixin
        The estimator being fitted.
    max_iter : int or None
        Iterations at most, where the solver tells.
    training : callable
        Returns X and y for callbacks that ask for them.
    attributes : callable
        Turns parameters into the fitted attributes of the estimator.
    """

    def __init__(
        self,
        estimator: Any,
        max_iter: int | None,
        training: Callable[[], tuple[Any, Any]],
        attributes: Callable[[FloatArray], dict[str, Any]],
    ) -> None:
        self.estimator = estimator
        self.attributes = attributes
        self.data = {"X": lambda: training()[0], "y": lambda: training()[1]}
        self.context = estimator._init_callback_context(max_subtasks=max_iter)
        self.context.call_on_fit_task_begin(estimator=estimator, **self.data)

    def __call__(self, record: IterationRecord, parameters: FloatArray) -> bool:
        """Report an iteration; returns whether a callback asks to stop."""
        if record.iteration == 0:
            return False
        task = self.context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return bool(
            task.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=lambda: self.attributes(parameters),
                **self.data,
            )
        )

    def close(self, parameters: FloatArray) -> None:
        """Report the end of the fit."""
        self.context.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=lambda: self.attributes(parameters),
            **self.data,
        )


def describe(record: IterationRecord) -> str:
    """Return a line of the log."""
    name, distance = "gradient", record.gradient_norm
    if math.isnan(distance):
        name, distance = "gap", record.gap
    if record.mistakes >= 0:
        name, distance = "mistakes", float(record.mistakes)
    return (
        f"iteration {record.iteration:4d}  objective {record.value:14.4f}  "
        f"{name:<8s} {distance:10.4g}  weights {record.nonzero:9,d}  {record.seconds:7.1f} s"
    )
