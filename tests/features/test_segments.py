"""Attributes of segments against loops that format every run of tokens by hand."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from crfkit import CRFClassifier, MaxMarginCRF, Segments, SemiMarkovCRF, StructuredPerceptron
from crfkit.data import PackedSegments, PackedSequences
from crfkit.features import (
    SegmentFeatures,
    SequenceUnion,
    SequenceVectorizer,
    TemplateFeatures,
    make_sequence_union,
)
from crfkit.features.functions import short_shape
from crfkit.features.segments import vectorizer as segments_module
from crfkit.features.segments.words import Trie, Words
from crfkit.persistence import dumps, loads
from tests.oracles import edit_similarity as edit
from tests.sampling import examples

SMALL = examples(12)
# Words that hold blanks and separators, nothing, other scripts, and letters that change length.
WORDS = ["", "a", "b", "ab", "A", "a b", " ", "B a", "ß", "語", "É", "|", "=", "a\u00a0b", "Σ", "İ"]
TOKENS = st.tuples(st.sampled_from(WORDS), st.sampled_from("xY"))
CORPUS = st.lists(st.lists(TOKENS, max_size=6), max_size=3)
ENTRIES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=6
).filter(lambda entries: any(entry.strip(" ") for entry in entries))
NONE_FOUND = pytest.mark.filterwarnings("ignore:template .* no segment has such an attribute")


def own(text):
    return {"a": True, "b": None, "ab": 2.5, "": 0, "a b": ["x", "y", "x"]}.get(text, text)


def count(words, tags):
    return f"{len(words)}{tags[-1]}" if "a" in words else None


def jaccard(text, entry):
    a, b = ({word for word in string.split(" ") if word} for string in (text, entry))
    return len(a & b) / len(a | b)


class Tfidf:
    """Cosines by scikit-learn's weights."""

    def __init__(self, entries):
        self.words = TfidfVectorizer(analyzer=lambda s: [w for w in s.split(" ") if w], norm=None)
        self.entries = self.words.fit_transform(entries).toarray()
        self.n_entries = len(entries)

    def __call__(self, text):
        known = self.words.vocabulary_
        others = Counter(w for w in text.split(" ") if w and w not in known)
        row = self.words.transform([text]).toarray()[0]
        extra = sum(n**2 for n in others.values()) * (np.log(1 + self.n_entries) + 1) ** 2
        norm = np.sqrt(row @ row + extra)
        cosines = self.entries @ row / np.linalg.norm(self.entries, axis=1)
        return cosines.max() / norm if norm else 0.0


def best(similarity, text, entries):
    return max(similarity(text, entry) for entry in entries)


class Run:
    """Words and tags of a run of tokens."""

    def __init__(self, tokens):
        self.w, self.p = map(list, zip(*tokens, strict=True))
        self.text, self.tags = " ".join(self.w), " ".join(self.p)
        self.lower, self.shape = self.text.lower(), " ".join(map(short_shape, self.w))


# What each template makes of a run and the entries of a lexicon.
TEMPLATES = {
    "seg.text": lambda r, e: [r.text],
    "lower(seg.text)": lambda r, e: [r.lower],
    "seg.shape": lambda r, e: [r.shape],
    "seg.p": lambda r, e: [r.tags],
    "seg[1]": lambda r, e: [r.tags],
    'prefix(seg["p"], 1)': lambda r, e: [r.p[0]],
    "short_shape(seg.text)": lambda r, e: [short_shape(r.text)],
    "suffix(lower(seg.text), 2)": lambda r, e: [r.lower[-2:]],
    "length(seg.text)": lambda r, e: [str(len(r.text))],
    "ngrams(seg.text, 2)": lambda r, e: [r.text[i : i + 2] for i in range(len(r.text) - 1)],
    "is_upper(seg.text)": lambda r, e: r.text.isupper(),
    "seg.text in e": lambda r, e: r.text in e,
    'lower(seg.text) in "e"': lambda r, e: r.lower in e,
    "suffix(seg.text, 1) in e": lambda r, e: r.text[-1:] in e,
    "jaccard(seg.text, e)": lambda r, e: best(jaccard, r.text, e),
    "jaccard(lower(seg.text), e) >= 0.5": lambda r, e: best(jaccard, r.lower, e) >= 0.5,
    "jaccard(prefix(seg.text, 3), e)": lambda r, e: best(jaccard, r.text[:3], e),
    "tfidf(seg.text, e)": lambda r, e: Tfidf(e)(r.text),
    "tfidf(seg.text, e, 0.7)": lambda r, e: (v := Tfidf(e)(r.text)) * (v >= 0.7),
    "edit(seg.text, e)": lambda r, e: (v := best(edit, r.text, e)) * (v >= 0.5),
    "edit(seg.text, e, 0)": lambda r, e: best(edit, r.text, e),
    "0.3 <= edit(lower(seg.text), e) < 1": lambda r, e: 0.3 <= best(edit, r.lower, e) < 1,
    "edit(lower(seg.text), e, 0.75) >= 0.4": lambda r, e: best(edit, r.lower, e) >= 0.75,
    "jaccard(seg.text, e, 0.4) >= 0.6": lambda r, e: best(jaccard, r.text, e) >= 0.6,
    "edit(seg.p, e) > 0.25": lambda r, e: best(edit, r.tags, e) > 0.25,
    "own(seg.text)": lambda r, e: own(r.text),
    "lower(some(seg.text))": lambda r, e: r.lower or None,
    "count(words(seg.text), words(seg.p))": lambda r, e: count(r.w, r.p),
    "count(words(lower(seg.text)), seg.p)": lambda r, e: count([x.lower() for x in r.w], r.tags),
    "seg.length|seg.shape": lambda r, e: [f"{len(r.w)}|{r.shape}"],
    "seg.text|seg.p": lambda r, e: [f"{r.text}|{r.tags}"],
    "(seg.text in e)|seg.p|seg.length": lambda r, e: [f"True|{r.tags}|{len(r.w)}"] * (r.text in e),
    "(seg.text in e)|(lower(seg.text) in e)":
        lambda r, e: ["True|True"] * (r.text in e and r.lower in e),
    "(2 <= seg.length <= 3)|seg.p": lambda r, e: [f"True|{r.tags}"] * (2 <= len(r.w) <= 3),
    "is_alpha(seg.text)|ngrams(seg.p, 1)":
        lambda r, e: [f"True|{c}" for c in r.tags] * r.text.isalpha(),
    "(edit(seg.text, e) >= 0.8)|seg.length":
        lambda r, e: [f"True|{len(r.w)}"] * (best(edit, r.text, e) >= 0.8),
}  # fmt: skip


# These find entries of any length.
LOOKUPS = {
    "seg.text in e", 'lower(seg.text) in "e"', "(seg.text in e)|seg.p|seg.length",
    "(seg.text in e)|(lower(seg.text) in e)",
}  # fmt: skip


def attributes(template, result):
    """The attributes that stand for a result, as dicts of tokens would have them."""
    if isinstance(result, str):
        return {f"{template}={result}": 1.0}
    if isinstance(result, (list, tuple)):
        return dict(Counter(f"{template}={item}" for item in result))
    return {template: float(result)} if result else {}


def expected(X, templates, entries, longest):
    """The attributes of each run."""
    found = {}
    for s, sequence in enumerate(X):
        for start in range(len(sequence)):
            for stop in range(start + 1, len(sequence) + 1):
                run, row = Run(sequence[start:stop]), {}
                for template in templates if stop <= start + longest else LOOKUPS & {*templates}:
                    row |= attributes(template, TEMPLATES[template](run, entries))
                found[s, start, stop] = row
    return found


def listed(packed):
    """The attributes of each run that is listed."""
    segments = packed.segments
    rows = segments.rows.to_dicts()[0]
    found = {}
    for stop, length, row in zip(segments.stop, segments.length, segments.row, strict=True):
        s = int(np.searchsorted(packed.offsets, stop - length, side="right")) - 1
        found[s, int(stop - length - packed.offsets[s]), int(stop - packed.offsets[s])] = rows[row]
    assert sorted(set(segments.row.tolist())) == list(range(segments.rows.n_tokens))
    assert len({tuple(sorted(row.items())) for row in rows}) == len(rows)
    return found


def only(found, names):
    """The attributes that have certain names, and the runs that have any."""
    kept = {run: {n: v for n, v in row.items() if n in names} for run, row in found.items()}
    return {run: row for run, row in kept.items() if row}


def assert_same(packed, wanted, names):
    wanted = only(wanted, names)
    if not names:
        assert packed.segments is None
        return
    found = listed(packed)
    assert found.keys() == wanted.keys()
    for run, row in wanted.items():
        assert found[run] == pytest.approx(row, rel=1e-13)


def cleaned(entries):
    """Entries without needless blanks."""
    return {" ".join(word for word in entry.split(" ") if word) for entry in entries} - {""}


@NONE_FOUND
@SMALL
@given(
    st.lists(st.sampled_from(sorted(TEMPLATES)), min_size=1, max_size=5, unique=True),
    CORPUS, CORPUS, ENTRIES, st.integers(0, 3), st.integers(1, 4),
)  # fmt: skip
def test_attributes_are_those_of_every_run_by_hand(
    templates, X, unseen, entries, min_freq, longest
):
    known = cleaned(entries)
    features = SegmentFeatures(
        templates, columns=["w", "p"], max_length=longest, min_freq=min_freq,
        lexicons={"e": entries},
        functions={"own": own, "count": count, "some": lambda text: text or None},
    )  # fmt: skip
    packed = features.fit_transform(X)
    wanted = expected(X, templates, known, longest)
    counts = Counter(name for row in wanted.values() for name, value in row.items() if value)
    names = sorted(name for name, n in counts.items() if n >= min_freq)
    assert list(features.vocabulary_) == names
    assert_same(packed, wanted, names)
    assert features.transform(X) == packed
    assert_same(features.transform(unseen), expected(unseen, templates, known, longest), names)


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_each_template_alone(template):
    generator = np.random.default_rng(0)
    words = np.array(["New", "York", "Los", "Angeles", "a", "é9", "São Paulo", "IBM"], object)
    X = [[(w, "xY"[i % 2]) for i, w in enumerate(generator.choice(words, n))] for n in (0, 1, 7, 9)]
    entries = {"New York", "York", "New York a", "los angeles", "a", "e9", "Los São Paulo a", "x Y"}
    features = SegmentFeatures(
        template, columns=["w", "p"], max_length=4, lexicons={"e": entries},
        functions={"own": own, "count": count, "some": lambda text: text or None},
    )  # fmt: skip
    wanted = expected(X, [template], entries, 4)
    names = {name for row in wanted.values() for name in row}
    assert names
    assert_same(features.fit_transform(X), wanted, names)
    assert_same(features.transform(X[::-1]), expected(X[::-1], [template], entries, 4), names)


@NONE_FOUND
@examples(10)
@given(st.lists(st.sampled_from(sorted(TEMPLATES)), min_size=1, max_size=4, unique=True), CORPUS)
def test_parts_of_the_data_that_are_looked_at_together_do_not_matter(templates, X):
    features = SegmentFeatures(
        templates, columns=["w", "p"], max_length=3, lexicons={"e": ["a", "a b", "B a b"]},
        functions={"own": own, "count": count, "some": lambda text: text or None},
    )  # fmt: skip
    whole = features.fit_transform(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments_module, "_RUNS", 4)
        assert clone(features).fit_transform(X) == whole
        assert features.transform(X) == whole


def runs_of(packed):
    return sorted(listed(packed))


def test_entries_that_overlap_or_lie_in_others_are_all_found():
    entries = ["New", "New York", "York City", "New York City Hall Park", "City"]
    X = [["New", "York", "City", "Hall", "Park"], ["New", "York"]]
    features = SegmentFeatures("seg.text in e", lexicons={"e": entries})
    found = [(0, 0, 1), (0, 0, 2), (0, 0, 5), (0, 1, 3), (0, 2, 3), (1, 0, 1), (1, 0, 2)]
    assert runs_of(features.fit_transform(X)) == found
    features.set_params(templates="(seg.text in e)|seg.shape|(jaccard(seg.text, e) >= 1)")
    assert runs_of(features.fit_transform(X)) == found
    features.set_params(max_length=2)
    assert runs_of(features.fit_transform(X)) == found
    features.set_params(templates="jaccard(seg.text, e) >= 1")
    assert runs_of(features.fit_transform(X)) == [run for run in found if run[2] - run[1] <= 2]


def test_words_that_hold_blanks_are_parts_of_entries_as_a_whole():
    features = SegmentFeatures("seg.text in e", lexicons={"e": ["a b c", "b c"]})
    X = [["a b", "c"], ["a", "b c"], ["b", "c"], ["a b c"], ["x a", "b c"]]
    wanted = [(0, 0, 2), (1, 0, 2), (1, 1, 2), (2, 0, 2), (3, 0, 1), (4, 1, 2)]
    assert runs_of(features.fit_transform(X)) == wanted


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\t"])
def test_only_blanks_part_the_words_of_entries(blank):
    token = f"New{blank}York"
    features = SegmentFeatures("seg.text in e", lexicons={"e": [f"{token}\n", f"  {token}  City "]})
    assert runs_of(features.fit_transform([[token, "City"]])) == [(0, 0, 1), (0, 0, 2)]
    words = TemplateFeatures('lexicon(w, "e")', columns=["w"], lexicons={"e": [token]})
    assert words.fit_transform([[token]]).n_features == 1


@examples(10)
@given(CORPUS, CORPUS, st.integers(0, 3), st.integers(1, 4))
def test_a_trie_of_frequent_texts_finds_what_one_of_the_same_texts_finds(X, Z, least, longest):
    def words(rows):
        texts = [token[0] for row in rows for token in row]
        ends = np.repeat(np.cumsum(list(map(len, rows))), list(map(len, rows)))
        return Words(np.arange(len(texts), dtype=np.int32), texts, ends.astype(np.int64))

    grown = words(X).frequent(longest, least)
    built = Trie.of(grown.texts)
    for rows in (X, Z):
        (runs, which), (same, again) = (t.find(words(rows), longest) for t in (grown, built))
        assert (runs.start.tolist(), runs.stop.tolist()) == (
            same.start.tolist(),
            same.stop.tolist(),
        )
        assert which.tolist() == again.tolist()


@pytest.mark.parametrize("kind", [tuple, list])
def test_entries_may_be_the_tokens_themselves(kind):
    X = [["在", "北", "京"], ["", "a"]]
    entries = [kind("北京"), ["", "a"], "在"]
    features = SegmentFeatures("seg.text in e", lexicons={"e": entries})
    packed = features.fit_transform(X)
    assert runs_of(packed) == [(0, 0, 1), (0, 1, 3), (1, 0, 2)]
    assert features.lexicons_ == {"e": [" a", "北 京", "在"]}
    assert loads(dumps(features)).transform(X) == packed


@pytest.mark.parametrize(
    ("template", "entries", "X", "said"),
    [
        ("seg.text in e", ["北京"], [[], list("北京")], ["'北京'", "'北 京'"]),
        ("lower(seg.text) in e", ["New York"], [["New", "York"]], ["'New York'", "'new york'"]),
        ("(edit(seg.text, e) > 0.9)|seg.length", ["b"], [["a"]], ["'b'", "'a'"]),
    ],
)
def test_a_lexicon_that_nothing_is_in_is_told(template, entries, X, said):
    features = SegmentFeatures(
        ["seg.shape", template], lexicons={"e": entries}, max_length=2
    )  # fmt: skip
    with pytest.warns(UserWarning, match="no segment has such an attribute") as warned:
        features.fit(X)
    [message] = [str(warning.message) for warning in warned]
    assert all(part in message for part in [repr(template), "lexicon 'e'", *said])
    features.transform([["nothing"]])
    features.fit([])
    features.set_params(min_freq=2, templates="seg.text in e").fit([[entries[0]] * 1])


def test_runs_of_the_same_attributes_share_a_row():
    X = [["a", "b", "c"], ["a", "d"]]
    lexicons = {"e": ["a", "b", "d"], "f": ["b"]}
    features = SegmentFeatures(["seg.text in e", "seg.text in f"], lexicons=lexicons)
    segments = features.fit_transform(X).segments
    assert segments.rows.n_tokens == 2
    assert segments.row[[0, 2, 3]].tolist() == [segments.row[0]] * 3  # a, a and d


def test_functions_are_called_once_for_each_different_text():
    calls = Counter()

    def seen(*arguments):
        calls[arguments] += 1
        return "x"

    def seen_words(words, text):
        return seen(tuple(words), text)

    X = [["a", "b", "a", "b"], ["a b", "a"]]
    functions = {"seen": seen, "seen_words": seen_words}
    templates = ["seen(seg.text)", "seen_words(words(seg.text), lower(seg.text))"]
    SegmentFeatures(templates, functions=functions, max_length=2).fit(X)
    assert set(calls.values()) == {1}
    assert (("a", "b"), "a b") in calls
    assert (("a b",), "a b") in calls
    assert ("a b",) in calls


def test_attributes_of_value_two_occur_twice():
    features = SegmentFeatures("ngrams(seg.text, 1)", max_length=1)
    packed = features.fit_transform([["aba"]])
    assert listed(packed) == {
        (0, 0, 1): {"ngrams(seg.text, 1)=a": 2.0, "ngrams(seg.text, 1)=b": 1.0}
    }


def test_all_forms_of_tokens_say_the_same():
    lexicons = {"e": ["the dog", "cat"]}
    words = [["the", "dog"], ["cat"]]
    wanted = SegmentFeatures("seg.text in e", lexicons=lexicons).fit_transform(words)
    frame = pd.DataFrame({"s": [0, 0, 1], "w": ["the", "dog", "cat"]})
    forms = [
        ([[(w, "x") for w in s] for s in words], {}),
        ([[(w, "x") for w in s] for s in words], {"columns": ["w", "p"]}),
        ([[{"w": w} for w in s] for s in words], {"columns": ["w"]}),
        (frame, {"columns": ["w"], "by": "s"}),
        (((w for w in s) for s in words), {}),
    ]
    for X, params in forms:
        features = SegmentFeatures("seg.text in e", lexicons=lexicons, **params)
        assert features.fit_transform(X) == wanted
    named = SegmentFeatures("seg.w in e", lexicons=lexicons, by="s").fit_transform(frame)
    assert runs_of(named) == runs_of(wanted)


def test_lexicons_may_be_files(tmp_path):
    (tmp_path / "cities.txt").write_text("New   York\n\nRome\n", encoding="utf-8")
    features = SegmentFeatures("seg.text in c", lexicons={"c": str(tmp_path / "cities.txt")})
    assert runs_of(features.fit_transform([["New", "York"]])) == [(0, 0, 2)]
    assert features.lexicons_ == {"c": ["New York", "Rome"]}


@NONE_FOUND
@pytest.mark.parametrize("X", [[], [[]], [[], ["b"], []]])
def test_data_without_attributes_have_no_segments(X):
    features = SegmentFeatures("seg.text in e", lexicons={"e": ["a"]})
    packed = features.fit_transform(X)
    assert packed.segments is None
    assert packed.n_features == 0
    assert len(packed) == len(X)
    assert features.transform([["a"]]).segments is None


def test_new_data_without_attributes_have_none_of_those_there_are():
    features = SegmentFeatures("seg.text in e", lexicons={"e": ["a"]}).fit([["a"]])
    for X in ([], [[]], [["b"], []]):
        segments = features.transform(X).segments
        assert len(segments.row) == 0
        assert segments.n_features == 1


def test_a_text_that_is_learned_counts_runs_of_any_place():
    X = [["a", "b", "a", "b"], ["b", "a"]]
    features = SegmentFeatures("seg.text", max_length=3, min_freq=2).fit(X)
    assert list(features.vocabulary_) == [f"seg.text={text}" for text in ("a", "a b", "b", "b a")]


def test_very_many_texts_are_told_where_those_that_occur_once_are_kept(monkeypatch):
    monkeypatch.setattr(segments_module, "_MANY", 2)
    X = [["a", "b", "c", "a"]]
    with pytest.warns(UserWarning, match=r"'seg.text' has 3 different .* min_freq=2"):
        SegmentFeatures("seg.text", max_length=1).fit(X)
    SegmentFeatures("seg.text", max_length=2, min_freq=2).fit(X)
    SegmentFeatures("seg.shape", max_length=2).fit(X)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("seg.text in", "is not an expression"),
        ("seg", "nothing that segments have"),
        ("w", "nothing that segments have"),
        ("own(seg.text, 3)", "nothing that segments have"),
        ("seg.text in nowhere", "there is no lexicon 'nowhere'"),
        ("seg.text in 3", "no name of a lexicon"),
        ("seg.text not in e", "no condition there is"),
        ("1 < 2", "no condition there is"),
        ("1 < seg.length < seg.length", "no condition there is"),
        ("seg.text == 3", "can be compared"),
        ("seg.length", "all segments would have it"),
        ("(seg.length > 1)|seg.length", "all segments would have it"),
        ("seg.length in e", "seg.length is a number"),
        ("seg.text in e|seg.p", "put that in parentheses"),
        ("seg.p|seg.text in e", "put that in parentheses"),
        ("edit(seg.text, e)|seg.p", "compare it"),
        ("jaccard(seg.text, e) < 0.5", "like no entry"),
        ("tfidf(seg.text, e) >= 0", "like no entry"),
        ("jaccard(seg.text)", "takes a text, a lexicon"),
        ("edit(seg.text, e, 2)", "from 0 to 1"),
        ("lower(edit(seg.text, e))", "gives a number"),
        ("nothing(seg.text)", "there is no function 'nothing'"),
        ("prefix(seg.text)", "takes an expression and 1 numbers"),
        ("lower(ngrams(seg.text, 2))", "needs a string"),
        ("ngrams(seg.text, 2) in e", "a string is needed"),
        ("words(seg.text)", "gives a list"),
        ("own(words(prefix(seg.text, 2)))", "words() cannot part"),
        ("own(words())", "words() takes"),
        ("own()", "needs seg.text"),
        ("seg.text.upper()", "not a call of a function by position"),
        (
            "lower(seg.first)",
            "TemplateFeatures, joined with these by make_sequence_union: first(w)",
        ),
        ("seg.first.shape", "the first token of a segment has is described by TemplateFeatures"),
        ("seg.first.shape", "make_sequence_union: first(shape(w))."),
        ("seg.shape|seg.last.pos", "make_sequence_union: last(pos)."),
        ("seg.last.text in e", "make_sequence_union: last(w)."),
        ("seg.single.shape", "the only token of a segment has"),
        ("seg.single", "make_sequence_union: single(w)."),
        ("lower(seg.first['any name'])", "make_sequence_union: first(col('any name'))."),
        ("seg[-1]", "takes the name or number"),
        ("seg[w]", "takes the name or number"),
    ],
)
def test_a_bad_template_is_named(template, problem):
    features = SegmentFeatures(
        ["seg.shape", template], lexicons={"e": ["a"]}, functions={"own": own}, max_length=2
    )
    with pytest.raises(ValueError, match="template ") as error:
        features.fit([["a"]])
    assert problem in str(error.value)
    assert repr(template) in str(error.value)


def test_the_way_out_for_tokens_of_segments_works():
    names = ["word", "pos"]
    with pytest.raises(ValueError, match=r"first\(shape\(word\)\)\.$"):
        SegmentFeatures("seg.first.shape", columns=names, max_length=2).fit([[("a", "b")]])
    tokens = TemplateFeatures("first(shape(word))", columns=names)
    packed = tokens.fit_transform([[("Ab", "b")]])
    assert packed.feature_names.tolist() == ["seg.first.shape(word)=Xx"]
    whole = SegmentFeatures("seg['first']", columns=["word", "first"], max_length=1)
    assert runs_of(whole.fit_transform([[("a", "b")]])) == [(0, 0, 1)]


@pytest.mark.parametrize(
    ("params", "X", "error", "problem"),
    [
        ({"templates": []}, [["a"]], ValueError, "no templates"),
        ({"templates": 3}, [["a"]], TypeError, "list of strings"),
        ({"templates": "seg.shape"}, [["a"]], ValueError, "max_length=..."),
        ({"templates": "seg.text", "max_length": 0}, [["a"]], ValueError, "at least 1"),
        ({"templates": "seg.text", "max_length": 2.0}, [["a"]], TypeError, "whole number"),
        ({"min_freq": -1}, [["a"]], ValueError, "min_freq"),
        ({"lexicons": {"e": []}}, [["a"]], ValueError, "no entries"),
        ({"lexicons": {"e": [3]}}, [["a"]], TypeError, "not a string"),
        ({"lexicons": {"e": [("a", 3)]}}, [["a"]], TypeError, r"\('a', 3\) is not a string, nor"),
        ({"functions": {"edit": len}}, [["a"]], ValueError, "a function there is"),
        ({"functions": {"words": len}}, [["a"]], ValueError, "a function there is"),
        ({"functions": {"f": 3}}, [["a"]], TypeError, "cannot be called"),
        ({"columns": ["w", "w"]}, [["a"]], ValueError, "different names"),
        ({"columns": ["w", "text"]}, [[("a", "b")]], ValueError, r"seg\['text'\]"),
        ({}, [["a"], [("b",)]], TypeError, "sequence 1, position 0"),
        ({}, [[("a",), (3,)]], TypeError, "sequence 0, position 1, column 0: 3 is not a string"),
        ({}, [[{"w": "a"}]], ValueError, "columns="),
        ({"templates": "seg.w in e"}, [["a"]], ValueError, "columns="),
    ],
)
def test_bad_input_is_named(params, X, error, problem):
    given = {"templates": "seg.text in e", "lexicons": {"e": ["a"]}}
    features = SegmentFeatures(**(given | params))
    with pytest.raises(error, match=problem):
        features.fit(X)


@pytest.mark.parametrize(
    ("template", "function", "error", "problem"),
    [
        ("f(seg.text)|seg.shape", lambda text: 2.5, TypeError, "the number 2.5 within a"),
        ("f(seg.text)", lambda text: object(), TypeError, "must give a string"),
        ("f(seg.text)", lambda text: float("nan"), ValueError, "must be finite"),
        ("f(words(seg.text))", lambda words: {1}, TypeError, "must give a string"),
        ("f(seg.text) in e", lambda text: 3, TypeError, "needs a string"),
        ("edit(f(seg.text), e)", lambda text: True, TypeError, "needs a string"),
        ("f(words(seg.text))", lambda words: words[7], IndexError, "out of range"),
    ],
)
def test_what_functions_may_not_give_is_named(template, function, error, problem):
    features = SegmentFeatures(
        template, functions={"f": function}, lexicons={"e": ["a"]}, max_length=1
    )
    with pytest.raises(error, match=problem):
        features.fit([["a"]])


def test_a_transformer_of_scikit_learn():
    features = SegmentFeatures(["seg.shape"], max_length=2, min_freq=1)
    assert clone(features).get_params() == features.get_params()
    with pytest.raises(NotFittedError):
        features.transform([["a"]])
    with pytest.raises(NotFittedError):
        features.get_feature_names_out()
    packed = features.fit_transform([["a", "B"]])
    assert features.get_feature_names_out().tolist() == []
    features.set_params(max_length=1, templates="seg.text")
    assert features.transform([["a", "B"]]) == packed
    assert features.set_output(transform="pandas") is features


def test_a_fit_that_fails_leaves_the_last_one():
    features = SegmentFeatures("seg.text in e", lexicons={"e": ["a"]}).fit([["a"]])
    with pytest.raises(TypeError):
        features.fit([[("a",), (3,)]])
    assert runs_of(features.transform([["a"]])) == [(0, 0, 1)]


def upper(text):
    return text.upper()


def test_stored_objects_transform_alike():
    X = [["New", "York", "b"], ["York"]]
    features = SegmentFeatures(
        ["seg.text", "lower(seg.text) in e", "upper(seg.text)", "edit(seg.text, e)", "seg.shape"],
        lexicons={"e": {"new york", "b"}}, functions={"upper": upper}, max_length=2,
    )  # fmt: skip
    packed = features.fit_transform(X)
    for again in (
        pickle.loads(pickle.dumps(features)),
        loads(dumps(features), allow=[upper]),
        loads(dumps(clone(features)), allow=[upper]).fit(X),
    ):
        assert again.transform(X) == packed
        assert list(again.vocabulary_) == list(features.vocabulary_)
    assert loads(dumps(packed)) == packed


@pytest.mark.parametrize(
    "damage",
    [
        {"vocabulary_": {"seg.text=a": 1}},
        {"vocabulary_": {3: 0}},
        {"lexicons_": {"e": [3]}},
        {"lexicons_": {}},
        {"_parameters": {}},
        {"_parameters": {"templates": "seg.nothing("}},
    ],
)
def test_a_damaged_file_is_refused(damage):
    features = SegmentFeatures("seg.text in e", lexicons={"e": ["a"]}).fit([["a"]])
    features.__dict__.update(damage)
    with pytest.raises(ValueError):
        loads(dumps(features))


@pytest.mark.parametrize(
    "damage",
    [
        {"row": np.array([7])},
        {"length": np.array([2])},
        {"length": np.array([1, 1])},
        {"ptr": np.array([0, 1, 0])},
        {"ptr": np.array([0, 1])},
        {"rows": None},
    ],
)
def test_a_damaged_file_of_data_is_refused(damage):
    packed = SegmentFeatures("seg.text in e", lexicons={"e": ["a"]}).fit_transform([["a", "b"]])
    packed.segments.__dict__.update(damage)
    with pytest.raises((ValueError, AttributeError)):
        loads(dumps(packed))


def test_a_union_joins_attributes_of_segments_as_those_of_tokens():
    X = [["New", "York"], [], ["b"]]
    cities = SegmentFeatures("seg.text in c", lexicons={"c": ["New York", "b"]})
    union = SequenceUnion(
        [("w", TemplateFeatures(["w", "transition(w)"], columns=["w"])), ("c", cities),
         ("s", SegmentFeatures("seg.shape", max_length=1))]
    )  # fmt: skip
    packed = union.fit_transform(X)
    assert packed.feature_names.tolist() == ["w__w=New", "w__w=York", "w__w=b"]
    assert packed.transitions.feature_names.tolist() == ["w__w=York"]
    assert listed(packed) == {
        (0, 0, 1): {"s__seg.shape=Xx": 1.0},
        (0, 0, 2): {"c__seg.text in c": 1.0},
        (0, 1, 2): {"s__seg.shape=Xx": 1.0},
        (2, 0, 1): {"c__seg.text in c": 1.0, "s__seg.shape=x": 1.0},
    }
    again = union.transform(X)
    assert again == packed
    assert again.segments.rows.names is packed.segments.rows.names
    assert loads(dumps(union)).transform(X) == packed


def test_a_union_joins_rows_of_any_kind():
    offsets = [0, 2]
    rows = PackedSequences(dense=[[1.0, 2.0]], offsets=[0, 1])
    dense = PackedSegments(rows, offsets, [0], [2], [0])
    given = PackedSequences(dense=np.ones((2, 1)), offsets=offsets, segments=dense)

    class Given(SequenceVectorizer):
        def fit_transform(self, X, y=None):
            return given

    shapes = SegmentFeatures("seg.shape", max_length=2)
    packed = SequenceUnion([("g", Given()), ("s", shapes)]).fit_transform([["a", "B"]])
    assert listed(packed) == {
        (0, 0, 1): {"s__seg.shape=x": 1.0},
        (0, 1, 2): {"s__seg.shape=X": 1.0},
        (0, 0, 2): {"s__seg.shape=x X": 1.0, "g__0": 1.0, "g__1": 2.0},
    }


# --- In models ----------------------------------------------------------------------------------


def addresses(n, seed):
    """Cities of one to three words among others; only the list of them tells which."""
    generator = np.random.default_rng(seed)
    cities = ["Green Bay", "Bay", "New Green Bay", "Park Hill", "Hill Park"]
    X, y = [], []
    for _ in range(n):
        words, segments = [], []
        for _ in range(generator.integers(1, 4)):
            is_city = generator.random() < 0.5
            text = generator.choice(cities if is_city else ["Green", "New", "Park", "Hill"])
            segments.append((len(words), len(words) + len(text.split()), "CP"[not is_city]))
            words += text.split()
        X.append(words)
        y.append(segments)
    return X, y, cities


def test_a_lexicon_in_a_pipeline_tells_segments_apart():
    X, y, cities = addresses(60, 0)
    segments = SegmentFeatures(["seg.text in cities"], lexicons={"cities": cities})
    words = TemplateFeatures(["w"], columns=["w"])
    alone, both = (
        make_pipeline(make_sequence_union(words, *more), SemiMarkovCRF(c2=0.1))
        for more in ([], [segments])
    )
    (test, truth, _) = addresses(60, 1)
    wrong = []
    for model in (alone, both):
        model.fit(X, y)
        found = model[-1].predict_spans(model[:-1].transform(test))
        wrong.append(sum(list(a) != b for a, b in zip(found, truth, strict=True)))
        assert loads(dumps(model)).predict(test) == model.predict(test)
    assert wrong[1] < wrong[0]
    assert both[-1].segment_coef_.shape[0] == 1


def test_attributes_of_segments_longer_than_a_model_has_them_do_not_matter():
    X, y, _ = addresses(20, 2)
    words = TemplateFeatures(["w"], columns=["w"])
    models = [
        make_pipeline(
            make_sequence_union(words, SegmentFeatures("seg.text", max_length=longest)),
            SemiMarkovCRF(max_length=3),
        ).fit(X, y)
        for longest in (3, 5)
    ]
    assert models[0].predict(X) == models[1].predict(X)
    objectives = [model[-1].objective_ for model in models]
    np.testing.assert_allclose(*objectives, rtol=1e-7)


@pytest.mark.parametrize("in_union", [False, True])
def test_attributes_of_first_last_and_only_tokens_count_for_those(in_union):
    X, y, _ = addresses(20, 3)
    features = TemplateFeatures(
        ["w", "first(w[-1])", "last(shape(w)|w[1])", "single(w[2])"], columns=["w"]
    )
    lead = "t-1__" if in_union else ""
    data = (SequenceUnion([("t-1", features)]) if in_union else features).fit_transform(X)
    crf = SemiMarkovCRF().fit(data, y)
    rows = {
        part: [i for i, name in enumerate(data.feature_names) if name.startswith(lead + begin)]
        for part, begin in (
            ("all", "w="),
            ("first", "seg.first.w[-1]="),
            ("last", "seg.last.shape(w)|w[1]="),
            ("single", "seg.single.w[2]="),
        )
    }
    assert all(rows.values())
    assert sum(map(len, rows.values())) == data.n_features
    used = {
        name: set(np.flatnonzero(np.diff(getattr(crf, name).indptr)).tolist())
        for name in ("coef_", "first_coef_", "last_coef_", "single_coef_")
    }
    assert used["coef_"] == set(rows["all"])
    assert used["first_coef_"] == {*rows["all"], *rows["first"]}
    assert used["last_coef_"] == {*rows["all"], *rows["last"]}
    assert used["single_coef_"] == {*rows["all"], *rows["single"]}


@pytest.mark.parametrize("template", ["first(w)", "last(w|w[1])", "single(is_title(w))"])
@pytest.mark.parametrize("in_union", [False, True])
def test_models_of_tokens_refuse_attributes_of_first_last_and_only_tokens(template, in_union):
    X = [["Ann", "left"], ["New", "York"]]
    features = TemplateFeatures(["w", template], columns=["w"])
    if in_union:
        features = make_sequence_union(TemplateFeatures(["w"], columns=["w"]), features)
    data = features.fit_transform(X)
    for model in (CRFClassifier(), StructuredPerceptron(), MaxMarginCRF()):
        with pytest.raises(ValueError, match=r"first, last or only tokens .*seg\..*SemiMarkovCRF"):
            model.fit(data, [["a", "b"], ["b", "a"]])
    assert "_built" not in vars(data.names)
    StructuredPerceptron(structure=Segments()).fit(data, [["a", "b"], ["b", "a"]])


@pytest.mark.parametrize(
    ("called", "compared"),
    [
        ("lexicon(seg.text, 'x')", "seg.text in x"),
        ("lexicon(lower(seg.text), x)", "lower(seg.text) in 'x'"),
        ("lexicon(seg.text, x)|seg.length", "(seg.text in x)|seg.length"),
    ],
)
def test_a_lexicon_is_asked_in_two_ways(called, compared):
    X = [["in", "New", "York", "Rome"], ["new", "york"]]
    first, second = (
        SegmentFeatures(template, lexicons={"x": ["New York", "Rome", "new york"]})
        .fit_transform(X)
        .segments
        for template in (called, compared)
    )
    assert first.rows.n_tokens > 0
    np.testing.assert_array_equal(first.stop, second.stop)
    np.testing.assert_array_equal(first.length, second.length)
    renamed = [name.replace(compared, called) for name in second.rows.feature_names]
    assert first.rows.feature_names.tolist() == renamed


def test_a_function_cannot_be_called_lexicon():
    features = SegmentFeatures("seg.text", max_length=2, functions={"lexicon": str.lower})
    with pytest.raises(ValueError, match="'lexicon' is the name of a function there is"):
        features.fit([["a"]])
