"""Checks of derivatives: against central differences, and of forward mode against reverse mode."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wengert import _core
from wengert._caller import warn
from wengert._core import Tensor
from wengert.transforms import jvp, vjp, vmap
from wengert.tree import tree_flatten, tree_unflatten

__all__ = ["GradcheckError", "adjoint_check", "gradcheck", "gradgradcheck"]

Array = np.ndarray[Any, Any]
Flat = Callable[[list[Tensor]], list[Tensor]]
# Relative tolerance of `adjoint_check` by dtype.
ADJOINT = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2, "bfloat16": 2e-1}


class GradcheckError(RuntimeError, AssertionError):
    """A derivative that differs from what it was compared with."""


def _array(x: Tensor) -> Array:
    x = x.detach().cpu()
    return np.array((x.float() if x.dtype == "bfloat16" else x).numpy(), dtype=np.float64)


def _like(values: Array, x: Tensor) -> Tensor:
    return _core.tensor(values.reshape(tuple(x.shape)), dtype=x.dtype).to(x.device)


def _direction(x: Tensor, seed: int) -> Tensor:
    """A fixed direction with no structure, of unit size per element."""
    return _like(np.random.default_rng(seed).standard_normal(x.numel()), x)


def _as_real(x: Tensor) -> Tensor:
    return _core.view_as_real(x) if x.dtype.is_complex else x


class _Problem:
    """A function as one of its moving tensors alone, which gives its outputs that have derivatives.

    Complex tensors move, and come out, as pairs of their real and imaginary parts.
    """

    def __init__(self, function: Callable[..., Any], inputs: Any, caller: str) -> None:
        args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        self.function = function
        self.leaves, self.structure = tree_flatten(args)
        floats = [i for i, x in enumerate(self.leaves) if isinstance(x, Tensor) and x.dtype.is_differentiable]
        asked = [i for i in floats if self.leaves[i].requires_grad]
        double = (_core.float64, _core.complex128)
        self.moving = asked or [i for i in floats if self.leaves[i].dtype in double]
        if not self.moving:
            raise ValueError(
                f"{caller}: no input is a float64 tensor, and none requires a gradient; differences need "
                "double precision"
            )
        self.at = [_as_real(self.leaves[i].detach()) for i in self.moving]

    def __call__(self, values: list[Tensor]) -> list[Tensor]:
        """The outputs that have derivatives, at `values`."""
        full = list(self.leaves)
        for i, value in zip(self.moving, values):
            full[i] = _core.view_as_complex(value) if self.leaves[i].dtype.is_complex else value
        out = tree_flatten(self.function(*tree_unflatten(self.structure, full)))[0]
        return [_as_real(y) for y in out if isinstance(y, Tensor) and y.dtype.is_differentiable]

    def name(self, i: int) -> str:
        """Input `i` among all the leaves that were given."""
        return f"input {self.moving[i]}"


def _column(flat: Flat, at: list[Tensor], steps: list[Array | None], eps: float) -> list[Array]:
    """The derivative of every output along `steps`, by a central difference."""
    sides = []
    for sign in (eps, -eps):
        moved = [x if d is None else _like(_array(x).reshape(-1) + sign * d, x) for x, d in zip(at, steps)]
        sides.append([_array(y).reshape(-1) for y in flat(moved)])
    return [(high - low) / (2 * eps) for high, low in zip(*sides)]


def _units(size: int) -> Iterator[Array]:
    for k in range(size):
        unit = np.zeros(size)
        unit[k] = 1.0
        yield unit


def _compare(
    what: str,
    entry: Callable[[tuple[int, ...]], str],
    analytic: Array,
    numeric: Array,
    atol: float,
    rtol: float,
) -> None:
    """Raises for the worst entry of two Jacobians."""
    wrong = ~np.isclose(analytic, numeric, rtol=rtol, atol=atol)
    if not wrong.any():
        return
    with np.errstate(invalid="ignore"):
        distance = np.nan_to_num(np.abs(analytic - numeric), nan=np.inf)
    at = np.unravel_index(int(np.argmax(np.where(wrong, distance, -1.0))), analytic.shape)
    raise GradcheckError(
        f"gradcheck: {what}: {int(wrong.sum())} of {wrong.size} entries differ; the worst, "
        f"{entry(tuple(int(k) for k in at))}, is analytically {analytic[at]:.8g} and numerically "
        f"{numeric[at]:.8g} (atol {atol:g}, rtol {rtol:g})"
    )


def _index(position: int, x: Tensor) -> str:
    return str(tuple(int(k) for k in np.unravel_index(position, tuple(x.shape)))) if x.ndim else "()"


def _along(y: Tensor, at: tuple[int, ...]) -> str:
    return f"output entry {_index(at[0], y)} along a fixed direction"


class _Check:
    """The parts of one `gradcheck`."""

    def __init__(self, problem: _Problem, eps: float, atol: float, rtol: float) -> None:
        from wengert.transforms import vjp

        self.problem, self.at = problem, problem.at
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.out, self.pullback = vjp(lambda *xs: problem(list(xs)), *self.at)

    def numeric(self) -> list[list[Array]]:
        """Per input and output, the Jacobian (output, input) by differences."""
        jacobians = []
        for i, x in enumerate(self.at):
            none: list[Array | None] = [None] * len(self.at)
            columns = []
            for unit in _units(x.numel()):
                steps = list(none)
                steps[i] = unit
                columns.append(_column(self.problem, self.at, steps, self.eps))
            empty = [np.zeros((y.numel(), 0)) for y in self.out]
            jacobians.append([np.stack(c, -1) for c in zip(*columns)] if columns else empty)
        return jacobians

    def pull(self, o: int, unit: Array) -> list[Array]:
        """The gradients of all inputs for a cotangent of output `o`."""
        seeds = [_core.zeros_like(y) for y in self.out]
        seeds[o] = _like(unit, self.out[o])
        return [_array(g).reshape(-1) for g in self.pullback(seeds)]

    def reverse(self, numeric: list[list[Array]], nondet_tol: float) -> None:
        """Reverse mode, every row of every Jacobian; twice, to see that it gives the same again."""
        for o, y in enumerate(self.out):
            rows = [self.pull(o, unit) for unit in _units(y.numel())]
            for i, x in enumerate(self.at):
                analytic = np.stack([r[i] for r in rows]) if rows else np.zeros((0, x.numel()))
                what = f"reverse mode, {self.problem.name(i)}, output {o}"
                entry = lambda at, x=x, y=y: (
                    f"output entry {_index(at[0], y)} by input entry {_index(at[1], x)}"
                )
                _compare(what, entry, analytic, numeric[i][o], self.atol, self.rtol)
            if rows:
                again = self.pull(o, next(_units(y.numel())))
                if any(np.abs(a - b).max(initial=0.0) > nondet_tol for a, b in zip(rows[0], again)):
                    raise GradcheckError(
                        f"gradcheck: reverse mode of output {o} gives another gradient the second time; a "
                        "function is checked that is the same at every call"
                    )

    def forward(self, numeric: list[list[Array]]) -> None:
        """Forward mode, along one direction in all inputs."""
        from wengert.transforms import jvp

        tangents = [_direction(x, 17 + i) for i, x in enumerate(self.at)]
        _, pushed = jvp(lambda *xs: self.problem(list(xs)), tuple(self.at), tuple(tangents))
        for o, (y, t) in enumerate(zip(self.out, pushed)):
            parts = [numeric[i][o] @ _array(d).reshape(-1) for i, d in enumerate(tangents)]
            total = np.sum(parts, axis=0)
            entry = functools.partial(_along, y)
            _compare(f"forward mode, output {o}", entry, _array(t).reshape(-1), total, self.atol, self.rtol)

    def batched(self) -> None:
        """Reverse mode under vmap, against one cotangent at a time."""
        for o, y in enumerate(self.out):
            if not y.numel():
                continue
            units = _core.tensor(np.eye(y.numel()), dtype=y.dtype).to(y.device)
            together = vmap(functools.partial(self._pull_unit, o))(units)
            single = [self.pull(o, unit) for unit in _units(y.numel())]
            for i, (rows, x) in enumerate(zip(together, self.at)):
                many = _array(rows).reshape(y.numel(), x.numel())
                what = f"vmap of reverse mode, {self.problem.name(i)}, output {o}"
                one = np.stack([row[i] for row in single])
                _compare(what, self._entry(x, y), many, one, self.atol, self.rtol)

    def _pull_unit(self, o: int, unit: Tensor) -> Any:
        seeds = [_core.zeros_like(y) for y in self.out]
        seeds[o] = unit.reshape(tuple(self.out[o].shape))
        return self.pullback(seeds)

    def _entry(self, x: Tensor, y: Tensor) -> Callable[[tuple[int, ...]], str]:
        return lambda at: f"output entry {_index(at[0], y)} by input entry {_index(at[1], x)}"

    def fast(self, reverse: bool, forward: bool) -> None:
        """One number per output: the derivative along a direction, weighted by fixed numbers."""
        from wengert.transforms import jvp

        directions = [_direction(x, 17 + i) for i, x in enumerate(self.at)]
        steps: list[Array | None] = [_array(d).reshape(-1) for d in directions]
        columns = _column(self.problem, self.at, steps, self.eps)
        pushed = None
        if forward:
            _, pushed = jvp(lambda *xs: self.problem(list(xs)), tuple(self.at), tuple(directions))
        for o, y in enumerate(self.out):
            weights = _array(_direction(y, 5 + o)).reshape(-1)
            numeric = np.array([weights @ columns[o]])
            entry = lambda at: "along fixed directions on both sides (fast_mode=False names the entry)"
            if reverse:
                rows = self.pull(o, weights)
                found = sum(float(row @ d) for row, d in zip(rows, steps) if d is not None)
                _compare(f"reverse mode, output {o}", entry, np.array([found]), numeric, self.atol, self.rtol)
            if pushed is not None:
                moved = np.array([weights @ _array(pushed[o]).reshape(-1)])
                _compare(f"forward mode, output {o}", entry, moved, numeric, self.atol, self.rtol)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_batched_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compares derivatives with central differences, as PyTorch's function of this name.

    In tests, use `wengert.testing.gradcheck`, which checks forward mode as well by default.

    Args:
        func: of tensors, to a tree of tensors.
        inputs: one tensor, or a tuple of arguments (trees too). Checked are the inputs that require a
            gradient, or all that are float64 if none does; the others are held fixed.
        eps: the step of the differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: whether a difference raises, instead of giving False.
        nondet_tol: how much reverse mode may differ from itself when it runs again.
        check_batched_grad: check reverse mode under vmap too.
        check_forward_ad: check forward mode too.
        check_backward_ad: check reverse mode.
        fast_mode: compare one number per output, along fixed directions, instead of whole Jacobians.

    Raises:
        GradcheckError: (a RuntimeError) naming input, entry, analytic and numeric value of the worst
            difference.
        ValueError: if no input can be checked.

    Example:
        >>> wg.autograd.gradcheck(lambda x: x.sin() * x, wg.tensor([0.5, 1.0], dtype=wg.float64))
        True
    """
    problem = _Problem(func, inputs, "gradcheck")
    coarse = [problem.name(i) for i, x in enumerate(problem.at) if x.dtype != _core.float64]
    if coarse:
        warn(
            f"gradcheck: {', '.join(coarse)} is not float64; differences in lower precision are good for few "
            f"digits"
        )
    try:
        check = _Check(problem, eps, atol, rtol)
        if fast_mode:
            check.fast(check_backward_ad, check_forward_ad)
        else:
            numeric = check.numeric()
            if check_backward_ad:
                check.reverse(numeric, nondet_tol)
            if check_forward_ad:
                check.forward(numeric)
        if check_batched_grad:
            check.batched()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Applies `gradcheck` to the gradient of a function's outputs, weighted by `grad_outputs`.

    In tests, use `wengert.testing.gradgradcheck`, which checks forward over reverse mode as well.

    Args:
        func: of tensors, to a tree of tensors.
        inputs: as those of `gradcheck`.
        grad_outputs: a tree of one cotangent for each output; by default fixed numbers.
        gen_non_contig_grad_outputs: whether these numbers lie apart in memory.
        check_fwd_over_rev: check forward over reverse mode too.
        check_rev_over_rev: check reverse over reverse mode.
        eps, atol, rtol, raise_exception, nondet_tol, check_batched_grad, fast_mode: as those of `gradcheck`.

    Raises:
        GradcheckError: (a RuntimeError) as `gradcheck`.
        ValueError: if no input can be checked.

    Example:
        >>> wg.autograd.gradgradcheck(lambda x: x**3, wg.tensor([0.5, 1.0], dtype=wg.float64))
        True
    """
    problem = _Problem(func, inputs, "gradgradcheck")
    given = None if grad_outputs is None else tree_flatten(grad_outputs)[0]

    def gradient(*xs: Tensor) -> list[Tensor]:
        out, pullback = vjp(lambda *ys: problem(list(ys)), *xs)
        weights = [_direction(y, 5 + k) for k, y in enumerate(out)] if given is None else given
        if gen_non_contig_grad_outputs and given is None:
            weights = [_core.stack([w, w], -1).select(-1, 0) for w in weights]
        return list(pullback(list(weights)))

    return gradcheck(
        gradient,
        tuple(problem.at),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def adjoint_check(
    func: Callable[..., Any], inputs: Any, *, rtol: float | None = None, raise_exception: bool = True
) -> bool:
    """Checks that reverse and forward mode are transposes: `<u, J v>` equals `<J' u, v>` for fixed `u` and
    `v`.

    It needs no differences, so it works in every floating point dtype and at kinks, and costs one pass of
    each mode.

    Args:
        func: of tensors, to a tree of tensors.
        inputs: one tensor, or a tuple of arguments; which are moved is as in `gradcheck`.
        rtol: tolerance relative to the size of the products; by default 1e-9 for float64, 1e-4 for float32.
        raise_exception: whether a difference raises, instead of giving False.

    Raises:
        GradcheckError: (a RuntimeError) naming both products.

    Example:
        >>> wg.autograd.adjoint_check(lambda x: x.cumsum(0).exp(), wg.tensor([0.5, 1.0], dtype=wg.float64))
        True
    """
    problem = _Problem(func, inputs, "adjoint_check")
    at = problem.at
    v = [_direction(x, 17 + i) for i, x in enumerate(at)]
    out, pullback = vjp(lambda *xs: problem(list(xs)), *at)
    _, pushed = jvp(lambda *xs: problem(list(xs)), tuple(at), tuple(v))
    u = [_direction(y, 5 + o) for o, y in enumerate(out)]
    pulled = pullback(list(u))
    left = [_array(a) * _array(b) for a, b in zip(u, pushed)]
    right = [_array(a) * _array(b) for a, b in zip(pulled, v)]
    products = [float(sum(p.sum() for p in side)) for side in (left, right)]
    size = max(float(sum(np.abs(p).sum() for p in side)) for side in (left, right))
    if rtol is None:
        rtol = max(ADJOINT[str(x.dtype.name)] for x in at)
    if abs(products[0] - products[1]) <= rtol * size:
        return True
    if not raise_exception:
        return False
    raise GradcheckError(
        f"adjoint_check: forward and reverse mode are no transposes: <u, J v> is {products[0]:.10g} and <J' "
        f"u, v> is {products[1]:.10g} (rtol {rtol:g} of {size:.4g})"
    )
