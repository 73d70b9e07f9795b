"""`strict`: derivatives that would be zeros because nothing depends on an input; non-contiguous
cotangents."""

from typing import Any

import pytest
import wengert as wg
from wengert.autograd import functional as AF, gradgradcheck

X, Y = wg.tensor([1.0, 2.0]), wg.tensor([3.0, 5.0])
CALLS: dict[str, Any] = {
    "jacobian": lambda f, x, strict=False: AF.jacobian(f, x, strict=strict),
    "hessian": lambda f, x, strict=False: AF.hessian(f, x, strict=strict),
    "vjp": lambda f, x, strict=False: AF.vjp(f, x, wg.ones(()), strict=strict),
    "jvp": lambda f, x, strict=False: AF.jvp(f, x, x, strict=strict),
    "hvp": lambda f, x, strict=False: AF.hvp(f, x, x, strict=strict),
    "vhp": lambda f, x, strict=False: AF.vhp(f, x, x, strict=strict),
}


@pytest.mark.parametrize("name", CALLS)
def test_strict(name: str) -> None:
    call = CALLS[name]
    good = call(lambda x: (x**3).sum(), X, strict=True)
    assert wg.tree.tree_structure(good) == wg.tree.tree_structure(call(lambda x: (x**3).sum(), X))
    with pytest.raises(RuntimeError, match=rf"{name}: output 0 of shape \(\) does not depend on any input"):
        call(lambda x: Y.sum(), X, strict=True)
    with pytest.raises(RuntimeError, match=rf"{name}: no output depends on input 1 of shape \(2,\)"):
        call(lambda x, y: (x**3).sum(), (X, Y), strict=True)
    call(lambda x, y: (x**3).sum() + (y**2).sum(), (X, Y), strict=True)
    if name != "hessian":
        call(lambda x: Y.sum(), X)


def test_forward_mode() -> None:
    f = lambda x: (x.sum(), Y)
    with pytest.raises(RuntimeError, match=r"jvp: output 1 of shape \(2,\) does not depend on any input"):
        wg.jvp(f, (X,), (X,), strict=True)
    assert wg.jvp(f, (X,), (X,))[1][1].tolist() == [0, 0]
    value, tangent, aux = wg.func.jvp(f, (X,), (X,), has_aux=True, strict=True)
    assert (value.item(), tangent.item()) == (3, 3)
    assert aux is not None
    assert wg.jvp(lambda x, y: x * 2, (X, Y), (X, Y), strict=True)[1].tolist() == [2, 4]
    assert wg.grad(lambda x: wg.jvp(lambda x: x**2, (x,), (X,), strict=True)[1].sum())(X).tolist() == [2, 4]


def test_cotangents_apart_in_memory() -> None:
    seen: list[bool] = []

    class Square(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
            seen.append(g.is_contiguous())
            return 2 * g * ctx.saved_tensors[0]

    x = wg.tensor([0.5, 1.5, 2.0], dtype=wg.float64)
    assert gradgradcheck(Square.apply, x, gen_non_contig_grad_outputs=True)
    assert not all(seen)
    seen.clear()
    assert gradgradcheck(Square.apply, x)
    assert all(seen)
