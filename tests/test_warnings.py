"""Warnings name the line of the user, however deep in the package they arise."""

import ast
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import crfkit
from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    MaxMarginCRF,
    PackedSequences,
    SemiMarkovCRF,
    SequenceVectorizer,
)
from crfkit.compat.sklearn_crfsuite import CRF
from crfkit.metrics import entity_recall_score

X = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}]] * 4
Y = [["A", "B"], ["B"]] * 4


def scaled():
    rows = np.array([[1.0, 1e6, 2.0, 1.0], [2.0, 3e6, 1.0, 2.0], [1.0, 2e6, 2.0, 1.5]])
    return PackedSequences(dense=rows, offsets=np.array([0, 2, 3]))


CASES = {
    "crf": (lambda: CRFClassifier(max_iter=1, solver="lbfgs").fit(X, Y), ConvergenceWarning),
    "margin": (lambda: MaxMarginCRF(max_iter=0).fit(X, Y), ConvergenceWarning),
    "segments": (lambda: SemiMarkovCRF(max_iter=1).fit(X, Y), ConvergenceWarning),
    "paths": (lambda: CRFClassifierCV(c2s=[0.1], cv=2, max_iter=1).fit(X, Y), ConvergenceWarning),
    "search": (
        lambda: GridSearchCV(CRFClassifier(max_iter=1, solver="lbfgs"), {}, cv=2).fit(X, Y),
        ConvergenceWarning,
    ),
    "pipeline": (
        lambda: make_pipeline(SequenceVectorizer(), CRFClassifier(max_iter=1, solver="lbfgs")).fit(
            X, Y
        ),
        ConvergenceWarning,
    ),
    "cost": (lambda: CRFClassifier(loss="hinge", cost={"C": 2.0}).fit(X, Y), UserWarning),
    "limits": (lambda: SemiMarkovCRF(max_length={"a": 3}).fit(X, Y), UserWarning),
    "scale": (lambda: CRFClassifier().fit(scaled(), [["A", "B"], ["B"]]), UserWarning),
    "drop-in": (lambda: CRF(keep_tempfiles=True).fit(X, Y), FutureWarning),
    "metric": (
        lambda: entity_recall_score([["O"]], [["B-X"]], zero_division="warn"),
        UndefinedMetricWarning,
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_warning_names_the_line_of_the_user(name):
    call, category = CASES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    places = {(w.filename, w.lineno) for w in caught if w.category is category}
    first = inspect.getsourcelines(call)[1]
    assert places and {file for file, _ in places} == {__file__}
    assert all(first <= line < first + 6 for _, line in places)


def test_no_number_of_frames_is_written_down():
    for path in Path(crfkit.__file__).parent.rglob("*.py"):
        if path.name != "_warnings.py":
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "stacklevel" in text else ():
                assert not (isinstance(node, ast.keyword) and node.arg == "stacklevel"), path
