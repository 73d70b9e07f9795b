"""What a transformer keeps for backward, to the byte, and what checkpoints make of it."""

import math

import numpy as np
import pytest
import wengert as wg
from behaviours.tape import live, product_flops
from behaviours.transformer import Block, Tower
from wengert import nn
from wengert.utils.checkpoint import checkpoint_sequential

GIB = 2**30


def activations(
    depth: int,
    batch: int,
    sequence: int,
    width: int,
    heads: int,
    dtype: wg.dtype = wg.float32,
    **options: object,
) -> int:
    """Bytes alive between forward and backward, without parameters and input."""
    checkpointed = options.pop("checkpointed", False)
    tower = Tower(depth, width, heads, **options).to(dtype=dtype)
    tower.checkpointed = checkpointed
    x = wg.zeros(batch, sequence, width, dtype=dtype, requires_grad=True)
    return live(lambda: tower(x))


def estimate(depth: int, batch: int, sequence: int, width: int, heads: int, itemsize: int) -> int:
    """The same by hand.

    Per block, in units of batch * sequence * width: the input of each norm (2), the input of qkv (1), q, k, v
    (3), the scaled q (1), the input of the output layer (1), of the up layer (1), of GELU (4) and of the down
    layer (4): 17. The attention probabilities: batch * heads * sequence^2. And two float32 statistics per row
    and norm.
    """
    values = 17 * batch * sequence * width + batch * heads * sequence**2
    return depth * (values * itemsize + 4 * batch * sequence * 4)


@pytest.mark.parametrize("dtype", [wg.float32, wg.float16])
@pytest.mark.parametrize(
    "shape", [(1, 2, 64, 64, 4), (3, 2, 64, 64, 4), (2, 3, 96, 160, 5), (1, 1, 256, 32, 2)]
)
def test_the_estimate_is_exact(shape: tuple[int, int, int, int, int], dtype: wg.dtype) -> None:
    assert activations(*shape, dtype) == pytest.approx(estimate(*shape, dtype.itemsize), abs=64 * shape[0])


def test_a_gpt2_sized_transformer_by_extrapolation() -> None:
    # Four measured shapes give the coefficients and the numbers that are kept whatever the shape;
    # the shape in question would take 14 GB.
    shapes = [(2, 64, 64, 4), (2, 128, 64, 4), (3, 96, 160, 5), (1, 32, 96, 3)]
    terms = lambda n, s, d, h: [n * s * d, n * h * s * s, n * s, 1]
    measured = [activations(1, *shape, wg.float16) for shape in shapes]
    coefficients = np.linalg.solve(
        np.array([terms(*shape) for shape in shapes], float), np.array(measured, float)
    )
    np.testing.assert_allclose(coefficients[:3], [34, 2, 16], rtol=2e-3)
    assert 0 <= round(coefficients[3], 6) <= 16
    predicted = 12 * float(np.dot(coefficients, terms(8, 2048, 768, 12)))
    assert predicted == pytest.approx(estimate(12, 8, 2048, 768, 12, 2), rel=1e-4)
    assert predicted / GIB == pytest.approx(13.8, abs=0.1)


def test_activations_grow_linearly_in_batch_width_and_depth() -> None:
    # Without the attention matrix, which is the subject below: one head, short sequences.
    base = activations(1, 2, 8, 128, 1)
    assert activations(2, 2, 8, 128, 1) == pytest.approx(2 * base, rel=1e-3)
    assert activations(1, 4, 8, 128, 1) == pytest.approx(2 * base, rel=1e-3)
    assert activations(1, 2, 8, 256, 1) == pytest.approx(2 * base, rel=0.02)
    assert activations(1, 2, 16, 128, 1) == pytest.approx(2 * base, rel=0.02)


def test_the_attention_matrix_grows_with_the_square_and_tiles_do_not() -> None:
    matrix = lambda s: activations(1, 1, s, 32, 8) - activations(1, 1, s, 32, 8, tile=32)
    assert 3.8 < matrix(512) / matrix(256) < 4.1
    tiled = lambda s: activations(1, 1, s, 32, 8, tile=32)
    assert tiled(512) == pytest.approx(2 * tiled(256), rel=0.01)


@pytest.mark.parametrize("dtype", [wg.float32, wg.float16])
@pytest.mark.parametrize("shape", [(1, 2, 64, 64, 4), (2, 3, 96, 160, 5), (1, 1, 256, 32, 2)])
def test_attention_in_one_operation_keeps_one_number_per_query(
    shape: tuple[int, int, int, int, int], dtype: wg.dtype
) -> None:
    # Instead of the probabilities and the scaled queries; its result is the input of the output layer.
    depth, batch, sequence, width, heads = shape
    values = (16 * batch * sequence * width) * dtype.itemsize
    statistics = (4 * batch * sequence + batch * heads * sequence) * 4
    assert activations(*shape, dtype, fused=True) == depth * (values + statistics)


def test_tiles_and_checkpoints_do_not_change_the_gradients() -> None:
    x = wg.randn(2, 32, 16)

    def gradients(**options: object) -> list[wg.Tensor]:
        wg.manual_seed(0)
        checkpointed = options.pop("checkpointed", False)
        tower = Tower(2, 16, 2, **options)
        tower.checkpointed = checkpointed
        tower(x).square().mean().backward()
        return [p.grad for p in tower.parameters()]

    expected = gradients()
    for options in (dict(tile=8), dict(fused=True), dict(checkpointed=True), dict(checkpoint_attention=True)):
        for a, b in zip(gradients(**options), expected):
            assert wg.allclose(a, b, rtol=1e-4, atol=1e-7)


def test_a_checkpoint_per_block_keeps_block_inputs() -> None:
    depth, shape = 6, (2, 64, 64, 4)
    value = 4 * 2 * 64 * 64
    # The input of the first block is the caller's; the output of the last one is there anyway.
    assert activations(depth, *shape, checkpointed=True) == pytest.approx(depth * value, abs=2048)
    assert activations(depth, *shape) > 20 * depth * value


def test_checkpointing_runs_every_block_twice_which_costs_a_third() -> None:
    calls = 0

    class Counted(Block):
        def forward(self, x: wg.Tensor) -> wg.Tensor:
            nonlocal calls
            calls += 1
            return super().forward(x)

    tower, x = Tower(4, 16, 2), wg.randn(1, 8, 16, requires_grad=True)
    tower.blocks = nn.ModuleList([Counted(16, 2) for _ in range(4)])
    loss = tower(x).sum()
    forward = product_flops(loss)
    gradients = wg.autograd.grad(loss, [x, *tower.parameters()], create_graph=True)
    backward = product_flops(*gradients, apart_from=(loss,))
    assert (calls, backward) == (4, 2 * forward)
    calls, tower.checkpointed = 0, True
    tower(x).sum().backward()
    assert calls == 8
    plain, checkpointed = forward + backward, forward * calls / 4 + backward
    assert checkpointed / plain == pytest.approx(4 / 3, rel=1e-12)


def sequential_peak(layers: int, segments: int) -> float:
    """The most bytes alive at any layer's forward or backward, in values, with this many checkpointed
    segments."""
    size, peak = 4096, 0
    start = wg.memory.live_bytes()

    def look(*_: object) -> None:
        nonlocal peak
        peak = max(peak, wg.memory.live_bytes() - start)

    class Layer(nn.Module):
        def forward(self, x: wg.Tensor) -> wg.Tensor:
            y = x.tanh()
            y.register_hook(look)
            look()
            return y

    net = nn.Sequential(*(Layer() for _ in range(layers)))
    x = wg.full((size,), 0.5, requires_grad=True)
    y = net(x) if segments == 0 else checkpoint_sequential(net, segments, x)
    y.sum().backward()
    return peak / (4 * size)


def test_the_square_root_of_the_layers_as_segments() -> None:
    plain = {n: sequential_peak(n, 0) for n in (16, 64, 256)}
    rooted = {n: sequential_peak(n, math.isqrt(n)) for n in (16, 64, 256)}
    assert all(plain[n] >= n for n in plain)
    assert all(rooted[n] <= 2 * math.isqrt(n) + 5 for n in rooted)
    assert rooted[256] / rooted[64] < 2.1
    # Fewer or more segments keep more.
    assert sequential_peak(64, 2) > rooted[64] < sequential_peak(64, 32)


def test_checkpointed_attention_gets_most_of_the_win_at_long_sequences() -> None:
    def share(sequence: int) -> float:
        plain = activations(1, 1, sequence, 32, 4)
        attention = activations(1, 1, sequence, 32, 4, checkpoint_attention=True)
        everything = activations(1, 1, sequence, 32, 4, checkpointed=True)
        return (plain - attention) / (plain - everything)

    assert share(1024) > 0.85 > 0.5 > share(64)
