"""Whatever ends a fit, and wherever, leaves an object as it was: fitted to the old data, or not."""

import copy
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from crfkit import (
    CRFClassifier,
    MaxMarginCRF,
    SemiMarkovCRF,
    SequenceVectorizer,
    StructuredPerceptron,
)
from crfkit.features import (
    SegmentFeatures,
    SequenceUnion,
    TemplateFeatures,
    TransitionFeatures,
    TreeFeatures,
    WindowFeatures,
)

LINES = 40  # at so many lines of a fit, chosen at random, it is broken off
OLD = [[("the", "DT"), ("old", "JJ"), ("dog", "NN")], [("dogs", "NN")]]
NEW = [[("a", "DT"), ("cat", "NN"), ("saw", "VB")], [("the", "DT"), ("rat", "NN")]]
LABELS = [["B-N", "I-N", "O"], ["B-N"]], [["O", "B-N", "I-N"], ["B-N", "O"]]


def dicts(X, parents=False):
    return [
        [{"w": w, "t": t} | ({"parent": i - 1} if parents else {}) for i, (w, t) in enumerate(s)]
        for s in X
    ]


TRANSFORMERS = [
    (SequenceVectorizer(), dicts),
    (TemplateFeatures(["w", "w[-1]|t", "transition(t)"], columns=["w", "t"]), list),
    (WindowFeatures(), list),
    (SegmentFeatures(["seg.text", "seg.length|seg.shape"], max_length=2), list),
    (SequenceUnion([("a", SequenceVectorizer()), ("b", SequenceVectorizer())]), dicts),
    (TransitionFeatures(SequenceVectorizer()), dicts),
    (TreeFeatures(SequenceVectorizer()), lambda X: dicts(X, parents=True)),
]


class _Stop:
    """Raises an error at one line of the package, and counts the lines up to there."""

    def __init__(self, at, error):
        self.at, self.error, self.count = at, error, 0

    def __call__(self, frame, event, argument):
        if "crfkit" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        if event == "line":
            self.count += 1
            if self.count == self.at:
                raise self.error
        return self


def _broken_off(fit, at=-1, error=None):
    """Fit up to some line; return how many lines there were, and whether the fit was broken off."""
    stop, before = _Stop(at, error), sys.gettrace()
    sys.settrace(stop)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit()
    except (KeyboardInterrupt, MemoryError, ValueError) as raised:
        causes = [raised]
        while causes[-1].__cause__ is not None:  # what cannot be parsed is told as such
            causes.append(causes[-1].__cause__)
        assert causes[-1] is error
        return stop.count, True
    finally:
        sys.settrace(before)
    return stop.count, False


def _check(fitted, new, fit, answer, error):
    """Break off fits of objects at many lines, and compare what they answer then.

    Between two fits an estimator may be one that was never fitted.
    """
    n_lines, _ = _broken_off(lambda: fit(copy.deepcopy(new)))
    random = np.random.default_rng(0)
    for start in (fitted, new):
        whole = copy.deepcopy(start)
        fit(whole)
        allowed = [answer(start), answer(whole), answer(new)]
        for at in random.integers(1, n_lines, LINES // 2):
            broken = copy.deepcopy(start)
            _broken_off(lambda: fit(broken), int(at), error)  # noqa: B023
            assert answer(broken) in allowed


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()], ids=["Ctrl-C", "memory"])
@pytest.mark.parametrize(("new", "form"), TRANSFORMERS, ids=lambda x: type(x).__name__)
def test_a_transformer_is_fitted_wholly_or_not_at_all(new, form, error):
    def answer(transformer):
        try:
            packed = transformer.transform(form(OLD + NEW))
        except NotFittedError:
            return None
        runs = None if packed.segments is None else packed.segments.rows
        parts = (packed, packed.transitions, runs)
        return [None if part is None else part.to_dicts() for part in parts]

    fitted = copy.deepcopy(new).fit(form(OLD))
    _check(fitted, new, lambda transformer: transformer.fit(form(NEW)), answer, error)


@pytest.mark.parametrize(
    "new",
    [cls(max_iter=2) for cls in (CRFClassifier, MaxMarginCRF, StructuredPerceptron, SemiMarkovCRF)],
    ids=lambda x: type(x).__name__,
)
def test_an_estimator_is_fitted_wholly_or_not_at_all(new):
    def answer(estimator):
        try:
            found = [estimator.predict(dicts([s])) for s in OLD + NEW]
        except NotFittedError:
            return None
        return estimator.classes_.tolist(), found, estimator.n_parameters_

    fitted = copy.deepcopy(new).set_params(max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(dicts(OLD), LABELS[0])
        _check(fitted, new, lambda it: it.fit(dicts(NEW), LABELS[1]), answer, MemoryError())


def test_a_bad_number_leaves_the_templates_of_the_fit_before():
    templates = TemplateFeatures(["w"], columns=["w", "n"], numeric=["n"])
    templates.fit([[("q", 2.0)]])
    with pytest.raises(TypeError, match="position 1, column 'n'"):
        templates.fit([[("r", 2.0), ("s", "two")]])
    assert templates.transform([[("q", 2.0)]]).to_dicts() == [[{"w=q": 1.0, "n": 2.0}]]
