"""Normalisation of channels, by the batch or by each image."""

import sys
from typing import Any

import wengert as wg
from wengert._caller import warn
from wengert._core import Tensor
from wengert._numbers import check_integers

from .. import functional as F
from ..module import Module
from .normalization import _Affine

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "SyncBatchNorm",
]


class _Channels(_Affine):
    """Channels with a weight and a bias each, and running statistics."""

    _ranks: tuple[int, ...] = ()
    #: Whether the layer needs to know them where it has no parameters and statistics.
    _counts_channels = True
    # Versions before the second did not count batches.
    _version = 2
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        """`momentum` is the weight of a batch in the running statistics; None averages all batches evenly.

        With `affine`, channels have a weight, and a bias unless `bias` is False.
        """
        super().__init__()
        check_integers(type(self).__name__, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        tracked = track_running_stats
        shape, settings = (num_features,), {"device": device, "dtype": dtype}
        self.register_buffer("running_mean", wg.zeros(shape, **settings) if tracked else None)
        self.register_buffer("running_var", wg.ones(shape, **settings) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", wg.tensor(0, dtype=wg.int64, device="cpu") if tracked else None
        )
        self._make(shape, affine, affine and bias, device, dtype)

    def reset_running_stats(self) -> None:
        """Resets to mean 0, variance 1 and no batches."""
        with wg.no_grad():
            if self.running_mean is not None and self.running_var is not None:
                self.running_mean.fill_(0.0)
                self.running_var.fill_(1.0)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.fill_(0)

    def _check(self, input: Tensor, axis: int) -> None:
        """Raises unless the input has channels there, as many as the layer."""
        if input.ndim not in self._ranks:
            expected = " or ".join(str(n) for n in self._ranks)
            raise wg.ShapeError(
                f"{type(self).__name__}: input with {expected} axes expected, got shape {tuple(input.shape)}"
            )
        if input.shape[axis] != self.num_features:
            text = (
                f"{type(self).__name__}: {self.num_features} channels (axis {axis}) expected, got input of "
                f"shape {tuple(input.shape)}"
            )
            if not self._counts_channels and self.weight is None and self.running_mean is None:
                warn(f"{text}; the number is not used without affine=True")
                return
            raise wg.ShapeError(text)

    def _weight_of_batch(self) -> Any:
        """Counts one more batch in training, and returns its weight in the running statistics."""
        momentum: Any = self.momentum if self.momentum is not None else 0.0
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            with wg.no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                # No number of Python's, for which `jit` would make another program.
                momentum = 1.0 / self.num_batches_tracked.double()
        return momentum

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        """As all modules; a state dict of an older version, or of none, may have no number of batches."""
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.num_batches_tracked is not None:
            state_dict.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked.detach())
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        """Settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Channels):
    """Normalises channels by the batch in training, by running statistics otherwise (Ioffe and Szegedy
    2015)."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        self._check(input, 1)
        # Without tracking, training leaves the statistics that there are alone.
        tracked = self.track_running_stats or not self.training
        return F.batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            self._weight_of_batch(),
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of `(n, num_features)` or `(n, num_features, length)` (Ioffe and Szegedy 2015).

    Each channel becomes `(x - mean) / sqrt(var + eps) * weight + bias`: with the mean and variance of the
    batch in training, in evaluation with the buffers `running_mean` and `running_var` `(num_features,)`.

    Args:
        num_features: the number of channels (axis 1).
        eps: added to the variance, so that nothing is divided by 0.
        momentum: the weight of a batch in the running statistics; None averages all batches evenly.
        affine: whether there are `weight` and `bias` `(num_features,)`, learnt, which start at 1 and 0.
        track_running_stats: whether there are running statistics; without them those of the batch are always
            used.
        bias: False leaves out that parameter.

    Example:
        >>> wg.nn.BatchNorm1d(1)(wg.tensor([[1.0], [3.0]])).detach()
        tensor([[-1.],
                [ 1.]])
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of `(n, num_features, height, width)`.

    Arguments as of `BatchNorm1d`: `num_features`, `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.BatchNorm2d(3)(wg.randn(4, 3, 8, 8)).shape
        (4, 3, 8, 8)
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of `(n, num_features, depth, height, width)`.

    Arguments as of `BatchNorm1d`: `num_features`, `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.BatchNorm3d(3)(wg.randn(4, 3, 2, 8, 8)).shape
        (4, 3, 2, 8, 8)
    """

    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation by the batches of all ranks together, where a program has several
    (`wengert.distributed`); elsewhere as `BatchNorm1d` to `BatchNorm3d`. Inputs have 2 to 5 axes.

    Args:
        num_features: the number of channels, along axis 1.
        eps: added to the variance.
        momentum: the weight of a batch in the running statistics; None averages all batches evenly.
        affine: whether channels have a weight and a bias.
        track_running_stats: whether statistics are kept for evaluation.
        process_group: the ranks; None for all that the program has started.
        device, dtype: where the parameters lie, and what they are.

    Example:
        >>> wg.nn.SyncBatchNorm(3)(wg.randn(4, 3, 8)).shape
        (4, 3, 8)
    """

    _ranks = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """As `BatchNorm1d`."""
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        if process_group is not None:
            from wengert.distributed._group import resolve_group

            resolve_group("SyncBatchNorm", process_group)
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        # A layer starts no MPI: where nothing has, there is one rank.
        ranks = sys.modules.get("wengert.distributed._group")
        group = self.process_group or (ranks.started_world() if ranks else None)
        in_training = self.training or self.running_mean is None
        if group is None or group.size == 1 or not in_training:
            return super().forward(input)
        from wengert.distributed._batch_norm import batch_norm

        self._check(input, 1)
        statistics = (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
        momentum = float(self._weight_of_batch())
        return batch_norm(input, *statistics, self.weight, self.bias, momentum, self.eps, group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Returns `module` with a `SyncBatchNorm` in place of each `BatchNorm1d` to `BatchNorm3d`, which has
        their parameters and statistics.

        Args:
            module: a model; its layers are replaced.
            process_group: the ranks of the layers; None for all.
        """
        found = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            found = cls.__new__(cls)
            found.__dict__.update(module.__dict__)
            found.__dict__["process_group"] = process_group
        for name, child in list(module.named_children()):
            setattr(found, name, cls.convert_sync_batchnorm(child, process_group))
        return found


class _InstanceNorm(_Channels):
    """Normalises the channels of each image by themselves (Ulyanov et al. 2016)."""

    _counts_channels = False

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        """With `track_running_stats` running statistics are kept, and used outside of training."""
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input, a batch of images or one."""
        single = input.ndim == min(self._ranks)
        self._check(input, 0 if single else 1)
        out = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            # Batches count only where the number of them is used,
            # so that state dicts are PyTorch's otherwise.
            self._weight_of_batch() if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if single else out


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of `(n, num_features, length)` or `(num_features, length)` (Ulyanov et al.
    2016).

    Each channel of each image becomes `(x - mean) / sqrt(var + eps)` with its own mean and variance over the
    spatial axes.

    Args:
        num_features: the number of channels; not looked at without `affine` and `track_running_stats`.
        eps: added to the variance, so that nothing is divided by 0.
        momentum: the weight of a batch in the running statistics; None averages all batches evenly.
        affine: whether a learnt `weight` multiplies and `bias` is added, `(num_features,)`, starting at 1 and
            0.
        track_running_stats: keep running statistics in training, and use them in evaluation in place of each
            image's own.
        bias: False leaves out that parameter.

    Example:
        >>> wg.nn.InstanceNorm1d(3)(wg.randn(2, 3, 5)).shape
        (2, 3, 5)
    """

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of `(n, num_features, height, width)` or `(num_features, height, width)`.

    Arguments as of `InstanceNorm1d`: `num_features`, `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.InstanceNorm2d(3)(wg.randn(2, 3, 5, 5)).shape
        (2, 3, 5, 5)
    """

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of `(n, num_features, depth, height, width)`, or of one image without n.

    Arguments as of `InstanceNorm1d`: `num_features`, `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.InstanceNorm3d(3)(wg.randn(2, 3, 2, 5, 5)).shape
        (2, 3, 2, 5, 5)
    """

    _ranks = (4, 5)
