"""Layers joined for evaluation: what batch normalisation does to a layer's output, done to its weight."""

import copy
from typing import Any, TypeVar

import wengert as wg
from wengert._core import Tensor

from ..module import Module
from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "skip_init",
]
__dir__ = __all__.copy

M = TypeVar("M", bound=Module)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Returns the weight and the bias of a convolution that does what batch normalisation behind it did:
    `w s` and `(b - mean) s + shift` with `s = scale / sqrt(var + eps)`.

    Args:
        conv_w, conv_b: weight and bias of the convolution, which may have none.
        bn_rm, bn_rv, bn_eps: running mean, running variance and `eps` of the norm.
        bn_w, bn_b: scale and shift of the norm; 1 and 0 if None.
        transpose: whether the convolution is transposed, with its outputs along axis 1.

    Example:
        >>> w, mean, var = wg.ones(2, 3, 1), wg.zeros(2), wg.full((2,), 4.0)
        >>> weight, bias = wg.nn.utils.fuse_conv_bn_weights(w, None, mean, var, 0.0, None, None)
        >>> weight[:, 0, 0].tolist(), bias.tolist()
        ([0.5, 0.5], [0.0, 0.0])
    """
    with wg.no_grad():
        scale = (bn_rv + bn_eps).rsqrt() * (1.0 if bn_w is None else bn_w)
        axes = [1] * conv_w.ndim
        axes[1 if transpose else 0] = -1
        bias = ((0.0 if conv_b is None else conv_b) - bn_rm) * scale + (0.0 if bn_b is None else bn_b)
        weight = (conv_w * scale.reshape(axes)).to(conv_w.dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(
        bias.to(conv_w.dtype), conv_w.requires_grad if conv_b is None else conv_b.requires_grad
    )


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Returns weight and bias of a linear layer that does what batch normalisation behind it did.

    Args:
        linear_w, linear_b: weight and bias of the layer, which may have none.
        bn_rm, bn_rv, bn_eps: running mean, running variance and `eps` of the norm.
        bn_w, bn_b: scale and shift of the norm; 1 and 0 if None.

    Example:
        >>> w, mean, var = wg.ones(2, 3), wg.ones(2), wg.full((2,), 4.0)
        >>> weight, bias = wg.nn.utils.fuse_linear_bn_weights(w, None, mean, var, 0.0, None, None)
        >>> weight[0].tolist(), bias.tolist()
        ([0.5, 0.5, 0.5], [-0.5, -0.5])
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(name: str, layer: Any, norm: Any, transpose: bool) -> Any:
    if layer.training or norm.training:
        raise RuntimeError(f"{name}: both layers must be in evaluation; call eval() on the model first")
    if norm.running_mean is None or norm.running_var is None:
        raise ValueError(f"{name}: the norm keeps no running statistics, which its evaluation needs")
    out = copy.deepcopy(layer)
    weight, bias = fuse_conv_bn_weights(
        out.weight, out.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias, transpose
    )
    out.weight = weight
    out.register_parameter("bias", bias)
    return out


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """Returns a convolution that does what `conv` and the batch normalisation `bn` behind it do in
    evaluation.

    Args:
        conv: the convolution, in evaluation; it stays as it is.
        bn: the norm, in evaluation, with running statistics.
        transpose: whether the convolution is transposed.

    Raises:
        RuntimeError: one of them is in training.
        ValueError: the norm has no running statistics.

    Example:
        >>> conv, bn = wg.nn.Conv2d(1, 2, 3).eval(), wg.nn.BatchNorm2d(2).eval()
        >>> x = wg.randn(1, 1, 4, 4)
        >>> wg.allclose(wg.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
        True
    """
    return _fused("fuse_conv_bn_eval", conv, bn, transpose)


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """Returns a linear layer that does what `linear` and the batch normalisation `bn` behind it do in
    evaluation.

    Args:
        linear: the layer, in evaluation; it stays as it is.
        bn: the norm, in evaluation, with running statistics.

    Raises:
        RuntimeError: one of them is in training.
        ValueError: the norm has no running statistics.

    Example:
        >>> linear, bn = wg.nn.Linear(3, 2).eval(), wg.nn.BatchNorm1d(2).eval()
        >>> x = wg.randn(4, 3)
        >>> wg.allclose(wg.nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-6)
        True
    """
    return _fused("fuse_linear_bn_eval", linear, bn, False)


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """Returns a layer whose values do not matter yet. The class draws them all the same, so this saves no
    time.

    Args:
        module_cls: the class of the layer; the further arguments are its own.

    Example:
        >>> wg.nn.utils.skip_init(wg.nn.Linear, 3, 2)
        Linear(in_features=3, out_features=2, bias=True)
    """
    return module_cls(*args, **kwargs)
