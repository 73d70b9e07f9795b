"""Weights of a given norm, of a given largest singular value, and with orthonormal rows or columns.

Names are those of `torch.nn.utils.parametrizations`.
"""

from typing import Any

import wengert as wg
from wengert import linalg
from wengert._core import Tensor
from wengert.composed._method import on_axis

from ..functional import normalize
from ..module import Module
from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _existing(name: str, module: Module, attribute: str) -> Tensor:
    """The attribute to be parametrized."""
    value = getattr(module, attribute, None)
    if not isinstance(value, Tensor):
        raise ValueError(f"{name}: {type(module).__name__} has no parameter or buffer {attribute!r}")
    return value


class _WeightNorm(Module):
    """`g v / |v|`, with one length per place along an axis, or one for all."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def _length(self, v: Tensor) -> Tensor:
        if self.dim is None:
            return v.norm()
        _, own = on_axis("weight_norm", v, self.dim)
        axes = [i for i in range(v.ndim) if i != own]
        return v.norm(2, axes, keepdim=True) if axes else v.abs()

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        """Returns the weight."""
        return v * (g / self._length(v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Lengths and directions of a weight."""
        return self._length(weight), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Trains lengths and directions of a weight apart: `weight = g v / |v|` (T. Salimans and D. Kingma,
    2016).

    Args:
        module: the layer; its originals are `original0 = g` and `original1 = v`.
        name: its parameter.
        dim: the axis along which each place has a length of its own; None: one for all.

    Example:
        >>> layer = wg.nn.utils.parametrizations.weight_norm(wg.nn.Linear(3, 2))
        >>> layer.parametrizations.weight.original0.shape
        (2, 1)
    """
    _existing("weight_norm", module, name)
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def _as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight with the axis `dim` in front and all else behind."""
    weight = weight.movedim(dim, 0)
    return weight.reshape(weight.shape[0], -1)


def _starts(matrix: Tensor, eps: float) -> list[Tensor]:
    """Vectors on the left and the right of a matrix, from which power iteration starts."""
    drawn = (wg.randn(n, dtype=matrix.dtype, device=matrix.device) for n in matrix.shape)
    return [normalize(vector, dim=0, eps=eps) for vector in drawn]


def _checked_axis(module: Module, n_power_iterations: int, dim: int | None) -> int:
    """The axis of the outputs; raises where there are no steps."""
    if n_power_iterations < 1:
        raise ValueError(
            f"spectral_norm: n_power_iterations of at least 1 expected, got {n_power_iterations}"
        )
    return int(getattr(module, "_transposed", False)) if dim is None else dim


class _SpectralNorm(Module):
    """A weight over its largest singular value, which steps of power iteration follow."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int, eps: float, dim: int) -> None:
        super().__init__()
        self.n_power_iterations, self.eps, self.dim = n_power_iterations, eps, dim
        if weight.ndim > 1:
            with wg.no_grad():
                matrix = _as_matrix(weight, dim)
                for name, start in zip(("_u", "_v"), _starts(matrix, eps)):
                    self.register_buffer(name, start)
                self._iterate(matrix, 15)

    def _iterate(self, matrix: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        u, v = self._u, self._v
        for _ in range(steps):
            u = normalize(matrix @ v, dim=0, eps=self.eps)
            v = normalize(matrix.T @ u, dim=0, eps=self.eps)
        self._u.copy_(u)
        self._v.copy_(v)
        return u, v

    def forward(self, weight: Tensor) -> Tensor:
        """Returns the weight over its largest singular value."""
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = _as_matrix(weight, self.dim)
        if self.training:
            with wg.no_grad():
                u, v = self._iterate(matrix.detach(), self.n_power_iterations)
        else:
            # A backward may come after the next step.
            u, v = self._u.clone(), self._v.clone()
        return weight / (u @ (matrix @ v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Returns the value itself: it is divided by its own largest singular value."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a weight by its largest singular value (T. Miyato et al., 2018).

    The value comes from power iteration, `n_power_iterations` steps for each reading in training mode, and is
    not differentiated through its steps, whose vectors are buffers.

    Args:
        module: the layer.
        name: its parameter; a vector is divided by its length.
        n_power_iterations: at least 1.
        eps: the smallest length that vectors are divided by.
        dim: the axis of the outputs: 0, or 1 for transposed convolutions, by default.

    Raises:
        ValueError: fewer than one step.

    Example:
        >>> layer = wg.nn.utils.parametrizations.spectral_norm(wg.nn.Linear(3, 3))
        >>> layer(wg.ones(1, 3)).shape
        (1, 3)
    """
    weight = _existing("spectral_norm", module, name)
    axis = _checked_axis(module, n_power_iterations, dim)
    return parametrize.register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, eps, axis)
    )


MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, if there are fewer of them) as a function of any matrix."""

    base: Tensor | None

    def __init__(self, weight: Tensor, kind: str, use_base: bool) -> None:
        super().__init__()
        self.kind, self.use_base = kind, use_base
        if use_base:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the orthonormal matrix."""
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        n, k = x.shape[-2:]
        if self.kind == "householder":
            below = x.tril(-1)
            q = linalg.householder_product(below, 2.0 / (1.0 + below.square().sum(-2)))
            q = q * x.diagonal(0, -2, -1).detach().sign().unsqueeze(-2)
        else:
            lower = x.tril(-1)
            if n != k:
                lower = wg.cat([lower, wg.zeros(*x.shape[:-2], n, n - k, dtype=x.dtype, device=x.device)], -1)
            skew = lower - lower.mT
            if self.kind == "matrix_exp":
                q = linalg.matrix_exp(skew)
            else:
                one = wg.eye(n, dtype=x.dtype, device=x.device)
                q = linalg.solve(one - 0.5 * skew, one + 0.5 * skew)
            q = q[..., :k]
        if self.use_base and self.base is not None:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, value: Tensor) -> Tensor:
        """Returns what gives the orthonormal factor of `value`, which is `value` itself where that is
        orthonormal."""
        if not self.use_base:
            raise NotImplementedError("an orthogonal map with use_trivialization=False has no inverse")
        wide = value.shape[-2] < value.shape[-1]
        q = value.mT if wide else value
        n, k = q.shape[-2:]
        full, r = linalg.qr(q, mode="complete")
        signs = r[..., :k, :].diagonal(0, -2, -1).sign()
        signs = wg.where(signs == 0, wg.ones_like(signs), signs)
        full = wg.cat([full[..., :k] * signs.unsqueeze(-2), full[..., k:]], -1)
        self.base = full
        # This gives the identity: a skew matrix of zero, or as many changes of sign as reflections.
        start = -wg.eye(n, k, dtype=value.dtype, device=value.device).expand(q.shape)
        return start.mT.contiguous() if wide else start


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a weight orthonormal: its columns, or its rows if there are fewer of them.

    Args:
        module: the layer.
        name: its parameter, a matrix or a batch of them.
        orthogonal_map: `"matrix_exp"` and `"cayley"` of a skew matrix, or `"householder"`, a product of
            reflections; by default the first for square matrices, the last for others.
        use_trivialization: multiply with the orthonormal factor of the initial value, so that training begins
            there and the weight can be assigned (M. Lezcano-Casado, 2019); otherwise it begins with what the
            map makes of it.

    Raises:
        ValueError: another map, or a parameter that is no matrix.

    Example:
        >>> layer = wg.nn.utils.parametrizations.orthogonal(wg.nn.Linear(3, 3))
        >>> bool((layer.weight @ layer.weight.T - wg.eye(3)).abs().max() < 1e-5)
        True
    """
    weight: Any = _existing("orthogonal", module, name)
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: a matrix or a batch of them expected, got shape {tuple(weight.shape)}")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-1] == weight.shape[-2] else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            f"orthogonal: orthogonal_map must be one of {', '.join(MAPS)}, got {orthogonal_map!r}"
        )
    function = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, function)
