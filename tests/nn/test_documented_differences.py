"""The rows on layers and modules of docs/coming_from.md: what this library does there."""

import copy

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F

D = wg.float64

MIXED = {
    "linear": (lambda: F.linear(wg.ones(1, 2, dtype=D), wg.ones(1, 2)), D),
    "bias of linear": (lambda: F.linear(wg.ones(1, 2), wg.ones(1, 2), wg.ones(1, dtype=D)), wg.float32),
    "conv": (lambda: F.conv1d(wg.ones(1, 1, 3), wg.ones(1, 1, 1, dtype=D)), D),
    "bias of conv": (lambda: F.conv1d(wg.ones(1, 1, 3), wg.ones(1, 1, 1), wg.ones(1, dtype=D)), wg.float32),
    "recurrence": (lambda: nn.GRU(1, 2)(wg.ones(3, 1, 1, dtype=D))[0], D),
    "batch norm": (lambda: nn.BatchNorm1d(2, dtype=D)(wg.tensor([[1.0, 2.0], [3.0, 5.0]])), wg.float32),
}


@pytest.mark.parametrize(("call", "dtype"), MIXED.values(), ids=MIXED)
def test_operands_of_several_dtypes(call, dtype):
    assert call().dtype == dtype


def test_classes_of_int32():
    x = wg.tensor([[1.0, 2.0, 4.0]])
    labels = wg.tensor([1], dtype=wg.int32)
    assert F.cross_entropy(x, labels).item() == F.cross_entropy(x, labels.long()).item()


def test_what_is_written_in_place_is_recorded_everywhere():
    for function, settings in [(F.elu, (-0.5,)), (F.leaky_relu, (-0.25,)), (F.celu, (-2.0,))]:
        x = wg.tensor([-1.0, 2.0], dtype=D, requires_grad=True)
        y = x * 1
        function(y, *settings, inplace=True).sum().backward()
        plain = wg.tensor([-1.0, 2.0], dtype=D, requires_grad=True)
        function(plain, *settings).sum().backward()
        assert x.grad.tolist() == plain.grad.tolist()


def test_the_nearest_element_of_three_axes_follows_the_scale():
    x = wg.arange(27.0).view(1, 1, 3, 3, 3)
    line = F.interpolate(x[:, :, 0, 0], scale_factor=1.3)
    assert line.tolist() == [[[0, 0, 1]]]
    assert F.interpolate(x, scale_factor=1.3)[0, 0, 0, 0].tolist() == [0, 0, 1]


def test_a_spectrum_of_no_real_signal_gives_the_nearest_one():
    rng = np.random.default_rng(0)
    spectrum = rng.normal(size=(8, 1)) + 1j * rng.normal(size=(8, 1))
    got = wg.istft(wg.tensor(spectrum), 8, window=wg.ones(8, dtype=D), center=False).numpy()
    matrix = np.exp(-2j * np.pi * np.outer(range(8), range(8)) / 8)
    rows, values = np.concatenate([matrix.real, matrix.imag]), np.concatenate([spectrum.real, spectrum.imag])
    np.testing.assert_allclose(got, np.linalg.lstsq(rows, values[:, 0], rcond=None)[0], atol=1e-12)


def test_instances_without_a_momentum_average_all_batches():
    layer = nn.InstanceNorm1d(1, momentum=None, track_running_stats=True, dtype=D)
    for mean in (1.0, 4.0):
        layer(wg.tensor([[[mean - 1, mean + 1]]], dtype=D))
    assert layer.running_mean.tolist() == [2.5]


def test_the_reduction_comes_first():
    assert nn.MSELoss("sum")(wg.ones(3), wg.zeros(3)).item() == 3


def test_lazy_layers_have_no_parameters_before_the_first_call():
    layer = nn.LazyLinear(2).double()
    for ask in (layer.parameters, layer.state_dict):
        with pytest.raises(RuntimeError, match="not known before the first call"):
            list(ask())
    assert layer(wg.ones(1, 3, dtype=D)).dtype == D


def test_what_is_added_to_a_copy_is_not_in_the_original():
    first = nn.ModuleDict({"a": nn.ReLU()})
    second = copy.copy(first)
    second["b"] = nn.Tanh()
    assert (first.keys(), second.keys()) == (["a"], ["a", "b"])


def test_no_orthogonal_map_without_a_base_can_be_assigned():
    layer = nn.Linear(3, 2)
    nn.utils.parametrizations.orthogonal(layer, orthogonal_map="householder", use_trivialization=False)
    with pytest.raises(RuntimeError, match="has no inverse"):
        layer.weight = wg.ones(2, 3)


def test_complex_parameters_stay_complex():
    layer = nn.Linear(1, 1).to(wg.complex64)
    assert layer.to(wg.float32).weight.dtype == wg.complex64
    assert layer.to(wg.complex128).weight.dtype == wg.complex128


def test_a_resampling_that_keeps_a_length_has_the_gradient_of_its_value():
    # 3 elements at a scale of 1.2: elements 0, 0 and 1 (of 0, 1 / 1.2 and 2 / 1.2).
    x = wg.tensor([[[1.0, 2.0, 4.0]]], requires_grad=True)
    y = F.interpolate(x, scale_factor=1.2)
    y.backward(wg.tensor([[[1.0, 10.0, 100.0]]]))
    assert y.tolist() == [[[1.0, 1.0, 2.0]]]
    assert x.grad.tolist() == [[[11.0, 100.0, 0.0]]]


def test_a_scaler_steps_without_gradients_and_once_between_updates():
    p = wg.ones(2, requires_grad=True)
    scaler, optimizer = wg.amp.GradScaler(init_scale=4.0), wg.optim.SGD([p], lr=0.5)
    scaler.scale(p.sum()).backward()
    optimizer.zero_grad()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=r"step\(\) before scale\(\)"):
        scaler.step(optimizer)


def test_a_parameter_that_a_checkpoint_did_not_see_is_an_error():
    w = wg.ones(2)
    y = wg.utils.checkpoint.checkpoint(lambda x: (x * w).exp(), wg.ones(2, requires_grad=True))
    w.requires_grad_()
    with pytest.raises(wg.CheckpointError):
        y.sum().backward()


def test_a_region_without_a_type_has_none():
    assert wg.get_autocast_dtype("cpu") is None
    with wg.autocast("cuda", dtype=wg.bfloat16):
        assert (wg.ones(2, 2) @ wg.ones(2, 2)).dtype == wg.bfloat16
