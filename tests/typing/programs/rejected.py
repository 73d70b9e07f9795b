"""Calls that a type checker must refuse: an `ignore` that nothing needs is an error of its own."""

import wengert as wg

x = wg.ones(2, 3)


def loss(w: wg.Tensor, scale: float) -> wg.Tensor:
    """A function to transform."""
    return w.sum() * scale


def refused() -> None:
    """Never called: each line is wrong."""
    wg.expp(x)  # type: ignore[attr-defined]
    wg.exp("a")  # type: ignore[arg-type]
    wg.exp(x, 1)  # type: ignore[call-arg, arg-type]
    wg.zeros("a")  # type: ignore[arg-type]
    wg.sum(x, dim="a")  # type: ignore[arg-type]
    wg.Linear(2, 3)  # type: ignore[attr-defined]
    x.expp()  # type: ignore[attr-defined]
    x.to(42)  # type: ignore[call-overload]
    x.reshape("a")  # type: ignore[arg-type]
    x.narrow(0, 1.5, 1)  # type: ignore[arg-type]
    x.exp_(1, 2, 3)  # type: ignore[call-arg]
    x.max("a")  # type: ignore[call-overload]
    x.topk("a")  # type: ignore[arg-type]
    x.sum(keepdim="yes")  # type: ignore[arg-type]
    wg.grad(loss)(x, "a")  # type: ignore[arg-type]
    wg.grad(loss)(x)  # type: ignore[call-arg]
    wg.cond(True, wg.sin, wg.cos, "a")  # type: ignore[arg-type]
    wg.scan(loss, x, x)  # type: ignore[arg-type]
    x.grad.sum()  # type: ignore[union-attr]
