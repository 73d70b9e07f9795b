"""A user's program whose types are known: mypy --strict and pyright check it, and the suite runs it."""

from typing import assert_type

import numpy as np
import wengert as wg
import wengert.numpy as xp
from wengert import nn


def functions() -> None:
    """Functions that follow from methods take arrays and numbers, and give tensors."""
    x = wg.ones(2, 3)
    assert_type(x, wg.Tensor)
    assert_type(wg.exp(x), wg.Tensor)
    assert_type(wg.exp(np.ones(3)), wg.Tensor)
    assert_type(wg.add(x, 2.0, alpha=3.0), wg.Tensor)
    assert_type(wg.sum(x, dim=(0, 1), keepdim=True), wg.Tensor)
    assert_type(wg.matmul(x, x.T, out=wg.empty(2, 2)), wg.Tensor)
    assert_type(wg.allclose(x, x), bool)
    assert_type(wg.numel(x), int)
    assert_type(wg.cat([x, x], dim=1), wg.Tensor)
    assert_type(wg.einsum("ij,kj->ik", x, x), wg.Tensor)
    assert_type(wg.exp_(x), wg.Tensor)
    assert_type(wg.zeros((2, 3), dtype=wg.float64, device="cpu"), wg.Tensor)
    assert_type(wg.arange(0, 1, 0.25), wg.Tensor)
    assert_type(wg.broadcast_shapes((2, 1), (3,)), tuple[int, ...])
    assert_type(wg.split(x, 1), tuple[wg.Tensor, ...])
    assert_type(wg.conv1d(wg.ones(1, 1, 5), wg.ones(1, 1, 3)), wg.Tensor)


def methods() -> None:
    """Methods whose result depends on what is given have one type for each case."""
    x = wg.tensor([[3.0, 1.0], [2.0, 4.0]], requires_grad=True)
    assert_type(x.max(), wg.Tensor)
    assert_type(x.max(0).values, wg.Tensor)
    assert_type(wg.max(x, 0).indices, wg.Tensor)
    assert_type(x.max(x), wg.Tensor)
    values, places = x.sort(descending=True)
    assert_type(values, wg.Tensor)
    assert_type(places, wg.Tensor)
    assert_type(x.topk(1).indices, wg.Tensor)
    assert_type(x.split(1), tuple[wg.Tensor, ...])
    assert_type(x.to(wg.float64), wg.Tensor)
    assert_type(x.to("cpu", wg.float64), wg.Tensor)
    assert_type(x.to(x), wg.Tensor)
    assert_type(x.reshape(-1), wg.Tensor)
    assert_type(x.reshape((2, 2)), wg.Tensor)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.size(), tuple[int, ...])
    assert_type(x.size(0), int)
    assert_type(x.stride(), tuple[int, ...])
    assert_type(x.unique(), wg.Tensor)
    assert_type(x.nonzero(as_tuple=True), tuple[wg.Tensor, ...])
    assert_type(x + 1, wg.Tensor)
    assert_type(2 ** x.detach(), wg.Tensor)
    assert_type(x.add(x, alpha=2), wg.Tensor)
    assert_type(x.norm("fro"), wg.Tensor)
    assert_type(x.add(1j), wg.Tensor)
    assert_type(x == x, wg.Tensor)
    assert_type(x[0, :1], wg.Tensor)
    assert_type(len(x), int)
    assert_type(x.requires_grad, bool)
    assert_type(x.clone().mul_(2), wg.Tensor)
    x.sum().backward()
    assert_type(x.grad, wg.Tensor | None)
    for row in x:
        assert_type(row, wg.Tensor)


def standard() -> None:
    """The namespace of the array API standard."""
    x = xp.linspace(0, 1, 5)
    assert_type(xp.sin(x), wg.Tensor)
    assert_type(xp.add(x, 1), wg.Tensor)
    assert_type(xp.sum(x), wg.Tensor)
    assert_type(xp.asarray([1.0], dtype=xp.float64), wg.Tensor)
    assert_type(xp.linalg.vector_norm(x), wg.Tensor)


def transforms() -> None:
    """Transforms keep the parameters of what they transform."""

    def loss(w: wg.Tensor, scale: float) -> wg.Tensor:
        return (w * w).sum() * scale

    assert_type(wg.value_and_grad(loss)(wg.ones(3), 2.0)[0], wg.Tensor)
    assert_type(wg.grad(loss)(wg.ones(3), 2.0), wg.Tensor)
    assert_type(wg.vmap(loss, in_dims=(0, None))(wg.ones(2, 3), 2.0), wg.Tensor)
    assert_type(wg.jvp(wg.sin, (wg.ones(3),), (wg.ones(3),)), tuple[wg.Tensor, wg.Tensor])
    y, pullback = wg.vjp(wg.sin, wg.ones(3))
    assert_type(y, wg.Tensor)
    pullback(y)


def control() -> None:
    """Branches, loops and scans have the types of what their functions take and return."""
    x = wg.ones(3)

    def step(carry: wg.Tensor, row: wg.Tensor) -> tuple[wg.Tensor, dict[str, wg.Tensor]]:
        return carry + row, {"row": row}

    def scaled(x: wg.Tensor, factor: float) -> wg.Tensor:
        return x * factor

    def pair(values: tuple[wg.Tensor, wg.Tensor]) -> tuple[wg.Tensor, wg.Tensor]:
        return values[1], values[0]

    def combine(a: wg.Tensor, b: wg.Tensor) -> wg.Tensor:
        return a + b

    assert_type(wg.cond(x.sum() > 0, scaled, scaled, x, 2.0), wg.Tensor)
    assert_type(wg.cond(True, scaled, scaled, operands=(x, 2.0)), wg.Tensor)
    assert_type(wg.switch(1, [scaled, scaled], x, 2.0), wg.Tensor)
    assert_type(wg.while_loop(lambda c: c[0].sum() < 0, pair, (x, x)), tuple[wg.Tensor, wg.Tensor])
    assert_type(wg.fori_loop(0, 3, combine, wg.ones(())), wg.Tensor)
    assert_type(wg.fori_loop(0, 3, combine, 0.0), wg.Tensor)
    assert_type(wg.scan(step, 0.0, x), tuple[wg.Tensor, dict[str, wg.Tensor]])
    assert_type(wg.scan(step, wg.ones(()), x, save=64)[1], dict[str, wg.Tensor])
    assert_type(wg.map(scaled, x, 2.0, batch_size=2), wg.Tensor)
    assert_type(wg.associative_scan(combine, x), wg.Tensor)
    assert_type(wg.associative_scan(combine, x, 0, True), wg.Tensor)


def act(layer: nn.GELU, x: wg.Tensor) -> wg.Tensor:
    """Every layer is a class that an annotation can name."""
    return layer(x)


def training() -> None:
    """A step of training, its losses and transforms."""
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(True), nn.Linear(3, 1))
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)
    loss = nn.functional.mse_loss(model(wg.ones(4, 2)), wg.zeros(4, 1))
    assert_type(loss, wg.Tensor)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    act(nn.GELU(), wg.ones(2))
    with wg.no_grad():
        assert_type(next(model.parameters()).mean(), wg.Tensor)


if __name__ == "__main__":
    functions()
    methods()
    standard()
    transforms()
    training()
