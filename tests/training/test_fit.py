"""Data -> problem -> fit -> fitted model, without an estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, SemiMarkovCRF, SequenceVectorizer
from crfkit._parallel import ThreadMap
from crfkit.inference import ViterbiDecoder
from crfkit.inference.base import FittedModel
from crfkit.training.fit import Fit

X = [[["a"], ["b"]], [["b"]], [["a"], ["a"], ["b"]]]
Y = [["A", "B"], ["B"], ["A", "A", "B"]]


def problem(**parameters):
    return CRFClassifier(c2=0.1, solver="lbfgs", **parameters)._problem()


def test_a_fit_is_that_of_the_estimator():
    fit = Fit(problem(), problem().read(X, Y))
    start = np.zeros(fit.model.n_parameters)
    result = fit.run(start)
    crf = CRFClassifier(c2=0.1, solver="lbfgs").fit(X, Y)
    found = fit.attributes(result.parameters) | fit.results(start, result)
    np.testing.assert_array_equal(found["coef_"].toarray(), crf.coef_.toarray())
    assert found["objective_"] == crf.objective_ and found["n_iter_"] == crf.n_iter_
    assert all(name in vars(crf) for name in found)


def test_the_parameters_of_a_fit_predict_without_an_estimator():
    fit = Fit(problem(), problem().read(X, Y))
    result = fit.run(np.zeros(fit.model.n_parameters))
    with ThreadMap(1) as threads:
        model = FittedModel(fit.model, fit.model.bind(result.parameters))
        codes = np.concatenate(model.ask(fit.training.data, ViterbiDecoder().decode, threads))
    np.testing.assert_array_equal(codes, fit.training.codes)


def test_a_callback_is_told_of_each_iteration_and_may_end_the_fit():
    fit, seen = Fit(problem(), problem().read(X, Y)), []

    def callback(record, parameters):
        seen.append((record.iteration, parameters.copy()))
        return record.iteration == 2

    result = fit.run(np.zeros(fit.model.n_parameters), callback)
    assert [number for number, _ in seen] == [0, 1, 2]
    np.testing.assert_array_equal(seen[-1][1], result.parameters)
    with pytest.warns(ConvergenceWarning, match="stopped by a callback"):
        fit.report(result)


@pytest.mark.parametrize(("scale", "c2"), [(1.0, 0.1), (4.0, 0.4)])
def test_the_scale_multiplies_the_loss(scale, c2):
    from dataclasses import replace

    from crfkit.objective.penalties import ElasticNet

    scaled = replace(problem(), scale=scale, penalty=ElasticNet(0.0, c2))
    fit = Fit(scaled, scaled.read(X, Y))
    result = fit.run(np.zeros(fit.model.n_parameters))
    reference = CRFClassifier(c2=0.1, solver="lbfgs").fit(X, Y)
    np.testing.assert_allclose(result.value, scale * reference.objective_, rtol=1e-5)


@pytest.mark.parametrize(
    "model", [CRFClassifier(), CRFClassifier(solver="sgd"), SemiMarkovCRF(scheme="runs")], ids=repr
)
def test_tokens_in_place_of_labels_are_told_by_their_number(model):
    """Tables of their pairs would take 75 GiB."""
    y = [[f"word {n}" for n in range(s, s + 100)] for s in range(0, 100_000, 100)]
    X = [[["x"]] * 100] * 1000
    with pytest.raises(ValueError, match="y has 100,000 different labels.*in place of labels"):
        model.fit(X, y)
    if model.solver == "sgd":
        with pytest.raises(ValueError, match="y has 100,000 different labels"):
            model.partial_fit(X, y, classes=[label for labels in y for label in labels])


@pytest.mark.parametrize("model", [CRFClassifier(), CRFClassifier(solver="oeg", c2=0.1)], ids=repr)
def test_a_sequence_of_weight_0_is_as_good_as_not_there(model):
    data = SequenceVectorizer().fit_transform([*X, [["a"], ["b"]]])
    whole = clone(model).fit(data, [*Y, ["NEW", "B"]], sample_weight=[1.0] * len(X) + [0.0])
    alone = clone(model).fit(data[: len(X)], Y)
    assert whole.classes_.tolist() == alone.classes_.tolist()
    assert whole.n_parameters_ == alone.n_parameters_
    np.testing.assert_array_equal(whole.coef_.toarray(), alone.coef_.toarray())


def test_a_token_of_weight_0_decides_nothing():
    """Neither its label nor a transition to or from it is known."""
    model = CRFClassifier(min_freq=1)
    X = [[["a"], ["b"], ["c"]], [["a"], ["c"], ["c"]]]
    weight = [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    fits = [
        model.fit(X, [["A", label, "C"], ["A", "C", "C"]], sample_weight=weight).n_parameters_
        for label in ("A", "B", "C")
    ]
    assert model.classes_.tolist() == ["A", "C"]
    assert dict(model.state_features_).keys() == {("a", "A"), ("c", "C")}
    assert dict(model.transition_features_).keys() == {("A", "C"), ("C", "C")}
    assert len(set(fits)) == 1


def test_segments_with_a_token_of_weight_0_have_no_weights_of_their_own():
    X = [[["a"], ["b"], ["c"], ["d"]]] * 2
    y = [[(0, 2, "A"), (2, 4, "C")], [(0, 1, "A"), (1, 4, "C")]]
    model = SemiMarkovCRF(length="indicator").fit(X, y, sample_weight=[[1, 1, 0, 1], [1, 1, 1, 1]])
    assert ("c", "C") in dict(model.state_features_)
    weights = [[1, 1, 0, 1], [0, 0, 0, 0]]
    model = SemiMarkovCRF(length="indicator").fit(X, y, sample_weight=weights)
    assert dict(model.state_features_).keys() == {("a", "A"), ("b", "A"), ("d", "C")}
    assert not model.transitions_.any()
