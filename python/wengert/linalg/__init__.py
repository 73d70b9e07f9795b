"""Linear algebra on the last two axes, for batches of matrices, with derivatives of every order.

Names and arguments are those of `torch.linalg`; what the array API standard adds to them is here, too.
On the CPU everything runs for real and complex matrices; a float32 matrix is factorised in float64, a
complex64 matrix in complex128, and the result rounded once. On a GPU Cholesky and LU factors of real matrices,
and what is made of them, are computed in float32; the rest raises DeviceError.
Factorisations on the CPU are those of the `faer` library; the derivatives are ours.

Where a matrix has no such inverse or factorisation, `LinAlgError` is raised, which is a `ValueError` (as
NumPy's) and a `RuntimeError` (as PyTorch's).

Example:
    >>> a = wg.tensor([[4.0, 2.0], [2.0, 3.0]], requires_grad=True)
    >>> wg.linalg.slogdet(a).logabsdet.backward()
    >>> a.grad
    tensor([[ 0.3750, -0.2500],
            [-0.2500,  0.5000]])
"""

from typing import TYPE_CHECKING

from wengert._core import LinAlgError

from . import _decompose, _functions, _norms, _products, _solve
from ._decompose import *
from ._functions import *
from ._norms import *
from ._products import *
from ._solve import *

__all__ = [
    "cholesky_ex",
    "inv_ex",
    "LinAlgError",
    "lu_factor_ex",
    "solve_ex",
]
__all__ += _decompose.__all__
__all__ += _functions.__all__
__all__ += _norms.__all__
__all__ += _products.__all__
__all__ += _solve.__all__
__dir__ = __all__.copy

# Functions that few programs use: their module is imported at the first call.
_CHECKED = {"cholesky_ex", "inv_ex", "lu_factor_ex", "solve_ex"}

# What PyTorch has and this library has not.
_ELSEWHERE = dict.fromkeys(
    ["ldl_factor", "ldl_factor_ex", "ldl_solve"],
    "; solve() takes symmetric matrices too, eigh() tells their signs, cholesky() factors definite ones",
)

if TYPE_CHECKING:
    from ._checked import (
        cholesky_ex as cholesky_ex,
        inv_ex as inv_ex,
        lu_factor_ex as lu_factor_ex,
        solve_ex as solve_ex,
    )
else:

    def __getattr__(name):
        """Imports what reports failure in a tensor."""
        if name in _CHECKED:
            from . import _checked

            return getattr(_checked, name)
        raise AttributeError(f"module 'wengert.linalg' has no attribute '{name}'{_ELSEWHERE.get(name, '')}")
