"""Losses as layers: one row each, over the functions of `functional/loss.py`."""

import inspect
from collections.abc import Callable
from typing import Any

from wengert._core import Tensor

from .. import functional as F
from ..functional.reduction import older_reduction
from ..module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "CTCLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MarginRankingLoss",
    "MSELoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]

_WITH_POSITIVE_MARGIN = (F.triplet_margin_loss, F.triplet_margin_with_distance_loss)


class _Loss(Module):
    """A loss with settings. A subclass names the function, its tensor settings (buffers) and its plain
    settings.
    """

    _function: Any = None
    _tensors: tuple[str, ...] = ()
    _settings: dict[str, Any] = {"reduction": "mean"}  # noqa: RUF012 (one table per class, never written)
    _order: tuple[str, ...] = ()
    __signature__: inspect.Signature

    def __init_subclass__(
        cls,
        function: Callable[..., Tensor] | None = None,
        tensors: str = "",
        order: str = "",
        **settings: Any,
    ) -> None:
        """Sets the function, its tensor settings and its plain ones, and their signature, in an `order` of
        their own if there is one; further subclasses inherit all of it.
        """
        super().__init_subclass__()
        if function is None:
            return
        cls._function, cls._tensors, cls._order = (
            staticmethod(function),
            tuple(tensors.split()),
            tuple(order.split()),
        )
        cls._settings = settings if "reduction" in settings else {**settings, "reduction": "mean"}
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        cls.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, kind, default=cls._settings.get(name))
                for name in cls._order or (*cls._tensors, *cls._settings)
            ]
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes tensor settings first, then plain settings, by position or keyword;
        some have an order of their own.

        `size_average` and `reduce` are older words for `reduction`.
        """
        super().__init__()
        older = {name: kwargs.pop(name, None) for name in ("size_average", "reduce")}
        if any(value is not None for value in older.values()):
            kwargs["reduction"] = older_reduction(type(self).__name__, **older)
        names = list(self._order or (*self._tensors, *self._settings))
        unknown = set(kwargs) - set(names)
        if len(args) > len(names) or unknown:
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}; got {args} {kwargs}")
        twice = set(names[: len(args)]) & set(kwargs)
        if twice:
            raise TypeError(f"{type(self).__name__}: {sorted(twice)[0]} is given twice")
        given = {**dict(zip(names, args)), **kwargs}
        for name in self._tensors:
            self.register_buffer(name, given.pop(name, None))
        self.__dict__.update({**self._settings, **given})
        if "margin" in given and self._function in _WITH_POSITIVE_MARGIN and not given["margin"] > 0:
            raise ValueError(f"{type(self).__name__}: margin must be positive, got {given['margin']}")
        if self._function is F.multi_margin_loss and given.get("p", 1) not in (1, 2):
            raise ValueError(f"{type(self).__name__}: p must be 1 or 2, got {given['p']}")
        if isinstance(given.get("ignore_index"), bool):
            raise TypeError(
                f"{type(self).__name__}: ignore_index is a class, got {given['ignore_index']}; size_average "
                "is a keyword"
            )
        if isinstance(given.get("delta"), complex):
            raise TypeError(f"{type(self).__name__}: delta is a real number, got {given['delta']}")
        allowed = ("mean", "sum", "none", "batchmean")[: 4 if self._function is F.kl_div else 3]
        if self.__dict__["reduction"] not in allowed:
            raise ValueError(
                f"reduction must be one of {', '.join(allowed)}, got {self.__dict__['reduction']!r}"
            )

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """Returns the loss of the inputs, by position or by the names that they have in the function."""
        own = self.__dict__
        return type(self)._function(
            *inputs, **named, **{name: own[name] for name in [*self._tensors, *self._settings]}
        )


class _WeightedLoss(_Loss):
    """A loss with a weight of each class; base of losses of a program's own, too."""

    _tensors = ("weight",)


class CrossEntropyLoss(
    _WeightedLoss,
    function=F.cross_entropy,
    tensors="weight",
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    """Layer of `nn.functional.cross_entropy`: `logsumexp(x) - x[target]` of logits; its gradient is softmax
    minus target.

    Called with logits `(N, C)`, `(C,)` or `(N, C, d...)`, and class indices of that shape without C or
    probabilities of that shape.

    Args:
        weight: `(C,)`, a factor per class; the mean over class indices is divided by the sum of their
            factors.
        ignore_index: targets of this index count nothing, neither in the sum nor in the mean.
        reduction: "mean" of the losses, "sum", or "none": one for each target.
        label_smoothing: the share of the target, from 0 to 1, that is spread evenly over the classes.

    Example:
        >>> wg.nn.CrossEntropyLoss()(wg.zeros(2, 4), wg.tensor([0, 3]))
        tensor(1.3863)
    """


class NLLLoss(_WeightedLoss, function=F.nll_loss, tensors="weight", ignore_index=-100):
    """Layer of `nn.functional.nll_loss`: `-x[target]` of log-probabilities `(N, C)`, `(C,)` or
    `(N, C, d...)`.

    Targets are class indices of that shape without C; `weight`, `ignore_index` and `reduction` as of
    `CrossEntropyLoss`.

    Example:
        >>> wg.nn.NLLLoss()(wg.log(wg.tensor([[0.5, 0.5]])), wg.tensor([1]))
        tensor(0.6931)
    """


class BCELoss(_WeightedLoss, function=F.binary_cross_entropy, tensors="weight"):
    """Layer of `nn.functional.binary_cross_entropy`: `-t log p - (1 - t) log(1 - p)` of probabilities p and
    targets t.

    Both have one shape and lie between 0 and 1. `weight` is a factor that broadcasts to it; `reduction` is
    the "mean" over all elements, their "sum", or "none".

    Example:
        >>> wg.nn.BCELoss()(wg.tensor([0.9, 0.1]), wg.tensor([1.0, 0.0]))
        tensor(0.1054)
    """


class BCEWithLogitsLoss(
    _Loss,
    function=F.binary_cross_entropy_with_logits,
    tensors="weight pos_weight",
    order="weight reduction pos_weight",
):
    """Layer of `nn.functional.binary_cross_entropy_with_logits`: `max(x, 0) - x t + log(1 + exp(-|x|))` of
    logits x.

    `BCELoss` of `sigmoid(x)`, with its `weight` and `reduction`. `pos_weight`, which broadcasts to x,
    multiplies the part of positive targets, `-t log(sigmoid(x))`: above 1 it raises recall.

    Example:
        >>> wg.nn.BCEWithLogitsLoss()(wg.tensor([0.0, 2.0]), wg.tensor([1.0, 1.0]))
        tensor(0.41)
    """


class KLDivLoss(_Loss, function=F.kl_div, reduction="mean", log_target=False):
    """Layer of `nn.functional.kl_div`: `t (log t - x)` of log-probabilities x and probabilities t.

    `reduction` is the "mean" over all elements, their "sum", "none", or "batchmean", the sum divided by the
    length of the first axis, as in mathematics. With `log_target` the targets are log-probabilities as well.

    Example:
        >>> wg.nn.KLDivLoss(reduction="sum")(wg.log(wg.tensor([0.5, 0.5])), wg.tensor([1.0, 0.0]))
        tensor(0.6931)
    """


class MSELoss(_Loss, function=F.mse_loss):
    """Layer of `nn.functional.mse_loss`: `(x - t)^2`; `reduction` is its "mean", "sum", or "none".

    Example:
        >>> wg.nn.MSELoss()(wg.tensor([1.0, 2.0]), wg.tensor([2.0, 4.0]))
        tensor(2.5)
    """


class L1Loss(_Loss, function=F.l1_loss):
    """Layer of `nn.functional.l1_loss`: `|x - t|`; `reduction` is its "mean", "sum", or "none".

    Its derivative at 0 is 0.

    Example:
        >>> wg.nn.L1Loss()(wg.tensor([1.0, 2.0]), wg.tensor([2.0, 4.0]))
        tensor(1.5)
    """


class SmoothL1Loss(_Loss, function=F.smooth_l1_loss, reduction="mean", beta=1.0):
    """Layer of `nn.functional.smooth_l1_loss`: with `d = x - t`, `d^2 / (2 beta)` where `|d| < beta`, else
    `|d| - beta / 2`.

    `reduction` is its "mean", "sum", or "none". The Huber loss divided by `beta`; the absolute error for
    `beta = 0`.

    Example:
        >>> wg.nn.SmoothL1Loss()(wg.tensor([0.0, 0.0]), wg.tensor([0.5, 3.0]))
        tensor(1.3125)
    """


class HuberLoss(_Loss, function=F.huber_loss, reduction="mean", delta=1.0):
    """Layer of `nn.functional.huber_loss`; `reduction` is its "mean", "sum", or "none".

    With `d = x - t`: `d^2 / 2` where `|d| <= delta`, else `delta (|d| - delta / 2)` (Huber 1964).

    Example:
        >>> wg.nn.HuberLoss()(wg.tensor([0.0, 0.0]), wg.tensor([0.5, 3.0]))
        tensor(1.3125)
    """


class PoissonNLLLoss(_Loss, function=F.poisson_nll_loss, log_input=True, full=False, eps=1e-8):
    """Layer of `nn.functional.poisson_nll_loss`: `exp(x) - t x` of log-rates x and counts t.

    Without `log_input` x is the rate: `x - t log(x + eps)`. `full` adds Stirling's
    `t log t - t + log(2 pi t) / 2` for `t > 1`. `reduction` is the "mean", "sum", or "none".

    Example:
        >>> wg.nn.PoissonNLLLoss()(wg.tensor([0.0]), wg.tensor([2.0]))
        tensor(1.)
    """


class GaussianNLLLoss(_Loss, function=F.gaussian_nll_loss, full=False, eps=1e-6):
    """Layer of `nn.functional.gaussian_nll_loss`: `(log var + (x - t)^2 / var) / 2`, with `var` at least
    `eps`.

    Called with means x, targets t and variances `var`. `full` adds `log(2 pi) / 2`; `reduction` is the
    "mean", "sum", or "none".

    Example:
        >>> wg.nn.GaussianNLLLoss()(wg.tensor([1.0]), wg.tensor([2.0]), wg.tensor([1.0]))
        tensor(0.5)
    """


class HingeEmbeddingLoss(_Loss, function=F.hinge_embedding_loss, margin=1.0):
    """Layer of `nn.functional.hinge_embedding_loss`; `reduction` is its "mean", "sum", or "none".

    `x` where the target is 1, `max(0, margin - x)` where it is -1.

    Example:
        >>> wg.nn.HingeEmbeddingLoss()(wg.tensor([0.5, 0.25]), wg.tensor([1.0, -1.0]))
        tensor(0.625)
    """


class MarginRankingLoss(_Loss, function=F.margin_ranking_loss, margin=0.0):
    """Layer of `nn.functional.margin_ranking_loss`: `max(0, margin - t (x1 - x2))` for targets t of 1 and -1.

    Target 1 says that x1 ranks higher. `reduction` is the "mean", "sum", or "none".

    Example:
        >>> wg.nn.MarginRankingLoss()(wg.tensor([1.0]), wg.tensor([3.0]), wg.tensor([1.0]))
        tensor(2.)
    """


class SoftMarginLoss(_Loss, function=F.soft_margin_loss):
    """Layer of `nn.functional.soft_margin_loss`: `log(1 + exp(-t x))` for targets t of 1 and -1.

    `reduction` is its "mean", "sum", or "none".

    Example:
        >>> wg.nn.SoftMarginLoss()(wg.tensor([0.0]), wg.tensor([1.0]))
        tensor(0.6931)
    """


class TripletMarginLoss(_Loss, function=F.triplet_margin_loss, margin=1.0, p=2.0, eps=1e-6, swap=False):
    """Layer of `nn.functional.triplet_margin_loss`: `max(0, d(a, p) - d(a, n) + margin)` over the last axis.

    Called with anchors a, positives p and negatives n. The distance d is the `p`-norm of differences, to
    which `eps` is added. With `swap`, `d(p, n)` stands for `d(a, n)` where it is smaller. `reduction` is the
    "mean", "sum", or "none".

    Example:
        >>> wg.nn.TripletMarginLoss()(wg.zeros(1, 2), wg.zeros(1, 2), wg.ones(1, 2))
        tensor(0.)
    """


class CosineEmbeddingLoss(_Loss, function=F.cosine_embedding_loss, margin=0.0):
    """Layer of `nn.functional.cosine_embedding_loss`; `reduction` is its "mean", "sum", or "none".

    `1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1: inputs `(N, D)` twice and `(N,)`,
    or without N.

    Example:
        >>> wg.nn.CosineEmbeddingLoss()(wg.ones(1, 2), wg.ones(1, 2), wg.tensor([-1.0]))
        tensor(1.)
    """


class MultiMarginLoss(
    _WeightedLoss,
    function=F.multi_margin_loss,
    tensors="weight",
    order="p margin weight reduction",
    p=1,
    margin=1.0,
):
    """Layer of `nn.functional.multi_margin_loss`: scores `(N, C)` and class indices `(N,)`, or without N.

    `sum(max(0, margin - x[target] + x[i]) ** p) / C` over the other classes i; `p` is 1 or 2. `weight` `(C,)`
    is a factor per class of the target; `reduction` is the "mean", "sum", or "none".

    Example:
        >>> wg.nn.MultiMarginLoss()(wg.tensor([[0.1, 0.9]]), wg.tensor([1]))
        tensor(0.1)
    """


class MultiLabelMarginLoss(_Loss, function=F.multilabel_margin_loss):
    """Layer of `nn.functional.multilabel_margin_loss`: scores and label indices, both `(N, C)` or `(C,)`.

    `sum(max(0, 1 - x[j] + x[i])) / C` over labels `j`, which end at the first -1, and other classes `i`.
    `reduction` is the "mean", "sum", or "none".

    Example:
        >>> wg.nn.MultiLabelMarginLoss()(wg.tensor([0.1, 0.9]), wg.tensor([1, -1]))
        tensor(0.1)
    """


class MultiLabelSoftMarginLoss(_WeightedLoss, function=F.multilabel_soft_margin_loss, tensors="weight"):
    """Layer of `nn.functional.multilabel_soft_margin_loss`: logits and targets from 0 to 1, both `(..., C)`.

    The mean over classes of binary cross-entropies of `sigmoid(x)`, each times its `weight` `(C,)`;
    `reduction` of these means is "mean", "sum", or "none".

    Example:
        >>> wg.nn.MultiLabelSoftMarginLoss()(wg.zeros(1, 2), wg.tensor([[1.0, 0.0]]))
        tensor(0.6931)
    """


class TripletMarginWithDistanceLoss(
    _Loss, function=F.triplet_margin_with_distance_loss, distance_function=None, margin=1.0, swap=False
):
    """Layer of `nn.functional.triplet_margin_with_distance_loss`: `TripletMarginLoss` with any distance.

    `distance_function` takes two tensors and returns their distances, Euclidean ones if None; `margin`,
    `swap` and `reduction` as there.

    Example:
        >>> wg.nn.TripletMarginWithDistanceLoss()(wg.zeros(1, 2), wg.zeros(1, 2), wg.zeros(1, 2))
        tensor(1.)
    """


class CTCLoss(_Loss, function=F.ctc_loss, blank=0, reduction="mean", zero_infinity=False):
    """Layer of `nn.functional.ctc_loss`: `-log p(targets)`, summed over all alignments with repeated labels
    and blanks.

    Called with `log_probs` `(T, N, C)`, `targets` `(N, S)`, and lengths of both, as that function is. `blank`
    is the class of the blank. `reduction` is "mean", of losses divided by their numbers of labels, "sum", or
    "none". `zero_infinity` makes infinite losses, of labellings that do not fit into the steps, and their
    gradients zero.

    Example:
        >>> log_probs = wg.log_softmax(wg.zeros(3, 1, 2), dim=2)
        >>> wg.nn.CTCLoss()(log_probs, wg.tensor([[1]]), wg.tensor([3]), wg.tensor([1]))
        tensor(0.2877)
    """
