"""Multivariate normal distributions, with a full covariance or a diagonal and a few factors."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor
from wengert._kinds import Size

from . import constraints
from .distribution import Distribution
from .parameters import lazy_property, one_of

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


def _transposed_apply(matrix: Tensor, x: Tensor) -> Tensor:
    """`matrix @ x` for vectors `(..., n)`; one matrix for many vectors is one product."""
    return x @ matrix.mT if matrix.ndim == 2 else (matrix @ x.unsqueeze(-1)).squeeze(-1)


def squared_norm(factor: Tensor, x: Tensor) -> Tensor:
    """`|L^-1 x|^2` for lower triangular `L` of `(*batch, n, n)` and vectors `(*sample, *batch, n)`.

    Vectors that share a matrix become columns of one system.
    """
    n, rank = x.shape[-1], factor.ndim - 2
    columns = x.reshape(-1, *x.shape[x.ndim - 1 - rank :]).movedim(0, -1)
    solved = wg.linalg.solve_triangular(factor, columns, upper=False)
    return solved.square().sum(-2).movedim(-1, 0).reshape(*x.shape[:-1]) if n else x.sum(-1)


def half_log_det(factor: Tensor) -> Tensor:
    """The logarithm of the determinant of triangular matrices."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def factor_of_inverse(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of a matrix: that of the matrix turned around, inverted."""
    turned = wg.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    identity = wg.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return wg.linalg.solve_triangular(turned, identity.expand(*precision.shape), upper=False)


class ByMatrix(Distribution):
    """A distribution that is given by one of a covariance matrix, its inverse, or its Cholesky factor."""

    def _take_matrix(self, who: str, **matrices: Tensor | None) -> Tensor:
        """Keeps the one that is given, and returns it."""
        self._given = one_of(who, **matrices)
        self._matrix: Tensor = wg.as_tensor(matrices[self._given])
        if self._matrix.ndim < 2:
            raise ValueError(
                f"{who}: {self._given} must be a matrix, or a batch of them, got a tensor of "
                f"{self._matrix.ndim} axes"
            )
        return self._matrix

    def _set_matrix(self, batch_shape: Sequence[int]) -> None:
        """Sets the one that is given, in the shape of the batch."""
        self.__dict__[self._given] = self._matrix.expand(*batch_shape, *self._matrix.shape[-2:])

    @lazy_property
    def _factor(self) -> Tensor:
        """The Cholesky factor, without axes of the batch that the given matrix has not."""
        if self._given == "scale_tril":
            return self._matrix
        of = wg.linalg.cholesky if self._given == "covariance_matrix" else factor_of_inverse
        return of(self._matrix)

    def _full(self, x: Tensor) -> Tensor:
        return x.expand(*self._batch_shape, *x.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        return self._full(self._factor)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        return self._full(self._factor @ self._factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        factor = self._factor
        identity = wg.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device).expand(*factor.shape)
        inverse = wg.linalg.solve_triangular(factor, identity, upper=False)
        return self._full(inverse.mT @ inverse)


_MATRICES = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


class MultivariateNormal(ByMatrix):
    """The normal distribution of vectors.

    Args:
        loc: means `(..., n)`.
        covariance_matrix: positive definite, `(..., n, n)`.
        precision_matrix: its inverse, instead.
        scale_tril: its Cholesky factor, instead, which is the least work.

    Example:
        >>> d = wg.distributions.MultivariateNormal(wg.zeros(2), wg.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> d.log_prob(wg.zeros(2)), d.variance
        (tensor(-2.3872), tensor([2., 2.]))
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real_vector, **_MATRICES}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrix = self._take_matrix(
            "MultivariateNormal",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        loc = wg.as_tensor(loc)
        if not loc.ndim:
            raise ValueError(
                "MultivariateNormal: loc needs an axis, that of the vectors; got a single number"
            )
        batch = wg.broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
        n = wg.broadcast_shapes(loc.shape[-1:], matrix.shape[-1:])
        self.loc = loc.expand(*batch, *n)
        self._set_matrix(batch)
        super().__init__(batch, n, validate_args)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance matrix."""
        return self._factor.square().sum(-1).expand(*self.loc.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = wg.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _transposed_apply(self._factor, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        apart = self._value(value) - self.loc
        factor = self._factor if self._factor.ndim == 2 else self.scale_tril
        n = self._event_shape[0]
        return -0.5 * (squared_norm(factor, apart) + n * math.log(2 * math.pi)) - half_log_det(factor)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        found = half_log_det(self._factor) + 0.5 * n * (1 + math.log(2 * math.pi))
        return found.expand(*self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with the covariance `cov_factor cov_factor' + diag(cov_diag)`.

    Systems of equations have the size of the rank (Woodbury's identity).

    Args:
        loc: means `(..., n)`.
        cov_factor: `(..., n, rank)`.
        cov_diag: positive, `(..., n)`.

    Example:
        >>> d = wg.distributions.LowRankMultivariateNormal(wg.zeros(2), wg.ones(2, 1), wg.ones(2))
        >>> d.covariance_matrix, d.log_prob(wg.zeros(2))
        (tensor([[2., 1.],
                [1., 2.]]), tensor(-2.3872))
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_diag.ndim < 1:
            raise ValueError(
                "LowRankMultivariateNormal: loc (..., n), cov_factor (..., n, rank) and cov_diag (..., n) "
                "expected, "
                f"got shapes {tuple(loc.shape)}, {tuple(cov_factor.shape)} and {tuple(cov_diag.shape)}"
            )
        n = loc.shape[-1]
        if cov_factor.shape[-2] != n or cov_diag.shape[-1] != n:
            raise ValueError(
                f"LowRankMultivariateNormal: cov_factor must be (..., {n}, rank) and cov_diag (..., {n}), as "
                f"loc has {n} elements; got {tuple(cov_factor.shape)} and {tuple(cov_diag.shape)}"
            )
        batch = wg.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand(*batch, n), cov_diag.expand(*batch, n)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        super().__init__(batch, (n,), validate_args)

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        """The variances of the elements."""
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy_property
    def _capacitance(self) -> tuple[Tensor, Tensor]:
        """`D^-1 W`, and the Cholesky factor of `1 + W' D^-1 W`."""
        scaled = self.cov_factor / self.cov_diag.unsqueeze(-1)
        identity = wg.eye(scaled.shape[-1], dtype=scaled.dtype, device=scaled.device)
        return scaled, wg.linalg.cholesky(identity + self.cov_factor.mT @ scaled)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        return self.cov_factor @ self.cov_factor.mT + wg.diag_embed(self.cov_diag)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        scaled, factor = self._capacitance
        inner = wg.linalg.solve_triangular(factor, scaled.mT, upper=False)
        return wg.diag_embed(1 / self.cov_diag) - inner.mT @ inner

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        return wg.linalg.cholesky(self.covariance_matrix)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        ranks = Size((*shape[:-1], self.cov_factor.shape[-1]))
        few, many = (wg.randn(s, dtype=self.loc.dtype, device=self.loc.device) for s in (ranks, shape))
        return self.loc + _transposed_apply(self.cov_factor, few) + self.cov_diag.sqrt() * many

    def log_prob(self, value: Tensor) -> Tensor:
        apart = self._value(value) - self.loc
        scaled, factor = self._capacitance
        part = _transposed_apply(scaled.mT, apart)
        square = (apart.square() / self.cov_diag).sum(-1) - squared_norm(factor, part)
        return -0.5 * (square + self.log_det() + self._event_shape[0] * math.log(2 * math.pi))

    def log_det(self) -> Tensor:
        """Returns the logarithm of the determinant of the covariance matrix."""
        return self.cov_diag.log().sum(-1) + 2 * half_log_det(self._capacitance[1])

    def entropy(self) -> Tensor:
        return 0.5 * (self.log_det() + self._event_shape[0] * (1 + math.log(2 * math.pi)))
