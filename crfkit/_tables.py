"""What tools of scikit-learn that take tables are told when sequences are given to them.

They look at X and y before they call an estimator, so that their errors speak of shapes. Most ask
something of an estimator first, such as its tags: there they are told what to take instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

GUIDE = "'Tools of scikit-learn' in the guide to model selection has an example."
_BAGS = "average the `predict_proba` of models of `sklearn.utils.resample(X, y)`"
_LABELS = "an estimator of crfkit takes any number of labels, and one for each token"
_WEIGHTS = "c1 > 0 and min_freq choose attributes"
_COST = "take decoding=crfkit.inference.MinimumRisk(cost), which weighs errors"
# By the name of a class or function.
INSTEAD = {
    "AdaBoostClassifier": _BAGS,
    "BaggingClassifier": _BAGS,
    "CalibratedClassifierCV": "take crfkit.CalibratedSequenceClassifier",
    "CalibrationDisplay": "take crfkit.inspection.ReliabilityDisplay",
    "ClassifierChain": _LABELS,
    "ColumnTransformer": "templates name columns: "
    "CRFClassifier(features=crfkit.TemplateFeatures([...], by=...))",
    "ConfusionMatrixDisplay": "take crfkit.inspection.EntityConfusionDisplay, or its "
    "`from_predictions` with the labels of all sequences in one list",
    "FeatureUnion": "take crfkit.make_sequence_union",
    "FixedThresholdClassifier": _COST,
    "MultiOutputClassifier": _LABELS,
    "OneVsOneClassifier": _LABELS,
    "OutputCodeClassifier": _LABELS,
    "RFE": _WEIGHTS,
    "RFECV": _WEIGHTS,
    "SelfTrainingClassifier": "fit again to the labels of `predict`, with a sample_weight of 0 for "
    "tokens of low probability",
    "SequentialFeatureSelector": _WEIGHTS,
    "TunedThresholdClassifierCV": _COST,
}
# Of tools that work for some data.
INSTEAD_OF_FAILED = {
    "permutation_importance": "give the values of one column, or key, of the tokens another order "
    "and score again",
    "permutation_test_score": "give groups=[len(labels) for labels in y] and "
    "cv=list(KFold(5).split(X)): labels change places among sequences of one length",
}
_STRATIFIED = {
    "RepeatedStratifiedKFold", "StratifiedGroupKFold", "StratifiedKFold", "StratifiedShuffleSplit"
}  # fmt: skip
# Methods that say who asks; others of a tool may be called where nothing is wrong.
_ASKING = {"_hstack", "_validate_output", "fit", "from_estimator"}
# Functions here that scikit-learn calls to ask; what others call may be part of something else.
_ASKED = {"__array__", "__get__", "__sklearn_tags__", "asked_for_tags", "ndim", "shape"}


def refuse_tables(*, of_rows: bool = False, failed: bool = False) -> None:
    """Raise an error if scikit-learn asks for a tool that cannot work; say what to take instead.

    The tool is found among the callers: those of scikit-learn that lead to this package. The error
    is NotImplementedError, as pipelines keep others of their steps to themselves.

    Parameters
    ----------
    of_rows : bool, default=False
        Whether the rows of a data frame have a label each, as metrics and splitters expect.
    failed : bool, default=False
        Whether it is known not to work with these data.
    """
    known = INSTEAD | INSTEAD_OF_FAILED if failed else INSTEAD
    for frame in _callers(failed):
        name, local = frame.f_code.co_name, frame.f_locals
        if name == "_check":  # of a method of a pipeline, where any error says that it has none
            return
        told = None if of_rows or failed else _of_sequences(name, local)
        if told is None and (tool := _tool(name, local)) in known:
            told = f"{tool} takes a table and one label for each row, no sequences: {known[tool]}"
        if told is not None:
            raise NotImplementedError(f"scikit-learn's {told}. {GUIDE}")


def _callers(of_any: bool) -> Iterator[FrameType]:
    """Yield the frames of scikit-learn that lead to this package, the last one first.

    None, if it does not call a function of `_ASKED`, unless those `of_any` are meant.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _package(frame) == "crfkit":
        if not (of_any or frame.f_code.co_name in _ASKED):
            return
        frame = frame.f_back
    # A step of a pipeline is called through one of ours: where it has failed, the tool is further.
    passed = {"sklearn", "joblib", "numpy"} | ({"crfkit"} if of_any else set())
    while frame is not None and _package(frame) in passed:
        yield frame
        frame = frame.f_back


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _tool(name: str, local: dict[str, Any]) -> str:
    """Return what the tool is called that runs a function."""
    if name == "validate_parameter_constraints":
        return str(local.get("caller_name"))
    if name not in _ASKING:
        return name
    owner = local.get("cls", type(local.get("self")))
    return str(owner.__name__)


def _of_sequences(name: str, local: dict[str, Any]) -> str | None:
    """Return what to say of a tool that compares, predicts or deals out labels of items."""
    return _of_scorer(local.get("self")) or _of_prediction(name, local) or _of_splitter(local)


def _of_scorer(scorer: Any) -> str | None:
    """Return what to say of a metric for single labels."""
    metric = vars(scorer).get("_score_func") if hasattr(scorer, "__dict__") else None
    if not str(getattr(metric, "__module__", "")).startswith("sklearn.metrics"):
        return None
    return (
        f"{metric.__name__} compares single labels, no sequences: take "  # type: ignore[union-attr]
        "scoring=crfkit.metrics.get_scorer('flat_f1_weighted'), 'flat_accuracy', 'entity_f1' or "
        "another one of get_scorer_names(), and for data frames a FrameClassifier"
    )


def _of_prediction(name: str, local: dict[str, Any]) -> str | None:
    """Return what to say of predictions out of fold that cannot be put together."""
    if name != "cross_val_predict":
        return None
    if local.get("method") != "predict":
        return (
            f"cross_val_predict takes one label for each item with method={local.get('method')!r}:"
            " take crfkit.model_selection.cross_val_proba"
        )
    if not hasattr(local.get("X"), "columns"):
        return None
    return (
        "cross_val_predict needs a prediction for each row of a data frame: take a "
        "crfkit.FrameClassifier"
    )


def _of_splitter(local: dict[str, Any]) -> str | None:
    """Return what to say of folds that balance one label for each item."""
    splitter = local.get("cv", getattr(local.get("self"), "cv", None))
    y = local.get("y")
    if type(splitter).__name__ not in _STRATIFIED or y is None:
        return None
    first = next(iter(y), "")
    if isinstance(first, str) or not hasattr(first, "__len__"):
        return None  # a column of labels
    return (
        f"{type(splitter).__name__} balances one label for each item, no sequences: take "
        "crfkit.model_selection.StratifiedSequenceKFold"
    )
