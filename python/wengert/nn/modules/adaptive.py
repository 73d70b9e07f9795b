"""Losses over very many classes, with the weights of their last layer."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import wengert as wg
from wengert._core import Tensor

from .. import functional as F
from ..module import Module
from .affine import Linear
from .container import ModuleList, Sequential

__all__ = ["AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss"]


class AdaptiveLogSoftmaxOutput(NamedTuple):
    """Log-probabilities of the targets, and their negative mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes ordered by frequency: frequent ones directly, the others by clusters,
    whose inner widths shrink (Grave et al. 2017, "Efficient softmax approximation for GPUs").

    Only the rows whose target lies in a cluster are multiplied by its weights. Which they are depends on the
    targets, so `vmap` over targets raises; `log_prob` batches.

    Args:
        in_features: the features of a row.
        n_classes: the number of classes, the most frequent first.
        cutoffs: where the first cluster begins, the second, and so on; increasing, between 1 and
            `n_classes - 1`.
        div_value: how many times narrower each cluster is than the one before, down to a width of 0,
            where all of its classes are alike.
        head_bias: whether the frequent classes have a bias.

    Raises:
        ValueError: for cutoffs out of order or range.

    Example:
        >>> layer = wg.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])
        >>> likely = layer.log_prob(wg.ones(3, 8)).exp()
        >>> tuple(likely.shape), wg.allclose(likely.sum(1), wg.ones(3))
        ((3, 20), True)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes `head` and one pair of linear maps in `tail` for each cluster."""
        super().__init__()
        bounds = [0, *cutoffs, n_classes]
        if len(bounds) < 3 or any(not isinstance(c, int) or a >= c for a, c in pairwise(bounds)):
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: increasing cutoffs between 1 and n_classes - 1 = "
                f"{n_classes - 1} expected, got {list(cutoffs)}"
            )
        self.in_features, self.n_classes, self.div_value = in_features, n_classes, div_value
        self.cutoffs = bounds[1:]
        self.shortlist_size, self.n_clusters = bounds[1], len(bounds) - 2
        place = {"device": device, "dtype": dtype}
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, **place)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            inner = int(in_features // div_value**i)
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, False, **place), Linear(inner, high - low, False, **place)
                )
            )

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        for layer in self.modules():
            if isinstance(layer, Linear):
                layer.reset_parameters()

    def _check(self, input: Tensor, target: Tensor) -> None:
        fits = target.ndim in (0, 1) and tuple(input.shape) == (*target.shape, self.in_features)
        if not fits:
            raise wg.ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: input of shape {tuple(input.shape)} and target of shape "
                f"{tuple(target.shape)}; expected (N, {self.in_features}) and (N,), or both without N"
            )
        if wg.logical_or(target < 0, target >= self.n_classes).any():
            raise IndexError(
                f"AdaptiveLogSoftmaxWithLoss: targets from {int(target.min())} to {int(target.max())}, "
                f"expected 0 to {self.n_classes - 1}"
            )

    def forward(self, input_: Tensor, target_: Tensor) -> AdaptiveLogSoftmaxOutput:
        """Returns the log-probability of each row's target, and the mean loss.

        Args:
            input_: `(N, in_features)` or `(in_features,)`.
            target_: classes `(N,)` or `()`.

        Raises:
            ShapeError: for shapes that do not fit.
            IndexError: for a class out of range.
        """
        input, target = input_, target_
        self._check(input, target)
        x, t = input.reshape(-1, self.in_features), target.reshape(-1)
        # A target in a cluster is first the cluster's entry of the head.
        first = t.clone()
        found = []
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            inside = (t >= low).logical_and(t < high)
            first = first.masked_fill(inside, self.shortlist_size + i)
            rows = inside.nonzero().reshape(-1)
            if rows.shape[0]:
                scores = self.tail[i](x.index_select(0, rows)).log_softmax(-1)
                found.append((rows, scores.gather(1, (t.take(rows, 0) - low).unsqueeze(1)).squeeze(1)))
        out = self.head(x).log_softmax(-1).gather(1, first.unsqueeze(1)).squeeze(1)
        for rows, part in found:
            out = out.index_add(0, rows, part)
        return AdaptiveLogSoftmaxOutput(out.reshape(target.shape), -out.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Returns the log-probabilities of all classes, `(N, in_features)` to `(N, n_classes)`."""
        head = self.head(input).log_softmax(-1)
        parts = [head.narrow(-1, 0, self.shortlist_size)]
        for i, cluster in enumerate(self.tail):
            parts.append(cluster(input).log_softmax(-1) + head.narrow(-1, self.shortlist_size + i, 1))
        return wg.cat(parts, -1)

    def predict(self, input: Tensor) -> Tensor:
        """Returns the most likely class of each row."""
        return self.log_prob(input).argmax(-1)


class LinearCrossEntropyLoss(Module):
    """A linear layer and the cross-entropy of its logits, which are never held all at once.

    Rows are taken `chunk_size` at a time and computed once more in backward; see
    `nn.functional.linear_cross_entropy`.

    Args:
        in_features: the features of a row.
        num_classes: the number of classes.
        out_features: how many choices each row is, `(out...)`; none by default, which is one choice.
        bias: whether the layer `linear` has a bias.
        weight: `(num_classes,)`, a factor per class.
        reduction: "mean", "sum" or "none".
        ignore_index: rows with this target count nothing.
        label_smoothing: the share of the target spread evenly over the classes.
        chunk_size: the most rows whose logits exist at once.

    Example:
        >>> loss = wg.nn.LinearCrossEntropyLoss(8, 1000)
        >>> loss(wg.ones(3, 8), wg.tensor([1, 2, 3])).ndim
        0
    """

    weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        weight: Tensor | None = None,
        reduction: str = "mean",
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        chunk_size: int = 1024,
    ) -> None:
        """Makes the layer `linear`."""
        super().__init__()
        self.in_features, self.num_classes, self.out_features = in_features, num_classes, tuple(out_features)
        self.linear = Linear(in_features, num_classes * math.prod(self.out_features), bias, device, dtype)
        self.register_buffer("weight", weight)
        self.reduction, self.ignore_index = reduction, ignore_index
        self.label_smoothing, self.chunk_size = label_smoothing, chunk_size

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss of rows `input` `(..., in_features)`, and of a `target` of indices `(..., out...)`
        or probabilities `(..., C, out...)`.
        """
        weight, bias = self.linear.weight, self.linear.bias
        shape = (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            weight.reshape(*shape, self.in_features) if self.out_features else weight,
            target,
            linear_bias=bias.reshape(shape) if self.out_features and bias is not None else bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            chunk_size=self.chunk_size,
        )

    def extra_repr(self) -> str:
        """Returns the settings."""
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, chunk_size={self.chunk_size}"
        )
