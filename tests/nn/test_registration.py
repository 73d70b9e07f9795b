"""What may be assigned and registered, containers, moving, initial values, parametrisations,
and how modules print.
"""

import abc
import copy
import math
from typing import Generic, TypeVar

import pytest
import wengert as wg
from wengert import nn
from wengert.nn.utils import parametrize
from wengert.nn.utils.rnn import pack_sequence

TAKEN = {
    "buffer over a parameter": lambda m: m.register_buffer("weight", wg.ones(2, 2)),
    "parameter over a buffer": lambda m: m.register_parameter("mean", nn.Parameter(wg.ones(1))),
    "module over a parameter": lambda m: m.add_module("weight", nn.ReLU()),
    "parameter over an attribute": lambda m: m.register_parameter("in_features", None),
    "module over a method": lambda m: m.add_module("forward", nn.ReLU()),
    "buffer over a mode": lambda m: m.register_buffer("training", wg.ones(1)),
}


@pytest.mark.parametrize("register", TAKEN.values(), ids=TAKEN)
def test_registration_of_a_name_that_is_taken(register):
    layer = nn.Linear(2, 2)
    layer.register_buffer("mean", wg.zeros(1))
    before = (list(layer.state_dict()), layer.training)
    with pytest.raises(KeyError, match="already exists"):
        register(layer)
    assert (list(layer.state_dict()), layer.training) == before


def test_registration_again_replaces():
    layer = nn.Linear(2, 2)
    layer.register_parameter("weight", nn.Parameter(wg.zeros(2, 2)))
    layer.register_buffer("mean", wg.zeros(1))
    layer.register_buffer("mean", wg.ones(1))
    assert (layer.weight.sum().item(), layer.mean.item()) == (0, 1)
    with pytest.raises(KeyError, match="already exists"):
        nn.ModuleDict({"training": nn.ReLU()})


def test_no_module_takes_the_place_of_an_absent_parameter():
    layer = nn.Linear(2, 2, bias=False)
    with pytest.raises(TypeError, match="bias is a parameter, got ReLU"):
        layer.bias = nn.ReLU()


def test_plain_attributes_come_before_the_registries():
    class Early(nn.Module):
        def __init__(self):
            self.size = 3
            self.table = wg.ones(2)
            super().__init__()
            self.layer = nn.Linear(self.size, 1)

    model = Early()
    assert (model.size, len(list(model.parameters()))) == (3, 2)

    class TooEarly(nn.Module):
        def __init__(self):
            self.layer = nn.ReLU()

    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\) first"):
        TooEarly()


def test_wrappers_delegate():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("inner"), name)

    wrapped = Wrapper(nn.Linear(3, 2))
    assert wrapped.in_features == 3
    assert wrapped.weight is wrapped.inner.weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'nothing'"):
        _ = wrapped.nothing


def test_generic_wrappers_and_wrappers_of_wrappers_delegate():
    content = TypeVar("content")

    class Wrapper(nn.Module, Generic[content]):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("inner"), name)

    class Outer(Wrapper[int]):
        def __getattr__(self, name):
            return super().__getattr__(name)

    assert Outer(nn.Linear(3, 2)).in_features == 3


def test_delegating_wrappers_are_copied_and_pickled():
    class Wrapper(nn.Module, abc.ABC):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

    class Registry(nn.Linear):
        def register(self):
            return "mine"

    assert copy.deepcopy(Wrapper(nn.Linear(3, 2))).in_features == 3
    assert copy.deepcopy(nn.Sequential(Wrapper(nn.Linear(3, 2))))[0].out_features == 2
    # A name that the metaclass has is none of the module's.
    assert Wrapper(Registry(2, 2)).register() == "mine"


def test_an_error_in_a_property_is_not_hidden():
    class Broken(nn.Module):
        @property
        def size(self):
            return self.missing

    with pytest.raises(AttributeError, match="'missing'"):
        _ = Broken().size


def test_modules_and_buffers_by_dotted_names():
    model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.BatchNorm1d(1)))
    assert model.get_buffer("1.0.running_mean") is model[1][0].running_mean
    with pytest.raises(AttributeError, match="has no buffer 'weight'"):
        model.get_buffer("1.0.weight")
    model.set_submodule("1.0", nn.ReLU())
    assert isinstance(model[1][0], nn.ReLU)
    with pytest.raises(AttributeError, match="has no submodule '7'"):
        model.set_submodule("1.7", nn.ReLU(), strict=True)
    with pytest.raises(ValueError, match="a dotted name and a Module expected"):
        model.set_submodule("", nn.ReLU())
    assert model.share_memory() is model


def test_the_dictionaries_of_parts():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert dict(model._modules) == dict(model.named_children())
    model._modules["1"] = nn.Tanh()
    assert isinstance(model[1], nn.Tanh)
    assert list(model[0]._parameters) == ["weight", "bias"]
    model[0]._parameters["bias"] = None
    assert model[0](wg.ones(1, 2)).shape == (1, 2)
    assert [name for name, _ in model.named_parameters()] == ["0.weight"]
    del model._modules["0"]
    assert len(model) == 1
    layer = nn.BatchNorm1d(2)
    layer._buffers["running_mean"] = wg.ones(2)
    assert layer.state_dict()["running_mean"].tolist() == [1, 1]
    with pytest.raises(KeyError):
        layer._buffers.pop("weight")
    shared = nn.ModuleList([layer, layer])
    assert len(list(shared.modules())) == 2
    assert len(list(shared.modules(remove_duplicate=False))) == 3


def test_conversions_without_values():
    layer = nn.Linear(2, 3).to_empty(device="cpu")
    assert (tuple(layer.weight.shape), layer.weight.requires_grad) == ((3, 2), True)
    assert layer.type(wg.float64).weight.dtype == wg.float64


def test_to_takes_what_tensors_take():
    model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    assert model.to("cpu", wg.float64, True)[0].weight.dtype == wg.float64
    assert model.to(device="cpu", non_blocking=True)[0].weight.dtype == wg.float64
    assert model.to(tensor=wg.ones(1))[0].weight.dtype == wg.float32
    assert model.to(wg.complex64)[0].weight.dtype == wg.complex64
    assert model[1].num_batches_tracked.dtype == wg.int64
    with pytest.raises(TypeError, match="floating point or complex dtype"):
        model.to(wg.int64)
    with pytest.raises(TypeError, match="unknown keyword 'copy'"):
        model.to(copy=True)


CELLS = {
    "another batch": (nn.GRUCell, (3, 10), (1, 20)),
    "more axes": (nn.RNNCell, (3, 10), (3, 1, 1, 20)),
    "no batch": (nn.GRUCell, (3, 10), (20,)),
    "a batch": (nn.RNNCell, (10,), (1, 20)),
    "another width": (nn.GRUCell, (3, 10), (3, 1)),
}


@pytest.mark.parametrize(("cell", "given", "state"), CELLS.values(), ids=CELLS)
def test_states_of_cells_fit_the_input(cell, given, state):
    with pytest.raises(wg.ShapeError, match=r"a state of shape .* expected .*20"):
        cell(10, 20)(wg.ones(*given), wg.ones(*state))


def test_states_of_lstm_cells():
    cell = nn.LSTMCell(2, 3)
    with pytest.raises(wg.ShapeError, match="LSTMCell: a state of shape"):
        cell(wg.ones(4, 2), (wg.ones(4, 3), wg.ones(1, 3)))
    with pytest.raises(TypeError, match=r"a state \(h, c\) of tensors expected"):
        cell(wg.ones(4, 2), (wg.ones(4, 3),))


MISTAKES = {
    "batch_first": (lambda: nn.LSTM(2, 3, batch_first="False"), TypeError, "batch_first is True or False"),
    "bias": (lambda: nn.GRU(2, 3, bias=0), TypeError, "bias is True or False"),
    "size": (lambda: nn.RNN(2.0, 3), TypeError, "input_size is an integer"),
    "layers": (lambda: nn.LSTM(2, 3, 0), ValueError, "num_layers must be positive"),
    "dropout": (lambda: nn.LSTM(2, 3, 2, dropout=True), ValueError, "dropout is a probability"),
    "lstm": (lambda: nn.LSTM(2, 3, nonlinearity="relu"), TypeError, "nonlinearity"),
    "gru cell": (lambda: nn.GRUCell(2, 3, nonlinearity="relu"), TypeError, "nonlinearity"),
    "axis": (lambda: nn.Softmax(dim=True), TypeError, "dim is the number of an axis"),
    "delta": (lambda: nn.HuberLoss(delta=1j), TypeError, "delta is a real number"),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1), 0),
        ValueError,
        "one layer or more",
    ),
    "transformer": (lambda: nn.Transformer(2, 1, 0, 1), ValueError, "one layer or more"),
    "older position": (lambda: nn.NLLLoss(wg.ones(2), False), TypeError, "size_average is a keyword"),
    "older position of a function": (
        lambda: nn.functional.cross_entropy(wg.ones(1, 2), wg.tensor([0]), None, False),
        TypeError,
        "size_average is a keyword",
    ),
    "eps": (lambda: nn.BatchNorm1d(2, eps=0)(wg.ones(3, 2)), ValueError, "eps must be positive in training"),
    "slope": (lambda: nn.init.calculate_gain("leaky_relu", True), ValueError, "the slope of leaky_relu"),
}


@pytest.mark.parametrize(("call", "error", "text"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_positional_settings_of_recurrent_layers():
    layer = nn.RNN(2, 3, 2, "relu", False, True, 0.5, True)
    assert (layer.nonlinearity, layer.bias, layer.batch_first, layer.dropout) == ("relu", False, True, 0.5)
    assert layer.bidirectional
    assert nn.LSTM(2, 3, 1, True, False, 0.0, False, 2).proj_size == 2
    shapes = [
        [tuple(w.shape) for w in part] for part in nn.LSTM(2, 3, bidirectional=True, proj_size=1).all_weights
    ]
    assert shapes == [[(12, 2), (12, 1), (12,), (12,), (1, 3)]] * 2


@pytest.mark.parametrize("name", ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"])
def test_gain_of_transposed_convolutions(name):
    assert nn.init.calculate_gain(name) == 1.0
    wg.manual_seed(0)
    values = nn.init.kaiming_uniform_(wg.empty(64, 50), nonlinearity=name)
    assert 0.9 < values.abs().max().item() / math.sqrt(3 / 50) <= 1.0


class Doubled(nn.Module):
    """Twice its input; nothing leads back."""

    def forward(self, x):
        return 2 * x


def test_parametrisations_one_after_another():
    layer = nn.Linear(1, 1)
    nn.init.ones_(layer.weight)
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.item() == 4
    assert layer.parametrizations.weight.original.item() == 1
    with pytest.raises(RuntimeError, match="nothing goes back through Doubled"):
        layer.weight = wg.tensor([[6.0]])
    assert layer.weight.item() == 4
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert layer.weight.item() == 1


def test_a_second_function_with_a_way_back_keeps_the_original():
    class Shifted(nn.Module):
        def forward(self, x):
            return x + 1

        def right_inverse(self, y):
            return y - 1

    layer = nn.Linear(1, 1)
    nn.init.ones_(layer.weight)
    parametrize.register_parametrization(layer, "weight", Shifted())
    assert (layer.weight.item(), layer.parametrizations.weight.original.item()) == (1, 0)
    parametrize.register_parametrization(layer, "weight", Shifted())
    assert (layer.weight.item(), layer.parametrizations.weight.original.item()) == (2, 0)
    layer.weight = wg.tensor([[7.0]])
    assert (layer.weight.item(), layer.parametrizations.weight.original.item()) == (7, 5)


def test_an_orthogonal_weight_without_a_base_cannot_be_assigned():
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), use_trivialization=False)
    with pytest.raises(RuntimeError, match="use_trivialization=False has no inverse"):
        layer.weight = wg.eye(2)


def test_transferred_parametrisations():
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    parametrize.register_parametrization(first, "weight", Doubled())
    parametrize.register_parametrization(first, "bias", Doubled())
    assert parametrize.transfer_parametrizations_and_params(first, second, "weight") is second
    assert second.weight.tolist() == first.weight.tolist()
    assert second.parametrizations.weight.original is first.parametrizations.weight.original
    assert not parametrize.is_parametrized(second, "bias")
    parametrize.transfer_parametrizations_and_params(first, second)
    assert second.bias.tolist() == first.bias.tolist()


def test_packed_sequences_are_converted():
    packed = pack_sequence([wg.ones(1, 2), wg.ones(3, 2)], enforce_sorted=False)
    for name, dtype in [("double", wg.float64), ("half", wg.float16), ("long", wg.int64), ("int", wg.int32)]:
        made = getattr(packed, name)()
        assert made.data.dtype == dtype
        assert made.sorted_indices.tolist() == [1, 0]
    assert packed.double().float().data.dtype == wg.float32
    assert packed.bfloat16().cpu().data.dtype == wg.bfloat16
    assert not packed.is_gpu


PRINTED = {
    "ReLU()": nn.ReLU,
    "ReLU(inplace=True)": lambda: nn.ReLU(True),
    "LeakyReLU(negative_slope=0.01)": nn.LeakyReLU,
    "ELU(alpha=1.5, inplace=True)": lambda: nn.ELU(1.5, True),
    "Hardtanh(min_val=-2, max_val=2, inplace=True)": lambda: nn.Hardtanh(-2, 2, True),
    "Threshold(threshold=0.1, value=20)": lambda: nn.Threshold(0.1, 20),
    "RReLU(lower=0.25, upper=0.5, inplace=True)": lambda: nn.RReLU(0.25, 0.5, True),
    "Dropout(p=0.5, inplace=False)": nn.Dropout,
    "AlphaDropout(p=0.1, inplace=True)": lambda: nn.AlphaDropout(0.1, True),
    "Embedding(3, 4, padding_idx=1, max_norm=2.0)": lambda: nn.Embedding(3, 4, 1, 2.0),
    "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)": lambda: nn.LayerNorm(3),
    "GroupNorm(2, 4, eps=1e-05, affine=True, bias=False)": lambda: nn.GroupNorm(2, 4, bias=False),
    "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)": lambda: (
        nn.BatchNorm2d(3)
    ),
    "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=same, padding_mode=circular)": lambda: nn.Conv2d(
        2, 4, 3, padding="same", padding_mode="circular"
    ),
    "Upsample(scale_factor=2.0, mode='nearest')": lambda: nn.Upsample(scale_factor=2),
    "RNNCell(2, 3, nonlinearity=relu)": lambda: nn.RNNCell(2, 3, nonlinearity="relu"),
    "CrossEntropyLoss()": nn.CrossEntropyLoss,
    "TripletMarginLoss()": nn.TripletMarginLoss,
    "ModuleList()": nn.ModuleList,
    "ModuleList(\n  (0-1): 2 x Tanh()\n  (2): ReLU()\n)": lambda: nn.ModuleList(
        [nn.Tanh(), nn.Tanh(), nn.ReLU()]
    ),
    "MultiheadAttention(\n  (out_proj): Linear(in_features=4, out_features=4, bias=True)\n)": lambda: (
        nn.MultiheadAttention(4, 2)
    ),
    "ParameterList(\n  (0): Parameter containing: [wengert.float32 of size 2]\n)": lambda: nn.ParameterList(
        [wg.ones(2)]
    ),
    "ParameterDict(\n  (a): Object of type: int\n)": lambda: nn.ParameterDict({"a": 1}),
}


@pytest.mark.parametrize(("text", "make"), PRINTED.items(), ids=[text.split("\n")[0] for text in PRINTED])
def test_how_modules_print(text, make):
    assert repr(make()) == text
