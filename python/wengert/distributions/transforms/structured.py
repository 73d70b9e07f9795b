"""Transforms of vectors and matrices, and transforms of the parts of a tensor."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert._kinds import Size

from .. import constraints
from ..parameters import tril_matrix_to_vec, vec_to_tril_matrix
from .base import Transform, sum_last

__all__ = [
    "CatTransform",
    "CorrCholeskyTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
]


def _axes(who: str, shape: Sequence[int], least: int) -> None:
    if len(shape) < least:
        raise ValueError(f"{who}: {least} or more axes expected, got shape {tuple(shape)}")


# ---- vectors -------------------------------------------------------------------------------------


class SoftmaxTransform(Transform):
    """`y = softmax(x)` along the last axis, from vectors onto the simplex of as many; `log(y)` is one of its
    inverses.

    Example:
        >>> wg.distributions.transforms.SoftmaxTransform()(wg.zeros(2))
        tensor([0.5, 0.5])
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Size:
        _axes("SoftmaxTransform", shape, 1)
        return Size(shape)

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """From vectors of `n` onto the simplex of `n + 1`: each number breaks its share off what is left of a
    stick.

    The share is `sigmoid(x_i - log(n - i))`, so that zeros become equal parts.

    Example:
        >>> wg.distributions.transforms.StickBreakingTransform()(wg.zeros(3))
        tensor([0.25, 0.25, 0.25, 0.25])
    """

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def _shifted(self, x: Tensor, sign: int) -> Tensor:
        """`x`, less or plus the logarithm of how many parts are to come."""
        n = x.shape[-1]
        return x + sign * wg.arange(n, 0, -1, device=x.device).to(x.dtype).log()

    def _call(self, x: Tensor) -> Tensor:
        z = self._shifted(x, -1)
        rest = (-z).logsigmoid().cumsum(-1)
        before = wg.cat([wg.zeros_like(x[..., :1]), rest], -1)
        return wg.cat([z.logsigmoid(), wg.zeros_like(x[..., :1])], -1).add(before).exp()

    def _inverse(self, y: Tensor) -> Tensor:
        # What is left is summed from the end, lest a difference cancel.
        left = y.flip(-1).cumsum(-1).flip(-1)[..., 1:]
        tiny = wg.finfo(y.dtype).tiny
        return self._shifted(y[..., :-1].clamp_min(tiny).log() - left.clamp_min(tiny).log(), 1)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the sum of `log(share) + log(what is left)`."""
        z = self._shifted(x, -1)
        rest = (-z).logsigmoid()
        return (z.logsigmoid() + rest.cumsum(-1)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        _axes("StickBreakingTransform", shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        _axes("StickBreakingTransform", shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


# ---- matrices ------------------------------------------------------------------------------------


def _on_diagonal(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """The lower triangle of matrices, with a function of their diagonal."""
    return x.tril(-1) + wg.diag_embed(function(x.diagonal(dim1=-2, dim2=-1)))


class LowerCholeskyTransform(Transform):
    """From square matrices onto lower triangular ones with a positive diagonal, by its exponential.

    Example:
        >>> wg.distributions.transforms.LowerCholeskyTransform()(wg.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return _on_diagonal(x, wg.exp)

    def _inverse(self, y: Tensor) -> Tensor:
        return _on_diagonal(y, wg.log)


class PositiveDefiniteTransform(Transform):
    """From square matrices onto positive definite ones: `L L'` with the `L` of `LowerCholeskyTransform`.

    Example:
        >>> wg.distributions.transforms.PositiveDefiniteTransform()(wg.tensor([[0.0, 9.0], [2.0, 0.0]]))
        tensor([[1., 2.],
                [2., 5.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = _on_diagonal(x, wg.exp)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return _on_diagonal(wg.linalg.cholesky(y), wg.log)


class CorrCholeskyTransform(Transform):
    """From vectors of `n (n - 1) / 2` onto Cholesky factors of correlation matrices.

    `tanh(x)` are the canonical partial correlations below the diagonal, row by row; each takes its share of
    what is left of the length of its row (Lewandowski, Kurowicka and Joe 2009).

    Example:
        >>> wg.distributions.transforms.CorrCholeskyTransform()(wg.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    @staticmethod
    def _log_rest(x: Tensor) -> Tensor:
        """`log(1 - tanh(x)^2)`."""
        return 2 * (math.log(2) - x + (2 * x).logsigmoid())

    def _call(self, x: Tensor) -> Tensor:
        r = vec_to_tril_matrix(x.tanh(), -1)
        log_rest = vec_to_tril_matrix(self._log_rest(x), -1)
        before = (0.5 * (log_rest.cumsum(-1) - log_rest)).exp()
        return (r + wg.eye(r.shape[-1], dtype=r.dtype, device=r.device)) * before

    def _inverse(self, y: Tensor) -> Tensor:
        # What is left of a row is summed from its end, lest a difference cancel.
        left = y.square().flip(-1).cumsum(-1).flip(-1)
        rest = tril_matrix_to_vec(wg.cat([left[..., 1:], wg.zeros_like(left[..., :1])], -1), -1)
        part = tril_matrix_to_vec(y, -1)
        return (part / rest.clamp_min(wg.finfo(y.dtype).tiny).sqrt()).asinh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the sum of `log(1 - r^2) + log(what was left) / 2`."""
        log_rest = vec_to_tril_matrix(self._log_rest(x), -1)
        before = log_rest.cumsum(-1) - log_rest
        return (log_rest + 0.5 * before.tril(-1)).sum((-2, -1))

    def forward_shape(self, shape: Sequence[int]) -> Size:
        _axes("CorrCholeskyTransform", shape, 1)
        n = round((1 + (1 + 8 * shape[-1]) ** 0.5) / 2)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: a length n (n - 1) / 2 expected, got {shape[-1]}")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        _axes("CorrCholeskyTransform", shape, 2)
        n = shape[-1]
        if n != shape[-2]:
            raise ValueError(f"CorrCholeskyTransform: square matrices expected, got shape {tuple(shape)}")
        return Size((*shape[:-2], n * (n - 1) // 2))


# ---- parts of a tensor ---------------------------------------------------------------------------


class _Joined(Transform):
    """Transforms of the parts of a tensor along an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) for t in tseq], dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: Sequence[Tensor], dim: int) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(part) for t, part in zip(self.transforms, self._split(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t._inv_call(part) for t, part in zip(self.transforms, self._split(y))], self.dim)


class StackTransform(_Joined):
    """Transforms of the slices of a tensor along `dim`.

    Example:
        >>> t = wg.distributions.transforms
        >>> t.StackTransform([t.ExpTransform(), t.AffineTransform(0.0, 2.0)])(wg.tensor([0.0, 3.0]))
        tensor([1., 6.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    domain = constraints.dependent_property(
        lambda self: constraints.stack([t.domain for t in self.transforms], self.dim)
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim)
    )

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        if x.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform: axis {self.dim} must have length {len(self.transforms)}, one for each "
                f"transform, got shape {tuple(x.shape)}"
            )
        return x.unbind(self.dim)

    def _join(self, parts: Sequence[Tensor], dim: int) -> Tensor:
        return wg.stack(list(parts), dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns those of the slices."""
        pairs = zip(self.transforms, self._split(x), self._split(y))
        return wg.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)


class CatTransform(_Joined):
    """Transforms of the parts of a tensor along `dim`, of given lengths.

    Args:
        lengths: lengths of the parts; 1 by default.

    Example:
        >>> t = wg.distributions.transforms
        >>> t.CatTransform([t.ExpTransform(), t.AffineTransform(0.0, 2.0)], 0, [1, 2])(wg.tensor([0.0, 3.0, 4.0]))
        tensor([1., 6., 8.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"CatTransform: {len(self.transforms)} transforms, but {len(self.lengths)} lengths"
            )

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    domain = constraints.dependent_property(
        lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
    )

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        if x.shape[self.dim] != self.length:
            raise ValueError(
                f"CatTransform: axis {self.dim} must have length {self.length}, got shape {tuple(x.shape)}"
            )
        return x.split(self.lengths, self.dim)

    def _join(self, parts: Sequence[Tensor], dim: int) -> Tensor:
        return wg.cat(list(parts), dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns those of the parts: joined along `dim`, or their sum where that axis belongs to an
        event."""
        found = [
            sum_last(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
            for t, a, b in zip(self.transforms, self._split(x), self._split(y))
        ]
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        if dim < 0:
            return wg.cat(found, dim)
        total: Any = sum(found[1:], found[0])
        return total
