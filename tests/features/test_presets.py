"""Lists of templates for kinds of tasks."""

import pytest

from crfkit import CRFClassifier
from crfkit.features import TemplateFeatures, preset
from crfkit.features.templates.presets import PRESETS

X = [[("Ana", "N"), ("lives", "V"), ("in", "P"), ("Lima", "N"), (".", "F")]] * 2
Y = [["PER", "O", "O", "LOC", "O"]] * 2


@pytest.mark.parametrize("kind", PRESETS)
def test_columns_are_told_by_number_or_name(kind):
    numbered = TemplateFeatures(preset(kind, 0, [1])).fit_transform(X)
    named = TemplateFeatures(preset(kind, "w", ["a tag"]), columns=["w", "a tag"]).fit_transform(X)
    texts = [
        name.replace("col(0)", "w").replace("col(1)", "col('a tag')")
        for name in numbered.feature_names
    ]
    assert texts == named.feature_names.tolist()
    assert numbered.indices.tolist() == named.indices.tolist()


@pytest.mark.parametrize("kind", PRESETS)
def test_templates_are_different_and_those_of_words_need_no_tags(kind):
    templates = preset(kind, "w", ["pos", "chunk"])
    assert len(set(templates)) == len(templates)
    alone = preset(kind, "w")
    assert templates[: len(alone)] == alone
    words = [[word for word, _ in row] for row in X]
    crf = CRFClassifier(features=TemplateFeatures(alone, columns=["w"])).fit(words, Y)
    assert crf.predict(words) == Y


def test_features_of_a_preset_are_those_of_its_list():
    made = TemplateFeatures.from_preset("names", "w", ["pos"], more="is_digit(w)", min_freq=2)
    listed = [*preset("names", "w", ["pos"]), "is_digit(w)"]
    plain = TemplateFeatures(listed, columns=["w", "pos"], min_freq=2)
    assert made.get_params() == plain.get_params()
    numbered = TemplateFeatures.from_preset("fields", 0, [1])
    assert numbered.columns is None and numbered.fit(X).n_features_in_ > 50
    dicts = [[{"word": word, "pos": pos} for word, pos in row] for row in X]
    by_key = TemplateFeatures.from_preset("words", tags=["pos"]).fit_transform(dicts)
    assert by_key == TemplateFeatures.from_preset("words", tags=["pos"]).fit_transform(X)


def test_what_is_no_preset_is_refused():
    with pytest.raises(ValueError, match="kind='nouns' is not known; choose one of"):
        preset("nouns")
