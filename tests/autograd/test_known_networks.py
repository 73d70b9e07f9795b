"""A network worked out by hand: its loss and nine gradients, by every way there is."""

import numpy as np
import pytest
import wengert as wg
from programs import module

example = module("backprop_by_hand")

# To four digits, from pencil and paper.
LOSS = 0.4629
GRADIENTS = {
    "hidden.weight": [[-0.2223, -0.1112], [0.1482, 0.0741]],
    "hidden.bias": [-0.2223, 0.1482],
    "output.weight": [[-0.2779, -0.0185]],
    "output.bias": [-0.3705],
}


def check(gradients, expected=GRADIENTS, tol=6e-5):
    assert gradients.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(np.asarray(gradients[name]), value, atol=tol)


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "gpu":
        # Raises where there is no adapter at all; naming the device makes do with a software one.
        wg.ones(1, device="gpu")
    return request.param


def test_arithmetic():
    loss, gradients = example.by_hand()
    assert abs(loss - LOSS) < 5e-5
    check(gradients)


def test_loss(device):
    assert abs(example.loss(example.tensors(device)).item() - LOSS) < 5e-5


@pytest.mark.parametrize("way", ["eager", "reverse", "forward"])
def test_gradients(device, way):
    gradients = getattr(example, way)(device)
    check(gradients)
    check(gradients, example.by_hand()[1], 1e-6)


def test_differences():
    check(example.differences(), example.by_hand()[1], 1e-8)
