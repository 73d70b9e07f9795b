"""Linear maps, embeddings, dropout and reshaping layers."""

import math
from typing import Any

import wengert as wg
from wengert._core import Tensor, _linear
from wengert._numbers import check_integers, check_probability

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter

__all__ = ["Bilinear", "Dropout", "Embedding", "Flatten", "Identity", "Linear", "Unflatten"]


class Identity(Module):
    """Returns its input; takes any arguments (`args`, `kwargs`) and ignores them.

    Example:
        >>> wg.nn.Identity()(wg.tensor([1.0]))
        tensor([1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Ignores everything."""
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Returns the input."""
        return input


class Linear(Module):
    """Affine map of the last axis, `x W' + b`: `(..., in_features)` to `(..., out_features)`.

    The parameters `weight` `(out_features, in_features)` and `bias` `(out_features,)`, which `bias=False`
    leaves out, start uniform in `±1 / sqrt(in_features)`, as in PyTorch. As in every layer, `device` says
    where parameters lie (None: the CPU) and `dtype` what they are (None: float32).

    Example:
        >>> wg.nn.Linear(3, 4)(wg.ones(2, 3)).shape
        (2, 4)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        """Makes `weight` of shape (out, in) and, with `bias`, one of shape (out,)."""
        super().__init__()
        check_integers("Linear", in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(wg.empty((out_features, in_features), device=device, dtype=dtype))
        values = Parameter(wg.empty((out_features,), device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5.0))
        if self.bias is not None:
            bound = 1.0 / math.sqrt(self.in_features) if self.in_features > 0 else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the affine map."""
        return _linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class Bilinear(Module):
    """`x1' W_k x2 + b_k` for each output k: `(..., in1_features)` and `(..., in2_features)` to
    `(..., out_features)`.

    The parameters `weight` `(out_features, in1_features, in2_features)` and `bias` `(out_features,)`, which
    `bias=False` leaves out, start uniform in `±1 / sqrt(in1_features)`.

    Example:
        >>> wg.nn.Bilinear(2, 3, 4)(wg.ones(5, 2), wg.ones(5, 3)).shape
        (5, 4)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes `weight` of shape (out, in1, in2)."""
        super().__init__()
        check_integers(
            "Bilinear", in1_features=in1_features, in2_features=in2_features, out_features=out_features
        )
        if in1_features < 1:
            raise ValueError(f"Bilinear: in1_features must be positive, got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(
            wg.empty((out_features, in1_features, in2_features), device=device, dtype=dtype)
        )
        values = Parameter(wg.empty((out_features,), device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        bound = 1.0 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Returns the bilinear map of `input1` `(..., in1_features)` and `input2` `(..., in2_features)`."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


def table(
    name: str, shape: tuple[int, int], values: Tensor | None, freeze: bool, device: Any, dtype: Any
) -> Parameter:
    """The weight of a table of rows: given values, or memory for new ones."""
    if values is None:
        return Parameter(wg.empty(shape, device=device, dtype=dtype), requires_grad=not freeze)
    if tuple(values.shape) != shape:
        raise wg.ShapeError(f"{name}: values of shape {tuple(values.shape)}, expected {shape}")
    return Parameter(values, requires_grad=not freeze)


def shown_settings(layer: Any) -> str:
    """What differs from the defaults of a table of rows."""
    defaults = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False}
    return "".join(
        f", {name}={getattr(layer, name)}"
        for name, default in defaults.items()
        if getattr(layer, name) != default
    )


class Embedding(Module):
    """A table of vectors, looked up by integers: indices of any shape `(...)` give `(..., embedding_dim)`.

    The parameter `weight` `(num_embeddings, embedding_dim)` starts as N(0, 1).

    Args:
        num_embeddings: the number of rows; indices are from 0 to one less.
        embedding_dim: the features of a row.
        padding_idx: a row that starts as zeros and gets no gradient; a negative one counts from the end.
        max_norm: rows that are looked up and longer are scaled to this norm first, in place; None leaves all
            as they are.
        norm_type: the exponent p of that norm.
        scale_grad_by_freq: divide each row's gradient by how often the row is looked up in a call.
        sparse: only False, gradients are dense.
        _weight: the values to begin with, in place of random ones.
        _freeze: whether `weight` is not trained.

    Example:
        >>> wg.nn.Embedding(10, 3)(wg.tensor([[1, 2], [4, 5]])).shape
        (2, 2, 3)
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes `weight` of shape (num_embeddings, embedding_dim), or takes `_weight`, untrained with
        `_freeze`."""
        super().__init__()
        check_integers("Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if padding_idx is not None:
            check_integers("Embedding", padding_idx=padding_idx)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx {padding_idx} is outside the {num_embeddings} rows")
        if padding_idx is not None and padding_idx < 0:
            padding_idx += num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.weight = table("Embedding", (num_embeddings, embedding_dim), _weight, _freeze, device, dtype)
        if _weight is None:
            self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> "Embedding":
        """Makes a layer around given values `embeddings` of shape (rows, features); not trained if `freeze`.
        Other arguments as of the class.
        """
        values = wg.as_tensor(embeddings)
        settings = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(values.shape[0], values.shape[1], *settings, values, freeze)

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with wg.no_grad():
                self.weight[self.padding_idx] = 0.0

    def forward(self, input: Tensor) -> Tensor:
        """Returns the rows."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """Returns the sizes, and what differs from the defaults."""
        return f"{self.num_embeddings}, {self.embedding_dim}" + shown_settings(self)


class Dropout(Module):
    """In training, zeroes each element with probability `p` and scales the others by `1 / (1 - p)`.

    In evaluation it returns its input. With `inplace` the result is written into the input.

    Example:
        >>> wg.nn.Dropout(0.5).eval()(wg.ones(3))
        tensor([1., 1., 1.])
    """

    _shown = ("p", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        """Takes the probability of zero."""
        super().__init__()
        check_probability(type(self).__name__, p)
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Returns the thinned input."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Flatten(Module):
    """Joins the axes `start_dim` to `end_dim`, both included, into one; by default all but the first.

    Example:
        >>> wg.nn.Flatten()(wg.ones(2, 3, 4)).shape
        (2, 12)
    """

    _shown = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        """The range of axes, both ends included."""
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Returns the same elements, fewer axes."""
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """Splits the axis `dim` into axes of the lengths `unflattened_size`, of which one may be -1: what is
    left.

    Example:
        >>> wg.nn.Unflatten(1, (2, 3))(wg.ones(4, 6)).shape
        (4, 2, 3)
    """

    _shown = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        """Takes the axis and the lengths of its parts."""
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the same elements, more axes."""
        dim = self.dim if self.dim >= 0 else self.dim + input.ndim
        shape = tuple(input.shape)
        return input.reshape(*shape[:dim], *self.unflattened_size, *shape[dim + 1 :])
