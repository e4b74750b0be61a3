"""A kind of weight that is defined here passes for one of the package."""

import numpy as np
import pytest

from crfkit import CRFClassifier, StructuredPerceptron
from crfkit._parallel import ThreadMap
from crfkit.losses import LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.persistence import ModelFileError, dumps, loads
from crfkit.potentials import LinearChainModel
from crfkit.potentials.linear import choose_features
from crfkit.solvers import SGD
from tests.extensions.even_tokens import EvenBlock
from tests.oracles import finite_difference


@pytest.fixture(autouse=True)
def even_blocks(monkeypatch):
    monkeypatch.setitem(LinearChainModel.block_types, EvenBlock.name, EvenBlock)


def make(seed=0, count=40):
    """Sequences of words that say nothing of their labels, which alternate."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, count)
    X = [[{"w": str(rng.integers(3))} for _ in range(t)] for t in lengths]
    y = [["odd" if i % 2 else "even" for i in range(t)] for t in lengths]
    return X, y


X, Y = make()


def test_the_weights_are_learned_and_used():
    crf = CRFClassifier(c2=0.1).fit(X, Y)
    assert crf.even_weights_.shape == (2,)
    assert abs(np.diff(crf.even_weights_)) > 1.0
    assert crf.predict(X) == Y
    assert crf.count_parameters(X, Y).by_kind["even token x label"] == 2
    assert crf.count_parameters(X, Y).total == crf.n_parameters_
    crf.even_weights_ = crf.even_weights_[::-1].copy()
    crf.transitions_ = np.zeros((2, 2))
    assert crf.predict([[{"w": "?"}, {"w": "?"}]])[0][1] == "even"


def test_the_gradient_is_that_of_the_value(rng):
    packed = CRFClassifier(c2=0.1).fit(X, Y).vectorizer_.transform(X)
    codes = np.concatenate([[label == "odd" for label in s] for s in Y]).astype(np.int32)
    model = choose_features(packed, codes, 2)
    with ThreadMap(2) as threads:
        objective = Objective(
            model, model.structure, LogLoss(), ElasticNet(0.0, 0.3), packed, codes,
            np.ones(len(codes)), threads,
        )  # fmt: skip
        w = rng.normal(size=model.n_parameters)
        gradient = objective.value_and_grad(w)[1]
        numeric = finite_difference(lambda v: objective.value_and_grad(v)[0], w, 1e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-8)


@pytest.mark.parametrize("solver", ["lbfgs", "oeg", "sag", "sgd"])
def test_solvers_find_the_same_weights(solver):
    exact = CRFClassifier(c2=1.0, solver="lbfgs").fit(X, Y)
    crf = CRFClassifier(c2=1.0, solver=solver, max_iter=300, random_state=0).fit(X, Y)
    np.testing.assert_allclose(crf.even_weights_, exact.even_weights_, atol=0.02)


def test_models_come_back_from_files_and_are_checked():
    crf = CRFClassifier(c2=0.1).fit(X, Y)
    again = loads(dumps(crf))
    np.testing.assert_array_equal(again.even_weights_, crf.even_weights_)
    assert again.predict(X) == Y
    for damaged in (np.zeros(3), np.zeros(2, np.float32), np.array([np.nan, 0.0]), [0.0, 1.0]):
        crf.even_weights_ = damaged
        with pytest.raises(ModelFileError, match="even_weights_"):
            loads(dumps(crf))


@pytest.mark.filterwarnings("ignore:max_iter=0. the weights are those of the start")
def test_a_warm_start_begins_at_the_weights():
    crf = CRFClassifier(c2=0.1, warm_start=True).fit(X, Y)
    before = dict(zip(crf.classes_, crf.even_weights_, strict=True))
    crf.set_params(max_iter=0).fit(X, [["zero" if k == "even" else k for k in s] for s in Y])
    after = dict(zip(crf.classes_, crf.even_weights_, strict=True))
    assert after == {"odd": before["odd"], "zero": 0.0}


def test_a_model_that_learns_from_batches_goes_on():
    crf = CRFClassifier(c2=0.1, solver=SGD(average=True, random_state=0))
    crf.partial_fit(X[:20], Y[:20], classes=["even", "odd"])
    first = crf.even_weights_
    crf = loads(dumps(crf)).partial_fit(X[20:], Y[20:])
    assert first.any() and (crf.even_weights_ != first).all()
    assert "even_weights_" in next(iter(crf._partial_state["arrays"].values()))


def test_votes_count_the_weights():
    voted = StructuredPerceptron(averaging="vote", max_iter=5).fit(X, Y)
    assert voted.predict(X) == Y
