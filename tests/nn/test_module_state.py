"""State dicts: their form, what subclasses add and convert, older files, and copies of modules."""

import copy
import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest
import wengert as wg
from wengert import nn


def test_a_state_dict_is_ordered_and_tells_versions():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    state = model.state_dict()
    assert type(state) is OrderedDict
    assert state._metadata == {"": {"version": 1}, "0": {"version": 1}, "1": {"version": 2}}
    file = io.BytesIO()
    wg.save(state, file)
    file.seek(0)
    again = wg.load(file)
    assert list(again) == list(state)
    assert again._metadata == state._metadata
    assert copy.copy(state)._metadata == state._metadata


class Scaled(nn.Linear):
    """Saves a factor of its own, and reads files in which it was called otherwise."""

    def __init__(self, *args):
        super().__init__(*args)
        self.factor = 1.0

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "factor"] = wg.tensor(self.factor)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        for name in ("factor", "scale"):
            if prefix + name in state_dict:
                self.factor = float(state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)
        self.doubled = self.weight.detach() * 2


def test_subclasses_save_and_load_in_their_way():
    a = nn.Sequential(nn.Tanh(), Scaled(2, 1))
    a[1].factor = 3.0
    state = a.state_dict()
    assert list(state) == ["1.weight", "1.bias", "1.factor"]
    b = nn.Sequential(nn.Tanh(), Scaled(2, 1))
    assert b.load_state_dict(state) == ([], [])
    assert b[1].factor == 3.0
    assert b[1].weight.tolist() == a[1].weight.tolist()
    assert b[1].doubled.tolist() == (2 * a[1].weight).tolist()
    older = {"1.weight": np.ones((1, 2)), "1.bias": np.zeros(1), "1.scale": np.float32(5)}
    assert b.load_state_dict(older) == ([], [])
    assert b[1].factor == 5.0
    with pytest.raises(RuntimeError, match=r"missing key '1\.bias'\n  unexpected key '1\.other'"):
        b.load_state_dict({"1.weight": np.ones((1, 2)), "1.other": np.ones(1)})


class Counting(nn.Module):
    """Has a state that is no tensor."""

    def __init__(self):
        super().__init__()
        self.seen = {"steps": 0}

    def get_extra_state(self):
        return dict(self.seen)

    def set_extra_state(self, state):
        self.seen = state


def test_extra_state():
    a, b = nn.Sequential(Counting(), nn.Linear(1, 1)), nn.Sequential(Counting(), nn.Linear(1, 1))
    a[0].seen["steps"] = 7
    state = a.state_dict()
    assert list(state) == ["0._extra_state", "1.weight", "1.bias"]
    b.load_state_dict(state)
    assert b[0].seen == {"steps": 7}
    del state["0._extra_state"]
    assert b.load_state_dict(state, strict=False).missing_keys == ["0._extra_state"]
    with pytest.raises(RuntimeError, match="unexpected key '_extra_state'"):
        nn.Identity().load_state_dict({"_extra_state": 1})
    with pytest.raises(RuntimeError, match=r"define get_extra_state\(\)"):
        nn.Identity().get_extra_state()


def test_nothing_is_loaded_where_something_does_not_fit():
    model = nn.Sequential(Counting(), nn.Linear(2, 1))
    before = model[1].bias.tolist()
    with pytest.raises(RuntimeError, match=r"'1\.weight': a tensor or an array expected, got str"):
        model.load_state_dict(
            {"0._extra_state": {"steps": 1}, "1.weight": "none", "1.bias": wg.tensor([9.0])}
        )
    assert model[1].bias.tolist() == before
    assert model[0].seen == {"steps": 0}


def test_files_without_a_number_of_batches():
    layer = nn.BatchNorm1d(2)
    layer(wg.ones(3, 2))
    old = {"weight": wg.ones(2), "bias": wg.zeros(2), "running_mean": wg.ones(2), "running_var": wg.ones(2)}
    assert layer.load_state_dict(old) == ([], [])
    assert layer.num_batches_tracked.item() == 1
    new = nn.BatchNorm1d(2).state_dict()
    del new["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="missing key 'num_batches_tracked'"):
        layer.load_state_dict(new)


def test_scalars_of_old_files_have_an_axis():
    layer = nn.BatchNorm1d(1)
    state = layer.state_dict()
    state["num_batches_tracked"] = wg.tensor([4])
    layer.load_state_dict(state)
    assert layer.num_batches_tracked.tolist() == 4


def test_instance_norm_counts_no_batches():
    layer = nn.InstanceNorm1d(2, track_running_stats=True)
    layer(wg.tensor(np.random.default_rng(0).normal(size=(3, 2, 4)), dtype=wg.float32))
    assert layer.num_batches_tracked.item() == 0
    assert layer.running_mean.tolist() != [0, 0]


def test_statistics_that_are_tracked_no_more():
    layer = nn.BatchNorm1d(2, dtype=wg.float64)
    x = np.random.default_rng(0).normal(size=(5, 2)) * 3 + 1
    layer.track_running_stats = False
    out = layer(wg.tensor(x)).detach().numpy()
    np.testing.assert_allclose(out, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))
    assert (layer.running_mean.tolist(), layer.num_batches_tracked.item()) == ([0, 0], 0)
    np.testing.assert_allclose(layer.eval()(wg.tensor(x)).detach().numpy(), x / np.sqrt(1 + 1e-5))


def test_a_copied_parameter_has_no_gradient():
    model = nn.Linear(1, 1, bias=False)
    model(wg.ones(1, 1)).sum().backward()
    other = copy.deepcopy(model)
    assert other.weight.grad is None
    other(wg.ones(1, 1)).sum().backward()
    assert other.weight.grad.tolist() == model.weight.grad.tolist() == [[1.0]]
    plain = wg.ones(2, requires_grad=True)
    plain.sum().backward()
    assert copy.deepcopy(plain).grad.tolist() == [1, 1]


def test_a_shallow_copy_shares_values_and_has_registries_of_its_own():
    model = nn.Sequential(nn.Linear(1, 1))
    other = copy.copy(model)
    assert other[0] is model[0]
    other.append(nn.ReLU())
    other.register_forward_hook(lambda *_: None)
    assert (len(model), len(other)) == (1, 2)
    assert [name for name, _ in model.named_children()] == ["0"]
    assert not model._hooks
    values = nn.ParameterDict({"a": wg.ones(1)})
    more = copy.copy(values)
    more["b"] = wg.ones(2)
    assert (values.keys(), more.keys()) == (["a"], ["a", "b"])


LAYERS = {
    "RNN": lambda: nn.RNN(2, 2),
    "RNN, relu": lambda: nn.RNN(2, 2, 2, "relu"),
    "LSTM": lambda: nn.LSTM(2, 2, proj_size=1),
    "GRU": lambda: nn.GRU(2, 2),
    "RNNCell": lambda: nn.RNNCell(2, 2, nonlinearity="relu"),
    "LSTMCell": lambda: nn.LSTMCell(2, 2),
    "GRUCell": lambda: nn.GRUCell(2, 2),
    "transformer": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1, 2, activation="gelu"), 1),
    "activation": lambda: nn.LeakyReLU(0.2, True),
    "loss": lambda: nn.CrossEntropyLoss(wg.ones(3)),
    "padding": lambda: nn.ReflectionPad2d(1),
    "parameters": lambda: nn.ParameterList([wg.ones(1), "text"]),
    "lazy": lambda: nn.LazyLinear(2).double(),
    "spectral": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2)).parametrizations.weight,
    "orthogonal": lambda: (
        nn.utils.parametrizations.orthogonal(
            nn.Linear(2, 2), use_trivialization=False
        ).parametrizations.weight
    ),
}


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_layers_pickle_and_copy(make):
    layer = make()
    for other in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)):
        assert repr(other) == repr(layer)
    file = io.BytesIO()
    wg.save(layer, file)
    file.seek(0)
    assert repr(wg.load(file, weights_only=False)) == repr(layer)


def test_conversions_before_the_first_call_of_lazy_layers():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.Linear(4, 1)).to("cpu").double()
    out = model(wg.ones(3, 5, dtype=wg.float64))
    assert out.dtype == wg.float64
    assert {p.dtype for p in model.parameters()} == {wg.float64}


LAZY = {
    "linear": (lambda: nn.LazyLinear(2), (1, 3)),
    "grouped": (lambda: nn.LazyConv2d(4, 3, groups=2), (1, 6, 4, 4)),
    "transposed": (lambda: nn.LazyConvTranspose1d(4, 3, groups=2), (1, 6, 4)),
    "batch": (lambda: nn.LazyBatchNorm2d(), (2, 3, 2, 2)),
    "statistics alone": (lambda: nn.LazyBatchNorm1d(affine=False), (2, 3)),
}


@pytest.mark.parametrize(("make", "shape"), LAZY.values(), ids=LAZY)
def test_lazy_layers_take_their_size_from_a_state_dict(make, shape):
    first, second = nn.Sequential(make()), nn.Sequential(make())
    first(wg.ones(*shape))
    assert second.load_state_dict(first.state_dict()) == ([], [])
    x = wg.tensor(np.random.default_rng(0).normal(size=shape), dtype=wg.float32)
    assert second.eval()(x).tolist() == first.eval()(x).tolist()


def test_lazy_transposed_convolutions_take_the_size_of_the_output():
    assert nn.LazyConvTranspose2d(2, 2, stride=2)(wg.ones(1, 3, 4, 4), output_size=[9, 8]).shape == (
        1,
        2,
        9,
        8,
    )


def test_hooks_of_a_module_from_an_older_pickle_run():
    layer, calls = nn.Linear(2, 2), []
    layer.register_forward_hook(lambda *_: calls.append(None))
    state = {**layer.__dict__, "_hooks": dict(layer._hooks)}
    old, bare = nn.Linear(2, 2), nn.Linear(2, 2)
    old.__setstate__(state)
    bare.__setstate__({**bare.__dict__, "_hooks": {}})
    bare.register_forward_hook(lambda *_: calls.append(None))
    old(wg.ones(2))
    bare(wg.ones(2))
    assert len(calls) == 2
