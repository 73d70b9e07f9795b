"""NumPy's names of what the standard or this library calls otherwise, and its functions of one line, as a
table.

Each row has NumPy's signature. What is longer than a line stands in `_joining.py`, `_statistics.py` and
`_calculus.py`.
"""

import math
from typing import Any

import numpy as np
from numpy import (
    complexfloating,
    errstate,
    floating,
    generic,
    get_printoptions,
    index_exp,
    inexact,
    integer,
    isscalar,
    iterable,
    ndenumerate,
    ndindex,
    number,
    printoptions,
    s_,
    save,
    savetxt,
    savez,
    set_printoptions,
    signedinteger,
    unsignedinteger,
)

import wengert as wg
from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor, bfloat16, float16

from ._creation import asarray, eye, linspace
from ._dtypes import default_float, result_type
from ._elementwise import (
    abs,
    acos,
    acosh,
    alike,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    binary,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_right_shift,
    conj,
    divide,
    floor_divide,
    multiply,
    pow,
    remainder,
    round,
    trunc,
    unary,
)
from ._manipulation import concat, permute_dims, reshape
from ._products import tensordot, vecdot
from ._reductions import max, min, sum
from ._rows import row
from ._searching import argsort, nonzero, sort

__all__ = [
    "absolute",
    "allclose",
    "amax",
    "amin",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argpartition",
    "argwhere",
    "around",
    "array_equal",
    "array_equiv",
    "asanyarray",
    "ascontiguousarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bfloat16",
    "bincount",
    "bitwise_not",
    "bool_",
    "broadcast",
    "cbrt",
    "cdouble",
    "column_stack",
    "complex_",
    "complexfloating",
    "concatenate",
    "conjugate",
    "copy",
    "cross",
    "csingle",
    "deg2rad",
    "degrees",
    "diag",
    "diag_indices",
    "diagflat",
    "diagonal",
    "digitize",
    "divmod",
    "dot",
    "double",
    "dstack",
    "einsum",
    "errstate",
    "exp2",
    "extract",
    "fabs",
    "fix",
    "flatnonzero",
    "fliplr",
    "flipud",
    "float16",
    "float_",
    "float_power",
    "floating",
    "fmax",
    "fmin",
    "fmod",
    "fromfunction",
    "gcd",
    "generic",
    "geomspace",
    "get_printoptions",
    "half",
    "heaviside",
    "hstack",
    "i0",
    "identity",
    "index_exp",
    "indices",
    "inexact",
    "inner",
    "int_",
    "integer",
    "intp",
    "invert",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "iterable",
    "ix_",
    "kron",
    "lcm",
    "ldexp",
    "left_shift",
    "logaddexp2",
    "logspace",
    "mod",
    "modf",
    "nan_to_num",
    "ndarray",
    "ndenumerate",
    "ndim",
    "ndindex",
    "number",
    "outer",
    "partition",
    "power",
    "printoptions",
    "promote_types",
    "rad2deg",
    "radians",
    "ravel",
    "ravel_multi_index",
    "real_if_close",
    "right_shift",
    "rint",
    "rollaxis",
    "rot90",
    "row_stack",
    "s_",
    "save",
    "savetxt",
    "savez",
    "set_printoptions",
    "shape",
    "signedinteger",
    "sinc",
    "single",
    "size",
    "swapaxes",
    "trace",
    "transpose",
    "tri",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "true_divide",
    "ubyte",
    "uint",
    "unravel_index",
    "unsignedinteger",
    "vander",
    "vdot",
    "vstack",
]

# Other names of the same.
ndarray = Tensor
bool_, int_, intp, uint, ubyte = _core.bool, _core.int64, _core.int64, _core.uint64, _core.uint8
half, single, double, float_ = float16, _core.float32, _core.float64, _core.float64
csingle, cdouble, complex_ = _core.complex64, _core.complex128, _core.complex128
absolute = fabs = abs
arccos, arccosh, arcsin, arcsinh = acos, acosh, asin, asinh
arctan, arctan2, arctanh = atan, atan2, atanh
invert = bitwise_not = bitwise_invert
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
conjugate, power, mod, true_divide = conj, pow, remainder, divide
around, fix, amax, amin, concatenate = round, trunc, max, min, concat
asanyarray = asarray
promote_types = result_type
atleast_1d, atleast_2d, atleast_3d = wg.atleast_1d, wg.atleast_2d, wg.atleast_3d
column_stack, dstack, hstack, vstack = wg.column_stack, wg.dstack, wg.hstack, wg.vstack
row_stack, broadcast, unravel_index = vstack, wg.broadcast_tensors, wg.unravel_index
isclose, allclose, vander = wg.isclose, wg.allclose, wg.vander
argwhere, bincount, fliplr, flipud = wg.argwhere, wg.bincount, wg.fliplr, wg.flipud

# Of each element.
angle = unary("angle", wg.angle)
cbrt = row("cbrt", lambda x: _cube_root(operand("cbrt", x)), "Returns the real cube roots.")
deg2rad = radians = unary("deg2rad", wg.deg2rad)
exp2 = unary("exp2", wg.exp2)
i0 = unary("i0", wg.i0)
iscomplex = row(
    "iscomplex", lambda x: wg.isreal(x).logical_not(), "Tells where the imaginary part is not zero."
)
isneginf = unary("isneginf", wg.isneginf)
isposinf = unary("isposinf", wg.isposinf)
isreal = unary("isreal", wg.isreal)
rad2deg = degrees = unary("rad2deg", wg.rad2deg)
rint = row("rint", lambda x: round(x), round)
sinc = unary("sinc", wg.sinc)
divmod = row(
    "divmod",
    lambda x1, x2: (floor_divide(x1, x2), remainder(x1, x2)),
    "Returns the quotients, rounded down, and the rests.",
)
float_power = binary("float_power", wg.float_power)
fmax = binary("fmax", wg.fmax)
fmin = binary("fmin", wg.fmin)
fmod = binary("fmod", wg.fmod)
gcd = binary("gcd", wg.gcd)
heaviside = binary("heaviside", wg.heaviside)
lcm = binary("lcm", wg.lcm)
ldexp = binary("ldexp", wg.ldexp)
logaddexp2 = binary("logaddexp2", wg.logaddexp2)
modf = row(
    "modf",
    lambda x: (x - trunc(x), trunc(x)),
    "Returns the fractions and the whole parts, both with the sign of the number.",
)
nan_to_num = row(
    "nan_to_num",
    lambda x, copy=True, nan=0.0, posinf=None, neginf=None: wg.nan_to_num(x, nan, posinf, neginf),
    "Returns the numbers with `nan` in the place of NaN, and the largest ones, or these, in that of "
    "infinities.",
)
real_if_close = row(
    "real_if_close",
    lambda a, tol=100: _real_if_close(operand("real_if_close", a), tol),
    "Returns the real parts of complex numbers whose imaginary parts are all below `tol` rounding errors of "
    "1.",
)

# About tensors.
array_equiv = row(
    "array_equiv",
    lambda a1, a2: _are_equal(a1, a2, False),
    "Tells whether both broadcast to one shape and have the same elements.",
)
iscomplexobj = row(
    "iscomplexobj", lambda x: operand("iscomplexobj", x).is_complex(), "Tells whether the dtype is complex."
)
isrealobj = row("isrealobj", lambda x: not iscomplexobj(x), "Tells whether the dtype is not complex.")
issubdtype = row(
    "issubdtype",
    lambda arg1, arg2: np.issubdtype(getattr(arg1, "numpy", arg1), getattr(arg2, "numpy", arg2)),
    "Tells whether a dtype is another, or of a kind such as `floating` or `integer`.",
)
ndim = row("ndim", lambda a: operand("ndim", a).ndim, "Returns the number of axes.")
shape = row("shape", lambda a: tuple(operand("shape", a).shape), "Returns the lengths of the axes.")
size = row(
    "size",
    lambda a, axis=None: math.prod(shape(a)) if axis is None else shape(a)[axis],
    "Returns the number of elements, or the length of one axis.",
)
array_equal = row(
    "array_equal",
    lambda a1, a2, equal_nan=False: shape(a1) == shape(a2) and _are_equal(a1, a2, equal_nan),
    "Tells whether both have one shape and the same elements.",
)

# Shapes.
copy = row("copy", lambda a: operand("copy", a).clone(), "Returns a copy, through which gradients flow.")
diag = row(
    "diag",
    lambda v, k=0: wg.diag(v, k),
    "Returns the matrix with a vector on its `k`-th diagonal, or the `k`-th diagonal of a matrix.",
)
diagflat = row(
    "diagflat",
    lambda v, k=0: wg.diagflat(v, k),
    "Returns the matrix with the elements of a tensor on its `k`-th diagonal.",
)
diagonal = row(
    "diagonal",
    lambda a, offset=0, axis1=0, axis2=1: wg.diagonal(a, offset, axis1, axis2),
    "Returns the `offset`-th diagonals over two axes, the first two by default, along a new last axis.",
)
ravel = row(
    "ravel",
    lambda a, order="C": reshape(a, -1, order),
    "Returns the elements as a vector; `order` as for `reshape`.",
)
rollaxis = row(
    "rollaxis",
    lambda a, axis, start=0: _rolled(operand("rollaxis", a), axis, start),
    "Moves an axis back until it lies before the one at `start`.",
)
rot90 = row(
    "rot90",
    lambda m, k=1, axes=(0, 1): wg.rot90(m, k, axes),
    "Turns the tensor by `k` right angles, from the first of two axes towards the second.",
)
swapaxes = row(
    "swapaxes",
    lambda a, axis1, axis2: wg.swapaxes(a, axis1, axis2),
    "Returns the view with two axes exchanged.",
)
transpose = row(
    "transpose",
    lambda a, axes=None: permute_dims(a, tuple(range(ndim(a)))[::-1] if axes is None else axes),
    "Returns the view with its axes in the order given, in the opposite one by default.",
)

# Places.
argpartition = row(
    "argpartition",
    lambda a, kth, axis=-1: argsort(ravel(a) if axis is None else a, -1 if axis is None else axis),
    "Returns positions that sort an axis, which puts the `kth` elements in their places as well.",
)
diag_indices = row(
    "diag_indices",
    lambda n, ndim=2: (_core.arange(n),) * ndim,
    "Returns the indices of the main diagonal, one vector for each axis.",
)
digitize = row(
    "digitize",
    lambda x, bins, right=False: wg.searchsorted(bins, x, side="left" if right else "right"),
    "Returns the number of the bin that each element lies in, between ascending bounds.",
)
extract = row(
    "extract",
    lambda condition, arr: ravel(arr)[ravel(condition) != 0],
    "Returns the elements where a condition holds.",
)
flatnonzero = row(
    "flatnonzero",
    lambda a: nonzero(ravel(a))[0],
    "Returns the places of what is not zero in the flattened tensor.",
)
ix_ = row(
    "ix_",
    lambda *args: tuple(
        operand("ix_", x).reshape([-1 if k == i else 1 for k in range(len(args))]) for i, x in enumerate(args)
    ),
    "Returns vectors of places along one axis each, to index a grid of elements.",
)
partition = row(
    "partition",
    lambda a, kth, axis=-1: sort(ravel(a) if axis is None else a, -1 if axis is None else axis),
    "Returns the elements sorted along an axis, which puts the `kth` in their places as well.",
)
ravel_multi_index = row(
    "ravel_multi_index",
    lambda multi_index, dims: sum(
        wg.stack(
            [operand("ravel_multi_index", i) * math.prod(dims[k + 1 :]) for k, i in enumerate(multi_index)]
        ),
        0,
    ),
    "Returns places in the flattened tensor of the shape `dims`, from those along each axis.",
)
tril_indices = row(
    "tril_indices",
    lambda n, k=0, m=None: tuple(wg.tril_indices(n, n if m is None else m, k)),
    "Returns the indices of the lower triangle of a matrix, up to the `k`-th diagonal: rows and columns.",
)
triu_indices = row(
    "triu_indices",
    lambda n, k=0, m=None: tuple(wg.triu_indices(n, n if m is None else m, k)),
    "Returns the indices of the upper triangle of a matrix, from the `k`-th diagonal: rows and columns.",
)
tril_indices_from = row(
    "tril_indices_from", lambda arr, k=0: tril_indices(shape(arr)[0], k, shape(arr)[1]), tril_indices
)
triu_indices_from = row(
    "triu_indices_from", lambda arr, k=0: triu_indices(shape(arr)[0], k, shape(arr)[1]), triu_indices
)

# New ones.
ascontiguousarray = row(
    "ascontiguousarray",
    lambda a, dtype=None: asarray(a, dtype).contiguous(),
    "Returns the elements in row-major order, without a copy where they lie so already.",
)
geomspace = row(
    "geomspace",
    lambda start, stop, num=50, endpoint=True, dtype=None: _geometric(start, stop, num, endpoint, dtype),
    "Returns `num` numbers from `start` to `stop`, each the same multiple of the one before.",
)
identity = row(
    "identity",
    lambda n, dtype=None: eye(n, dtype=dtype),
    "Returns the square matrix with ones on the diagonal.",
)
indices = row(
    "indices",
    lambda dimensions, dtype=None: wg.stack(
        wg.meshgrid(*(_core.arange(n, dtype=dtype) for n in dimensions), indexing="ij")
    ),
    "Returns the indices of every element of a shape, those along each axis in a row of the result.",
)
fromfunction = row(
    "fromfunction",
    lambda function, shape, dtype=None: function(*(x.to(dtype or default_float()) for x in indices(shape))),
    "Returns a function of the indices of every element, one tensor for each axis.",
)
logspace = row(
    "logspace",
    lambda start, stop, num=50, endpoint=True, base=10.0, dtype=None: _powers(
        start, stop, num, endpoint, base, dtype
    ),
    "Returns `base` to the power of `num` numbers, evenly spaced, from `start` to `stop`.",
)
tri = row(
    "tri",
    lambda N, M=None, k=0, dtype=None: _core.ones((N, N if M is None else M), dtype=dtype).tril(k),
    "Returns a matrix with ones up to the `k`-th diagonal, zeros above.",
)

# Products.
cross = row(
    "cross",
    lambda a, b, axis=-1: wg.linalg.cross(*alike("cross", operand("cross", a), b), dim=axis),
    "Returns the cross products of vectors of length 3 along an axis.",
)
dot = row(
    "dot",
    lambda a, b: _dot(*alike("dot", operand("dot", a), operand("dot", b))),
    "Returns the products of the vectors in the last axis of `a` and the last but one (the only one) of `b`, "
    "and of numbers with tensors.",
)
einsum = row(
    "einsum",
    lambda subscripts, *operands, optimize=True: wg.einsum(subscripts, *operands),
    "Returns the sum of products that a formula such as `'ij,jk->ik'` tells.",
)
inner = row(
    "inner",
    lambda a, b: wg.inner(*alike("inner", operand("inner", a), operand("inner", b))),
    "Returns the products of the vectors in the last axes of both.",
)
kron = row(
    "kron",
    lambda a, b: wg.kron(*alike("kron", operand("kron", a), operand("kron", b))),
    "Returns the tensor in which each element of `a` is multiplied by the whole `b`.",
)
outer = row(
    "outer",
    lambda a, b: multiply(ravel(a).unsqueeze(1), ravel(b)),
    "Returns the products of each element of one tensor with each of another, both flattened.",
)
trace = row(
    "trace",
    lambda a, offset=0, axis1=0, axis2=1, dtype=None: sum(diagonal(a, offset, axis1, axis2), -1, dtype),
    "Returns the sums of the `offset`-th diagonals over two axes, the first two by default.",
)
vdot = row(
    "vdot",
    lambda a, b: vecdot(ravel(a), ravel(b)),
    "Returns the product of both as vectors, the first conjugated.",
)


def _cube_root(x: Tensor) -> Tensor:
    return x.sign() * x.abs().pow(1 / 3)


def _real_if_close(x: Tensor, tol: float) -> Tensor:
    if not x.is_complex():
        return x
    limit = tol * wg.finfo(x.real.dtype).eps if tol > 1 else tol
    return x.real if bool((x.imag.abs() < limit).all()) else x


def _are_equal(a1: Any, a2: Any, equal_nan: bool) -> bool:
    x, y = operand("array_equal", a1), operand("array_equal", a2)
    try:
        same = x == y
    except _core.ShapeError:
        return False
    return bool((same | ((x != x) & (y != y)) if equal_nan else same).all())


def _rolled(x: Tensor, axis: int, start: int) -> Tensor:
    axis, start = axis % x.ndim, start + x.ndim if start < 0 else start
    return x.moveaxis(axis, start - 1 if axis < start else start)


def _powers(start: Any, stop: Any, num: int, endpoint: bool, base: Any, dtype: Any) -> Tensor:
    made = pow(base, linspace(start, stop, num, endpoint))
    return made if dtype is None else made.to(dtype)


def _geometric(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any) -> Tensor:
    sign = -1.0 if start < 0 else 1.0
    made = sign * _powers(math.log10(sign * start), math.log10(sign * stop), num, endpoint, 10.0, None)
    return made if dtype is None else made.to(dtype)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return a @ b if (a.ndim <= 2 and b.ndim <= 2) or b.ndim == 1 else tensordot(a, b, ([-1], [-2]))
