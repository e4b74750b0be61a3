"""The hidden Markov model, and naive Bayes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from crfkit._callbacks import CallbackSupportMixin, told_as_a_whole
from crfkit._parallel import ThreadMap
from crfkit._types import FloatArray, Potentials
from crfkit.data import LabelSequences
from crfkit.data.labels import LabelStream, by_sequence, object_array
from crfkit.estimators._questions import tokens_of
from crfkit.estimators.base import SequenceClassifier
from crfkit.estimators.crf import CRFClassifier
from crfkit.generative.counting import check_counts
from crfkit.generative.drawing import draw_labels
from crfkit.generative.linear import linear_weights
from crfkit.generative.model import HiddenProbabilities
from crfkit.persistence import check_what_predicts, register
from crfkit.potentials.blocks import NAMES_OF, TOKENS
from crfkit.structures import Structure
from crfkit.structures.log_sums import log_sums
from crfkit.training.hidden import (
    Setup,
    counted,
    counted_first,
    counted_on,
    given_model,
    learned,
    read_data,
)
from crfkit.training.partial_fit import all_classes


def check_hidden(model: Any) -> None:
    """Raise ValueError if the fitted attributes of a restored model do not fit together."""
    fitted = vars(model)
    if "start_probabilities_" not in fitted:
        return
    check_what_predicts(model)
    hidden, _ = HiddenProbabilities().read(model)
    state = fitted.get("_partial_state")
    if state is None:
        return
    if type(state) is not dict or set(state) != {"order", "counts"}:
        raise ValueError("_partial_state has no order and counts")
    sizes = len(model.classes_), model.n_features_in_
    check_counts(state["counts"], state["order"], hidden.emission, *sizes)


@register(check=check_hidden)
@dataclass(kw_only=True, eq=False, repr=False)
class HMMClassifier(CallbackSupportMixin, SequenceClassifier):
    """Hidden Markov model of labels and tokens (Rabiner 1989); naive Bayes in order 0.

    The labels are a Markov chain, and a token depends on its label alone::

        P(x, y) = P(y_1) prod_t P(y_t | y_{t-1}) P(end | y_T) prod_t P(x_t | y_t)

    With known labels all of that is counted and smoothed, in one pass over the data. Where labels
    are not known, or in part, it is found by EM (Baum and Welch): the counts of what is known, and
    the expected counts of the rest. Prediction is that of any model of chains: all methods of
    :class:`CRFClassifier` are there, and `to_crf` is the same model as one.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        How many labels before it a label depends on. 0 is naive Bayes: each token is classified
        alone, and the probability of a label is its share; 2 is the model of Brants (2000).
    emissions : str or Emission, default="auto"
        How tokens depend on their labels: "categorical" (a symbol, or several: words, or dicts or
        tuples of them), "words" (known words, and unknown ones by what they end in),
        "multinomial" (counts, or tokens of several attributes), "bernoulli" (attributes that are
        there or not) or "gaussian" (vectors); or an object of :mod:`crfkit.generative.emissions`
        with options. "auto" is "gaussian" for dense matrices of numbers, "categorical" else, also
        for arrays of whole numbers.
    smoothing : {"additive", "witten_bell", "deleted_interpolation"} or Smoothing, \
default="additive"
        What is done about transitions that were never seen; an object of
        :mod:`crfkit.generative.smoothing`, such as ``Additive(alpha=1)``.
    stop : bool, default=True
        Learn which labels sequences end with. Without it, a sequence has the probability of what it
        begins with.
    n_states : int or None, default=None
        The number of hidden states where `fit` gets no `y`; their labels are 0, 1, ...
    features : transformer or None, default=None
        Makes of what X holds the tokens, or their attributes, that `emissions` read.
    decoding : str or Decoder, default="viterbi"
        As of :class:`CRFClassifier`; may be changed after fitting.
    max_iter : int, default=100
        Iterations of EM at most.
    tol : float, default=1e-6
        EM ends when an iteration raises the log-likelihood, with that of priors, by less than this
        share of it.
    n_init : int, default=1
        How many times EM starts, where no label is known; the best one is kept.
    warm_start : bool, default=False
        Start EM from the last fit, if that had the same labels and attributes.
    constraints : Constraints, rule, list of rules, str or None, default=None
        What all answers keep to, as of :class:`CRFClassifier`; `fit`, `log_likelihood` and
        `generate` do not.
    random_state : int, RandomState instance or None, default=None
        Chooses where EM starts if no label is known.
    n_jobs : int or None, default=None
        Threads for EM and prediction: the results are the same to the last bit.
    verbose : int, default=0
        1 prints every tenth iteration of EM and the end, 2 every iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted if they can be; or the numbers of the states.
    start_probabilities_ : ndarray of shape (K,)
        Of the first label; in order 0, of each.
    transition_probabilities_ : ndarray of shape (K, K)
        Of the next label (column), given a label (row). Rows add up to 1 with `end_probabilities_`.
    end_probabilities_ : ndarray of shape (K,) or None
        That a sequence ends after a label; None without `stop`, and in order 0.
    second_order_probabilities_ : ndarray of shape (K + 1, K, K) or None
        In order 2: of the next label, given the label two before (the last row: there is none) and
        the label. `transition_probabilities_` are then those given one label, for comparison.
    emission_tables_ : NamedTuple of arrays
        The fitted distributions of tokens, as `emissions_`, the family, defines them.
    emissions_ : Emission
        The family that was fitted.
    vectorizer_ : transformer or None
        What makes the attributes of tokens.
    n_features_in_ : int
        Number of attributes D.
    log_likelihood_ : float
        Of the training data: ``log P(x, y)`` where labels are known, else ``log P(x)`` together
        with what is known; times sample weights. NaN after `partial_fit`.
    n_iter_, converged_ : int, bool
        Iterations of EM, and whether it met its stopping rule. Without it: 1 (the number of
        batches), True.
    training_log_ : list of IterationRecord
        The iterations of EM.

    See Also
    --------
    CRFClassifier : Fitted to what labels are, given the tokens.

    Notes
    -----
    Fitted arrays are read-only. Others may be assigned in their place: what predicts, is checked
    and made of them anew.

    References
    ----------
    L. R. Rabiner (1989). A tutorial on hidden Markov models and selected applications in speech
    recognition. Proceedings of the IEEE 77.

    T. Brants (2000). TnT - a statistical part-of-speech tagger. Applied Natural Language
    Processing.

    C. Sutton and A. McCallum (2012). An introduction to conditional random fields. Foundations and
    Trends in Machine Learning 4.
    """

    order: int = 1
    emissions: Any = "auto"
    smoothing: Any = "additive"
    stop: bool = True
    n_states: int | None = None
    features: Any = None
    decoding: Any = "viterbi"
    max_iter: int = 100
    tol: float = 1e-6
    n_init: int = 1
    warm_start: bool = False
    constraints: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    has_probabilities = True
    fitted_by = frozenset(("start_probabilities_",))

    @told_as_a_whole
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the probabilities, and return the estimator.

        Parameters
        ----------
        X : iterable of S sequences
            Of tokens as `emissions` read them, or PackedSequences.
        y : iterable of S sequences of labels, optional
            One label a token. ``UNLABELED`` tokens, sets of labels of which one is right, and
            :class:`crfkit.SoftLabels` are learned by EM. If not given, the labels are hidden
            states, `n_states` of them.
        sample_weight : array of shape (S,), optional
            Weights of sequences: 2 is as good as having it twice.

        Raises
        ------
        ValueError, TypeError
            If X, y, the weights or a parameter cannot be used; the message says where and why.
        """
        setup = Setup.of(self)
        data = read_data(setup, X, y, sample_weight)
        found = counted(setup, data) if data.is_known else learned(self, setup, data)
        self._set_fitted(found)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count a batch of data beside all those before, or those of the last `fit`.

        Any number of batches gives the model of all data at once. New symbols get their own
        probabilities. What was assigned by hand is forgotten.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`, in the same form in each call; all labels must be known.
        classes : sequence of labels, optional
            All labels that will ever occur; needed in the first call.

        Raises
        ------
        ValueError, TypeError
            As for `fit`, or if `classes` are missing or others than before, or a label is not one
            of them.
        """
        setup, batch = Setup.of(self), (X, y, sample_weight)
        if self.__sklearn_is_fitted__():
            all_classes(classes, vars(self))
            found = counted_on(setup, vars(self), self._schema(), batch)
        else:
            found = counted_first(setup, batch, all_classes(classes, {}))
        self._set_fitted(found)
        return self

    def log_likelihood(self, X: Any, y: Any = None) -> FloatArray:
        """Return ``log P(x)`` of sequences, or ``log P(x, y)``.

        Parameters
        ----------
        X : iterable of S sequences
            As for `predict`.
        y : iterable of S sequences of labels, optional
            Where some are sets or ``UNLABELED``, the probability is that of all labelings that are
            allowed.

        Returns
        -------
        ndarray of shape (S,)
            ``-inf`` for what cannot be; 0 for an empty sequence. Of vectors it is a density.
        """
        data = self._pack(X)
        known = None
        if y is not None:
            known = self._fitted_labels().codes(self, by_sequence(y, data.offsets), data.offsets)

        def ask(structure: Structure, potentials: Potentials) -> FloatArray:
            tokens = tokens_of(data, potentials)
            if known is None:
                return log_sums(structure, potentials)
            if known.allowed is not None:
                return log_sums(structure, potentials.clamp(known.allowed[tokens]))
            return structure.score(potentials, known.codes[tokens])

        with ThreadMap(self.n_jobs) as threads:
            found = np.concatenate([np.zeros(0), *self._model_for(data).ask(data, ask, threads)])
        if known is not None:
            sequences = np.repeat(np.arange(len(data)), data.lengths)
            found[sequences[~known.possible]] = -np.inf
        return found

    def generate(self, lengths: Any, *, random_state: Any = None) -> tuple[Any, LabelSequences]:
        """Return sequences of tokens and their labels, drawn from the model.

        Parameters
        ----------
        lengths : int or array of shape (S,)
            How many sequences, whose ends the model draws; or the length of each: labels and
            tokens are then drawn given these.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : list of S sequences
            In a form that `fit` takes.
        y : LabelSequences

        Raises
        ------
        ValueError
            If the model is to draw ends, but has none.
        """
        check_is_fitted(self)
        random = check_random_state(random_state)
        model, tables = HiddenProbabilities().read(self)
        codes, offsets = draw_labels(model, tables, lengths, random)
        tokens = model.emission.draw(tables.emission, codes, random, self.vectorizer_)
        pairs = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        y = LabelSequences.from_codes(codes, self.classes_, offsets)
        return [tokens[begin:end] for begin, end in pairs], y

    def to_crf(self) -> CRFClassifier:
        """Return the same model as a fitted :class:`CRFClassifier`, with the same posteriors.

        Its weights are the logarithms of the probabilities. Where emissions are sums over
        attributes, the score of a labeling is ``log P(x, y)``, up to what is the same for all
        labels. It may be the start of a fit: ``CRFClassifier(init=hmm.to_crf())``.

        Raises
        ------
        ValueError
            If the model is of order 2, or its emissions are no sums over attributes.
        """
        check_is_fitted(self)
        weights = linear_weights(*HiddenProbabilities().read(self), self.vectorizer_)
        names = None
        if weights["vectorizer_"] is self.vectorizer_:
            names = vars(self).get(NAMES_OF[TOKENS])
        crf = CRFClassifier(
            boundary_weights=True, decoding=self.decoding, constraints=self.constraints,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        found = {"classes_": self.classes_, NAMES_OF[TOKENS]: names, "n_iter_": 0}
        return crf._with(weights | found)

    @classmethod
    def from_probabilities(
        cls,
        classes: Sequence[Hashable],
        start: ArrayLike,
        transitions: ArrayLike,
        emission_tables: Any,
        *,
        end: ArrayLike | None = None,
        second_order: ArrayLike | None = None,
        vectorizer: Any = None,
        **parameters: Any,
    ) -> Self:
        """Return a model with given probabilities, as if it had been fitted.

        Parameters
        ----------
        classes : sequence of K labels
        start, transitions, end, second_order : array-like
            As the attributes ``start_probabilities_`` and so on.
        emission_tables : NamedTuple of arrays
            Of the family of distributions that the parameter `emissions` names, such as
            ``GaussianTables`` and ``SymbolTables`` of :mod:`crfkit.generative.emissions`.
        vectorizer : fitted transformer, optional
            What makes the attributes of tokens; without it, X are matrices or PackedSequences.
        **parameters
            Parameters of the estimator; `emissions` is needed.

        Raises
        ------
        ValueError
            If these are no probabilities of these labels.

        Examples
        --------
        >>> from crfkit import HMMClassifier
        >>> from crfkit.features import SymbolVectorizer
        >>> from crfkit.generative.emissions import SymbolTables
        >>> symbols = SymbolVectorizer().fit([["clean", "shop", "walk"]])
        >>> table = SymbolTables.from_probabilities(  # of each symbol, and of unknown ones
        ...     [[0.5, 0.1], [0.4, 0.3], [0.1, 0.6], [0.0, 0.0]])
        >>> hmm = HMMClassifier.from_probabilities(
        ...     ["rainy", "sunny"], [0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], table,
        ...     vectorizer=symbols, emissions="categorical")
        >>> hmm.predict([["walk", "shop", "clean"]])
        [['sunny', 'rainy', 'rainy']]
        """
        names = list(classes)
        labels = LabelStream([names]).index
        if len(labels) < len(names):
            raise ValueError(f"classes={names!r:.60} are not distinct.")
        if second_order is None and parameters.get("order") == 2:
            raise ValueError("order=2 needs second_order, the probabilities given two labels.")
        tables = [
            None if part is None else np.array(part, np.float64)
            for part in (start, transitions, end, second_order)
        ]
        order = {"order": 1 if second_order is None else 2, "stop": end is not None}
        model = cls(**order | parameters)
        found = given_model(model, object_array(labels), tables, emission_tables, vectorizer)
        model._set_fitted(found)
        HiddenProbabilities().read(model)
        return model

    def _weight_space(self) -> HiddenProbabilities:
        return HiddenProbabilities()
