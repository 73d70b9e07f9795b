"""The family of Fourier transforms, of complex and of real tensors."""

from collections.abc import Sequence
from typing import Any

from wengert import _core
from wengert._arguments import axis_of, one_of, operand
from wengert._core import Tensor

from ._pairs import of_real, to_real, transform

__all__ = [
    "fft",
    "fft2",
    "fftn",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
]


def _floating(name: str, x: Any) -> Tensor:
    """A tensor of real or complex floating point numbers; integers become float32."""
    x = operand(name, x)
    return x if x.is_floating_point() or x.is_complex() else x.float()


def _pairs(name: str, x: Any) -> Tensor:
    """Real and imaginary parts along a new last axis."""
    x = _floating(name, x)
    return _core.view_as_real(x) if x.is_complex() else _core.stack([x, _core.zeros_like(x)], -1)


def _real(name: str, x: Any) -> Tensor:
    """A tensor of real numbers.

    Raises:
        TypeError: for complex ones.
    """
    x = _floating(name, x)
    if x.is_complex():
        raise TypeError(
            f"{name}: real numbers expected, got {x.dtype}; use {name.replace('r', '').replace('h', '')}"
        )
    return x


def _one(name: str, pairs: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool) -> Tensor:
    return _core.view_as_complex(transform(name, pairs, axis_of(name, dim, pairs.ndim - 1), n, norm, inverse))


def _from_real(name: str, input: Any, s: Any, axes: Any, norm: str | None, inverse: bool) -> Tensor:
    """Half the transform of real numbers along the last of several axes, then the whole one along the
    others."""
    x = _real(name, input)
    *others, last = _one_or_more(name, x.ndim, s, axes)
    pairs = of_real(name, x, *last, norm, inverse)
    for axis, n in others:
        pairs = transform(name, pairs, axis, n, norm, inverse)
    return _core.view_as_complex(pairs)


def _back_to_real(name: str, input: Any, s: Any, axes: Any, norm: str | None, inverse: bool) -> Tensor:
    """The whole transform along all but the last of several axes, then that of half of them to real
    numbers."""
    pairs = _pairs(name, input)
    *others, last = _one_or_more(name, pairs.ndim - 1, s, axes)
    for axis, n in others:
        pairs = transform(name, pairs, axis, n, norm, inverse)
    return to_real(name, pairs, *last, norm, inverse)


def _one_or_more(name: str, rank: int, s: Any, axes: Any) -> list[tuple[int, int | None]]:
    plan = _plan(name, rank, s, axes)
    if not plan:
        raise ValueError(f"{name}: at least one axis expected, got none")
    return plan


def fft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None
) -> Tensor:
    """Returns the discrete Fourier transform `y[k] = sum(x[t] * exp(-2 pi i t k / n))` along `dim`.

    Args:
        input: real or complex; integers become float32.
        n: the length: input is cut off there, or filled up with zeros.
        dim: the axis; `axis` is another name of it.
        norm: `"backward"` (the default) does not scale, `"ortho"` by `1 / sqrt(n)`, `"forward"` by `1 / n`;
            the inverse has what is missing.

    Runs on the CPU, in the dtype of the parts. It is linear, so its derivatives are transforms; saves
    nothing.

    Example:
        >>> wg.fft.fft(wg.tensor([1.0, 0.0, 0.0, 0.0])).real
        tensor([1., 1., 1., 1.])
    """
    return _one("fft", _pairs("fft", input), n, one_of(dim, axis, -1), norm, False)


def ifft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None
) -> Tensor:
    """Returns the inverse of `fft`: `x[t] = sum(y[k] * exp(2 pi i t k / n)) / n`.

    Example:
        >>> wg.fft.ifft(wg.tensor([4.0, 0.0, 0.0, 0.0])).real
        tensor([1., 1., 1., 1.])
    """
    return _one("ifft", _pairs("ifft", input), n, one_of(dim, axis, -1), norm, True)


def rfft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None
) -> Tensor:
    """Returns the first `n // 2 + 1` elements of the transform of real numbers; the others are conjugates of
    these.

    Example:
        >>> wg.fft.rfft(wg.ones(4)).real
        tensor([4., 0., 0.])
    """
    x = _real("rfft", input)
    along = axis_of("rfft", one_of(dim, axis, -1), x.ndim)
    return _core.view_as_complex(of_real("rfft", x, along, n, norm))


def irfft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None
) -> Tensor:
    """Returns the inverse of `rfft`: `n` real numbers, by default `2 * (length - 1)`.

    Example:
        >>> wg.fft.irfft(wg.tensor([4.0, 0.0, 0.0]))
        tensor([1., 1., 1., 1.])
    """
    pairs = _pairs("irfft", input)
    return to_real("irfft", pairs, axis_of("irfft", one_of(dim, axis, -1), pairs.ndim - 1), n, norm)


def hfft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None
) -> Tensor:
    """Returns the transform of numbers that are conjugates of each other around 0, given by their first half:
    `n` real numbers, by default `2 * (length - 1)`.

    Example:
        >>> wg.fft.hfft(wg.tensor([1.0, 2.0, 3.0]))
        tensor([ 8., -2.,  0., -2.])
    """
    pairs = _pairs("hfft", input)
    along = axis_of("hfft", one_of(dim, axis, -1), pairs.ndim - 1)
    return to_real("hfft", pairs, along, n, norm, inverse=False)


def ihfft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None
) -> Tensor:
    """Returns the inverse of `hfft`: the first half of the inverse transform of real numbers.

    Example:
        >>> wg.fft.ihfft(wg.tensor([1.0, 2.0, 3.0, 2.0]))
        tensor([ 2.0+0.j, -0.5+0.j,  0.0+0.j])
    """
    x = _real("ihfft", input)
    along = axis_of("ihfft", one_of(dim, axis, -1), x.ndim)
    return _core.view_as_complex(of_real("ihfft", x, along, n, norm, inverse=True))


def _plan(name: str, rank: int, s: Sequence[int] | None, dim: Any) -> list[tuple[int, int | None]]:
    """The axes to transform, counted from the front, and their lengths where they were given."""
    if dim is None:
        axes = list(range(rank)) if s is None else list(range(rank - len(s), rank))
    else:
        axes = [axis_of(name, d, rank) for d in ([dim] if isinstance(dim, int) else dim)]
    if len(set(axes)) != len(axes) or any(a < 0 for a in axes):
        raise ValueError(
            f"{name}: different axes of a tensor with {rank} axes expected, got "
            f"{dim if dim is not None else s}"
        )
    if s is not None and len(s) != len(axes):
        raise ValueError(f"{name}: as many lengths as axes expected, got {len(s)} and {len(axes)}")
    return [(axis, None if s is None or s[i] == -1 else s[i]) for i, axis in enumerate(axes)]


def fftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, axes: Any = None) -> Tensor:
    """Returns the transform along several axes: `dim`, or as many of the last as `s` has lengths, or all. See
    `fft`.

    Example:
        >>> wg.fft.fftn(wg.ones(2, 2)).real
        tensor([[4., 0.],
                [0., 0.]])
    """
    return _several("fftn", input, s, dim if axes is None else axes, norm, False)


def ifftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, axes: Any = None) -> Tensor:
    """Returns the inverse of `fftn`.

    Example:
        >>> wg.fft.ifftn(wg.fft.fftn(wg.tensor([[1.0, 2.0], [3.0, 4.0]]))).real
        tensor([[1., 2.],
                [3., 4.]])
    """
    return _several("ifftn", input, s, dim if axes is None else axes, norm, True)


def _several(name: str, input: Any, s: Any, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    pairs = _pairs(name, input)
    for axis, n in _plan(name, pairs.ndim - 1, s, dim):
        pairs = transform(name, pairs, axis, n, norm, inverse)
    return _core.view_as_complex(pairs)


def rfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, axes: Any = None) -> Tensor:
    """Returns the transform of real numbers along several axes, of which the last keeps its first half; see
    `rfft`.

    Example:
        >>> wg.fft.rfftn(wg.ones(2, 2)).real
        tensor([[4., 0.],
                [0., 0.]])
    """
    return _from_real("rfftn", input, s, dim if axes is None else axes, norm, False)


def irfftn(
    input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, axes: Any = None
) -> Tensor:
    """Returns the inverse of `rfftn`: real numbers; the last axis has by default `2 * (length - 1)`.

    Example:
        >>> wg.fft.irfftn(wg.fft.rfftn(wg.tensor([[1.0, 2.0], [3.0, 4.0]])))
        tensor([[1., 2.],
                [3., 4.]])
    """
    return _back_to_real("irfftn", input, s, dim if axes is None else axes, norm, True)


def fft2(
    input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, axes: Any = None
) -> Tensor:
    """Returns `fftn` along two axes, by default the last.

    Example:
        >>> wg.fft.fft2(wg.ones(2, 2)).real
        tensor([[4., 0.],
                [0., 0.]])
    """
    return fftn(input, s, dim, norm, axes=axes)


def ifft2(
    input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, axes: Any = None
) -> Tensor:
    """Returns `ifftn` along two axes, by default the last.

    Example:
        >>> wg.fft.ifft2(wg.fft.fft2(wg.tensor([[1.0, 2.0], [3.0, 4.0]]))).real
        tensor([[1., 2.],
                [3., 4.]])
    """
    return ifftn(input, s, dim, norm, axes=axes)


def rfft2(
    input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, axes: Any = None
) -> Tensor:
    """Returns `rfftn` along two axes, by default the last.

    Example:
        >>> wg.fft.rfft2(wg.ones(2, 2)).real
        tensor([[4., 0.],
                [0., 0.]])
    """
    return rfftn(input, s, dim, norm, axes=axes)


def irfft2(
    input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, axes: Any = None
) -> Tensor:
    """Returns `irfftn` along two axes, by default the last.

    Example:
        >>> wg.fft.irfft2(wg.fft.rfft2(wg.tensor([[1.0, 2.0], [3.0, 4.0]])))
        tensor([[1., 2.],
                [3., 4.]])
    """
    return irfftn(input, s, dim, norm, axes=axes)


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, axes: Any = None) -> Tensor:
    """Returns `hfft` along the last of several axes, after `fft` along the others: real numbers; see `fftn`.

    Example:
        >>> wg.fft.hfftn(wg.ones(2, 3)).shape
        (2, 4)
    """
    return _back_to_real("hfftn", input, s, dim if axes is None else axes, norm, False)


def ihfftn(
    input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, axes: Any = None
) -> Tensor:
    """Returns the inverse of `hfftn`: `ihfft` of real numbers along the last of several axes, and `ifft`
    along the others.

    Example:
        >>> wg.fft.ihfftn(wg.ones(2, 4)).shape
        (2, 3)
    """
    return _from_real("ihfftn", input, s, dim if axes is None else axes, norm, True)


def hfft2(
    input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, axes: Any = None
) -> Tensor:
    """Returns `hfftn` along two axes, by default the last.

    Example:
        >>> wg.fft.hfft2(wg.ones(2, 3)).shape
        (2, 4)
    """
    return hfftn(input, s, dim, norm, axes=axes)


def ihfft2(
    input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, axes: Any = None
) -> Tensor:
    """Returns `ihfftn` along two axes, by default the last.

    Example:
        >>> wg.fft.ihfft2(wg.ones(2, 4)).shape
        (2, 3)
    """
    return ihfftn(input, s, dim, norm, axes=axes)
