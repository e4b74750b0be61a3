"""Normally distributed tokens: vectors of numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._params import check_number, check_option
from crfkit._types import CodeArray, FloatArray, IntArray, Random
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.data import PackedSequences
from crfkit.features.quadratic import QuadraticFeatures
from crfkit.generative.base import Emission, LinearEmission, Statistics
from crfkit.kernels.gaussian import NormalSums, NormalTables, normal_scores, normal_sums

COVARIANCES = ("full", "diag", "tied", "spherical")
# A variance below this share of the mean square is rounding: the feature is constant.
CONSTANT = 1e-24
# Tokens whose labels are counted at a time, and that k-means looks at most at.
BATCH, MOST_CLUSTERED = 1 << 13, 50_000
ASYMMETRY = 1e-8


class GaussianTables(NamedTuple):
    """Normal distributions of K labels over D features."""

    mean: FloatArray  # (K, D)
    # Of each label, (K, D, D); variances, (K, D); of all labels, (D, D); or a variance each, (K,).
    covariance: FloatArray
    spread: FloatArray | None = None  # (D,) variances that the prior is around; None: no prior


class Moments(NamedTuple):
    """Weighted moments of the tokens of labels. Two of them are added up by ``+``.

    Those of second order are kept around the means and added up by the update of Chan, Golub and
    LeVeque (1983), so that no digits are lost far from 0.
    """

    mass: FloatArray  # (K,) weights
    mean: FloatArray  # (K, D); any numbers where the mass is 0
    scatter: FloatArray  # (K, D) sums of squares around the mean, or (K, D, D) of products

    def __add__(self, other: Any) -> Moments:
        mass = self.mass + other.mass
        share = np.divide(other.mass, mass, out=np.zeros_like(mass), where=mass > 0.0)
        apart = other.mean - self.mean
        mean = self.mean + share[:, None] * apart
        scatter = (
            self.scatter + other.scatter + _products(apart, self.mass * share, self.scatter.ndim)
        )
        return Moments(mass, mean, scatter)

    def pooled(self) -> Moments:
        """Return those of all labels together, as if they were one."""
        mass = self.mass.sum(keepdims=True)
        mean = self.mass @ self.mean / mass if mass > 0.0 else self.mean[:1] * 0.0
        mean = mean.reshape(1, -1)
        between = _products(self.mean - mean, self.mass, self.scatter.ndim)
        return Moments(mass, mean, (self.scatter + between).sum(axis=0, keepdims=True))

    def variances(self) -> FloatArray:
        """Return the sums of squares of each feature, shape (K, D)."""
        return self.scatter if self.scatter.ndim == 2 else _diagonals(self.scatter)


class Gaussian(Emission):
    """Tokens are vectors of D numbers, normally distributed given their label.

    The estimates are those of maximum likelihood (Rabiner 1989, section IV; Bilmes 1998) with a
    prior for the covariances, so that none of them degenerates where a label has few tokens, or all
    of them are equal: an inverse Wishart density whose mode is reached as if `prior` tokens more of
    each label stood around its mean, with the variances of all tokens together, and no covariances.
    The means have no prior. A label without tokens has the mean of all.

    Parameters
    ----------
    covariance : {"full", "diag", "tied", "spherical"}, default="full"
        A covariance matrix for each label; variances of features for each label; one matrix that
        all labels share, where log-odds of labels are linear in the features; or one variance for
        each label.
    prior : float, default=1.0
        The number of tokens that the prior stands for; 0 is maximum likelihood, and an error where
        a covariance is singular.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.data import PackedSequences
    >>> from crfkit.generative.emissions.gaussian import Gaussian
    >>> matrices = [np.array([[0.0], [2.0]]), np.array([[9.0], [11.0]])]
    >>> data = PackedSequences.from_matrices(matrices)
    >>> normal = Gaussian(covariance="diag", prior=0)
    >>> counts = normal.count_labels(data, np.array([0, 0, 1, 1]), np.ones(4), 2)
    >>> normal.estimate(counts, data).mean.tolist()
    [[1.0], [10.0]]
    """

    def __init__(self, covariance: str = "full", prior: float = 1.0) -> None:
        self.covariance = covariance
        self.prior = prior

    def vectorizer(self) -> None:
        """Return None: matrices are read as they are."""

    def check(self, data: PackedSequences) -> None:
        """Raise ValueError if the attributes of data are not all columns of dense matrices."""
        check_option("covariance", self.covariance, COVARIANCES)
        check_number("prior", self.prior)
        if data.n_sparse or data.dense is None or not data.dense.shape[1]:
            found = "sparse attributes" if data.n_sparse else "no columns"
            raise ValueError(
                f"normal distributions are of vectors of numbers, but X has {found}: give dense "
                "matrices of shape (T, D), or choose other emissions."
            )

    def n_features(self, tables: GaussianTables) -> int:
        """Return the number of features that tables are of."""
        return int(tables.mean.shape[1])

    def check_tables(self, tables: Any, n_labels: int, n_features: int) -> None:
        """Raise ValueError unless tables are means and covariances of K labels and D features."""
        if not isinstance(tables, GaussianTables):
            raise ValueError(f"the emissions are {tables!r:.60}, no GaussianTables.")
        check_option("covariance", self.covariance, COVARIANCES)
        _check_array("means", tables.mean, (n_labels, n_features))
        shape = covariance_shape(self.covariance, n_labels, n_features)
        _check_array("covariances", tables.covariance, shape)
        if self.covariance in ("full", "tied"):
            matrices = tables.covariance.reshape(-1, n_features, n_features)
            gap = np.abs(matrices - matrices.transpose(0, 2, 1)).max(initial=0.0)
            if gap > ASYMMETRY * np.abs(matrices).max():
                raise ValueError("a covariance matrix is not symmetric.")
        _factors(tables, self.covariance)
        if tables.spread is not None:
            _check_array("variances of the prior", tables.spread, (n_features,))
            _check_positive("variances of the prior", tables.spread)

    def count_labels(
        self, data: PackedSequences, codes: CodeArray, weight: FloatArray, n_labels: int
    ) -> Statistics:
        """Return the moments of tokens of known labels, (N,), with weights, (N,)."""
        total: Any = None
        for begin in range(0, max(data.n_tokens, 1), BATCH):
            tokens = slice(begin, min(begin + BATCH, data.n_tokens))
            shares = np.zeros((tokens.stop - begin, n_labels))
            shares[np.arange(len(shares)), codes[tokens]] = weight[tokens]
            (found,) = self.count(data, tokens, shares)
            total = found if total is None else total + found
        return (total,)

    def count(self, data: PackedSequences, tokens: slice, shares: FloatArray) -> Statistics:
        """Return the moments of a run of n tokens with weighted shares of labels, (n, K)."""
        values, size = _values(data), shares.shape[1]
        n_features, width = values.shape[1], padded(size)
        rows = n_features
        if self._has_products:
            rows = n_features * (n_features + 1) // 2
        sums = NormalSums(*(np.zeros((n, width)) for n in (1, n_features, rows)))
        normal_sums(values, tokens.start, frozen(shares), sums)
        scatter = np.ascontiguousarray(sums.scatter[:, :size].T)
        if self._has_products:
            scatter = _symmetric(scatter, n_features)
        moments: Any = Moments(
            sums.mass[0, :size].copy(), np.ascontiguousarray(sums.mean[:, :size].T), scatter
        )
        return (moments,)

    def extend(self, statistics: Statistics, columns: IntArray, n_features: int) -> Statistics:
        """Return the statistics; ValueError if data have other features than before."""
        if not np.array_equal(columns, np.arange(n_features)):
            raise ValueError(
                f"normal distributions of {len(columns)} features cannot be continued with "
                f"{n_features}: give matrices with the columns of before."
            )
        return statistics

    def estimate(self, statistics: Statistics, data: PackedSequences) -> GaussianTables:
        """Return the most probable means and covariances; ValueError if one is singular."""
        moments: Any = statistics[0]
        pooled = moments.pooled()
        spread = _spread(pooled)
        empty = moments.mass <= 0.0
        mean = np.where(empty[:, None], pooled.mean, moments.mean)
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = self._covariances(moments, pooled, spread, empty)
        if not np.isfinite(covariance).all():
            raise ValueError("the squares of the numbers in X are too large: scale the features.")
        tables = GaussianTables(mean, covariance, spread)
        _factors(tables, self.covariance)
        return tables

    def _covariances(
        self, moments: Moments, pooled: Moments, spread: FloatArray, empty: Any
    ) -> FloatArray:
        """Return the modes of covariances, in the form of the tables."""
        scatter, mass = moments.scatter, moments.mass
        if self.covariance == "tied":
            scatter, mass = scatter.sum(axis=0, keepdims=True), mass.sum(keepdims=True)
            empty = mass <= 0.0
        if not self.prior:  # a label without tokens has what all tokens have
            scatter = np.where(
                empty.reshape(-1, *[1] * (scatter.ndim - 1)), pooled.scatter, scatter
            )
            mass = np.where(empty, pooled.mass, mass)
        if self.covariance == "spherical":
            spread, scatter = spread.mean(keepdims=True), scatter.mean(axis=1, keepdims=True)
        added = np.diag(spread) if scatter.ndim == 3 else spread
        mass = np.maximum(mass + self.prior, np.finfo(float).tiny)
        found = (scatter + self.prior * added) / _stretched(mass, scatter)
        if self.covariance == "tied":
            return np.ascontiguousarray(found[0])
        return np.ascontiguousarray(found[:, 0]) if self.covariance == "spherical" else found

    def log_prior(self, tables: GaussianTables) -> float:
        """Return the logarithm of the prior density, less that at its mode."""
        if tables.spread is None or not self.prior:
            return 0.0
        spread, size = tables.spread, len(tables.spread)
        if self.covariance == "spherical":
            ratio = spread.mean() / tables.covariance
            return float(0.5 * self.prior * size * (np.log(ratio) - ratio + 1.0).sum())
        if self.covariance == "diag":
            ratio = spread / tables.covariance
            return float(0.5 * self.prior * (np.log(ratio) - ratio + 1.0).sum())
        matrices = tables.covariance.reshape(-1, size, size)
        factors = np.linalg.cholesky(matrices).astype(np.float64)
        whitened = np.linalg.solve(
            factors, np.broadcast_to(np.diag(np.sqrt(spread)), factors.shape)
        )
        determinant = np.log(spread).sum() - 2.0 * np.log(_diagonals(factors)).sum(axis=1)
        return float(0.5 * self.prior * (determinant - (whitened**2).sum((1, 2)) + size).sum())

    def initial(self, data: PackedSequences, n_labels: int, random: Random) -> GaussianTables:
        """Return the distributions of the clusters that k-means finds, features scaled alike."""
        values = _values(data)
        chosen: Any = slice(None)
        if len(values) > MOST_CLUSTERED:
            chosen = np.sort(random.choice(len(values), MOST_CLUSTERED, replace=False))
        rows = np.ascontiguousarray(values[chosen])
        codes = clusters(rows, n_labels, random)
        normal = Gaussian(self.covariance, max(float(self.prior), 1.0))
        some = PackedSequences.from_flat(rows, [len(rows)])
        return normal.estimate(normal.count_labels(some, codes, np.ones(len(rows)), n_labels), some)

    def scores(
        self, tables: GaussianTables, data: PackedSequences, tokens: slice, out: FloatArray
    ) -> None:
        """Add log densities of a run of n tokens to `out`, (n, K)."""
        values = _values(data)
        normal = _kernel_tables(tables, self.covariance)
        normal_scores(values, tokens.start, normal, out)

    def draw(
        self, tables: GaussianTables, labels: CodeArray, random: Random, vectorizer: Any = None
    ) -> FloatArray:
        """Return vectors drawn for labels, (n, D)."""
        found: FloatArray = random.standard_normal((len(labels), tables.mean.shape[1]))
        full = full_covariances(tables, self.covariance)
        for k, factor in enumerate(np.linalg.cholesky(full)):
            own = labels == k
            found[own] = found[own] @ factor.T + tables.mean[k]
        return found

    def linear(self, tables: GaussianTables) -> LinearEmission:
        """Return the log densities as linear in the features, and in their products if not tied."""
        mean = tables.mean
        if self.covariance == "tied":  # what is quadratic is the same for all labels
            coef: Any = np.linalg.solve(tables.covariance, mean.T)
            shared: FloatArray = -0.5 * np.einsum("kd,dk->k", mean, coef)
            return LinearEmission(sp.csr_array(coef), shared)
        precision: Any = np.linalg.inv(full_covariances(tables, self.covariance))
        rows, columns = np.triu_indices(mean.shape[1])
        products = -precision[:, rows, columns]
        products[:, rows == columns] *= 0.5
        values = np.einsum("kde,ke->kd", precision, mean)
        constant: FloatArray = 0.5 * (
            np.linalg.slogdet(precision)[1]
            - np.einsum("kd,kd->k", mean, values)
            - mean.shape[1] * math.log(2.0 * math.pi)
        )
        features = QuadraticFeatures()
        features.fit([np.zeros((0, mean.shape[1]))])
        return LinearEmission(sp.csr_array(np.hstack([values, products]).T), constant, features)

    @property
    def _has_products(self) -> bool:
        return self.covariance in ("full", "tied")


def covariance_shape(covariance: str, n_labels: int, n_features: int) -> tuple[int, ...]:
    """Return the shape of covariances of a kind."""
    shapes = {
        "full": (n_labels, n_features, n_features), "diag": (n_labels, n_features),
        "tied": (n_features, n_features), "spherical": (n_labels,),
    }  # fmt: skip
    return shapes[covariance]


def full_covariances(tables: GaussianTables, covariance: str) -> FloatArray:
    """Return covariances of a kind as a matrix for each label, (K, D, D)."""
    size, n_features = tables.mean.shape
    given = tables.covariance
    if covariance == "full":
        return given
    if covariance == "tied":
        return np.tile(given, (size, 1, 1))
    variances = given if covariance == "diag" else np.tile(given[:, None], n_features)
    return variances[:, :, None] * np.eye(n_features)


def clusters(rows: FloatArray, n_clusters: int, random: Random) -> CodeArray:
    """Return the cluster of each of n vectors, by k-means, with features of variance 1.

    Where there are fewer vectors than clusters, each is one. What is drawn, and the result to the
    last bit, do not depend on the number of threads.
    """
    if len(rows) <= n_clusters:
        return np.arange(len(rows), dtype=np.int32)
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    deviation = rows.std(axis=0)
    scaled = (rows - rows.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different vectors than clusters
        found = KMeans(n_clusters, n_init=1, random_state=random).fit(scaled)
    codes: CodeArray = found.labels_.astype(np.int32)
    return codes


def _values(data: PackedSequences) -> FloatArray:
    if data.n_sparse or data.dense is None:
        raise ValueError("normal distributions are of dense matrices, but X has sparse attributes.")
    return frozen(data.dense)


def _products(rows: FloatArray, weight: FloatArray, ndim: int) -> FloatArray:
    """Return weighted squares of rows, (n, D), or with ``ndim == 3`` their products, (n, D, D)."""
    weighted = weight[:, None] * rows
    return weighted * rows if ndim == 2 else weighted[:, :, None] * rows[:, None, :]


def _stretched(of_labels: Any, table: FloatArray) -> Any:
    """Return numbers of labels, (K,), with axes added for those of a table, (K, ...)."""
    return of_labels.reshape(-1, *[1] * (table.ndim - 1))


def _diagonals(matrices: FloatArray) -> FloatArray:
    found: FloatArray = np.diagonal(matrices, axis1=-2, axis2=-1)
    return found


def _symmetric(triangles: FloatArray, size: int) -> FloatArray:
    """Return the matrices, (n, D, D), whose lower triangles are given row by row."""
    found = np.empty((len(triangles), size, size))
    rows, columns = np.tril_indices(size)
    found[:, rows, columns] = triangles
    found[:, columns, rows] = triangles
    return found


def _spread(pooled: Moments) -> FloatArray:
    """Return the variance of each feature; 1 where it is constant."""
    mass = float(pooled.mass[0])
    variance = pooled.variances()[0] / mass if mass > 0.0 else np.zeros(pooled.mean.shape[1])
    return np.where(variance > CONSTANT * pooled.mean[0] ** 2, variance, 1.0)


def _factors(tables: GaussianTables, covariance: str) -> FloatArray:
    """Return matrices that make features independent, of variance 1; those of variances, (K, D).

    ValueError if a covariance is not positive definite.
    """
    size, n_features = tables.mean.shape
    if covariance in ("diag", "spherical"):
        variances = tables.covariance.reshape(size, -1)
        bad = np.flatnonzero(~np.all(variances > 0.0, axis=1))
        if len(bad):
            raise _singular(bad[0])
        return np.broadcast_to(1.0 / np.sqrt(variances), (size, n_features))
    matrices = tables.covariance.reshape(-1, n_features, n_features)
    try:
        return np.linalg.inv(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        for k, matrix in enumerate(matrices):
            if not _is_definite(matrix):
                raise _singular(k) from None
        raise


def _is_definite(matrix: FloatArray) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _singular(k: int) -> ValueError:
    return ValueError(
        f"the covariance of label number {k} is singular: it has too few different tokens. Choose "
        "Gaussian(prior=1.0), or larger, or a covariance with fewer numbers, such as 'diag' or "
        "'tied'."
    )


def _kernel_tables(tables: GaussianTables, covariance: str) -> NormalTables:
    """Return the distributions as kernels read them."""
    (size, n_features), factors = tables.mean.shape, _factors(tables, covariance)
    rows, diagonals = factors, factors
    if factors.ndim == 3:
        rows, diagonals = factors[:, *np.tril_indices(n_features)], _diagonals(factors)
    constant = (np.log(diagonals).sum(axis=1) - 0.5 * n_features * math.log(2.0 * math.pi))[None]
    wide = []
    for table in (tables.mean.T, rows.T, constant):
        wide.append(np.zeros((len(table), padded(size))))
        wide[-1][:, :size] = table  # one column is for all labels
    return NormalTables(*map(frozen, wide))


def _check_array(name: str, array: Any, shape: tuple[int, ...]) -> None:
    if type(array) is not np.ndarray or array.dtype != np.float64 or array.shape != shape:
        raise ValueError(f"the {name} are no array of float64 of shape {shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"the {name} are not all finite.")


def _check_positive(name: str, array: FloatArray) -> None:
    if not np.all(array > 0.0):
        raise ValueError(f"the {name} are not all above 0.")
