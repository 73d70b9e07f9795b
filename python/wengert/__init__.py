"""wengert: a tensor library built for differentiation.

PyTorch's eager tape and JAX's composable transforms in one object, a Rust core behind this package, GPUs through
WGSL. The names are PyTorch's; the transforms' are JAX's; `axis` and `keepdims` are accepted beside `dim` and
`keepdim`.

Example:
    >>> import wengert as wg
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    >>> wg.vmap(wg.grad(lambda x: x.sin()))(wg.zeros(3))
    tensor([1., 1., 1.])
"""

import importlib as _importlib
from math import e, inf, nan, pi
from typing import TYPE_CHECKING

from wengert import _core, _functions, _kinds, autograd, gpu, linalg, memory, tree
from wengert._core import (
    AnomalyError,
    CheckpointError,
    DeviceError,
    Generator,
    LinAlgError,
    ShapeError,
    Tensor,
    __version__,
    as_tensor,
    bfloat16,
    bool as bool,
    channels_last,
    channels_last_3d,
    complex as complex,
    complex64,
    complex128,
    contiguous_format,
    device,
    dtype,
    empty_like,
    eye,
    float16,
    float32,
    float64,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    get_autocast_dtype,
    get_num_threads,
    get_rng_state,
    int8,
    int16,
    int32,
    int64,
    is_autocast_enabled,
    manual_seed,
    memory_format,
    ones_like,
    polar,
    preserve_format,
    rand_like,
    randn_like,
    randperm,
    result_type,
    set_num_threads,
    set_rng_state,
    tensor,
    uint8,
    uint16,
    uint32,
    uint64,
    view_as_complex,
    view_as_real,
    zeros_like,
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

# Names that would hide Python's own types are attributes only.
_PYTHONS = ("bool", "complex", "float", "int")
__all__: list[str] = [
    "AnomalyError",
    "CheckpointError",
    "DeviceError",
    "Generator",
    "LinAlgError",
    "ShapeError",
    "Tensor",
    "__version__",
    "all_gather",
    "as_tensor",
    "autocast",
    "autograd",
    "axis_index",
    "axis_size",
    "bfloat16",
    "cdouble",
    "cfloat",
    "channels_last",
    "channels_last_3d",
    "complex128",
    "complex64",
    "contiguous_format",
    "custom_jvp",
    "custom_vjp",
    "device",
    "double",
    "dtype",
    "e",
    "empty_like",
    "enable_grad",
    "eye",
    "finfo",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "get_autocast_dtype",
    "get_num_threads",
    "get_rng_state",
    "gpu",
    "grad",
    "half",
    "hessian",
    "hvp",
    "ieee_gradients",
    "iinfo",
    "inf",
    "inference_mode",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_autocast_enabled",
    "is_grad_enabled",
    "is_ieee_gradients_enabled",
    "is_inference_mode_enabled",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linalg",
    "linear_transpose",
    "linearize",
    "load",
    "long",
    "manual_seed",
    "memory",
    "memory_format",
    "nan",
    "no_grad",
    "ones_like",
    "pi",
    "pmax",
    "pmean",
    "pmin",
    "polar",
    "preserve_format",
    "psum",
    "rand_like",
    "randn_like",
    "randperm",
    "result_type",
    "save",
    "set_grad_enabled",
    "set_num_threads",
    "set_rng_state",
    "short",
    "tensor",
    "tree",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "value_and_grad",
    "view_as_complex",
    "view_as_real",
    "vjp",
    "vmap",
    "zeros_like",
]
__all__ += _functions.__all__
__all__ += _kinds.__all__

# Parts that are imported when they are first used, and where they lie.
_LAZY = {
    **{
        name: name
        for name in """
            amp backends counting cuda debugging distributions fft func graph jit nn numpy optim plot serialization
            special testing utils
        """.split()
    },
    "accelerator": "cuda.accelerator",
    "mps": "cuda.others",
    "xpu": "cuda.others",
}

# What PyTorch calls otherwise, or has and this library has not.
_ELSEWHERE = {
    "device_count": "GPUs are counted by wengert.gpu.device_count()",
    "get_default_dtype": "floats are float32 unless dtype= says otherwise",
    "set_default_device": "pass device= to what makes tensors",
    "set_default_dtype": "floats are float32 unless dtype= says otherwise",
    "hub": "nothing is downloaded; load files by wengert.load",
    "onnx": "models are not exported",
    "random": "its functions are wengert.manual_seed, get_rng_state, set_rng_state and wengert.Generator",
    "set_printoptions": "tensors print as they are; convert with .numpy() for other formats",
}

# What a module has beside its names.
_DUNDER = {"__all__", "__doc__", "__file__", "__name__", "__path__", "__spec__", "__version__"}

# Functions of such parts that stand here as well.
_LAZY_NAMES = {
    "debug": "debugging",
    "trace_backward": "debugging",
    "why": "debugging",
    "FlopCounter": "counting",
    "checkpoint": "utils.checkpoint",
    "compile": "jit",
    "flops": "counting",
    **dict.fromkeys(
        """
        are_deterministic_algorithms_enabled get_float32_matmul_precision set_float32_matmul_precision
        use_deterministic_algorithms
        """.split(),
        "_switches",
    ),
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


if TYPE_CHECKING:
    from wengert import (
        amp as amp,
        backends as backends,
        counting as counting,
        cuda as cuda,
        debugging as debugging,
        distributions as distributions,
        fft as fft,
        func as func,
        graph as graph,
        jit as jit,
        nn as nn,
        numpy as numpy,
        optim as optim,
        plot as plot,
        serialization as serialization,
        special as special,
        testing as testing,
        utils as utils,
    )
    from wengert._switches import (
        are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
        get_float32_matmul_precision as get_float32_matmul_precision,
        set_float32_matmul_precision as set_float32_matmul_precision,
        use_deterministic_algorithms as use_deterministic_algorithms,
    )
    from wengert.counting import FlopCounter as FlopCounter, flops as flops
    from wengert.cuda import accelerator as accelerator, others as mps, others as xpu
    from wengert.debugging import debug as debug, trace_backward as trace_backward, why as why
    from wengert.jit import compile as compile
    from wengert.nn.functional import (
        alpha_dropout as alpha_dropout,
        avg_pool1d as avg_pool1d,
        bilinear as bilinear,
        cdist as cdist,
        celu as celu,
        celu_ as celu_,
        channel_shuffle as channel_shuffle,
        conv1d as conv1d,
        conv2d as conv2d,
        conv3d as conv3d,
        conv_tbc as conv_tbc,
        conv_transpose1d as conv_transpose1d,
        conv_transpose2d as conv_transpose2d,
        conv_transpose3d as conv_transpose3d,
        cosine_similarity as cosine_similarity,
        feature_alpha_dropout as feature_alpha_dropout,
        group_norm as group_norm,
        hardshrink as hardshrink,
        layer_norm as layer_norm,
        max_pool1d as max_pool1d,
        max_pool2d as max_pool2d,
        max_pool3d as max_pool3d,
        pairwise_distance as pairwise_distance,
        pdist as pdist,
        pixel_shuffle as pixel_shuffle,
        pixel_unshuffle as pixel_unshuffle,
        rms_norm as rms_norm,
        rrelu as rrelu,
        rrelu_ as rrelu_,
        selu as selu,
        selu_ as selu_,
        threshold as threshold,
        threshold_ as threshold_,
    )
    from wengert.nn.functional.dropout import dropout as dropout
    from wengert.utils.checkpoint import checkpoint as checkpoint
else:

    def __getattr__(name):
        """Imports a submodule on first use."""
        if name in _LAZY_NAMES:
            return getattr(_importlib.import_module(f"wengert.{_LAZY_NAMES[name]}"), name)
        if name in _LAZY:
            try:
                return _importlib.import_module(f"wengert.{_LAZY[name]}")
            except ModuleNotFoundError as error:
                if error.name != f"wengert.{_LAZY[name]}":
                    raise
        hint = f"; {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module 'wengert' has no attribute '{name}'{hint}")


def __dir__() -> list[str]:
    """Everything public, submodules included."""
    return sorted({*__all__, *_LAZY, *_LAZY_NAMES, *_PYTHONS, *_DUNDER})
