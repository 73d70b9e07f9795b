"""Losses as layers: one row each, over the functions of `functional/loss.py`."""

from typing import Any

from wengert._core import Tensor

from .. import functional as F
from ..functional.reduction import older_reduction
from ..module import Module

_WITH_POSITIVE_MARGIN = (F.triplet_margin_loss, F.triplet_margin_with_distance_loss)


class _Loss(Module):
    """A loss with settings. A subclass names the function, its tensor settings (buffers) and its plain
    settings.
    """

    _function: Any
    _tensors: tuple[str, ...] = ()
    _settings: dict[str, Any] = {}  # noqa: RUF012 (one table per class, never written)
    _order: tuple[str, ...] = ()

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
        """The loss of the inputs, by position or by the names that they have in the function."""
        own = self.__dict__
        return type(self)._function(
            *inputs, **named, **{name: own[name] for name in [*self._tensors, *self._settings]}
        )


def _layer(name: str, function: Any, tensors: tuple[str, ...] = (), order: str = "", **settings: Any) -> Any:
    doc = f"Layer of `nn.functional.{function.__name__}`. {(function.__doc__ or '').strip().splitlines()[0]}"
    members = {
        "__doc__": doc,
        "__module__": __name__,
        "_function": staticmethod(function),
        "_tensors": tensors,
        "_order": tuple(order.split()),
        "_settings": {**settings} if "reduction" in settings else {**settings, "reduction": "mean"},
    }
    return type(name, (_Loss,), members)


CrossEntropyLoss = _layer(
    "CrossEntropyLoss", F.cross_entropy, ("weight",), ignore_index=-100, reduction="mean", label_smoothing=0.0
)
NLLLoss = _layer("NLLLoss", F.nll_loss, ("weight",), ignore_index=-100)
BCELoss = _layer("BCELoss", F.binary_cross_entropy, ("weight",))
BCEWithLogitsLoss = _layer(
    "BCEWithLogitsLoss",
    F.binary_cross_entropy_with_logits,
    ("weight", "pos_weight"),
    "weight reduction pos_weight",
)
KLDivLoss = _layer("KLDivLoss", F.kl_div, reduction="mean", log_target=False)
MSELoss = _layer("MSELoss", F.mse_loss)
L1Loss = _layer("L1Loss", F.l1_loss)
SmoothL1Loss = _layer("SmoothL1Loss", F.smooth_l1_loss, reduction="mean", beta=1.0)
HuberLoss = _layer("HuberLoss", F.huber_loss, reduction="mean", delta=1.0)
PoissonNLLLoss = _layer("PoissonNLLLoss", F.poisson_nll_loss, log_input=True, full=False, eps=1e-8)
GaussianNLLLoss = _layer("GaussianNLLLoss", F.gaussian_nll_loss, full=False, eps=1e-6)
HingeEmbeddingLoss = _layer("HingeEmbeddingLoss", F.hinge_embedding_loss, margin=1.0)
MarginRankingLoss = _layer("MarginRankingLoss", F.margin_ranking_loss, margin=0.0)
SoftMarginLoss = _layer("SoftMarginLoss", F.soft_margin_loss)
TripletMarginLoss = _layer(
    "TripletMarginLoss", F.triplet_margin_loss, margin=1.0, p=2.0, eps=1e-6, swap=False
)
CosineEmbeddingLoss = _layer("CosineEmbeddingLoss", F.cosine_embedding_loss, margin=0.0)
MultiMarginLoss = _layer(
    "MultiMarginLoss", F.multi_margin_loss, ("weight",), "p margin weight reduction", p=1, margin=1.0
)
MultiLabelMarginLoss = _layer("MultiLabelMarginLoss", F.multilabel_margin_loss)
MultiLabelSoftMarginLoss = _layer("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, ("weight",))
TripletMarginWithDistanceLoss = _layer(
    "TripletMarginWithDistanceLoss",
    F.triplet_margin_with_distance_loss,
    distance_function=None,
    margin=1.0,
    swap=False,
)
CTCLoss = _layer("CTCLoss", F.ctc_loss, blank=0, reduction="mean", zero_infinity=False)
