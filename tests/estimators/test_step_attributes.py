"""Attributes of transitions: transitions that depend on what is observed."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, _parallel
from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.features import SequenceVectorizer, TransitionFeatures, make_sequence_union
from crfkit.losses import LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.attributes import distinct_rows
from crfkit.potentials.choice import transition_columns
from crfkit.potentials.linear import choose_features
from crfkit.solvers import LBFGS
from crfkit.structures import Chain
from tests.oracles import chain_paths, enumerated_sum, finite_difference

WORDS = "a b c".split()


def random_block(rng, lengths, blocks="sparse", n_features=3):
    n_tokens = sum(lengths)
    x = rng.integers(0, 3, size=(n_tokens, n_features)) * (rng.random((n_tokens, n_features)) < 0.5)
    return PackedSequences(
        sp.csr_array(x.astype(float)) if "sparse" in blocks else None,
        rng.normal(size=(n_tokens, 2)) if "dense" in blocks else None,
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
    )


def random_problem(seed, blocks="sparse", lengths=(3, 1, 0, 4)):
    rng = np.random.default_rng(seed)
    data = random_block(rng, lengths).with_transitions(random_block(rng, lengths, blocks))
    return data, rng.integers(3, size=data.n_tokens).astype(np.int32), rng


@pytest.mark.parametrize("blocks", ["sparse", "dense", "sparse dense"])
@pytest.mark.parametrize("all_transitions", [False, True])
def test_gradient_equals_finite_differences(blocks, all_transitions):
    data, codes, rng = random_problem(0, blocks)
    model = choose_features(data, codes, 3, all_transitions=all_transitions, boundaries=True)
    with ThreadMap(1) as threads:
        objective = Objective(
            model, Chain(), LogLoss(), ElasticNet(0.0, 0.3), data, codes, rng.random(len(codes)),
            threads,
        )  # fmt: skip
        w = rng.normal(size=objective.n_parameters)
        _, gradient = objective.value_and_grad(w)
        numeric = finite_difference(lambda v: objective.value_and_grad(v)[0], w, 1e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-9)


def test_scores_of_steps_add_up_the_weights_of_their_attributes():
    data, codes, rng = random_problem(1)
    model = choose_features(data, codes, 3, all_transitions=True)
    w = rng.normal(size=model.n_parameters)
    (chunk,) = _parallel.make_chunks(data.offsets, 100)
    scores = model.scores(model.bind(w), data, chunk)
    table, triples = w[model.state.n_parameters :][:9], w[-27:].reshape(3, 3, 3)
    x = data.transitions.to_csr().toarray()
    for t in range(data.n_tokens):
        expected = table.reshape(3, 3) + np.tensordot(x[t], triples, axes=1)
        np.testing.assert_allclose(
            scores.pair[scores.transition_index[t]], expected, rtol=0, atol=1e-14
        )


def test_predictions_equal_enumeration():
    data, codes, rng = random_problem(2, "sparse dense")
    crf = fit(data, codes)
    model, weights = crf._model_for(data)
    (chunk,) = _parallel.make_chunks(data.offsets, 100)
    scores = model.scores(weights, data, chunk)
    _, expected = enumerated_sum(scores, np.ones(len(data)))
    np.testing.assert_allclose(
        np.concatenate(crf.predict_proba(data)), expected.unary, rtol=0, atol=1e-12
    )
    for s, labels in enumerate(crf.predict(data)):
        best = max(chain_paths(scores, s), key=lambda pair: pair[1])[0]
        assert labels == crf.classes_[list(best)].tolist()


def fit(data, codes, **params):
    labels = [codes[b:e].tolist() for b, e in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    filled = np.flatnonzero(data.lengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return CRFClassifier(**params).fit(data[filled], [labels[s] for s in filled])


def test_equal_rows_are_found_once():
    data, _, _ = random_problem(3, "sparse dense", lengths=(40, 30))
    for steps in (data.transitions, random_problem(4, "sparse", (60,))[0].transitions):
        rows, row_of = distinct_rows(steps, 5, steps.n_tokens - 3)
        matrix = steps.to_csr().toarray()[5:-3]
        np.testing.assert_array_equal(rows.to_csr().toarray()[row_of], matrix)
        assert rows.n_tokens == len(np.unique(matrix, axis=0))


def test_rows_whose_keys_collide_are_kept_apart(monkeypatch):
    steps = PackedSequences(sp.csr_array(np.eye(3)[[0, 1, 0, 2]]), offsets=[0, 4])
    monkeypatch.setattr("crfkit.potentials.attributes._row_keys", lambda *_: np.zeros(4, np.uint64))
    rows, row_of = distinct_rows(steps, 0, 4)
    np.testing.assert_array_equal(rows.to_csr().toarray()[row_of], steps.to_csr().toarray())


def test_no_step_leads_into_a_first_token():
    columns = transition_columns(np.array([0, 1, 1, 2, 0], np.int32), np.array([0, 2, 2, 5]), 3)
    assert columns.tolist() == [-1, 1, -1, 5, 6]


def test_only_triples_that_were_seen_have_a_weight():
    data, codes, _ = random_problem(5, lengths=(6, 1, 5))
    steps = choose_features(data, codes, 3).transition_attributes
    x, moves = data.transitions.to_csr().toarray(), transition_columns(codes, data.offsets, 3)
    for a in range(3):
        seen = sorted({int(m) for t, m in enumerate(moves) if m >= 0 and x[t, a]})
        assert steps.columns[steps.ptr[a] : steps.ptr[a + 1]].tolist() == seen


def test_a_rule_of_steps_is_learned():
    """The next label is the same after "a" and the other one after "b": only a step can tell."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(60):
        words = rng.choice(["a", "b"], size=8)
        flips = np.cumsum(words == "b") + rng.integers(2)
        X.append([["start" if t == 0 and flips[0] % 2 else "", w] for t, w in enumerate(words)])
        y.append([f"L{f % 2}" for f in flips])
    union = make_sequence_union(SequenceVectorizer(), TransitionFeatures(SequenceVectorizer()))
    packed = union.fit_transform(X)
    plain = CRFClassifier(c2=0.01).fit(packed.with_transitions(None), y)
    observed = CRFClassifier(c2=0.01).fit(packed, y)
    assert plain.score(packed.with_transitions(None), y) < 0.8
    assert observed.score(packed, y) > 0.95
    weights = dict(observed.transition_attributes_)
    assert weights["transitionfeatures__b", ("L0", "L1")] > 1.0
    assert ("transitionfeatures__b", ("L0", "L0")) not in weights  # was not seen


def test_results_are_bit_equal_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(_parallel, "CHUNK_CELLS", 60)
    data, codes, _ = random_problem(6, "sparse dense", tuple([4, 7, 2] * 20))
    fits = [fit(data, codes, n_jobs=n_jobs) for n_jobs in (1, 2, 3)]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.transition_coef_.data, fits[0].transition_coef_.data)
        np.testing.assert_array_equal(other.coef_.data, fits[0].coef_.data)


def test_small_chunks_and_blocks_give_the_same_model(monkeypatch):
    data, codes, _ = random_problem(7, lengths=tuple([4, 7, 2] * 20))
    whole = fit(data, codes, solver=LBFGS(tol=1e-12))
    monkeypatch.setattr(_parallel, "PAIR_CELLS", 60)
    monkeypatch.setattr(_parallel, "BLOCK_CELLS", 200)
    split = fit(data, codes, solver=LBFGS(tol=1e-12))
    assert split.objective_ == pytest.approx(whole.objective_, rel=1e-10)
    np.testing.assert_allclose(
        split.transition_coef_.toarray(), whole.transition_coef_.toarray(), rtol=0, atol=1e-4
    )


def test_warm_start_finds_the_weights_of_steps_by_name():
    union = make_sequence_union(SequenceVectorizer(), TransitionFeatures(SequenceVectorizer()))
    X = [[["a"], ["b"], ["a"]], [["b"], ["b"]]]
    y = [["X", "Y", "X"], ["Y", "X"]]
    crf = CRFClassifier(c2=0.1, warm_start=True).fit(union.fit_transform(X), y)
    more_X, more_y = [*X, [["_"], ["c"]]], [*y, ["A", "A"]]
    before = dict(crf.transition_attributes_)
    with pytest.warns(ConvergenceWarning, match="max_iter=0"):
        crf.set_params(max_iter=0).fit(union.fit_transform(more_X), more_y)
    assert before and before.items() <= dict(crf.transition_attributes_).items()


def test_a_pickled_model_predicts_the_same():
    data, codes, _ = random_problem(8)
    crf = fit(data, codes)
    again = pickle.loads(pickle.dumps(crf))
    assert again.predict(data) == crf.predict(data)


def test_features_without_steps_are_refused_by_a_model_with_them():
    data, codes, _ = random_problem(9)
    crf, plain = fit(data, codes), fit(data.with_transitions(None), codes)
    with pytest.raises(ValueError, match="X has no attributes of transitions, .* fitted with 3"):
        crf.predict(data.with_transitions(None))
    with pytest.raises(ValueError, match="X has 3 attributes of transitions, .* fitted with no"):
        plain.predict(data)
    assert plain.transition_attributes_ == {}
    with pytest.raises(AttributeError, match="without names"):
        crf.transition_feature_names_in_  # noqa: B018


def test_parameters_are_counted_before_fitting():
    data, codes, _ = random_problem(10, lengths=(3, 1, 4))
    y = [[f"{c}" for c in codes[b:e]] for b, e in zip(data.offsets, data.offsets[1:], strict=False)]
    for params in ({}, {"all_possible_transitions": True, "boundary_weights": True}):
        crf = CRFClassifier(**params)
        counts = crf.count_parameters(data, y)
        assert not hasattr(crf, "coef_")
        assert counts.total == crf.fit(data, y).n_parameters_
    assert counts.by_kind["attribute x label x label"] == 3 * 9
    assert "27 attribute x label x label" in str(counts)


def test_a_very_large_model_is_announced(monkeypatch):
    monkeypatch.setattr("crfkit.training.fit.LARGE", 10)
    data, codes, _ = random_problem(11, lengths=(3, 1, 4))
    y = [codes[b:e].tolist() for b, e in zip(data.offsets, data.offsets[1:], strict=False)]
    with pytest.warns(UserWarning, match="the model has .* weights .*min_freq"):
        CRFClassifier().fit(data, y)


def test_steps_must_have_the_same_lengths():
    data, _, rng = random_problem(12)
    with pytest.raises(ValueError, match="but transitions has 1"):
        data.with_transitions(random_block(rng, (2,)))
    with pytest.raises(ValueError, match="have transitions themselves"):
        data.with_transitions(data)
    with pytest.raises(TypeError, match="transitions must be PackedSequences or None, not int"):
        data.with_transitions(3)


def test_slices_take_their_steps_along():
    data, _, _ = random_problem(13)
    part = data[[3, 0]]
    np.testing.assert_array_equal(
        part.transitions.to_csr().toarray(),
        data.transitions.to_csr().toarray()[[4, 5, 6, 7, 0, 1, 2]],
    )
    assert part == data[[3, 0]]
    assert part != part.with_transitions(None)
    assert "attributes and 3 of transitions" in repr(part)
