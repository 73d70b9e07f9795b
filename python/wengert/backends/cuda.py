"""Switches of CUDA, which is not here: they can be set, and change nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Protocol

__all__ = [
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_linalg_library",
    "sdp_kernel",
]
__dir__ = __all__.copy

#: Its switches `allow_tf32` and `allow_fp16_reduced_precision_reduction` change nothing.
matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False)


def is_built() -> bool:
    """Tells whether this library was built with CUDA: False.

    Example:
        >>> wg.backends.cuda.is_built()
        False
    """
    return False


# What programs have said; nothing looks at it.
_ways = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


class _Switch(Protocol):
    """A function that takes a choice."""

    def __call__(self, enabled: bool) -> None: ...


def _switch(name: str, text: str) -> tuple[_Switch, Callable[[], bool]]:
    """The functions that take and tell the choice of a way of attention."""

    def enable(enabled: bool) -> None:
        _ways[name] = bool(enabled)

    def is_enabled() -> bool:
        return _ways[name]

    enable.__name__ = enable.__qualname__ = f"enable_{name}_sdp"
    enable.__doc__ = f"""Accepts whether {text} may be used; there is one way of attention here.

    Args:
        enabled: accepted.

    Example:
        >>> wg.backends.cuda.{enable.__name__}(True)
    """
    is_enabled.__name__ = is_enabled.__qualname__ = f"{name}_sdp_enabled"
    is_enabled.__doc__ = f"""Tells what `{enable.__name__}` was given last, True at first.

    Example:
        >>> isinstance(wg.backends.cuda.{is_enabled.__name__}(), bool)
        True
    """
    return enable, is_enabled


enable_flash_sdp, flash_sdp_enabled = _switch("flash", "flash attention")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient", "memory-efficient attention")
enable_math_sdp, math_sdp_enabled = _switch("math", "attention of all scores at once")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn", "cuDNN's attention")


def is_flash_attention_available() -> bool:
    """Tells whether the library was built with CUDA's flash attention: False; the kernel here is its own.

    Example:
        >>> wg.backends.cuda.is_flash_attention_available()
        False
    """
    return False


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Says inside of a `with` block which ways of attention may be used: the older form of
    `nn.attention.sdpa_kernel`.

    Args:
        enable_flash, enable_math, enable_mem_efficient, enable_cudnn: what the functions `enable_..._sdp` are
            given.

    Example:
        >>> with wg.backends.cuda.sdp_kernel(enable_flash=False):
        ...     wg.backends.cuda.flash_sdp_enabled()
        False
    """
    before = dict(_ways)
    _ways.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _ways.update(before)


def preferred_linalg_library(backend: str | None = None) -> str:
    """Accepts the name of a library of CUDA's for factorisations; returns "default".

    Args:
        backend: "default", "cusolver" or "magma".

    Example:
        >>> wg.backends.cuda.preferred_linalg_library()
        'default'
    """
    return "default"
