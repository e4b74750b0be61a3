"""Known optima on real data, which are no part of the package."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit import CRFClassifier, PackedSequences, TemplateFeatures
from crfkit.metrics import entity_f1_score, flat_accuracy_score
from crfkit.solvers import LBFGS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))


@pytest.fixture(scope="module")
def conll(data_home):
    import _conll

    if not (data_home / "conll2000").is_dir():
        pytest.skip(f"no CoNLL-2000 in {data_home}")
    text = (data_home / "conll2000" / "template.crfpp").read_text()
    sentences = [_conll.read_part(part) for part in ("train", "test")]
    return TemplateFeatures(text, syntax="crfpp"), *sentences


def test_conll2000_reaches_the_optimum_of_crfsuite(conll):
    features, train, test = conll
    packed = features.fit_transform(train)
    y, y_test = ([[row[2] for row in sentence] for sentence in part] for part in (train, test))
    assert (packed.n_tokens, packed.n_features) == (211_727, 338_551)
    assert packed.nbytes / packed.n_tokens <= 150
    crf = CRFClassifier(c2=1.0, n_jobs=2).fit(packed, y)
    assert crf.n_parameters_ == 456_468
    np.testing.assert_allclose(crf.training_log_[0].value, 211_727 * np.log(22), rtol=1e-12)
    np.testing.assert_allclose(crf.objective_, 12_887.2, rtol=1e-4)
    predicted = crf.predict(features.transform(test))
    assert entity_f1_score(y_test, predicted) >= 0.935
    assert flat_accuracy_score(y_test, predicted) >= 0.959


def read_letters(path):
    """Return packed pixels and a bias, labels, and the fold of each word."""
    with np.load(path, allow_pickle=False) as stored:
        pixels = np.unpackbits(stored["pixels"], axis=1)
        lengths, labels, folds = (stored[name] for name in ("lengths", "labels", "folds"))
    features = np.column_stack([np.ones(len(pixels)), pixels])
    packed = PackedSequences.from_flat(sp.csr_array(features), lengths.astype(int))
    ends = np.cumsum(lengths.astype(int))
    return packed, [row.tolist() for row in np.split(labels, ends[:-1])], folds


def test_handwriting_reaches_its_known_optimum(data_home):
    folder = data_home / "ocr_letters"
    if not folder.is_dir():
        pytest.skip(f"no handwritten letters in {data_home}")
    X, y, folds = read_letters(folder / "letters.npz")
    train = np.flatnonzero(folds != 0)
    crf = CRFClassifier(c2=0.5, n_jobs=2, solver=LBFGS(tol=1e-6))
    crf.fit(X[train], [y[i] for i in train])
    np.testing.assert_allclose(crf.objective_, 16_597.998, rtol=1e-5)
    test = np.flatnonzero(folds == 0)
    assert crf.score(X[test], [y[i] for i in test]) == pytest.approx(0.878, abs=0.002)
