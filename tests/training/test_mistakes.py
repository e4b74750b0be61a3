"""What data look like that users did not mean so: each message says what to do."""

import io
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import crfkit
from crfkit import (
    CRFClassifier,
    GraphCRF,
    HMMClassifier,
    MEMMClassifier,
    SemiMarkovCRF,
    StructuredPerceptron,
    TemplateFeatures,
)
from crfkit.compat.sklearn_crfsuite import CRF
from crfkit.metrics import flat_accuracy_score

X = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}, {"w": "a"}, {"w": "b"}]]
Y = [["A", "B"], ["B", "A", "B"]]
ROWS = [[("a", "DT"), ("b", "NN")]]
VECTORS = np.random.RandomState(0).normal(size=(3, 4, 2))
PADDED = VECTORS * (np.arange(4)[None] < np.array([[4], [2], [3]]))[..., None]
FULL = [[0, 1, 0, 1]] * 3
LAST = [[0, 1, 0, 1], [0, 1, 0, 0], [0, 1, 1, 0]]  # of PADDED: one label for what is filled up


def fit(X=X, y=Y, **parameters):
    return CRFClassifier(max_iter=20, **parameters).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CRFClassifier(algorithm="lbfgs"), 'solver="lbfgs"'),
        (lambda: CRFClassifier(max_iterations=9), "'max_iterations': the number .* is max_iter"),
        (lambda: CRFClassifier(class_weight="balanced"), "token_weights"),
        (lambda: CRFClassifier(C=1.0), r"c2 = 1 / \(2 \* C\)"),
        (lambda: CRFClassifier(max_ite=9), "perhaps 'max_iter' is meant"),
        (lambda: HMMClassifier(C=1.0), "there are .*smoothing"),
        (lambda: MEMMClassifier(cost={"A": 2}), "softmax_margin"),
        (lambda: StructuredPerceptron(algorithm="pa"), "algorithm is that of the class"),
        (lambda: CRF(max_iter=9), "perhaps 'max_iterations' is meant"),
        (lambda: CRF(class_weight={}), "token_weights"),
        (lambda: SemiMarkovCRF(max_length=10**20).fit(X, Y), "at most 1,000,000"),
        (lambda: SemiMarkovCRF().fit(X, [[0, 1], [-100, 0, 1]]), "position 0: .*UNLABELED"),
        (lambda: CRFClassifier("lbfgs"), r"by name, such as CRFClassifier\(c1=\.\.\.\)"),
        (lambda: fit(cost="zero_one"), "no effect on loss='log'"),
        (lambda: fit(Y, X), "X and y seem to be swapped"),
        (lambda: fit().score(Y, X), "X and y seem to be swapped"),
        (lambda: fit(X[0], Y[0]), r"for one sequence pass \[X\]"),
        (lambda: fit([X], [Y]), "nested one level too deep"),
        (lambda: fit([[b"a", b"b"]], Y[:1]), "Decode bytes"),
        (lambda: fit([[{"w": b"a"}, {}]], Y[:1]), "Decode bytes"),
        (lambda: fit([[{"e": np.ones(2)}, {}]], Y[:1]), "a name for each number"),
        (lambda: fit(iter([]), Y), "only once"),
        (lambda: fit(X, [np.eye(2), np.eye(3)]), "argmax"),
        (lambda: fit(y=[["A", "B"], [-100, "A", "B"]]), "sequence 1, position 0: .*UNLABELED"),
        (lambda: fit(y=[[0, 1], [-100, -1, 1]]), "sequence 1, position 0: .*UNLABELED"),
        (lambda: flat_accuracy_score([[-100, 1]], [[0, 1]]), "position 0 of y_true: .*UNLABELED"),
        (lambda: fit().predict([np.eye(3)]), "fitted on dicts or lists"),
        (lambda: fit(constraints="IOB3"), "unknown tag scheme 'IOB3'"),
        (lambda: crfkit.save("m.crfkit", fit()), "takes the model first"),
        (lambda: crfkit.load(b"\x89crfkit"), "loads"),
        (lambda: crfkit.load(io.BytesIO(pickle.dumps(fit(), protocol=0))), "but a pickle"),
        (lambda: crfkit.save(GridSearchCV(fit(), {}), io.BytesIO()), "best_estimator_"),
    ],
)
def test_errors_say_what_to_write_instead(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda model: fit(ROWS, Y[:1]), "tokens are tuples, such as .*TemplateFeatures"),
        (lambda model: GraphCRF().fit(ROWS, Y[:1]), "tokens are tuples"),
        (lambda model: HMMClassifier().fit([[("a", "A"), ("b", "B")]], Y[:1]), "predicts itself"),
        (lambda model: fit(PADDED, LAST), "cut them off"),
        (lambda model: SemiMarkovCRF().fit(PADDED, LAST), "cut them off"),
        (lambda model: fit(y=[["A", "<PAD>"], ["B", "A", "B"]]), "the label is '<PAD>'"),
        (lambda model: StructuredPerceptron(max_iter=0).fit(X, Y), "nothing was learned"),
        (lambda model: fit(y=[["0", "-100"], ["1", "0", "1"]]), "the label is '-100'"),
        (lambda model: fit(y=[["A", "B "], ["B", "A", "B"]]), "strip blanks"),
        (
            lambda model: model.predict([[{"word": "a"}, {"word": "b"}]]),
            "no token .* such as 'w:a'",
        ),
        (lambda model: model.predict([[{"w": "z"}] * 10]), "order alone"),
        (lambda model: CRFClassifier(max_iter=0).fit(X, Y), "max_iter=0: nothing was learned"),
        (
            lambda model: CRFClassifier(max_iter=0, init="counts").fit(X, Y),
            "max_iter=0: the weights are those of the start",
        ),
        (
            lambda model: CRFClassifier(max_iter=1).fit(VECTORS * [1, 100], FULL),
            r"scale numbers to about 1 first\. max_iter=1 iterations",
        ),
    ],
)
def test_warnings_say_what_looks_wrong(model, act, message):
    model.predict(X[:1])  # from now on one sequence is labeled by the short way
    with pytest.warns((UserWarning, ConvergenceWarning), match=message):
        act(model)


def test_right_data_that_look_unusual_pass_without_a_word(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CRFClassifier().fit([[["a", "DT"], ["b", "NN"]]], Y[:1])  # lists are attributes
        CRFClassifier(features=TemplateFeatures(["word"], columns=["word", "pos"])).fit(ROWS, Y[:1])
        CRFClassifier().fit(X, [[-200, -100], [-100, 50, -200]])
        CRFClassifier().fit(X, [["-100", "B"], ["B", "-100", "B"]])
        CRFClassifier().fit(PADDED, FULL)  # rows of zeros have different labels
        CRFClassifier().fit(X, np.array(["A", "B", "B", "A", "B"]))  # a label for each token
        model.predict([[{"w": "z"}]])  # a rare word
        fit([[("w=a", "x=b"), ("w=b", "x=a")]], Y[:1])  # tuples of attributes that have names
        fit([[{"w=a": 1}, {"w=b": True}]], Y[:1]).predict([[{"w=z": 1, "w=y": True}]])  # rare words
        fit(np.insert(PADDED, 0, 0.0, axis=1), [[0, *y] for y in LAST])  # zeros at the start, too
        flat_accuracy_score([[-100, 1]], [[-100, 1]])
        HMMClassifier().fit([[("a", "DT"), ("b", "NN")]], Y[:1])
    column, expected = np.array(["A", "B", "B", "A", "B"]), fit().transitions_
    for labels in (column, column[:, None]):
        np.testing.assert_array_equal(fit(X, labels).transitions_, expected)


def test_names_of_parameters_are_checked_only_where_the_class_has_all_of_them():
    class Own(CRFClassifier):
        def __init__(self, c1=0.0, **parameters):
            super().__init__(c1=c1, **parameters)

    assert Own(0.5, c2=2.0).c2 == 2.0
    assert clone(CRFClassifier(c2=3.0)).get_params()["c2"] == 3.0


def test_arrays_of_other_libraries_are_read():
    class Tensor:
        """As of PyTorch: an array that gives arrays."""

        def __init__(self, values):
            self.values = np.asarray(values)
            self.ndim, self.shape = self.values.ndim, self.values.shape

        def __array__(self, dtype=None, copy=None):
            return self.values

        def __iter__(self):
            return map(Tensor, self.values)

        def __len__(self):
            return len(self.values)

    plain = CRFClassifier(max_iter=20).fit(VECTORS, FULL)
    for X, y in (
        (Tensor(VECTORS), Tensor(FULL)), (list(Tensor(VECTORS)), list(Tensor(FULL))),
    ):  # fmt: skip
        model = CRFClassifier(max_iter=20).fit(X, y)
        np.testing.assert_array_equal(model.transitions_, plain.transitions_)
        assert model.predict(X) == plain.predict(VECTORS)
