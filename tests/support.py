"""What the walks over `op_samples.py` share: drawing inputs, laying them out in memory, comparing,
differencing.

Inputs are described, not stored: a `Case` holds shapes and domains, and `case.sample(rng)` makes as many
independent sets of values as a test needs (one per batch element, for instance). Hypothesis draws the shapes,
the attributes and the seed of the values; `random_source` does the same without hypothesis, for processes
that only replay.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import ml_dtypes
import numpy as np
import wengert as wg
from hypothesis import settings, strategies as st

Array = np.ndarray[Any, Any]
Tensor = wg.Tensor

FLOATS: dict[str, Any] = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}
# Relative to the largest reference value: a few units in the last place of each type.
TOLERANCE = {"float64": 1e-12, "float32": 4e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
LAYOUTS = ("contiguous", "permuted", "sliced", "negative", "broadcast")


# ---- domains: where the values of an operand come from -------------------------------------------


class Domain(Protocol):
    """Makes values for an operand."""

    @property
    def real(self) -> bool:
        """Whether the values are real numbers, which have derivatives."""

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Values of this shape."""


@dataclass(frozen=True)
class Real:
    """Real numbers in [low, high], at least `gap` away from the points in `avoid` (kinks and poles)."""

    low: float = -2.0
    high: float = 2.0
    avoid: tuple[float, ...] = ()
    gap: float = 0.05
    real: bool = True

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        x = rng.uniform(self.low, self.high, shape)
        for point in self.avoid:
            x = np.where(np.abs(x - point) < self.gap, point + self.gap * (1 + rng.random(shape)), x)
        return np.asarray(x)


@dataclass(frozen=True)
class Grid:
    """Numbers k * step + offset. Operands with different offsets are never equal; `distinct` forbids ties
    within."""

    step: float = 0.25
    offset: float = 0.0
    steps: int = 8
    distinct: bool = False
    real: bool = True

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        count = int(np.prod(shape))
        if self.distinct:
            k = rng.permutation(count).reshape(shape) - count // 2
        else:
            k = rng.integers(-self.steps, self.steps + 1, shape)
        return np.asarray(k * self.step + self.offset, dtype=np.float64)


@dataclass(frozen=True)
class Integers:
    """Integers in [low, high], of this dtype, without those in `avoid`."""

    low: int
    high: int
    dtype: str = "int64"
    avoid: tuple[int, ...] = ()
    real: bool = False

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        allowed = np.array([k for k in range(self.low, self.high + 1) if k not in self.avoid])
        if allowed.size == 0:
            return np.zeros(shape, self.dtype)
        return np.asarray(rng.choice(allowed, shape)).astype(self.dtype)


@dataclass(frozen=True)
class Truth:
    """Truth values."""

    real: bool = False

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.asarray(rng.random(shape) < 0.5)


@dataclass(frozen=True)
class Arg:
    """One operand: its shape and its domain."""

    shape: tuple[int, ...]
    domain: Domain = field(default_factory=Real)


@dataclass(frozen=True)
class Case:
    """What an operation is called with, up to the values."""

    args: tuple[Arg, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def sample(self, rng: np.random.Generator) -> list[Array]:
        """One set of values: float64, integers or bools."""
        return [arg.domain.sample(rng, arg.shape) for arg in self.args]

    @property
    def real(self) -> list[int]:
        """Positions of the operands that have derivatives."""
        return [i for i, arg in enumerate(self.args) if arg.domain.real]


# ---- sources of choices --------------------------------------------------------------------------


class Source:
    """Makes choices: by hypothesis, which shrinks them, or by a seed."""

    def __init__(self, integer: Callable[[int, int], int], most: int = 4, least: int = 1) -> None:
        self.integer = integer
        self.most = most
        self.least = least

    def choice(self, options: Sequence[Any]) -> Any:
        """One of `options`."""
        return options[self.integer(0, len(options) - 1)]

    def flag(self) -> bool:
        """True or false."""
        return self.integer(0, 1) == 1

    def shape(self, low: int = 0, high: int = 3, *, least: int | None = None) -> tuple[int, ...]:
        """`low` to `high` axes, each at least `least` long (1, or 0 where empty tensors are tested)."""
        least = self.least if least is None else least
        return tuple(self.integer(least, max(least, self.most)) for _ in range(self.integer(low, high)))

    def axis(self, rank: int) -> int:
        """An axis, from either end."""
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int) -> int | tuple[int, ...] | None:
        """All axes, one, or some."""
        kind = self.integer(0, 2)
        if kind == 0 or rank == 0:
            return None
        if kind == 1:
            return self.axis(rank)
        chosen = [i for i in range(rank) if self.flag()] or [0]
        return tuple(i - rank if self.flag() else i for i in chosen)

    def broadcast(self, count: int) -> list[tuple[int, ...]]:
        """Shapes that broadcast together: a common one with axes of length 1 or missing in front."""
        full = self.shape(0, 3)
        shapes = []
        for _ in range(count):
            kept = tuple(1 if self.integer(0, 3) == 0 else d for d in full)
            shapes.append(kept[self.integer(0, len(kept)) :] if self.integer(0, 2) == 0 else kept)
        return shapes


def random_source(seed: int, most: int = 4) -> tuple[Source, np.random.Generator]:
    """A source that needs no hypothesis, and the generator behind it."""
    rng = np.random.default_rng(seed)
    return Source(lambda low, high: int(rng.integers(low, high + 1)), most), rng


@dataclass(frozen=True)
class Drawn:
    """A case with the generator of its values, and a source of further choices."""

    case: Case
    rng: np.random.Generator
    source: Source


def examples(count: int) -> settings:
    """So many examples, or more where the profile asks for a search."""
    return settings(max_examples=count * max(1, settings.default.max_examples // 25))


def drawn(make: Callable[[Source], Case], most: int = 4, least: int = 1) -> st.SearchStrategy[Drawn]:
    """The cases that `make` draws."""

    @st.composite
    def strategy(draw: st.DrawFn) -> Drawn:
        source = Source(lambda low, high: draw(st.integers(low, high)), most, least)
        return Drawn(make(source), np.random.default_rng(draw(st.integers(0, 2**32 - 1))), source)

    return strategy()


# ---- tensors and arrays --------------------------------------------------------------------------


def tensor(x: Array, dtype: str | None = None, device: str = "cpu") -> Tensor:
    """A tensor with the values of `x`; `dtype` applies to floats only."""
    t = wg.tensor(x)
    if dtype is not None and x.dtype.kind == "f":
        t = t.to(getattr(wg, dtype))
    if device != "cpu" and t.dtype == wg.int64:
        t = t.to(wg.int32)
    return t.to(device) if device != "cpu" else t


def laid_out(x: Array, layout: str, dtype: str | None = None, device: str = "cpu") -> tuple[Tensor, Array]:
    """`x` in memory as `layout` says, and the values it has there (`broadcast` repeats the first along an
    axis)."""
    if x.ndim == 0 or layout == "contiguous":
        return tensor(x, dtype, device), x
    if layout == "permuted":
        order = tuple(reversed(range(x.ndim)))
        return tensor(np.ascontiguousarray(x.transpose(order)), dtype, device).permute(*order), x
    if layout == "sliced":
        big = np.zeros([2 * d + 1 for d in x.shape], x.dtype)
        inner = tuple(slice(1, 2 * d + 1, 2) for d in x.shape)
        big[inner] = x
        return tensor(big, dtype, device)[inner], x
    if layout == "negative":
        axes = tuple(range(x.ndim))
        return tensor(np.ascontiguousarray(np.flip(x)), dtype, device).flip(axes), x
    first = x[:1]
    return tensor(np.ascontiguousarray(first), dtype, device).expand(*x.shape), np.broadcast_to(
        first, x.shape
    )


def bits(x: wg.Tensor) -> np.ndarray:
    """What to compare: the numbers, zeros of both signs apart."""
    if x.dtype == wg.bfloat16:
        x = x.float()
    return np.ascontiguousarray(x.numpy()).view(f"u{x.dtype.itemsize}")


def array(t: Any) -> Array:
    """The values of a tensor or number, halves as float32."""
    if not isinstance(t, wg.Tensor):
        return np.asarray(t)
    t = t.detach().cpu()
    if t.dtype in (wg.bfloat16, wg.float16):
        t = t.float()
    return np.array(t.numpy())


def rounded(values: list[Array], dtype: str) -> list[Array]:
    """The numbers that `values` become in `dtype`, in float64."""
    return [array(tensor(v, dtype)).astype(v.dtype) if v.dtype.kind == "f" else v for v in values]


def outputs(y: Any) -> list[Any]:
    """The tensors that an operation returned."""
    if isinstance(y, (tuple, list)):
        return list(itertools.chain.from_iterable(outputs(part) for part in y))
    return [y]


def floats(y: Any) -> list[Tensor]:
    """The outputs that have derivatives."""
    return [t for t in outputs(y) if t.dtype.is_floating_point]


def is_float(x: Array) -> bool:
    """Whether an array holds real numbers."""
    return x.dtype.kind == "f" or x.dtype == ml_dtypes.bfloat16


def assert_near(got: Any, expected: Any, tolerance: float, what: str = "") -> None:
    """Equal shapes, and values within `tolerance` of the largest finite expected magnitude (but at least of
    1)."""
    got, expected = array(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    if got.size == 0:
        return
    if got.dtype.kind in "biu":
        assert np.array_equal(got, expected), f"{what}: {got} is not {expected}"
        return
    expected = expected.astype(np.float64)
    finite = np.abs(expected[np.isfinite(expected)])
    size = max(1.0, float(finite.max())) if finite.size else 1.0
    np.testing.assert_allclose(
        got.astype(np.float64), expected, rtol=tolerance, atol=tolerance * size, err_msg=what
    )


def dot(a: Sequence[Array], b: Sequence[Array]) -> float:
    """The inner product of two lists of arrays."""
    return float(sum(np.vdot(x, y) for x, y in zip(a, b, strict=True)))


# ---- differences ---------------------------------------------------------------------------------


def directional(
    f: Callable[[list[Array]], list[Array]], x: list[Array], v: list[Array], h: float = 1e-3
) -> list[Array]:
    """The derivative of `f` at `x` along `v`, by central differences of fourth order."""

    def at(t: float) -> list[Array]:
        return f([a + t * b for a, b in zip(x, v, strict=True)])

    near = zip(at(h), at(-h), at(2 * h), at(-2 * h), strict=True)
    return [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in near]


class Function:
    """An operation as a function of its real operands alone, the others held fixed."""

    def __init__(self, fn: Callable[..., Any], case: Case, values: list[Array], wrt: Sequence[int]) -> None:
        self.fn, self.case, self.wrt = fn, case, list(wrt)
        self.fixed = [tensor(v) for v in values]
        self.x = [values[i] for i in self.wrt]

    def tensors(self, *real: Tensor) -> list[Tensor]:
        """The float outputs."""
        args = list(self.fixed)
        for i, value in zip(self.wrt, real, strict=True):
            args[i] = value
        return floats(self.fn(*args, **self.case.kwargs))

    def arrays(self, real: list[Array]) -> list[Array]:
        """The float outputs as arrays."""
        return [array(y) for y in self.tensors(*[wg.tensor(x) for x in real])]

    def point(self) -> tuple[Tensor, ...]:
        """The real operands."""
        return tuple(wg.tensor(x) for x in self.x)

    def cotangents(self, rng: np.random.Generator) -> list[Array]:
        """A random weight per output."""
        return [np.asarray(rng.uniform(-1, 1, y.shape)) for y in self.arrays(self.x)]

    def directions(self, rng: np.random.Generator) -> list[Array]:
        """A random direction per operand."""
        return [np.asarray(rng.uniform(-1, 1, x.shape)) for x in self.x]

    def weighted(self, u: list[Array]) -> Callable[..., Tensor]:
        """`<u, f(x)>`, a scalar function of the operands."""
        weights = [wg.tensor(w) for w in u]

        def scalar(*real: Tensor) -> Tensor:
            terms = [(w * y).sum() for w, y in zip(weights, self.tensors(*real), strict=True)]
            return sum(terms[1:], terms[0])

        return scalar

    def gradient(self, u: list[Array]) -> Callable[[list[Array]], list[Array]]:
        """`J' u` as a function of arrays, by reverse mode."""
        grad = wg.grad(self.weighted(u), argnums=tuple(range(len(self.wrt))))

        def at(real: list[Array]) -> list[Array]:
            return [array(g) for g in grad(*[wg.tensor(x) for x in real])]

        return at


def pairs(items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Every ordered pair."""
    return itertools.product(items, repeat=2)
