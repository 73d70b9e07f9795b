"""The examples on a GPU: the same losses as on the CPU, and sorting and drawing."""

import numpy as np
import pytest
import wengert as wg
from programs import module
from support import array

GPU = "gpu"


def losses_of_gpt(device: str) -> list[float]:
    """Six steps of a small GPT with fixed weights and data."""
    gpt = module("gpt")
    rng = np.random.default_rng(0)
    model = gpt.GPT(gpt.Config(layers=2, heads=2, width=32, block=16))
    fill = module("torch_losses", "tools").fill
    fill(wg, model, lambda name, shape: rng.normal(0, 0.05, shape) + ("norm" in name and "weight" in name))
    model.to(device)
    optimizer = model.configure_optimizers(3e-3, 0.1)
    dtype = wg.int32 if device == GPU else wg.int64
    losses = []
    for batch in rng.integers(0, 256, (6, 4, 17)):
        x, y = (wg.tensor(part, dtype=dtype).to(device) for part in (batch[:, :-1], batch[:, 1:]))
        _, loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        wg.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_gpt_learns_as_on_the_cpu() -> None:
    np.testing.assert_allclose(losses_of_gpt(GPU), losses_of_gpt("cpu"), rtol=1e-4)


def test_gpt_writes_on_a_gpu() -> None:
    gpt = module("gpt")
    wg.manual_seed(0)
    model = gpt.GPT(gpt.Config(layers=1, heads=2, width=16, block=8))
    start = wg.tensor([[100, 101, 102]], dtype=wg.int32)
    on_cpu = model.generate(start.long(), 8, top_k=1)
    assert model.to(GPU).generate(start.to(GPU), 8, top_k=1).tolist() == on_cpu.tolist()


def test_dqn_updates_as_on_the_cpu() -> None:
    dqn = module("dqn")
    values = []
    for device in ("cpu", GPU):
        learner = dqn.Learner(dqn.parse(["--batch", "8", "--sync", "2", "--device", device]))
        for i in range(20):
            learner.memory.add(i, i % 4, -1.0, i + 1, float(i % 5 == 0))
        for _ in range(5):
            learner.update()
        values.append(learner.values())
    np.testing.assert_allclose(*values, atol=1e-5)


def test_sorting_and_drawing() -> None:
    x = wg.tensor(np.random.default_rng(0).normal(size=(5, 9)).astype(np.float32))
    here = x.to(GPU).requires_grad_()
    values, indices = here.topk(3)
    assert (values.device.type, indices.device.type, indices.dtype) == ("gpu", "gpu", wg.int32)
    assert indices.tolist() == x.topk(3).indices.tolist()
    values.sum().backward()
    assert array(here.grad.cpu()).sum() == pytest.approx(15)
    wg.manual_seed(3)
    on_cpu = wg.multinomial(x.softmax(-1), 4)
    wg.manual_seed(3)
    on_gpu = wg.multinomial(x.to(GPU).softmax(-1), 4)
    assert on_gpu.dtype == wg.int32
    assert on_gpu.tolist() == on_cpu.tolist()
    assert wg.multinomial(x.to(GPU).softmax(-1), 6, replacement=True).shape == (5, 6)


def test_files_remember_the_device(tmp_path) -> None:
    wg.save({"x": wg.ones(2, device=GPU)}, tmp_path / "x.pt")
    assert wg.load(tmp_path / "x.pt")["x"].device.type == "gpu"
    assert wg.load(tmp_path / "x.pt", map_location="cpu")["x"].device.type == "cpu"
