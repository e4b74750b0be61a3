"""Graphs in which nodes of one label are joined more often than others: planted partitions."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch, check_random_state

from crfkit._params import check_number, check_whole
from crfkit._types import IntArray
from crfkit.data import FeatureGraph, LabelSequences
from crfkit.datasets.synthetic import RandomState, RandomStream, check_probability


def make_planted_partition(
    n_nodes: int = 1000,
    n_classes: int = 4,
    *,
    homophily: float = 0.8,
    p_correct: float = 0.6,
    degree: float = 4.0,
    n_words: int = 5,
    n_graphs: int = 1,
    random_state: RandomState = None,
) -> Bunch:
    """Draw graphs of documents, of which links join those of one class more often than others.

    A node is a bag of words, as a text that is linked to others. Its words are about its class with
    the probability `p_correct`, else about another one: no classifier of single nodes is right more
    often. Links tell the rest (Condon and Karp 2001 call such graphs planted partitions).

    Parameters
    ----------
    n_nodes : int, default=1000
        Nodes of each graph; at least 2.
    n_classes : int, default=4
        Labels, each as likely; at least 2.
    homophily : float, default=0.8
        The share of edges, about, that join nodes of one class; at most 1.
    p_correct : float, default=0.6
        The probability that the words of a node are those of its class; at most 1.
    degree : float, default=4.0
        Edges at a node, on average: ``n_nodes * degree / 2`` different ones are drawn, of each of
        which one end is any node.
    n_words : int, default=5
        Words of a node, each drawn from the 20 of what it is about; at least 1.
    n_graphs : int, default=1
        How many graphs.
    random_state : int, RandomState instance or None, default=None
        Makes the graphs the same each time.

    Returns
    -------
    Bunch
        With the attributes

        X : list of `n_graphs` FeatureGraph
            Nodes are lists of words; edges have no attributes and no direction.
        y : LabelSequences
            The labels of the nodes of each graph.
        classes : list of str
            The labels.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or there are not so many different edges.

    Examples
    --------
    >>> from crfkit.datasets import make_planted_partition
    >>> data = make_planted_partition(100, random_state=0)
    >>> len(data.X[0].nodes), len(data.X[0].edges), data.classes
    (100, 200, ['class 0', 'class 1', 'class 2', 'class 3'])
    """
    check_whole("n_nodes", n_nodes, 2)
    check_whole("n_classes", n_classes, 2)
    check_whole("n_words", n_words, 1)
    check_whole("n_graphs", n_graphs)
    check_number("degree", degree)
    check_probability("homophily", homophily, 1.0)
    check_probability("p_correct", p_correct, 1.0)
    random = check_random_state(random_state)
    classes = [f"class {k}" for k in range(n_classes)]
    X, y = [], []
    for _ in range(n_graphs):
        codes = random.randint(n_classes, size=n_nodes)
        y.append([classes[code] for code in codes.tolist()])
        about = _others(codes, n_classes, p_correct, random)
        words = random.randint(_VOCABULARY, size=(n_nodes, n_words))
        nodes = [
            sorted({f"word {k}.{word}" for word in row})
            for k, row in zip(about.tolist(), words.tolist(), strict=True)
        ]
        X.append(FeatureGraph(nodes, _edges(codes, n_classes, homophily, degree, random)))
    return Bunch(X=X, y=LabelSequences(y), classes=classes)


_VOCABULARY = 20  # words of each class
_TRIES = 100


def _others(codes: IntArray, n_classes: int, stay: float, random: RandomStream) -> IntArray:
    """Return the codes, each with a probability, else any other one as likely."""
    differ = random.uniform(size=len(codes)) >= stay
    others: IntArray = (codes + random.randint(1, n_classes, size=len(codes))) % n_classes
    return np.where(differ, others, codes)


def _edges(
    codes: IntArray, n_classes: int, homophily: float, degree: float, random: RandomStream
) -> IntArray:
    """Draw different edges, (E, 2), until there are enough."""
    n_nodes, wanted = len(codes), round(len(codes) * degree / 2.0)
    members = [np.flatnonzero(codes == k) for k in range(n_classes)]
    found = np.zeros(0, np.int64)
    for _ in range(_TRIES):
        source = random.randint(n_nodes, size=wanted)
        kinds = _others(codes[source], n_classes, homophily, random)
        place = random.uniform(size=wanted)
        target = np.full(wanted, -1)
        for k, nodes in enumerate(members):
            chosen = kinds == k
            if len(nodes):
                target[chosen] = nodes[(place[chosen] * len(nodes)).astype(np.int64)]
        kept = (target >= 0) & (source != target)
        ends = np.sort(np.column_stack([source, target])[kept], axis=1)
        drawn = np.concatenate([found, ends[:, 0] * n_nodes + ends[:, 1]])
        _, first = np.unique(drawn, return_index=True)
        found = drawn[np.sort(first)][:wanted]  # the order of drawing: none is preferred
        if len(found) == wanted:
            return np.column_stack(np.divmod(found, n_nodes))
    raise ValueError(
        f"degree={degree:g} makes {wanted} edges, which are too many for {n_nodes} nodes with "
        f"homophily={homophily:g} to be all different: {len(found)} were found."
    )
