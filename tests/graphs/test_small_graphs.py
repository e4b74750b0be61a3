"""Published answers of small graphical models, which are no part of the package."""

import lzma

import numpy as np
import pytest
from scipy.optimize import minimize

from crfkit.graphs import RandomField
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.tables import factor_tables, side_by_side
from crfkit.io import read_fg, read_uai


@pytest.mark.parametrize("name", ["small", "loop", "clique", "chain", "tree"])
def test_beliefs_and_decodings_are_the_published_ones(data_folder, name):
    known = np.load(data_folder("graphs_small") / f"{name}.npz")
    with np.errstate(divide="ignore"):
        nodes, pairs = np.log(known["node_pot"]), np.log(known["edge_pot"])
    singles = (([v], row) for v, row in enumerate(nodes))
    edges = zip(known["edges"].tolist(), pairs, strict=True)
    field = RandomField([*singles, *edges], range(len(nodes)))
    found = field.infer()
    assert found.log_partition == pytest.approx(float(known["logZ"]), rel=1e-13)
    np.testing.assert_allclose(list(found.marginals.values()), known["node_bel"], atol=1e-13)
    np.testing.assert_allclose(found.beliefs[len(nodes) :], known["edge_bel"], atol=1e-13)
    assert list(field.map().values.values()) == known["decode"].tolist()


def test_a_grid_of_libdai_has_its_published_marginals(data_folder):
    folder = data_folder("graphs_small")
    found = read_fg(folder / "testfast.fg").infer()
    known = np.loadtxt(folder / "testfast_marginals.tsv", skiprows=1)
    of_variables = [found.marginals[int(v)] for v in known[:, 0]]
    np.testing.assert_allclose(of_variables, known[:, 1:], atol=6e-5)


def least_loss(rain, node, pair, groups):
    """Learn tied chains by their negative log-likelihood.

    `node` groups of rows have a score of rain each; all pairs of days share `pair` scores, of days
    that are alike, or of two dry days, two with rain, and rain after a dry day.
    """
    n = rain.shape[1]
    scopes = [*([t] for t in range(n)), *([t, t + 1] for t in range(n - 1))]
    counts = [np.array([(groups == g).sum() for g in range(node)])]
    told = np.array([rain[groups == g].sum() for g in range(node)], float)
    both = np.stack([(1 - rain[:, :-1]) * (1 - rain[:, 1:]), rain[:, :-1] * rain[:, 1:],
                     (1 - rain[:, :-1]) * rain[:, 1:]]).sum(axis=(1, 2))  # fmt: skip
    basis = np.zeros((3, 2, 2))
    basis[0, 0, 0] = basis[1, 1, 1] = basis[2, 0, 1] = 1.0
    kinds = {0: np.zeros((0, 3)), 1: np.array([[1.0, 1.0, 0.0]]), 3: np.eye(3)}[pair]

    def loss(weights):
        tables = np.tensordot(weights[node:] @ kinds, basis, 1)
        graphs = side_by_side(
            [
                factor_tables([2] * n, scopes, [*[np.array([0.0, w])] * n, *[tables] * (n - 1)])
                for w in weights[:node]
            ]
        )
        sums = JunctionTree().sums(graphs)
        rainy = sums.marginals.reshape(node, n, 2)[:, :, 1].sum(axis=1)
        pairs = sums.beliefs.reshape(node, -1)[:, 2 * n :].reshape(node, n - 1, 4).sum(axis=1)
        expected = counts[0] @ pairs[:, [0, 3, 1]]
        value = counts[0] @ sums.log_partition - weights[:node] @ told
        value -= weights[node:] @ kinds @ both
        return value, np.append(counts[0] * rainy - told, kinds @ (expected - both))

    return minimize(loss, np.zeros(node + pair), jac=True, tol=1e-12)


def test_the_rain_model_has_its_published_likelihoods(data_folder):
    known = np.load(data_folder("graphs_small") / "rain.npz")
    rain, months = known["rain"].astype(np.int64), known["months"] - 1
    whole = np.zeros(len(rain), np.int64)
    apart, tied = least_loss(rain, 1, 0, whole), least_loss(rain, 1, 1, whole)
    assert apart.fun == pytest.approx(20086.332, abs=6e-4)
    assert tied.fun == pytest.approx(17810.782, abs=6e-4)
    np.testing.assert_allclose(tied.x, [-0.159, 0.850], atol=5e-4)
    free, by_month = least_loss(rain, 1, 3, whole), least_loss(rain, 12, 3, months)
    assert free.fun == pytest.approx(17797.741, abs=6e-4)
    assert by_month.fun == pytest.approx(17165.839, abs=6e-4)


def test_models_of_the_uai_competition_have_their_published_answers(data_folder):
    """One with factors of three variables, one with evidence and hard zeros, one with 2 labels."""
    folder = data_folder("uai")
    for name in ("Segmentation_11", "Promedus_33", "Promedus_29"):
        evidence = folder / f"{name}.uai.evid"
        found = read_uai(folder / f"{name}.uai.xz", evidence).infer()
        published = (folder / f"{name}.uai.PR").read_text().split()[-1]
        assert f"{found.log_partition / np.log(10):.6g}" == f"{float(published):.6g}"
        with lzma.open(folder / f"{name}.uai.MAR.xz", "rt") as file:
            numbers = iter(file.read().split("MAR")[-1].split())
        for v in range(int(next(numbers))):
            shares = [float(next(numbers)) for _ in range(int(next(numbers)))]
            if v in found.marginals:
                np.testing.assert_allclose(found.marginals[v], shares, atol=1e-6)
