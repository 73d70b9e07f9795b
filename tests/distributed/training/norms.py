"""Statistics of all ranks, against one batch of all rows."""

import numpy as np
import wengert as wg
import wengert.distributed as dist
from wengert import nn

rank, size = dist.world().rank, dist.world().size

for shape, kind in [((4,), nn.BatchNorm1d), ((4, 5), nn.BatchNorm1d), ((4, 3, 2), nn.BatchNorm2d)]:
    for settings in ({}, {"affine": False}, {"momentum": None}, {"track_running_stats": False}):
        # Ranks may have other numbers of rows.
        rows = [3 + r for r in range(size)]
        drawn = np.random.default_rng(0)
        every = [drawn.normal(3.0, 2.0, (n, *shape)) for n in rows]
        weights = [drawn.normal(size=(n, *shape)) for n in rows]
        plain = kind(4, dtype=wg.float64, **settings)
        sync = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(kind(4, dtype=wg.float64, **settings)))
        assert type(sync[0]) is nn.SyncBatchNorm
        for _ in range(2):
            whole = wg.tensor(np.concatenate(every)).requires_grad_()
            own = wg.tensor(every[rank]).requires_grad_()
            expected, found = plain(whole), sync(own)
            (expected * wg.tensor(np.concatenate(weights))).sum().backward()
            (found * wg.tensor(weights[rank])).sum().backward()
            begin = sum(rows[:rank])
            assert wg.allclose(found, expected[begin : begin + rows[rank]], rtol=1e-12, atol=1e-12)
            assert wg.allclose(own.grad, whole.grad[begin : begin + rows[rank]], rtol=1e-11, atol=1e-12)
        for p, q in zip(plain.buffers(), sync.buffers()):
            assert p.dtype == q.dtype
            assert wg.allclose(p, q, rtol=1e-12), (p, q)
        if settings.get("affine", True):
            # The sum over ranks is the gradient of the whole.
            for p, q in zip(plain.parameters(), sync.parameters()):
                with dist.axis("data"):
                    assert wg.allclose(wg.psum(q.grad, "data"), p.grad, rtol=1e-11, atol=1e-12)
        sync.eval()
        plain.eval()
        if settings.get("track_running_stats", True):
            assert wg.allclose(sync(own), plain(own), rtol=1e-12)
half = nn.SyncBatchNorm(4)(wg.full((2, 4), rank + 1.0).bfloat16())
assert half.dtype == wg.bfloat16
# With one row on each rank the variance is that of all rows.
print(nn.SyncBatchNorm(1, affine=False, eps=1e-12)(wg.full((1, 1), float(rank))).round(decimals=3).item())
