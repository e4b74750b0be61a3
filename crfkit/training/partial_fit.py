"""Learning from one batch of data after another, and from the weights of a last fit.

A solver that learns from batches has ``handles_partial = True`` and a method
``partial(objective, start, state)``, which makes one pass over the data of the objective and
returns the parameters and its state: a dict. `state` is what it returned the last time, or None.
Arrays of shape (P,) in it belong to the weights and follow them when the model grows: a new weight
has 0 in them. All else must be numbers, strings and the like, so that it can be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, ObjectArray
from crfkit.data import PackedSequences
from crfkit.data.labels import LabelStream
from crfkit.features import SequenceVectorizer
from crfkit.labels.base import TokenLabels
from crfkit.potentials.transfer import extend
from crfkit.solvers import SOLVERS
from crfkit.training.data import (
    Attributes,
    Packed,
    Schema,
    TrainingData,
    pack_new,
    pack_training,
    read_training,
)
from crfkit.training.fit import Problem
from crfkit.training.start import carried_over, named_weights


def learn_batch(
    problem: Problem,
    fitted: Mapping[str, Any],
    schema: Schema | None,
    batch: tuple[Any, Any, Any],
    classes: Any,
) -> dict[str, Any]:
    """Make one pass over X, y and sample weights; return the fitted attributes after it.

    `fitted` are those so far, none before the first batch, and `schema` the attributes so far.
    `classes` are all labels that will ever occur, needed for the first batch.
    Raises ValueError or TypeError if the solver does not learn from batches, or data do not fit.
    """
    if not problem.solver.handles_partial:
        names = sorted(name for name, solver in SOLVERS.items() if solver.handles_partial)
        raise ValueError(
            f"partial_fit needs a solver that learns from batches, which "
            f"{type(problem.solver).__name__} does not: set solver to one of {names}."
        )
    training = read_training(
        *batch,
        pack=partial(pack_training, features=problem.transformer)
        if schema is None
        else partial(_pack, fitted=fitted, schema=schema),
        read=partial(TokenLabels().read, classes=all_classes(classes, fitted)),
    )
    model = problem.model(training)
    start, state = np.zeros(model.n_parameters), None
    if fitted:
        model, start, state = _continue(fitted, model, training)
    seen = problem.seen(model, training)
    with ThreadMap(problem.n_jobs) as threads:
        objective = problem.objective(seen.model, seen.training, threads)
        parameters, state = problem.solver.partial(
            objective, seen.inward(start), state and _each(seen.inward, state, model)
        )
    parameters, state = seen.outward(parameters), _each(seen.outward, state or {}, model)
    return problem.attributes(model, training, parameters) | {
        "n_parameters_": model.n_parameters,
        "n_iter_": fitted.get("n_iter_", 0) + 1,
        "_partial_state": _store(state, model),
    }


def all_classes(classes: Any, fitted: Mapping[str, Any]) -> ObjectArray:
    """Return the labels of the model: those of the first call, or of the last fit."""
    known: ObjectArray | None = fitted.get("classes_")
    if classes is None:
        if known is None:
            raise ValueError(
                "the first call of partial_fit needs classes: all labels that will occur. In "
                "learning_curve: params={'classes': labels}."
            )
        return known
    given = _distinct(classes)
    if known is None:
        return given
    if set(given) != set(known):
        raise ValueError(
            f"classes={list(given)!r:.80} are not those of the model, "
            f"{list(known)!r:.80}: leave classes out, or fit a new model."
        )
    return known


def _pack(X: Any, y: Any, *, fitted: Mapping[str, Any], schema: Schema) -> Packed:
    """Pack further training features; new attributes of tokens get the next columns, if learned."""
    vectorizer = fitted["vectorizer_"]
    if isinstance(X, PackedSequences) or not isinstance(vectorizer, SequenceVectorizer):
        data = pack_new(X, vectorizer, fitted["n_features_in_"])
        schema.check(given := Schema.of(data))
        schema.warn_of_missing_names(given, "the model")
        return _renamed(data, schema), vectorizer
    data, vectorizer = vectorizer.extend(X)
    if vectorizer is not fitted["vectorizer_"]:  # it begins with the names of the model
        schema = schema._replace(tokens=Attributes(data.n_features, None))
    schema.check(Schema.of(data))
    return data, vectorizer


def _renamed(data: PackedSequences, schema: Schema) -> PackedSequences:
    """Return data with the names that the model has, or has not, of attributes of tokens."""
    names = schema.tokens.names
    same = (names is None) == (data.names is None)
    return data if same else data._from_arrays(**data.__dict__ | {"names": names})


def _continue(
    fitted: Mapping[str, Any], model: Any, training: TrainingData
) -> tuple[Any, FloatArray, dict[str, Any] | None]:
    """Return the model with all weights it had before, their values, and the solver's state."""
    weights, stored = named_weights(fitted), fitted.get("_partial_state", {})
    arrays = {
        name: weights._replace(fitted=parts) for name, parts in stored.get("arrays", {}).items()
    }
    model = extend(model, [named.fitted for named in (weights, *arrays.values())])
    state = stored.get("others", {}) | {
        name: carried_over(named, model, training) for name, named in arrays.items()
    }
    return model, carried_over(weights, model, training), state or None


def _each(
    change: Callable[[FloatArray], FloatArray], state: dict[str, Any], model: Any
) -> dict[str, Any]:
    """Return the state of a solver with something done to its arrays of parameters."""
    shape = (model.n_parameters,)
    return {
        name: change(value) if isinstance(value, np.ndarray) and value.shape == shape else value
        for name, value in state.items()
    }


def _store(state: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return the state of a solver with its arrays as fitted weights, which can be saved."""
    shape = (model.n_parameters,)
    arrays, others = {}, {}
    for name, value in state.items():
        if isinstance(value, np.ndarray) and value.shape == shape:
            arrays[name] = model.fitted(value)
        else:
            others[name] = value
    return {"arrays": arrays, "others": others}


def _distinct(classes: Any) -> ObjectArray:
    """Return the labels that are listed, sorted where they can be compared."""
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__iter__"):
        raise TypeError(f"classes={classes!r:.60} must be a list of labels.")
    try:
        return LabelStream([list(classes)]).classes()
    except (TypeError, ValueError) as error:
        raise type(error)(f"in classes: {error}") from error
