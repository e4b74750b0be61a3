"""eli5 explains the weights of the drop-in, whichever is imported first."""

import importlib
import sys

import numpy as np
import pytest

from crfkit.compat import _eli5
from crfkit.compat.sklearn_crfsuite import CRF

X = [[{"w": "the"}, {"w": "dog"}], [{"w": "a"}, {"w": "dog"}, {"w": "barks"}]] * 2
Y = [["O", "B-N"], ["O", "B-N", "I-V"]] * 2
FAKE = """
__path__ = []
class explain_weights:
    register = staticmethod(lambda kind, function: known.append(kind))
known = []
"""


def test_classes_are_registered_when_eli5_is_imported_later_and_at_once_when_it_has_been(
    tmp_path, monkeypatch
):
    (tmp_path / "eli5.py").write_text(FAKE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "eli5", sys)  # so that it is taken out again
    monkeypatch.delitem(sys.modules, "eli5")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(_eli5, "_CLASSES", [])
    _eli5.register_with_eli5(CRF)
    _eli5.register_with_eli5(dict)
    fake = importlib.import_module("eli5")
    assert fake.known == [CRF, dict]
    assert not any(isinstance(finder, _eli5._Finder) for finder in sys.meta_path)
    assert not isinstance(fake.__spec__.loader, _eli5._Loader)
    _eli5.register_with_eli5(list)
    assert fake.known[-1] is list


def test_weights_are_those_of_the_model():
    eli5 = pytest.importorskip("eli5")
    crf = CRF().fit(X, Y)
    found = eli5.explain_weights(crf, top=2)
    assert [t.target for t in found.targets] == ["O", "B-N", "I-V"]
    for target in found.targets:
        weights = [*target.feature_weights.pos, *target.feature_weights.neg]
        assert 0 < len(weights) <= 2
        for one in weights:
            assert one.weight == crf.state_features_[one.feature, target.target]
    table = found.transition_features
    for i, a in enumerate(table.class_names):
        for j, b in enumerate(table.class_names):
            assert table.coef[i, j] == crf.transition_features_.get((a, b), 0.0)
    assert "w:the" in eli5.format_as_text(found) and "dog" in eli5.format_as_html(found)
    frames = eli5.format_as_dataframes(found)
    assert set(frames) == {"targets", "transition_features"}
    some = eli5.explain_weights(crf, targets=["B-N"], feature_re="dog")
    (only,) = some.targets
    assert [w.feature for w in only.feature_weights.pos] == ["w:dog"]
    assert np.shape(some.transition_features.coef) == (1, 1)
