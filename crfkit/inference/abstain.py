"""Labels that are withheld where they are doubtful."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._params import check_number, check_option, find_named
from crfkit._types import BoolArray, CodeArray, IntArray, Potentials
from crfkit.data import LabelSequences
from crfkit.inference.base import DecodedLabels, Decoder, marginals, plain_codes
from crfkit.inference.named import DECODERS
from crfkit.structures import Structure


class Abstain(BaseEstimator, Decoder):  # type: ignore[misc]
    """Another label where the label of a token, or a span, is not probable enough.

    Parameters
    ----------
    decoding : str or Decoder, default="viterbi"
        What chooses the labels.
    threshold : float, default=0.5
        From which probability on a label is given, from 0 to 1.
    label : label, default="O"
        What is said in place of a doubtful label: any label, also one that the model does not know.
        Of spans, it is the label of the span, so that tags are those of such a span
        (``B-?``, ``I-?``); "O" leaves the span out.
    of : {"tokens", "spans"}, default="tokens"
        Whether the probability is that of the label of each token, which is replaced alone, or that
        of a whole span: that it stands there, with these ends.

    Notes
    -----
    The probability is that of what is said, whatever else has some. To give a label only where it
    has at least the probability ``1 - c`` has the least expected cost, when a wrong label costs 1
    and a withheld one ``c`` (Chow 1970).

    Examples
    --------
    >>> from crfkit import CRFClassifier
    >>> from crfkit.inference import Abstain
    >>> X = [[["the"], ["Nile"]], [["the"], ["dog"]], [["the"], ["cat"]]]
    >>> crf = CRFClassifier(c2=0.1).fit(X, [["O", "LOC"], ["O", "O"], ["O", "O"]])
    >>> crf.set_params(decoding=Abstain(threshold=0.8, label="?")).predict([[["the"], ["Rhine"]]])
    [['O', '?']]
    """

    def __init__(
        self,
        decoding: Any = "viterbi",
        *,
        threshold: float = 0.5,
        label: Any = "O",
        of: str = "tokens",
    ) -> None:
        self.decoding = decoding
        self.threshold = threshold
        self.label = label
        self.of = of

    def decode(
        self, structure: Structure, potentials: Potentials, labels: DecodedLabels | None = None
    ) -> CodeArray:
        """Return codes of tokens, shape (N,); ``~code`` where the label of a code is withheld."""
        check_number("threshold", self.threshold)
        check_option("of", self.of, ("tokens", "spans"))
        codes: CodeArray = self._decoder().decode(structure, potentials, labels)
        doubtful = (self._spans if self.of == "spans" else self._tokens)(
            structure, potentials, codes, labels
        )
        return np.where(doubtful, ~codes, codes)

    def written(self, codes: CodeArray, labels: DecodedLabels, offsets: IntArray) -> LabelSequences:
        """Return the labels that codes stand for, with `label` in place of those withheld."""
        withheld, coding = codes < 0, labels.coding
        plain = plain_codes(codes)
        if self.of == "spans":
            return coding.write_renamed(plain, withheld, self.label, labels.classes, offsets)
        found = coding.write(plain, labels.classes, offsets)
        tokens = np.flatnonzero(withheld)
        sequences = np.searchsorted(offsets, tokens, side="right") - 1
        places = zip(sequences.tolist(), (tokens - offsets[sequences]).tolist(), strict=True)
        for s, t in places:
            found[s][t] = self.label
        return found

    def _decoder(self) -> Any:
        if isinstance(self.decoding, Abstain):
            raise ValueError("decoding is an Abstain itself: give it the smaller threshold.")
        return find_named("decoding", self.decoding, DECODERS, "decode")

    def _tokens(
        self, structure: Structure, potentials: Potentials, codes: CodeArray, labels: Any
    ) -> BoolArray:
        """Return which labels of tokens are less probable, (N,)."""
        proba, _ = marginals(structure, potentials)
        own = proba[np.arange(len(codes)), codes % potentials.n_labels]
        return own < self.threshold

    def _spans(
        self, structure: Structure, potentials: Potentials, codes: CodeArray, labels: Any
    ) -> BoolArray:
        """Return which tokens are in spans that are less probable, (N,)."""
        if labels is None:
            raise ValueError("spans are read off labels, which are not given.")
        spans = labels.reading.spans(codes, potentials.offsets)
        proba = structure.span_probabilities(potentials, labels.reading, *spans)
        doubtful = np.flatnonzero(proba < self.threshold)
        steps = np.zeros(len(codes) + 1, np.int64)
        np.add.at(steps, spans.start[doubtful], 1)
        np.add.at(steps, spans.stop[doubtful], -1)
        return np.cumsum(steps)[:-1] > 0
