"""The package einops with tensors: values, derivatives and transforms, against its functions of arrays."""

import sys
from typing import Any

import numpy as np
import pytest
import wengert as wg

einops = pytest.importorskip("einops")
layers = pytest.importorskip("wengert.utils.einops")

ARRAY = np.random.default_rng(0).normal(size=(2, 4, 6))

CALLS: dict[str, Any] = {
    "turn": lambda x: einops.rearrange(x, "a b c -> c (a b)"),
    "split": lambda x: einops.rearrange(x, "a (b two) c -> two a c b", two=2),
    "list": lambda x: einops.rearrange([x, x], "n a b c -> a (n b) c"),
    "repeat": lambda x: einops.repeat(x, "a b c -> a (b r) d c", r=2, d=3),
    "pool": lambda x: einops.reduce(x, "a (b 2) (c 3) -> a b c", "max"),
    "pack": lambda x: einops.pack([x, x[..., 0]], "a b *")[0],
    "product": lambda x: einops.einsum(x, x, "a b c, a b d -> c d"),
    **{
        name: lambda x, name=name: einops.reduce(x, "a b c -> b", name)
        for name in ("mean", "sum", "max", "min", "prod")
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str) -> None:
    call, x = CALLS[name], wg.tensor(ARRAY)
    np.testing.assert_allclose(call(x).numpy(), call(ARRAY), rtol=1e-12)
    assert wg.testing.gradcheck(call, [x.requires_grad_()])
    batch = wg.tensor(np.stack([ARRAY, 2 * ARRAY]))
    expected = wg.stack([call(one) for one in batch])
    assert wg.allclose(wg.vmap(call)(batch), expected)


@pytest.mark.parametrize("name", ["any", "all"])
def test_of_truth_values(name: str) -> None:
    call = lambda x: einops.reduce(x, "a b c -> b", name)
    assert np.array_equal(call(wg.tensor(ARRAY) > 0.7).numpy(), call(ARRAY > 0.7))


def test_what_is_no_operation() -> None:
    x = wg.tensor(ARRAY).requires_grad_()
    assert einops.parse_shape(x, "a _ c") == {"a": 2, "c": 6}
    assert np.array_equal(einops.asnumpy(x), ARRAY)
    backend = sys.modules["einops._backends"].get_backend(x)
    assert backend.is_float_type(x)
    assert backend.arange(1, 3).tolist() == [1, 2]
    assert backend.tile(wg.ones(2), (3,)).shape == (6,)
    assert wg.equal(backend.from_numpy(np.ones(2)), wg.ones(2).double())
    parts = einops.unpack(wg.ones(2, 5), [(3,), (2,)], "a *")
    assert [part.shape for part in parts] == [(2, 3), (2, 2)]


def test_layers() -> None:
    model = wg.nn.Sequential(
        layers.Rearrange("n (h w) c -> n c h w", h=2),
        layers.Reduce("n c h w -> n c", "max"),
        wg.nn.Linear(6, 1),
    )
    x = wg.randn(3, 4, 6)
    assert wg.equal(model(x), model[2](x.amax(1)))
    assert "Rearrange('n (h w) c -> n c h w', h=2)" in repr(model)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "einops._backends", None)
    monkeypatch.delitem(sys.modules, "wengert.utils.einops")
    with pytest.raises(ImportError, match="which is not installed or too old; pip install"):
        import wengert.utils.einops  # noqa: F401
