"""Kernels: the model of the weights they stand for, support tokens, input of any form."""

import pickle

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import crfkit
from crfkit import MaxMarginCRF, PackedSequences
from crfkit.persistence import ModelFileError
from crfkit.solvers.margin import BlockFrankWolfe, KernelFrankWolfe
from tests.estimators.checks import parametrize_variants

EXACT = KernelFrankWolfe(tol=1e-6, max_iter=3000)


def inner_products(a, b):
    """The linear kernel, as a function."""
    return a @ b.T


def make_words(seed=0, count=25, shift=0.0):
    """Sequences of points in the plane; the label is whether their coordinates agree in sign."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, 2)) + shift for n in rng.integers(1, 6, size=count)]
    return X, [["same" if a * b > 0 else "other" for a, b in x] for x in X]


@pytest.fixture(scope="module")
def words():
    return make_words()


def test_a_linear_kernel_is_the_model_of_the_weights(words):
    X, y = words
    kernel = MaxMarginCRF(kernel=inner_products, solver=EXACT).fit(X, y)
    primal = MaxMarginCRF(
        solver=BlockFrankWolfe(tol=1e-5, max_iter=5000), all_possible_states=True
    ).fit(X, y)
    assert kernel.objective_ == pytest.approx(primal.objective_, rel=1e-5)
    tokens = np.concatenate(X)
    np.testing.assert_allclose(
        tokens[kernel.support_].T @ kernel.dual_coef_, primal.coef_.toarray(), atol=2e-3
    )
    np.testing.assert_allclose(kernel.transitions_, primal.transitions_, atol=2e-3)
    new = make_words(1)[0]
    assert kernel.predict(new) == primal.predict(new)


@pytest.mark.parametrize("max_gib", [2.0, 1e-5])
def test_labels_of_first_and_last_tokens_have_weights_too(words, max_gib):
    X, y = words
    solver = KernelFrankWolfe(tol=1e-6, max_iter=3000, max_gib=max_gib)
    kernel = MaxMarginCRF(kernel=inner_products, solver=solver, boundary_weights=True).fit(X, y)
    primal = MaxMarginCRF(
        solver=BlockFrankWolfe(tol=1e-5, max_iter=5000), boundary_weights=True,
        all_possible_states=True,
    ).fit(X, y)  # fmt: skip
    assert kernel.objective_ == pytest.approx(primal.objective_, rel=2e-5)
    np.testing.assert_allclose(kernel.start_weights_, primal.start_weights_, atol=1e-2)
    np.testing.assert_allclose(kernel.end_weights_, primal.end_weights_, atol=1e-2)
    assert np.abs(kernel.start_weights_).max() > 0.05
    new = make_words(1)[0]
    assert kernel.predict(new) == primal.predict(new)


@parametrize_variants([MaxMarginCRF(kernel="rbf")], reading=False)
def test_it_passes_the_checks_of_estimators(estimator, check):
    check(estimator)


def test_kernels_separate_what_weights_cannot(words):
    new, truth = make_words(1, 60)
    assert MaxMarginCRF().fit(*words).score(new, truth) < 0.7
    for kernel, params in [("poly", {"degree": 2}), ("rbf", None)]:
        model = MaxMarginCRF(C=10.0, kernel=kernel, kernel_params=params).fit(*words)
        assert model.score(new, truth) > 0.85
        assert model.gap_ <= 1e-3 * model.objective_


def test_tokens_without_support_have_no_part_in_it(words):
    X, y = words
    model = MaxMarginCRF(C=5.0, kernel="poly", kernel_params={"degree": 2}).fit(X, y)
    n_tokens = sum(map(len, X))
    assert model.dual_coef_.shape == (len(model.support_), 2)
    assert 0 < len(model.support_) < n_tokens
    assert model.dual_coef_.any(axis=1).all()
    np.testing.assert_array_equal(model.support_vectors_.dense, np.concatenate(X)[model.support_])
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-9)


def test_precomputed_values_are_those_of_the_kernel(words):
    X, y = words
    tokens = np.concatenate(X)
    new = make_words(1)[0]
    named = MaxMarginCRF(kernel="rbf", kernel_params={"gamma": 0.7}, solver=EXACT).fit(X, y)
    rows = [rbf_kernel(x, tokens, gamma=0.7) for x in X]
    given = MaxMarginCRF(kernel="precomputed", solver=EXACT).fit(rows, y)
    assert given.objective_ == pytest.approx(named.objective_, rel=1e-6)
    predicted = given.predict([rbf_kernel(x, tokens, gamma=0.7) for x in new])
    assert predicted == named.predict(new)
    assert given.support_vectors_ is None
    assert given.n_features_in_ == len(tokens)


def test_sparse_dense_and_named_features_are_the_same(words):
    X, y = words
    dicts = [[{"a": a, "b": b} for a, b in x.tolist()] for x in X]
    models = [
        MaxMarginCRF(kernel="poly", kernel_params={"degree": 2}, solver=EXACT).fit(form, y)
        for form in (X, dicts, crfkit.SequenceVectorizer().fit_transform(dicts))
    ]
    new = make_words(1)[0]
    new_dicts = [[{"a": a, "b": b} for a, b in x.tolist()] for x in new]
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-6)
    assert models[0].predict(new) == models[1].predict(new_dicts)
    assert models[1].predict(new_dicts) == models[2].predict(
        models[1].vectorizer_.transform(new_dicts)
    )
    assert list(models[1].feature_names_in_) == ["a", "b"]


def test_steps_are_learned_too():
    """Labels that only their neighbors tell: the attributes are noise."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(12)]
    y = [["a", "b", "a", "b"]] * 12
    model = MaxMarginCRF(C=10.0, kernel="rbf").fit(X, y)
    a, b = 0, 1
    assert model.transitions_[a, b] > model.transitions_[a, a]
    assert model.transitions_[a, a] == 0.0  # never seen: no weight, as without a kernel
    free = MaxMarginCRF(C=10.0, kernel="rbf", all_possible_transitions=True).fit(X, y)
    assert free.transitions_[a, a] < 0.0


def test_empty_sequences_have_no_labels(words):
    model = MaxMarginCRF(kernel="rbf").fit(*words)
    assert model.predict([words[0][0], np.zeros((0, 2))])[1] == []
    assert model.predict([]) == []


def test_one_label_has_no_support():
    X = [np.ones((2, 1)), np.ones((1, 1))]
    model = MaxMarginCRF(kernel="rbf").fit(X, [["a", "a"], ["a"]])
    assert len(model.support_) == 0
    assert model.predict(X) == [["a", "a"], ["a"]]


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_results_do_not_depend_on_the_number_of_threads(words, n_jobs):
    one, other = (MaxMarginCRF(kernel="rbf", n_jobs=jobs).fit(*words) for jobs in (1, n_jobs))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    np.testing.assert_array_equal(one.transitions_, other.transitions_)


def test_a_weight_of_two_is_as_good_as_having_a_sequence_twice(words):
    X, y = words
    weight = np.ones(len(X))
    weight[:5] = 2.0
    weight[5] = 0.0
    one = MaxMarginCRF(kernel="rbf", solver=EXACT).fit(X, y, sample_weight=weight)
    keep = [*range(5), *range(5), *range(6, len(X))]
    two = MaxMarginCRF(kernel="rbf", solver=EXACT).fit([X[i] for i in keep], [y[i] for i in keep])
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", inner_products, "precomputed"])
def test_models_come_back_from_files(words, kernel, tmp_path):
    X, y = words
    if kernel == "precomputed":
        X = [inner_products(x, np.concatenate(X)) for x in X]
    model = MaxMarginCRF(kernel=kernel, solver=KernelFrankWolfe(steps=3)).fit(X, y)
    crfkit.save(model, tmp_path / "model.crfkit")
    allowed = [inner_products] if callable(kernel) else []
    for restored in (
        crfkit.load(tmp_path / "model.crfkit", allow=allowed), pickle.loads(pickle.dumps(model)),
    ):  # fmt: skip
        assert restored.predict(X) == model.predict(X)
        np.testing.assert_array_equal(restored.dual_coef_, model.dual_coef_)


def test_damaged_models_are_refused(words, tmp_path):
    model = MaxMarginCRF(kernel="rbf").fit(*words)
    for name, value in [
        ("dual_coef_", model.dual_coef_[:-1]),
        ("transitions_", np.zeros((3, 3))),
        ("support_", model.support_.astype(float)),
        ("support_vectors_", None),
        ("support_vectors_", PackedSequences.from_flat(np.ones((2, 2)), [2])),
    ]:
        damaged = pickle.loads(pickle.dumps(model))
        setattr(damaged, name, value)
        crfkit.save(damaged, tmp_path / "model.crfkit")
        with pytest.raises(ModelFileError):
            crfkit.load(tmp_path / "model.crfkit")


def test_a_refit_leaves_nothing_of_another_kernel(words):
    model = MaxMarginCRF(kernel="rbf").fit(*words)
    with pytest.raises(AttributeError, match="no weights of attributes"):
        _ = model.state_features_
    model.set_params(kernel="linear").fit(*words)
    assert not hasattr(model, "dual_coef_")
    fresh = clone(model).fit(*words)
    assert model.predict(words[0]) == fresh.predict(words[0])
    model.set_params(kernel="rbf").fit(*words)
    assert not hasattr(model, "coef_")
    assert dict(model.transition_features_)


def test_the_tolerance_of_the_default_method_counts_for_kernels_too(words):
    loose = MaxMarginCRF(kernel="rbf", solver=BlockFrankWolfe(tol=0.2)).fit(*words)
    tight = MaxMarginCRF(kernel="rbf", solver=BlockFrankWolfe(tol=1e-4)).fit(*words)
    assert loose.n_iter_ < tight.n_iter_
    assert tight.gap_ <= 1e-4 * tight.objective_


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "cubic"}, ValueError, "kernel='cubic'"),
        ({"kernel": 3}, (TypeError, ValueError), "kernel=3"),
        ({"kernel": "rbf", "kernel_params": 2.0}, TypeError, "kernel_params=2.0 must be a dict"),
        ({"kernel": "rbf", "kernel_params": {"gama": 1}}, TypeError, "gama"),
        ({"kernel": "rbf", "solver": "smo"}, ValueError, "solver='smo' needs kernel='linear'"),
        ({"kernel": "rbf", "loss": "slack_rescaling"}, ValueError, "margin rescaling"),
        ({"kernel": "rbf", "cost": "zero_one"}, ValueError, "a sum over tokens"),
        ({"kernel": "precomputed"}, ValueError, r"matrix of shape \(T, \d+\).* 2 dense features"),
        ({"kernel": "rbf", "solver": KernelFrankWolfe(max_gib=1e-9)}, ValueError, "more than"),
        ({"kernel_params": {"gamma": 1.0}}, ValueError, "for other kernels than 'linear'"),
        ({"kernel": "rbf", "solver": BlockFrankWolfe(tol=-1.0)}, ValueError, "tol"),
        ({"kernel": "rbf", "solver": BlockFrankWolfe(steps="long")}, ValueError, "steps='long'"),
        ({"kernel": "rbf", "solver": BlockFrankWolfe(steps="classic")}, ValueError,
         r"BlockFrankWolfe\(steps='classic'\) needs kernel='linear'; .*KernelFrankWolfe"),
        ({"kernel": "rbf", "solver": BlockFrankWolfe(max_steps=2)}, ValueError, "max_steps=2"),
        ({"kernel": "rbf", "solver": BlockFrankWolfe(averaging=False)}, ValueError, "averaging"),
        ({"kernel": "rbf", "solver": BlockFrankWolfe(check_every=1)}, ValueError, "check_every=1"),
        ({"kernel": "rbf", "solver": BlockFrankWolfe(sampling="uniform")}, ValueError, "uniform"),
        ({"kernel": lambda a, b: -(a @ b.T)}, ValueError, "not positive semidefinite"),
        ({"kernel": lambda a, b: np.tril(a @ b.T)}, ValueError, "is not symmetric"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(words, options, error, message):
    with pytest.raises(error, match=message):
        MaxMarginCRF(**options).fit(*words)


def test_attributes_of_steps_need_weights(words):
    X, y = words
    data = PackedSequences.from_matrices(X)
    with pytest.raises(
        ValueError, match="attributes of transitions, whose weights need kernel='linear'"
    ):
        MaxMarginCRF(kernel="rbf").fit(data.with_transitions(data), y)


def test_new_sequences_need_the_same_features(words):
    model = MaxMarginCRF(kernel="rbf").fit(*words)
    with pytest.raises(ValueError, match="3 features a token, but 2 are expected"):
        model.predict([np.zeros((2, 3))])


def test_features_of_nystroem_come_close_to_the_kernel(words):
    """The way to scale: an approximate feature map of each token, and weights."""
    X, y = words
    new, truth = make_words(1, 60)
    tokens = np.concatenate(X)
    mapping = Nystroem(gamma=0.5, n_components=len(tokens), random_state=0).fit(tokens)

    def of_tokens(sequences):
        return [mapping.transform(x) for x in sequences]

    pipeline = make_pipeline(
        FunctionTransformer(of_tokens), MaxMarginCRF(C=5.0, all_possible_states=True)
    ).fit(X, y)
    kernel = MaxMarginCRF(C=5.0, kernel="rbf", kernel_params={"gamma": 0.5}).fit(X, y)
    assert pipeline[-1].objective_ == pytest.approx(kernel.objective_, rel=5e-3)
    assert pipeline.score(new, truth) > 0.85


def test_values_for_some_of_the_tokens_say_what_folds_have_to_take(words):
    X, y = words
    rows = [inner_products(x, np.concatenate(X)) for x in X]
    with pytest.raises(ValueError, match="Folds of a cross-validation must take some of the col"):
        MaxMarginCRF(kernel="precomputed").fit(rows[1:], y[1:])


def test_a_function_may_return_a_sparse_matrix(words):
    X, y = words
    dicts = [[{"a": a, "b": b} for a, b in x.tolist()] for x in X]
    sparse = MaxMarginCRF(kernel=inner_products, solver=EXACT).fit(dicts, y)
    dense = MaxMarginCRF(kernel=inner_products, solver=EXACT).fit(X, y)
    assert issparse(sparse.support_vectors_._rows(0, 1))
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    assert sparse.predict(dicts) == dense.predict(X)
