"""The linear-chain conditional random field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from crfkit.estimators.linear import LinearClassifier
from crfkit.labels.base import TokenLabels
from crfkit.losses import Loss
from crfkit.persistence import check_chain_model, register
from crfkit.solvers import SOLVERS, Solver
from crfkit.training.early_stopping import EarlyStopping
from crfkit.training.fit import (
    CallbackSupportMixin,
    Problem,
    chosen_loss,
    chosen_solver,
    elastic_net,
    make_problem,
    with_callbacks,
)

register(EarlyStopping)


@register(check=check_chain_model)
@dataclass(kw_only=True, eq=False, repr=False)
class CRFClassifier(CallbackSupportMixin, LinearClassifier):
    """Linear-chain conditional random field (Lafferty, McCallum and Pereira 2001).

    Models ``P(y | x) = exp(score(x, y)) / Z(x)``, where the score of a label sequence is the sum
    of the weights of its (attribute, label) pairs and of its (label, next label) pairs, and, where
    the features have attributes of transitions, of (attribute, label, next label) triples, and fits
    the weights ``w`` by minimizing::

        - sum_i weight_i log P(y_i | x_i) + c1 sum |w| + c2 sum w**2

    With another `loss`, that takes the place of the first term.

    This is CRFsuite's objective, and its weights, but for pairs of a label and an attribute that is
    0 (or False) wherever the label occurs: CRFsuite counts them as seen, as does
    :class:`crfkit.compat.sklearn_crfsuite.CRF`; here such an attribute is as good as absent.

    Parameters
    ----------
    c1 : float, default=0.0
        Weight of the L1 penalty; makes weights exactly 0.
    c2 : float, default=0.1
        Weight of the L2 penalty.
    loss : str or Loss, default="log"
        "log", the negative log-likelihood; "softmax_margin", the same with the cost added to the
        scores (Gimpel and Smith 2010); "hinge" (:class:`crfkit.losses.HingeLoss`);
        "annealed_hinge", softened by a falling temperature, for gradient solvers; with these three,
        the tokens of a sequence must have one weight. "pseudolikelihood", each label given all
        others (Besag 1975); "pointwise", the log-likelihood of single labels (Kakade, Teh and
        Roweis 2002), "labelwise", a smooth count of the most probable labels that are wrong (Gross
        et al. 2006), and "risk", the expected cost, which are not convex; or an object of
        :mod:`crfkit.losses`.
    cost : {"hamming", "zero_one"}, dict or array of shape (K, K), default="hamming"
        What wrong labels cost, for losses that are given by name and have a cost: their number; 1
        if any is wrong ("hinge" alone); for each true label what missing it costs, 1 for those not
        named; or ``cost[i, j]`` for label `j` where `i` is true, in the order of `classes_`. With
        "log", or an object as loss, any but "hamming" raises an error.
    solver : str or Solver, default="auto"
        "lbfgs", "oeg", "sag", "sgd", "owlqn", "dense_newton", "newton", "cg", "rprop", "gis",
        "iis", an object with options, such as ``LBFGS(tol=1e-8)``, or "auto", which chooses by
        loss, penalty and size (:class:`crfkit.solvers.AutoSolver`). "hinge" takes "sgd" and "auto"
        of these, and the solvers of :class:`crfkit.MaxMarginCRF` as objects.
    max_iter : int or None, default=None
        Iterations (passes, for a stochastic solver) at most; None leaves it to the solver.
    features : transformer or None, default=None
        Makes the attributes of what X holds, such as words, rows of columns or a data frame:
        ``TemplateFeatures(...)``, or any transformer whose output `fit` takes. A clone is fitted
        first, and kept in `vectorizer_`.
    min_freq : int, default=0
        (Attribute, label) and (label, next label) pairs that occur fewer times in the training
        data get no weight. Occurrences are counted, whatever the value of the attribute.
    all_possible_states : bool, default=False
        Give every (attribute, label) pair a weight, not only those seen in the training data.
    all_possible_transitions : bool, default=False
        Give every (label, next label) pair a weight, for each attribute of transitions too.
        Those without one are allowed, with score 0.
    boundary_weights : bool, default=False
        Learn weights of the labels of the first and of the last token of a sequence.
    decoding : {"viterbi", "posterior", "spans"} or Decoder, default="viterbi"
        The most probable label sequence; that with the most correct labels in expectation (Gross et
        al. 2006, section 2.2); that of the spans which have the fewest errors in expectation; or a
        decoder of :mod:`crfkit.inference` with options, such as ``MinimumRisk({"O": 0.5})``,
        ``ExpectedSpans(threshold=0.4)`` and ``Abstain(threshold=0.9)``. May be changed after
        fitting.
    early_stopping : bool or EarlyStopping, default=False
        Score the model on a validation part after each iteration, end the fit when the score no
        longer rises, and keep the best weights; or an object with options, such as
        ``EarlyStopping(scoring="entity_f1", patience=10)``.
    init : {"zeros", "counts"} or fitted estimator, default="zeros"
        Where the solver starts: at 0; at weights that are counted, as those of a hidden Markov
        model (:mod:`crfkit.potentials.counting`); or at those of a model of labels of tokens,
        matched by the names of attributes and labels. A model that is given is not cloned, and
        saved with this one; a grid clones its values, but for a ``FrozenEstimator``. "oeg" only
        starts there where its dual is better than usual.
    warm_start : bool, default=False
        Start from the weights of the last fit, matched by the names of attributes and labels;
        `init` is for the first one then.
    constraints : Constraints, rule, list of rules, str or None, default=None
        What all answers of the model keep to, probabilities too: rules such as ``Count("PRICE",
        at_most=1)`` (:mod:`crfkit.constraints`), or the name of a tag scheme, "IOB2". They have no
        part in training, but in the scores of a validation part. May be changed after fitting.
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
        Weights of first and last labels; zeros without `boundary_weights`.
    vectorizer_ : transformer or None
        What makes the attributes: the fitted `features`, or the SequenceVectorizer of a model that
        was fitted on dicts or strings.
    n_features_in_ : int
        Number of attributes D.
    feature_names_in_, transition_feature_names_in_ : ndarray of shape (D,), (D2,)
        Names of the attributes, and of those of transitions, where they are known.
    state_features_, transition_features_, transition_attributes_ : WeightView
        The weights that are not 0 as mappings from (attribute, label), (label, next label) and
        (attribute, (label, next label)).
    n_parameters_, n_iter_ : int
        Number of weights that were fitted, and iterations of the solver.
    solver_ : str
        The solver that found the weights, a class of :mod:`crfkit.solvers`: "LBFGS", "OEG". With
        ``solver="auto"`` the one it chose, or two where a second one went on: "OEG, LBFGS".
    converged_ : bool
        Whether the solver met its stopping rule; False where it was stopped early.
    objective_, gap_ : float
        Value of the objective at the weights that were kept, and how much it is above the optimum
        at most; NaN where no bound is known.
    training_log_ : list of IterationRecord
        Objective, gradient norm, evaluations, non-zero weights and seconds of each iteration.
    validation_scores_ : dict of int to float
        With early stopping: the validation score of each iteration that was scored; 0 is the start.
    best_iteration_, best_score_ : int, float
        With early stopping: the iteration whose weights were kept, and its validation score.

    See Also
    --------
    crfkit.features.SequenceVectorizer, crfkit.features.TemplateFeatures : Attributes of tokens.

    Notes
    -----
    Ctrl-C during `fit` ends it with the weights of the last finished iteration and a
    ``ConvergenceWarning``. It ends only the fit that runs: a search over many fits goes on with the
    next one.

    Probabilities (`predict_proba` and the like) are ``exp(score) / Z`` with any loss. "log" fits
    them to the data. A hinge loss does not: they are a distribution that ranks labelings by their
    scores, no estimates of how often these are right.

    Fitted arrays are read-only; those that are assigned become so when they are used. To change
    weights by hand, assign a changed copy: ``w = crf.transitions_.copy()``, ``w[i, j] = -np.inf``,
    ``crf.transitions_ = w``.

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> X = [[{"w": "the"}, {"w": "dog"}], [{"w": "a"}, {"w": "cat"}, {"w": "sleeps"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> crf = CRFClassifier(c2=0.1).fit(X, y)
    >>> crf.predict([[{"w": "a"}, {"w": "dog"}, {"w": "sleeps"}]])
    [['DET', 'NOUN', 'VERB']]
    """

    c1: float = 0.0
    c2: float = 0.1
    loss: str | Loss = "log"
    cost: Any = "hamming"
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

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the weights, and return the estimator.

        Parameters
        ----------
        X : PackedSequences, or iterable of S sequences
            Each sequence a list of tokens (dicts, or lists or sets of attribute strings), or an
            array or sparse matrix of shape (T, D); or what `features` takes. Generators are read
            once.
        y : iterable of S sequences of labels
            One label a token; any hashable objects but None and NaN. A set of labels, of which one
            is right, or :data:`crfkit.UNLABELED`, where nothing is known: the likelihood is then
            that of all labelings that are allowed, and the objective not convex. Or
            :class:`crfkit.SoftLabels`, distributions over the labels of each token.
        sample_weight : array of shape (S,) or sequence of S arrays of shape (T,), optional
            The weight of a sequence multiplies its log-likelihood: 2 is as good as having it twice.
            Of tokens: those of weight 0 act as without a label, equal ones as the weight of the
            sequence; for what is between see :class:`crfkit.losses.LogLoss`.
        X_val, y_val : iterables of sequences, optional
            With early stopping: what to score the model on, instead of a part of X and y.
            Attributes and labels that X and y do not have are treated as in `predict` and `score`.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter cannot be used; the message says where and why.
        """
        return self._learn(*self._task(X, y, sample_weight, X_val, y_val))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass over a batch of data from the weights so far, or from 0.

        `solver` must be one that learns from batches. New attributes of tokens, and pairs that are
        seen for the first time, get new weights. The penalty counts in full in each call.
        `early_stopping`, `init` and `warm_start` have no part in it; "annealed_hinge" is that of
        its last temperature, "labelwise" of its last slope.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`, in the same form in each call. PackedSequences and matrices must have the
            same attributes each time.
        classes : sequence of labels, optional
            All labels that will ever occur; needed in the first call.

        Raises
        ------
        ValueError, TypeError
            As for `fit`, or if the solver does not learn from batches, `classes` are missing or
            others than before, or a label is not one of them.
        """
        return self._learn_batch((X, y, sample_weight), classes)

    def _problem(self) -> Problem:
        return make_problem(
            self, labels=TokenLabels(), loss=chosen_loss(self), penalty=elastic_net(self),
            solver=chosen_solver(self, SOLVERS),
        )  # fmt: skip
