"""wengert: a tensor library built for differentiation.

PyTorch's eager tape and JAX's composable transforms in one object, a Rust core behind this package, GPUs
through WGSL. The names are PyTorch's; the transforms' are JAX's; `axis` and `keepdims` are accepted beside
`dim` and `keepdim`.

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
    UntypedStorage,
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
    get_default_device,
    get_default_dtype,
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
    set_default_device,
    set_default_dtype,
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
from wengert.transforms import (
    all_gather,
    all_to_all,
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
    pbroadcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    psum_scatter,
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
    "UntypedStorage",
    "__version__",
    "all_gather",
    "all_to_all",
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
    "get_default_device",
    "get_default_dtype",
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
    "pbroadcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "polar",
    "preserve_format",
    "psum",
    "psum_scatter",
    "rand_like",
    "randn_like",
    "randperm",
    "result_type",
    "save",
    "set_default_device",
    "set_default_dtype",
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
            __config__ amp backends control counting cuda debugging distributed distributions fft func graph
            hub jit library masked multiprocessing nn numpy onnx optim plot profiler random safetensors scipy
            serialization signal special
            testing utils version
        """.split()
    },
    "accelerator": "cuda.accelerator",
    "config": "numpy._config",
    "mps": "cuda.others",
    "tree_util": "tree",
    "xpu": "cuda.others",
}

_NOT_QUANTISED = "there are no quantised tensors; wengert.float16 and wengert.autocast save memory"

# What PyTorch and JAX call otherwise, or have and this library has not.
_ELSEWHERE = {
    "ao": _NOT_QUANTISED,
    "chalf": "there are no complex numbers of halves; use wengert.cfloat",
    "complex32": "there are no complex numbers of halves; use wengert.cfloat",
    "device_count": "GPUs are counted by wengert.gpu.device_count()",
    "export": "programs are not written to files; wengert.save(model.state_dict(), path) writes the weights",
    "functional": "its functions are those of wengert, and of wengert.nn.functional for layers",
    "fx": "there are no graphs of programs to rewrite; wengert.graph shows what ran, wengert.jit repeats it",
    "jnp": "it is wengert.numpy",
    "lax": "its operations are functions of wengert and wengert.numpy, its loops those of wengert.control",
    "lobpcg": "wengert.linalg.eigh finds all eigenvalues of a dense matrix; take the first or last of them",
    "matrix_rank": "it is wengert.linalg.matrix_rank, with hermitian= for symmetric=",
    "pmap": "a program runs on one device; wengert.vmap runs a function for many inputs there",
    "quantization": _NOT_QUANTISED,
    "quantize_per_tensor": _NOT_QUANTISED,
    **dict.fromkeys(
        """
        sparse sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo sparse_coo_tensor
        sparse_csc_tensor sparse_csr sparse_csr_tensor
        """.split(),
        "there are no sparse tensors; tensors are dense, and wengert.Tensor.index_add adds rows by index",
    ),
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
    "eval_shape": "jit",
    "make_graph": "jit",
    "default_generator": "random",
    "flops": "counting",
    "load": "serialization",
    "range": "composed.making",
    "save": "serialization",
    **dict.fromkeys(
        """
        are_deterministic_algorithms_enabled get_float32_matmul_precision printoptions set_default_tensor_type
        set_float32_matmul_precision set_printoptions use_deterministic_algorithms
        """.split(),
        "_switches",
    ),
    **dict.fromkeys(
        """
        adaptive_avg_pool1d adaptive_max_pool1d alpha_dropout avg_pool1d bilinear cdist celu celu_
        channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
        cosine_similarity feature_alpha_dropout group_norm hardshrink max_pool1d max_pool2d max_pool3d
        pairwise_distance pdist pixel_shuffle pixel_unshuffle rms_norm rrelu rrelu_ selu selu_ threshold
        threshold_
        """.split(),
        "nn.functional",
    ),
    **dict.fromkeys(
        """
        batch_norm binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout embedding
        feature_dropout hinge_embedding_loss instance_norm kl_div layer_norm margin_ranking_loss
        max_pool1d_with_indices poisson_nll_loss triplet_margin_loss
        """.split(),
        "nn.functional.top_level",
    ),
    **dict.fromkeys("associative_scan cond fori_loop map scan switch while_loop".split(), "control"),
    **dict.fromkeys(["lu_unpack", "pca_lowrank", "svd_lowrank"], "linalg._packed"),
}


if TYPE_CHECKING:
    from wengert import (
        __config__ as __config__,
        amp as amp,
        backends as backends,
        control as control,
        counting as counting,
        cuda as cuda,
        debugging as debugging,
        distributed as distributed,
        distributions as distributions,
        fft as fft,
        func as func,
        graph as graph,
        hub as hub,
        jit as jit,
        library as library,
        masked as masked,
        multiprocessing as multiprocessing,
        nn as nn,
        numpy as numpy,
        onnx as onnx,
        optim as optim,
        plot as plot,
        profiler as profiler,
        random as random,
        safetensors as safetensors,
        scipy as scipy,
        serialization as serialization,
        signal as signal,
        special as special,
        testing as testing,
        tree as tree_util,
        utils as utils,
        version as version,
    )
    from wengert._switches import (
        are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
        get_float32_matmul_precision as get_float32_matmul_precision,
        printoptions as printoptions,
        set_default_tensor_type as set_default_tensor_type,
        set_float32_matmul_precision as set_float32_matmul_precision,
        set_printoptions as set_printoptions,
        use_deterministic_algorithms as use_deterministic_algorithms,
    )
    from wengert.composed.making import range as range
    from wengert.control import (
        associative_scan as associative_scan,
        cond as cond,
        fori_loop as fori_loop,
        map as map,
        scan as scan,
        switch as switch,
        while_loop as while_loop,
    )
    from wengert.counting import FlopCounter as FlopCounter, flops as flops
    from wengert.cuda import accelerator as accelerator, others as mps, others as xpu
    from wengert.debugging import debug as debug, trace_backward as trace_backward, why as why
    from wengert.jit import compile as compile, eval_shape as eval_shape, make_graph as make_graph
    from wengert.linalg._packed import (
        lu_unpack as lu_unpack,
        pca_lowrank as pca_lowrank,
        svd_lowrank as svd_lowrank,
    )
    from wengert.nn.functional import (
        adaptive_avg_pool1d as adaptive_avg_pool1d,
        adaptive_max_pool1d as adaptive_max_pool1d,
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
    from wengert.nn.functional.top_level import (
        batch_norm as batch_norm,
        binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
        cosine_embedding_loss as cosine_embedding_loss,
        ctc_loss as ctc_loss,
        dropout as dropout,
        embedding as embedding,
        feature_dropout as feature_dropout,
        hinge_embedding_loss as hinge_embedding_loss,
        instance_norm as instance_norm,
        kl_div as kl_div,
        layer_norm as layer_norm,
        margin_ranking_loss as margin_ranking_loss,
        max_pool1d_with_indices as max_pool1d_with_indices,
        poisson_nll_loss as poisson_nll_loss,
        triplet_margin_loss as triplet_margin_loss,
    )
    from wengert.numpy import _config as config
    from wengert.random import default_generator as default_generator
    from wengert.serialization import load as load, save as save
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
