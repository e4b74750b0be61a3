"""Conditional random fields on graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from crfkit._params import check_flag, find_named
from crfkit.data.packed_graphs import as_graphs
from crfkit.estimators import _graph_answers
from crfkit.estimators._interface import OfProbabilities
from crfkit.estimators.linear import LinearClassifier
from crfkit.graphs.named import MAXIMA, MAXIMA_IN_FITS, SUMS
from crfkit.graphs.structure import GraphStructure
from crfkit.labels.base import TokenLabels
from crfkit.losses import LOSSES, Loss
from crfkit.persistence import check_chain_model, register
from crfkit.potentials.graph import ASSOCIATIVE, DIRECTED, UNDIRECTED, GraphWeights
from crfkit.solvers import SOLVERS, Solver
from crfkit.structures import Capability
from crfkit.training.fit import (
    CallbackSupportMixin,
    Problem,
    chosen_loss,
    chosen_solver,
    elastic_net,
    make_problem,
    with_callbacks,
)
from crfkit.training.graphs import known_nodes, pack_graphs


@register(check=check_chain_model)
@dataclass(kw_only=True, eq=False, repr=False)
class GraphCRF(CallbackSupportMixin, LinearClassifier):
    """Conditional random field on graphs (Lafferty, McCallum and Pereira 2001).

    Models ``P(y | x) = exp(score(x, y)) / Z(x)``, where the score of the labels of the nodes of a
    graph is the sum of the weights of all (attribute of a node, label) pairs, and for each edge of
    the weights of the pair of labels at its ends, and of this pair with each attribute of the edge.
    The weights ``w`` minimize::

        - sum_i weight_i log P(y_i | x_i) + c1 sum |w| + c2 sum w**2

    With another `loss`, that takes the place of the first term. On chains and trees that is
    :class:`CRFClassifier`. On other graphs sums over all labelings take time and memory that grow
    exponentially with the width of the graph; where that is too much, `inference="exact"` raises an
    error, and approximations are there by name.

    Parameters
    ----------
    c1 : float, default=0.0
        Weight of the L1 penalty; makes weights exactly 0.
    c2 : float, default=0.1
        Weight of the L2 penalty.
    loss : str or Loss, default="log"
        "log", the negative log-likelihood, whose log Z is that of `inference`, see the notes;
        "pseudolikelihood", each label given those of its neighbors (Besag 1975), for graphs of any
        size; "hinge", margins by `search`, with ``C = 1 / (2 * c2)`` of a structured support vector
        machine; "softmax_margin" (Gimpel and Smith 2010); or another one of
        :class:`CRFClassifier`, by name or as an object, if graphs have what it needs.
    cost : {"hamming", "zero_one"}, dict or array of shape (K, K), default="hamming"
        What wrong labels cost, for losses that are given by name and have a cost, as for
        :class:`CRFClassifier`.
    solver : str or Solver, default="auto"
        As for :class:`CRFClassifier`; "hinge" takes the solvers of :class:`MaxMarginCRF` as
        objects, such as ``BlockFrankWolfe(tol=0.1)``.
    max_iter : int or None, default=None
        Iterations (passes, for a stochastic solver) at most; None leaves it to the solver.
    inference : str or SumMethod, default="exact"
        What sums over labelings, in fits and probabilities: "exact", junction trees; "bp", loopy
        belief propagation; "trw", tree-reweighted belief propagation; "mean_field"; "gibbs",
        sampling; or an object with options, such as ``JunctionTree(budget=2**24)``. May be changed
        after fitting.
    search : str or MaxMethod, default="auto"
        What finds the best labels, in predictions and for the loss "hinge": "exact"; "cut", exact
        for two labels that agree along edges; "expansion"; "mplp"; "milp"; an object; or "auto",
        which takes for each graph the first of exact search, a cut, and expansion moves and MPLP,
        that is cheap enough and fits (:class:`crfkit.graphs.auto.AutoSearch`), and warns where
        labels are not proved to be the best ones. May be changed after fitting. While fitting,
        MPLP makes 40 passes at most where "mplp" or "auto" name it; of an object, as many as it
        says.
    directed : bool, default=False
        Whether the source and the target of an edge are told apart; otherwise the weight of labels
        (i, j) is that of (j, i).
    associative : bool, default=False
        Whether labels at the ends of edges have weights only where they agree, none of which is
        negative (associative Markov networks: Taskar, Chatalbashev and Koller 2004). With features
        of edges that are not negative, "cut" or "expansion" find the best labels.
    features : transformer or None, default=None
        Makes the attributes of what X holds: ``GraphVectorizer(...)``, ``SkipChainFeatures(...)``,
        or any transformer whose output `fit` takes.
    min_freq : int, default=0
        Pairs of an attribute of nodes and a label that occur fewer times in the training data get
        no weight. All pairs of labels at the ends of an edge have weights, seen or not, and with
        each attribute of edges.
    decoding : {"viterbi", "posterior"} or Decoder, default="viterbi"
        The best labels as a whole, by `search`, or the most probable label of each node, by
        `inference`; or a decoder of :mod:`crfkit.inference`.
    init : {"zeros"} or fitted estimator, default="zeros"
        Where the solver starts, as for :class:`CRFClassifier`.
    warm_start : bool, default=False
        Start from the weights of the last fit.
    constraints : Constraints, rule, list of rules or None, default=None
        What all answers keep to: rules about labels of nodes and of the ends of edges
        (:mod:`crfkit.constraints`). Rules that need an order of tokens, such as ``Count``, are an
        error.
    random_state : int, RandomState instance or None, default=None
        The order in which a stochastic solver that is named visits the graphs.
    n_jobs : int or None, default=None
        Threads, as for :class:`CRFClassifier`. The results are the same to the last bit.
    verbose : int, default=0
        1 prints every tenth iteration and the end, 2 every iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted if they can be.
    coef_ : csr_array of shape (D, K)
        Weights of attributes of nodes.
    transitions_ : ndarray of shape (K, K)
        Weights of the labels at the source (row) and at the target (column) of an edge.
    transition_coef_ : csr_array of shape (D2, K * K) or None
        Weights of attributes of edges; column ``i * K + j`` is that of labels ``i`` and ``j``.

    All other fitted attributes are those of :class:`crfkit.CRFClassifier`.

    See Also
    --------
    CRFClassifier : Chains and trees, faster.
    crfkit.data.FeatureGraph : A graph.

    Notes
    -----
    What "log" minimizes is the negative log-likelihood with "exact"; an upper bound of it with
    "trw", which is convex (Wainwright, Jaakkola and Willsky 2005); a lower bound with "mean_field";
    an approximation that is no bound with "bp", but exact on forests. With labels that are known in
    part, the loss is a difference of two values of log Z, and no bound but with "exact". "hinge"
    with an exact search minimizes an upper bound of the cost of the labels that are predicted;
    "pseudolikelihood" is a likelihood of its own, and no bound of the other.

    The gap of a fit with "hinge" by ``BlockFrankWolfe`` is that of the bounds that `search` knows:
    a certificate also where labels are not proved to be the worst ones; NaN where it knows none.
    With losses that sum over labelings it is known where log Z is convex: NaN with "bp" and
    "mean_field".

    With "pseudolikelihood", nodes whose label is not known are left out with their edges, in the
    fit alone.

    Examples
    --------
    >>> from crfkit import UNLABELED, GraphCRF
    >>> nodes = [{"w": "a"}, {"w": "?"}, {"w": "b"}, {"w": "?"}]
    >>> graph = (nodes, [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)])
    >>> model = GraphCRF().fit([graph], [["A", "A", "B", UNLABELED]])
    >>> model.predict([graph])
    [['A', 'A', 'B', 'A']]
    """

    c1: float = 0.0
    c2: float = 0.1
    loss: str | Loss = "log"
    cost: Any = "hamming"
    solver: str | Solver = "auto"
    max_iter: int | None = None
    inference: Any = "exact"
    search: Any = "auto"
    directed: bool = False
    associative: bool = False
    features: Any = None
    min_freq: int = 0
    decoding: Any = "viterbi"
    init: Any = "zeros"
    warm_start: bool = False
    constraints: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    has_probabilities = True
    _asked_by = ("inference", "search")
    _in_form = staticmethod(as_graphs)
    predict_proba = OfProbabilities(_graph_answers.predict_proba)
    infer = OfProbabilities(_graph_answers.infer)
    predict_with_bounds = _graph_answers.predict_with_bounds
    predict_spans, predict_span_proba = _graph_answers.OfSpans(), _graph_answers.OfSpans()
    likely_spans, confidence = _graph_answers.OfSpans(), _graph_answers.OfSpans()

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the weights, and return the estimator.

        Parameters
        ----------
        X : list of S graphs, or PackedSequences
            Each a :class:`crfkit.data.FeatureGraph`, a tuple ``(nodes, edges)`` or ``(nodes, edges,
            edge_features)``, a graph of networkx, or a sequence, whose tokens are joined to the
            next ones; see :class:`crfkit.features.GraphVectorizer`. Or what `features` takes.
        y : iterable of S sequences of labels
            One label a node; sets of labels, of which one is right, or :data:`crfkit.UNLABELED`,
            where nothing is known, also of the nodes of one graph that are to be predicted.
        sample_weight : array of shape (S,) or sequence of S arrays of shape (T,), optional
            The weight of a graph multiplies its loss. Of nodes: as for
            :meth:`crfkit.CRFClassifier.fit`.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter cannot be used; the message says where and why.
            BudgetError, where exact inference needs tables that are too large.
        """
        return self._learn(*self._task(X, y, sample_weight))

    def _problem(self) -> Problem:
        for name in ("directed", "associative"):
            check_flag(name, getattr(self, name))
        loss, weights = chosen_loss(self), self._weights_with(MAXIMA_IN_FITS)(TokenLabels())
        if self._kind_of_loss.needs_log_z and not weights.structure.inference.has_log_z:
            raise ValueError(
                f"inference={self.inference!r:.60} has no log Z, which loss={self.loss!r:.40} "
                "needs: fit with loss='pseudolikelihood' or 'hinge', or with another inference, "
                "which may be changed after fitting."
            )
        return make_problem(
            self, labels=TokenLabels(), loss=loss, penalty=elastic_net(self),
            solver=chosen_solver(self, SOLVERS), weights=weights,
            pack=pack_graphs, examples=known_nodes if self._compares_single_labels else None,
        )  # fmt: skip

    @property
    def weight_space(self) -> Any:  # type: ignore[override]
        """What makes a model of weights: with the methods of inference of the parameters."""
        return self._weights_with(MAXIMA)

    def _weights_with(self, searches: Mapping[str, Any]) -> Any:
        """Return the same with searches by name."""
        structure = GraphStructure(
            find_named("inference", self.inference, SUMS, "sums"),
            find_named("search", self.search, searches, "maximum"),
            self.directed,
        )
        structure.gaps = [] if self.search == "auto" else None
        kind = ASSOCIATIVE if self.associative else DIRECTED if self.directed else UNDIRECTED
        return partial(GraphWeights, structure=structure, edge_weights=kind)

    @property
    def _compares_single_labels(self) -> bool:
        """Whether the loss looks at the labels of neighbors, which have to be known."""
        return Capability.CONDITIONALS in self._kind_of_loss.requires

    @property
    def _kind_of_loss(self) -> Any:
        """The loss, or the class of one that is given by its name."""
        return LOSSES.get(self.loss, Loss) if isinstance(self.loss, str) else self.loss
