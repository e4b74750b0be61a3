"""Solvers of problems of segments: the common optimum, certificates, threads, refusals."""

from __future__ import annotations

import contextlib
from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from crfkit._parallel import Chunk, ThreadMap
from crfkit.data import PackedSegments, PackedSequences
from crfkit.labels.costs import AdditiveCost, find_cost, hamming
from crfkit.losses import AnnealedHingeLoss, HingeLoss, LogLoss, SoftenedHingeLoss
from crfkit.losses.softmax_margin import SoftmaxMarginLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.semimarkov import TOKEN_PARTS, LengthBlock, choose_segment_features
from crfkit.solvers import LBFGS, OEG, OWLQN, SAG, SGD, SOLVERS, OnlineSolver
from crfkit.solvers.auto import AutoSolver
from crfkit.solvers.margin import SMO, BlockFrankWolfe, CuttingPlane, MarginEG, Subgradient
from tests.oracles import (
    all_segmentations,
    codes_of,
    finite_difference,
    random_runs,
    random_segment_codes,
)
from tests.sampling import in_turns

LABELS, LONGEST = 2, 3
# What is added to the scores of lengths: nothing; what forbids; and other scores beside that.
FIXED = {
    "free": np.zeros((LONGEST, LABELS)),
    "forbidden": np.array([[0.0, 0.0], [-np.inf, 0.0], [-np.inf, 0.0]]),
    "poisson": np.array([[0.0, 0.0], [-np.inf, 0.0], [-np.inf, -np.log(2.0)]]),
}


# The steps that are not allowed.
STEPS = {name: np.zeros((LABELS, LABELS), bool) for name in FIXED}
STEPS["forbidden"][1, 1] = True


def make_segments(rng, offsets):
    starts, stops = random_runs(rng, offsets, LONGEST, 0.4)
    rows = PackedSequences(sparse=sp.csr_array(np.array([[1.0, 0.0], [0.5, 2.0]])), offsets=[0, 2])
    return PackedSegments(rows, offsets, starts, stops, rng.integers(2, size=len(starts)))


@contextlib.contextmanager
def problem(
    fixed="forbidden", loss=None, penalty=(0.0, 0.5), lengths=(3, 0, 1, 4, 2), n_jobs=1, seed=0,
    weight=None, dense=False, rows=True, basis=None,
):  # fmt: skip
    """A small objective over segments, some of which have attributes of their own."""
    rng = np.random.default_rng(seed)
    offsets, steps, fixed = np.cumsum([0, *lengths]), STEPS[fixed], FIXED[fixed]
    most = LONGEST - np.argmax(fixed[::-1] > -np.inf, axis=0)
    codes = random_segment_codes(rng, offsets, most, steps)
    seen = np.eye(4)[codes] * (rng.random((len(codes), 4)) < 0.8)
    blocks = {"dense": rng.normal(size=(len(codes), 2)) + codes[:, None] % 2} if dense else {}
    data = PackedSequences(sparse=sp.csr_array(seen), offsets=offsets, **blocks)
    if rows:
        data = data.with_segments(make_segments(rng, offsets))
    basis = np.arange(LONGEST, dtype=float)[:, None] if basis is None else basis
    parts = np.ones((data.n_features, len(TOKEN_PARTS)), bool)
    model = choose_segment_features(
        data, codes, LABELS, parts=parts, all_states=True,
        lengths=LengthBlock(fixed, basis, np.ones((basis.shape[1], LABELS), bool)),
        boundaries=True, forbidden=steps, all_transitions=True,
    )  # fmt: skip
    weight = np.ones(len(lengths)) if weight is None else np.asarray(weight, float)
    with ThreadMap(n_jobs) as threads:
        yield Objective(
            model, model.structure, loss or LogLoss(), ElasticNet(*penalty), data, codes,
            np.repeat(weight, lengths), threads,
        )  # fmt: skip


def solve(solver, objective, **options):
    return solver.solve(objective, np.zeros(objective.n_parameters), **options)


def optimum(objective):
    return solve(LBFGS(tol=0.0, gtol=1e-10, max_iter=5000), objective)


# Each with how near the optimum it comes, as a share of the objective.
EXACT = {
    "lbfgs": (LBFGS(tol=0.0, gtol=1e-8), 1e-9),
    "owlqn": (OWLQN(tol=0.0, gtol=1e-8), 1e-9),
    "cg": (SOLVERS["cg"](tol=0.0, gtol=1e-8), 1e-9),
    "cg preconditioned": (SOLVERS["cg"](tol=0.0, gtol=1e-8, preconditioner=True), 1e-9),
    "newton": (SOLVERS["newton"](tol=0.0, gtol=1e-8), 1e-9),
    "rprop": (SOLVERS["rprop"](tol=0.0, gtol=1e-6), 1e-9),
    "oeg": (OEG(tol=1e-6, max_iter=2000, batch_tokens=4), 1e-6),
    "sag": (SAG(tol=1e-6, max_iter=2000, batch_tokens=4), 1e-5),
    "sgd": (SGD(tol=1e-7, max_iter=3000, batch_tokens=4), 1e-2),
    "auto": (AutoSolver(), 1e-4),
}


@pytest.mark.parametrize(("name", "fixed"), in_turns(EXACT, FIXED))
def test_solvers_reach_the_common_optimum(name, fixed):
    solver, tol = EXACT[name]
    with problem(fixed, weight=[1.0, 1.0, 2.0, 0.5, 0.0]) as objective:
        best = optimum(objective)
        result = solve(solver, objective)
    assert result.converged
    assert best.value * (1 - 1e-12) <= result.value <= best.value * (1 + tol)


@pytest.mark.parametrize("name", ["gis", "iis"])
def test_iterative_scaling_reaches_it_too(name):
    with problem("forbidden", lengths=(3, 1, 2)) as objective:
        best = optimum(objective)
        result = solve(SOLVERS[name](tol=1e-9), objective)
    assert result.converged
    np.testing.assert_allclose(result.value, best.value, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fixed": "poisson"}, "fixed part"),
        ({"basis": -np.ones((LONGEST, 1))}, "lengths are negative"),
    ],
)
def test_iterative_scaling_needs_counts(options, words):
    with problem(**options) as objective, pytest.raises(ValueError, match=words):
        solve(SOLVERS["gis"](), objective)


def test_iterative_scaling_needs_attributes_of_segments_that_are_not_negative():
    with problem() as objective:
        rows = objective.data.segments.rows
        rows.__dict__["values"] = np.full(len(rows.indices), -1.0)
        with pytest.raises(ValueError, match="not negative, but X has a value of -1"):
            solve(SOLVERS["iis"](), objective)


@pytest.mark.parametrize("name", ["owlqn", "rprop", "oeg"])
def test_solvers_that_take_an_l1_penalty_agree(name):
    with problem("poisson", penalty=(0.2, 0.5)) as objective:
        best = solve(OWLQN(tol=0.0, gtol=1e-9), objective)
        result = solve(EXACT[name][0], objective)
    assert best.value * (1 - 1e-9) <= result.value <= best.value * (1 + 1e-4)


@pytest.mark.parametrize("fixed", FIXED)
def test_dense_features_and_their_metric(fixed):
    with problem(fixed, dense=True) as objective:
        best = optimum(objective)
        result = solve(SAG(tol=1e-6, max_iter=3000, batch_tokens=4), objective)
    assert result.converged
    np.testing.assert_allclose(result.value, best.value, rtol=1e-5)


@pytest.mark.parametrize("fixed", FIXED)
@pytest.mark.parametrize("start", [False, True])
def test_the_gap_of_oeg_bounds_the_distance_from_the_optimum(fixed, start):
    with problem(fixed, seed=3) as objective:
        best = optimum(objective)
        first = 0.5 * best.parameters if start else np.zeros(objective.n_parameters)
        history = OEG(batch_tokens=3, max_iter=30, tol=0.0).solve(objective, first).history
    for record in history[1:]:
        assert record.value - record.gap <= best.value * (1 + 1e-9)
    assert history[-1].gap < 0.1 * best.value


@pytest.mark.parametrize("fixed", FIXED)
def test_the_bound_of_sag_is_below_the_optimum(fixed):
    with problem(fixed) as objective:
        best = optimum(objective)
        result = solve(SAG(tol=1e-3, batch_tokens=4), objective)
        records = [record for record in result.history if record.gap > 0.0]
    assert records
    for record in records:
        assert record.value - record.gap <= best.value * (1 + 1e-9)


LOSSES = {
    "softmax margin": SoftmaxMarginLoss(),
    "softened hinge": SoftenedHingeLoss(temperature=0.3),
    "annealed hinge": AnnealedHingeLoss(temperatures=(1.0, 0.3)),
}


@pytest.mark.parametrize(("loss", "fixed"), in_turns(LOSSES, ["forbidden", "poisson"]))
def test_other_smooth_losses_are_minimized_too(loss, fixed):
    with problem(fixed, LOSSES[loss]) as objective:
        best = optimum(objective)
        found = solve(SAG(tol=1e-6, max_iter=3000, batch_tokens=4), objective)
        w = best.parameters + 0.1
        _, gradient = objective.value_and_grad(w)
        numeric = finite_difference(lambda v: objective.value_and_grad(v)[0], w, 1e-4)
    np.testing.assert_allclose(found.value, best.value, rtol=1e-4)
    np.testing.assert_allclose(gradient, numeric, atol=1e-7)


@lru_cache(maxsize=1)
def constraints(objective):
    """Weight, costs and changes of the scores of every segmentation of each sequence.

    The change of the score is what it adds to, and the change of the features.
    """
    return list(_constraints(objective))


def _constraints(objective):
    data, model = objective.data, objective.model
    cost = find_cost(objective.loss.cost, model.n_codes)
    zero = np.zeros(objective.n_parameters)
    for s in range(len(data)):
        begin, end = data.offsets[s], data.offsets[s + 1]
        if begin == end:
            continue
        chunk = Chunk(s, data.offsets[s : s + 2])
        at_zero = model.scores(model.bind(zero), data, chunk)
        scores = [model.scores(model.bind(unit), data, chunk) for unit in np.eye(len(zero))]
        gold, offsets = objective.labels[begin:end], np.array([0, end - begin])
        costs, added, changes = [], [], []
        structure = model.structure
        base = structure.score(at_zero, gold)[0]
        features = np.array([structure.score(one, gold)[0] for one in scores]) - base
        for path, level in all_segmentations(at_zero, 0):
            if level == -np.inf:
                continue
            codes = np.array(codes_of(path, LABELS), np.int32)
            costs.append(float(cost.total(gold, codes, offsets)[0]))
            added.append(level - base)
            changes.append(
                np.array([structure.score(one, codes)[0] for one in scores]) - level - features
            )
        yield objective.weight[begin], np.array(costs), np.array(added), np.array(changes)


def enumerated_value(objective, w):
    slacks = sum(
        weight * (costs + added + changes @ w).max()
        for weight, costs, added, changes in constraints(objective)
    )
    return slacks + objective.penalty.l2 * w @ w


def enumerated_optimum(objective):
    """The optimum of the quadratic program that has a row for each segmentation."""
    rows = constraints(objective)
    size, c2 = objective.n_parameters, objective.penalty.l2
    a = np.concatenate([
        np.column_stack([-changes, np.tile(np.eye(len(rows))[i], (len(costs), 1))])
        for i, (_, costs, _, changes) in enumerate(rows)
    ])  # fmt: skip
    b = np.concatenate([costs + added for _, costs, added, _ in rows])
    weights = np.array([weight for weight, *_ in rows])
    found = minimize(
        lambda x: c2 * x[:size] @ x[:size] + weights @ x[size:],
        np.concatenate([np.zeros(size), [(c + d).max() for _, c, d, _ in rows]]),
        jac=lambda x: np.concatenate([2.0 * c2 * x[:size], weights]),
        constraints={"type": "ineq", "fun": lambda x: a @ x - b, "jac": lambda x: a},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert found.status in (0, 8), found.message  # 8: as exact as rounding allows
    return found.fun


COST = AdditiveCost(np.array([[0.0, 2.0], [0.5, 0.0]])).of_segments()
MARGINS = {
    "segments": (BlockFrankWolfe(tol=1e-5, max_iter=5000), 1e-5),
    "classic": (BlockFrankWolfe(steps="classic", tol=2e-2, max_iter=5000), 2e-2),
    "subgradient": (Subgradient(tol=2e-1, max_iter=2000), 2e-1),
    "one slack": (CuttingPlane(tol=1e-6), 1e-6),
    "n slacks": (CuttingPlane(slack="n", tol=1e-6), 1e-6),
    "eg": (MarginEG(tol=2e-2, max_iter=2000), 2e-2),
}


@pytest.mark.parametrize(("fixed", "cost"), in_turns(FIXED, ["costs", "hamming"]))
def test_solvers_of_margins_reach_the_optimum_over_all_segmentations(fixed, cost):
    loss = HingeLoss(COST if cost == "costs" else hamming(2 * LABELS))
    with problem(fixed, loss, lengths=(3, 0, 1, 3), weight=[1.0, 1.0, 0.5, 2.0]) as objective:
        best = enumerated_optimum(objective)
        for name, (solver, tol) in MARGINS.items():
            if name == "eg" and fixed == "poisson":
                continue
            result = solve(solver, objective)
            assert result.converged, name
            value = enumerated_value(objective, result.parameters)
            np.testing.assert_allclose(result.value, value, rtol=1e-10)
            assert best * (1 - 1e-7) <= value <= best / (1 - tol) * (1 + 1e-7), name
            for record in result.history:
                assert record.value - record.gap <= best * (1 + 1e-7), name


@pytest.mark.parametrize(
    ("solver", "fixed", "loss", "words"),
    [
        (SMO(), "free", HingeLoss(), "SMO needs a chain.*not SemiMarkov"),
        (MarginEG(), "poisson", HingeLoss(), "fixed part"),
        (BlockFrankWolfe(), "free", HingeLoss("zero_one"), "no best paths by numbers of errors"),
        (CuttingPlane(), "free", HingeLoss(rescaling="slack"), "no best paths by numbers"),
        (OnlineSolver("mira", search=object()), "free", LogLoss(), "search"),
    ],
    ids=["smo", "eg", "zero-one", "slack", "search"],
)  # fmt: skip
def test_what_does_not_go_with_segments_is_a_readable_error(solver, fixed, loss, words):
    with problem(fixed, loss) as objective:
        with pytest.raises((ValueError, TypeError), match=words):
            solve(solver, objective)


def test_an_approximate_search_for_slacks_finds_segmentations():
    loss = HingeLoss(COST, rescaling="slack", search="approximate")
    with problem("forbidden", loss) as objective:
        result = solve(BlockFrankWolfe(max_iter=200), objective)
    assert result.converged
    assert np.isnan(result.gap)


SHORT = {name: solver for name, (solver, _) in (EXACT | MARGINS).items()}


@pytest.mark.parametrize("name", SHORT)
def test_results_are_bit_equal_for_any_number_of_threads(name, monkeypatch):
    from crfkit import _parallel

    monkeypatch.setattr(_parallel, "CHUNK_CELLS", 20)
    lengths = tuple(np.random.default_rng(1).integers(0, 6, size=12).tolist())
    loss, found = (HingeLoss() if name in MARGINS else LogLoss()), []
    limits = {"max_iter": 4} if name == "auto" else {"max_iter": 4, "tol": 0.0}
    for n_jobs in (1, 3):
        with problem("poisson" if name != "eg" else "forbidden", loss, lengths=lengths,
                     n_jobs=n_jobs) as objective:  # fmt: skip
            short = type(SHORT[name])(**SHORT[name].get_params() | limits)
            found.append(solve(short, objective))
    for other in found[1:]:
        np.testing.assert_array_equal(other.parameters, found[0].parameters)
        assert [r.value for r in other.history] == [r.value for r in found[0].history]


@pytest.mark.parametrize("averaging", ["average", None, "batch"])
def test_online_learning_finds_segmentations_that_can_be_told_apart(averaging):
    with problem("forbidden", lengths=(3, 2, 4)) as objective:
        result = solve(OnlineSolver(averaging=averaging, max_iter=200), objective)
        data, model = objective.data, objective.model
        whole = Chunk(0, data.offsets)
        scores = model.scores(model.bind(result.parameters), data, whole)
        best, found = (
            model.structure.argmax(scores)[1],
            model.structure.score(scores, objective.labels),
        )
    assert result.converged
    assert result.history[-1].mistakes == 0
    np.testing.assert_allclose(found, best, atol=1e-9)  # perhaps one of several
