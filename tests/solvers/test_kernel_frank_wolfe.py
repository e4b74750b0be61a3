"""Frank-Wolfe steps from kernel values: the optimum of the weights, bookkeeping, memory."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.potentials.kernelized import Gram, Kernel
from crfkit.solvers.historical.margin_dual import SMO
from crfkit.solvers.margin.kernel_frank_wolfe import KernelBlocks, KernelFrankWolfe, _Search
from tests.objective.test_batch import make_data
from tests.solvers.test_margin_dual import LENGTHS, kernel_objective, margin_objective, solve


@pytest.fixture
def problem():
    return make_data(np.random.default_rng(0), "dense", lengths=LENGTHS)


def test_the_linear_kernel_has_the_optimum_of_weights(problem):
    data, codes = problem
    with ThreadMap(1) as threads:
        other = solve(SMO(tol=1e-3, max_iter=3000), margin_objective(data, codes, threads))
        result = solve(KernelFrankWolfe(tol=1e-6), kernel_objective(data, codes, threads))
    assert result.converged
    assert result.value - result.gap <= other.value
    assert other.value - other.gap <= result.value


def test_a_kernel_is_the_inner_product_of_its_feature_map(problem):
    """The quadratic kernel without constant, and the products of all pairs of features."""
    data, codes = problem
    x = data.dense
    products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    mapped = PackedSequences(dense=products, offsets=data.offsets)
    with ThreadMap(1) as threads:
        kernel = kernel_objective(data, codes, threads, kernel="poly", degree=2, gamma=1, coef0=0)
        result = solve(KernelFrankWolfe(tol=1e-8, max_iter=2000), kernel)
        direct = solve(
            KernelFrankWolfe(tol=1e-8, max_iter=2000), kernel_objective(mapped, codes, threads)
        )
    assert result.value == pytest.approx(direct.value, rel=1e-7)


def test_scores_and_the_dual_are_what_the_coefficients_say(problem):
    data, codes = problem
    weight = np.repeat(np.arange(1.0, 1.0 + len(LENGTHS)), LENGTHS)
    random = np.random.RandomState(0)
    with ThreadMap(1) as threads:
        objective = kernel_objective(data, codes, threads, weight=weight, penalty=0.2)
        search, duals = _Search(KernelBlocks(objective, 2**30)), [0.0]
        for _ in range(6):
            for sequence in random.permutation(len(search.batches)).tolist():
                search.update(sequence, 3)
                duals.append(search.lower_bound)
    assert (np.diff(duals) >= -1e-10).all()
    gram = data.dense @ data.dense.T
    np.testing.assert_allclose(search.state.unary.T, gram @ search.state.dual, atol=1e-10)
    dual, pair = np.zeros_like(search.state.dual), np.zeros((3, 3))
    for sequence, corners in enumerate(search.vertices):
        number = int(corners.number[0])
        shares, paths = corners.alphas[:number], corners.labels[:number]
        assert shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert (shares > 0.0).all()
        assert len({tuple(path) for path in paths.tolist()}) == number
        begin, end = data.offsets[sequence : sequence + 2]
        truth = codes[begin:end][None]
        factor = search.batches.weight[sequence] / (2.0 * search.c2)
        for labels, share in [
            (truth, 1.0), *zip(paths[:, None], -shares, strict=True)
        ]:  # fmt: skip
            np.add.at(dual, (np.arange(begin, end), labels[0]), factor * share)
            np.add.at(pair, (labels[0, :-1], labels[0, 1:]), factor * share)
    np.testing.assert_allclose(search.state.dual, dual, atol=1e-10)
    np.testing.assert_allclose(
        search.state.pair[:, :3], pair * search.problem.learned[:, :3], atol=1e-10
    )
    assert not search.state.pair[:, 3:].any()


def test_the_optimum_does_not_depend_on_where_kernel_values_are_kept(problem):
    data, codes = problem
    results = []
    for gib in (2.0, 8 * 19 * 5 / 2**30):  # all, and those of one sequence of 5 tokens
        with ThreadMap(1) as threads:
            solver = KernelFrankWolfe(tol=1e-8, max_iter=2000, max_gib=gib)
            results.append(solve(solver, kernel_objective(data, codes, threads)))
    assert data.n_tokens == 19
    assert results[0].value == pytest.approx(results[1].value, rel=1e-7)


@pytest.mark.parametrize("max_bytes", [8 * 19 * 5, 8 * 19 * 12, 8 * 19 * 19])
def test_rows_are_those_of_the_whole_matrix(problem, max_bytes):
    data, _ = problem
    gram = Gram(Kernel("rbf", {"gamma": 0.3}), data, max_bytes)
    whole = Gram(Kernel("rbf", {"gamma": 0.3}), data, 2**30)
    for sequence in [7, 0, 3, 7, 8, 1, 7, 9]:
        np.testing.assert_allclose(gram.rows(sequence), whole.rows(sequence), atol=1e-12)


def test_too_little_memory_is_an_error_that_names_it(problem):
    with pytest.raises(ValueError, match="5 tokens.* 19 tokens take 760 bytes, more than the 759"):
        Gram(Kernel("linear", {}), problem[0], 759)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: np.zeros((2, 2)), r"array of shape \(2, 2\) for matrices of 19 and 19 rows"),
        (lambda a, b: np.full((len(a), len(b)), np.nan), "NaN or infinite"),
        (lambda a, b: a @ np.triu(np.ones((a.shape[1], b.shape[1]))) @ b.T, "is not symmetric"),
    ],
)
def test_kernels_that_return_nonsense_are_refused(problem, function, message):
    with pytest.raises(ValueError, match=message):
        Gram(Kernel(function, {}), problem[0], 2**30)


def test_weights_need_another_solver(problem):
    with ThreadMap(1) as threads, pytest.raises(ValueError, match="KernelFrankWolfe is for kernel"):
        solve(KernelFrankWolfe(), margin_objective(*problem, threads))


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_features_of_any_size(problem, scale):
    data, codes = problem
    scaled = PackedSequences(dense=data.dense * scale, offsets=data.offsets)
    with ThreadMap(1) as threads:
        result = solve(KernelFrankWolfe(max_iter=300), kernel_objective(scaled, codes, threads))
    assert np.isfinite(result.parameters).all()
    assert 0.0 <= result.value - result.gap <= result.value


def test_equal_tokens_share_their_kernel_values_and_steps_repeat():
    """Words whose steps come several times, so that differences have weights above 1."""
    data = PackedSequences.from_flat(np.ones((12, 1)), [6, 6])
    codes = np.array([0, 1, 0, 1, 0, 1, 2, 2, 2, 2, 2, 2], np.int32)
    with ThreadMap(1) as threads:
        objective = kernel_objective(data, codes, threads)
        search, duals = _Search(KernelBlocks(objective, 2**30)), [0.0]
        for sequence in [0, 1] * 20:
            search.update(sequence, 1)
            duals.append(search.lower_bound)
        best = solve(KernelFrankWolfe(tol=1e-9, max_iter=5000), objective)
        other = solve(SMO(tol=1e-3, max_iter=5000), margin_objective(data, codes, threads,
                                                                      all_states=True))  # fmt: skip
    assert (np.diff(duals) >= -1e-12).all()
    np.testing.assert_allclose(
        search.state.unary.T, np.ones((12, 12)) @ search.state.dual, atol=1e-12
    )
    assert best.value - best.gap <= other.value
    assert other.value - other.gap <= best.value


def skewed(a, b):
    """A kernel whose value depends on the order of the tokens."""
    return a @ np.triu(np.ones((a.shape[1], b.shape[1]))) @ b.T


def test_an_asymmetric_kernel_is_refused_where_rows_are_computed_on_demand(problem):
    gram = Gram(Kernel(skewed, {}), problem[0], 8 * 19 * 5)
    with pytest.raises(ValueError, match="skewed.* is not symmetric"):
        gram.rows(int(np.argmax(LENGTHS)))


def test_values_that_differ_by_rounding_are_symmetric(problem):
    data = problem[0]

    def rounded(a, b):
        values = a @ b.T
        return values + 1e-12 * np.triu(np.ones(values.shape))

    assert Gram(Kernel(rounded, {}), data, 2**30).rows(0).shape == (3, 19)


@pytest.mark.parametrize("matrix", [-np.eye(2), np.diag([1.0, -1.0]), np.diag([-1e6, 1e-3])])
def test_a_kernel_that_is_not_positive_semidefinite_is_refused(matrix):
    rng = np.random.default_rng(0)
    data = PackedSequences(dense=rng.normal(size=(40, 2)), offsets=np.arange(0, 41, 4))
    codes = rng.integers(0, 3, size=40).astype(np.int32)

    def indefinite(a, b):
        return a @ matrix @ b.T

    with ThreadMap(1) as threads:
        objective = kernel_objective(data, codes, threads, kernel=indefinite)
        with pytest.raises(ValueError, match="kernel is not positive semidefinite"):
            solve(KernelFrankWolfe(), objective)


def test_a_kernel_of_rank_one_is_positive_semidefinite_but_for_rounding():
    """Many differences of features have a norm of 0, which rounding may make negative."""
    rng = np.random.default_rng(0)
    data = PackedSequences(dense=np.full((40, 3), 1.0 / 7.0), offsets=np.arange(0, 41, 4))
    codes = rng.integers(0, 3, size=40).astype(np.int32)
    with ThreadMap(1) as threads:
        result = solve(KernelFrankWolfe(), kernel_objective(data, codes, threads))
    assert result.converged


def test_a_negative_norm_of_all_weights_is_refused(problem):
    """Where no single step shows it: the coefficients are set to a direction that does."""
    data, codes = problem
    with ThreadMap(1) as threads:
        search = _Search(KernelBlocks(kernel_objective(data, codes, threads), 2**30))
        search.state.dual[:], search.state.unary[:] = 1.0, -1.0
        with pytest.raises(ValueError, match="not positive semidefinite"):
            search.evaluate(search.weights())
