"""What all solvers of the max-margin problem have in common."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from crfkit import losses
from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.labels.costs import AdditiveCost
from crfkit.losses import HingeLoss, LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.linear import choose_features
from crfkit.solvers import LBFGS
from crfkit.solvers.margin import BlockFrankWolfe, CuttingPlane, Subgradient
from crfkit.structures import Chain
from tests.solvers.margins import enumerated_optimum, enumerated_value, margin_problem

COST = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 1.0, 0.0]])
LOSSES = {
    "hamming": HingeLoss(),
    "costs": HingeLoss(AdditiveCost(COST)),
    "zero-one": HingeLoss("zero_one"),
    "slack": HingeLoss(rescaling="slack"),
    "slack zero-one": HingeLoss("zero_one", rescaling="slack"),
}
# Each with the distance from the optimum, as a share of the objective, that it is to reach.
SOLVERS = {
    "segments": (BlockFrankWolfe(tol=1e-5, max_iter=5000), 1e-5),
    "pairwise": (BlockFrankWolfe(steps="pairwise", tol=1e-5, max_iter=5000), 1e-5),
    "classic": (BlockFrankWolfe(steps="classic", tol=2e-2, max_iter=5000), 2e-2),
    "uniform": (BlockFrankWolfe(sampling="uniform", averaging=False, tol=1e-4), 1e-4),
    "subgradient": (Subgradient(tol=2e-1, max_iter=2000), 2e-1),
    "last": (Subgradient(averaging=False, tol=3e-1, max_iter=2000), 3e-1),
    "one slack": (CuttingPlane(tol=1e-6), 1e-6),
    "n slacks": (CuttingPlane(slack="n", tol=1e-6), 1e-6),
}
ALL = pytest.mark.parametrize("name", SOLVERS)


def solve(solver, objective, **options):
    return solver.solve(objective, np.zeros(objective.n_parameters), **options)


@pytest.mark.parametrize("loss", LOSSES)
def test_all_reach_the_optimum_of_the_program_over_all_labelings(loss):
    c2 = 1.0 if loss == "hamming" else 0.5
    weight = [1.0, 1.0, 0.5, 2.0, 1.5]
    with margin_problem(loss=LOSSES[loss], c2=c2, weight=weight) as objective:
        best, w = enumerated_optimum(objective)
        for name, (solver, tol) in SOLVERS.items():
            result = solve(solver, objective)
            assert result.converged, name
            value = enumerated_value(objective, result.parameters)
            np.testing.assert_allclose(result.value, value, rtol=1e-10)
            assert best * (1 - 1e-7) <= value <= best / (1 - tol) * (1 + 1e-7), name
            if tol <= 1e-5:
                np.testing.assert_allclose(result.parameters, w, atol=np.sqrt(2 * tol * best / c2))


@ALL
def test_the_gap_bounds_the_distance_from_the_optimum_at_every_record(name):
    solver, _ = SOLVERS[name]
    with margin_problem(3, c2=0.3, boundaries=True, blocks="sparse dense") as objective:
        best = solve(CuttingPlane(tol=1e-9), objective)
        history = solve(solver, objective).history
    lowest = best.value - best.gap
    for record in history:
        assert record.gap >= 0.0
        assert record.value - record.gap <= best.value
        assert record.value >= lowest


@ALL
def test_a_weight_of_two_is_a_repeated_sequence(name):
    solver, tol = SOLVERS[name]
    rng = np.random.default_rng(0)
    x, codes = rng.normal(size=(6, 3)), np.array([0, 1, 2, 1, 0, 2], np.int32)
    results = []
    for rows, lengths, weight in (
        ([0, 1, 2, 3, 4, 5], [2, 3, 1], [2.0, 1.0, 1.0]),
        ([0, 1, 0, 1, 2, 3, 4, 5], [2, 2, 3, 1], [1.0] * 4),
    ):
        data = PackedSequences(dense=x[rows], offsets=np.cumsum([0, *lengths]))
        model = choose_features(data, codes[rows], 3)
        with ThreadMap(1) as threads:
            objective = Objective(
                model, Chain(), HingeLoss(), ElasticNet(0.0, 0.3), data, codes[rows],
                np.repeat(weight, lengths), threads,
            )  # fmt: skip
            results.append(solve(solver, objective).value)
    np.testing.assert_allclose(results[0], results[1], rtol=2 * tol)


@ALL
def test_a_sequence_of_weight_zero_does_not_count(name):
    solver, tol = SOLVERS[name]
    with margin_problem(weight=[1.0, 1.0, 0.0, 1.0, 0.0]) as objective:
        best, _ = enumerated_optimum(objective)
        value = solve(solver, objective).value
    assert best * (1 - 1e-7) <= value <= best / (1 - tol) * (1 + 1e-7)


@ALL
@pytest.mark.parametrize("lengths", [(), (0, 0), (1,), (0, 3, 0)])
def test_little_data_is_enough(name, lengths):
    with margin_problem(lengths=lengths) as objective:
        result = solve(SOLVERS[name][0], objective)
    assert result.converged
    assert len(result.parameters) == objective.n_parameters
    assert result.value >= 0.0
    if not sum(lengths):
        assert result.value == 0.0
        assert not result.parameters.any()


@ALL
def test_one_label_costs_nothing(name):
    data = PackedSequences(dense=np.ones((3, 1)), offsets=[0, 2, 3])
    codes = np.zeros(3, np.int32)
    model = choose_features(data, codes, 1)
    with ThreadMap(1) as threads:
        objective = Objective(
            model, Chain(), HingeLoss(), ElasticNet(0.0, 1.0), data, codes, np.ones(3), threads
        )
        result = solve(SOLVERS[name][0], objective)
    assert result.converged
    assert result.value == 0.0


@ALL
def test_results_are_bit_equal_for_any_number_of_threads(name):
    solver, _ = SOLVERS[name]
    found = []
    lengths = tuple(np.random.default_rng(1).integers(0, 6, size=30).tolist())
    for n_jobs in (1, 3):
        with margin_problem(n_jobs=n_jobs, lengths=lengths, c2=0.3, n_features=6) as objective:
            short = type(solver)(**solver.get_params() | {"max_iter": 4, "tol": 0.0})
            found.append(solve(short, objective))
    for other in found[1:]:
        np.testing.assert_array_equal(other.parameters, found[0].parameters)
        assert [r.value for r in other.history] == [r.value for r in found[0].history]
        assert [r.gap for r in other.history] == [r.gap for r in found[0].history]


@ALL
def test_a_callback_sees_each_record_and_stops_the_search(name):
    seen = []

    def callback(record, w):
        seen.append((record, w.copy()))
        return record.iteration >= 2

    solver, _ = SOLVERS[name]
    with margin_problem(c2=0.05) as objective:
        exact = type(solver)(**solver.get_params() | {"tol": 0.0})
        result = solve(exact, objective, callback=callback)
        for record, w in seen:
            np.testing.assert_allclose(enumerated_value(objective, w), record.value, rtol=1e-10)
    assert result.message == "stopped by a callback"
    assert not result.converged
    assert [record for record, _ in seen] == result.history


@ALL
def test_ctrl_c_keeps_the_last_record(name):
    def callback(record, w):
        if record.iteration >= 2:
            raise KeyboardInterrupt

    solver, _ = SOLVERS[name]
    with margin_problem(c2=0.05) as objective:
        exact = type(solver)(**solver.get_params() | {"tol": 0.0})
        result = solve(exact, objective, callback=callback)
        value = enumerated_value(objective, result.parameters)
    assert result.interrupted
    assert result.history[-1].value == result.value
    np.testing.assert_allclose(value, result.value, rtol=1e-10)


@ALL
def test_no_iteration_is_a_result_too(name):
    solver, _ = SOLVERS[name]
    with margin_problem() as objective:
        none = type(solver)(**solver.get_params() | {"max_iter": 0})
        result = solve(none, objective)
        slacks = objective.data.n_tokens
    assert result.n_iter == 0
    assert not result.converged
    assert "max_iter=0" in result.message
    np.testing.assert_allclose(result.value, slacks)  # every token may be wrong
    np.testing.assert_allclose(result.gap, slacks)


@ALL
def test_a_start_is_never_made_worse(name):
    solver, tol = SOLVERS[name]
    with margin_problem(2, c2=0.5) as objective:
        best = solve(CuttingPlane(tol=1e-9), objective)
        result = solver.solve(objective, best.parameters)
    if name not in ("subgradient", "last"):
        assert result.value <= best.value * (1 + 1e-12)
    assert result.value <= best.value / (1 - tol)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_features_of_any_size_leave_the_certificates_true(scale):
    with margin_problem(c2=0.1, scale=scale) as objective:
        records = [
            record
            for solver, _ in SOLVERS.values()
            for record in solve(
                type(solver)(**solver.get_params() | {"max_iter": 30}), objective
            ).history
        ]
    least = min(record.value for record in records)
    assert max(record.value - record.gap for record in records) <= least
    assert np.isfinite([record.value for record in records]).all()


def svm_data(rng, intercept):
    x = rng.normal(size=(40, 5))
    y = np.argmax(x[:, :3] + 0.8 * rng.normal(size=(40, 3)), axis=1)
    return (np.column_stack([x, np.ones(40)]) if intercept else x), y


@pytest.mark.parametrize(("C", "intercept"), [(0.5, False), (0.05, True)])
def test_sequences_of_length_one_are_the_multiclass_svm(rng, intercept, C):
    """Crammer and Singer's; scikit-learn penalizes the intercept too."""
    x, y = svm_data(rng, intercept)
    svm = LinearSVC(
        multi_class="crammer_singer", C=C, fit_intercept=intercept, tol=1e-12,
        max_iter=1_000_000, random_state=0,
    ).fit(x[:, :5], y)  # fmt: skip
    data = PackedSequences(dense=x, offsets=np.arange(41))
    codes = y.astype(np.int32)
    model = choose_features(data, codes, 3, all_states=True)
    with ThreadMap(1) as threads:
        objective = Objective(
            model, Chain(), HingeLoss(), ElasticNet(0.0, 0.5), data, codes, C * np.ones(40),
            threads,
        )  # fmt: skip
        for solver in (
            BlockFrankWolfe(tol=1e-13, max_iter=600, averaging=False, check_every=100),
            CuttingPlane(slack="n", tol=1e-13, max_iter=30),
        )[: 2 if C < 0.1 else 1]:
            result = solve(solver, objective)
            table = model.bind(result.parameters)["state"].dense
            np.testing.assert_allclose(table[:5], svm.coef_.T, atol=1e-6)
            if intercept:
                np.testing.assert_allclose(table[5], svm.intercept_, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "loss", "penalty", "words"),
    [
        ("pairwise", LogLoss(), (0.0, 1.0), "hinge loss"),
        ("pairwise", HingeLoss(), (0.0, 0.0), "L2 penalty"),
        ("subgradient", HingeLoss(), (0.0, 0.0), "L2 penalty"),
        ("one slack", HingeLoss(), (0.0, 0.0), "L2 penalty"),
        ("pairwise", HingeLoss(), (0.1, 1.0), "c1"),
        ("subgradient", HingeLoss(), (0.1, 1.0), "c1"),
        ("n slacks", HingeLoss(), (0.1, 1.0), "c1"),
    ],
)
def test_a_mismatch_is_a_readable_error(name, loss, penalty, words):
    with margin_problem(loss=loss) as objective:
        with pytest.raises(ValueError, match=words):
            solve(SOLVERS[name][0], objective.with_penalty(ElasticNet(*penalty)))


@pytest.mark.parametrize("solver", [Subgradient(tol=1e-2, max_iter=1000), CuttingPlane(tol=1e-5)])
def test_tangents_minimize_other_convex_losses_too(solver):
    with margin_problem(loss=losses.LogLoss(), c2=0.5) as objective:
        best = solve(LBFGS(tol=0.0, gtol=1e-9), objective)
        result = solve(solver, objective)
    assert result.converged
    assert best.value * (1 - 1e-9) <= result.value <= best.value * (1 + solver.tol)
    assert result.value - result.gap <= best.value * (1 + 1e-9)


def test_an_approximate_search_certifies_nothing():
    loss = HingeLoss(AdditiveCost(COST), rescaling="slack", search="approximate")
    for name in ("pairwise", "subgradient", "one slack", "n slacks"):
        with margin_problem(loss=loss) as objective:
            result = solve(SOLVERS[name][0], objective)
        assert np.isnan([record.gap for record in result.history]).all()
        assert result.converged


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (BlockFrankWolfe(steps="away"), "steps"),
        (BlockFrankWolfe(sampling="all"), "sampling"),
        (BlockFrankWolfe(averaging=1), "averaging"),
        (BlockFrankWolfe(tol=-1.0), "tol"),
        (BlockFrankWolfe(check_every=0), "check_every"),
        (Subgradient(averaging="no"), "averaging"),
        (Subgradient(batch_tokens=0), "batch_tokens"),
        (CuttingPlane(slack="two"), "slack"),
        (CuttingPlane(max_iter=-1), "max_iter"),
        (CuttingPlane(tol=np.nan), "tol"),
    ],
)
def test_bad_parameters_are_named(solver, words):
    with margin_problem() as objective, pytest.raises((ValueError, TypeError), match=words):
        solve(solver, objective)
