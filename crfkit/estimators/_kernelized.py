"""Chains whose scores of labels are sums of kernel values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from crfkit._params import check_option
from crfkit._types import FloatArray
from crfkit.data import PackedSequences
from crfkit.estimators._solving import SolvedChainClassifier
from crfkit.estimators._training import TrainingData
from crfkit.persistence import check_chain_model
from crfkit.potentials.kernelized import Kernel, KernelChainModel
from crfkit.potentials.selection import choose_features
from crfkit.solvers.margin.frank_wolfe import BlockFrankWolfe
from crfkit.solvers.margin.kernel_frank_wolfe import KernelFrankWolfe

KERNELS = ("linear", "rbf", "poly", "precomputed")
# What only a fit with a kernel, and what only one without leaves behind.
OF_KERNELS = ("support_", "dual_coef_", "support_vectors_")
OF_WEIGHTS = ("coef_",)
# Options of BlockFrankWolfe that its form for kernels has too.
SHARED_OPTIONS = ("max_iter", "tol", "random_state")


class KernelizedChain(SolvedChainClassifier):
    """A linear chain that may have a kernel in place of the weights of attributes.

    A subclass has the parameters below. With the kernel "linear" nothing differs.
    """

    kernel: Any
    kernel_params: Mapping[str, Any] | None
    solver: Any

    @property
    def _has_kernel(self) -> bool:
        return not (isinstance(self.kernel, str) and self.kernel == "linear")

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, dict(self.kernel_params or {}))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not callable(self.kernel):
            check_option("kernel", self.kernel, KERNELS)
        if self.kernel_params is not None and not isinstance(self.kernel_params, Mapping):
            raise TypeError(f"kernel_params={self.kernel_params!r:.80} must be a dict or None.")
        if not self._has_kernel:
            if self.kernel_params:
                raise ValueError(
                    f"kernel_params={self.kernel_params!r:.80} are for other kernels than "
                    "'linear', which has none."
                )
            return
        bcfw = isinstance(self.solver, str) and self.solver == "bcfw"
        if not (bcfw or isinstance(self.solver, (BlockFrankWolfe, KernelFrankWolfe))):
            raise ValueError(
                f"solver={self.solver!r:.80} needs kernel='linear'; with a kernel use 'bcfw' or a "
                "KernelFrankWolfe."
            )
        if isinstance(self.solver, BlockFrankWolfe):
            _check_shared_options(self.solver)

    def _choose_model(self, training: TrainingData) -> Any:
        if not self._has_kernel:
            return super()._choose_model(training)
        if training.data.transitions is not None:
            raise ValueError(
                "X has attributes of transitions, whose weights need kernel='linear': leave "
                "them out."
            )
        steps = choose_features(
            _one_attribute(training.data), training.codes, len(training.classes),
            min_freq=self.min_freq, all_transitions=self.all_possible_transitions,
        )  # fmt: skip
        kernel, data = self._kernel(), training.data
        support = None if kernel.is_precomputed else data
        return KernelChainModel(
            kernel, support, np.arange(data.n_tokens), steps.transition_from, steps.transition_to,
            len(training.classes), data.offsets if self.boundary_weights else None,
        )  # fmt: skip

    def _start(self, model: Any, training: TrainingData) -> FloatArray:
        if isinstance(model, KernelChainModel):  # the solver does not use a start
            return np.zeros(model.n_parameters)
        return super()._start(model, training)

    def _make_solver(self) -> Any:
        solver = super()._make_solver()
        if not self._has_kernel or isinstance(solver, KernelFrankWolfe):
            return solver
        return KernelFrankWolfe(**{name: getattr(solver, name) for name in SHARED_OPTIONS})

    def _set_fitted(self, attributes: dict[str, Any]) -> None:
        self._forget(OF_WEIGHTS if "dual_coef_" in attributes else OF_KERNELS)
        super()._set_fitted(attributes)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_") or hasattr(self, "dual_coef_")

    def _scorer(self, data: PackedSequences) -> tuple[Any, Any]:
        """Return the score model of the fitted weights."""
        if not hasattr(self, "dual_coef_"):
            return super()._scorer(data)
        return KernelChainModel.of_fitted(vars(self), self._kernel())

    @property
    def state_features_(self) -> Any:
        """Mapping view of the weights of (attribute, label) pairs; needs kernel="linear"."""
        check_is_fitted(self)
        if hasattr(self, "dual_coef_"):
            raise AttributeError("a model with a kernel has no weights of attributes")
        return super().state_features_


def check_kernel_chain(model: Any) -> None:
    """Raise ValueError if the fitted attributes of a restored model do not fit together."""
    check_chain_model(model)
    if not hasattr(model, "dual_coef_"):
        return
    support, dual, vectors = model.support_, model.dual_coef_, model.support_vectors_
    k, n = len(model.classes_), len(support)
    shapes = {
        "dual_coef_": (n, k), "transitions_": (k, k), "start_weights_": (k,), "end_weights_": (k,),
    }  # fmt: skip
    for name, shape in shapes.items():
        array = getattr(model, name)
        if type(array) is not np.ndarray or array.dtype != np.float64 or array.shape != shape:
            raise ValueError(f"{name} is no array of float64 of shape {shape}")
    if type(support) is not np.ndarray or support.dtype != np.int64:
        raise ValueError("support_ is no array of int64")
    if vectors is None:
        fits = not n or (support.min() >= 0 and support.max() < model.n_features_in_)
    else:
        fits = vectors.n_tokens == len(dual) and vectors.n_features == model.n_features_in_
    if not fits:
        raise ValueError("the support tokens do not fit the coefficients")


def _check_shared_options(solver: BlockFrankWolfe) -> None:
    """Raise ValueError if a solver has options that its form for kernels does not have."""
    solver._check_parameters()
    usual = BlockFrankWolfe().get_params()
    for name, value in solver.get_params().items():
        if name not in SHARED_OPTIONS and value != usual[name]:
            raise ValueError(
                f"BlockFrankWolfe({name}={value!r}) needs kernel='linear'; with a kernel use "
                "KernelFrankWolfe, which has options of its own."
            )


def _one_attribute(data: PackedSequences) -> PackedSequences:
    """Return the same sequences with one attribute: weights of transitions are chosen as always."""
    return PackedSequences(dense=np.ones((data.n_tokens, 1)), offsets=data.offsets)
