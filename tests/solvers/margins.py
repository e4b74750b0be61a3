"""Max-margin problems that tests share, and their optima by enumeration."""

import contextlib
from functools import lru_cache
from itertools import product

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from crfkit._parallel import Chunk, ThreadMap
from crfkit.data import PackedSequences
from crfkit.labels.costs import find_cost
from crfkit.losses import HingeLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.linear import choose_features

TINY = (2, 0, 1, 3, 2)


def make_labeled(rng, lengths, blocks="sparse", n_features=4, scale=1.0):
    """Data and codes of three labels that can be learned from them, but for some noise."""
    n_tokens = sum(lengths)
    x = rng.normal(size=(n_tokens, n_features)) * (rng.random((n_tokens, n_features)) < 0.7)
    dense = rng.normal(size=(n_tokens, 2))
    seen = x[:, :3] + 0.7 * rng.normal(size=(n_tokens, 3)) + np.pad(dense, ((0, 0), (0, 1)))
    parts = {
        "sparse": sp.csr_array(scale * x) if "sparse" in blocks else None,
        "dense": scale * dense if "dense" in blocks else None,
    }
    offsets = np.cumsum([0, *lengths])
    return PackedSequences(**parts, offsets=offsets), seen.argmax(axis=1).astype(np.int32)


@contextlib.contextmanager
def margin_problem(
    seed=0, c2=0.5, lengths=TINY, n_jobs=1, loss=None, weight=None, blocks="sparse",
    n_features=4, scale=1.0, **options,
):  # fmt: skip
    """A small objective with a hinge loss, three labels, some empty sequences."""
    rng = np.random.default_rng(seed)
    data, codes = make_labeled(rng, lengths, blocks, n_features, scale)
    per_sequence = np.ones(len(lengths)) if weight is None else np.asarray(weight, float)
    model = choose_features(data, codes, 3, **options)
    with ThreadMap(n_jobs) as threads:
        yield Objective(
            model, model.structure, loss or HingeLoss(), ElasticNet(0.0, c2), data, codes,
            np.repeat(per_sequence, lengths), threads,
        )  # fmt: skip


@lru_cache(maxsize=1)
def constraints(objective):
    """Cost and change of the features of every labeling of each sequence, and its weight."""
    return list(_constraints(objective))


def _constraints(objective):
    data, labels = objective.data, objective.labels
    model, structure, loss = objective.model, objective.structure, objective.loss
    cost = find_cost(loss.cost, model.n_labels)
    units = np.eye(objective.n_parameters)
    for s in range(len(data)):
        begin, end = data.offsets[s], data.offsets[s + 1]
        if begin == end:
            continue
        chunk = Chunk(s, data.offsets[s : s + 2])
        scores = [model.scores(model.bind(unit), data, chunk) for unit in units]
        gold = labels[begin:end]
        offsets = np.array([0, end - begin])

        def features(path, scores=scores):
            return np.array([structure.score(one, path)[0] for one in scores])

        rows = []
        for path in product(range(model.n_labels), repeat=int(end - begin)):
            codes = np.array(path, np.int32)
            change = features(codes) - features(gold)
            total = float(cost.total(gold, codes, offsets)[0])
            rows.append((total, total * change if loss.rescaling == "slack" else change))
        yield (
            objective.weight[begin],
            np.array([r[0] for r in rows]),
            np.array([r[1] for r in rows]),
        )


def enumerated_value(objective, w):
    """The objective at some parameters, over all labelings."""
    slacks = sum(
        weight * (costs + changes @ w).max() for weight, costs, changes in constraints(objective)
    )
    return slacks + objective.penalty.l2 * w @ w


def enumerated_optimum(objective):
    """The optimum of the quadratic program that has a row for each labeling, within bounds."""
    rows = constraints(objective)
    size = objective.n_parameters
    a = np.concatenate([
        np.column_stack([-changes, np.tile(np.eye(len(rows))[i], (len(costs), 1))])
        for i, (_, costs, changes) in enumerate(rows)
    ])  # fmt: skip
    b = np.concatenate([costs for _, costs, _ in rows])
    weights = np.array([weight for weight, _, _ in rows])
    c2, bounds = objective.penalty.l2, objective.nonnegative
    lowest = np.where(np.zeros(size, bool) if bounds is None else bounds, 0.0, -np.inf)
    found = minimize(
        lambda x: c2 * x[:size] @ x[:size] + weights @ x[size:],
        np.concatenate([np.zeros(size), [costs.max() for _, costs, _ in rows]]),
        jac=lambda x: np.concatenate([2.0 * c2 * x[:size], weights]),
        constraints={"type": "ineq", "fun": lambda x: a @ x - b, "jac": lambda x: a},
        bounds=[(one, None) for one in [*lowest, *np.full(len(rows), -np.inf)]],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert found.status in (0, 8), found.message  # 8: as exact as rounding allows
    return found.fun, found.x[:size]
