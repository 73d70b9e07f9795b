"""Branches, loops and scans of tensors on a GPU: what they are on the CPU, up to the kernels' rounding."""

from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg
from support import array, assert_near

pytestmark = pytest.mark.gpu

X = wg.tensor([4.0, 0.0, -1.0, 2.5])
N = wg.tensor([0, 2, 4, 1], dtype=wg.int32)
root = lambda x: wg.cond(x > 0, wg.sqrt, wg.zeros_like, x)
halved = lambda x: wg.while_loop(lambda x: x > 1, lambda x: x / 2, x)
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "cond": lambda x, n: (wg.vmap(root)(x), wg.vmap(wg.grad(root))(x), wg.cond(x[0] > 1, wg.sin, wg.cos, x)),
    "switch": lambda x, n: wg.vmap(lambda n, x: wg.switch(n, [wg.sin, wg.cos], x))(n, x),
    "while_loop": lambda x, n: (wg.vmap(halved)(x), wg.vmap(wg.grad(halved))(x), halved(x[0])),
    "fori_loop": lambda x, n: (
        wg.vmap(lambda n: wg.fori_loop(0, n, lambda i, c: c + x[i], 0.0))(n),
        wg.fori_loop(0, 4, lambda i, c: c + x[i] * i, 0),
    ),
    "scan": lambda x, n: (
        wg.scan(lambda c, x: (c * x + 1, c), 0.5, x, reverse=True),
        wg.grad(lambda x: wg.scan(lambda c, x: ((c + x).sin(), c), x[0], x, save=8)[0])(x),
    ),
    "map": lambda x, n: (wg.map(wg.sin, x), wg.map(wg.sin, x, batch_size=3)),
    "associative_scan": lambda x, n: (wg.associative_scan(wg.add, x), wg.associative_scan(wg.mul, x, True)),
    "program": lambda x, n: wg.jit(wg.vmap(wg.grad(root)))(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gpu_gives_what_the_cpu_gives(name: str) -> None:
    got, want = (wg.tree.leaves(PROGRAMS[name](X.to(place), N.to(place))) for place in ("gpu", "cpu"))
    for a, b in zip(got, want, strict=True):
        assert a.is_gpu
        assert a.dtype == b.dtype
        assert_near(a, array(b), 1e-6, name)


def test_a_carry_does_not_change_its_device() -> None:
    x = X.to("gpu")
    with pytest.raises(
        ValueError, match=r"the carry was wengert.float32 of shape \(\) on cpu, after a step it is "
    ):
        wg.scan(lambda c, x: (c + x, None), wg.tensor(0.0), x)
