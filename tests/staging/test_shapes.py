"""`eval_shape`: shapes and dtypes of results without their values."""

import pickle
from typing import Any

import numpy as np
import pytest
import wengert as wg
from samples.op_samples import SAMPLES
from samples.sample import OpSample
from support import outputs, random_source
from wengert import nn
from wengert.jit import ShapeDtypeStruct

HUGE = 1_000_000


def huge(*shape: int, dtype: Any = wg.float32) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype)


def kinds(values: Any) -> Any:
    return [(tuple(y.shape), y.dtype) for y in values]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.vmap and s.name != "istft"], ids=str)
def test_records(sample: OpSample, dtype: str) -> None:
    """Every operation, and its gradients, beside what it computes; `istft` looks at sums of its window."""
    if dtype not in sample.dtypes:
        pytest.skip("not for this dtype")
    source, rng = random_source(3)
    case = sample.case(source)
    values = [wg.as_tensor(v) for v in case.sample(rng)]
    tensors = [v.to(getattr(wg, dtype)) if v.dtype == wg.float64 else v for v in values]
    for x in tensors:
        if x.is_floating_point():
            x.requires_grad_()

    def run(*given: Any) -> list[Any]:
        found = outputs(sample.fn(*given, **case.kwargs))
        roots = [y for y in found if y.requires_grad]
        inputs = [x for x in given if x.requires_grad]
        if roots and inputs:
            slopes = wg.autograd.grad(roots, inputs, [wg.ones_like(y) for y in roots], allow_unused=True)
            found += [g for g in slopes if g is not None]
        return found

    assert kinds(wg.eval_shape(run, *tensors)) == kinds(run(*tensors))


def test_of_what_fits_in_no_memory() -> None:
    x, w = huge(HUGE, HUGE), huge(HUGE, 3 * HUGE, dtype=wg.float32)
    wg.memory.reset_peak()
    before = wg.memory.live_bytes()

    def f(x: Any, w: Any) -> Any:
        y = (x @ w).relu().reshape(3, HUGE, HUGE)
        z = wg.cat([y[:1], y.mT.exp()[1:]], 0)
        return z.softmax(-1), z.sum(1), z.argmax(0), (z > 0).all(), wg.zeros(HUGE, HUGE), wg.rand(HUGE, HUGE)

    found = wg.eval_shape(f, x, w)
    assert kinds(found) == [
        ((3, HUGE, HUGE), wg.float32),
        ((3, HUGE), wg.float32),
        ((HUGE, HUGE), wg.int64),
        ((), wg.bool),
        ((HUGE, HUGE), wg.float32),
        ((HUGE, HUGE), wg.float32),
    ]
    assert wg.memory.peak_bytes() - before < 100_000


def test_transforms_inside() -> None:
    x = huge(HUGE, HUGE)
    f = lambda x: (x.sin() * x).mean()
    assert wg.eval_shape(wg.grad(f), x) == x
    assert wg.eval_shape(wg.vmap(wg.grad(f)), x) == x
    assert wg.eval_shape(lambda x: wg.jvp(f, (x,), (x,)), x) == (huge(), huge())
    assert wg.eval_shape(wg.jacrev(lambda x: x.sum(0)), huge(3, 4)) == huge(4, 3, 4)
    assert wg.eval_shape(wg.hessian(f), huge(5)) == huge(5, 5)
    assert wg.eval_shape(wg.jit(wg.grad(wg.jit(f))), x) == x


def test_modules_and_steps_of_training() -> None:
    wg.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.2), nn.BatchNorm1d(16), nn.Linear(16, 4)
    )
    optimizer = wg.optim.Adam(model.parameters())
    model(wg.randn(3, 8)).sum().backward()
    before = [x.detach().clone() for x in (*model.parameters(), *model.buffers())]
    slopes = [p.grad.clone() for p in model.parameters()]
    places = [p.grad.data_ptr() for p in model.parameters()]
    state = wg.get_rng_state()

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss, [p.grad for p in model.parameters()]

    loss, found = wg.eval_shape(step, huge(HUGE * 100, 8), huge(HUGE * 100, dtype=wg.int64))
    assert loss == huge()
    assert found == [huge(*p.shape) for p in model.parameters()]
    # Nothing has changed.
    for x, y in zip((*model.parameters(), *model.buffers()), before):
        assert wg.equal(x, y)
    assert all(wg.equal(p.grad, g) for p, g in zip(model.parameters(), slopes))
    assert [p.grad.data_ptr() for p in model.parameters()] == places
    assert wg.get_rng_state() == state


def test_attention_and_embeddings() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    embed = nn.Embedding(100, 16)
    found = wg.eval_shape(lambda i: layer(embed(i)), huge(HUGE, 7, dtype=wg.int64))
    assert found == huge(HUGE, 7, 16)


def test_writes_in_place() -> None:
    x = huge(HUGE, HUGE)

    def f(x: Any) -> Any:
        y = x.add_(1).clone()
        y[0] = 3
        y[:, 1] *= 2
        y[y > 2] = 0
        return y, x.t_() if hasattr(x, "t_") else x.T

    assert wg.eval_shape(f, x) == (x, x)
    outside = wg.ones(3)
    assert wg.eval_shape(lambda x: outside.add_(x), huge(3)) == huge(3)
    assert outside.tolist() == [1, 1, 1]


def test_decisions_raise() -> None:
    def branch(x: Any) -> Any:
        if x.sum() > 0:  # here
            return x
        return -x

    line = branch.__code__.co_firstlineno + 1
    with pytest.raises(TypeError, match=rf"eval_shape: bool\(\) needs .* at .*test_shapes\.py:{line}, and"):
        wg.eval_shape(branch, huge(HUGE))
    for f in (
        lambda x: x[0, 0].item(),
        lambda x: x[0].tolist(),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: float(x[0, 0]),
        lambda x: range(int(x[0, 0].long())),
        lambda x: x[0].numpy(),
        lambda x: x[0].unique(),
    ):
        with pytest.raises(TypeError, match="needs the values of a tensor"):
            wg.eval_shape(f, huge(HUGE, HUGE))
    assert wg.eval_shape(lambda x: x[x[0, 0].long()], huge(HUGE, HUGE)) == huge(HUGE)
    # Values that are there may be read.
    assert wg.eval_shape(lambda x: x * wg.tensor([1, 2])[1].item(), huge(3)) == huge(3)
    assert wg.eval_shape(lambda x: x.std() + x.norm() + x.var(), huge(HUGE, HUGE)) == huge()


def test_the_mode_ends_with_the_call() -> None:
    with pytest.raises(ZeroDivisionError):
        wg.eval_shape(lambda x: 1 / 0, huge(3))
    assert (wg.ones(2) + 1).tolist() == [2, 2]
    assert np.asarray(wg.arange(3)).tolist() == [0, 1, 2]


def test_inside_of_a_jitted_function() -> None:
    @wg.jit
    def f(x: Any) -> Any:
        kind = wg.eval_shape(lambda x: x.sum(0), x)
        return x * kind.shape[0]

    for i in range(3):
        assert (f(wg.ones(2, 3) * i)).tolist() == [[3.0 * i] * 3] * 2


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: wg.allclose(x, x),
        lambda x: wg.equal(x, x),
        lambda x: 0.0 in x,
        lambda x: x[: x.argmax()],
        lambda x: complex(x.sum()),
        lambda x: f"{x.sum():.2f}",
        lambda x: x.sum().is_nonzero(),
        lambda x: np.asarray(x),
        lambda x: pickle.dumps(x),
    ],
)
def test_whatever_asks_for_a_value_is_told(ask):
    with pytest.raises(TypeError, match=r"needs the values of a tensor at .*test_shapes\.py:\d+"):
        wg.eval_shape(ask, wg.jit.ShapeDtypeStruct((3,), wg.float32))


def test_optimisers_schedules_and_modules_stay_what_they_were():
    def losses(asks):
        wg.manual_seed(0)
        model = wg.nn.utils.spectral_norm(wg.nn.Linear(4, 2))
        optimizer = wg.optim.Adam(model.parameters(), lr=0.1)
        schedule = wg.optim.lr_scheduler.StepLR(optimizer, 2)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            schedule.step()
            return loss

        found = []
        for _ in range(5):
            for _ in range(asks):
                assert wg.eval_shape(step, wg.jit.ShapeDtypeStruct((8, 4), wg.float32)).shape == ()
            found.append(step(wg.ones(8, 4)).item())
        return found

    assert losses(2) == losses(0)


def test_inside_of_a_jitted_function_it_is_a_part_of_the_program():
    kind = wg.jit.ShapeDtypeStruct((3,), wg.float32)
    f = wg.jit(lambda x: x + wg.ones(wg.eval_shape(lambda y: y * 2, kind).shape))
    for _ in range(2):
        assert f(wg.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert (f.traces, f.why()) == (1, [])
