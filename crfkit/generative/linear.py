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
    emission = model.emission.linear(tables.emission)
    bound = model.bind(tables)
    coef, features = emission.coef, emission.features
    coef.eliminate_zeros()
    if features is not None and vectorizer is not None:
        features = Pipeline([("vectorizer", vectorizer), ("features", features)])
    size = model.n_labels
    return {
        "coef_": coef,
        "transitions_": bound.pair[0] + emission.constant,
        "start_weights_": bound.start + emission.constant,
        "end_weights_": np.zeros(size) if bound.end is None else bound.end,
        "transition_coef_": None,
        "n_features_in_": coef.shape[0],
        "vectorizer_": vectorizer if features is None else features,
    }
