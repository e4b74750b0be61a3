"""The semi-Markov conditional random field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from crfkit.estimators import _questions, _views
from crfkit.estimators.linear import LinearClassifier
from crfkit.estimators.segments import SegmentLimits, Segments
from crfkit.labels.segments import SegmentLabels
from crfkit.losses import Loss
from crfkit.persistence import check_chain_model, register
from crfkit.potentials.semimarkov import TOKEN_PARTS
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


@register(check=check_chain_model)
@dataclass(kw_only=True, eq=False, repr=False)
class SemiMarkovCRF(CallbackSupportMixin, LinearClassifier):
    """Semi-Markov conditional random field: labels of segments (Sarawagi and Cohen 2004).

    Models ``P(s | x) = exp(score(x, s)) / Z(x)``, where a segmentation ``s`` cuts the sequence into
    segments of one label each, and fits the weights ``w`` by minimizing::

        - sum_i weight_i log P(s_i | x_i) + c1 sum |w| + c2 sum w**2

    With another `loss`, that takes the place of the first term. The score of a segmentation is the
    sum of the weights of (attribute, label) pairs of all tokens, of the first, of the last and of
    the only tokens of its segments, of (length, label) pairs, of (attribute, label) pairs of
    segments as a whole, and of (label, next label) pairs of segments that follow each other.

    Parameters
    ----------
    max_length : int, dict or None, default=None
        The longest length of segments: of all labels, or by label, as in `classes_`; of those not
        named, and with None of all, the longest that the training data have. Time and memory grow
        with it.
    length : str, callable, list of these or None, default="buckets"
        Features of lengths, each with a weight for each label: "indicator", "buckets", "geometric",
        "poisson", an expression, a function of an array of lengths, or several. See the notes.
    outside : {"single", "long"}, default="single"
        Whether each token outside of all segments (tag or label "O") is a segment of its own, as
        in a linear chain, or each run of such tokens is one. See the notes.
    scheme : str, default="auto"
        How segments are written as tags: "IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES",
        "BMEWO", "IO"; "conll" reads any tags and writes IOB2; "runs": a run of equal labels is a
        segment; "auto" finds out, see the notes. Lists of segments are predicted as IOB2 tags then.
    token_parts : list, default=("inside", "first", "last", "single")
        For which tokens of a segment attributes have weights, which add up: all, the first, the
        last, and one that is the whole segment. Attributes whose names begin with ``seg.first.``,
        ``seg.last.`` or ``seg.single.`` have weights for these tokens alone.
    limits : SegmentLimits or None, default=None
        Shortest lengths, pairs of labels that are not allowed, and what becomes of segments that
        are too long.
    cost : {"hamming", "zero_one"}, dict or array of shape (K, K), default="hamming"
        As for :class:`crfkit.CRFClassifier`, for each token, by the labels of segments. A token of
        the right label where a segment wrongly begins, or does not, costs as much as the worst one.
    c1, c2, loss, solver, max_iter, features, min_freq, random_state, n_jobs, verbose
        As for :class:`crfkit.CRFClassifier`, with the same defaults.
    decoding : {"viterbi", "posterior", "spans"} or Decoder, default="viterbi"
        As for :class:`crfkit.CRFClassifier`; a token is right where its label is, and whether a
        segment begins there.
    init : {"zeros", "counts"} or fitted estimator, default="zeros"
        As for :class:`crfkit.CRFClassifier`; weights of lengths start at 0, and so do with "counts"
        those of all attributes but of all tokens of a segment.
    early_stopping : bool or EarlyStopping, default=False
        As for :class:`crfkit.CRFClassifier`; where `fit` is given no validation part, that is a
        tenth of the sequences.
    constraints : Constraints, rule, list of rules, str or None, default=None
        What all answers of the model keep to, as for :class:`crfkit.CRFClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels of segments, without the letters of tags; "O" is that of tokens outside.
    coef_, first_coef_, last_coef_, single_coef_ : csr_array of shape (D, K)
        Weights of the attributes of all tokens of a segment, of its first, of its last, and of its
        only one.
    transitions_ : ndarray of shape (K, K)
        Weights of the transitions from the label of a segment (row) to that of the next (column);
        ``-inf`` where it is not allowed.
    length_scores_ : ndarray of shape (L, K)
        Potentials of the lengths 1, ..., L of segments of each label; ``-inf`` where too long or
        short.
    segment_coef_, transition_coef_ : csr_array of shape (D3, K), (D2, K * K) or None
        Weights of the attributes of segments as a whole, and of transitions into their first
        tokens: column ``i * K + j`` leads from label ``i`` to ``j``.
    start_weights_, end_weights_ : ndarray of shape (K,)
        Zeros.
    max_lengths_, scheme_ : dict, str
        The longest length of the segments of each label; the scheme of the tags, or "runs".
    feature_names_in_, transition_feature_names_in_, segment_feature_names_in_ : ndarray
        Names of the attributes, of transitions and of segments, where they are known.
    state_features_, first_features_, last_features_, single_features_, segment_features_
    transition_features_, transition_attributes_ : WeightView
        The weights that are not 0 as mappings from (attribute, label), (label, next label) and
        (attribute, (label, next label)): of all, first, last and only tokens, and whole segments.
    vectorizer_, n_features_in_, n_parameters_, n_iter_, solver_, converged_, objective_
    gap_, training_log_, validation_scores_, best_iteration_, best_score_
        As of :class:`crfkit.CRFClassifier`.

    See Also
    --------
    CRFClassifier : Labels of tokens: the same as segments of one token and their attributes alone.
    Segments : The same description of segments for other estimators.

    Notes
    -----
    Kinds of `length`: "indicator", one feature for each length; "buckets", one for each of 1 to 5
    and for ranges that grow from there on; "geometric", the length less 1, so that ``exp(score)``
    is a geometric distribution of lengths; "poisson" likewise; a condition or number such as
    ``"3 <= seg.length <= 5"``, ``"log(seg.length)"``. To save, a function must stand in a module
    (``np.log`` cannot be saved, ``"log(seg.length)"`` can).

    Runs of ``outside="long"`` have lengths, and one transition leads into them and one out of them,
    so that labels before and behind them touch but for one "O". They cost time where they are
    longer than the segments, unless ``max_length={"O": 10}`` cuts them; a run that is longer than
    all in the training data can only be several.

    ``scheme="auto"`` finds the scheme of tags such as ``B-PER`` (IOB1 where they could be IO as
    well), and takes other labels as runs. What may be either needs a name: tags of which a type has
    two letters beside other labels; letters of tags alone, with ``B`` and another.

    Sums over all segmentations take the time ``O(T (L K + K**2))`` and the memory ``O(T K)`` for a
    sequence of T tokens, where Sarawagi and Cohen (2004) have ``O(T L K**2)``: the transition to a
    label does not depend on the length of its segment.

    Pairs and lengths that the training data do not have get no weight. Lengths within the limits
    and transitions without a weight are allowed, with score 0. A part of the data, as in
    cross-validation, may lack a label or the longest segments: what the rest has then cannot be
    predicted, and labels that a dict names but the data lack are left out (with a warning where it
    names no other, and one looks like a slip for a label of the data).

    Where labels do not tell where segments of one label touch ("runs", "IO"), the longest ones are
    learned. Predictions may have two side by side, which `predict_spans` tells apart, and
    `predict` does not.

    Token weights as in :class:`crfkit.losses.LogLoss`: what is learned of a token is its label, and
    whether a segment begins there. Of sequences of weight 0 neither lengths nor labels are
    learned; they are read and checked as others are, and a `cost` matrix counts their labels.

    Examples
    --------
    >>> from crfkit import SemiMarkovCRF
    >>> X = [[{"w": w} for w in "I saw New York".split()], [{"w": w} for w in "Ann left".split()]]
    >>> y = [["O", "O", "B-LOC", "I-LOC"], ["B-PER", "O"]]
    >>> model = SemiMarkovCRF(c2=0.1).fit(X, y)
    >>> model.predict_spans(X)
    [[Segment(start=2, stop=4, label='LOC')], [Segment(start=0, stop=1, label='PER')]]
    >>> model.max_lengths_
    {'LOC': 2, 'O': 1, 'PER': 1}

    The same with segments instead of tags:

    >>> spans = [[(2, 4, "LOC")], [(0, 1, "PER")]]
    >>> SemiMarkovCRF(c2=0.1).fit(X, spans).predict(X) == y
    True
    """

    max_length: int | Mapping[Any, int] | None = None
    length: Any = "buckets"
    outside: str = "single"
    scheme: str = "auto"
    token_parts: Iterable[str] = TOKEN_PARTS
    limits: SegmentLimits | None = None
    c1: float = 0.0
    c2: float = 0.1
    loss: str | Loss = "log"
    cost: Any = "hamming"
    solver: str | Solver = "auto"
    max_iter: int | None = None
    features: Any = None
    min_freq: int = 0
    decoding: Any = "viterbi"
    init: Any = "zeros"
    early_stopping: bool | EarlyStopping = False
    constraints: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    has_probabilities = True
    expected_lengths = _questions.expected_lengths
    length_distribution = _views.length_distribution

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the weights, and return the estimator.

        Parameters
        ----------
        X : PackedSequences, or iterable of S sequences
            As for :class:`crfkit.CRFClassifier`; PackedSequences may have attributes of segments.
        y : iterable of S sequences of tags or labels, or of S lists of segments
            Tags or labels of all tokens, or the segments of each sequence as (start, stop, label)
            or :class:`crfkit.metrics.Segment`, in any order; other tokens are outside. Tokens whose
            tag, or span, is `UNLABELED` may be of any segments that do not reach beyond them;
            `UNLABELED` in place of a span says so of all other tokens. The label of a span may be
            a set, of which one is right.
        sample_weight, X_val, y_val
            As for :meth:`crfkit.CRFClassifier.fit`.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter cannot be used, or a segment is longer or shorter
            than is allowed, or follows one that it may not follow; the message says where and why.
        """
        return self._learn(*self._task(X, y, sample_weight, X_val, y_val))

    def _problem(self) -> Problem:
        segments = Segments(
            max_length=self.max_length, length=self.length, outside=self.outside,
            scheme=self.scheme, token_parts=self.token_parts, limits=self.limits,
        )  # fmt: skip
        segments._check_parameters()
        return make_problem(
            self, labels=SegmentLabels(segments), loss=chosen_loss(self), penalty=elastic_net(self),
            solver=chosen_solver(self, SOLVERS),
        )  # fmt: skip
