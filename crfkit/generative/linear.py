"""A hidden Markov model as the conditional random field that says the same of labels.

``log P(x, y)`` is a sum of logarithms of probabilities, each of which is a weight of a linear chain
where the emissions are linear in the attributes of tokens (Sutton and McCallum 2012, section 2.2)::

    coef[a, k] = log P(a | k)    transitions[i, j] = log P(j | i)

and what is the same for all tokens of a label is added to the weights of the transitions that lead
to it, and of the start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from crfkit.generative.base import HiddenTables
from crfkit.generative.model import HiddenMarkovModel


def linear_weights(
    model: HiddenMarkovModel, tables: HiddenTables, vectorizer: Any
) -> dict[str, Any]:
    """Return the weights of a linear chain as fitted attributes, with what makes its attributes.

    ValueError where the model is no linear chain.
    """
    if model.order > 1:
        raise ValueError(
            f"a model of order {model.order} is no linear chain of labels, whose transitions know "
            "one label: fit one with order=1."
        )
    weights, features = weight_tables(model, tables)
    if features is not None and vectorizer is not None:
        features = Pipeline([("vectorizer", vectorizer), ("features", features)])
    return weights | {
        "transition_coef_": None,
        "n_features_in_": weights["coef_"].shape[0],
        "vectorizer_": vectorizer if features is None else features,
    }


def weight_tables(model: HiddenMarkovModel, tables: HiddenTables) -> tuple[dict[str, Any], Any]:
    """Return the weights that ``log P(x, y)`` is a sum of, but for what all labelings share.

    Those of transitions are ``transitions_``, (K, K); in order 2
    ``second_order_transitions_``, (K + 1, K K): a row for each label before the two of a
    transition, the last one for second tokens. Beside the weights, what makes the attributes that
    ``coef_`` is of; None where they are those of the data. ValueError where emissions are no sums.
    """
    emission, bound = model.emission.linear(tables.emission), model.bind(tables)
    emission.coef.eliminate_zeros()
    size, pair = model.n_labels, bound.pair + emission.constant
    if model.order > 1:
        steps = {"second_order_transitions_": pair.reshape(size + 1, size**2)}
    else:
        steps = {"transitions_": pair[0]}
    weights = {
        "coef_": emission.coef,
        "start_weights_": bound.start + emission.constant,
        "end_weights_": np.zeros(size) if bound.end is None else bound.end,
    }
    return weights | steps, emission.features
