"""Modules: structure that changes, buffers, layers of all kinds, lazy ones, parametrizations, tied
weights."""

import copy

import wengert as wg
from staging.comparing import case, copied
from wengert import nn, optim
from wengert.nn.utils import parametrizations, parametrize


def ones(n=2):
    return wg.ones(n)


def training(jit, model, rate=0.01):
    """A staged step of a model."""
    optimizer = optim.AdamW(model.parameters(), lr=rate)

    @jit
    def step(*args):
        optimizer.zero_grad()
        out = model(*args)
        loss = (out[0] if isinstance(out, tuple) else out).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def trained(name, make, draw, inputs=1, traces=2):
    """A case that trains a model, and evaluates it."""

    def body(jit):
        model = make()
        step = training(jit, model)
        for training_ in (True, True, True, False, True):
            model.train(training_)
            yield step(*[draw()] * inputs)
            yield copied(model.state_dict())

    body.__name__ = f"training_of_{name}"
    case(body, traces=traces)


def convolutions():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 2),
    )


def normalised():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=None), nn.Dropout(0.3), nn.Linear(8, 1))


def weight_normed():
    first, second = (
        parametrizations.weight_norm(nn.Linear(4, 8)),
        parametrizations.spectral_norm(nn.Linear(8, 8)),
    )
    return nn.Sequential(first, second, nn.Linear(8, 1))


trained("a_convolutional_network", convolutions, lambda: wg.randn(2, 1, 4, 4))
trained("normalised_layers", normalised, lambda: wg.randn(5, 4))
trained("parametrized_layers", weight_normed, lambda: wg.randn(5, 4))
trained(
    "attention",
    lambda: nn.MultiheadAttention(4, 2, dropout=0.1, batch_first=True),
    lambda: wg.randn(2, 3, 4),
    3,
)
trained(
    "a_transformer", lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), lambda: wg.randn(2, 3, 4)
)
trained("layer_norm", lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), lambda: wg.randn(5, 4))
trained("rms_norm", lambda: nn.Sequential(nn.Linear(4, 4), nn.RMSNorm(4)), lambda: wg.randn(5, 4))
trained("a_recurrent_layer", lambda: nn.LSTM(4, 5, 2, dropout=0.2), lambda: wg.randn(3, 2, 4))
trained(
    "a_gated_layer", lambda: nn.GRU(4, 4, batch_first=True, bidirectional=True), lambda: wg.randn(2, 3, 4)
)


@case
def layers_that_are_replaced(jit):
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    model = nn.Sequential(first, second)
    f = jit(lambda x: model(x).detach())

    def tie():
        second.weight = first.weight

    def replace():
        model[1] = nn.ReLU()

    for change in (lambda: None, tie, replace, lambda: model.append(nn.Tanh()), lambda: model.pop(0)):
        change()
        yield f(ones(3))


@case
def tied_weights_that_train(jit):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(5, 3)
            self.out = nn.Linear(3, 5, bias=False)
            self.out.weight = self.embedding.weight

        def forward(self, i):
            return self.out(self.embedding(i).tanh())

    model = Tied()
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @jit
    def step(i, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(i), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for k in range(4):
        yield step(wg.tensor([k, 1]), wg.tensor([2, k]))
        yield copied(model.state_dict())
    yield model.out.weight is model.embedding.weight
    model.out.weight = nn.Parameter(model.out.weight.detach().clone())
    yield step(wg.tensor([0, 1]), wg.tensor([2, 3]))
    yield model.embedding.weight, model.out.weight


@case
def batch_norm_that_is_changed(jit):
    layer = nn.BatchNorm1d(3)
    f = jit(lambda x: layer(x).detach())
    x = wg.randn(5, 3)
    yield f(x)
    state = copy.deepcopy(layer.state_dict())
    yield f(x)
    layer.load_state_dict(state)
    for name, value in (("momentum", 0.5), ("eps", 1.0), ("track_running_stats", False)):
        yield f(x)
        yield copied(layer.state_dict())
        setattr(layer, name, value)
    yield f(x)
    layer.reset_running_stats()
    yield f(x)
    yield copied(layer.state_dict())


@case(traces=1)
def buffers_that_are_written(jit):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", wg.tensor(0))
            self.register_buffer("total", wg.zeros(()))

        def forward(self, x):
            self.count += 1
            self.total += x.sum()
            return x * self.count + self.total

    model = Counting()
    f = jit(lambda x: model(x))
    for _ in range(4):
        yield f(wg.randn(2))
        yield model.count, model.total


@case
def buffers_that_are_assigned(jit):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", wg.tensor(0))

        def forward(self, x):
            self.count = self.count + 1
            return x * self.count

    model, norm, registered = Counting(), nn.BatchNorm1d(2), nn.Module()
    f = jit(lambda x: model(x))

    @jit
    def g(x):
        norm.running_mean = wg.zeros(2)
        return norm(x).detach()

    @jit
    def h(x):
        registered.register_buffer("kept", x * 2)
        return registered.kept + 1

    for i in range(4):
        yield f(wg.randn(2))
        yield model.count
        yield g(wg.ones(3, 2) * i)
        yield norm.running_mean
        yield h(ones() * i)
        yield registered.kept


@case
def attributes_that_are_assigned(jit):
    class Remembering(nn.Module):
        last = None
        total = None

        def forward(self, x):
            self.last = x * 2
            self.total = x * 2 if self.total is None else self.total + x
            return self.total * 1

    model, layer = Remembering(), nn.Linear(2, 2)
    f = jit(model)

    @jit
    def g(x):
        layer.cache = [x.sum()]
        return layer(x).detach()

    for i in range(4):
        yield f(wg.full((2,), float(i)))
        yield model.last, model.total
        yield g(ones() * i)
        yield layer.cache


@case(traces=3)
def dtypes_that_change(jit):
    model = nn.Linear(2, 2)
    f = jit(lambda x: model(x).detach())
    yield f(ones())
    model.double()
    yield f(wg.ones(2, dtype=wg.float64))
    model.float()
    yield f(ones())


@case(traces=3)
def lists_and_dictionaries_of_parameters(jit):
    several, named = nn.ParameterList([ones(), ones() * 2]), nn.ParameterDict({"a": ones()})
    f = jit(lambda x: (x * sum(several) + named["a"]).detach())
    yield f(ones())
    several.append(ones() * 5)
    yield f(ones())
    named["a"] = nn.Parameter(ones() * 8)
    yield f(ones())
    several[0].data.zero_()
    yield f(ones())


@case
def lazy_modules(jit):
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyBatchNorm1d())
    f = jit(lambda x: model(x).detach())
    for _ in range(4):
        yield f(wg.randn(2, 4))
        yield copied(model.state_dict())


@case
def a_parametrization_that_comes_and_goes(jit):
    class Scaled(nn.Module):
        scale = 2.0

        def forward(self, weight):
            return weight * self.scale

    model = nn.Linear(3, 3)
    f = jit(lambda x: model(x).detach())
    yield f(ones(3))
    parametrize.register_parametrization(model, "weight", Scaled())
    yield f(ones(3))
    Scaled.scale = 3.0
    yield f(ones(3))
    model.parametrizations.weight[0].scale = 5.0
    yield f(ones(3))
    with parametrize.cached():
        yield f(ones(3))
        model.parametrizations.weight.original.data.mul_(2)
        yield f(ones(3))
    yield f(ones(3))
    parametrize.remove_parametrizations(model, "weight")
    yield f(ones(3))


@case
def a_forward_that_is_replaced(jit):
    model = nn.Linear(3, 3)
    f = jit(lambda x: model(x).detach())
    yield f(ones(3))
    model.forward = lambda x: x * 2
    yield f(ones(3))
    del model.forward
    yield f(ones(3))
    kept = nn.Linear.forward
    try:
        nn.Linear.forward = lambda self, x: x * 3
        yield f(ones(3))
    finally:
        nn.Linear.forward = kept
    yield f(ones(3))


@case
def an_embedding_with_a_bound(jit):
    embedding = nn.Embedding(3, 2, max_norm=1.0)
    f = jit(lambda i: embedding(i).detach())
    for i in (0, 1, 2, 0):
        embedding.weight.data.fill_(9.0)
        yield f(wg.tensor([i]))
        yield embedding.weight


@case
def snapshots_inside(jit):
    model = nn.Linear(2, 2)

    @jit
    def f(x):
        with wg.no_grad():
            model.weight.add_(1)
            state = copy.deepcopy(model.state_dict())
            model.weight.mul_(0)
            model.load_state_dict(state)
        return model(x).detach()

    @jit
    def g(x):
        inner = nn.Linear(2, 2)
        inner.weight.data.fill_(2.0)
        return copy.deepcopy(inner)(x).detach()

    for _ in range(3):
        yield f(ones())
        yield model.weight
        yield g(ones())


@case
def states_of_recurrent_cells(jit):
    cell, state = nn.LSTMCell(2, 3), [wg.zeros(1, 3), wg.zeros(1, 3)]

    @jit
    def written(x):
        with wg.no_grad():
            h, c = cell(x, tuple(state))
        state[0].copy_(h)
        state[1].copy_(c)
        return h * 1

    @jit
    def assigned(x):
        with wg.no_grad():
            state[0], state[1] = cell(x, tuple(state))
        return state[0] * 1

    for f in (written, written, written, assigned, assigned, written):
        yield f(wg.randn(1, 2))
        yield state


@case
def states_that_are_passed_on(jit):
    layer, head = nn.LSTM(4, 5), nn.Linear(5, 1)
    optimizer = optim.RMSprop([*layer.parameters(), *head.parameters()], lr=0.01)

    @jit
    def step(x, state):
        optimizer.zero_grad()
        out, state = layer(x, state)
        loss = head(out).square().mean()
        loss.backward()
        optimizer.step()
        return loss, tuple(s.detach() for s in state)

    state = (wg.zeros(1, 3, 5), wg.zeros(1, 3, 5))
    for _ in range(4):
        loss, state = step(wg.randn(7, 3, 4), state)
        yield loss, state
