import gzip
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from crfkit import SequenceVectorizer
from crfkit.features import WindowFeatures
from tests.sampling import examples


def word2features(sent, i):
    """The features of the tutorial on CoNLL-2002, written anew."""

    def neighbor(j):
        word, tag = sent[j][:2]
        return {
            "word.lower()": word.lower(),
            "word.istitle()": word.istitle(),
            "word.isupper()": word.isupper(),
            "postag": tag,
            "postag[:2]": tag[:2],
        }

    word = sent[i][0]
    features = {
        "bias": 1.0,
        **neighbor(i),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isdigit()": word.isdigit(),
    }
    for offset, mark in ((-1, "BOS"), (1, "EOS")):
        if 0 <= i + offset < len(sent):
            features |= {f"{offset:+d}:{k}": v for k, v in neighbor(i + offset).items()}
        else:
            features[mark] = True
    return features


def sent2features(sent):
    return [word2features(sent, i) for i in range(len(sent))]


def assert_same(packed, vectorizer, expected):
    names = packed.feature_names
    order = np.argsort(names)
    assert names[order].tolist() == vectorizer.get_feature_names_out().tolist()
    assert (packed.to_csr()[:, order] != expected.to_csr()).nnz == 0
    assert packed.offsets.tolist() == expected.offsets.tolist()


TOKENS = st.tuples(st.text("aA1é", max_size=4), st.sampled_from(["NC", "Fpa", "", "V"]))


@examples(12)
@given(
    st.lists(st.lists(TOKENS, min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(st.lists(TOKENS, max_size=4), max_size=4),
    st.integers(0, 2),
)
def test_names_and_values_are_those_of_the_tutorial(X, unseen, min_freq):
    features = WindowFeatures(min_freq=min_freq)
    vectorizer = SequenceVectorizer(min_freq=min_freq)
    fitted = vectorizer.fit_transform(map(sent2features, X))
    assert_same(features.fit_transform(X), vectorizer, fitted)
    assert_same(features.transform(unseen), vectorizer, vectorizer.transform(
        map(sent2features, unseen)))  # fmt: skip


def test_the_tutorial_on_spanish_news(data_home):
    folder = data_home / "conll2002_es"
    if not folder.is_dir():
        pytest.skip(f"no Spanish CoNLL-2002 in {data_home}")
    parts = []
    for name in ("esp.train.gz", "esp.testb.gz"):
        text = gzip.open(folder / name, "rt", encoding="utf-8").read()
        blocks = [block.splitlines() for block in text.split("\n\n") if block.strip()]
        parts.append([[tuple(line.split(" ")) for line in block] for block in blocks])
    train, test = parts[0][:1000], parts[1][:300]
    features, vectorizer = WindowFeatures(), SequenceVectorizer()
    fitted = vectorizer.fit_transform(map(sent2features, train))
    assert_same(features.fit_transform(train), vectorizer, fitted)
    expected = vectorizer.transform(map(sent2features, test))
    assert_same(features.transform(test), vectorizer, expected)


def names_of(packed, token):
    return packed.feature_names[packed.indices[packed.indptr[token] : packed.indptr[token + 1]]]


X_WORDS = [[("The", "DT"), ("big", "JJ"), ("dog", "NN")], [("Dogs", "NNS")]]


def test_width_affixes_and_columns_can_be_chosen():
    features = WindowFeatures(
        window=2, suffixes=[1], prefixes=[2], word="form", tag=None, columns=["pos", "form"]
    )
    packed = features.fit_transform([[(tag, word) for word, tag in s] for s in X_WORDS])
    assert names_of(packed, 0).tolist() == [
        "bias", "word.lower():the", "word[-1:]:e", "word[:2]:Th", "word.istitle()",
        "+1:word.lower():big", "+2:word.lower():dog", "BOS",
    ]  # fmt: skip
    no_tag_prefix = WindowFeatures(tag_prefix=0, window=0).fit(X_WORDS)
    assert not any("postag[" in name for name in no_tag_prefix.get_feature_names_out())


def test_frames_and_dicts_are_taken_by_name():
    expected = WindowFeatures().fit_transform(X_WORDS)
    named = WindowFeatures(word="w", tag="pos", by="s")
    frame = pd.DataFrame([{"w": w, "pos": p, "s": i} for i, s in enumerate(X_WORDS) for w, p in s])
    assert named.fit_transform(frame) == expected
    assert named.fit_transform([[{"w": w, "pos": p} for w, p in s] for s in X_WORDS]) == expected


def test_it_pickles_and_clones():
    features = WindowFeatures().fit(X_WORDS)
    restored = pickle.loads(pickle.dumps(features))
    restored._check_state()
    assert restored.transform(X_WORDS) == features.transform(X_WORDS)
    assert clone(features).get_params() == features.get_params()
    assert not clone(features).__sklearn_is_fitted__()


@pytest.mark.parametrize(
    "params", [{"window": -1}, {"suffixes": [0]}, {"prefixes": [-2]}, {"tag_prefix": -1}]
)
def test_wrong_numbers_are_refused(params):
    with pytest.raises(ValueError, match="must be at least"):
        WindowFeatures(**params).fit(X_WORDS)


def test_a_token_without_the_tag_is_named():
    with pytest.raises(ValueError, match="sequence 1, position 0: the token .* has 1 fields"):
        WindowFeatures().fit([[("a", "b")], [("a",)]])
