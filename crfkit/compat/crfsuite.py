"""CRFsuite's models as estimators, and estimators as CRFsuite's models."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from crfkit.data.labels import object_array
from crfkit.estimators import CRFClassifier
from crfkit.features import SequenceVectorizer
from crfkit.io.crfsuite_model import (
    CRFsuiteModel,
    ModelFormatError,
    Source,
    Target,
    read_crfsuite_model,
    write_crfsuite_model,
)

_ADVICE = "CRFsuite has only weights of (attribute, label) and of (label, next label)."


def load_crfsuite(source: Source, **params: Any) -> CRFClassifier:
    """Read a CRFsuite model (a file, its bytes, or a binary stream) as a fitted CRFClassifier.

    It gives the labels, marginals and probabilities that CRFsuite gives: labels and attributes keep
    the order of the file, so that equal scores are decided in the same way. Sequences of dicts and
    of lists of strings are accepted. `params` are those of the estimator, such as ``n_jobs``.
    ModelFormatError tells that it is not a CRFsuite model, or damaged.
    """
    return classifier_from_model(read_crfsuite_model(source), CRFClassifier(**params))


def classifier_from_model(model: CRFsuiteModel, classifier: CRFClassifier) -> CRFClassifier:
    """Give a classifier the weights of a model and return it."""
    vectorizer = SequenceVectorizer.from_vocabulary(model.attributes)
    coef = model.state.copy()
    coef.eliminate_zeros()
    size = len(model.labels)
    classifier._set_fitted(
        {
            "classes_": object_array(model.labels),
            "coef_": coef,
            "transitions_": model.transitions.copy(),
            "start_weights_": np.zeros(size),
            "end_weights_": np.zeros(size),
            "transition_coef_": None,
            "vectorizer_": vectorizer,
            "n_features_in_": len(model.attributes),
            "_feature_names": vectorizer.get_feature_names_out(),
            "_transition_names": None,
        }
    )
    return classifier


def save_crfsuite(model: Any, target: Target) -> None:
    """Write a fitted model for CRFsuite, with which it gives the same labels and marginals.

    Weights of 0, and attributes without any other weight, are left out, as CRFsuite does.

    Parameters
    ----------
    model : CRFClassifier, sklearn_crfsuite.CRF of this package, or Pipeline that ends with one
        Fitted on dicts, lists of strings, or packed features with names (a column of numbers is an
        attribute with values). Of a pipeline only the last step is written: who uses the model has
        to make the same attributes.
    target : str, path or binary stream
        Where to write it.

    Raises
    ------
    ValueError, TypeError, NotFittedError
        If the model has what CRFsuite cannot express: boundary weights, attributes of transitions,
        without names, or with names that hold a NUL or occur twice, labels that are no strings; or
        if it is not a linear-chain classifier, or not fitted.
    """
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    classifier = getattr(last, "model_", last)  # of a drop-in, what it wraps
    write_crfsuite_model(model_from_classifier(classifier), target)


def model_from_classifier(classifier: Any) -> CRFsuiteModel:
    """Return the weights of a fitted classifier in CRFsuite's form."""
    check_is_fitted(classifier)
    if not hasattr(classifier, "transitions_"):
        raise TypeError(f"{type(classifier).__name__} is not a linear-chain classifier. {_ADVICE}")
    _check_expressible(classifier)
    used = np.flatnonzero(np.diff(classifier.coef_.indptr))
    return CRFsuiteModel(
        labels=classifier.classes_.tolist(),
        attributes=_names(classifier)[used].tolist(),
        state=sp.csr_array(classifier.coef_[used]),
        transitions=classifier.transitions_,
        has_transition=classifier.transitions_ != 0.0,
    )


def _check_expressible(classifier: Any) -> None:
    if classifier.start_weights_.any() or classifier.end_weights_.any():
        raise ModelFormatError(
            f"the model has weights of first and last labels. {_ADVICE} Fit it with "
            "boundary_weights=False, and give first and last tokens an attribute of their own."
        )
    if classifier.transition_coef_ is not None:
        raise ModelFormatError(
            f"the model has attributes of transitions. {_ADVICE} Fit it on features without steps."
        )


def _names(classifier: Any) -> Any:
    try:
        return classifier.feature_names_in_
    except AttributeError:
        raise ModelFormatError(
            "the model was fitted on features without names, and CRFsuite knows attributes by "
            "their names. Fit it on dicts or strings, or give PackedSequences feature_names."
        ) from None
