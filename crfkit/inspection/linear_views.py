"""Fitted models as sums of weights: what explanations are read from."""

from __future__ import annotations

from typing import Any, NamedTuple

import scipy.sparse as sp

from crfkit.data import PackedSequences
from crfkit.data.labels import object_array
from crfkit.estimators._labelings import check_scored
from crfkit.generative.linear import weight_tables
from crfkit.generative.model import HiddenProbabilities
from crfkit.inspection.scored import Scored
from crfkit.potentials.blocks import NAMES_OF, TOKENS


class LinearView(NamedTuple):
    """A model, one sequence in its form, and the weights that scores of labelings are sums of."""

    model: Any
    data: PackedSequences
    scored: Scored
    # Whether scores are these sums, up to what is the same for all labelings.
    is_whole: bool


def linear_view(model: Any, X: Any) -> LinearView:
    """Return a fitted model of one sequence as sums of weights.

    A model with a kernel is linear in its values with the support tokens. A hidden Markov model of
    order 1 is a conditional random field; in order 2 weights of transitions know two labels.
    ValueError where scores are no such sums, or X is not one sequence with tokens.
    """
    check_scored(model, "explain")
    fitted = vars(model)
    second_order = fitted.get("second_order_probabilities_") is not None
    if "start_probabilities_" in fitted and not second_order:
        model = model.to_crf()  # which says why, where there is none
    data = model._pack(X)
    if len(data) != 1 or not data.n_tokens:
        raise ValueError(
            f"x must be one sequence with tokens in it, but it was read as {len(data)} of "
            f"{data.n_tokens} tokens."
        )
    if second_order:
        return LinearView(model, data, _of_second_order(model, data), True)
    if "dual_coef_" in fitted:
        return LinearView(model, data, _of_kernel(model, data), True)
    scored = Scored(vars(model), model.classes_.tolist(), data)
    return LinearView(model, data, scored, model._model_for(data).model.is_linear)


def _of_second_order(model: Any, data: PackedSequences) -> Scored:
    """Return the weights of a hidden Markov model of order 2."""
    weights, features = weight_tables(*HiddenProbabilities().read(model))
    if features is None:
        weights[NAMES_OF[TOKENS]] = vars(model).get(NAMES_OF[TOKENS])
    else:
        data = features.transform(data)
    return Scored(weights, model.classes_.tolist(), data)


def _of_kernel(model: Any, data: PackedSequences) -> Scored:
    """Return the weights of support tokens, whose kernel values are the attributes of tokens."""
    fitted = vars(model)
    values = model._model_for(data).model.values(data, 0, data.n_tokens)
    names = object_array(fitted["support_"].tolist())
    weights = fitted | {"dual_coef_": sp.csr_array(fitted["dual_coef_"]), NAMES_OF[TOKENS]: names}
    return Scored(
        weights, model.classes_.tolist(), PackedSequences(dense=values, offsets=data.offsets)
    )
