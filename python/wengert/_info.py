"""Limits of the dtypes: `finfo` and `iinfo`."""

from typing import Any

from wengert import _core


class finfo:
    """Limits of a floating point dtype, or of the parts of a complex one, which `dtype` then is.

    `eps` is the gap above 1, `tiny` the smallest normal number.

    Example:
        >>> wg.finfo(wg.float32).eps
        1.1920928955078125e-07
    """

    def __init__(self, dtype: Any = None) -> None:
        """Of `dtype`, or of a tensor's; the default dtype if None."""
        self.dtype, name = _named(_core.get_default_dtype() if dtype is None else dtype)
        name = {"complex64": "float32", "complex128": "float64"}.get(name, name)
        if name not in _FLOATS:
            raise TypeError(f"finfo: a floating point dtype expected, got {name}; see iinfo")
        self.dtype = getattr(_core, name)
        self.bits, mantissa, top = _FLOATS[name]
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps) * 2.0**top
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - top)

    def __repr__(self) -> str:
        """The limits, as PyTorch shows them."""
        return (
            f"finfo(min={self.min:g}, max={self.max:g}, eps={self.eps:g}, smallest_normal={self.tiny:g}, "
            f"tiny={self.tiny:g}, dtype={str(self.dtype).removeprefix('wengert.')})"
        )


class iinfo:
    """Limits of an integer dtype.

    Example:
        >>> wg.iinfo(wg.uint8).max
        255
    """

    def __init__(self, dtype: Any) -> None:
        """Of `dtype`, or of a tensor's."""
        self.dtype, name = _named(dtype)
        if name not in _INTS:
            raise TypeError(f"iinfo: an integer dtype expected, got {name}; see finfo")
        self.bits, self.min, self.max = _INTS[name]

    def __repr__(self) -> str:
        """The limits."""
        return f"iinfo(min={self.min}, max={self.max}, dtype={str(self.dtype).removeprefix('wengert.')})"


# Bits, bits after the point, largest exponent.
_FLOATS = {
    "float16": (16, 10, 15),
    "bfloat16": (16, 7, 127),
    "float32": (32, 23, 127),
    "float64": (64, 52, 1023),
}
# Bits, smallest, largest.
_INTS = {f"int{bits}": (bits, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": (bits, 0, 2**bits - 1) for bits in (8, 16, 32, 64)
}


def _named(dtype: Any) -> tuple[Any, str]:
    """A dtype, as whatever names one or of a tensor, and its name."""
    found = _core.empty(
        0, dtype=dtype.dtype if isinstance(dtype, _core.Tensor) else dtype, device="cpu"
    ).dtype
    return found, found.name
