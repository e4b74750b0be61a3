import sys

import numpy as np
import pytest

from crfkit import CRFClassifier, SequenceVectorizer
from crfkit.calibration import ReliabilityDisplay
from crfkit.metrics import judged_confidence, reliability_curve
from tests.calibration.data import sentences

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
X, Y = sentences(30)


@pytest.fixture(autouse=True)
def no_figures_are_left():
    yield
    plt.close("all")


@pytest.mark.parametrize("of", ["tokens", "spans", "sequences"])
def test_the_diagram_shows_the_curve_and_the_histogram(of):
    from sklearn.pipeline import make_pipeline

    crf = make_pipeline(SequenceVectorizer(), CRFClassifier()).fit(X, Y)
    display = ReliabilityDisplay.from_estimator(crf, X, Y, of=of, n_bins=4, strategy="quantile")
    judged = judged_confidence(crf, X, Y, of=of)
    curve = reliability_curve(*judged[:2], n_bins=4, strategy="quantile")
    drawn = display.line_.get_xydata()
    np.testing.assert_allclose(drawn, np.column_stack([curve.confidence, curve.accuracy]))
    assert display.line_.get_label() == display.name == "CRFClassifier"
    assert display.figure_ is display.ax_.figure is display.histogram_ax_.figure
    np.testing.assert_array_equal(display.histogram, judged.confidence)


def test_diagrams_share_axes():
    _, axes = plt.subplots(2)
    pairs = [0.9, 0.8, 0.3], [True, False, False]
    first = ReliabilityDisplay.from_predictions(*pairs, name="one", ax=axes, color="red")
    assert first.ax_ is axes[0] and first.histogram_ax_ is axes[1]
    assert first.line_.get_color() == "red"
    listed = [np.array([0.9]), np.array([0.8, 0.3])], [np.array([True]), np.array([False] * 2)]
    second = ReliabilityDisplay.from_predictions(*listed, name="two", ax=axes[0])
    assert second.histogram_ax_ is None and second.histogram.tolist() == pairs[0]
    labels = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert labels == ["Perfectly calibrated", "one", "two"]
    alone = ReliabilityDisplay(first.curve, first.histogram).plot(ref_line=False)
    assert alone.ax_.get_legend() is None and len(alone.ax_.lines) == 1


def test_without_matplotlib_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install 'crfkit.plot.'"):
        ReliabilityDisplay.from_predictions([0.5], [True])
