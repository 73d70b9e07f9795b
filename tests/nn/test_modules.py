"""The module tree, modules as pure functions, initialisation, and clipping."""

import copy
import math
import pickle

import numpy as np
import pytest
import wengert as wg
from references.nn_reference import array, close
from wengert import nn
from wengert.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        self.scale = nn.Parameter(wg.ones(2))
        self.register_buffer("offset", wg.zeros(2))
        self.register_buffer("counter", wg.tensor(0), persistent=False)

    def forward(self, x):
        return self.layers(x) * self.scale + self.offset


def test_registration_and_walking():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names == ["scale", "layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias"]
    assert [name for name, _ in net.named_buffers()] == ["offset", "counter"]
    assert [name for name, _ in net.named_modules()] == ["", "layers", "layers.0", "layers.1", "layers.2"]
    assert list(net.state_dict()) == [*names[:1], "offset", *names[1:]]
    assert net.get_parameter("layers.2.bias") is net.layers[2].bias
    assert "scale" in net.__dict__
    with pytest.raises(AttributeError, match="has no submodule 'nothing'"):
        net.get_submodule("layers.nothing")
    assert all(isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf for p in net.parameters())


def test_assignment_rules():
    net = Net()
    with pytest.raises(TypeError, match="scale is a parameter, got Tensor"):
        net.scale = wg.ones(2)
    net.scale = None
    assert "scale" not in dict(net.named_parameters())
    net.offset = wg.ones(2)
    assert net.state_dict()["offset"].tolist() == [1, 1]
    del net.layers
    assert list(net.children()) == []
    with pytest.raises(KeyError, match="without dots"):
        net.register_buffer("a.b", None)

    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(wg.ones(1))

    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\) first"):
        Early()
    with pytest.raises(NotImplementedError, match="has no forward method"):
        nn.Module()(1)


def test_shared_parameters_count_once():
    net = nn.Module()
    net.a = nn.Linear(2, 2, bias=False)
    net.b = net.a
    net.c = nn.Linear(2, 2, bias=False)
    net.c.weight = net.a.weight
    assert [name for name, _ in net.named_parameters()] == ["a.weight"]
    assert list(net.state_dict()) == ["a.weight", "b.weight", "c.weight"]


def test_state_dict_round_trip_and_errors():
    a, b = Net(), Net()
    assert b.load_state_dict(a.state_dict()) == ([], [])
    x = wg.tensor(array(5, 3), dtype=wg.float32)
    close(a(x), b(x).tolist())
    state = dict(a.state_dict())
    del state["scale"]
    state["extra"] = wg.zeros(1)
    state["offset"] = wg.zeros(3)
    before = b.state_dict()["layers.0.weight"].tolist()
    state["layers.0.weight"] = wg.zeros(4, 3)
    with pytest.raises(RuntimeError) as error:
        b.load_state_dict(state)
    assert str(error.value) == (
        "load_state_dict of Net:\n  missing key 'scale'\n  unexpected key 'extra'\n"
        "  shape of 'offset': (3,) in the state dict, (2,) in the module"
    )
    assert b.state_dict()["layers.0.weight"].tolist() == before
    del state["offset"]
    found = b.load_state_dict(state, strict=False)
    assert found.missing_keys == ["scale", "offset"]
    assert found.unexpected_keys == ["extra"]
    assert b.layers[0].weight.tolist() == [[0] * 3] * 4
    b.load_state_dict({key: value.numpy() for key, value in a.state_dict().items()})
    close(a(x), b(x).tolist())


def test_pickle_and_deepcopy():
    net = Net()
    net.layers[2].weight = nn.Parameter(net.layers[2].weight.detach().clone())
    x = wg.tensor(array(5, 3), dtype=wg.float32)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        close(other(x), net(x).tolist())
        assert isinstance(other.scale, nn.Parameter)
        other.scale.data.fill_(0.0)
        assert net.scale.tolist() == [1, 1]


def test_to_keeps_parameter_objects():
    net = Net()
    before = list(net.parameters())
    net(wg.ones(1, 3)).sum().backward()
    assert net.double() is net
    assert all(p is q for p, q in zip(before, net.parameters()))
    assert all(p.dtype == wg.float64 and p.grad.dtype == wg.float64 for p in net.parameters())
    assert net.offset.dtype == wg.float64
    assert net.counter.dtype == wg.int64
    net.to(wg.bfloat16)
    assert net.scale.dtype == wg.bfloat16
    assert net.to("cpu", wg.float32).scale.dtype == wg.float32
    with pytest.raises(TypeError, match="need a floating point or complex dtype"):
        net.to(dtype=wg.int64)


def test_modes_and_gradients():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    net.eval()
    assert not net[1].training
    net.train()
    assert net[1].training
    net(wg.ones(1, 2)).sum().backward()
    assert net[0].weight.grad is not None
    net.zero_grad(set_to_none=False)
    assert net[0].weight.grad.tolist() == [[0, 0], [0, 0]]
    net.zero_grad()
    assert net[0].weight.grad is None
    net.requires_grad_(False)
    assert not net(wg.ones(1, 2)).requires_grad


def test_hooks():
    net, seen = nn.Linear(2, 2), []
    first = net.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    second = net.register_forward_hook(lambda module, args, out: seen.append(args[0].tolist()))
    third = net.register_forward_hook(lambda module, args, out: out * 0)
    assert net(wg.ones(1, 2)).tolist() == [[0, 0]]
    assert seen == [[[2, 2]]]
    for handle in (first, second, third):
        handle.remove()
    close(net(wg.ones(1, 2)), (net.weight.sum(1) + net.bias).unsqueeze(0).tolist())


def test_containers():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(net) == 3
    assert net[-1] is list(net)[2]
    assert len(net[:2]) == 2
    net.insert(1, nn.Tanh())
    assert [type(m).__name__ for m in net] == ["Linear", "Tanh", "ReLU", "Linear"]
    del net[1]
    net.append(nn.Sigmoid())
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    with pytest.raises(IndexError, match="index 9 is outside its 4 modules"):
        net[9]
    named = nn.Sequential({"first": nn.Linear(2, 2), "act": nn.ReLU()})
    assert named.first is named[0]
    items = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])
    assert len(list(items.parameters())) == 6
    table = nn.ModuleDict({"a": nn.Linear(1, 1)})
    table["b"] = nn.ReLU()
    assert table.keys() == ["a", "b"]
    assert "a" in table
    assert table.pop("a").in_features == 1
    assert len(table) == 1
    assert repr(nn.Sequential(nn.Linear(2, 1), nn.ReLU())) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=1, bias=True)\n  (1): ReLU()\n)"
    )


def test_flatten_and_identity():
    x = wg.zeros(2, 3, 4)
    assert tuple(nn.Flatten()(x).shape) == (2, 12)
    assert tuple(nn.Unflatten(1, (3, 4))(nn.Flatten()(x)).shape) == (2, 3, 4)
    assert nn.Identity(3, a=1)(x) is x


# Pure functions of parameters.


def test_functional_call_gradient_equals_backward():
    net = Net()
    x = wg.tensor(array(5, 3), dtype=wg.float32)
    parameters = dict(net.named_parameters())
    g = wg.grad(lambda p: nn.functional_call(net, p, x).square().sum())(parameters)
    net(x).square().sum().backward()
    for name, param in net.named_parameters():
        close(g[name], param.grad.tolist(), 1e-5)
        assert net.get_parameter(name) is param


def test_functional_call_vmap_of_grad_is_per_example():
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2))
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    x, t = wg.tensor(array(6, 3), dtype=wg.float32), wg.tensor([0, 1, 1, 0, 1, 0])

    def loss(p, x, t):
        return F.cross_entropy(nn.functional_call(net, p, (x.unsqueeze(0),)), t.unsqueeze(0))

    per_example = wg.vmap(wg.grad(loss), in_axes=(None, 0, 0))(parameters, x, t)
    for i in range(6):
        one = wg.grad(loss)(parameters, x[i], t[i])
        for name in parameters:
            close(per_example[name][i], one[name].tolist(), 1e-5)


def test_functional_call_of_parameters_and_buffers():
    """As PyTorch's own examples of ensembles and gradients per sample write it."""
    models = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).eval() for _ in range(3)]
    for k, model in enumerate(models):
        model[1].running_mean.fill_(0.1 * k)
    parameters, buffers = wg.func.stack_module_state(models)
    x = wg.randn(5, 3)
    call = lambda p, b: wg.func.functional_call(models[0], (p, b), (x,))
    found = wg.vmap(call)(parameters, buffers)
    np.testing.assert_allclose(
        found.detach().numpy(), [model(x).detach().numpy() for model in models], rtol=1e-6
    )
    layer, weights = models[0][0], dict(models[0][0].named_parameters())
    np.testing.assert_array_equal(
        nn.functional_call(layer, [weights], x).detach().numpy(), layer(x).detach().numpy()
    )
    with pytest.raises(ValueError, match="'bias' has values in several dictionaries"):
        nn.functional_call(layer, (weights, {"bias": wg.zeros(4)}), x)
    for wrong in ((weights, 3), "weight", 1):
        with pytest.raises(TypeError, match="a dictionary of names and tensors, or a tuple of them, got"):
            nn.functional_call(layer, wrong, x)


def test_functional_call_ensemble_and_errors():
    models = [nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = nn.stack_module_state(models)
    assert tuple(parameters["weight"].shape) == (4, 2, 3)
    assert buffers == {}
    x = wg.tensor(array(5, 3), dtype=wg.float32)
    out = wg.vmap(lambda p: nn.functional_call(models[0], p, x))(parameters)
    for i, model in enumerate(models):
        close(out[i], model(x).tolist(), 1e-5)
    with pytest.raises(KeyError, match="has no 'wait'"):
        nn.functional_call(models[0], {"wait": x}, x)
    with pytest.raises(KeyError, match="no value for bias"):
        nn.functional_call(models[0], {"weight": x[:2]}, x, strict=True)
    tied = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    tied[1].weight = tied[0].weight
    out = nn.functional_call(tied, {"0.weight": 2 * wg.eye(2)}, wg.ones(1, 2))
    assert out.tolist() == [[4, 4]]


# Initialisation.


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (nn.init.xavier_uniform_, math.sqrt(2 / 500)),
        (nn.init.xavier_normal_, math.sqrt(2 / 500)),
        (lambda t: nn.init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 300)),
        (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 200)),
        (lambda t: nn.init.normal_(t, 1.0, 3.0), 3.0),
        (lambda t: nn.init.uniform_(t, -1.0, 1.0), math.sqrt(1 / 3)),
    ],
)
def test_initial_spread(fill, std):
    wg.manual_seed(1)
    tensor = wg.empty(200, 300)
    assert fill(tensor) is tensor
    assert abs(tensor.numpy().std() / std - 1) < 0.02


def test_truncated_and_orthogonal():
    wg.manual_seed(2)
    values = nn.init.trunc_normal_(wg.empty(100, 100), std=1.0, a=-1.0, b=2.0).numpy()
    assert values.min() >= -1
    assert values.max() <= 2
    tail = nn.init.trunc_normal_(wg.empty(1000), a=4.0, b=5.0).numpy()
    assert tail.min() >= 4
    assert abs(tail.mean() - 4.226) < 0.03  # phi(4) - phi(5) over Phi(5) - Phi(4)
    q = nn.init.orthogonal_(wg.empty(4, 6), gain=2.0).numpy()
    close(q @ q.T, 4 * np.eye(4), 1e-5)
    assert nn.init.eye_(wg.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    parameter = nn.Parameter(wg.empty(3))
    assert nn.init.constant_(parameter, 2.0).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="two or more axes"):
        nn.init.xavier_uniform_(wg.empty(3))


# Gradient clipping.


def test_clip_grad_norm():
    p, q = nn.Parameter(wg.zeros(2)), nn.Parameter(wg.zeros(1))
    p.grad, q.grad = wg.tensor([3.0, 0.0]), wg.tensor([4.0])
    total = nn.utils.clip_grad_norm_([p, q], 1.0)
    close(total, 5.0)
    close(p.grad, [0.6, 0], 1e-5)
    close(q.grad, [0.8], 1e-5)
    close(nn.utils.clip_grad_norm_([p, q], 10.0, norm_type=math.inf), 0.8, 1e-5)
    close(q.grad, [0.8], 1e-5)
    nn.utils.clip_grad_value_([p, q], 0.7)
    close(q.grad, [0.7])
    p.grad = wg.tensor([math.inf, 1.0])
    with pytest.raises(RuntimeError, match="the total norm of the gradients is inf"):
        nn.utils.clip_grad_norm_([p, q], 1.0, error_if_nonfinite=True)
    close(nn.utils.clip_grad_norm_([], 1.0), 0.0)


def test_parameters_to_vector_and_back():
    net = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert tuple(vector.shape) == (8,)
    nn.utils.vector_to_parameters(wg.arange(8).float(), net.parameters())
    assert net.weight.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert net.bias.tolist() == [6, 7]
    with pytest.raises(wg.ShapeError, match=r"a vector of shape \(8,\) expected"):
        nn.utils.vector_to_parameters(wg.zeros(7), net.parameters())


# Lists and dictionaries of parameters.


def test_lists_of_parameters():
    shared = nn.Parameter(wg.ones(2))
    values = nn.ParameterList([shared, wg.zeros(3)])
    values.append(wg.ones(1)).extend([wg.ones(4)])
    assert [tuple(p.shape) for p in values] == [(2,), (3,), (1,), (4,)]
    assert values[0] is shared
    assert all(isinstance(p, nn.Parameter) for p in values)
    assert [name for name, _ in values.named_parameters()] == ["0", "1", "2", "3"]
    assert len(values[1:3]) == 2
    values[-1] = wg.zeros(5)
    assert tuple(values[3].shape) == (5,)
    assert repr(values).splitlines()[2] == "  (1): Parameter containing: [wengert.float32 of size 3]"
    with pytest.raises(IndexError, match="index 4 is outside its 4 parameters"):
        values[4]
    again = nn.ParameterList([wg.zeros(2), wg.zeros(3), wg.zeros(1), wg.zeros(5)])
    again.load_state_dict(values.state_dict())
    assert again[0].tolist() == [1, 1]


def test_dictionaries_of_parameters():
    values = nn.ParameterDict({"left": wg.ones(2)})
    values["right"] = nn.Parameter(wg.zeros(3))
    assert (len(values), list(values), "left" in values, "up" in values) == (
        2,
        ["left", "right"],
        True,
        False,
    )
    assert values.keys() == ["left", "right"]
    assert [tuple(p.shape) for p in values.values()] == [(2,), (3,)]
    assert dict(values.items())["right"] is values["right"]
    assert repr(values).splitlines()[1] == "  (left): Parameter containing: [wengert.float32 of size 2]"
    assert tuple(values.pop("left").shape) == (2,)
    del values["right"]
    assert list(values.parameters()) == []
    for missing in (lambda: values["left"], lambda: values.__delitem__("left")):
        with pytest.raises(KeyError):
            missing()


def test_modes_reach_children_through_their_own_train() -> None:
    class Frozen(nn.BatchNorm1d):
        def train(self, mode: bool = True) -> "Frozen":
            return super().train(False)

    net = nn.Sequential(Frozen(2), nn.Sequential(Frozen(2), nn.Dropout()))
    net.train()
    assert [m.training for m in net.modules()] == [True, False, True, False, True]
    net.eval()
    assert not any(m.training for m in net.modules())
    shared = nn.Sequential(net[1], net[1])
    assert shared.train() is shared
