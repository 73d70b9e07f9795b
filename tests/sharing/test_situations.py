"""Who shares memory and history with whom is the same in every situation: eager, recorded, inside each
transform, in a checkpoint, and for writes under `no_grad` inside each of them.

Every function of the samples is run in a small program that writes its operand, or its result, in place after
the call. What the program then reads and its derivative must be those of the same program in eager mode,
where memory itself does the sharing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from samples.op_samples import SAMPLES
from samples.sample import OpSample
from support import Function, array, random_source
from wengert import Tensor
from wengert.utils.checkpoint import checkpoint

Array = np.ndarray[Any, Any]
Program = Callable[[Tensor], tuple[Tensor, ...]]
#: What a program read, and its derivative along the direction, if that is asked for.
Found = tuple[list[Array], float | None]

#: Operations whose result is their operand or a view of it, at least for some arguments.
VIEWS = {
    *("reshape", "permute", "transpose", "expand", "slice", "select", "narrow", "diagonal", "squeeze",
        "unsqueeze"),
    *("flatten", "unflatten", "movedim", "contiguous", "cast", "chunk", "split", "unbind", "getitem", "real"),
    *("getitem_index", "atleast_3d", "tensor_split", "split_with_sizes", "hsplit", "vsplit", "dsplit",
        "adjoint"),
}  # fmt: skip


def weights(y: Tensor) -> Tensor:
    """Fixed numbers of a shape."""
    n = max(y.numel(), 1)
    return wg.linspace(0.5, 1.5, n, dtype=y.dtype)[: y.numel()].reshape(y.shape)


def total(outputs: tuple[Tensor, ...]) -> Tensor:
    """One number that depends on all elements."""
    return sum((y * weights(y)).sum() for y in outputs)


# ---- programs ------------------------------------------------------------------------------------


def written(f: Callable[[Tensor], Tensor], which: str, how: str) -> Program:
    """The program that writes the operand or the result of `f`, recorded or not."""

    def program(x: Tensor) -> tuple[Tensor, ...]:
        v = x * 1.0
        y = f(v)
        target = v if which == "operand" else y
        if how == "recorded":
            target.mul_((x * x).sum().to(target.dtype) * 0.25 + 1.0)
        else:
            with wg.no_grad():
                target.mul_(0.5)
        return v, y

    return program


# ---- situations ----------------------------------------------------------------------------------


def eager(program: Program, x: Tensor, t: Tensor) -> Found:
    leaf = x.clone().requires_grad_()
    out = program(leaf)
    total(out).backward()
    return [array(y.detach()) for y in out], float((leaf.grad * t).sum())


def in_grad(program: Program, x: Tensor, t: Tensor) -> Found:
    def f(x: Tensor) -> Any:
        out = program(x)
        return total(out), out

    g, out = wg.grad(f, has_aux=True)(x)
    return [array(y) for y in out], float((g * t).sum())


def in_checkpoint(program: Program, x: Tensor, t: Tensor) -> Found:
    leaf = x.clone().requires_grad_()
    out = checkpoint(program, leaf)
    total(out).backward()
    return [array(y.detach()) for y in out], float((leaf.grad * t).sum())


def in_vmap_of_grad(program: Program, x: Tensor, t: Tensor) -> Found:
    def f(x: Tensor) -> Any:
        out = program(x)
        return total(out), out

    g, out = wg.vmap(wg.grad(f, has_aux=True))(wg.stack([x * 0.75, x]))
    return [array(y[1]) for y in out], float((g[1] * t).sum())


def in_grad_of_vmap(program: Program, x: Tensor, t: Tensor) -> Found:
    def f(x: Tensor) -> Any:
        out = wg.vmap(program)(wg.stack([x * 0.75, x]))
        return total(tuple(y[1] for y in out)), out

    g, out = wg.grad(f, has_aux=True)(x)
    return [array(y[1]) for y in out], float((g * t).sum())


def in_vmap(program: Program, x: Tensor, t: Tensor) -> Found:
    return [array(y[1]) for y in wg.vmap(program)(wg.stack([x * 0.75, x]))], None


def without_recording(program: Program, x: Tensor, t: Tensor) -> Found:
    with wg.no_grad():
        return [array(y) for y in program(x)], None


def in_jvp(program: Program, x: Tensor, t: Tensor) -> Found:
    out, moved = wg.jvp(program, (x,), (t,))
    return [array(y) for y in out], float(total(moved))


def in_vmap_of_jvp(program: Program, x: Tensor, t: Tensor) -> Found:
    f = lambda x, t: wg.jvp(program, (x,), (t,))
    out, moved = wg.vmap(f)(wg.stack([x * 0.75, x]), wg.stack([t, t]))
    return [array(y[1]) for y in out], float(total(tuple(m[1] for m in moved)))


def in_linearize(program: Program, x: Tensor, t: Tensor) -> Found:
    out, push = wg.linearize(program, x)
    return [array(y) for y in out], float(total(push(t)))


#: Those in reverse mode, which a write under `no_grad` does not concern, and those in forward mode,
#: which it does.
REVERSE = [in_grad, in_checkpoint, in_vmap_of_grad, in_grad_of_vmap, in_vmap, without_recording]
FORWARD = [in_vmap_of_jvp, in_linearize]


#: Why eager mode may refuse.
REFUSED = ("share memory", "modified in place")


def same(got: Found, want: Found, what: str) -> None:
    """Compares what two situations found."""
    for y, reference in zip(got[0], want[0], strict=True):
        np.testing.assert_allclose(y, reference, rtol=1e-9, atol=1e-12, err_msg=what)
    if got[1] is not None and want[1] is not None:
        np.testing.assert_allclose(got[1], want[1], rtol=1e-7, atol=1e-9, err_msg=what)


def check(program: Program, x: Tensor, t: Tensor, how: str, what: str, batches: bool = True) -> None:
    """All situations against eager mode, which may refuse the write: then there is nothing to compare."""
    try:
        want = eager(program, x, t)
    except RuntimeError as error:
        assert any(text in str(error) for text in REFUSED), what  # noqa: PT017
        return
    reverse = [s for s in REVERSE if batches or "vmap" not in s.__name__]
    forward = [s for s in FORWARD if batches or "vmap" not in s.__name__]
    for situation in reverse:
        same(situation(program, x, t), want, f"{what} {situation.__name__}")
    pushed = in_jvp(program, x, t)
    same(pushed, (want[0], want[1] if how == "recorded" else None), f"{what} in_jvp")
    for situation in forward:
        same(situation(program, x, t), pushed, f"{what} {situation.__name__}")


# ---- every function of the samples ---------------------------------------------------------------


def drawn(sample: OpSample, seed: int) -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor] | None:
    """A function of one operand, a point and a direction; None for functions
    that have no real operand or result.
    """
    source, rng = random_source(seed)
    case = sample.case(source)
    if not case.real:
        return None
    f = Function(sample.fn, case, case.sample(rng), case.real[:1])
    if not f.tensors(*f.point()):
        return None
    x = f.point()[0]
    return (lambda v: f.tensors(v)[0]), x, wg.tensor(rng.normal(size=tuple(x.shape)))


@pytest.mark.parametrize("how", ["recorded", "no_grad"])
@pytest.mark.parametrize("which", ["operand", "result"])
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_function_shares_what_it_shares_in_eager_mode(sample: OpSample, which: str, how: str) -> None:
    found = drawn(sample, 1)
    if found is None:
        return
    f, x, t = found
    check(written(f, which, how), x, t, how, f"{sample} {which} {how}", sample.vmap)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_results_that_are_no_views_are_copies(sample: OpSample) -> None:
    for seed in range(4):
        found = drawn(sample, seed)
        if found is None or sample.name in VIEWS:
            continue
        f, x, _ = found
        for recorded in (False, True):
            v = x.clone().requires_grad_() * 1.0 if recorded else x.clone()
            y = f(v)
            before = array(y.detach()).copy()
            with wg.no_grad():
                v.mul_(0.5).add_(0.125)
            np.testing.assert_array_equal(array(y.detach()), before, err_msg=f"{sample} recorded={recorded}")


# ---- what returns its operand, or shares its numbers ---------------------------------------------

SHARERS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda v: v.contiguous(),
    "contiguous of a transposed tensor": lambda v: v.T.contiguous(),
    "contiguous of rows": lambda v: v[1:].contiguous(),
    "contiguous of columns": lambda v: v[:, 1:].contiguous(),
    "detach": lambda v: v.detach(),
    "detach of a view": lambda v: v.T[1:].detach(),
    "view of detach": lambda v: v.detach().T[1:],
    "detach twice": lambda v: v[1:].detach()[0].detach(),
    "data": lambda v: v.data,
    "view of data": lambda v: v.data[0],
    "conj": lambda v: v.conj(),
    "real": lambda v: v.real,
    "to": lambda v: v.to(wg.float64),
    "double": lambda v: v.double(),
    "cpu": lambda v: v.cpu(),
    "reshape": lambda v: v.reshape(-1),
    "reshape that copies": lambda v: v.T.reshape(-1),
    "reshape that copies, of detach": lambda v: v.T.detach().reshape(-1),
    "whole": lambda v: v[...],
    "same shape": lambda v: v.expand(v.shape),
    "dropout": lambda v: wg.nn.functional.dropout(v, 0.3, training=False),
    "identity": lambda v: wg.nn.Identity()(v),
    "clone": lambda v: v.clone(),
    "sum over nothing": lambda v: v[:1].sum(0),
    "largest": lambda v: v.max(0).values,
    "largest of one": lambda v: v[0, 0].max(0).values,
    "least of one": lambda v: v[0, 0].min(0).values,
    "product of one": lambda v: v[:1].prod(0),
    "running product of one": lambda v: v[0, 0].cumprod(0),
    "running sum of one": lambda v: v[0, 0].cumsum(0),
    "running log of one": lambda v: v[0, 0].logcumsumexp(0),
    "clamp without limits": lambda v: v.clamp(-1e9, 1e9),
    "as_tensor": wg.as_tensor,
    "asarray": wg.asarray,
    "positive": lambda v: +v,
    "flip of one": lambda v: v[:1].flip(0),
    "roll by nothing": lambda v: v.roll(0, 0),
    "tile once": lambda v: v.tile((1, 1)),
    "repeat once": lambda v: v.repeat(1, 1),
    "pad with nothing": lambda v: wg.nn.functional.pad(v, (0, 0)),
    "concatenated alone": lambda v: wg.cat([v]),
    "first power": lambda v: v.pow(1.0),
    "first matrix power": lambda v: wg.linalg.matrix_power(v[:2, :2], 1),
    "squeeze": lambda v: v.squeeze(),
    "atleast_2d": lambda v: wg.atleast_2d(v),
    "ravel": lambda v: v.ravel(),
    "broadcast": lambda v: wg.broadcast_tensors(v, v)[0],
}


@pytest.mark.parametrize("how", ["recorded", "no_grad"])
@pytest.mark.parametrize("which", ["operand", "result"])
@pytest.mark.parametrize("name", SHARERS)
def test_sharers_share_in_every_situation(name: str, which: str, how: str) -> None:
    rng = np.random.default_rng(0)
    x, t = wg.tensor(rng.uniform(0.5, 1.5, (3, 4))), wg.tensor(rng.normal(size=(3, 4)))
    check(written(SHARERS[name], which, how), x, t, how, f"{name} {which} {how}")
