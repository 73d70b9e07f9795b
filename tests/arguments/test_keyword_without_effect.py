"""Keywords of docs/keywords.md that functions accept: with and without them, the results are the same."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.autograd import functional
from wengert.nn import functional as F
from wengert.utils.checkpoint import checkpoint
from wengert.utils.data import DataLoader

from arguments.rows import Array, Function, near, numbers, run

X = numbers(3, 3)
TIES = np.array([2, 1, 2, 1, 1, 3])
CUBE = lambda x: (x**3).sum()


def halves(x: wg.Tensor, **settings: Any) -> wg.Tensor:
    """A product in half precision, of a parameter that is met twice."""
    with wg.autocast(**{"device_type": "cpu", "dtype": wg.bfloat16, **settings}):
        return (x @ x + x @ x).float()


ACCEPTED: list[tuple[str, Function, Any, dict[str, Any]]] = [
    ("sort", wg.sort, (TIES,), dict(stable=False)),
    ("argsort", wg.argsort, (TIES,), dict(stable=False)),
    ("topk", wg.topk, (X, 2), dict(sorted=False)),
    ("unique", wg.unique, (TIES,), dict(sorted=False)),
    ("isin", wg.isin, (TIES, TIES[:2]), dict(assume_unique=True)),
    ("gumbel_softmax", F.gumbel_softmax, (X,), dict(eps=0.5)),
    ("autocast", halves, (np.float32(X),), dict(cache_enabled=False)),
    ("checkpoint", lambda x, **k: checkpoint(wg.exp, x, **k), (X,), dict(preserve_rng_state=False)),
    ("checkpoint", lambda x, **k: checkpoint(wg.exp, x, **k), (X,), dict(debug=True)),
    ("checkpoint", lambda x, **k: checkpoint(wg.exp, x, **k), (X,), dict(early_stop=False)),
    ("hessian", lambda x, **k: functional.hessian(CUBE, x, **k), (X[0],), dict(vectorize=True)),
    ("jacobian", lambda x, **k: functional.jacobian(CUBE, x, **k), (X[0],), dict(vectorize=True)),
    ("copy_", lambda x, **k: wg.zeros_like(x).copy_(x, **k), (X,), dict(non_blocking=True)),
    ("to", lambda x, **k: x.to("cpu", **k), (X,), dict(non_blocking=True)),
    ("to", lambda x, **k: x.to("cpu", **k), (X,), dict(memory_format=wg.channels_last)),
    ("pin_memory", lambda x, **k: wg.ones(2).pin_memory(**k), (X,), dict(device="gpu")),
    ("cdist", wg.cdist, (X, X), dict(compute_mode="donot_use_mm_for_euclid_dist")),
    ("autocast", halves, (np.float32(X),), dict(device_type="cuda")),
    ("checkpoint", lambda x, **k: checkpoint(wg.exp, x, **k), (X,), dict(determinism_check="none")),
    ("Generator", lambda x, **k: wg.rand(3, generator=wg.Generator(**k)), (X,), dict(device="gpu")),
    ("GradScaler", lambda x, **k: wg.amp.GradScaler(**k).scale(x), (X,), dict(device="cuda")),
    ("DataLoader", lambda x, **k: next(iter(DataLoader(x, **k))), (X,), dict(pin_memory=True)),
    ("DataLoader", lambda x, **k: next(iter(DataLoader(x, **k))), (X,), dict(pin_memory_device="cuda")),
]


@pytest.mark.parametrize(("name", "function", "args", "settings"), ACCEPTED)
def test_the_result_is_the_same(name: str, function: Function, args: Any, settings: dict[str, Any]) -> None:
    plain = run(function, args, {})
    near(run(function, args, settings), [p.detach().numpy() for p in as_parts(plain)])


def as_parts(x: Any) -> list[wg.Tensor]:
    """The tensors of a result."""
    return [x] if isinstance(x, wg.Tensor) else list(x)


def test_every_sort_is_stable() -> None:
    """So the keyword has no effect: equal elements keep their order."""
    x: Array = np.random.default_rng(0).integers(0, 3, 500)
    for stable in (True, False):
        near(wg.sort(wg.tensor(x), stable=stable).indices, np.argsort(x, kind="stable"))
        near(wg.tensor(x).sort(stable=stable, descending=True).indices, np.argsort(-x, kind="stable"))
