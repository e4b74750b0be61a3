"""Words in common with the nearest entry against those in common with all entries."""

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from crfkit.features.segments import similarity as similarity
from crfkit.features.segments.similarity import WordOverlap
from tests.sampling import examples

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "x"]), max_size=8).map(" ".join)
LEAST = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1.0])


def jaccard(text, entry):
    a, b = set(text.split()), set(entry.split())
    return len(a & b) / len(a | b)


def cosines(texts, entries):
    """Cosines of all pairs by scikit-learn's weights; words of no entry have the largest."""
    words = TfidfVectorizer(analyzer=str.split, norm=None).fit(entries)
    unknown = sorted({w for text in texts for w in text.split()} - set(words.vocabulary_))
    extra = np.array([[text.split().count(w) for w in unknown] for text in texts])
    extra = extra.reshape(len(texts), len(unknown)) * (np.log(1 + len(entries)) + 1)
    rows = np.hstack([words.transform(texts).toarray(), extra])
    columns = words.transform(entries).toarray()
    columns /= np.linalg.norm(columns, axis=1, keepdims=True)
    norms = np.linalg.norm(rows, axis=1)
    return rows[:, : columns.shape[1]] @ columns.T / np.where(norms > 0, norms, 1.0)[:, None]


@examples(30)
@given(
    st.lists(TEXTS, min_size=1, max_size=8),
    st.lists(TEXTS.filter(bool), min_size=1, max_size=12, unique=True),
    LEAST,
)
def test_the_nearest_entry_is_that_of_a_search_through_all(texts, entries, least):
    overlap = WordOverlap(entries)
    best = [max(jaccard(text, entry) for entry in entries) for text in texts]
    found = overlap.jaccard(texts, least)
    assert found.tolist() == [value if value >= least else 0.0 for value in best]
    best, found = cosines(texts, entries).max(axis=1), overlap.tfidf(texts, least)
    sure = np.abs(best - least) > 1e-12
    np.testing.assert_allclose(found[sure], np.where(best >= least, best, 0.0)[sure], rtol=1e-13)


@pytest.mark.parametrize("kind", ["jaccard", "tfidf", "edit"])
def test_parts_and_threads_change_nothing(monkeypatch, kind):
    generator = np.random.default_rng(0)
    words = [f"w{i}" for i in range(30)]
    texts = [" ".join(generator.choice(words, n)) for n in generator.integers(0, 6, 60)]
    lexicon = similarity.Lexicon(sorted(set(texts[:40]))[1:] + ["New York"])
    whole = lexicon.similarities(kind, texts, 0.25)
    assert np.unique(whole).size > 1
    monkeypatch.setattr(similarity, "_WORK", 50)
    seen = []
    threads = similarity.ThreadMap
    monkeypatch.setattr(similarity, "ThreadMap", lambda n: seen.append(n) or threads(n))
    assert lexicon.similarities(kind, texts, 0.25).tolist() == whole.tolist()
    with joblib.parallel_config("threading", n_jobs=2):
        assert lexicon.similarities(kind, texts, 0.25).tolist() == whole.tolist()
    assert seen == [None, None]


@pytest.mark.parametrize("kind", ["jaccard", "tfidf", "edit"])
def test_a_search_can_be_interrupted_between_its_parts(monkeypatch, kind):
    name = "edit_nearest" if kind == "edit" else "overlap_nearest"
    calls, search = [], getattr(similarity, name)

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        search(*arguments)

    monkeypatch.setattr(similarity, "_WORK", 1)
    monkeypatch.setattr(similarity, name, interrupted)
    texts = [" ".join(["York", *(f"k{j}" for j in range(i))]) for i in range(9)]
    with pytest.raises(KeyboardInterrupt):
        similarity.Lexicon(["New York", "York"]).similarities(kind, texts, 0.0)
    assert len(calls) == 3


def test_texts_with_the_same_known_words_are_searched_once(monkeypatch):
    texts = [f"{a} {b} Street" for a in "pqrstu" for b in "vwxyz"]
    rows, search = [], similarity.overlap_nearest
    monkeypatch.setattr(
        similarity,
        "overlap_nearest",
        lambda some, *rest: rows.append(len(some.ptr)) or search(some, *rest),
    )
    found = WordOverlap(["Main Street", "High Street"]).jaccard(texts)
    assert found.tolist() == [0.25] * 30
    assert rows == [2]
