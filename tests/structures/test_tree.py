"""Forests beyond what enumeration reaches: paths, depths, many children, known answers."""

import numpy as np
import pytest

from crfkit.data import Forest
from crfkit.structures import Chain, ChainPotentials, NoPathError, Tree, TreePotentials


def path_and_chain(length, size, tables=1, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    unary = scale * rng.normal(size=(length, size))
    pair = scale * rng.normal(size=(tables, size, size))
    index = rng.integers(tables, size=length if tables > 1 else 1).astype(np.uint32)
    chain = ChainPotentials(unary, pair, index, np.array([0, length]))
    return on_forest(chain, np.arange(-1, length - 1)), chain


def on_forest(chain, parent):
    return TreePotentials(*chain, *Forest(parent, chain.offsets).arrays)


def summed(structure, potentials):
    out = structure.zeros(potentials)
    return structure.log_partition(potentials, np.array([1.5]), out), *out


@pytest.mark.parametrize("size", [1, 2, 7, 12, 30])
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("tables", [1, 3])
def test_a_path_is_a_chain(size, scale, tables):
    tree, chain = path_and_chain(50, size, tables, scale)
    for ours, theirs in zip(summed(Tree(), tree), summed(Chain(), chain), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13 * max(scale, 10.0))
    np.testing.assert_array_equal(Tree().argmax(tree)[0], Chain().argmax(chain)[0])
    tangent = path_and_chain(50, size, tables, seed=1)
    products = []
    for structure, at, along in ((Tree(), tree, tangent[0]), (Chain(), chain, tangent[1])):
        out = structure.zeros(at)
        structure.hessian_product(at, along, np.array([1.5]), out)
        products.append(out)
    for ours, theirs in zip(*products, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11 * max(scale, 10.0))


@pytest.mark.parametrize("shape", ["path", "star", "comb"])
def test_100_000_tokens(shape):
    _, chain = path_and_chain(100_000, 3, scale=2.0)
    t = np.arange(100_000)
    parent = {"path": t - 1, "star": np.minimum(t, 1) - 1, "comb": np.where(t % 2, t - 1, t - 2)}
    tree = on_forest(chain, np.maximum(parent[shape], -1))
    log_z, unary, pair = summed(Tree(), tree)
    np.testing.assert_allclose(unary.sum(axis=1), 1.5, rtol=1e-11)
    np.testing.assert_allclose(pair.sum(), 1.5 * 99_999, rtol=1e-9)
    labels, value = Tree().argmax(tree)
    np.testing.assert_allclose(Tree().score(tree, labels), value, rtol=1e-12)
    assert value <= log_z


def test_one_token_and_none():
    pair = np.zeros((1, 2, 2))
    one = on_forest(ChainPotentials.of(np.array([[1.0, 2.0]]), pair, np.array([0, 1])), [-1])
    np.testing.assert_allclose(summed(Tree(), one)[0], np.logaddexp(1.0, 2.0))
    none = on_forest(ChainPotentials.of(np.zeros((0, 2)), pair, np.array([0, 0])), [])
    assert summed(Tree(), none)[0] == 0.0 and Tree().argmax(none)[1] == 0.0


def test_a_forest_without_labelings_names_the_token():
    tree, _ = path_and_chain(4, 2)
    tree.unary[2] = -np.inf
    for ask in (Tree().argmax, lambda scores: summed(Tree(), scores)):
        with pytest.raises(NoPathError, match="position 2") as caught:
            ask(tree._replace(first=7))
        assert caught.value.sequence == 7


def test_known_answers(data_folder):
    """A tree of 100 tokens and 4 labels whose edges have tables of their own."""
    known = np.load(data_folder("graphs_small") / "tree.npz")
    edges, n = known["edges"], len(known["node_pot"])
    pair, index, parent = np.log(known["edge_pot"]), np.zeros(n, np.uint32), np.full(n, -1)
    todo, seen = [0], {0}
    for i in todo:
        for e in np.flatnonzero((edges == i).any(axis=1)).tolist():
            j = int(edges[e].sum()) - i
            if j not in seen:
                seen.add(j)
                todo.append(j)
                parent[j], index[j] = i, e
                if edges[e, 0] == j:
                    pair[e] = pair[e].T
    chain = ChainPotentials(np.log(known["node_pot"]), pair, index, np.array([0, n]))
    tree = on_forest(chain, parent)
    log_z, unary, pairs = summed(Tree(), tree)
    np.testing.assert_allclose(log_z, known["logZ"], atol=1e-12)
    np.testing.assert_allclose(unary, 1.5 * known["node_bel"], atol=1e-12)
    turned = edges[:, 0] != parent[edges[:, 1]]
    beliefs = np.where(
        turned[:, None, None], known["edge_bel"].transpose(0, 2, 1), known["edge_bel"]
    )
    np.testing.assert_allclose(pairs, 1.5 * beliefs, atol=1e-12)
    np.testing.assert_array_equal(Tree().argmax(tree)[0], known["decode"])
