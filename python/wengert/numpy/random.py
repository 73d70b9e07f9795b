"""NumPy's own random numbers, as arrays: a seed gives what it gives there.

Every function takes arrays as tensors, so `np.random.randn(3, 2)` can be a parameter or data; `wengert.randn`
and the others of `wengert` make tensors, also on GPUs, from another stream.
"""

from numpy.random import *  # noqa: F403
from numpy.random import __all__


def __dir__() -> list[str]:
    """What is public."""
    return list(__all__)
