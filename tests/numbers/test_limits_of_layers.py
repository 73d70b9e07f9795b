"""Values of layers and losses at the ends of their domains, the dtypes of norms, and the names
in errors. The numbers are PyTorch 2.15's."""

import math
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F

NAN, INF = math.nan, math.inf


def test_divergence_from_negative_targets() -> None:
    x, t = wg.tensor([-0.5, -0.2, -0.3]), wg.tensor([-1.0, 0.0, 0.3], requires_grad=True)
    out = F.kl_div(x, t, reduction="none")
    np.testing.assert_allclose(out.tolist(), [NAN, 0.0, 0.3 * math.log(0.3) + 0.3 * 0.3], rtol=1e-6)
    assert math.isnan(F.kl_div(x, t).item())
    x.requires_grad_()
    F.kl_div(x, t.detach(), reduction="sum").backward()
    np.testing.assert_allclose(x.grad.tolist(), [1.0, 0.0, -0.3], rtol=1e-6)


@pytest.mark.parametrize("alpha", [INF, -INF, NAN, -1.0])
@pytest.mark.parametrize("layer", [F.elu, F.celu])
def test_exponential_units_at_zero(layer: Any, alpha: float) -> None:
    out = layer(wg.tensor([-0.0, 0.0, 1.0, INF, NAN]), alpha).numpy()
    np.testing.assert_array_equal(out, np.float32([-0.0, 0.0, 1.0, INF, NAN]))
    assert np.signbit(out[:2]).tolist() == [True, False]


def test_elu_below_zero_with_infinite_alpha() -> None:
    assert F.elu(wg.tensor([-INF, -1.0]), INF).tolist() == [-INF, -INF]
    assert wg.grad(lambda x: F.elu(x, INF).sum())(wg.tensor([-1.0, 1.0])).tolist() == [INF, 1.0]


def normalised(x: wg.Tensor, dtype: Any) -> dict[str, wg.Tensor]:
    """`x`, of shape (2, 4, 3), by every norm with weights of a dtype."""
    c, n = (wg.tensor(np.linspace(0.5, 1.3, k)).to(dtype) for k in (4, 3))
    return {
        "layer_norm": F.layer_norm(x, (3,), n, n),
        "layer_norm, one weight": F.layer_norm(x, (3,), n),
        "rms_norm": F.rms_norm(x, (3,), n),
        "group_norm": F.group_norm(x, 2, c, c),
        "batch_norm": F.batch_norm(x, c, c, c, c),
        "instance_norm": F.instance_norm(x, None, None, c, c),
    }


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("weights", ["float16", "float32", "float64"])
def test_norms_have_the_dtype_of_their_input(dtype: str, weights: str) -> None:
    kind = getattr(wg, dtype)
    x = wg.tensor(np.random.default_rng(0).standard_normal((2, 4, 3))).to(kind)
    exact = normalised(x.double(), wg.float64)
    eps = wg.finfo(kind).eps
    for name, out in normalised(x, getattr(wg, weights)).items():
        assert out.dtype == kind, name
        tolerance = max(eps, wg.finfo(getattr(wg, weights)).eps)
        np.testing.assert_allclose(out.double().numpy(), exact[name].numpy(), rtol=0, atol=32 * tolerance)


def test_errors_name_the_function_that_was_called() -> None:
    for call, name in ((lambda: wg.logdet(wg.ones(2, 3)), "logdet"), (lambda: wg.ones(3).logdet(), "logdet")):
        with pytest.raises(wg.ShapeError, match=rf"^{name}: square matrices expected"):
            call()
    for call in (lambda: wg.slogdet(wg.ones(2, 3)), lambda: wg.linalg.slogdet(wg.ones(2, 3))):
        with pytest.raises(wg.ShapeError, match=r"^slogdet: square matrices expected"):
            call()
    with pytest.raises(TypeError, match=r"^full_like: a complex number does not fit into float32"):
        wg.full_like(wg.ones(2), 1j)
    with pytest.raises(ValueError, match=r"^full_like: 300 does not fit into uint8"):
        wg.full_like(wg.ones(2, dtype=wg.uint8), 300)
    with pytest.raises(ValueError, match=r"^full_like: 300.5 does not fit into uint8"):
        wg.full_like(wg.ones(2, dtype=wg.uint8), 300.5)
    with pytest.raises(wg.ShapeError, match=r"^full_like: "):
        wg.full_like(wg.ones(2), wg.ones(3))
    with pytest.raises(ValueError, match=r"^full: 300 does not fit into uint8"):
        wg.full((2,), 300, dtype=wg.uint8)


def test_the_last_axis_of_a_weight_is_an_axis() -> None:
    # PyTorch takes -1 for None, one length for the whole weight.
    length = lambda dim: (
        wg.nn.utils.parametrizations.weight_norm(
            wg.nn.Linear(3, 2), dim=dim
        ).parametrizations.weight.original0.shape
    )
    assert length(-1) == length(1) == (1, 3)
    assert length(None) == ()
