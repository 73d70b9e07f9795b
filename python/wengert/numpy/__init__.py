"""The functions of the Python array API standard, version 2024.12, over `Tensor`.

https://data-apis.org/array-api/2024.12. Libraries written against the standard (parts of SciPy, array-api-extra, …)
take tensors through this namespace, and `array_namespace(x)` of array-api-compat finds it. Names, parameters and dtypes
are the standard's; what computes and is differentiated is the rest of the library, so gradients and transforms go
through.

Example:
    >>> import wengert.numpy as xp
    >>> x = xp.linspace(0, 1, 5)
    >>> wg.grad(lambda x: xp.sum(xp.sin(x)))(x).tolist() == xp.cos(x).tolist()
    True
"""

from math import e, inf, nan, pi

from . import (
    _creation,
    _dtypes,
    _elementwise,
    _info,
    _manipulation,
    _products,
    _reductions,
    _searching,
    fft,
    linalg,
)
from ._creation import *
from ._dtypes import *
from ._dtypes import DTYPES
from ._elementwise import *
from ._info import __array_namespace_info__
from ._manipulation import *
from ._products import *
from ._reductions import *
from ._searching import *

__array_api_version__ = "2024.12"

# What `x[..., newaxis]` means.
newaxis = None

# The dtypes; their names hide Python's, so no file of the package has them but this.
globals().update(DTYPES)

_FILES = (_creation, _dtypes, _elementwise, _info, _manipulation, _products, _reductions, _searching)
__all__ = [
    "__array_api_version__",
    "e",
    "fft",
    "inf",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    *DTYPES,
    *(name for file in _FILES for name in file.__all__),
]
