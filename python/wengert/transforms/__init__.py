"""Transforms of functions: gradients, directional derivatives, Jacobians, batching, in any nesting.

Each takes a function of pytrees (see `wengert.tree`) and returns a function or its result. The core
differentiates and batches functions of flat lists of tensors; these files take arguments apart and put
results together. Names and defaults are JAX's; PyTorch's keywords (`in_dims`, `out_dims`, `argnums`,
`has_aux`) are accepted too.
"""

from wengert.transforms.axes import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    psum_scatter,
)
from wengert.transforms.batch import vmap
from wengert.transforms.forward import jvp, linearize
from wengert.transforms.jacobians import hessian, hvp, jacfwd, jacobian, jacrev
from wengert.transforms.linear import linear_transpose
from wengert.transforms.reverse import grad, value_and_grad, vjp

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "pbroadcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
    "value_and_grad",
    "vjp",
    "vmap",
]
__dir__ = __all__.copy
