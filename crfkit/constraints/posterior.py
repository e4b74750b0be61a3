"""What is known of codes, by that of the codes of copies of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from crfkit._types import Counts, FloatArray, IntArray, Potentials
from crfkit.structures import Posterior, Structure

if TYPE_CHECKING:
    from crfkit.constraints.product import Copied


class CopiedPosterior(Posterior):
    """The distribution of the code of each token, of which there are copies."""

    def __init__(
        self, inner: Structure[Any], potentials: Potentials, copied: Copied, known: Posterior
    ) -> None:
        self._inner, self._potentials, self._copied, self._known = inner, potentials, copied, known
        self.log_z = known.log_z
        n_codes = potentials.n_codes
        self._copies_of = [np.flatnonzero(copied.codes == code) for code in range(n_codes)]
        self.marginals = np.zeros((len(potentials.unary), n_codes))
        for code, copies in enumerate(self._copies_of):
            self.marginals[:, code] = known.marginals[:, copies].sum(axis=1)
        np.minimum(self.marginals, 1.0, out=self.marginals)

    def log_probability(self, tokens: IntArray, codes: IntArray) -> FloatArray:
        """Return the logarithms of probabilities of codes at tokens."""
        found = np.full(len(tokens), -np.inf)
        for code in np.unique(codes).tolist():
            rows, copies = np.flatnonzero(codes == code), self._copies_of[code]
            if len(copies):
                found[rows] = logsumexp(self._of_copies(tokens[rows], copies), axis=1)
        capped: FloatArray = np.minimum(found, 0.0)
        return capped

    def pull_back(self, slopes: FloatArray, out: Counts) -> None:
        """Write the gradient: the slope of a code is that of its copies, by their shares of it."""
        of_copies, tokens = np.zeros(self._known.marginals.shape), np.arange(len(slopes))
        for code, copies in enumerate(self._copies_of):
            rows = tokens[slopes[:, code] != 0.0]
            if len(rows):
                logs = self._of_copies(rows, copies)
                shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
                of_copies[np.ix_(rows, copies)] = shares * slopes[rows, code][:, None]
        counts = self._copied.structure.zeros(self._copied.potentials)
        self._known.pull_back(of_copies, counts)
        self._inner.add_copied_counts(self._potentials, self._copied.copies, counts, out)

    def _of_copies(self, tokens: IntArray, copies: IntArray) -> FloatArray:
        """Return the logarithms of probabilities of copies at tokens, shape (n, m)."""
        every = np.tile(copies, len(tokens))
        found = self._known.log_probability(np.repeat(tokens, len(copies)), every)
        return found.reshape(len(tokens), len(copies))
