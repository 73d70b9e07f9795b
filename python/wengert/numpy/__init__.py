"""The functions of the Python array API standard, version 2024.12, and of NumPy, over `Tensor`.

https://data-apis.org/array-api/2024.12. Libraries written against the standard (parts of SciPy,
array-api-extra, …) take tensors through this namespace, and `array_namespace(x)` of array-api-compat finds
it. Names, parameters and dtypes are the standard's; what computes and is differentiated is the rest of the
library, so gradients and transforms go through.

NumPy's other functions are here too, and its arguments by position and under its names: programs for
`autograd.numpy` and `jax.numpy` run with this module in their place. Where NumPy and the standard disagree,
the standard's behaviour holds.

Example:
    >>> import wengert.numpy as xp
    >>> x = xp.linspace(0, 1, 5)
    >>> wg.grad(lambda x: xp.sum(xp.sin(x)))(x).tolist() == xp.cos(x).tolist()
    True
"""

from math import e, inf, nan, pi

from wengert._core import (
    bool,
    complex64,
    complex128,
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

from . import (
    _calculus,
    _creation,
    _dtypes,
    _elementwise,
    _info,
    _joining,
    _manipulation,
    _names,
    _plain,
    _products,
    _reductions,
    _searching,
    _statistics,
    fft,
    linalg,
    random,
)
from ._calculus import *
from ._creation import *
from ._dtypes import *
from ._elementwise import *
from ._info import __array_namespace_info__
from ._joining import *
from ._manipulation import *
from ._names import *
from ._plain import *
from ._products import *
from ._reductions import *
from ._searching import *
from ._statistics import *

__array_api_version__ = "2024.12"

# What `x[..., newaxis]` means.
newaxis = None

__all__ = [
    "__array_api_version__",
    "bool",
    "complex64",
    "complex128",
    "e",
    "fft",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    "random",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
__all__ += _creation.__all__
__all__ += _dtypes.__all__
__all__ += _elementwise.__all__
__all__ += _info.__all__
__all__ += _manipulation.__all__
__all__ += _products.__all__
__all__ += _reductions.__all__
__all__ += _searching.__all__
__all__ += _calculus.__all__
__all__ += _joining.__all__
__all__ += _names.__all__
__all__ += _plain.__all__
__all__ += _statistics.__all__
