"""What a mask selects inside `vmap`, where each example has its own number of elements.

Such a selection has no shape, so it is no tensor: it keeps all elements and the mask. Functions of one
element, reductions, and assignment back under the same mask need no shape, and work.
"""

import math
from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._arguments import one_of
from wengert._core import Tensor

__all__ = ["Selection"]


class Selection:
    """The elements `x[mask]` of an example inside `vmap`.

    Arithmetic with numbers, tensors without axes and selections by the same mask, comparisons and functions
    of one element give selections. `sum`, `mean`, `var`, `std`, `prod`, `norm`, `logsumexp`, `amax`, `amin`,
    `max`, `min`, `any`, `all` and `numel` give tensors, also along `dim=0`; of no element, the largest is
    minus infinity and the mean is NaN. `x[mask] = selection` puts the elements back;
    `selection[selection > 2] = 2` changes some of them.

    Raises:
        TypeError: for whatever needs the number of elements.

    Example:
        >>> x = wg.tensor([[1.0, -2.0, 3.0], [-4.0, -5.0, 6.0]])
        >>> wg.vmap(lambda x: (x[x > 0] * 10).sum())(x)
        tensor([40., 60.])
    """

    __slots__ = ("key", "mask", "values")
    # What is added to messages that expected a tensor.
    _no_tensor = (
        "; inside vmap a mask selects as many elements as each example has, so there is no shape: reduce "
        "them, for example with .sum(), or use where() on all elements"
    )
    # Operators of tensors on the left leave the work to those here.
    __array_ufunc__ = None

    def __init__(self, values: Tensor, mask: Tensor, key: Any) -> None:
        """All elements, where they are selected, and the mask as it was written."""
        self.values, self.mask, self.key = _inside(values, mask), mask, key

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.values.dtype

    @property
    def device(self) -> Any:
        """Where the elements are."""
        return self.values.device

    def _with(self, values: Tensor) -> "Selection":
        made = Selection.__new__(Selection)
        made.values, made.mask, made.key = values, self.mask, self.key
        return made

    def _operand(self, name: str, other: Any) -> Any:
        if isinstance(other, Selection):
            if other.key is not self.key:
                raise _shapeless(name, "and a selection by another mask, whose elements have no partners")
            return other.values
        if isinstance(other, Tensor) and other.ndim:
            raise _shapeless(
                name, f"and a tensor of shape {tuple(other.shape)}, whose elements have no partners"
            )
        return other

    def _only(self, otherwise: Any) -> Tensor:
        """All elements, with another value where they are not selected."""
        return _core.where(self.mask, self.values, otherwise)

    def numel(self) -> Tensor:
        """How many elements there are: a tensor without axes."""
        return self.mask.sum()

    def sum(self, dim: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Their sum."""
        return _along("sum", self._only(0).sum(), dim, keepdim, **other)

    def mean(self, dim: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Their mean; NaN of none."""
        return _along("mean", self.sum() / self.numel().to(self.dtype), dim, keepdim, **other)

    def var(
        self,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        **other: Any,
    ) -> Tensor:
        """Their variance, the sum of squares divided by their number less 1 (or less `correction`), but by
        no less than 0.
        """
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        less = correction if correction is not None else float(unbiased is not False)
        squares = self.__sub__(self.mean()).square().sum()
        freedom = (self.numel().to(self.dtype) - less).clamp(min=0)
        return _along("var", squares / freedom, dim, keepdim, **other)

    def std(
        self, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, **other: Any
    ) -> Tensor:
        """The root of their variance; where that is zero, so is its gradient."""
        out = self.var(dim, unbiased, keepdim, **other).sqrt()
        return out.masked_fill(out.detach() == 0, 0.0)

    def prod(self, dim: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Their product."""
        return _along("prod", self._only(1).prod(), dim, keepdim, **other)

    def norm(self, p: Any = 2.0, dim: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Their `p`-norm."""
        return _along("norm", self._only(0).norm(p), dim, keepdim, **other)

    def logsumexp(self, dim: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """The logarithm of the sum of their exponentials."""
        out = self._only(-math.inf).reshape(-1).logsumexp(0)
        return _along("logsumexp", out, dim, keepdim, **other)

    def amax(self, dim: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """The largest; the least number of the dtype of none."""
        return _along("amax", self._only(_bound(self.dtype, -1)).amax(), dim, keepdim, **other)

    def amin(self, dim: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """The smallest; the greatest number of the dtype of none."""
        return _along("amin", self._only(_bound(self.dtype, 1)).amin(), dim, keepdim, **other)

    def max(self) -> Tensor:
        """The largest; see `amax`, which takes an axis."""
        return self.amax()

    def min(self) -> Tensor:
        """The smallest; see `amin`, which takes an axis."""
        return self.amin()

    def any(self, dim: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Whether one is not zero."""
        return _along("any", (self.values != 0).logical_and(self.mask).any(), dim, keepdim, **other)

    def all(self, dim: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Whether none is zero."""
        return _along(
            "all", (self.values != 0).logical_or(self.mask.logical_not()).all(), dim, keepdim, **other
        )

    def detach(self) -> "Selection":
        """The same without a derivative."""
        return self._with(self.values.detach())

    def to(self, dtype: Any) -> "Selection":
        """The same in another dtype."""
        return self._with(self.values.to(dtype))

    def __getattr__(self, name: str) -> Any:
        """Functions of one element, by their names, also in place;
        anything else has no meaning without a shape.
        """
        if name.endswith("_") and not name.endswith("__") and name[:-1] in _POINTWISE:
            return lambda *args: self._become(getattr(self, name[:-1])(*args).values)
        if name in _POINTWISE:
            return lambda *args: self._with(
                getattr(self.values, name)(*[self._operand(name, a) for a in args])
            )
        if name.startswith("__"):
            raise AttributeError(name)
        raise _shapeless(name)

    def __len__(self) -> int:
        """Raises: the number differs between examples."""
        raise _shapeless("len")

    def __iter__(self) -> Any:
        """Raises: the number differs between examples."""
        raise _shapeless("iter")

    def _become(self, values: Tensor) -> "Selection":
        """Exchanges the elements: a selection is a copy, so nothing else changes."""
        self.values = values.to(self.dtype)
        return self

    def _by(self, key: Any) -> Tensor:
        """Where a selection of bools by the same mask is True."""
        if not isinstance(key, Selection) or key.key is not self.key or key.dtype != _core.bool:
            raise _shapeless("indexing")
        return key.values.logical_and(self.mask)

    def __getitem__(self, key: Any) -> "Selection":
        """Those for which a comparison of them holds, as in `s[s > 2]`."""
        return Selection(self.values, self._by(key), key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Exchanges those for which a comparison of them holds, as in `s[s > 2] = 2`;
        `s[:] = value` exchanges all.
        """
        everything = key is Ellipsis or (isinstance(key, slice) and key == slice(None))
        where = self.mask if everything else self._by(key)
        if isinstance(value, Selection) and value.key is (self.key if everything else key):
            value = value.values
        else:
            value = self._operand("indexing", value)
        self._become(_core.where(where, value, self.values))

    def __bool__(self) -> bool:
        """Raises: the number differs between examples."""
        raise _shapeless("bool")

    def __repr__(self) -> str:
        """What it is a selection of."""
        return f"Selection(from shape {tuple(self.values.shape)}, {self.dtype}; inside vmap)"


def _inside(values: Tensor, mask: Tensor) -> Tensor:
    """The values with a selected one in place of all others, or 1 if there is none: what is defined for the
    selected elements is then defined for all, and no NaN reaches what they are combined with.
    """
    if values.numel() == 0:
        return values
    flat, chosen = values.detach().reshape(-1), mask.reshape(-1)
    first = chosen.to(_core.int32).argmax(0, keepdim=True)
    one = flat.take(first, 0).masked_fill(chosen.any().logical_not(), 1).reshape([1] * values.ndim)
    return _core.where(mask, values, one)


def _along(
    name: str, out: Tensor, dim: Any, keepdim: bool, axis: Any = None, keepdims: bool | None = None
) -> Tensor:
    """A reduced selection, which had one axis: with that of length 1 if it is to be kept."""
    given = one_of(dim, axis)
    for k in given if isinstance(given, (tuple, list)) else () if given is None else (given,):
        if k not in (0, -1):
            raise IndexError(f"{name}: axis {k} is out of range for what a mask selects, which has one axis")
    return out.reshape(1) if (keepdim if keepdims is None else keepdims) else out


def _bound(dtype: Any, sign: int) -> Any:
    """The greatest (1) or least (-1) number of a dtype."""
    if dtype.is_floating_point:
        return sign * math.inf
    if dtype == _core.bool:
        return sign > 0
    from wengert._info import iinfo

    return iinfo(dtype).max if sign > 0 else iinfo(dtype).min


def _shapeless(name: str, what: str = "") -> TypeError:
    """The error for what needs the number of elements."""
    return TypeError(
        f"{name}: inside vmap a mask selects as many elements as each example has, "
        f"{what or 'so there is no shape'}; "
        "reduce them, for example with .sum(), or use where() on all elements"
    )


_POINTWISE = frozenset(row[0] for row in _core.op_rows()) | {
    *(
        "relu",
        "sigmoid",
        "tanh",
        "softplus",
        "gelu",
        "silu",
        "clamp",
        "isnan",
        "isfinite",
        "isinf",
        "float",
        "double",
    ),
    *("long", "int", "logical_not", "neg", "abs"),
}


def _operator(name: str) -> Callable[..., Any]:
    def method(self: Selection, *others: Any) -> Any:
        found = getattr(self.values, name)(*[self._operand(name, other) for other in others])
        return found if found is NotImplemented else self._with(found)

    method.__name__ = name
    method.__doc__ = f"`{name}` of each element."
    return method


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg abs invert and or "
    "xor eq ne lt le gt ge"
).split():
    if hasattr(Tensor, f"__{_name}__"):
        setattr(Selection, f"__{_name}__", _operator(f"__{_name}__"))
Selection.__hash__ = object.__hash__  # type: ignore[method-assign]
