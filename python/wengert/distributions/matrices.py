"""Distributions of matrices: LKJ's of correlation matrices, and Wishart's."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .distribution import Distribution
from .multivariate_normal import ByMatrix, half_log_det
from .numerics.samplers import gamma_sample, log_gamma_sample
from .numerics.special import in_double
from .parameters import Parameter, broadcast_all

__all__ = ["LKJCholesky", "Wishart"]


class LKJCholesky(Distribution):
    """The distribution of Cholesky factors of correlation matrices with a density `det^(concentration - 1)`.

    Drawn row by row: a direction, and a length from a beta distribution (Lewandowski, Kurowicka and Joe
    2009).

    Args:
        dim: the size of the matrices, 2 or more.
        concentration: 1 makes all correlation matrices equally likely; more, those near the identity
            likelier.

    Example:
        >>> d = wg.distributions.LKJCholesky(2, 1.0)
        >>> d.event_shape, d.log_prob(wg.eye(2))
        (Size([2, 2]), tensor(-0.6931))
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Parameter = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim must be 2 or more, got {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        like = self.concentration.detach()
        with wg.no_grad():
            # Row i has i elements before the diagonal, whose squares sum to a beta variate.
            i = wg.arange(1, self.dim, device=like.device).to(like.dtype)
            size = (*shape[:-2], self.dim - 1)
            rest = (like.unsqueeze(-1) + 0.5 * (self.dim - 1 - i)).expand(*size)
            gap = log_gamma_sample((0.5 * i).expand(*size)) - log_gamma_sample(rest)
            row = wg.randn(shape, dtype=like.dtype, device=like.device).tril(-1)[..., 1:, :]
            row = row / row.square().sum(-1, keepdim=True).sqrt() * gap.sigmoid().sqrt().unsqueeze(-1)
            last = (-gap).sigmoid().clamp_min(wg.finfo(like.dtype).tiny).sqrt()
            first = wg.zeros_like(row[..., :1, :])
            ones = wg.ones_like(last[..., :1])
            return (wg.cat([first, row], -2) + wg.diag_embed(wg.cat([ones, last], -1))).detach()

    def log_prob(self, value: Tensor) -> Tensor:
        logs = self._value(value).diagonal(dim1=-2, dim2=-1)[..., 1:].log()
        order = wg.arange(self.dim - 2, -1, -1, device=logs.device).to(logs.dtype)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + order
        return (powers * logs).sum(-1) - _lkj_normalizer(self.concentration, self.dim)


@in_double
def _lkj_normalizer(concentration: Tensor, dim: int) -> Tensor:
    n = dim - 1
    a = concentration + 0.5 * n
    return 0.5 * n * math.log(math.pi) + (a - 0.5).mvlgamma(n) - n * a.lgamma()


class Wishart(ByMatrix):
    """The distribution of `sum x x'` over `df` normal vectors `x` of mean 0, and its extension to any
    `df > n - 1`.

    Drawn by Bartlett's decomposition.

    Args:
        df: degrees of freedom.
        covariance_matrix: of the vectors, `(..., n, n)`.
        precision_matrix: its inverse, instead.
        scale_tril: its Cholesky factor, instead.

    Example:
        >>> d = wg.distributions.Wishart(3.0, wg.eye(2))
        >>> d.mean, d.log_prob(wg.eye(2))
        (tensor([[3., 0.],
                [0., 3.]]), tensor(-3.531))
    """

    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Parameter,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrix = self._take_matrix(
            "Wishart",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        (df,) = broadcast_all(df)
        batch = wg.broadcast_shapes(df.shape, matrix.shape[:-2])
        self.df = df.to(matrix.dtype).expand(*batch)
        self._set_matrix(batch)
        super().__init__(batch, matrix.shape[-2:], validate_args)

    @property
    def arg_constraints(self) -> Any:
        """`df` by the size of the matrices."""
        return {
            "df": constraints.greater_than(self._matrix.shape[-1] - 1),
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
        }

    _wide_df = property(lambda self: self.df[..., None, None])
    mean = property(lambda self: self._wide_df * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        """The mode; NaN for `df` below `n + 1`."""
        over = self._wide_df - self._event_shape[0] - 1
        return wg.where(over < 0, wg.nan, over * self.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        """The variances of the elements."""
        v = self.covariance_matrix
        d = v.diagonal(dim1=-2, dim2=-1)
        return self._wide_df * (v.square() + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        n, df = shape[-1], self.df
        less = wg.arange(n, device=df.device).to(df.dtype)
        squares = 2 * gamma_sample((0.5 * (df.unsqueeze(-1) - less)).expand(*shape[:-1]))
        noise = wg.randn(shape, dtype=df.dtype, device=df.device).tril(-1)
        factor = self._factor @ (noise + wg.diag_embed(squares.sqrt()))
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        factor = wg.linalg.cholesky(self._value(value))
        # The trace is the squared length of L^-1 times the factor of the value.
        shape = wg.broadcast_shapes(factor.shape, self._factor.shape)
        solved = wg.linalg.solve_triangular(self._factor.expand(*shape), factor.expand(*shape), upper=False)
        trace = solved.square().sum((-2, -1))
        n = self._event_shape[0]
        half = half_log_det(self._factor)
        normalizer = _wishart_normalizer(self.df, n) + self.df * half
        return (self.df - n - 1) * half_log_det(factor) - 0.5 * trace - normalizer

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        found = _wishart_entropy(self.df, n) + (n + 1) * half_log_det(self._factor)
        return found.expand(*self._batch_shape)


@in_double
def _wishart_normalizer(df: Tensor, n: int) -> Tensor:
    return 0.5 * n * math.log(2) * df + (0.5 * df).mvlgamma(n)


@in_double
def _wishart_entropy(df: Tensor, n: int) -> Tensor:
    digammas = sum((0.5 * (df - i)).digamma() for i in range(1, n)) + (0.5 * df).digamma()
    constant = 0.5 * n * (n + 1) * math.log(2)
    return constant + (0.5 * df).mvlgamma(n) - 0.5 * (df - n - 1) * digammas + 0.5 * n * df
