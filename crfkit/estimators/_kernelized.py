"""Chains whose scores of labels are sums of kernel values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crfkit._params import check_option
from crfkit._types import FloatArray, ObjectArray
from crfkit.data import PackedSequences
from crfkit.data.topology import check_no_topology
from crfkit.persistence import check_chain_model
from crfkit.potentials.kernelized import Kernel, KernelChainModel, KernelWeights
from crfkit.potentials.linear import choose_features

KERNELS = ("linear", "rbf", "poly", "precomputed")


def has_kernel(kernel: Any) -> bool:
    """Whether a kernel takes the place of the weights of attributes."""
    return not (isinstance(kernel, str) and kernel == "linear")


@dataclass(frozen=True)
class KernelledTokens:
    """Weights of a model whose scores of labels are sums of values of a kernel of two tokens."""

    kernel: Kernel
    fitted_names: ClassVar[tuple[str, ...]] = (
        "support_", "dual_coef_", "support_vectors_", "transitions_", "start_weights_",
        "end_weights_", "kernel", "kernel_params",
    )  # fmt: skip

    @classmethod
    def of(cls, estimator: Any) -> KernelledTokens:
        """Return that of an estimator with the parameters `kernel` and `kernel_params`."""
        return cls(Kernel(estimator.kernel, dict(estimator.kernel_params or {})))

    def choose(self, features: Any, training: Any) -> KernelChainModel:
        """Return the model with the weights that are to be fitted."""
        data = training.data
        if data.transitions is not None:
            raise ValueError(
                "X has attributes of transitions, whose weights need kernel='linear': leave "
                "them out."
            )
        check_no_topology(data.topology, "a model of kernels")
        # With one attribute, since weights of transitions are chosen as always.
        one = PackedSequences(dense=np.ones((data.n_tokens, 1)), offsets=data.offsets)
        chosen = choose_features(
            one, training.codes, len(training.classes), known=training.known,
            min_freq=features.min_freq, all_transitions=features.all_possible_transitions,
        )  # fmt: skip
        return KernelChainModel(
            self.kernel, None if self.kernel.is_precomputed else data, np.arange(data.n_tokens),
            chosen.transition_from, chosen.transition_to, len(training.classes),
            data.offsets if features.boundary_weights else None,
        )  # fmt: skip

    def attributes(
        self, model: Any, parameters: FloatArray, classes: ObjectArray, coding: Any
    ) -> dict[str, Any]:
        """Return parameters as fitted attributes."""
        fitted: dict[str, Any] = model.fitted(parameters)
        return {"classes_": classes} | fitted

    def check_new(self, fitted: object, data: PackedSequences) -> None:
        """Do nothing: kernels read all data of the attributes of the fit."""

    def model(
        self, fitted: Any, sizes: Mapping[str, int]
    ) -> tuple[KernelChainModel, KernelWeights]:
        """Return the model of fitted weights, and the weights in their places."""
        return KernelChainModel.of_fitted(vars(fitted), self.kernel)


def check_kernel(kernel: Any, kernel_params: Any) -> None:
    """Raise ValueError or TypeError if these parameters do not go together."""
    if not callable(kernel):
        check_option("kernel", kernel, KERNELS)
    if kernel_params is not None and not isinstance(kernel_params, Mapping):
        raise TypeError(f"kernel_params={kernel_params!r:.80} must be a dict or None.")
    if kernel_params and not has_kernel(kernel):
        raise ValueError(
            f"kernel_params={kernel_params!r:.80} are for other kernels than 'linear', which has "
            "none."
        )


def check_kernel_chain(model: Any) -> None:
    """Raise ValueError if the fitted attributes of a restored model do not fit together."""
    check_chain_model(model)
    if "dual_coef_" not in vars(model):
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
