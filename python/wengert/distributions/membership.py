"""Tests of which vectors and matrices lie in a set: a bool for each, up to rounding."""

import wengert as wg
from wengert._core import Tensor

__all__ = [
    "is_corr_cholesky",
    "is_definite",
    "is_lower",
    "is_lower_cholesky",
    "is_one_hot",
    "is_semidefinite",
    "is_simplex",
    "is_square",
    "is_symmetric",
    "is_whole",
]


def is_whole(x: Tensor) -> Tensor:
    """Returns for each number whether it is an integer."""
    return x == x.floor() if x.is_floating_point() else wg.ones_like(x, dtype=wg.bool)


def _sums_to_one(x: Tensor) -> Tensor:
    return (x.sum(-1) - 1).abs() <= max(1e-6, 10 * wg.finfo(x.dtype).eps * x.shape[-1] ** 0.5)


def is_one_hot(x: Tensor) -> Tensor:
    """Returns whether vectors have a single 1, and zeros."""
    return ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1)


def is_simplex(x: Tensor) -> Tensor:
    """Returns whether vectors are not negative and sum to 1."""
    return (x >= 0).all(-1) & _sums_to_one(x)


def is_square(x: Tensor) -> Tensor:
    """Returns whether matrices are square."""
    return wg.full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=wg.bool, device=x.device)


def is_symmetric(x: Tensor) -> Tensor:
    """Returns whether matrices are symmetric, up to 1e-6 of their largest element."""
    if x.shape[-2] != x.shape[-1]:
        return is_square(x)
    size = x.detach().abs().amax((-2, -1), keepdim=True) if x.shape[-1] else wg.ones_like(x)
    return ((x - x.mT).abs() <= 1e-6 * size.clamp_min(1.0)).all(-1).all(-1)


def is_lower(x: Tensor) -> Tensor:
    """Returns whether matrices are lower triangular."""
    return (x.tril() == x).all(-1).all(-1)


def is_lower_cholesky(x: Tensor) -> Tensor:
    """Returns whether matrices are lower triangular with a positive diagonal."""
    return is_lower(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def is_corr_cholesky(x: Tensor) -> Tensor:
    """Returns whether such matrices have rows of length 1."""
    return is_lower_cholesky(x) & _sums_to_one(x.square()).all(-1)


def _spectrum(x: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues of matrices, and which matrices are symmetric and finite; of the others they mean
    nothing."""
    good = is_symmetric(x) & x.isfinite().all(-1).all(-1)
    if x.shape[-2] != x.shape[-1]:
        return x[..., 0], good
    return wg.linalg.eigvalsh(wg.where(good[..., None, None], x, wg.zeros_like(x)).detach()), good


def is_semidefinite(x: Tensor) -> Tensor:
    """Returns whether symmetric matrices have no negative eigenvalue."""
    spectrum, good = _spectrum(x)
    return good & (spectrum >= -1e-6).all(-1)


def is_definite(x: Tensor) -> Tensor:
    """Returns whether symmetric matrices have positive eigenvalues."""
    spectrum, good = _spectrum(x)
    return good & (spectrum > 0).all(-1)
