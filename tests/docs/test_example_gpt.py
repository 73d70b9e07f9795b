"""The GPT of the examples: it learns, goes on where it was, and shows what the library promises about
modules."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wengert as wg
from programs import PYTORCH, module
from support import array


@pytest.mark.parametrize("fused", [True, False])
def test_gpt_takes_the_same_path_as_in_pytorch(fused: bool) -> None:
    """The losses there are in `pytorch_losses.json`, made by `python tools/torch_losses.py`."""
    losses = module("torch_losses", "tools").gpt_losses(wg, module("gpt"), fused)
    np.testing.assert_allclose(losses, PYTORCH["gpt"], rtol=0, atol=1e-6)


GPT_SHORT = [
    *(
        "--preset",
        "tiny",
        "--steps",
        "60",
        "--every",
        "30",
        "--warmup",
        "10",
        "--bytes",
        "200000",
        "--lr",
        "4e-3",
    ),
    *("--evaluate", "4", "--sample", "0"),
]


def batch(config: Any, rows: int = 4) -> tuple[wg.Tensor, wg.Tensor]:
    """Random bytes, and the bytes that follow them."""
    data = wg.randint(0, config.vocabulary, (rows, config.block + 1))
    return data[:, :-1].contiguous(), data[:, 1:].contiguous()


def tiny(**changes: Any) -> Any:
    """A small model with fixed weights."""
    gpt = module("gpt")
    wg.manual_seed(0)
    return gpt.GPT(gpt.Config(**{"layers": 2, "heads": 2, "width": 16, "block": 8, **changes}))


def gradients(model: Any, seed: int = 1) -> dict[str, np.ndarray]:
    """The gradients of one loss."""
    wg.manual_seed(seed)
    x, y = batch(model.config)
    model.zero_grad()
    model(x, y)[1].backward()
    return {name: array(p.grad) for name, p in model.named_parameters()}


@pytest.mark.parametrize(
    "extra", [[], ["--amp", "bf16"], ["--amp", "f16", "--checkpoint"], ["--accumulate", "2"]]
)
def test_gpt_learns(extra: list[str], tmp_path: Path) -> None:
    trainer = module("gpt").main([*GPT_SHORT, *extra, "--out", str(tmp_path)])
    steps, train, held_out = zip(*trainer.history, strict=True)
    assert steps == (0, 30, 60)
    assert abs(held_out[0] - math.log(256)) < 0.15
    # The entropy of single bytes in these sources is above 3.2; a loss below 3.4 takes more than guessing at
    # random.
    assert max(train[-1], held_out[-1]) < 3.4


def test_gpt_goes_on_where_it_was(tmp_path: Path) -> None:
    gpt = module("gpt")
    first = gpt.main([*GPT_SHORT, "--steps", "20", "--out", str(tmp_path)])
    resumed = gpt.Trainer(gpt.parse([*GPT_SHORT, "--steps", "20", "--resume", str(tmp_path / "gpt.pt")]))
    assert (resumed.step, resumed.history, resumed.config) == (20, first.history, first.config)
    assert len(resumed.losses) == 20
    assert resumed.model.head.weight is resumed.model.transformer.tokens.weight
    wg.manual_seed(7)
    expected = [first.update()[0].item() for _ in range(3)]
    wg.manual_seed(7)
    assert [resumed.update()[0].item() for _ in range(3)] == expected


def test_tied_weights_are_one_tensor() -> None:
    model = tiny()
    head, tokens = model.head.weight, model.transformer.tokens.weight
    assert head is tokens
    names = [name for name, _ in model.named_parameters()]
    assert "head.weight" not in names
    assert sum(p is head for p in model.parameters()) == 1
    state = model.state_dict()
    assert state["head.weight"].data_ptr() == state["transformer.tokens.weight"].data_ptr() == head.data_ptr()
    assert model.parameter_count() == sum(p.numel() for p in model.parameters()) - 8 * 16
    groups = model.configure_optimizers(1e-3, 0.1).param_groups
    assert sum(p is head for group in groups for p in group["params"]) == 1
    # Both uses add to one gradient: the rows of bytes that occur, and all rows by the output.
    assert np.all(np.any(gradients(model)["transformer.tokens.weight"] != 0, axis=1))
    model.to("cpu", wg.float64)
    model.load_state_dict(tiny().state_dict())
    assert model.head.weight is model.transformer.tokens.weight


def test_checkpointed_gradients_are_the_plain_ones() -> None:
    plain, less = tiny(dropout=0.2), tiny(dropout=0.2, checkpoint=True)
    a, b = gradients(plain), gradients(less)
    assert a.keys() == b.keys()
    for name in a:
        assert np.array_equal(a[name], b[name]), name


def test_attention_in_one_call_is_attention_spelled_out() -> None:
    a, b = gradients(tiny()), gradients(tiny(fused=False))
    for name in a:
        np.testing.assert_allclose(a[name], b[name], atol=1e-6, err_msg=name)
    assert "mask" not in " ".join(tiny(fused=False).state_dict())


def test_no_position_sees_what_follows() -> None:
    model = tiny().eval()
    x, _ = batch(model.config, rows=1)
    for cut in (1, 5, 7):
        other = x.clone()
        other[:, cut:] = 255 - other[:, cut:]
        with wg.no_grad():
            # With targets the model returns the logits of every position.
            a, b = model(x, x)[0], model(other, x)[0]
        assert np.array_equal(array(a)[:, :cut], array(b)[:, :cut])
        assert not np.array_equal(array(a)[:, cut], array(b)[:, cut])


def test_generation() -> None:
    model = tiny()
    start = wg.tensor([[100, 101, 102]])
    likeliest = model.generate(start, 12, top_k=1)
    assert likeliest.shape == (1, 15)
    for i in range(3, 15):
        logits, _ = model(likeliest[:, max(0, i - 8) : i])
        assert logits[0, -1].argmax().item() == likeliest[0, i].item()
    wg.manual_seed(2)
    drawn = model.generate(start, 12, temperature=2.0, top_k=50)
    wg.manual_seed(2)
    assert (
        model.generate(start, 12, temperature=2.0, top_k=50).tolist() == drawn.tolist() != likeliest.tolist()
    )


def test_shape_of_gpt2() -> None:
    config = module("gpt").PRESETS["gpt2"]
    # One block of that width stands for the twelve.
    gpt = module("gpt")
    block = gpt.Block(config)
    count = sum(p.numel() for p in block.parameters())
    assert config.layers * count + config.vocabulary * config.width + 2 * config.width == 123_653_376
    assert config.block * config.width == 786_432
