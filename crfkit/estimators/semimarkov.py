"""The semi-Markov conditional random field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from crfkit.estimators._callbacks import with_callbacks
from crfkit.estimators._early_stopping import EarlyStopping
from crfkit.estimators._gradient import LossChainClassifier
from crfkit.estimators._probabilities import ProbabilisticChain
from crfkit.estimators._segment_layout import SegmentLayout
from crfkit.estimators._segment_predictions import SegmentProbabilities
from crfkit.estimators.segments import SegmentConstraints, Segments
from crfkit.losses import Loss
from crfkit.persistence import check_chain_model, register
from crfkit.scores.segments import TOKEN_PARTS
from crfkit.solvers import Solver


@register(check=check_chain_model)
class SemiMarkovCRF(SegmentProbabilities, ProbabilisticChain, LossChainClassifier):
    """Semi-Markov conditional random field: labels of segments (Sarawagi and Cohen 2004).

    Models ``P(segments | x) = exp(score(x, segments)) / Z(x)``, where a segmentation cuts the
    sequence into segments of one label each. Its score is the sum of the weights of the attributes
    of all tokens of its segments, of their first and of their last tokens, of the lengths of
    segments, of attributes that segments have as a whole, and of the (label, next label) pairs.
    """

    all_possible_states = False
    all_possible_transitions = False
    boundary_weights = False
    decoding = "viterbi"
    validation_fraction = 0.1
    warm_start = False

    def __init__(
        self,
        *,
        max_length: int | Mapping[Any, int] | None = None,
        length: Any = "buckets",
        outside: str = "single",
        scheme: str = "auto",
        token_parts: Iterable[str] = TOKEN_PARTS,
        constraints: SegmentConstraints | None = None,
        c1: float = 0.0,
        c2: float = 1.0,
        loss: str | Loss = "log",
        cost: Any = "hamming",
        solver: str | Solver = "auto",
        max_iter: int | None = None,
        min_freq: int = 0,
        early_stopping: bool | EarlyStopping = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_length = max_length
        self.length = length
        self.outside = outside
        self.scheme = scheme
        self.token_parts = token_parts
        self.constraints = constraints
        self.c1 = c1
        self.c2 = c2
        self.loss = loss
        self.cost = cost
        self.solver = solver
        self.max_iter = max_iter
        self.min_freq = min_freq
        self.early_stopping = early_stopping
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the weights."""
        return self._fit(X, y, sample_weight, X_val, y_val)

    @property
    def _segments(self) -> Segments:
        return Segments(
            max_length=self.max_length, length=self.length, outside=self.outside,
            scheme=self.scheme, token_parts=self.token_parts, constraints=self.constraints,
        )  # fmt: skip

    @property
    def _layout(self) -> SegmentLayout:
        return self._segments._layout()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._segments._check_parameters()
