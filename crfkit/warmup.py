"""Compile kernels ahead of time: ``crfkit warmup``, or ``python -m crfkit.warmup``.

A kernel is compiled when it is first called, and kept on disk. Where a first fit must not wait for
that, run this once after installing; ``--only chain`` compiles what the default estimator needs.
"""

from __future__ import annotations

import argparse
import pkgutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import crfkit.kernels
from crfkit._parallel import LONG_TOKENS
from crfkit.compiler.jit import KERNELS
from crfkit.constraints import Automaton
from crfkit.constraints.joint import JointAutomata
from crfkit.data import UNLABELED, Edges, Forest, LabelSequences, PackedSequences, SoftLabels
from crfkit.estimators import (
    CRFClassifier,
    HMMClassifier,
    MaxMarginCRF,
    MEMMClassifier,
    Segments,
    SemiMarkovCRF,
    StructuredPerceptron,
)
from crfkit.features import SegmentFeatures, SequenceVectorizer, TemplateFeatures
from crfkit.graphs.potentials import GraphPotentials
from crfkit.inference import BeamSearch
from crfkit.losses import HingeLoss
from crfkit.solvers import MIRA, OEG, SAG, SGD, SOLVERS
from crfkit.solvers.margin import MARGIN_SOLVERS, BlockFrankWolfe
from crfkit.structures import (
    Chain,
    ChainPotentials,
    SecondOrderChain,
    SecondOrderPotentials,
    Tree,
    TreePotentials,
)
from crfkit.structures.copies import FEW_COPIES, make_copies


class KernelReport(NamedTuple):
    """What became of a kernel: how many machine codes were loaded from the disk or compiled."""

    name: str  # module and function
    loaded: int
    compiled: int
    folder: str | None  # where the machine code is kept; None if it is not


def warm_up(only: Sequence[str] | None = None) -> list[KernelReport]:
    """Call kernels by small fits and predictions; return what became of each.

    `only` are names of ``FAMILIES``, all if None. The list is empty where compilation is off.
    """
    chosen = check_families(only)
    if not report():
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that two iterations are not enough
        for name in chosen:
            FAMILIES[name]()
    return report()


def check_families(only: Sequence[str] | None) -> list[str]:
    """Return names of families; ValueError if there is none of a name."""
    unknown = sorted(set(only or ()) - set(FAMILIES))
    if unknown:
        raise ValueError(
            f"no kernels are called {', '.join(unknown)}; there are {', '.join(FAMILIES)}."
        )
    return list(FAMILIES if only is None else only)


def report() -> list[KernelReport]:
    """Return what became of each kernel so far in this process; helpers are part of others."""
    modules = set(_kernel_modules())
    found = {}
    for function in KERNELS:
        home, name = function.__module__, function.__name__
        if home in modules and not name.startswith("_"):
            stats, full = function.stats, f"{home.removeprefix('crfkit.kernels.')}.{name}"
            loaded = sum(stats.cache_hits.values())
            compiled = len(function.signatures) - loaded
            found[full] = KernelReport(full, loaded, compiled, stats.cache_path)
    return list(found.values())


def _called_by_kernels() -> set[str]:
    """Return the names of functions that kernels call: of such, callers hold the machine code."""
    members = (value for module in _kernel_modules().values() for value in vars(module).values())
    codes = (getattr(getattr(value, "py_func", value), "__code__", None) for value in members)
    return {name for code in codes if code is not None for name in code.co_names}


def _kernel_modules() -> dict[str, ModuleType]:
    """Return the public modules of kernels by their names."""
    found = pkgutil.walk_packages(crfkit.kernels.__path__, "crfkit.kernels.")
    names = [info.name for info in found if not info.ispkg]
    return {n: import_module(n) for n in names if not n.rpartition(".")[2].startswith("_")}


def _data(n_labels: int = 2) -> tuple[list[list[dict[str, Any]]], list[list[int]]]:
    """Return sequences of dicts and their labels."""
    labels = [[(3 * s + t) % n_labels for t in range(4)] for s in range(max(40, n_labels))]
    return [[{"w": str(k), "v": 0.5 + k} for k in sequence] for sequence in labels], labels


def _words(X: list[list[dict[str, Any]]]) -> list[list[list[str]]]:
    return [[[token["w"]] for token in sequence] for sequence in X]


def _use(crf: Any, X: Any, y: Any) -> None:
    """Call all that looks at the labels of new data."""
    crf.predict(X)
    crf.predict_proba(X)
    crf.sequence_log_proba(X, y)
    crf.sample(X)
    crf.entropy(X)
    crf.predict_span_proba(X)
    crf.likely_spans(X)


def _use_spread(crf: Any, X: Any, y: Any) -> None:
    """Use a model, also with scores that are spread so far that only logarithms hold their sums."""
    _use(crf, X, y)
    crf.coef_ = sp.csr_array(crf.coef_ * 1e5)
    _use(crf, X, y)


def _fit(*estimators: Any) -> None:
    X, y = _data()
    for estimator in estimators:
        estimator.fit(_words(X), y)


def _chain() -> None:
    """Fit and predict chains by the solvers of the default; scores of all sizes and forms."""
    X, y = _data(60)  # few steps between many labels
    _use(CRFClassifier(max_iter=2).fit(X, y), X, y)
    _fit(CRFClassifier(c1=0.1, max_iter=2))
    _forms()
    for n_labels in (2, 60):
        _spread_scores(n_labels)
        X, y = _data(n_labels)
        CRFClassifier(solver="lbfgs", max_iter=1).fit(_words(X), SoftLabels.from_labels(y))
    _large_data()
    _automata()


def _solvers() -> None:
    """Fit chains by every solver."""
    for name, solver in SOLVERS.items():
        for c1 in {0.0, 0.1 * solver.handles_l1}:
            _fit(CRFClassifier(c1=c1, solver=name, max_iter=2))
    _spread_scores(2, "newton")
    _fit(CRFClassifier(solver="sag", boundary_weights=True, max_iter=2))
    for kind in (OEG, SAG):  # rounds of batches
        _fit(CRFClassifier(solver=kind(batches_per_update=2, batch_tokens=20), max_iter=2))


def _online() -> None:
    """Fit perceptrons."""
    for online in ({}, {"search": BeamSearch()}, {"update": MIRA(n_best=2)}):
        _fit(StructuredPerceptron(max_iter=1, **online))
    X, y = _data()
    StructuredPerceptron(max_iter=1).fit(_words(X), [[UNLABELED, *row[1:]] for row in y])


def _margin() -> None:
    """Fit models of maximum margin, also of a kernel."""
    _fit(CRFClassifier(loss=HingeLoss(rescaling="slack"), max_iter=1))
    _fit(*(MaxMarginCRF(solver=name, max_iter=2) for name in MARGIN_SOLVERS))
    _fit(MaxMarginCRF(solver=BlockFrankWolfe(steps="pairwise"), max_iter=2))
    MaxMarginCRF(kernel="rbf", max_iter=2).fit(*_data())


def _losses() -> None:
    """Fit by losses of single labels, with scores of all sizes."""
    X, y = _data()
    for loss in ("pointwise", "risk", "labelwise", "pseudolikelihood"):
        _fit(CRFClassifier(loss=loss, max_iter=1))
    _fit(SemiMarkovCRF(loss="pseudolikelihood", max_iter=1))
    few_steps, labels = _data(60)
    CRFClassifier(loss="pseudolikelihood", max_iter=1).fit(_words(few_steps), labels)
    wrong = [row[::-1] for row in y]
    for kind in (CRFClassifier, SemiMarkovCRF):
        spread = kind(max_iter=1).fit(_words(X), y)
        spread.coef_ = sp.csr_array(spread.coef_ * 1e5)
        both = _words(X + X), [*wrong, *y]  # the spread weights are those of pairs that occur
        kind(loss="pointwise", max_iter=1, init=spread).fit(*both)


def _segments() -> None:
    """Fit and predict segments."""
    X, y = _data()
    _fit(*(SemiMarkovCRF(solver=name, max_iter=2) for name in ("oeg", "sag")))
    _fit(MaxMarginCRF(structure=Segments(), max_iter=1))
    _fit(StructuredPerceptron(structure=Segments(), max_iter=1))
    segments = SemiMarkovCRF(max_iter=2).fit(_words(X), y)
    segments.predict_n_best(_words(X[:2]), 2)
    _use_spread(segments, _words(X), y)


def _local() -> None:
    """Fit and predict labels given the label before."""
    for n_labels in (2, 60):  # few steps between many labels
        X, y = _data(n_labels)
        _use(MEMMClassifier(max_iter=2).fit(_words(X), y), _words(X), y)


def _forms() -> None:
    """Fit and predict sparse and dense features, indicators and numbers, with weights."""
    X, y = _data()
    matrices = [np.array([[1.0, token["v"]] for token in sequence]) for sequence in X]
    weight = [np.linspace(0.5, 1.0, len(labels)) for labels in y]
    for form in (X, _words(X), matrices):
        crf = CRFClassifier(boundary_weights=True, max_iter=2)
        _use(crf.fit(form, y, sample_weight=weight), form, y)


def _automata() -> None:
    """Read codes by an automaton, and search among many states."""
    every = Automaton(np.zeros((3, 2), np.int64), np.zeros((1, 1), np.int64), np.ones(1, bool))
    JointAutomata([every], [""]).rejecting(np.zeros(1, np.int32), np.array([0, 1]))
    scores = ChainPotentials.of(np.zeros((1, 1)), np.zeros((1, 1, 1)), np.array([0, 1]))
    some, none = np.ones(FEW_COPIES + 1, bool), np.zeros(0, np.int64)
    Chain().argmax_of_copies(scores, make_copies(np.zeros(len(some), int), none, none, some, some))


def _templates() -> None:
    """Turn columns into features, with attributes of transitions, and fit them."""
    words = [[(token["w"], str(t)) for t, token in enumerate(s)] for s in _data()[0]]
    templates = ["w", "v[-1]|w|v", "ngrams(w, 1)", "transition(w)", "w|v"]
    features = TemplateFeatures(templates, columns=["w", "v"], min_freq=2)
    data = features.fit_transform(words)
    for solver in ("lbfgs", "sgd", "oeg"):
        crf = CRFClassifier(solver=solver, max_iter=2).fit(data, _data()[1])
        _use(crf, features.transform(words), _data()[1])
    TemplateFeatures("u:%x[@1,0]", syntax="wapiti").fit_transform(words)
    similar = ["edit(seg.text, known)", "jaccard(seg.text, known)"]
    SegmentFeatures(similar, lexicons={"known": ["1 0"]}, max_length=2).fit_transform(words)


def _spread_scores(n_labels: int, solver: str = "lbfgs") -> None:
    """Fit and predict scores that are spread far."""
    X, y = _data(n_labels)
    crf = CRFClassifier(solver=solver, max_iter=1, warm_start=True).fit(_words(X), y)
    crf.coef_ = sp.csr_array(crf.coef_ * 1e5)
    _use_spread(crf.fit(_words(X), y), _words(X), y)


def _large_data() -> None:
    """Fit a sequence that threads share, attributes of which some are folded, and many words."""
    rows = sp.csr_array(np.tile(np.eye(2), (LONG_TOKENS // 2 + 1, 1)))
    X = PackedSequences(rows, offsets=[0, rows.shape[0]])
    y = LabelSequences([[0, 1] * (rows.shape[0] // 2)])
    _use_spread(CRFClassifier(max_iter=1).fit(X, y), X, y)
    many = np.ones((1 << 13, 9))
    many[1:, 8] = 0.0
    X = PackedSequences(sp.csr_array(many), offsets=np.arange(0, len(many) + 1, 8))
    CRFClassifier(max_iter=1).fit(X, [[0, 1] * 4] * len(X))
    CRFClassifier(max_iter=1).fit([[{"w": str(n)} for n in range(400)]], [[0, 1] * 200])


def _trees() -> None:
    """Fit forests, and ask all questions about a tree."""
    X, y = _data()
    data = SequenceVectorizer().fit_transform(X)
    forest = Forest.from_lists([[None, *range(len(labels) - 1)] for labels in y])
    for solver, c1 in (("sag", 0.0), (SGD(average=True), 0.0), ("sgd", 0.1)):
        CRFClassifier(solver=solver, c1=c1, max_iter=2).fit(data.with_topology(forest), y)
    _ask_tree()


def _ask_tree() -> None:
    """Ask all questions about a tree; one of its labels is all but impossible."""
    tree, forest = Tree(), Forest.from_lists([[None, 0, 0]])
    unary = np.array([[0.0, -2000.0], [0.0, 1.0], [0.0, 0.0]])
    index = np.zeros(1, np.uint32)
    scores = TreePotentials(unary, np.zeros((1, 2, 2)), index, forest.offsets, 0, *forest.arrays)
    labels, weight = tree.argmax(scores)[0], np.ones(1)
    for each in (scores, scores.with_arrays(np.zeros((3, 2)), scores.pair)):
        out = tree.zeros(each)
        tree.log_partition(each, weight, out)
        tree.posterior(each).pull_back(np.array([[-1.0, 1.0]] * 3), out)
        tree.hessian_product(each, each, weight, out)
        tree.sample(each, np.zeros((1, 3)))
        tree.entropy(each)
    tree.add_counts(scores, labels, weight, out)
    tree.score(scores, labels)
    tree.k_best(scores, 2)
    tree.entropy(scores)
    tree.sample(scores, np.zeros((1, 3)))
    tree.path_at_hamming(scores, labels, np.ones(1, np.int64))
    tree.max_by_hamming(scores, labels)


def _graphs() -> None:
    """Ask all methods of inference about rings, of which some labels are all but impossible."""
    from crfkit.graphs.named import MAXIMA, SUMS
    from crfkit.graphs.structure import GraphStructure

    edges = Edges.of_graphs([[(0, 1), (1, 2), (2, 3), (3, 0)]], [4])
    index, weight = np.zeros(1, np.uint32), np.ones(1)
    for worst, size in ((-0.5, 2), (-2000.0, 2), (-np.inf, 3)):
        unary, pair = np.zeros((4, size)), np.eye(size)[None]
        unary[0, -1] = worst
        scores = GraphPotentials(unary, pair, index, edges.offsets, 0, *edges.arrays)
        exact, labels = GraphStructure(), np.zeros(4, np.int32)
        out = exact.zeros(scores)
        exact.posterior(scores).pull_back(np.array([[-1.0, 1.0, 0.0][:size]] * 4), out)
        exact.sample(scores, np.zeros((1, 4)))
        exact.entropy(scores)
        exact.k_best(scores, 2)
        exact.add_counts(scores, labels, weight, out)
        exact.score(scores, labels)
        exact.conditional_scores(scores, labels)
        exact.add_conditional_counts(scores, labels, np.zeros(unary.shape), out)
        for sums in SUMS.values():
            GraphStructure(sums()).log_partition(scores, weight, out)
        for search in MAXIMA.values():
            with suppress(ValueError):  # a cut is for two labels
                GraphStructure(search=search()).argmax(scores)
    GraphStructure(SUMS["gibbs"]()).sample(scores, np.zeros((1, 4)))


def _second_order() -> None:
    """Ask all questions about a second-order chain; one of its labels is all but impossible."""
    chain, offsets = SecondOrderChain(), np.array([0, 3])
    for worst in (0.0, -2000.0):
        unary = np.array([[0.0, worst]] * 3)
        scores = SecondOrderPotentials(unary, np.zeros((3, 2, 2)), offsets)
        chain.argmax(scores)
        chain.log_partition(scores, np.ones(1), chain.zeros(scores))
        chain.k_best(scores, 2)
        chain.sample(scores, np.zeros((1, 3)))
        chain.entropy(scores)


def _hidden_markov() -> None:
    """Count symbols and vectors, and learn of such without labels; label them."""
    X, y = _data()
    words, known = _words(X), [[str(label) for label in labels] for labels in y]
    vectors = [np.array([[float(token["v"]), 1.0 + t] for t, token in enumerate(s)]) for s in X]
    for tokens in (words, vectors):
        model = HMMClassifier(max_iter=1)
        model.fit(tokens, known).predict(tokens)
        model.set_params(n_states=2).fit(tokens)
    rare = [[f"{word}{s}" for word in "abcdefgh"] for s in range(100)]
    HMMClassifier(emissions="words").fit(rare, [[*"xyxyxyxy"]] * 100).predict([["unknown"]])


FAMILIES: dict[str, Callable[[], None]] = {
    "chain": _chain,
    "solvers": _solvers,
    "online": _online,
    "margin": _margin,
    "losses": _losses,
    "segments": _segments,
    "templates": _templates,
    "trees": _trees,
    "graphs": _graphs,
    "second_order": _second_order,
    "local": _local,
    "hidden_markov": _hidden_markov,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m crfkit.warmup", description=__doc__)
    add_arguments(parser)
    chosen = parser.parse_args(arguments)
    try:
        check_families(chosen.only)
    except ValueError as error:
        parser.error(str(error))
    run(chosen)
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help=f"of {', '.join(FAMILIES)} (default: all)"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing")


def run(arguments: argparse.Namespace) -> None:
    """Call kernels, and print what became of them."""
    started = time.perf_counter()
    found = warm_up(arguments.only)
    if arguments.only:
        found = [kernel for kernel in found if kernel.loaded or kernel.compiled]
    if not arguments.quiet:
        for line in _lines(found, time.perf_counter() - started):
            print(line)


def _lines(found: list[KernelReport], seconds: float) -> Iterator[str]:
    """Yield what the command prints."""
    if not found:
        yield "compilation is switched off (NUMBA_DISABLE_JIT): nothing to do"
        return
    inner = _called_by_kernels()
    for kernel in found:
        done = "compiled" if kernel.compiled else "loaded" if kernel.loaded else "not called"
        if done == "not called" and kernel.name.rpartition(".")[2] in inner:
            done = "part of others"
        yield f"{kernel.name:36} {done}"
    compiled = sum(bool(kernel.compiled) for kernel in found)
    yield f"{compiled} of {len(found)} kernels compiled in {seconds:.1f} s"
    folders = {kernel.folder for kernel in found}
    for folder in sorted(filter(None, folders)):
        yield f"machine code is kept in {folder}"
    if None in folders:
        yield (
            "machine code is not kept: no folder for it can be written. Set NUMBA_CACHE_DIR to "
            "one that can, or each process compiles anew"
        )


if __name__ == "__main__":
    raise SystemExit(main())
