"""The CRF as a model: optimum, weights, decoding, stopping, warm start."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from crfkit import CRFClassifier, PackedSequences
from crfkit.solvers import LBFGS, OWLQN
from tests.sampling import in_turns

X = [
    [{"w": "the"}, {"w": "dog"}, {"w": "barks"}],
    [{"w": "a"}, {"w": "cat"}],
    [{"w": "dogs"}, {"w": "bark"}, {"w": "at"}, {"w": "the"}, {"w": "cat"}],
    [{"w": "the"}, {"w": "bark"}],
]
Y = [["D", "N", "V"], ["D", "N"], ["N", "V", "P", "D", "N"], ["D", "N"]]
EXACT = LBFGS(tol=0.0, gtol=1e-9)


def all_paths(length, n_labels):
    return np.array(np.meshgrid(*[range(n_labels)] * length, indexing="ij")).reshape(length, -1).T


def path_scores(crf, sequence):
    """Scores of all label paths of a sequence, from the public weights alone."""
    unary = np.zeros((len(sequence), len(crf.classes_)))
    for t, token in enumerate(sequence):
        for k, label in enumerate(crf.classes_):
            unary[t, k] = crf.state_features_.get((f"w:{token['w']}", label), 0.0)
    if crf.boundary_weights:
        unary[0] += crf.start_weights_
        unary[-1] += crf.end_weights_
    paths = all_paths(len(sequence), len(crf.classes_))
    steps = crf.transitions_[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    return paths, unary[np.arange(len(sequence)), paths].sum(axis=1) + steps


@pytest.mark.parametrize("boundary_weights", [False, True])
def test_probabilities_follow_from_the_public_weights(boundary_weights):
    crf = CRFClassifier(c2=0.1, boundary_weights=boundary_weights).fit(X, Y)
    log_proba = crf.sequence_log_proba(X, Y)
    for s, sequence in enumerate(X):
        paths, scores = path_scores(crf, sequence)
        codes = [crf.classes_.tolist().index(label) for label in Y[s]]
        gold = scores[(paths == codes).all(axis=1)]
        np.testing.assert_allclose(log_proba[s], gold[0] - logsumexp(scores), rtol=1e-10)
        p = np.exp(scores - logsumexp(scores))
        marginals = np.stack([(p[:, None] * (paths == k)).sum(axis=0) for k in range(4)], axis=1)
        np.testing.assert_allclose(crf.predict_proba([sequence])[0], marginals, atol=1e-12)
        best = paths[scores.argmax()]
        assert crf.predict([sequence])[0] == crf.classes_[best].tolist()


def test_the_objective_is_the_penalized_negative_log_likelihood():
    crf = CRFClassifier(c1=0.05, c2=0.3, solver=OWLQN(tol=0.0, gtol=1e-9)).fit(X, Y)
    w = np.concatenate([crf.coef_.data, crf.transitions_.ravel()])
    penalty = 0.05 * np.abs(w).sum() + 0.3 * (w**2).sum()
    value = -crf.sequence_log_proba(X, Y).sum() + penalty
    np.testing.assert_allclose(crf.objective_, value, rtol=1e-12)


def test_the_objective_counts_sample_weights():
    weight = np.array([1.0, 2.0, 0.5, 3.0])
    crf = CRFClassifier(c2=0.3, solver=EXACT).fit(X, Y, sample_weight=weight)
    w = np.concatenate([crf.coef_.data, crf.transitions_.ravel()])
    value = -(weight * crf.sequence_log_proba(X, Y)).sum() + 0.3 * (w**2).sum()
    np.testing.assert_allclose(crf.objective_, value, rtol=1e-12)


def test_a_weight_of_two_is_a_repeated_sequence():
    weighted = CRFClassifier(solver=EXACT).fit(X, Y, sample_weight=[2, 1, 1, 1])
    repeated = CRFClassifier(solver=EXACT).fit([X[0], *X], [Y[0], *Y])
    np.testing.assert_allclose(weighted.transitions_, repeated.transitions_, atol=1e-7)


def test_equal_token_weights_are_the_weight_of_the_sequence():
    sequences = CRFClassifier(solver=EXACT).fit(X, Y, sample_weight=[2, 1, 1, 3])
    tokens = [np.full(len(y), w) for y, w in zip(Y, [2, 1, 1, 3], strict=True)]
    by_token = CRFClassifier(solver=EXACT).fit(X, Y, sample_weight=tokens)
    np.testing.assert_array_equal(sequences.coef_.data, by_token.coef_.data)


def test_a_token_of_weight_zero_does_not_teach_its_label():
    wrong = [["D", "N", "V"], ["D", "V"], *Y[2:]]
    weight = [np.ones(3), np.array([1.0, 0.0]), np.ones(5), np.ones(2)]
    fits = [CRFClassifier(c2=0.1, solver=EXACT, all_possible_states=True,
                          all_possible_transitions=True).fit(X, y, sample_weight=weight)
            for y in (Y, wrong)]  # fmt: skip
    np.testing.assert_allclose(fits[0].transitions_, fits[1].transitions_, atol=1e-6)


def test_without_steps_a_crf_is_logistic_regression(rng):
    x = rng.normal(size=(60, 4))
    labels = rng.integers(3, size=60)
    packed = PackedSequences.from_flat(np.column_stack([x]), np.ones(60, int))
    crf = CRFClassifier(c2=0.5, solver=EXACT).fit(packed, labels[:, None].tolist())
    reference = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000)
    reference.fit(x, labels)
    np.testing.assert_allclose(crf.coef_.toarray().T, reference.coef_, atol=1e-5)
    proba = np.concatenate(crf.predict_proba(packed))
    np.testing.assert_allclose(proba, reference.predict_proba(x), atol=1e-5)


def test_dense_and_sparse_matrices_give_the_same_model(rng):
    x = [rng.normal(size=(4, 5)) * (rng.random((4, 5)) < 0.5) for _ in range(6)]
    y = [rng.integers(3, size=4).tolist() for _ in range(6)]
    forms = {
        "dense": x,
        "sparse": [sp.csr_array(matrix) for matrix in x],
        "packed": PackedSequences.from_matrices(x),
        "3-D": np.stack(x),
    }
    fits = {name: CRFClassifier(solver=EXACT).fit(form, y) for name, form in forms.items()}
    for name, crf in fits.items():
        assert crf.n_parameters_ == fits["dense"].n_parameters_
        np.testing.assert_allclose(
            crf.coef_.toarray(), fits["dense"].coef_.toarray(), atol=1e-7, err_msg=name
        )
        assert crf.predict(forms["dense"]) == crf.predict(forms["sparse"])


def test_an_l1_penalty_makes_weights_exactly_zero():
    crf = CRFClassifier(c1=0.5, c2=0.0).fit(X, Y)
    full = CRFClassifier(c1=0.0, c2=0.1).fit(X, Y)
    assert crf.n_parameters_ == full.n_parameters_
    assert 0 < crf.coef_.nnz < full.coef_.nnz
    assert crf.training_log_[-1].nonzero == crf.coef_.nnz + np.count_nonzero(crf.transitions_)


def test_only_seen_pairs_have_weights_unless_all_are_asked_for():
    seen = CRFClassifier().fit(X, Y)
    assert ("w:the", "V") not in seen.state_features_
    assert seen.transitions_[0, 0] == 0.0
    everything = CRFClassifier(all_possible_states=True, all_possible_transitions=True).fit(X, Y)
    n_attributes, n_labels = everything.n_features_in_, len(everything.classes_)
    assert everything.n_parameters_ == n_attributes * n_labels + n_labels**2
    assert ("w:the", "V") in everything.state_features_


def test_posterior_decoding_has_the_most_correct_labels_in_expectation():
    crf = CRFClassifier(c2=1.0).fit(X, Y)
    sequence = [{"w": "dogs"}, {"w": "cat"}, {"w": "new"}]
    paths, scores = path_scores(crf, sequence)
    p = np.exp(scores - logsumexp(scores))
    expected = [(p * (paths == guess).sum(axis=1)).sum() for guess in paths]
    viterbi = crf.predict([sequence])[0]
    posterior = crf.set_params(decoding="posterior").predict([sequence])[0]
    assert posterior == crf.classes_[paths[int(np.argmax(expected))]].tolist()
    correct = dict(zip(map(tuple, crf.classes_[paths]), expected, strict=True))
    assert correct[tuple(posterior)] >= correct[tuple(viterbi)]


def test_labels_unknown_to_the_model_have_probability_zero_and_count_as_errors():
    crf = CRFClassifier().fit(X, Y)
    assert crf.sequence_log_proba(X[:2], [["D", "N", "NEW"], Y[1]])[0] == -np.inf
    predicted = crf.predict(X[:1])
    assert crf.score(X[:1], [[*predicted[0][:2], "NEW"]]) == pytest.approx(2 / 3)


def test_views_are_mappings_of_names_to_weights():
    crf = CRFClassifier().fit(X, Y)
    view = crf.state_features_
    assert view["w:dog", "N"] == crf.coef_[crf.feature_names_in_.tolist().index("w:dog"), 1]
    assert len(view) == len(list(view)) == len(dict(view))
    assert ("w:dog", "V") not in view
    assert "w:dog" not in view
    strongest, weight = view.top(1)[0]
    assert abs(weight) == max(map(abs, view.values())) == abs(view[strongest])
    assert crf.transition_features_["D", "N"] == crf.transitions_[0, 1]
    assert f"{len(view)} weights" in repr(view)
    unnamed = CRFClassifier().fit([np.eye(2)], [["a", "b"]])
    assert set(unnamed.state_features_) == {(0, "a"), (1, "b")}


def test_a_warm_start_continues_where_the_last_fit_ended():
    crf = CRFClassifier(c2=0.1, solver=EXACT, warm_start=True).fit(X, Y)
    first = crf.n_iter_
    assert crf.fit(X, Y).n_iter_ <= 1 < first


def test_a_warm_start_matches_new_attributes_and_labels_by_name():
    crf = CRFClassifier(c2=0.1, boundary_weights=True, warm_start=True).fit(X, Y)
    weights, steps = dict(crf.state_features_), dict(crf.transition_features_)
    more = [*X, [{"w": "AAA"}, {"w": "dog"}]]
    crf.set_params(max_iter=0)
    with pytest.warns(ConvergenceWarning):
        crf.fit(more, [*Y, ["A", "N"]])
    assert dict(crf.state_features_) == weights
    assert dict(crf.transition_features_) == steps
    assert crf.classes_.tolist() == ["A", "D", "N", "P", "V"]
    assert crf.start_weights_[0] == 0.0


def test_without_warm_start_a_fit_forgets_the_last_one():
    crf = CRFClassifier(c2=0.1).fit(X, Y)
    again = CRFClassifier(c2=0.1).fit(X[:2], Y[:2])
    crf.fit(X[:2], Y[:2])
    np.testing.assert_array_equal(crf.coef_.data, again.coef_.data)


def test_a_fit_that_did_not_converge_says_what_stopped_and_what_to_try():
    with pytest.warns(ConvergenceWarning, match="max_iter=2 .*gradient norm.*Increase max_iter"):
        crf = CRFClassifier(max_iter=2).fit(X, Y)
    assert (crf.n_iter_, crf.converged_) == (2, False)
    assert len(crf.training_log_) == 3


def test_control_c_keeps_the_model_trained_so_far_and_says_so(monkeypatch):
    from crfkit.training import fit

    def interrupt(self, record, parameters):
        if record.iteration == 3:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(fit.FitProgress, "__call__", interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted by the user after 3 iterations"):
        crf = CRFClassifier().fit(X, Y)
    assert (crf.n_iter_, crf.converged_) == (3, False)
    assert len(crf.predict(X)) == 4
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        three = CRFClassifier(max_iter=3).fit(X, Y)
    np.testing.assert_array_equal(three.coef_.data, crf.coef_.data)


@pytest.mark.parametrize(("verbose", "lines"), [(0, 0), (1, 3), (2, 7)])
def test_verbose_prints_progress(capsys, verbose, lines):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CRFClassifier(max_iter=4, verbose=verbose).fit(X, Y)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == lines
    if lines:
        assert shown[0] == "13 weights (9 attribute x label, 4 label x label)"
        assert "objective" in shown[1]
        assert "stopped after 4" in shown[-1]


def test_verbose_changes_nothing_with_generators():
    loud = CRFClassifier(verbose=1).fit(iter(X), iter(Y))
    quiet = CRFClassifier().fit(X, Y)
    np.testing.assert_array_equal(loud.coef_.data, quiet.coef_.data)


def test_one_label_and_one_token_are_enough():
    crf = CRFClassifier().fit([[["a"]]], [["only"]])
    assert crf.predict([[["b"], ["a"]], []]) == [["only", "only"], []]
    np.testing.assert_array_equal(crf.predict_proba([[["a"]]])[0], [[1.0]])


def test_a_sequence_of_a_hundred_thousand_tokens_fits_and_predicts(rng):
    labels = rng.integers(2, size=100_000).tolist()
    tokens = [[f"w{label}"] if rng.random() < 0.9 else ["noise"] for label in labels]
    crf = CRFClassifier(solver=LBFGS(tol=1e-3)).fit([tokens], [labels])
    assert crf.score([tokens], [labels]) > 0.9
    assert np.isfinite(crf.objective_)


def test_solver_parameters_are_reached_by_name():
    crf = CRFClassifier(solver=LBFGS()).set_params(solver__tol=1e-3, solver__memory=3)
    assert (crf.solver.tol, crf.solver.memory) == (1e-3, 3)
    assert crf.fit(X, Y).converged_
    assert (
        CRFClassifier(solver=LBFGS(max_iter=50), max_iter=1000)._problem().solver.max_iter == 1000
    )


def test_a_badly_scaled_feature_is_named(rng):
    x = [rng.normal(size=(5, 4)) * [1, 1, 1e6, 1] for _ in range(20)]
    y = [rng.integers(2, size=5).tolist() for _ in range(20)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        crf = CRFClassifier().fit(x, y)
    messages = [str(warning.message) for warning in caught]
    assert any("feature 2 is about" in message for message in messages)
    assert crf.converged_ or any("did not converge" in message for message in messages)


@pytest.mark.parametrize(
    ("solver", "seed"), in_turns(["auto", "lbfgs", "owlqn", "oeg", "cg", "sag", "sgd"], [1, 5])
)
def test_features_of_ten_thousand_are_not_called_converged_far_from_the_optimum(solver, seed):
    """A second-order method is certain of the optimum."""
    rng = np.random.default_rng(seed)
    weights, lengths = rng.normal(size=(5, 3)), rng.integers(3, 9, size=30)
    X = [1e4 * rng.normal(size=(length, 5)) for length in lengths]
    scores = [x @ weights / 1e4 + rng.gumbel(size=(len(x), 3)) for x in X]
    y = [rows.argmax(axis=1).tolist() for rows in scores]
    best = CRFClassifier(c2=1.0, solver="newton").fit(X, y)
    assert best.converged_ and best.gap_ < 1e-6 * best.objective_
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        crf = CRFClassifier(c2=1.0, solver=solver).fit(X, y)
    above = crf.objective_ - best.objective_
    assert above < 2e-3 * best.objective_ or not crf.converged_
    assert crf.converged_ or any(w.category is ConvergenceWarning for w in caught)
    assert crf.gap_ >= above


def test_a_flat_sparse_matrix_is_refused_with_advice():
    crf = CRFClassifier().fit([np.eye(2)], [["a", "b"]])
    for form in (sp.csr_matrix(np.eye(2)), sp.csr_array(np.eye(2)), sp.coo_matrix(np.eye(2))):
        with pytest.raises(TypeError, match="from_flat"):
            crf.predict(form)


def test_weights_can_be_replaced_after_a_prediction():
    crf = CRFClassifier().fit(X, Y)
    before = crf.predict_proba(X)
    crf.transitions_ = np.zeros_like(crf.transitions_)
    assert not np.allclose(before[0], crf.predict_proba(X)[0])


@pytest.mark.parametrize("solver", ["lbfgs", "oeg", "owlqn"])
@pytest.mark.parametrize("c1", [0.0, 0.2])
def test_the_gap_bounds_the_distance_from_the_optimum(solver, c1):
    if solver == "lbfgs" and c1:
        return
    rng = np.random.default_rng(0)
    X = [
        [{"a": str(rng.integers(4)), "b": str(rng.integers(4))} for _ in range(5)] for _ in "x" * 20
    ]
    y = [rng.integers(3, size=5).tolist() for _ in X]
    best = CRFClassifier(c1=c1, c2=0.5, solver=OWLQN(tol=0.0, gtol=1e-10)).fit(X, y).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early = CRFClassifier(c1=c1, c2=0.5, solver=solver, max_iter=3).fit(X, y)
        unknown = CRFClassifier(c1=0.3, c2=0.0, max_iter=3).fit(X, y)
    assert 0.0 <= early.objective_ - best <= early.gap_
    assert np.isnan(unknown.gap_)


@pytest.mark.parametrize("step", [1, -1])
def test_weights_set_by_hand_may_come_in_any_order(step):
    """Weights of all pairs are read as a table, which an entry in another place would mix up."""
    crf = CRFClassifier(all_possible_states=True, c2=0.1).fit(X, Y)
    expected, size = crf.predict_proba(X), len(crf.classes_)
    matrix = crf.coef_.toarray()
    assert np.all(matrix != 0.0)
    columns = np.tile(np.arange(size)[::step], len(matrix))
    rows = np.arange(len(matrix) + 1) * 2 * size
    # Each entry in two halves, one after the other.
    entries = np.repeat(matrix[:, ::step].ravel() / 2.0, 2), np.repeat(columns, 2), rows
    crf.coef_ = sp.csr_array(entries, matrix.shape)
    for ours, theirs in zip(crf.predict_proba(X), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert crf.coef_.nnz == 2 * matrix.size


def test_the_gap_of_a_value_that_the_log_does_not_have_is_unknown():
    class Short(LBFGS):
        def solve(self, objective, start, callback=None):
            return super().solve(objective, start, callback)._replace(history=[])

    assert np.isnan(CRFClassifier(solver=Short()).fit(X, Y).gap_)
    assert CRFClassifier(solver=LBFGS()).fit(X, Y).gap_ < 1.0


def test_a_warning_of_a_large_model_names_the_line_of_the_user(monkeypatch):
    monkeypatch.setattr("crfkit.training.fit.LARGE", 1)
    with pytest.warns(UserWarning, match="weights") as told:
        CRFClassifier().fit(X, Y)
    assert told[0].filename == __file__
