"""wengert: a tensor library built for differentiation.

PyTorch's eager tape and JAX's composable transforms in one object, a Rust core behind this package, every GPU through
WGSL. The names are PyTorch's; the transforms' are JAX's; `axis` and `keepdims` are accepted beside `dim` and `keepdim`.

Example:
    >>> import wengert as wg
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    >>> wg.vmap(wg.grad(lambda x: x.sin()))(wg.zeros(3))
    tensor([1., 1., 1.])
"""

import importlib
from math import e, inf, nan, pi
from typing import Any

from wengert import _array_api, _core, autograd, gpu, linalg, memory, tree
from wengert._core import *
from wengert._core import (
    AnomalyError,
    CheckpointError,
    DeviceError,
    LinAlgError,
    ShapeError,
    Tensor,
    __version__,
    bfloat16,
    bool,
    complex64,
    complex128,
    device,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from wengert._functions import *
from wengert._info import finfo, iinfo
from wengert._kinds import *
from wengert.autograd.autocast import autocast
from wengert.autograd.ieee import ieee_gradients, is_ieee_gradients_enabled
from wengert.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from wengert.custom import custom_jvp, custom_vjp
from wengert.serialization import load, save
from wengert.transforms import (
    all_gather,
    axis_index,
    axis_size,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    pmax,
    pmean,
    pmin,
    psum,
    value_and_grad,
    vjp,
    vmap,
)

# PyTorch's other names of the dtypes.
half, float, double, short, int, long = float16, float32, float64, int16, int32, int64
cfloat, cdouble = complex64, complex128

# Parts that are imported when they are first used.
_LAZY = (
    "amp",
    "counting",
    "debugging",
    "fft",
    "graph",
    "nn",
    "numpy",
    "optim",
    "plot",
    "special",
    "testing",
    "utils",
)

# Functions of such parts that stand here as well.
_LAZY_NAMES = {
    "debug": "debugging",
    "trace_backward": "debugging",
    "why": "debugging",
    "FlopCounter": "counting",
    "checkpoint": "utils.checkpoint",
    "flops": "counting",
    **dict.fromkeys(
        """
        alpha_dropout avg_pool1d bilinear cdist celu celu_ channel_shuffle conv1d conv2d conv3d conv_tbc
        conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity dropout feature_alpha_dropout group_norm
        hardshrink layer_norm max_pool1d max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle
        rms_norm rrelu rrelu_ selu selu_ threshold threshold_
        """.split(),
        "nn.functional",
    ),
}


def __getattr__(name: str) -> Any:
    """Imports a submodule on first use."""
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(f"wengert.{_LAZY_NAMES[name]}"), name)
    if name in _LAZY:
        try:
            return importlib.import_module(f"wengert.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"wengert.{name}":
                raise
    raise AttributeError(f"module 'wengert' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Everything there is, submodules included."""
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES})
