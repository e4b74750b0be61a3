"""Perceptrons and margins over segments, and the best segmentations of sequences."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from crfkit import MaxMarginCRF, SegmentLimits, Segments, SemiMarkovCRF, StructuredPerceptron, load
from crfkit.inference import BeamSearch
from crfkit.metrics import spans_from_tags
from crfkit.solvers import MIRA
from crfkit.solvers.margin import SMO, BlockFrankWolfe, CuttingPlane
from tests.estimators.checks import parametrize_variants

NAMES = {"LOC": ("new york", "paris", "rio de janeiro"), "PER": ("ada", "alan turing")}
WORDS = ("in", "is", "saw", "the")


def sentences(seed, count=24):
    """Sentences with names, and their tags."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        words, tags = [], []
        for _ in range(rng.integers(1, 4)):
            label = rng.choice(["LOC", "PER", "O"])
            if label == "O":
                words.append(str(rng.choice(WORDS)))
                tags.append("O")
                continue
            name = str(rng.choice(NAMES[label])).split()
            words += name
            tags += [f"B-{label}"] + [f"I-{label}"] * (len(name) - 1)
        X.append([{"w": word} for word in words])
        y.append(tags)
    return X, y


def spans_of(y):
    return [[(span.start, span.stop, span.label) for span in spans_from_tags(tags)] for tags in y]


MODELS = {
    "perceptron": StructuredPerceptron(structure=Segments(), max_iter=30),
    "passive-aggressive": StructuredPerceptron(
        structure=Segments(outside="long"), update="pa1", cost="hamming", max_iter=30
    ),
    "arow": StructuredPerceptron(structure=Segments(), update="arow", averaging=None),
    "mira": StructuredPerceptron(structure=Segments(), update="mira"),
    "batch": StructuredPerceptron(structure=Segments(), averaging="batch", max_iter=100),
    "bcfw": MaxMarginCRF(structure=Segments(), solver=BlockFrankWolfe(tol=1e-2)),
    "costs": MaxMarginCRF(
        structure=Segments(), cost={"LOC": 3.0}, solver=BlockFrankWolfe(tol=1e-2)
    ),
    "cutting plane": MaxMarginCRF(structure=Segments(), solver=CuttingPlane(tol=1e-2)),
    "approximate": MaxMarginCRF(
        structure=Segments(),
        loss="approximate_slack_rescaling",
        cost={"PER": 0.5},
        solver=BlockFrankWolfe(tol=5e-2),
    ),  # fmt: skip
}


@parametrize_variants(
    [
        StructuredPerceptron(structure=Segments()),
        MaxMarginCRF(structure=Segments(), C=0.1, solver=BlockFrankWolfe(tol=0.1)),
    ],
    reading=False,
)
def test_estimators_of_segments_pass_all_checks_but_those_of_warm_starts(estimator, check):
    if check.__name__ == "check_warm_start":
        with pytest.raises(ValueError, match="warm_start=True carries weights"):
            check(estimator)
    else:
        check(estimator)


@pytest.mark.parametrize("name", MODELS)
def test_segments_are_learned_and_found_in_new_sentences(name):
    X, y = sentences(0, 40)
    X_new, y_new = sentences(1, 12)
    model = clone(MODELS[name]).fit(X, y)
    tags = model.predict(X_new)
    assert [[tuple(s) for s in one] for one in model.predict_spans(X_new)] == spans_of(tags)
    assert model.score(X, y) > 0.9
    assert model.score(X_new, y_new) > 0.75
    assert model.score(X_new, spans_of(y_new)) == model.score(X_new, y_new)
    assert model.length_scores_.shape == (3, 3)


@pytest.mark.parametrize("name", ["perceptron", "bcfw"])
def test_labels_may_be_given_as_segments(name):
    X, y = sentences(0)
    by_tags = clone(MODELS[name]).fit(X, y)
    by_spans = clone(MODELS[name]).fit(X, spans_of(y))
    assert by_tags.predict(X) == by_spans.predict(X)
    np.testing.assert_array_equal(by_tags.coef_.data, by_spans.coef_.data)


@pytest.mark.parametrize("name", ["perceptron", "batch", "bcfw", "cutting plane"])
def test_results_are_bit_equal_for_any_number_of_threads(name):
    X, y = sentences(0)
    found = [clone(MODELS[name]).set_params(n_jobs=n, max_iter=3) for n in (1, 2, 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in found:
            model.fit(X, y)
    for other in found[1:]:
        np.testing.assert_array_equal(other.coef_.data, found[0].coef_.data)
        np.testing.assert_array_equal(other.length_scores_, found[0].length_scores_)


@pytest.mark.parametrize("name", ["perceptron", "bcfw"])
def test_models_of_segments_can_be_kept(name, tmp_path):
    X, y = sentences(0)
    model = clone(MODELS[name]).fit(X, y)
    model.save(tmp_path / "model.crfkit")
    for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.crfkit")):
        assert again.predict_spans(X) == model.predict_spans(X)
        assert again.predict_n_best(X[:3], 2) == model.predict_n_best(X[:3], 2)


@pytest.mark.parametrize("kind", [StructuredPerceptron, MaxMarginCRF])
def test_a_model_from_before_segments_is_one_of_tokens(kind):
    X, y = sentences(0)
    model = kind().fit(X, y)
    state = model.__getstate__()
    del state["structure"]
    again = kind.__new__(kind)
    again.__setstate__(state)
    assert again.structure == "chain"
    assert again.predict(X) == model.predict(X)


@pytest.mark.parametrize("kind", [StructuredPerceptron, partial(MaxMarginCRF, C=0.1)])
def test_a_fit_to_tokens_forgets_the_one_to_segments(kind):
    X, y = sentences(0)
    model = kind(structure=Segments()).fit(X, y)
    model.set_params(structure="chain").fit(X, y)
    assert model.predict(X) == kind().fit(X, y).predict(X)
    for name in ("length_scores_", "scheme_", "first_coef_", "segment_coef_"):
        assert not hasattr(model, name)
    model.set_params(structure=Segments()).fit(X, y)
    assert model.predict(X) == kind(structure=Segments()).fit(X, y).predict(X)


@pytest.mark.parametrize("kind", [StructuredPerceptron, MaxMarginCRF])
def test_models_of_tokens_have_no_segments(kind):
    X, y = sentences(0)
    model = kind().fit(X, y)
    assert not hasattr(model, "length_distribution")
    with pytest.raises(AttributeError) as error:
        model.length_distribution  # noqa: B018
    assert "fit one with structure=Segments(...)" in str(error.value.__cause__)
    for name in ("max_lengths_", "first_features_", "single_features_", "segment_features_"):
        with pytest.raises(AttributeError, match=r"of tokens, .*fit one with structure=Segments\("):
            getattr(model, name)
    for other in (model, kind(structure=Segments()).fit(X, y)):
        for name in ("expected_lengths", "likely_spans", "predict_span_proba"):
            with pytest.raises(AttributeError, match=f"has no probabilities, so no {name}: use"):
                getattr(other, name)


@pytest.mark.parametrize("kind", [StructuredPerceptron, partial(MaxMarginCRF, C=0.1)])
def test_predictions_are_those_of_the_fit_whatever_the_structure_is_by_now(kind):
    X, y = sentences(0)
    model = kind(structure=Segments()).fit(X, y)
    expected = model.predict(X), model.predict_spans(X), model.score(X, spans_of(y))
    model.set_params(structure="chain")
    assert (model.predict(X), model.predict_spans(X), model.score(X, spans_of(y))) == expected
    with pytest.raises(ValueError, match="learned those of segments: use warm_start=False"):
        model.set_params(warm_start=True).fit(X, y)
    chain = kind().fit(X, y)
    before = chain.predict(X), chain.predict_spans(X)
    chain.set_params(structure=Segments())
    assert (chain.predict(X), chain.predict_spans(X)) == before
    assert not hasattr(chain, "length_distribution")
    assert hasattr(kind(structure=Segments()), "length_distribution")


def test_batches_are_not_learned_by_a_model_of_segments():
    X, y = sentences(0)
    model = StructuredPerceptron(structure=Segments()).fit(X, y).set_params(structure="chain")
    with pytest.raises(ValueError, match="partial_fit learns labels of tokens, not of segments"):
        model.partial_fit(X, y)


@pytest.mark.parametrize("kind", [StructuredPerceptron, partial(MaxMarginCRF, C=0.1)])
def test_constraints_hold(kind):
    X, y = sentences(0)
    limits = SegmentLimits(forbidden=[("LOC", "LOC"), ("LOC", "PER")], too_long="split")
    cut = SegmentLimits(too_long="split")
    model = kind(structure=Segments(max_length=2, limits=cut))
    assert max(model.fit(X, y).max_lengths_.values()) == 2
    for one in model.predict_spans(sentences(1)[0]):
        assert all(segment.stop - segment.start <= 2 for segment in one)
    model.set_params(structure__max_length=None, structure__limits=limits)
    kept = [
        i for i, one in enumerate(spans_of(y))
        if not any(a[2] == "LOC" and a[1] == b[0] for a, b in zip(one, one[1:], strict=False))
    ]  # fmt: skip
    model.fit([X[i] for i in kept], [y[i] for i in kept])
    for one in model.predict_spans(sentences(1)[0]):
        for a, b in zip(one, one[1:], strict=False):
            assert not (a.label == "LOC" and a.stop == b.start)


def test_parameters_of_segments_can_be_searched():
    X, y = sentences(0)
    search = GridSearchCV(
        StructuredPerceptron(structure=Segments()), cv=2,
        param_grid={"structure__max_length": [3, None], "structure__outside": ["single", "long"]},
    ).fit(X, y)  # fmt: skip
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.9
    assert search.best_estimator_.predict_spans(X[:1])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (StructuredPerceptron(averaging="vote"), "averaging='vote'.*use averaging='average'"),
        (StructuredPerceptron(search=BeamSearch()), r"search=BeamSearch\(\).*use search=None"),
        (StructuredPerceptron(update=MIRA(n_best=2)), "n_best > 1.*use n_best=1"),
        (StructuredPerceptron(warm_start=True), "warm_start=True.*use structure='chain'"),
        (MaxMarginCRF(warm_start=True), "warm_start=True.*use structure='chain'"),
        (MaxMarginCRF(kernel="rbf"), "kernel='rbf' compares tokens.*use kernel='linear'"),
        (MaxMarginCRF(solver="smo"), "SMO needs a chain"),
        (MaxMarginCRF(solver=SMO()), "SMO needs a chain"),
        (MaxMarginCRF(loss="slack_rescaling"), "SemiMarkov has no best paths by numbers of errors"),
        (MaxMarginCRF(cost="zero_one"), "SemiMarkov has no best paths by numbers of errors"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_go_with_segments_is_a_readable_error(model, words):
    X, y = sentences(0)
    with pytest.raises(ValueError, match=words):
        model.set_params(structure=Segments()).fit(X, y)


@pytest.mark.parametrize("kind", [StructuredPerceptron, MaxMarginCRF])
@pytest.mark.parametrize(
    ("structure", "error", "words"),
    [
        ("tree", ValueError, "structure='tree' must be 'chain' or Segments"),
        (None, TypeError, "structure=None must be"),
        (Segments, TypeError, "must be 'chain' or Segments"),
        (Segments(outside="short"), ValueError, "outside"),
    ],
)
def test_bad_structures_are_named(kind, structure, error, words):
    X, y = sentences(0)
    with pytest.raises(error, match=words):
        kind(structure=structure).fit(X, y)


def test_batches_of_segments_are_not_learned_one_by_one():
    X, y = sentences(0)
    with pytest.raises(ValueError, match="partial_fit learns labels of tokens, not of segments"):
        StructuredPerceptron(structure=Segments()).partial_fit(X, y, classes=["LOC", "O", "PER"])


@pytest.mark.parametrize("outside", ["single", "long"])
def test_the_best_segmentations_have_the_largest_probabilities(outside):
    X, y = sentences(2)
    model = SemiMarkovCRF(outside=outside, c2=0.5, length="poisson").fit(X, y)
    short = [tokens[:3] for tokens in X[:6]]
    listed = model.predict_n_best(short, 1000, as_spans=True)
    for tokens, found in zip(short, listed, strict=True):
        levels = np.log([one.probability for one in found])
        assert (np.diff(levels) <= 0.0).all()
        np.testing.assert_allclose(np.exp(levels).sum(), 1.0, rtol=1e-10)
        assert found[0].labels == model.predict_spans([tokens])[0]
        for level, one in zip(levels[:5], found, strict=False):
            at_least = model.sequence_log_proba([tokens], [one.labels])[0]
            assert level <= at_least + 1e-9
            if outside == "single":
                np.testing.assert_allclose(level, at_least, atol=1e-9)


def test_fewer_segmentations_are_listed_where_there_are_no_more():
    X, y = sentences(0)
    model = StructuredPerceptron(structure=Segments()).fit(X, y)
    one, none = model.predict_n_best([X[0][:1], []], 10**12)
    assert len(one) == len(model.classes_)
    chain = SemiMarkovCRF(max_iter=3, max_length=9, outside="long")
    with pytest.warns(ConvergenceWarning):
        chain.fit(X, y)
    (all_,) = chain.predict_n_best([X[0][:4]], 10**12)
    assert len(all_) == 3 * 4**3  # no limit of a length forbids any
    assert chain.predict_n_best([X[0][:4]], 190)[0] == all_[:190]
    assert [tuple(empty)[:2] for empty in none] == [([], 0.0)]
    assert [len(best) for best in model.predict_n_best(X, 1)] == [1] * len(X)
