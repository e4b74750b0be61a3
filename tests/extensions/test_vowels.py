"""A function of the user in templates passes for one of the package."""

import pickle

import pytest

from crfkit import CRFClassifier, TemplateFeatures
from crfkit.persistence import ModelFileError, dumps, loads
from tests.extensions.vowels import vowels

WORDS = [[("Sleeping",), ("großer",), ("",)], [("rhythm",), ("Sleeping",)]]
LABELS = [["A", "B", "C"], ["C", "A"]]


@pytest.fixture
def features():
    templates = ["vowels(w)", "vowels(w[-1])|vowels(w)"]
    return TemplateFeatures(templates, columns=["w"], functions={"vowels": vowels}).fit(WORDS)


def test_it_names_attributes(features):
    names = set(features.get_feature_names_out())
    assert {"vowels(w)=ei", "vowels(w)=oe", "vowels(w[-1])|vowels(w)=ei|oe"} <= names


def test_it_gives_the_same_for_any_string_also_after_pickling():
    again = pickle.loads(pickle.dumps(vowels))
    for text in ("", "AEIOU", "naïve", "猫", "\ud800", "a" * 1000):
        assert vowels(text) == again(text)


def test_a_model_with_it_is_saved_and_loaded_by_who_trusts_it(features):
    data = dumps(features)
    with pytest.raises((ModelFileError, ValueError), match="tests.extensions.vowels:vowels"):
        loads(data)
    again = loads(data, allow=["tests.extensions.vowels:vowels"])
    assert list(again.get_feature_names_out()) == list(features.get_feature_names_out())
    crf = CRFClassifier().fit(features.transform(WORDS), LABELS)
    assert crf.predict(again.transform(WORDS)) == LABELS
