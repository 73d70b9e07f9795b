"""Arguments under the names that other libraries have, and one that chooses how memory is used."""

from typing import Any

import numpy as np
import wengert as wg
from support import array
from wengert import nn
from wengert.nn import functional as F

RNG = np.random.default_rng(0)


def test_moments_along_an_axis() -> None:
    x = RNG.normal(size=(3, 4))
    for got, f in (
        (wg.std_mean(wg.tensor(x), axis=1, keepdims=True), np.std),
        (wg.var_mean(wg.tensor(x), axis=1, keepdims=True), np.var),
    ):
        np.testing.assert_allclose(array(got[0]), f(x, 1, ddof=1, keepdims=True), rtol=1e-12)
        np.testing.assert_allclose(array(got[1]), x.mean(1, keepdims=True), rtol=1e-12)
    assert tuple(wg.tensor(x).std_mean(axis=(0, 1))[0].shape) == ()


def test_options_of_the_loss_of_a_large_vocabulary(monkeypatch: Any) -> None:
    x, w, target = (
        wg.tensor(RNG.normal(size=(5, 3))),
        wg.tensor(RNG.normal(size=(7, 3))),
        wg.tensor([0, 6, 2, 2, 1]),
    )
    expected = F.linear_cross_entropy(x, w, target)
    sizes: list[int] = []
    from wengert.nn.functional import margins

    cross = margins.cross_entropy
    monkeypatch.setattr(
        margins, "cross_entropy", lambda z, *rest: (sizes.append(z.shape[0]), cross(z, *rest))[1]
    )
    got = F.linear_cross_entropy(x, w, target, options=nn.LinearCrossEntropyOptions(batch_chunk_size=2))
    assert sizes == [2, 2, 1]
    np.testing.assert_allclose(array(got), array(expected), rtol=1e-12)
    sizes.clear()
    F.linear_cross_entropy(
        x, w, target, chunk_size=4, options=nn.LinearCrossEntropyOptions(acc_policy="compact")
    )
    assert sizes == [4, 1]


def cubic(d: Any) -> Any:
    """Keys' kernel with a = -0.75."""
    d = abs(d)
    if d <= 1:
        return 1.25 * d**3 - 2.25 * d**2 + 1
    return -0.75 * d**3 + 3.75 * d**2 - 6 * d + 3 if d < 2 else 0.0


def test_cubic_samples_of_three_axes() -> None:
    image, grid = RNG.normal(size=(1, 2, 3, 4, 5)), RNG.uniform(-1.2, 1.2, size=(1, 2, 1, 2, 3))
    got = array(F.grid_sample(wg.tensor(image), wg.tensor(grid), "bicubic", "border", True))
    for place in np.ndindex(2, 1, 2):
        x, y, z = grid[0][place]
        at = [(v + 1) / 2 * (n - 1) for v, n in ((z, 3), (y, 4), (x, 5))]
        weights = []
        for a, n in zip(at, (3, 4, 5)):
            row = np.zeros(n)
            for k in range(int(np.floor(a)) - 1, int(np.floor(a)) + 3):
                row[min(max(k, 0), n - 1)] += cubic(a - k)
            weights.append(row)
        wanted = np.einsum("cdhw,d,h,w->c", image[0], *weights)
        np.testing.assert_allclose(got[(0, slice(None), *place)], wanted, rtol=1e-10)


def test_conversions_take_their_flags_by_position() -> None:
    x = wg.ones(2)
    assert x.to("cpu", wg.float64, True).dtype == wg.float64
    assert x.to("cpu", wg.float32, True) is x
    assert x.to(wg.float32, True, True) is not x
    assert x.to(wg.ones(1, dtype=wg.int64), False, False).dtype == wg.int64
