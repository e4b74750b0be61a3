"""An estimator takes what comes from outside of the package."""

import numpy as np
import pytest

from crfkit import CRFClassifier, SemiMarkovCRF
from crfkit.persistence import dumps, loads, register
from tests.extensions.cautious import CautiousDecoder
from tests.extensions.cross_entropy import GeneralizedCrossEntropy
from tests.extensions.gradient_descent import GradientDescent

X = [[["the"], ["dog"], ["runs"]], [["a"], ["cat"]], [["the"], ["cat"], ["runs"]]] * 2
Y = [["D", "N", "V"], ["D", "N"], ["D", "N", "V"]] * 2
PARTS = (CautiousDecoder, GeneralizedCrossEntropy, GradientDescent)


@pytest.mark.parametrize("estimator", [CRFClassifier, SemiMarkovCRF])
def test_a_loss_a_solver_and_a_decoder_work_together(estimator):
    crf = estimator(loss=GeneralizedCrossEntropy(0.3), solver=GradientDescent(), c2=0.01)
    if estimator is CRFClassifier:
        crf.set_params(decoding=CautiousDecoder(0.9))
    assert crf.fit(X, Y).predict(X) == Y
    assert crf.n_iter_ > 1


def test_the_solver_reaches_the_optimum_of_another():
    models = [
        CRFClassifier(solver=solver, c2=0.1).fit(X, Y)
        for solver in (GradientDescent(tol=0.0, gtol=1e-8), "lbfgs")
    ]
    np.testing.assert_allclose(models[0].objective_, models[1].objective_, rtol=1e-5)


def test_what_is_registered_is_saved_with_the_model():
    for cls in PARTS:
        register(name=f"example.{cls.__name__}")(cls)
    crf = CRFClassifier(
        loss=GeneralizedCrossEntropy(), solver=GradientDescent(), decoding=CautiousDecoder()
    )
    again = loads(dumps(crf.fit(X, Y)))
    assert again.predict(X) == crf.predict(X)
    assert type(again.loss) is GeneralizedCrossEntropy
