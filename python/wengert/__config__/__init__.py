"""What the library was built with, in words."""

import platform

from wengert import _core

__all__ = ["parallel_info", "show"]
__dir__ = __all__.copy


def show() -> str:
    """Returns lines about the library and the machine.

    Example:
        >>> print(wg.__config__.show().splitlines()[0].split()[0])
        wengert
    """
    lines = [
        f"wengert {_core.__version__}",
        f"  - Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        "  - kernels of its own for the CPU; of WGSL, through wgpu, for GPUs",
        f"  - threads: {_core.get_num_threads()}",
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """Returns lines about threads.

    Example:
        >>> "threads" in wg.__config__.parallel_info()
        True
    """
    return f"threads of large operations: {_core.get_num_threads()}\n"
