"""Programs for PyTorch, JAX and autograd run unchanged, with the losses that they have there."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import wengert

from ported.run import PROGRAMS, losses, names, of_libraries, renamed

KEPT = json.loads(Path(__file__).with_name("losses.json").read_text(encoding="utf-8"))["losses"]
#: All programs compute in float64.
RTOL = 1e-9
#: Those with a part in float32, and that part.
LOOSER = {
    "autograd_network": (1e-7, "a Python number alone becomes float32: np.log(0.3)"),
    "autograd_neural_net": (1e-7, "the mean of bools is float32"),
    "diffusion": (1e-7, "sines of times are float32"),
    "jax_mnist": (1e-7, "the mean of bools is float32, and rounded otherwise"),
    "transformer_language_model": (1e-7, "sines of positions are float32"),
}


@pytest.mark.filterwarnings("ignore:jit. :UserWarning")
@pytest.mark.parametrize("name", names())
def test_losses_are_those_of_the_library(name: str) -> None:
    rtol, _ = LOOSER.get(name, (RTOL, ""))
    found = losses(name)
    assert all(type(loss) is float for loss in found)
    np.testing.assert_allclose(found, KEPT[name], rtol=rtol, atol=1e-12, strict=True)


def test_every_program_has_its_losses() -> None:
    assert sorted(KEPT) == names()
    assert {*LOOSER} <= {*names()}
    assert all(len(kept) > 10 and np.isfinite(kept).all() for kept in KEPT.values())


@pytest.mark.parametrize("name", names())
def test_a_program_knows_nothing_of_wengert(name: str) -> None:
    assert "wengert" not in (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")


def test_names_lead_to_wengert_inside_alone() -> None:
    """Other tests import JAX and autograd themselves: they must find them, and the parts of wengert as they
    were."""
    autograd = pytest.importorskip("autograd")
    before = of_libraries()
    with renamed():
        assert importlib.import_module("torch.nn.functional") is wengert.nn.functional
        assert importlib.import_module("jax.numpy") is wengert.numpy
        assert importlib.import_module("autograd") is wengert
        with pytest.raises(ModuleNotFoundError, match=r"^No module named 'wengert.nowhere'$"):
            importlib.import_module("torch.nowhere")
    assert of_libraries() == before
    assert sys.modules["autograd"] is autograd
    functional = sys.modules["wengert.nn.functional"]
    assert functional.__name__ == functional.__spec__.name == "wengert.nn.functional"
