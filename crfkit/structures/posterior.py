"""What a structure knows of the codes of single tokens: the oracle of losses of marginals."""

from __future__ import annotations

from abc import ABC, abstractmethod

from crfkit._types import Counts, FloatArray, IntArray


class Posterior(ABC):
    """The distribution of the code of each token, and the way back from it to the potentials.

    For any function ``f`` of the marginals, the gradient with respect to the potentials is the
    covariance of the parts with ``sum_t f'_t(y_t)`` (Kakade, Teh and Roweis 2002; the recursion of
    Gross, Russakovsky, Do and Batzoglou 2006). It is asked for by the *slopes* of ``f``, ``a_t =
    mu_t (f'_t - <mu_t, f'_t>)``: the gradient as if the marginals ``mu_t`` of each token were a
    softmax of free scores. Nothing is ever divided by a marginal, so that a loss whose slopes are
    exact where a probability underflows has an exact gradient there.

    Attributes
    ----------
    log_z : ndarray of shape (S,)
        Log Z of each sequence, 0 for an empty one.
    marginals : ndarray of shape (N, C)
        The probability of each code at each token; each row sums to 1. Read-only.
    """

    log_z: FloatArray
    marginals: FloatArray

    @abstractmethod
    def log_probability(self, tokens: IntArray, codes: IntArray) -> FloatArray:
        """Return the logarithms of probabilities of codes at tokens; all of shape (n,).

        Exact also where the marginal underflows; ``-inf`` for a code that no labeling has.
        """

    @abstractmethod
    def pull_back(self, slopes: FloatArray, out: Counts) -> None:
        """Write the gradient with respect to the potentials of a function of the marginals.

        `slopes`, shape (N, C), are those of the function; each row sums to 0, and is 0 at codes
        that no labeling has. The gradient replaces ``out.unary`` and is added to ``out.pair``.
        """
