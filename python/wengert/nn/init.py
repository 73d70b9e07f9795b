"""Initial values of parameters. Every function fills its `tensor` in place, without recording, and returns
it. Random numbers come from `generator`, or from the default stream.

fan_in and fan_out are the numbers of inputs of an output and of outputs of an input: of a weight
`(out, in, window...)`, in and out times the elements of a window.

Sources: Glorot and Bengio 2010 (xavier), He et al. 2015 (kaiming), Saxe et al. 2014 (orthogonal).
"""

import math
from typing import Any

import numpy as np

import wengert as wg
from wengert._core import Generator, Tensor

__all__ = [
    "calculate_gain",
    "uniform_",
    "normal_",
    "trunc_normal_",
    "constant_",
    "zeros_",
    "ones_",
    "eye_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "dirac_",
    "sparse_",
]
__dir__ = __all__.copy

_GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}


def _fill(tensor: Tensor, values: Tensor) -> Tensor:
    with wg.no_grad():
        tensor.copy_(values.to(tensor.dtype))
    return tensor


def _uniform(tensor: Tensor, low: float, high: float, generator: Generator | None) -> Tensor:
    values = wg.rand(tuple(tensor.shape), generator=generator, dtype=_working(tensor), device=tensor.device)
    return _fill(tensor, values * (high - low) + low)


def _normal(tensor: Tensor, mean: float, std: float, generator: Generator | None) -> Tensor:
    values = wg.randn(tuple(tensor.shape), generator=generator, dtype=_working(tensor), device=tensor.device)
    return _fill(tensor, values * std + mean)


def _working(tensor: Tensor) -> Any:
    """The dtype that is drawn in: float16 and bfloat16 are drawn in float32 and rounded once."""
    return wg.float64 if tensor.dtype == wg.float64 else wg.float32


def _fans(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(
            "fan-in and fan-out need a tensor of two or more axes (out, in, ...), got shape "
            f"{tuple(tensor.shape)}"
        )
    field = math.prod(tuple(tensor.shape)[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the factor that keeps the variance through `nonlinearity`, a name such as "relu" or "tanh";
    `param` is the slope of "leaky_relu", 0.01 if None.

    Example:
        >>> wg.nn.init.calculate_gain("tanh")
        1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        if isinstance(param, bool) or not isinstance(param, (int, float, type(None))):
            raise ValueError(f"calculate_gain: the slope of leaky_relu is a number, got {param!r}")
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1.0 + slope * slope))
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"calculate_gain: unknown nonlinearity {nonlinearity!r}; known: leaky_relu, {', '.join(_GAINS)}"
        )
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills `tensor` with uniform numbers on [a, b).

    Example:
        >>> weight = wg.nn.init.uniform_(wg.empty(100), -1.0, 1.0)
        >>> bool((weight.abs() <= 1.0).all())
        True
    """
    return _uniform(tensor, a, b, generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills `tensor` with normal numbers of this `mean` and standard deviation `std`.

    Example:
        >>> wg.nn.init.normal_(wg.empty(2), mean=3.0, std=0.0)
        tensor([3., 3.])
    """
    return _normal(tensor, mean, std, generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills `tensor` with normal numbers of this `mean` and `std`, with values outside [a, b] drawn again.

    `a` and `b` are values, not multiples of `std`; they may lie in a far tail (Robert 1995).

    Example:
        >>> weight = wg.nn.init.trunc_normal_(wg.empty(100), std=5.0)
        >>> bool((weight.abs() <= 2.0).all())
        True
    """
    if not a < b:
        raise ValueError(f"trunc_normal_: a must be less than b, got a={a}, b={b}")
    if not (math.isfinite(mean) and 0.0 < std < math.inf):
        raise ValueError(f"trunc_normal_: a finite mean and a positive std expected, got {mean} and {std}")
    low, high = (a - mean) / std, (b - mean) / std
    mass = 0.5 * (math.erf(high / math.sqrt(2.0)) - math.erf(low / math.sqrt(2.0)))
    shape, dtype = tuple(tensor.shape), _working(tensor)
    found = wg.full(shape, math.nan, dtype=dtype, device="cpu")
    while bool((missing := found.isnan()).any()):
        if mass > 0.05:
            z = wg.randn(shape, generator=generator, dtype=dtype, device="cpu")
            x, accept = z * std + mean, (z >= low) & (z <= high)
        else:
            # Distances from the bound next to the mean, in an exponential distribution that touches the
            # normal one there; where the mean lies between narrow bounds, in a uniform one.
            near = max(low, -high)
            length = (b - a) / std
            u = wg.rand(shape, generator=generator, dtype=dtype, device="cpu")
            if near > 0.0:
                step = (u * math.expm1(-near * length)).log1p() / -near
                density = (-0.5 * step * step).exp()
            else:
                step = u * length
                density = (-0.5 * (low + step).square()).exp()
            accept = wg.rand(shape, generator=generator, dtype=dtype, device="cpu") <= density
            x = b - step * std if near == -high and near > 0.0 else a + step * std
        found = wg.where(missing & accept, x.clamp(a, b), found)
    return _fill(tensor, found.to(tensor.device))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills `tensor` with the value `val` everywhere.

    Example:
        >>> wg.nn.init.constant_(wg.empty(2), 0.5)
        tensor([0.5, 0.5])
    """
    with wg.no_grad():
        tensor.fill_(val)
    return tensor


def zeros_(tensor: Tensor) -> Tensor:
    """Fills `tensor` with zeros.

    Example:
        >>> wg.nn.init.zeros_(wg.empty(2))
        tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fills `tensor` with ones.

    Example:
        >>> wg.nn.init.ones_(wg.empty(2))
        tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fills the matrix `tensor` with the identity, ones on the diagonal and zeros elsewhere.

    Example:
        >>> wg.nn.init.eye_(wg.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_: a matrix expected, got shape {tuple(tensor.shape)}")
    return _fill(tensor, wg.eye(*tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills `tensor` with uniform numbers of variance `2 gain^2 / (fan_in + fan_out)`: in
    `±gain sqrt(6 / (fan_in + fan_out))`.

    Example:
        >>> weight = wg.nn.init.xavier_uniform_(wg.empty(3, 3))
        >>> bool((weight.abs() <= 1.0).all())
        True
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return _uniform(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills `tensor` with normal numbers of variance `2 gain^2 / (fan_in + fan_out)` and mean 0.

    Example:
        >>> wg.nn.init.xavier_normal_(wg.empty(2, 3), gain=wg.nn.init.calculate_gain("tanh")).shape
        (2, 3)
    """
    return _normal(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"kaiming: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan = _fans(tensor)[0 if mode == "fan_in" else 1]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills `tensor` with uniform numbers of variance `gain^2 / fan`: in `±gain sqrt(3 / fan)`.

    Args:
        tensor: a weight `(out, in, window...)`.
        a: the slope of "leaky_relu" below 0; other functions have none.
        mode: fan is "fan_in", which keeps the variance forward, or "fan_out", which keeps it backward.
        nonlinearity: what follows the layer; gain is `calculate_gain(nonlinearity, a)`.

    Example:
        >>> weight = wg.nn.init.kaiming_uniform_(wg.empty(2, 6), nonlinearity="relu")
        >>> bool((weight.abs() <= 1.0).all())
        True
    """
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return _uniform(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills `tensor` with normal numbers of variance `gain^2 / fan` and mean 0; `a`, `mode` and
    `nonlinearity` as of `kaiming_uniform_`.

    Example:
        >>> wg.nn.init.kaiming_normal_(wg.empty(2, 3), mode="fan_out", nonlinearity="relu").shape
        (2, 3)
    """
    return _normal(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills `tensor`, as a matrix of its first axis by all others, with orthonormal rows or columns,
    whichever are fewer, times `gain`.

    Example:
        >>> weight = wg.nn.init.orthogonal_(wg.empty(2, 3))
        >>> wg.allclose(weight @ weight.T, wg.eye(2), atol=1e-5)
        True
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: two or more axes expected, got shape {tuple(tensor.shape)}")
    rows = tensor.shape[0]
    columns = math.prod(tuple(tensor.shape)[1:])
    size = max(rows, columns), min(rows, columns)
    flat = wg.randn(size, generator=generator, dtype=wg.float64, device="cpu").numpy()
    q, r = np.linalg.qr(flat)
    q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)
    q = q.T if rows < columns else q
    values = np.ascontiguousarray(q).reshape(tuple(tensor.shape)) * gain
    return _fill(tensor, wg.as_tensor(values).to(tensor.dtype).to(tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills with windows of a convolution that hand on as many channels as they can: 1 in the middle, 0
    elsewhere.

    Args:
        tensor: `(out, in, window...)` with one to three axes of the window.
        groups: the outputs come in so many groups, each of which starts at the first input.

    Example:
        >>> wg.nn.init.dirac_(wg.empty(1, 2, 3))
        tensor([[[0., 1., 0.],
                 [0., 0., 0.]]])
    """
    if not 3 <= tensor.ndim <= 5:
        raise ValueError(f"dirac_: three to five axes expected, got shape {tuple(tensor.shape)}")
    outputs, inputs, *window = tuple(tensor.shape)
    if groups < 1 or outputs % groups:
        raise ValueError(f"dirac_: {outputs} output channels do not divide into {groups} groups")
    values = np.zeros(tuple(tensor.shape))
    middle = tuple(n // 2 for n in window)
    for group in range(groups):
        for channel in range(min(outputs // groups, inputs)):
            values[(group * (outputs // groups) + channel, channel, *middle)] = 1.0
    return _fill(tensor, wg.as_tensor(values).to(tensor.dtype).to(tensor.device))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fills the matrix `tensor` with normal numbers of standard deviation `std`, and zero in a share
    `sparsity` of each column (Martens 2010).

    Example:
        >>> weight = wg.nn.init.sparse_(wg.empty(4, 3), sparsity=0.5)
        >>> (weight == 0).sum(dim=0)
        tensor([2, 2, 2])
    """
    if tensor.ndim != 2:
        raise ValueError(f"sparse_: a matrix expected, got shape {tuple(tensor.shape)}")
    if not 0.0 <= sparsity <= 1.0:
        raise ValueError(f"sparse_: sparsity must lie between 0 and 1, got {sparsity}")
    rows, columns = tuple(tensor.shape)
    normal_(tensor, 0.0, std, generator)
    order = wg.rand((rows, columns), generator=generator, device="cpu").argsort(0)
    zeros = (order.argsort(0) < math.ceil(sparsity * rows)).to(tensor.device)
    with wg.no_grad():
        tensor.masked_fill_(zeros, 0.0)
    return tensor
