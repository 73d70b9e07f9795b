"""Launches of a program on a GPU that become one: side by side, or one behind the other on its elements. The
values are those of eager operations, bit for bit where no compiler contracts them."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor, gpu, nn
from wengert.nn import functional as F

pytestmark = pytest.mark.gpu

IS_SMALL = os.environ.get("WENGERT_GPU_LIMITS") == "small"


def draws(rng: np.random.Generator, *shape: int) -> Tensor:
    return wg.tensor(rng.standard_normal(shape).astype(np.float32)).to("gpu")


def same(a: Any, b: Any) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x.detach().cpu().numpy(), y.detach().cpu().numpy())


def kernels(f: Callable[..., Any], *args: Any) -> list[list[str]]:
    """The kernels of each launch of a program, whose values are those of eager."""
    fresh = lambda: [x.clone() for x in args]
    expected = f(*fresh())
    staged = wg.jit(f)
    for _ in range(4):
        same(staged(*fresh()), expected)
    given = fresh()
    with gpu.profile() as profile:
        found = staged(*given)
    same(found, expected)
    assert staged.traces == 1, staged.why()
    return [launch.kernel.split(" | ") for launch in profile.launches]


def saved(found: list[list[str]]) -> int:
    """How many launches fewer than kernels these are."""
    return sum(map(len, found)) - len(found)


def test_products_of_one_operand_are_one_launch() -> None:
    rng = np.random.default_rng(0)
    x, *w = draws(rng, 40, 24), *(draws(rng, 24, n) for n in (20, 28, 36))
    found = kernels(lambda x, *w: [x @ v for v in w], x, *w)
    assert len(found) == (2 if IS_SMALL else 1)
    assert [kernel for launch in found for kernel in launch] == ["matmul"] * 3


def test_kernels_of_all_kinds_are_one_launch() -> None:
    rng = np.random.default_rng(1)
    x, y, index = draws(rng, 30, 32), draws(rng, 17, 5), wg.tensor([3, 1, 1]).to("gpu")

    def f(x: Tensor, y: Tensor, index: Tensor) -> list[Tensor]:
        rows = [F.softmax(x, -1), F.layer_norm(x, (32,)), x[index], y.sum(0), y.T.contiguous(), y.cumsum(0)]
        return [*rows, x @ x.T, y.sort(0)[0], y.exp(), x.argmax(1)]

    found = kernels(f, x, y, index)
    # Nine or ten depend on nothing, as far as bindings suffice; then rows are taken by index.
    assert saved(found) > (1 if IS_SMALL else 8)


@pytest.mark.parametrize("kept", [False, True])
def test_what_follows_a_product_is_in_its_launch(kept: bool) -> None:
    rng = np.random.default_rng(2)
    x, w, b, r = draws(rng, 33, 20), draws(rng, 24, 20), draws(rng, 24), draws(rng, 33, 24)

    def f(x: Tensor, w: Tensor, b: Tensor, r: Tensor) -> list[Tensor]:
        y = F.linear(x, w, b)
        return [r + F.relu(y), *([y] if kept else [])]

    assert [len(launch) for launch in kernels(f, x, w, b, r)] == [2]


def test_what_follows_a_norm_and_its_gradients() -> None:
    rng = np.random.default_rng(3)
    x, w, r = draws(rng, 9, 32), draws(rng, 32), draws(rng, 9, 32)

    def f(x: Tensor, w: Tensor, r: Tensor) -> list[Tensor]:
        g = wg.func.grad(lambda x: (F.layer_norm(x, (32,), w) * r).sum())(x)
        return [F.layer_norm(x, (32,), w) + r, g + r, (x * r).sum().sqrt().exp()]

    found = kernels(f, x, w, r)
    assert IS_SMALL or any("layer_norm_vjp" in kernel and len(kernel) > 1 for kernel in found)
    found = kernels(lambda x, w, r: [F.rms_norm(x, (32,), w) + r], x, w, r)
    assert IS_SMALL or any("rms_norm" in kernel and len(kernel) > 1 for kernel in found)


def test_numbers_follow_a_sum() -> None:
    x = draws(np.random.default_rng(4), 50, 3)
    found = kernels(lambda x: [x.sum() / 3 + 1], x)
    assert [len(launch) for launch in found] == [2]


def test_gradients_of_parts_are_added_in_chains() -> None:
    rng = np.random.default_rng(9)
    x, w = draws(rng, 6, 5, 12), draws(rng, 6, 5, 4)

    def f(x: Tensor, w: Tensor) -> list[Tensor]:
        def loss(x: Tensor) -> Tensor:
            a, b, c = x.chunk(3, -1)
            return ((a @ b.mT).softmax(-1) @ c * w).sum()

        g = wg.func.grad(loss)(x)
        return [g @ g.mT]

    names = [kernel for launch in kernels(f, x, w) for kernel in launch]
    assert [name for name in names if "pad" in name or "add" in name] == ["pad+add+add"]


def test_gradients_of_parts_that_overlap() -> None:
    rng = np.random.default_rng(11)
    x, w = draws(rng, 6, 5, 12), draws(rng, 6, 5, 4)

    def f(x: Tensor, w: Tensor) -> list[Tensor]:
        def loss(x: Tensor) -> Tensor:
            a, b, c = x.chunk(3, -1)
            return (a * b.sin() * c * w).sum() + (x[2, :, 3:9] * x[:, 1, 1:7].exp()[:5]).sum()

        return [wg.func.grad(loss)(x)]

    assert saved(kernels(f, x, w)) >= (2 if IS_SMALL else 3)


def test_gradients_of_many_parts() -> None:
    x = draws(np.random.default_rng(10), 3, 50)

    def f(x: Tensor) -> list[Tensor]:
        parts = lambda x: sum((k + 1) * v.tanh().prod() for k, v in enumerate(x.split(2, -1)))
        return [wg.func.grad(parts)(x), -wg.cat([x[:, 7:9] * 0, x[1:2, :3].expand(3, 3)], 1)]

    found = kernels(f, x)
    assert saved(found) > (100 if IS_SMALL else 2 * len(found))


def test_an_operand_that_is_read_twice_or_elsewhere() -> None:
    rng = np.random.default_rng(5)
    x, w = draws(rng, 24, 24), draws(rng, 24, 24)

    def f(x: Tensor, w: Tensor) -> list[Tensor]:
        y = x @ w
        z = x @ (w + 1)
        # Squares, a transposed operand, another row of itself, and one that a later product makes.
        return [y * y, y + y.T, y + y[3], y - z, z.exp() @ w, (y * 2).flip(0)]

    # What reads both products element by element follows the later one.
    assert any(launch[:2] == ["matmul", "sub+exp"] for launch in kernels(f, x, w))


def test_writes_keep_their_order() -> None:
    rng = np.random.default_rng(6)
    x, w = draws(rng, 16, 16), draws(rng, 16, 16)

    def f(x: Tensor, w: Tensor) -> list[Tensor]:
        y = x @ w
        before = y.sum(0)
        y.mul_(2)
        y[:, 3:7].add_(x[:, 3:7])
        after = y.sum(0)
        y[2] = before
        z = y @ w
        y.copy_(x)
        return [before, after, y, z, y + z]

    names = kernels(f, x, w)
    assert saved(names) >= 2
    assert [name for launch in names for name in launch if "sum" in name] == ["reduce_sum"] * 2


def test_additions_in_place_are_in_the_launch_of_others() -> None:
    rng = np.random.default_rng(12)
    a, x, w, v = draws(rng, 8, 16), draws(rng, 8, 16), draws(rng, 16, 16), draws(rng, 16, 16)
    # What is added is read again, beside others that have nothing to do with it.
    found = kernels(lambda a, x, w, v: [a.add_(x), x.exp(), w @ v, v @ w, w @ w], a, x, w, v)
    assert IS_SMALL or found == [["combine", "exp", "matmul", "matmul", "matmul"]]
    # It is what a product makes, which others read element by element.
    found = kernels(lambda a, x, w, v: [a.add_(y := x @ w), y * 2, x @ v], a, x, w, v)
    assert IS_SMALL or found == [["matmul", "combine", "mul", "matmul"]]
    # The sum is read by what follows.
    found = kernels(lambda a, x, w, v: [a.add_(x @ w) * 2, a.exp() @ v], a, x, w, v)
    assert found == [["matmul", "combine", "mul+exp"], ["matmul"]]


def test_memory_that_nobody_needs_is_used_again() -> None:
    """The product is not written, as only what follows reads it: its memory serves the next call."""
    rng = np.random.default_rng(14)
    x, w = draws(rng, 32, 32), draws(rng, 32, 32)
    f = wg.jit(lambda x, w: wg.exp(x @ w) * 2)
    for _ in range(5):
        f(x, w)
    made = gpu.memory_stats()["buffers_created"]
    for _ in range(10):
        f(x, w)
    assert gpu.memory_stats()["buffers_created"] == made


def test_more_launches_than_wait_at_once() -> None:
    x = draws(np.random.default_rng(15), 4, 8)

    def f(x: Tensor) -> list[Tensor]:
        first, kept = x * 2, []
        for k in range(150):
            x = x.cumsum(0).flip(1).tanh()
            if k % 40 == 0:
                kept.append(x + first)
        return [x, *kept, first]

    assert len(kernels(f, x)) > 256


def test_memory_that_is_used_again() -> None:
    rng = np.random.default_rng(7)
    x = draws(rng, 64, 64)

    def f(x: Tensor) -> list[Tensor]:
        for k in range(12):
            x = (x @ x.T).tanh() + (x * k).sum(0) / 100
        return [x]

    staged = wg.jit(f)
    for _ in range(4):
        same(staged(x), f(x))
        # Uploads into memory that launches which wait have given back.
        y = [wg.tensor(np.full((64, 64), k, np.float32)).to("gpu") for k in range(30)]
        assert [float(v.sum()) for v in y] == [4096.0 * k for k in range(30)]


def test_an_index_out_of_range_is_reported() -> None:
    x = wg.arange(12.0).to("gpu").reshape(4, 3)
    step = wg.jit(lambda x, i, j: [x[i] + 1, x[j] * 2, x.sum()])
    good, bad = wg.tensor([1, 2]).to("gpu"), wg.tensor([1, 9]).to("gpu")
    for _ in range(4):
        step(x, good, good)
    made = step(x, good, bad)
    with pytest.raises(IndexError, match="index 9 is out of range"):
        made[0].cpu()
    assert step(x, good, good)[0].tolist() == [[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]


def random_program(seed: int) -> int:
    """Runs a random program of kernels of all kinds, whose values are near those of eager; once its launches
    are one where they can be, they are the same bit for bit. Returns how many launches that saved."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([4, 8, 12, 16, 7, 33]))
    given = [draws(rng, n, n) for _ in range(3)]
    unary: list[Callable[[Tensor], Tensor]] = [
        lambda x: F.softmax(x, -1),
        lambda x: F.layer_norm(x, (x.shape[-1],)),
        lambda x: F.rms_norm(x, (x.shape[-1],), x[0], 0.1),
        lambda x: x.tanh(),
        lambda x: F.gelu(x),
        lambda x: x.T.contiguous(),
        lambda x: x - x.mean(),
        lambda x: x / (1 + x.abs().sum(1, keepdim=True)),
        lambda x: x.cumsum(1).sigmoid(),
        lambda x: x.flip(0),
    ]
    binary: list[Callable[[Tensor, Tensor], Tensor]] = [
        lambda x, y: (x @ y).sin(),
        lambda x, y: x @ y.T / 8,
        lambda x, y: x + y,
        lambda x, y: x * y.sigmoid(),
        lambda x, y: wg.where(x > 0, x, y),
        lambda x, y: F.linear(x, y, y[0]).clamp(-2, 2),
    ]
    steps = []
    for count in range(3, 3 + int(rng.integers(6, 18))):
        a, b = (int(k) for k in rng.integers(0, count, 2))
        if rng.random() < 0.5:
            steps.append((unary[rng.integers(len(unary))], a))
        else:
            steps.append((binary[rng.integers(len(binary))], a, b))
    kept = sorted({int(k) for k in rng.integers(3, 3 + len(steps), 3)} | {2 + len(steps)})

    def f(*given: Tensor) -> list[Tensor]:
        values = list(given)
        for rule, *at in steps:
            values.append(rule(*(values[k] for k in at)))
        return [values[k] for k in kept]

    staged = wg.jit(f)

    def launched() -> tuple[list[Tensor], int]:
        with gpu.profile() as profile:
            made = staged(*given)
        return made, len(profile.launches)

    expected = staged(*given)
    (alone, many), _, (merged, few) = launched(), launched(), launched()
    same(alone, merged)
    for a, b in zip(merged, expected, strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), rtol=2e-4, atol=2e-5, err_msg=str(seed))
    return many - few


def test_random_programs() -> None:
    assert sum(random_program(seed) for seed in range(3 if IS_SMALL else 8)) > (5 if IS_SMALL else 20)


def test_a_network_that_learns() -> None:
    def trained(staged: bool) -> list[Tensor]:
        wg.manual_seed(0)
        model = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 8)).to("gpu")
        optimizer = wg.optim.AdamW(model.parameters(), lr=1e-2)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = ((model(x) - x[:, :8]) ** 2).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss.detach()

        run = wg.jit(step) if staged else step
        x = draws(np.random.default_rng(8), 20, 12)
        return [run(x) for _ in range(6)] + [p.detach() for p in model.parameters()]

    for a, b in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), rtol=1e-4, atol=1e-6)


def test_on_a_small_gpu() -> None:
    if IS_SMALL:
        return
    environment = {**os.environ, "WENGERT_GPU_LIMITS": "small"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", __file__]
    command += ["-k", "not network and not small"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:]
