"""The max-margin Markov network on a chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from crfkit._params import check_option, check_positive
from crfkit.data.targets import Weights
from crfkit.estimators._kernelized import (
    KernelledTokens,
    check_kernel,
    check_kernel_chain,
    has_kernel,
)
from crfkit.estimators._views import if_segments, length_distribution
from crfkit.estimators.linear import LinearClassifier
from crfkit.estimators.segments import Segments, labels_of
from crfkit.labels.costs import AdditiveCost, ZeroOneCost
from crfkit.losses import HingeLoss, Loss
from crfkit.objective.penalties import ElasticNet
from crfkit.persistence import register
from crfkit.solvers.base import LOSS_NEEDS, Solver
from crfkit.solvers.margin import MARGIN_SOLVERS
from crfkit.training.data import TrainingData
from crfkit.training.fit import (
    CallbackSupportMixin,
    Problem,
    chosen_solver,
    make_problem,
    with_callbacks,
)

# What the losses are called: how the margin is made to depend on the cost, and the search for the
# worst labeling.
RESCALINGS = {
    "margin_rescaling": ("margin", "exact"),
    "slack_rescaling": ("slack", "exact"),
    "approximate_slack_rescaling": ("slack", "approximate"),
}


@register(check=check_kernel_chain)
@dataclass(kw_only=True, eq=False, repr=False)
class MaxMarginCRF(CallbackSupportMixin, LinearClassifier):
    """Max-margin Markov network (Taskar, Guestrin and Koller 2003).

    Also called structural support vector machine (Tsochantaridis, Joachims, Hofmann and Altun
    2005). The score of a label sequence is that of :class:`CRFClassifier`; the weights ``w``
    minimize::

        1/2 |w|^2 + C sum_i weight_i xi_i

    where the slack ``xi_i`` of sequence i is how far its true labels are from beating all others by
    a margin that depends on the cost of these: the largest of ``cost(y) + score(y) - score(y_i)``,
    or with slack rescaling of ``cost(y) (1 + score(y) - score(y_i))``.

    Parameters
    ----------
    C : float, default=1.0
        How much slacks count; the larger, the closer the fit and the longer it takes.
    loss : str, default="margin_rescaling"
        "margin_rescaling"; "slack_rescaling", for the costs "hamming" and "zero_one"; or
        "approximate_slack_rescaling", for any: it finds one of the worst labelings, and its slack
        is a lower bound.
    cost : {"hamming", "zero_one"}, dict or array of shape (K, K), default="hamming"
        What wrong labels cost: their number; 1 if any is wrong; for each what the dict has for the
        true one, 1 for those not named; or ``cost[i, j]`` for label `j` where `i` is true, in the
        order of `classes_`. Of segments as in :class:`~crfkit.SemiMarkovCRF`.
    structure : {"chain"} or Segments, default="chain"
        Whether labels are those of tokens, or of segments, as for :class:`~crfkit.SemiMarkovCRF`:
        with margin rescaling (or "approximate_slack_rescaling" with a dict or matrix), a cost that
        is a sum over tokens, the kernel "linear", another solver than "smo", and no `warm_start`.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        Inner products of the attributes of two tokens; a function gets two matrices, of n and m
        tokens, which may be sparse, and returns one of shape (n, m). See the notes.
    kernel_params : dict or None, default=None
        As for :func:`sklearn.metrics.pairwise.pairwise_kernels`: ``{"degree": 2, "gamma": 1.0}``.
    solver : str or Solver, default="bcfw"
        Block-coordinate Frank-Wolfe "bcfw", "eg", "smo", "subgradient", "cutting_plane", or an
        object: ``BlockFrankWolfe(tol=1e-2)``. A kernel has its own form of "bcfw",
        :class:`~crfkit.solvers.margin.KernelFrankWolfe`.
    max_iter : int or None, default=None
        Passes over the data at most; None leaves it to the solver.
    features, min_freq, all_possible_states, all_possible_transitions, boundary_weights
    n_jobs, verbose
        As for :class:`CRFClassifier`, with the same defaults.
    init : {"zeros", "counts"} or fitted estimator, default="zeros"
        As for :class:`CRFClassifier`. "subgradient" starts there if the objective is smaller than
        at 0; solvers of the dual only keep such weights where they find nothing better. "zeros"
        with a kernel.
    warm_start : bool, default=False
        Start from the weights of the last fit, as `init` would; not with a kernel.
    constraints : Constraints, rule, list of rules, str or None, default=None
        What predictions keep to, as for :class:`CRFClassifier`.
    random_state : int, RandomState instance or None, default=None
        The order in which the solver visits the data, where `solver` is a name.

    Attributes
    ----------
    classes_, coef_, transitions_, transition_coef_, start_weights_, end_weights_
        The labels and the weights, as of :class:`CRFClassifier`; no `coef_` with a kernel.
    support_, support_vectors_ : ndarray of shape (n,), PackedSequences or None
        With a kernel: the tokens of the training data that count, numbered through, and their
        attributes as one sequence; None if precomputed.
    dual_coef_ : ndarray of shape (n, K)
        With a kernel: ``score(t, k) = sum_s dual_coef_[s, k] kernel(support token s, t)``.
    vectorizer_, n_features_in_, feature_names_in_, transition_feature_names_in_, state_features_
    transition_features_, transition_attributes_, n_parameters_, n_iter_, solver_
    converged_
        As of :class:`CRFClassifier`.
    objective_ : float
        Value of the objective at the weights that were kept.
    gap_ : float
        How much that is above the optimum at most, but for rounding of scores (where `C` times
        scores is 1e10 times it); NaN where no bound is known. ``objective_ - gap_`` is a dual
        value.
    training_log_ : list of IterationRecord
        Objective, gap, evaluations, non-zero weights and seconds of each iteration.

    See Also
    --------
    CRFClassifier : The same scores, fitted to be probabilities.

    Notes
    -----
    Ctrl-C during `fit` ends it with the weights of the last finished iteration and a
    ``ConvergenceWarning``. All tokens of a sequence must have the same weight.

    Labels that are known in part (sets of labels, or :data:`crfkit.UNLABELED`) need
    ``solver="subgradient"``, margin rescaling, and a cost that is a sum over tokens.

    Weights of transitions stay linear with a kernel, which must be symmetric and positive
    semidefinite, takes memory with the square of the number of tokens, and needs margin rescaling,
    a cost that is a sum over tokens, and no attributes of transitions. Every (attribute, label)
    pair counts, as with `all_possible_states`. For more tokens, put features that approximate it,
    such as those of :class:`sklearn.kernel_approximation.Nystroem`, before a model with the kernel
    "linear".

    With "precomputed", X are rows of kernel values between tokens and all those of the training
    data: folds of a cross-validation must take some of the columns too, so give ``GridSearchCV`` a
    function instead.

    Examples
    --------
    >>> from crfkit import MaxMarginCRF
    >>> X = [[{"w": "the"}, {"w": "dog"}], [{"w": "a"}, {"w": "cat"}, {"w": "sleeps"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> model = MaxMarginCRF(C=10.0).fit(X, y)
    >>> model.predict([[{"w": "a"}, {"w": "dog"}, {"w": "sleeps"}]])
    [['DET', 'NOUN', 'VERB']]
    """

    C: float = 1.0
    loss: str = "margin_rescaling"
    cost: Any = "hamming"
    structure: str | Segments = "chain"
    kernel: Any = "linear"
    kernel_params: Any = None
    solver: str | Solver = "bcfw"
    max_iter: int | None = None
    features: Any = None
    min_freq: int = 0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    boundary_weights: bool = False
    init: Any = "zeros"
    warm_start: bool = False
    constraints: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    decoding = "viterbi"
    length_distribution = if_segments(length_distribution)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the weights, and return the estimator.

        Parameters
        ----------
        X, y : iterables of S sequences
            As for :meth:`CRFClassifier.fit`, also in what is raised.
        sample_weight : array of shape (S,) or sequence of S arrays of shape (T,), optional
            A weight for each sequence multiplies its slack: 2 is as good as having it twice. Those
            of the tokens of a sequence must be equal.
        """
        return self._learn(*self._task(X, y, sample_weight))

    def _problem(self) -> Problem:
        check_positive("C", self.C)
        check_option("loss", self.loss, RESCALINGS)
        solver = chosen_solver(self, MARGIN_SOLVERS)
        for need in solver.needs_of_loss:
            if not getattr(HingeLoss, need):
                raise ValueError(
                    f"solver={solver!r:.80} needs {LOSS_NEEDS[need]}, which a margin is not. Use "
                    f"one of {', '.join(map(repr, MARGIN_SOLVERS))}, or an object with options of "
                    "these."
                )
        check_kernel(self.kernel, self.kernel_params)
        labels = labels_of(self.structure, self.warm_start)
        weights = None
        if has_kernel(self.kernel):
            if labels.of_segments:
                raise ValueError(
                    f"kernel={self.kernel!r:.60} compares tokens, not segments: use "
                    "kernel='linear', or structure='chain'."
                )
            if solver.kernel_form is None:
                raise ValueError(
                    f"solver={self.solver!r:.80} needs kernel='linear'; with a kernel use 'bcfw' "
                    "or a KernelFrankWolfe."
                )
            if not (isinstance(self.init, str) and self.init == "zeros"):
                raise ValueError(
                    f"init={self.init!r:.60} are weights of attributes, which a model with a "
                    "kernel does not have: use init='zeros', or kernel='linear'."
                )
            solver, weights = solver.kernel_form(), KernelledTokens.of(self)
        return make_problem(
            self, labels=labels, weights=weights, loss=self._loss, scale=float(self.C),
            penalty=ElasticNet(0.0, 0.5), solver=solver,
        )  # fmt: skip

    def _loss(self, training: TrainingData) -> Loss:
        rescaling, search = RESCALINGS[self.loss]
        cost = training.cost(self.cost)
        exact = isinstance(cost, ZeroOneCost) or (
            isinstance(cost, AdditiveCost) and cost.counts_errors
        )
        if self.loss == "slack_rescaling" and not exact:
            raise ValueError(
                "loss='slack_rescaling' needs cost='hamming' or 'zero_one'. Use one of them, "
                "loss='margin_rescaling', or 'approximate_slack_rescaling', whose slacks are lower "
                "bounds."
            )
        if Weights.of(training.weight, training.data.offsets).sequences is None:
            raise ValueError(
                f"{type(self).__name__} needs the same weight for all tokens of a sequence: give "
                "sample_weight a number for each sequence."
            )
        return HingeLoss(cost, rescaling=rescaling, search=search)
