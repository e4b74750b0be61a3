"""Answers under local rules, on each structure, against the legal labelings among all."""

from functools import cache
from itertools import accumulate, groupby, pairwise, product

import numpy as np
import pytest
from scipy.special import entr

from crfkit import UNLABELED, CRFClassifier, SemiMarkovCRF, SequenceVectorizer, _parallel
from crfkit.constraints import (
    AllowedAt,
    AllowedWith,
    Contiguous,
    Count,
    Ends,
    Known,
    NotTogether,
    Steps,
    TagScheme,
)
from crfkit.data import Forest
from crfkit.metrics import illegal_tags, spans_from_tags
from crfkit.potentials import chain_blocks
from crfkit.structures import SparseChain, chain, long_chain
from tests.contracts.structures import random_forest
from tests.estimators.segmentations import enumerated
from tests.sampling import PROBLEMS

TAGS = ["B-A", "I-A", "I-B", "O"]  # a span of B that follows one of B cannot be told
WORDS = ["u", "v", "w"]
LENGTHS = [3, 0, 1, 4, 2]


def words(rng):
    return [[{"is": WORDS[i]} for i in rng.integers(3, size=length)] for length in LENGTHS]


def fit_chain(seed, tags=TAGS):
    """Return a chain that has some weight for everything."""
    rng = np.random.default_rng(seed)
    X = [[{"is": WORDS[i]} for i in rng.integers(3, size=len(tags))] for _ in range(6)]
    y = [[tags[i] for i in rng.permutation(len(tags))] for _ in X]
    crf = CRFClassifier(c2=0.3, boundary_weights=True).fit([*X, *X], [*y, *y])
    for name in ("transitions_", "start_weights_", "end_weights_"):
        drawn = rng.normal(size=getattr(crf, name).shape)
        setattr(crf, name, drawn * (getattr(crf, name) != 0.0))
    return crf


def fit_forest(seed):
    rng = np.random.default_rng(seed)
    data = SequenceVectorizer().fit_transform([[{"is": w} for w in WORDS]] * 6)
    parents = Forest.from_lists([[None, 0, 1], [2, None, 1], [None, None, 1]] * 2)
    y = [[TAGS[i] for i in rng.integers(4, size=3)] for _ in range(5)] + [TAGS[1:]]
    return CRFClassifier(c2=0.3).fit(data.with_topology(parents), y)


def fit_segments(seed):
    X = [[{"is": w} for w in sentence] for sentence in ("uvwuv", "wuv", "vuwwu")]
    y = [["B-A", "I-A", "I-A", "B-B", "O"], ["B-A", "B-A", "B-B"], ["O", "O", "B-B", "I-B", "O"]]
    model = SemiMarkovCRF(c2=1.0, outside="long" if seed % 2 else "single").fit(X, y)
    rng = np.random.default_rng(seed)
    for name in ("transitions_", "length_scores_"):
        fitted = getattr(model, name)
        drawn = rng.normal(size=fitted.shape)
        setattr(model, name, np.where(np.isneginf(fitted), -np.inf, drawn))
    return model


def spans_of(labels):
    return _spans_of(tuple(labels))


@cache
def _spans_of(labels):
    return [tuple(span) for span in spans_from_tags(labels)]


def touching(spans, forbidden):
    """Whether one of the pairs of types follow each other directly."""
    return any(a[1] == b[0] and (a[2], b[2]) in forbidden for a, b in pairwise(sorted(spans)))


# Each rule with what it says of the labels of a sequence, given its words: how it is drawn.
def tag_scheme(rng, X):
    scheme = str(rng.choice(["IOB1", "IO", "auto"]))
    rule = TagScheme(scheme)
    if scheme == "IO":  # has no B
        return Steps(forbidden=[("B", "B")]), lambda s, y: not touching(spans_of(y), {("B", "B")})
    return rule, lambda s, y: not illegal_tags([y], "IOB1")  # which "auto" is for these


def steps(rng, X):
    pairs = [*product(TAGS, repeat=2)]
    chosen = [pairs[i] for i in rng.choice(len(pairs), 11, replace=False)]
    if rng.random() < 0.5:
        return Steps(allowed=chosen), lambda s, y: all(pair in chosen for pair in pairwise(y))
    few = chosen[:4]
    return Steps(forbidden=few), lambda s, y: not any(pair in few for pair in pairwise(y))


def steps_of_types(rng, X):
    forbidden = [("A", "B"), ("B", "A"), ("A", "A")][: rng.integers(1, 4)]
    return Steps(forbidden), lambda s, y: not touching(spans_of(y), forbidden)


def ends(rng, X):
    first, last = (TAGS[k] for k in rng.integers(4, size=2))
    rule = Ends(first=[first, "O"], last={last, "I-A"})
    return rule, lambda s, y: not y or (y[0] in (first, "O") and y[-1] in (last, "I-A"))


def allowed_at(rng, X):
    rule = AllowedAt({1: ["A", "O"], -1: "B", -4: ["O", "B-A"]})

    def keeps(s, y):
        return (
            (len(y) < 2 or y[1] != "I-B")
            and (not y or y[-1] == "I-B")
            and (len(y) < 4 or y[-4] in ("O", "B-A"))
        )

    return rule, keeps


def allowed_with(rng, X):
    label = TAGS[rng.integers(4)]
    rule = AllowedWith({"is:u": [label, "O"], "is:w": TAGS[:3]})

    def keeps(s, y):
        given = [token["is"] for token in X[s]]
        wrong = [(w == "u" and k not in (label, "O")) or (w, k) == ("w", "O")
                 for w, k in zip(given, y, strict=True)]  # fmt: skip
        return not any(wrong)

    return rule, keeps


def known_labels(rng, X):
    options = [UNLABELED, UNLABELED, "O", "I-A", {"B-A", "I-B"}]
    rows = [[options[i] for i in rng.integers(5, size=len(tokens))] for tokens in X]

    def keeps(s, y):
        return all(
            k is UNLABELED or k == label or (isinstance(k, set) and label in k)
            for k, label in zip(rows[s], y, strict=True)
        )

    return Known(rows), keeps


def known_spans(rng, X, spans_of=spans_of):
    spans = []
    for tokens in X:
        places = sorted(rng.choice(len(tokens) + 1, min(3, len(tokens) + 1), replace=False))
        pairs = [*pairwise(map(int, places))]
        spans.append([(i, j, str(rng.choice(["A", "B", "O"]))) for i, j in pairs])
        spans[-1] = [span for span in spans[-1] if rng.random() < 0.7]

    def keeps(s, y):
        found = spans_of(y)
        return all(set(y[i:j]) == {"O"} if k == "O" else (i, j, k) in found for i, j, k in spans[s])

    return Known(spans), keeps


def count(rng, X):
    least, most = int(rng.integers(2)), int(rng.integers(1, 3))
    rule = Count("A", at_least=least, at_most=most)
    return rule, lambda s, y: least <= sum(span[2] == "A" for span in spans_of(y)) <= most


RULES = [count, tag_scheme, steps, steps_of_types, ends, allowed_at, allowed_with, known_labels,
         known_spans]  # fmt: skip


def of_forest(rng, X, parents):
    forbidden = [(TAGS[i], TAGS[j]) for i, j in rng.integers(4, size=(3, 2))]

    def keeps(s, y):
        steps = [(y[up], k) for up, k in zip(parents[s], y, strict=True) if up is not None]
        return not any(step in forbidden for step in steps)

    return Steps(forbidden), keeps


def drawn(rng, X, rules):
    """Draw some of the rules, and the predicate that they stand for."""
    chosen = rng.choice(len(rules), rng.integers(1, 4), replace=False)
    pairs = [rules[i](rng, X) for i in chosen]
    return [rule for rule, _ in pairs], lambda s, y: all(keeps(s, y) for _, keeps in pairs)


def check(model, data, rules, keeps, listed):
    """Compare what a model says under rules, given its labelings and shares of each sequence."""
    kept = [np.array([keeps(s, y) for y in labelings]) for s, (labelings, _) in enumerate(listed)]
    dead = [str(s) for s, legal in enumerate(kept) if not legal.any()]
    if dead:
        with pytest.raises(ValueError, match=f"sequence ({'|'.join(dead)}): no labeling keeps to"):
            model.predict(data, constraints=rules)
        return 0
    found = [
        np.where(legal, shares, 0.0) / shares[legal].sum()
        for legal, (_, shares) in zip(kept, listed, strict=True)
    ]
    proba = model.predict_proba(data, constraints=rules)
    best = model.predict(data, constraints=rules)
    classes, rng = model.classes_.tolist(), np.random.default_rng(0)
    asked = [int(rng.integers(len(shares))) for shares in found]
    logs = model.sequence_log_proba(
        data, [y[i] for (y, _), i in zip(listed, asked, strict=True)], constraints=rules
    )
    for s, ((labelings, _), shares) in enumerate(zip(listed, found, strict=True)):
        assert shares[labelings.index(best[s])] == pytest.approx(shares.max(), rel=1e-9)
        expected = np.zeros((len(labelings[0]), len(classes)))
        for labels, share in zip(labelings, shares, strict=True):
            expected[np.arange(len(labels)), [classes.index(label) for label in labels]] += share
        np.testing.assert_allclose(proba[s], expected, atol=1e-11)
        assert np.exp(logs[s]) == pytest.approx(shares[asked[s]], abs=1e-12)
    check_lists(model, data, rules, [labelings for labelings, _ in listed], found)
    return 1


def check_lists(model, data, rules, listed, found):
    """Compare what a model says of several labelings, given the shares of all."""
    ranked = model.predict_n_best(data, 3, constraints=rules)
    samples = model.sample(data, 4, random_state=0, constraints=rules)
    entropy = model.entropy(data, constraints=rules)
    certain = model.confidence(data, constraints=rules)
    for s, (labelings, shares) in enumerate(zip(listed, found, strict=True)):
        top = np.sort(shares[shares > 0.0])[::-1][:3]
        np.testing.assert_allclose([one.probability for one in ranked[s]], top, rtol=1e-9)
        for one in ranked[s]:
            share = shares[labelings.index(one.labels)]
            assert one.probability == pytest.approx(share, rel=1e-9)
        assert all(shares[labelings.index(labels)] > 0.0 for labels in samples[s])
        assert entropy[s] == pytest.approx(entr(shares).sum(), rel=1e-9, abs=1e-12)
        assert certain[s] == pytest.approx(shares.max(), rel=1e-9)
    if data.topology is None:
        asked = [[(0, 1, "A"), (0, 2, "B"), (1, 2, "A")][: len(each[0])] for each in listed]
        asked = [[span for span in spans if span[1] <= len(each[0])]
                 for spans, each in zip(asked, listed, strict=True)]  # fmt: skip
        proba = model.predict_span_proba(data, asked, constraints=rules)
        for s, (labelings, shares) in enumerate(zip(listed, found, strict=True)):
            spans = [set(spans_of(labels)) for labels in labelings]
            theirs = [shares[[span in each for each in spans]].sum() for span in asked[s]]
            np.testing.assert_allclose(proba[s], theirs, atol=1e-11)


def all_labelings(model, data):
    """Return the labelings of each sequence, and their probabilities without rules."""
    listed = []
    for s, length in enumerate(data.lengths.tolist()):
        labelings = [list(labels) for labels in product(model.classes_.tolist(), repeat=length)]
        logs = model.sequence_log_proba(data[[s] * len(labelings)], labelings)
        listed.append((labelings, np.exp(logs)))
    return listed


@pytest.fixture
def sparse(monkeypatch):
    monkeypatch.setattr(chain_blocks, "SPARSE_LABELS", 2)
    monkeypatch.setattr(chain_blocks, "SPARSE_SHARE", 1.0)


@pytest.fixture
def long(monkeypatch):
    for module in (_parallel, chain_blocks, chain):
        monkeypatch.setattr(module, "LONG_TOKENS", 2)
    monkeypatch.setattr(long_chain, "BLOCK_TOKENS", 2)


@pytest.mark.parametrize("kind", ["dense", "sparse", "long"])
def test_random_problems_of_chains_have_the_legal_labelings(request, kind):
    if kind != "dense":
        request.getfixturevalue(kind)
    model, rng = fit_chain(1), np.random.default_rng(7)
    answered = 0
    X = words(rng)
    data = model.vectorizer_.transform(X)
    assert isinstance(model._model_for(data).model.structure, SparseChain) == (kind == "sparse")
    listed = all_labelings(model, data)
    for _ in range(PROBLEMS):
        answered += check(model, data, *drawn(rng, X, RULES), listed)
    assert answered


def test_random_problems_of_forests_have_the_legal_labelings():
    model, rng, answered = fit_forest(0), np.random.default_rng(8), 0
    X = words(rng)
    forest = random_forest(rng, LENGTHS)
    parents = [
        [None if up < 0 else int(up - begin) for up in forest.before[begin:end]]
        for begin, end in pairwise(forest.offsets.tolist())
    ]
    data = SequenceVectorizer().fit(X).transform(X).with_topology(forest)
    listed = all_labelings(model, data)
    rules = [lambda rng, X: of_forest(rng, X, parents), allowed_with, known_labels]
    for _ in range(PROBLEMS):
        answered += check(model, data, *drawn(rng, X, rules), listed)
    assert answered


def of_steps(rng, X):
    pairs = [*product("ABO", repeat=2)]
    forbidden = [pairs[i] for i in rng.integers(len(pairs), size=3)]

    def keeps(s, path):
        return not any((a[2], b[2]) in forbidden for a, b in pairwise(path))

    return Steps(forbidden), keeps


def of_ends(rng, X):
    first, last = (str(rng.choice([*"ABO"])) for _ in range(2))

    def keeps(s, path):
        return not path or (path[0][2] in (first, "O") and path[-1][2] in (last, "A"))

    return Ends([first, "O"], [last, "A"]), keeps


def labels_of(path):
    return [label for start, stop, label in path for _ in range(start, stop)]


def of_places(rng, X):
    rule = AllowedAt({0: ["A", "B"], -2: "A"})

    def keeps(s, path):
        labels = labels_of(path)
        return labels[:1] != ["O"] and labels[-2:-1] in ([], ["A"])

    return rule, keeps


def of_words(rng, X):
    rule = AllowedWith({"is:u": ["B", "O"]})

    def keeps(s, path):
        return all(
            token["is"] != "u" or label != "A"
            for token, label in zip(X[s], labels_of(path), strict=True)
        )

    return rule, keeps


def of_spans(rng, X):
    rule, _ = known_spans(rng, X)
    known = [[span for span in spans if span[1] - span[0] < 3] for spans in rule.y]
    known = [[(i, j, k) for i, j, k in spans if k != "O" or j == i + 1] for spans in known]
    return Known(known), lambda s, path: all(span in path for span in known[s])


OF_SEGMENTS = [of_steps, of_ends, of_places, of_words, of_spans]


@pytest.mark.parametrize("seed", [0, 1], ids=["single tokens outside", "runs outside"])
def test_random_problems_of_segments_have_the_legal_segmentations(seed):
    model, rng, answered = fit_segments(seed), np.random.default_rng(9), 0
    X = words(rng)
    listed = [enumerated(model, tokens) for tokens in X]
    classes = model.classes_.tolist()
    for _ in range(PROBLEMS):
        rules, keeps = drawn(rng, X, OF_SEGMENTS)
        rules.append(TagScheme())  # all that a model of segments writes is legal
        kept = [
            np.array([keeps(s, path) for path in paths]) & (shares > 0.0)
            for s, (paths, shares) in enumerate(listed)
        ]
        dead = [s for s, each in enumerate(kept) if not each.any()]
        if dead:
            with pytest.raises(ValueError, match=rf"sequence {dead[0]}.*(keeps to|Known)"):
                model.predict(X, constraints=rules)
            continue
        answered += 1
        best = model.predict_spans(X, constraints=rules)
        proba = model.predict_proba(X, constraints=rules)
        asked = [[span for span in paths[-1] if span[2] != "O"] for paths, _ in listed]
        spans = model.predict_span_proba(X, asked, constraints=rules)
        for s, ((paths, shares), legal) in enumerate(zip(listed, kept, strict=True)):
            given = np.where(legal, shares, 0.0) / shares[legal].sum()
            top = [span for span in paths[int(given.argmax())] if span[2] != "O"]
            assert [tuple(span) for span in best[s]] == top
            expected = np.zeros((len(X[s]), len(classes)))
            for path, share in zip(paths, given, strict=True):
                for start, stop, label in path:
                    expected[start:stop, classes.index(label)] += share
            np.testing.assert_allclose(proba[s], expected, atol=1e-11)
            theirs = [sum(given[[one in path for path in paths]]) for one in asked[s]]
            np.testing.assert_allclose(spans[s], theirs, atol=1e-11)
    assert answered


def runs_of(labels):
    ends = [0, *accumulate(len([*run]) for _, run in groupby(labels))]
    return [(i, j, labels[i]) for i, j in pairwise(ends) if labels[i] != "O"]


WRITTEN = {
    "BILOU": (["B-A", "I-A", "L-A", "U-B", "O"], spans_of),
    "IOE1": (["I-A", "E-A", "I-B", "O"], spans_of),
    "runs": (["A", "B", "O"], runs_of),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_random_problems_of_known_spans_are_read_as_labels_are(name):
    tags, read = WRITTEN[name]
    model, rng, answered = fit_chain(2, tags), np.random.default_rng(3), 0
    X = words(rng)
    listed = all_labelings(model, model.vectorizer_.transform(X))
    for _ in range(PROBLEMS):
        rule, keeps = known_spans(rng, X, read)
        kept = [
            np.array([keeps(s, y) for y in labelings]) for s, (labelings, _) in enumerate(listed)
        ]
        if not all(legal.any() for legal in kept):
            with pytest.raises(ValueError, match="no labeling keeps to Known of the span"):
                model.predict(X, constraints=rule)
            continue
        answered += 1
        best = model.predict(X, constraints=rule)
        logs = model.sequence_log_proba(X, best, constraints=rule)
        for s, ((labelings, shares), legal) in enumerate(zip(listed, kept, strict=True)):
            given = np.where(legal, shares, 0.0) / shares[legal].sum()
            assert given[labelings.index(best[s])] == pytest.approx(given.max(), rel=1e-9)
            assert np.exp(logs[s]) == pytest.approx(given.max(), rel=1e-9)
    assert answered


@pytest.mark.parametrize("rule", [Contiguous(), NotTogether([])], ids=str)
def test_rules_about_no_label_change_nothing(rule):
    crf = fit_chain(0, ["O"])
    X = words(np.random.default_rng(0))
    assert crf.predict(X, constraints=rule) == crf.predict(X)
    np.testing.assert_array_equal(crf.entropy(X, constraints=rule), 0.0)


@pytest.mark.parametrize("rule", [None, Contiguous([*TAGS, "A"])], ids=str)
def test_entropies_of_tokens_are_those_of_their_probabilities(rule):
    crf = fit_chain(1)  # more copies of labels than a vector has numbers
    X = words(np.random.default_rng(1))
    for data in (X, X[1:2], []):
        found = crf.entropy(data, of="tokens", constraints=rule)
        proba = crf.predict_proba(data, constraints=rule)
        assert [len(each) for each in found] == [len(each) for each in data]
        for own, rows in zip(found, proba, strict=True):
            np.testing.assert_allclose(own, entr(rows).sum(axis=1), atol=1e-12)
