"""Labels given the label before: the maximum-entropy Markov model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from crfkit.estimators.linear import LinearClassifier
from crfkit.labels.base import TokenLabels
from crfkit.losses.likelihood import LogLoss
from crfkit.persistence import check_chain_model, register
from crfkit.potentials.examples import tokens_given_before
from crfkit.potentials.local import LocalTokens
from crfkit.solvers import SOLVERS, Solver
from crfkit.training.early_stopping import EarlyStopping
from crfkit.training.fit import (
    CallbackSupportMixin,
    Problem,
    chosen_solver,
    elastic_net,
    make_problem,
    with_callbacks,
)


@register(check=check_chain_model)
@dataclass(kw_only=True, eq=False, repr=False)
class MEMMClassifier(CallbackSupportMixin, LinearClassifier):
    """Maximum-entropy Markov model (McCallum, Freitag and Pereira 2000).

    Models ``P(y | x) = prod_t P(y_t | y_{t-1}, x_t)``, where each factor is a softmax over the
    labels of a token of the scores that :class:`crfkit.CRFClassifier` adds up: the weights of the
    token's attributes, of the step from the label before, and of the attributes of that step. So it
    is trained as a logistic regression of single tokens, which is fast, and minimizes::

        - sum_t weight_t log P(y_t | y_{t-1}, x_t) + c1 sum |w| + c2 sum w**2

    A label hands all of its probability on to the next ones, whatever these look like: labels that
    are followed by few others hardly mind the observations (the label bias; Lafferty, McCallum and
    Pereira 2001). A CRF that starts from here, ``CRFClassifier(init=memm)``, does not have it.

    On trees (:class:`crfkit.TreeFeatures`) the label before is that of the parent.

    Parameters
    ----------
    c1 : float, default=0.0
        Weight of the L1 penalty; makes weights exactly 0.
    c2 : float, default=0.1
        Weight of the L2 penalty.
    solver : str or Solver, default="auto"
        As for :class:`crfkit.CRFClassifier` with the log loss.
    max_iter : int or None, default=None
        Iterations (passes, for a stochastic solver) at most; None leaves it to the solver.
    features : transformer or None, default=None
        Makes the attributes of what X holds; see :class:`crfkit.CRFClassifier`.
    min_freq : int, default=0
        (Attribute, label) and (label, next label) pairs that occur fewer times in the training
        data get no weight.
    all_possible_states : bool, default=False
        Give every (attribute, label) pair a weight, not only those seen in the training data.
    all_possible_transitions : bool, default=False
        Give every (label, next label) pair a weight, for each attribute of transitions too.
        Those without one are allowed, with score 0.
    boundary_weights : bool, default=False
        Learn weights of the labels of the first token of a sequence. Of last ones there are none.
    decoding : {"viterbi", "posterior", "spans"} or Decoder, default="viterbi"
        See :class:`crfkit.CRFClassifier`. May be changed after fitting.
    early_stopping : bool or EarlyStopping, default=False
        Score the model on a validation part after each iteration, end the fit when the score no
        longer rises, and keep the best weights.
    init : {"zeros", "counts"} or fitted estimator, default="zeros"
        Where the solver starts; see :class:`crfkit.CRFClassifier`.
    warm_start : bool, default=False
        Start from the weights of the last fit, matched by the names of attributes and labels.
    constraints : Constraints, rule, list of rules, str or None, default=None
        What all answers of the model keep to, probabilities too; they have no part in training.
        May be changed after fitting.
    random_state : int, RandomState instance or None, default=None
        Chooses the sequences that early stopping holds out, and, where `solver` is a name and this
        is not None, the order in which a stochastic solver visits the data.
    n_jobs : int or None, default=None
        Threads for fitting and prediction: None is 1 (or what ``joblib.parallel_config`` says),
        -1 all cores. The results are the same to the last bit.
    verbose : int, default=0
        1 prints every tenth iteration and the end, 2 every iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted if they can be.
    coef_ : csr_array of shape (D, K)
        State weights; only those that are not 0 are stored.
    transitions_ : ndarray of shape (K, K)
        Weights of the transitions from a label (row) to the next (column).
    transition_coef_ : csr_array of shape (D2, K * K) or None
        Weights of attributes of transitions; column ``i * K + j`` leads from label ``i`` to ``j``.
    start_weights_, end_weights_ : ndarray of shape (K,)
        Weights of first labels, zeros without `boundary_weights`; zeros.

    All other fitted attributes are those of :class:`crfkit.CRFClassifier`.

    See Also
    --------
    CRFClassifier : Labels as a whole.
    TokenClassifier : Labels of single tokens.

    Notes
    -----
    Tokens whose label before is not known (`UNLABELED`, a set of labels, or of weight 0) are not
    learned from; the label of a token itself may be a set. Where labels are
    :class:`crfkit.SoftLabels`, the label before is one of several with its probability.

    Examples
    --------
    >>> from crfkit import MEMMClassifier
    >>> X = [[{"w": "the"}, {"w": "dog"}], [{"w": "a"}, {"w": "cat"}, {"w": "sleeps"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> memm = MEMMClassifier(c2=0.1).fit(X, y)
    >>> memm.predict([[{"w": "a"}, {"w": "dog"}, {"w": "sleeps"}]])
    [['DET', 'NOUN', 'VERB']]
    """

    c1: float = 0.0
    c2: float = 0.1
    solver: str | Solver = "auto"
    max_iter: int | None = None
    features: Any = None
    min_freq: int = 0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    boundary_weights: bool = False
    decoding: Any = "viterbi"
    early_stopping: bool | EarlyStopping = False
    init: Any = "zeros"
    warm_start: bool = False
    constraints: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    has_probabilities = True
    scales = False  # sums over the labels of a token do not
    weight_space = LocalTokens

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the weights, and return the estimator.

        Parameters
        ----------
        X, y, X_val, y_val
            As for :meth:`crfkit.CRFClassifier.fit`.
        sample_weight : array of shape (S,) or sequence of S arrays of shape (T,), optional
            The weight of a sequence is that of its tokens, and the weight of a token multiplies
            the log-probability of its label; a label of weight 0 counts as not known.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter cannot be used; the message says where and why.
        """
        return self._learn(*self._task(X, y, sample_weight, X_val, y_val))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass over a batch of data; see :meth:`crfkit.CRFClassifier.partial_fit`."""
        return self._learn_batch((X, y, sample_weight), classes)

    def _problem(self) -> Problem:
        return make_problem(
            self, labels=TokenLabels(), loss=lambda training: LogLoss(), penalty=elastic_net(self),
            solver=chosen_solver(self, SOLVERS), weights=LocalTokens(TokenLabels()),
            examples=tokens_given_before,
        )  # fmt: skip
