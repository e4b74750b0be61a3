"""The structured perceptron, and its relatives, on a chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from crfkit._types import FloatArray
from crfkit.estimators._views import if_segments, length_distribution
from crfkit.estimators._voting import Ballot, check_free, check_votes
from crfkit.estimators.linear import LinearClassifier
from crfkit.estimators.segments import Segments, labels_of
from crfkit.losses import Loss
from crfkit.objective.penalties import ElasticNet
from crfkit.oracles.label_order import LabelOrder
from crfkit.persistence import register
from crfkit.solvers.online.learner import MistakeLoss, count_updates
from crfkit.solvers.online.passes import OnlineSolver
from crfkit.solvers.online.updates import UpdateRule
from crfkit.training.data import TrainingData
from crfkit.training.early_stopping import EarlyStopping
from crfkit.training.fit import CallbackSupportMixin, Fit, Problem, make_problem, with_callbacks


@register(check=check_votes)
@dataclass(kw_only=True, eq=False, repr=False)
class StructuredPerceptron(CallbackSupportMixin, LinearClassifier):
    """Structured perceptron (Collins 2002), passive-aggressive learning, AROW and MIRA.

    The score of a label sequence is that of :class:`CRFClassifier`. Learning looks at one sequence
    after the other and predicts its labels; after a mistake it moves the weights along the
    difference of the features of the true and of the predicted labels. There is no objective, and
    there are no probabilities.

    Parameters
    ----------
    structure : {"chain"} or Segments, default="chain"
        Whether labels are those of tokens, or of segments, as for :class:`~crfkit.SemiMarkovCRF`:
        without "vote", `search`, several labelings of `update`, `warm_start` and `partial_fit`.
    update : str or UpdateRule, default="perceptron"
        How far the weights move: "perceptron" by a fixed rate; "pa", "pa1", "pa2", "arow", "mira",
        or an object, such as ``PassiveAggressive(C=0.1)``. See :class:`crfkit.solvers.Perceptron`,
        :class:`PassiveAggressive`, :class:`AROW`, :class:`MIRA`.
    averaging : {"average", "vote", "batch"} or None, default="average"
        "average": the mean of the weights at the start and after each look at a sequence. None: the
        last weights, as is usual with "arow". "vote": see the notes. "batch": the mean of the steps
        of a pass, all computed at the weights before it; "perceptron" only.
    cost : {"hamming"}, dict, array of shape (K, K) or None, default=None
        Added to the scores of wrong labels while learning, so that the true ones win by a margin: 1
        each, or as for :class:`~crfkit.MaxMarginCRF`. Replaces the number of wrong labels in rules
        that have a loss.
    search : BeamSearch or None, default=None
        Predict labels by a search with a beam, when learning and in `predict`
        (:class:`crfkit.inference.BeamSearch`); None is exact.
    max_iter : int, default=10
        Passes over the data at most.
    tol : float or None, default=None
        Stop when the mean loss of a pass is below this, and warn where that does not happen. None:
        stop after a pass without a mistake, and do not warn.
    shuffle : bool, default=True
        Whether the sequences are put into a new order before each pass.
    features, min_freq, all_possible_states, all_possible_transitions, boundary_weights
    early_stopping, warm_start
        As for :class:`CRFClassifier`. With "vote", early stopping scores the last weights of a
        pass, and the votes up to the best pass are kept.
    constraints : Constraints, rule, list of rules, str or None, default=None
        What predictions keep to, as for :class:`CRFClassifier`; not with "vote".
    random_state : int, RandomState instance or None, default=None
        Orders the sequences, and chooses those that early stopping holds out. None: always the same
        orders, and held-out sequences that differ.
    n_jobs : int or None, default=None
        Threads for prediction, and for learning with "batch".
    verbose : int, default=0
        1 prints every tenth pass and the end, 2 every pass.

    Attributes
    ----------
    classes_, coef_, transitions_, transition_coef_, start_weights_, end_weights_
        The labels and the weights, as of :class:`CRFClassifier`. With "vote", those after the last
        look.
    vote_counts_, vote_changes_ : ndarray of shape (V,), csr_array of shape (V, W)
        With "vote": after how many looks each weights were the last ones, those of the start first;
        the first weights, and what each step changed, in the order of `coef_`, `transitions_`,
        `start_weights_`, `end_weights_` and `transition_coef_`, row after row.
    vote_order_ : ndarray of shape (K,)
        With "vote": the labels, as numbers, in the order in which they win ties.
    vectorizer_, n_features_in_, feature_names_in_, transition_feature_names_in_
    state_features_, transition_features_, transition_attributes_, n_parameters_
    solver_
        As of :class:`CRFClassifier`.
    n_iter_ : int
        Passes over the data.
    converged_ : bool
        Whether the stopping rule was met; True after `max_iter` passes if `tol` is None.
    objective_, gap_ : float
        Loss of the last pass: the sum of the shares of wrong labels for "perceptron", else that of
        the losses of the rule. NaN: there is no objective.
    training_log_ : list of IterationRecord
        Loss of each pass (`value`), sequences with a mistake (`mistakes`), non-zero weights and
        seconds; the first record is that of the start.
    validation_scores_, best_iteration_, best_score_
        With early stopping, as of :class:`CRFClassifier`.

    See Also
    --------
    CRFClassifier : Has probabilities, and an objective.

    Notes
    -----
    With "vote" all weights are kept, and each votes for the labels it predicts as many times as it
    survived (Freund and Schapire 1999), token by token: prediction takes as long as that of as many
    models as there were steps, for small data only.

    Of labelings that score the same, that one is predicted whose last label comes first, then the
    one before, and so on (of segmentations, then the one whose last segment is the shortest): by
    the order in which labels occur in the training data while these are learned, as in CRFsuite,
    and by votes; in `partial_fit`, and in `predict` otherwise, by `classes_`.

    Where labels are known in part (sets of labels, or :data:`crfkit.UNLABELED`), the best labeling
    of those that are allowed, at the weights by then, stands for the true one; without a `cost`.

    Chains are learned in compiled code, as segments without attributes of transitions are, but for
    `search`, ``MIRA(n_best=...)``, and more than 150 labels of which few follow one another. These,
    and trees, take many times as long. Ctrl-C during `fit` ends it with the weights of the last
    finished pass and a ``ConvergenceWarning``.

    Examples
    --------
    >>> from crfkit import StructuredPerceptron
    >>> X = [[{"w": "the"}, {"w": "dog"}], [{"w": "a"}, {"w": "cat"}, {"w": "sleeps"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> perceptron = StructuredPerceptron(max_iter=5).fit(X, y)
    >>> perceptron.predict([[{"w": "a"}, {"w": "dog"}, {"w": "sleeps"}]])
    [['DET', 'NOUN', 'VERB']]
    """

    structure: str | Segments = "chain"
    update: str | UpdateRule = "perceptron"
    averaging: str | None = "average"
    cost: Any = None
    search: Any = None
    max_iter: int = 10
    tol: float | None = None
    shuffle: bool = True
    features: Any = None
    min_freq: int = 0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    boundary_weights: bool = False
    early_stopping: bool | EarlyStopping = False
    warm_start: bool = False
    constraints: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    length_distribution = if_segments(length_distribution)

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Learn the weights, and return the estimator.

        Parameters
        ----------
        X, y : iterables of S sequences
            As for :meth:`CRFClassifier.fit`, also in what is raised.
        sample_weight : array of shape (S,), optional
            A weight for each sequence, which multiplies its steps; sequences of weight 0 are not
            looked at.
        X_val, y_val : iterables of sequences, optional
            With early stopping, as for :meth:`CRFClassifier.fit`.
        """
        return self._learn(*self._task(X, y, sample_weight, X_val, y_val))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass over a batch of data from the weights so far, or from 0.

        As :meth:`CRFClassifier.partial_fit`, whose parameters and errors it has. The mean goes on
        over all calls; "vote" cannot be used.
        """
        return self._learn_batch((X, y, sample_weight), classes)

    @property
    def decoding(self) -> Any:
        """The decoder of predictions: the search of learning."""
        if self.search is None:
            return "viterbi"
        methods = (getattr(self.search, name, None) for name in ("violation", "decode"))
        if isinstance(self.search, type) or not all(map(callable, methods)):
            raise TypeError(
                f"search={self.search!r} must be None or an object with the methods 'violation' "
                "and 'decode', such as BeamSearch()."
            )
        return self.search

    def _problem(self) -> Problem:
        solver = OnlineSolver(
            self.update, averaging=self.averaging, max_iter=self.max_iter, tol=self.tol,
            shuffle=self.shuffle, search=self.search,
        )  # fmt: skip
        rule = solver.checked_update()
        check_free(self.averaging != "vote" or self.constraints is None)
        labels = labels_of(self.structure, self.warm_start)
        for name, wrong, right in (
            ("averaging='vote'", self.averaging == "vote", "averaging='average'"),
            (f"search={self.search!r:.60}", self.search is not None, "search=None"),
            ("n_best > 1", rule.n_best > 1, "n_best=1"),
        ):
            if wrong and labels.of_segments:
                raise ValueError(
                    f"{name} looks at labels of tokens, not of segments: use {right}, or "
                    "structure='chain'."
                )
        if self.random_state is not None:
            solver.random_state = self.random_state
        solver.recorder = Ballot() if self.averaging == "vote" else None
        return make_problem(
            self, labels=labels, loss=self._loss, penalty=ElasticNet(0.0, 0.0), solver=solver,
            further=_votes if self.averaging == "vote" else None,
        )  # fmt: skip

    def _loss(self, training: TrainingData) -> Loss:
        return MistakeLoss(None if self.cost is None else training.cost(self.cost))


def _votes(fit: Fit, start: FloatArray, passes: int) -> dict[str, Any]:
    """Return the votes of the passes whose weights were kept, as fitted attributes."""
    training, ballot = fit.training, fit.problem.solver.recorder
    total = passes * count_updates(training.weight, training.data.offsets)
    counts = training.weight * training.targets.single
    ties = LabelOrder.by_appearance(training.codes, len(training.classes), counts)
    found: dict[str, Any] = ballot.attributes(fit.model, start, total)
    return found | {"vote_order_": ties.order}
