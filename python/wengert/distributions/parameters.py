"""Parameters of distributions: brought to one shape, probabilities and logits from each other, computed when
asked."""

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np

import wengert as wg
from wengert._core import Tensor

from .numerics.special import common_dtype

__all__ = [
    "Number",
    "Parameter",
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "log_complement",
    "log_or_infinite",
    "logits_to_probs",
    "one_of",
    "probs_to_logits",
    "times",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

Number: TypeAlias = float | int | bool
#: A parameter: a tensor, an array or a number.
Parameter: TypeAlias = Tensor | np.ndarray[Any, Any] | float

V = TypeVar("V")


class lazy_property(Generic[V]):
    """A property that is computed when it is first read, outside of any `no_grad`, and kept in the instance.

    Example:
        >>> d = wg.distributions.Bernoulli(logits=wg.tensor(0.0))
        >>> "probs" in vars(d), d.probs, "probs" in vars(d)
        (False, tensor(0.5), True)
    """

    def __init__(self, function: Callable[[Any], V]) -> None:
        """Of the function that computes it."""
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy_property[V]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> V: ...

    def __get__(self, instance: object | None, owner: type) -> "lazy_property[V] | V":
        """Returns the value; of the class, the property itself."""
        if instance is None:
            return self
        if self.name not in instance.__dict__:
            with wg.enable_grad():
                instance.__dict__[self.name] = self.function(instance)
        return instance.__dict__[self.name]

    def __set__(self, instance: object, value: V) -> None:
        """Sets the value, which is then not computed."""
        instance.__dict__[self.name] = value


def broadcast_all(*values: Parameter) -> tuple[Tensor, ...]:
    """Returns tensors of one shape and one floating point dtype.

    Numbers take the dtype of the tensors; numbers alone, and integers, get the default dtype.

    Raises:
        TypeError: a value is neither a tensor nor a number.

    Example:
        >>> from wengert.distributions.utils import broadcast_all
        >>> broadcast_all(wg.tensor([1.0, 2.0]), 3)
        (tensor([1., 2.]), tensor([3., 3.]))
    """
    for value in values:
        if not isinstance(value, (Tensor, np.ndarray, int, float, np.number)):
            raise TypeError(
                f"broadcast_all: parameters are tensors or numbers, got {type(value).__name__}; "
                "convert it with wengert.tensor()"
            )
    tensors = [wg.as_tensor(v) for v in values if isinstance(v, (Tensor, np.ndarray))]
    dtype, device = common_dtype(tensors), tensors[0].device if tensors else None
    made = [
        wg.as_tensor(v).to(dtype)
        if isinstance(v, (Tensor, np.ndarray))
        else wg.tensor(float(v), dtype=dtype, device=device)
        for v in values
    ]
    return wg.broadcast_tensors(*made) if len(made) > 1 else tuple(made)


def one_of(who: str, **values: Any) -> str:
    """The name of the one parameter that is given.

    Raises:
        ValueError: several are, or none.
    """
    given = [name for name, value in values.items() if value is not None]
    if len(given) != 1:
        raise ValueError(
            f"{who}: exactly one of {', '.join(values)} is expected, got {', '.join(given) or 'none'}"
        )
    return given[0]


def times(count: Tensor, log: Tensor) -> Tensor:
    """Returns `count * log`, and 0 where `count` is 0 although `log` may be infinite there."""
    return wg.where((count == 0) & log.isinf(), 0.0, log) * count


def log_or_infinite(p: Tensor) -> Tensor:
    """Returns `log(p)`; at 0 minus infinity, but constant: an impossible event has no gradient, rather than
    NaN."""
    return wg.where(p == 0, -wg.inf, p.log())


def log_complement(p: Tensor) -> Tensor:
    """Returns `log(1 - p)`, likewise."""
    return wg.where(p == 1, -wg.inf, (-p).log1p())


def clamp_probs(probs: Tensor) -> Tensor:
    """Returns probabilities that are at least `eps` away from 0 and 1, where their logits are infinite.

    Example:
        >>> from wengert.distributions.utils import clamp_probs
        >>> clamp_probs(wg.tensor([0.0, 0.5]))
        tensor([1.1921e-07, 5.0000e-01])
    """
    eps = wg.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Returns logits of probabilities, infinite for those that are 0 or 1.

    Args:
        is_binary: whether a probability stands for itself, with `log(p / (1 - p))`; else the last axis holds
            those of categories, with `log(p)`.

    Example:
        >>> from wengert.distributions.utils import probs_to_logits
        >>> probs_to_logits(wg.tensor([0.5, 0.75]), is_binary=True)
        tensor([0.0000, 1.0986])
    """
    if is_binary:
        return log_or_infinite(probs) - log_complement(probs)
    return log_or_infinite(probs)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Returns probabilities of logits: the inverse of `probs_to_logits`, or the softmax along the last axis.

    Example:
        >>> from wengert.distributions.utils import logits_to_probs
        >>> logits_to_probs(wg.tensor([0.0, 0.0]))
        tensor([0.5, 0.5])
    """
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def _triangle(size: int, diagonal: int, like: Tensor) -> Tensor:
    """Places of the lower triangle of a matrix, row by row."""
    rows, columns = np.tril_indices(size, diagonal)
    return wg.tensor(rows * size + columns, device=like.device)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Returns the lower triangle of matrices `(..., n, n)` as vectors, row by row.

    Args:
        diag: the last diagonal that belongs to it; 0 is the main one.

    Example:
        >>> from wengert.distributions.utils import tril_matrix_to_vec
        >>> tril_matrix_to_vec(wg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1., 3., 4.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: diag must lie between {-n} and {n - 1}, got {diag}")
    return mat.reshape(*mat.shape[:-2], n * n).index_select(-1, _triangle(n, diag, mat))


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Returns lower triangular matrices of vectors `(..., k)`: the inverse of `tril_matrix_to_vec`.

    Raises:
        ValueError: no triangle has `k` elements.

    Example:
        >>> from wengert.distributions.utils import vec_to_tril_matrix
        >>> vec_to_tril_matrix(wg.tensor([1.0, 3.0, 4.0]))
        tensor([[1., 0.],
                [3., 4.]])
    """
    k = vec.shape[-1]
    n = round((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * k + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    if len(np.tril_indices(n, diag)[0]) != k:
        raise ValueError(f"vec_to_tril_matrix: no lower triangle up to diagonal {diag} has {k} elements")
    places = _triangle(n, diag, vec)
    flat = wg.zeros(*vec.shape[:-1], n * n, dtype=vec.dtype, device=vec.device)
    return flat.index_copy(-1, places, vec).reshape(*vec.shape[:-1], n, n)
