"""The settings of layers that stand for others: losses for their functions, lazy layers for those that they
become."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array
from wengert import Tensor, nn
from wengert.nn import functional as F
from wengert.nn.modules import lazy

RNG = np.random.default_rng(0)


def drawn(*shape: int) -> Tensor:
    return wg.tensor(RNG.uniform(0.1, 0.9, shape))


LOGITS, PROBABLE, SIGNS = drawn(4, 3), drawn(4, 3), wg.tensor([1, -1, 1, -1])
CLASSES, FIRST, SECOND, THIRD = wg.tensor([0, 2, 1, 2]), drawn(4, 5), drawn(4, 5), drawn(4, 5)

# The inputs of a loss, and a value of each setting other than its default.
LOSSES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "CrossEntropyLoss": ((LOGITS, CLASSES), dict(weight=drawn(3), ignore_index=2, label_smoothing=0.2)),
    "NLLLoss": ((LOGITS.log_softmax(1), CLASSES), dict(weight=drawn(3), ignore_index=2)),
    "BCELoss": ((PROBABLE, drawn(4, 3)), dict(weight=drawn(4, 3))),
    "BCEWithLogitsLoss": ((LOGITS, PROBABLE), dict(weight=drawn(4, 3), pos_weight=drawn(3))),
    "KLDivLoss": ((LOGITS.log_softmax(1), LOGITS.log_softmax(1)), dict(log_target=True)),
    "MSELoss": ((FIRST, SECOND), {}),
    "L1Loss": ((FIRST, SECOND), {}),
    "SmoothL1Loss": ((FIRST, SECOND), dict(beta=0.1)),
    "HuberLoss": ((FIRST, SECOND), dict(delta=0.1)),
    "PoissonNLLLoss": ((FIRST, 3 * SECOND), dict(log_input=False, full=True, eps=0.3)),
    "GaussianNLLLoss": ((FIRST, SECOND, THIRD), dict(full=True, eps=0.5)),
    "HingeEmbeddingLoss": ((FIRST[:, 0], SIGNS), dict(margin=2.0)),
    "MarginRankingLoss": ((FIRST[:, 0], SECOND[:, 0], SIGNS), dict(margin=2.0)),
    "SoftMarginLoss": ((FIRST[:, 0], SIGNS), {}),
    "TripletMarginLoss": ((FIRST, SECOND, THIRD), dict(margin=0.4, p=1.0, eps=0.1, swap=True)),
    "CosineEmbeddingLoss": ((FIRST, SECOND, SIGNS), dict(margin=0.5)),
    "MultiMarginLoss": ((LOGITS, CLASSES), dict(p=2, margin=0.5, weight=drawn(3))),
    "MultiLabelMarginLoss": ((LOGITS, wg.tensor([[0, -1, 0], [2, 1, -1], [1, -1, 0], [0, 1, 2]])), {}),
    "MultiLabelSoftMarginLoss": ((LOGITS, (PROBABLE > 0.5).double()), dict(weight=drawn(3))),
    "TripletMarginWithDistanceLoss": (
        (FIRST, SECOND, THIRD),
        dict(distance_function=lambda a, b: (a - b).abs().sum(-1), margin=0.4, swap=True),
    ),
    "CTCLoss": (
        (drawn(6, 2, 4).log_softmax(2), wg.tensor([[1, 2], [2, 3]]), wg.tensor([6, 2]), wg.tensor([2, 2])),
        dict(blank=3, zero_infinity=True),
    ),
}
SETTINGS = [(name, key) for name, (_, settings) in LOSSES.items() for key in ("reduction", *settings)]


@pytest.mark.parametrize(("name", "key"), SETTINGS)
def test_a_loss_hands_its_settings_to_its_function(name: str, key: str) -> None:
    inputs, settings = LOSSES[name]
    layer, value = getattr(nn, name), {"reduction": "sum", **settings}[key]
    assert key in inspect.signature(layer).parameters
    function: Callable[..., Tensor] = layer._function
    expected = function(*inputs, **{key: value})
    np.testing.assert_array_equal(array(layer(**{key: value})(*inputs)), array(expected))
    if (name, key) != ("PoissonNLLLoss", "eps") and key not in ("zero_infinity", "swap", "distance_function"):
        assert array(expected).tolist() != array(layer()(*inputs)).tolist(), "a setting without effect"
    with pytest.raises(TypeError, match=f"{name} takes"):
        layer(bogus=1)


def test_every_loss_is_here() -> None:
    losses = {name for name, kind in vars(nn).items() if isinstance(kind, type) and hasattr(kind, "_tensors")}
    assert losses == set(LOSSES)
    for name, (_, settings) in LOSSES.items():
        assert set(inspect.signature(getattr(nn, name)).parameters) == {"reduction", *settings}
    assert F.mse_loss is nn.MSELoss._function


LAZY = {
    name: kind
    for name, kind in vars(lazy).items()
    if name.startswith("Lazy") and isinstance(kind, type) and issubclass(kind, lazy._Lazy)
}
OTHER: dict[str, Any] = dict(
    out_features=3, out_channels=4, kernel_size=3, stride=2, padding=1, output_padding=1, groups=2, bias=False,
    dilation=2, padding_mode="reflect", eps=0.1, momentum=0.3, affine=False, track_running_stats=False,
    device="cpu", dtype=wg.float64,
)  # fmt: skip
LAZY_SETTINGS = [
    (name, key)
    for name, kind in LAZY.items()
    for key, p in inspect.signature(kind).parameters.items()
    if p.default is not p.empty and p.kind is not p.VAR_KEYWORD
]


@pytest.mark.parametrize(("name", "key"), LAZY_SETTINGS)
def test_a_lazy_layer_becomes_the_layer_of_these_settings(name: str, key: str) -> None:
    kind, real = LAZY[name], LAZY[name]._real
    settings = {key: {"track_running_stats": name.startswith("LazyInstance")}.get(key, OTHER[key])}
    if key == "padding_mode" and "Transpose" in name:
        settings = {key: "zeros"}
    if key == "output_padding":
        settings["stride"] = 2
    needed = {
        k: OTHER[k]
        for k in ("out_features", "out_channels", "kernel_size")
        if k in inspect.signature(real).parameters
    }
    axes = int(name[-2]) if name[-1] == "d" else 0
    x = wg.tensor(RNG.normal(size=(2, 4, *[9] * axes))).to(settings.get("dtype", wg.float32))
    wg.manual_seed(1)
    made = kind(**needed, **settings)
    out = made(x)
    wg.manual_seed(1)
    expected = real(4, **needed, **settings)
    assert type(made) is real
    np.testing.assert_array_equal(array(out), array(expected(x)))
    assert repr(made) == repr(expected)


WALKED_PAIRS = SETTINGS + LAZY_SETTINGS
