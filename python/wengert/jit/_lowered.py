"""Programs ahead of calls, in JAX's words: `lower`, `compile`, `eval_shape`, `make_graph`."""

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, SupportsIndex

import wengert as wg
from wengert import _core
from wengert._core import Tensor
from wengert.nn.module import Module
from wengert.tree import tree_map

from ._checked import Picture
from ._shown import Program, shown
from ._state import State

__all__ = ["Compiled", "Lowered", "ShapeDtypeStruct", "eval_shape", "make_graph"]


class _Kind(NamedTuple):
    shape: tuple[int, ...]
    dtype: Any


class ShapeDtypeStruct(_Kind):
    """The shape and the dtype of a tensor, without its values.

    Args:
        shape: the sizes of the axes.
        dtype: the dtype.

    Raises:
        TypeError: for a shape that is no tuple or list of integers.
        ValueError: for a size below 0.

    Example:
        >>> wg.jit.ShapeDtypeStruct((2, 3), wg.float32).shape
        (2, 3)
    """

    __slots__ = ()

    def __new__(cls, shape: Iterable[SupportsIndex], dtype: Any) -> "ShapeDtypeStruct":
        """Makes the sizes a tuple of integers."""
        try:
            sizes = tuple(operator.index(size) for size in shape)
        except TypeError:
            raise TypeError(
                f"ShapeDtypeStruct: shape is a tuple of integers, such as (3,), got {shape!r}"
            ) from None
        if any(size < 0 for size in sizes):
            raise ValueError(f"ShapeDtypeStruct: the sizes of a shape are at least 0, got {shape!r}")
        return super().__new__(cls, sizes, dtype)


class Compiled:
    """One program as a function: it runs that program and nothing else."""

    def __init__(self, staged: Any, key: Any, variant: Any, region: list[Any]) -> None:
        self._staged, self._key, self._variant = staged, key, variant
        # The autocast region around the call that the program was made for.
        self._region = region

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program. Inside of another jitted function, and where operations are watched, the function
        itself runs, as part of that.

        Raises:
            TypeError: for arguments of other shapes, dtypes or values than those of the program, and inside
                of a transform.
            RuntimeError: if what the function reads beside them is not what it was, or an operation fails.
        """
        if self._region and self._region == _core._autocast_around():
            return _core._without_autocast(functools.partial(self, *args, **kwargs))
        key, _, tensors = self._staged._key(args, kwargs)
        is_watched = _core._get_debug_modes()
        # What watches operations may have hooks of all modules, with which there is no key.
        if key != self._key and not (is_watched and key is None):
            raise TypeError("jit: this program was made for other arguments, or under other settings")
        if is_watched:
            return self._staged._function(*args, **kwargs)
        outputs = None
        if self._variant.state.is_as_it_was():
            again = functools.partial(self._staged._function, *args, **kwargs)
            outputs, _ = _core._nested(functools.partial(self._variant.run, tensors, again))
        if outputs is None:
            raise RuntimeError(
                "jit: this program does not hold any more: what the function reads or decides by is not what "
                "it was, or an operation fails; call the function itself"
            )
        return self._variant.result(tensors, outputs)


class Lowered:
    """The program of a function for one kind of arguments: what `lower` of a jitted function returns."""

    def __init__(self, staged: Any, key: Any, variant: Any) -> None:
        self._parts = staged, key, variant
        self._region: list[Any] = []
        self._program = shown(staged._function, variant)

    def compile(self) -> Compiled:
        """Returns a function that runs this program, and raises for other arguments.

        Example:
            >>> run = wg.jit(lambda x: x + 1).lower(wg.ones(2)).compile()
            >>> run(wg.zeros(2))
            tensor([1., 1.])
        """
        return Compiled(*self._parts, self._region)

    def _in_region(self, around: list[Any]) -> "Lowered":
        """The same, of a call in an autocast region."""
        self._region = around
        return self

    def as_text(self) -> str:
        """Returns the listing.

        Example:
            >>> wg.jit(lambda x: x + 1).lower(wg.ones(2)).as_text().splitlines()[1]
            '  argument 0: float32[2] = %arg0'
        """
        return str(self._program)

    def cost_analysis(self) -> dict[str, float]:
        """Returns floating point operations and bytes under JAX's names.

        Example:
            >>> wg.jit(lambda x: x + 1).lower(wg.ones(2)).cost_analysis()
            {'flops': 2.0, 'bytes accessed': 20.0}
        """
        total = self._program.cost().total
        return {"flops": float(total.flops), "bytes accessed": float(total.read + total.written)}

    def memory_analysis(self) -> dict[str, int]:
        """Returns the peak of a run, beyond what is held before it, under JAX's name.

        Example:
            >>> wg.jit(lambda x: x + 1).lower(wg.ones(2)).memory_analysis()
            {'peak_memory_in_bytes': 8}
        """
        return {"peak_memory_in_bytes": self._program.memory().peak}


def make_graph(function: Callable[..., Any]) -> Callable[..., Program]:
    """Returns a function that runs `function` once and returns its program, as `jax.make_jaxpr` does.

    Args:
        function: as for `wengert.jit`.

    Raises:
        TypeError: for what cannot be called.
        ValueError: from the function that is returned, if there is no program: the message says why.

    Example:
        >>> wg.make_graph(lambda x: x.exp().sum())(wg.ones(3)).names
        ['exp', 'sum']
    """
    if not callable(function):
        raise TypeError(f"make_graph: a function expected, got {type(function).__name__}")

    def make(*args: Any, **kwargs: Any) -> Program:
        return wg.jit.stage(function).lower(*args, **kwargs)._program

    return make


class _Structure(Picture):
    """What objects hold, without the values of tensors."""

    def _tensor(self, name: str, x: Tensor) -> None:
        pass


def _held(roots: list[Any]) -> _Structure:
    """What the modules, optimisers and the like hold that can be reached from here."""
    state = State(roots, [])
    return _Structure([], [*state.objects, *(x for x in state.reached() if isinstance(x, Module))])


def eval_shape(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Returns the result of `function`, with shapes and dtypes in the place of tensors.

    The function runs, but its operations do not: they make tensors that have a shape and a dtype and no
    memory, however large they are, also inside of `grad`, `vmap` and `jvp`. Writes in place write nothing;
    gradients and random numbers are afterwards what they were, as is what optimisers, schedules and modules
    hold that the function names. What it keeps elsewhere, such as a global or a cache, is a tensor without
    values, which is not to be used; a graph that it walks back is used up. Convolutions, pooling, Fourier
    transforms, `eig` and other operations whose shape no rule says take the time and the memory of their
    result, for zeros.

    Args:
        function: takes and returns trees of tensors.
        args, kwargs: its arguments, with anything that has a `shape` and a `dtype`, such as
            `wengert.jit.ShapeDtypeStruct`, in the place of tensors.

    Raises:
        TypeError: for what cannot be called, for an argument with a shape that is none, and from the function,
            where Python asks for a value (`if x > 0`, `x.item()`, a mask as an index); the message names the
            line.

    Example:
        >>> wg.eval_shape(lambda x: x[:1] @ x.mT[:, :2], wg.jit.ShapeDtypeStruct((4, 3), wg.float32))
        ShapeDtypeStruct(shape=(1, 2), dtype=wengert.float32)
    """
    if not callable(function):
        raise TypeError(f"eval_shape: a function expected, got {type(function).__name__}")

    def is_abstract(x: Any) -> bool:
        return isinstance(x, Tensor) or (hasattr(x, "shape") and hasattr(x, "dtype"))

    def absent(x: Any) -> Any:
        if not is_abstract(x):
            return x
        tensor = _core._absent(ShapeDtypeStruct(x.shape, x.dtype).shape, x.dtype)
        return tensor.requires_grad_() if getattr(x, "requires_grad", False) else tensor

    def kind(x: Any) -> Any:
        return ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, Tensor) else x

    # What the function does to gradients, random numbers and objects is taken back. Inside of a function that
    # is traced, that is the matter of the trace.
    is_traced = _core._is_staging()
    held = None if is_traced else _held([function, args, kwargs])
    args, kwargs = tree_map(absent, (args, kwargs), is_leaf=is_abstract)
    begun = not is_traced and _core._stage_begin([], [])
    try:
        return tree_map(kind, _core._without_values(lambda: function(*args, **kwargs)))
    finally:
        if begun:
            _core._stage_undo()
        if held is not None:
            held.restore()
