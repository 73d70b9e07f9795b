"""Tensor methods as functions: `wengert.exp(x)` is `x.exp()`, and takes arrays and numbers as well.

Every method that is an operation has a function of its name; both come from the core's tables. Second names are made
here, too; the in-place methods `x.exp_()` that the core does not write out itself, in `_in_place.py`.
"""

import builtins
import functools
from collections.abc import Callable
from typing import Any

from wengert import _core, _tensordot, composed
from wengert._arguments import compared, first_beside, operand, operands
from wengert._caller import called
from wengert._core import Tensor
from wengert._in_place import add_methods, functions_in_place
from wengert._names import known, renamed

# Methods that ask about a tensor, change it, or convert it: no functions.
_METHODS_ONLY = frozenset(
    """
    backward bfloat16 bool byte char contiguous cpu data_ptr dim double element_size expand expand_as float
    get_device gpu half int is_contiguous item long ndimension nelement new_empty new_full new_ones new_tensor
    new_zeros numpy register_hook register_post_accumulate_grad_hook repeat reshape_as retain_grad short size
    storage_offset stride to tolist type type_as view view_as
    """.split()
)

# Other names of methods, PyTorch's and NumPy's.
_ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "bitwise_invert": "bitwise_not",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "ger": "outer",
    "true_divide": "div",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "power": "pow",
    "subtract": "sub",
    "swapdims": "swapaxes",
}

# Comparisons whose first argument may be a number, each with the one that exchanges its arguments; and those for
# which exchanging them would change the result.
_REFLECTED = {"eq": "eq", "equal": "equal", "ge": "le", "gt": "lt", "le": "ge", "lt": "gt", "ne": "ne"}
_CLOSE = ("allclose", "isclose")

# Functions of the core that take `out`; the others are methods.
_WITH_OUT = ("stack", "where")

# Functions of the core that take a shape, which may be named; and those whose ranges begin at 0 unless told.
_WITH_SIZE = ("empty", "ones", "rand", "randn", "zeros")
_WITH_START = {"arange": ("start", "end"), "randint": ("low", "high")}


@functools.cache
def _selection() -> type:
    """What a mask selects inside `vmap`, whose methods the functions are too."""
    from wengert.transforms.selection import Selection

    return Selection


def _function(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    renames = known(name)

    def function(input: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs and renames:
            args, kwargs = renamed(name, args, kwargs)
        if not isinstance(input, Tensor):
            if isinstance(input, _selection()):
                return getattr(input, name)(*args, **kwargs)
            other = args[0] if args else kwargs.get("other")
            if name in _REFLECTED and isinstance(other, Tensor) and isinstance(input, builtins.int):
                # The tensor compares with an integer that its dtype need not hold.
                result = getattr(other, _REFLECTED[name])(input)
                return result if out is None else _store(name, out, result)
            if name in _CLOSE and isinstance(other, Tensor):
                input, other = compared(name, input, other)
                args, kwargs = (other, *args[1:]), {k: v for k, v in kwargs.items() if k != "other"}
            else:
                input = first_beside(name, input, args, kwargs)
        result = method(input, *args, **kwargs)
        return result if out is None else _store(name, out, result)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "wengert"
    function.__doc__ = method.__doc__
    return function


def _with_out(name: str) -> Callable[..., Any]:
    plain = getattr(_core, name)

    @functools.wraps(plain)
    def function(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        return result if out is None else _store(name, out, result)

    return function


def _with_size(name: str) -> Callable[..., Tensor]:
    plain = getattr(_core, name)

    @functools.wraps(plain)
    def function(*size: Any, **kwargs: Any) -> Tensor:
        if not kwargs:
            return plain(*size)
        if "size" in kwargs and not size:
            size = (kwargs.pop("size"),)
        return plain(*size, **kwargs)

    return function


def _with_start(name: str, start: str, end: str) -> Callable[..., Tensor]:
    plain = getattr(_core, name)

    @functools.wraps(plain)
    def function(*args: Any, **kwargs: Any) -> Tensor:
        if not args and end in kwargs and start not in kwargs:
            kwargs[start] = 0
        return plain(*args, **kwargs)

    return function


def _store(name: str, out: Any, result: Any) -> Any:
    """Writes `result` into `out`, one tensor or several, and returns `out`."""
    if isinstance(result, builtins.bool):
        raise TypeError(f"{name}: the result is a Python bool, which no tensor receives; leave it out")
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{name}: out must be {len(result)} tensors, as the result is")
        for target, value in zip(out, result, strict=True):
            _store(name, target, value)
        return out
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}: out must be a tensor, got {type(out).__name__}")
    if out.shape != result.shape:
        raise _core.ShapeError(
            f"{name}: out has shape {tuple(out.shape)}, expected {tuple(result.shape)} as the result"
        )
    out._store(name, result)
    return out


def _install() -> list[str]:
    add_methods()
    for alias, name in _ALIASES.items():
        for suffix in ("", "_"):
            if hasattr(Tensor, name + suffix) and not hasattr(Tensor, alias + suffix):
                setattr(Tensor, alias + suffix, getattr(Tensor, name + suffix))
    names = []
    for name in dir(Tensor):
        method = getattr(Tensor, name)
        public = not name.startswith("_") and not name.endswith("_") and name not in _METHODS_ONLY
        if public and callable(method) and not hasattr(_core, name):
            globals()[name] = _function(name, method)
            names.append(name)
    for name in _WITH_OUT:
        globals()[name] = _with_out(name)
        names.append(name)
    for name in _WITH_SIZE:
        globals()[name] = _with_size(name)
    for name, bounds in _WITH_START.items():
        globals()[name] = _with_start(name, *bounds)
    names += [*_WITH_SIZE, *_WITH_START]
    in_place = functions_in_place(_ALIASES)
    globals().update(in_place)
    names += in_place
    for alias, name in _ALIASES.items():
        if alias not in names and hasattr(_core, name):
            globals()[alias] = globals().get(name, getattr(_core, name))
            names.append(alias)
    return names


def permute(input: Any, dims: Any) -> Tensor:
    """Axes in the order given."""
    return operand("permute", input).permute(dims)


def reshape(input: Any, shape: Any) -> Tensor:
    """The same elements in row-major order with another shape; one length may be -1."""
    return operand("reshape", input).reshape(shape)


def numel(input: Any) -> int:
    """Number of elements."""
    return operand("numel", input).numel()


def polygamma(n: int, input: Any) -> Tensor:
    """Derivative of order `n` of the digamma function, `n` from 0 to 20.

    NaN or infinite at integers that are not positive.
    """
    return operand("polygamma", input).polygamma(n)


def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Any) -> bool:
    """Whether the dtype is a floating point type."""
    return operand("is_floating_point", input).dtype.is_floating_point


def is_complex(input: Any) -> bool:
    """Whether the dtype is complex."""
    return operand("is_complex", input).dtype.is_complex


def real(input: Any) -> Tensor:
    """The real part; a real tensor is its own."""
    return operand("real", input).real


def imag(input: Any) -> Tensor:
    """The imaginary part of a complex tensor. Real ones raise TypeError."""
    return operand("imag", input).imag


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid: tensor `i` holds the `i`-th coordinate of every point.

    Args:
        tensors: the coordinates along each axis, vectors or numbers; or one list of them.
        indexing: `"ij"` puts the first along the first axis, `"xy"` exchanges the first two axes.
    """
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    vectors = [t.reshape(-1) for t in operands("meshgrid", tensors)]
    shape = [t.numel() for t in vectors]
    grid = [
        t.reshape([-1 if k == i else 1 for k in range(len(vectors))]).expand(shape)
        for i, t in enumerate(vectors)
    ]
    return tuple(t.transpose(0, 1) for t in grid) if indexing == "xy" and len(grid) > 1 else tuple(grid)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """All tensors, expanded to their common shape."""
    parts = operands("broadcast_tensors", tensors)
    shape = broadcast_shapes(*[tuple(t.shape) for t in parts])
    return tuple(t.expand(shape) for t in parts)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The common shape of operands of these shapes, each a sequence of lengths or the length of a vector."""
    shapes = tuple((s,) if isinstance(s, builtins.int) else tuple(s) for s in shapes)
    rank = builtins.max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for i, d in enumerate(s, rank - len(s)):
            if out[i] == 1:
                out[i] = d
            elif d not in (1, out[i]):
                raise _core.ShapeError(f"{called()}: shapes {', '.join(map(str, shapes))} do not broadcast")
    return tuple(out)


def cat(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Tensor | None = None) -> Tensor:
    """Tensors joined along `dim`; their shapes agree on all other axes. A copy.

    Vectors without elements join anything, as in PyTorch.

    Raises:
        ShapeError: shapes that do not fit.
    """
    result = _core.cat(tensors, dim, axis=axis)
    return result if out is None else _store("cat", out, result)


def vstack(tensors: Any) -> Tensor:
    """Tensors joined along the first axis; vectors become rows."""
    return _core.cat([t if t.ndim > 1 else t.reshape(1, -1) for t in operands("vstack", tensors)], 0)


def hstack(tensors: Any) -> Tensor:
    """Tensors joined along the second axis, vectors along their only one."""
    parts = [t if t.ndim > 0 else t.reshape(1) for t in operands("hstack", tensors)]
    return _core.cat(parts, 0 if not parts or parts[0].ndim == 1 else 1)


def seed() -> int:
    """Starts the default random stream over with a seed that the system picks; returns it."""
    return _core._seed()


def initial_seed() -> int:
    """The seed of the default random stream: of the last `manual_seed` or `seed`,
    at first one that the system gave.
    """
    return _core.get_rng_state()[0]


def bernoulli(input: Any, p: float | None = None) -> Tensor:
    """1 with the probability that each element gives (or with probability `p`), else 0."""
    input = operand("bernoulli", input)
    return input.bernoulli() if p is None else _core.full_like(input, p).bernoulli()


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products in Einstein's notation, as in NumPy; see `wengert._einsum`."""
    from wengert._einsum import einsum as implementation

    return implementation(equation, *operands)


row_stack = vstack
tensordot = _tensordot.tensordot

_OWN = [
    *(
        "bernoulli",
        "broadcast_shapes",
        "broadcast_tensors",
        "cat",
        "einsum",
        "hstack",
        "imag",
        "initial_seed",
        "is_complex",
        "is_floating_point",
    ),
    *(
        "is_tensor",
        "meshgrid",
        "numel",
        "permute",
        "polygamma",
        "real",
        "reshape",
        "row_stack",
        "seed",
        "tensordot",
        "vstack",
    ),
]
# Functions of the families that are no methods; the others follow from their methods.
_COMPOSED = {n: getattr(f, n) for f in composed.FAMILIES for n in f.__all__ if not hasattr(Tensor, n)}
_saved = {name: globals()[name] for name in _OWN} | _COMPOSED
__all__ = sorted({*_install(), *_saved})
globals().update(_saved)
