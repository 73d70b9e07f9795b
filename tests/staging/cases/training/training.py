"""Whole training programs: averages of weights, two networks, gradients of gradients, loaders."""

import copy

import wengert as wg
from staging.comparing import case, copied
from wengert import nn, optim
from wengert.func import functional_call
from wengert.nn import functional as F
from wengert.utils.data import DataLoader, TensorDataset


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def batch():
    x = wg.randn(8, 4)
    return x, x.square().sum(1, keepdim=True)


@case(traces=1)
def a_plain_step(jit):
    model = network()
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(5):
        yield step(*batch())
        yield copied(model.state_dict()), copied(optimizer.state_dict())


@case(traces=1)
def an_average_written_in_place(jit):
    model = network()
    average = copy.deepcopy(model)
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with wg.no_grad():
            for p, q in zip(average.parameters(), model.parameters()):
                p.mul_(0.9).add_(q, alpha=0.1)
        return loss

    for _ in range(5):
        yield step(*batch())
        yield copied(average.state_dict())


@case
def an_average_that_is_replaced(jit):
    model = network()
    average = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = optim.SGD(model.parameters(), lr=0.01)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        for name, p in model.named_parameters():
            average[name] = average[name] * 0.9 + p.detach() * 0.1
        return loss

    for _ in range(4):
        yield step(*batch())
        yield copied(average)


@case(traces=1)
def an_average_with_a_growing_weight(jit):
    weight, average, count = wg.ones(2, requires_grad=True), wg.ones(2), wg.tensor(0.0)
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * weight * x).sum().backward()
        optimizer.step()
        count.add_(1)
        decay = count / (count + 10)
        average.mul_(decay).add_((1 - decay) * weight.detach())
        return average * 1

    for _ in range(4):
        yield step(wg.ones(2))


@case
def a_target_network(jit):
    online = nn.Linear(2, 2)
    target = copy.deepcopy(online)
    optimizer = optim.SGD(online.parameters(), lr=0.1)

    @jit
    def step(x, synchronise):
        optimizer.zero_grad()
        ((online(x) - target(x).detach() - 1) ** 2).sum().backward()
        optimizer.step()
        if synchronise:
            target.load_state_dict(online.state_dict())
        return target.weight.detach() * 1

    for i in range(7):
        yield step(wg.ones(2), i % 3 == 0)
        yield copied(online.state_dict())


@case(traces=1)
def two_networks_against_each_other(jit):
    generator, judge = nn.Linear(2, 2), nn.Linear(2, 1)
    left, right = optim.Adam(generator.parameters(), lr=0.1), optim.Adam(judge.parameters(), lr=0.1)

    @jit
    def step(x):
        right.zero_grad()
        fake = generator(wg.randn(3, 2))
        judged = F.softplus(-judge(x)).mean() + F.softplus(judge(fake.detach())).mean()
        judged.backward()
        right.step()
        left.zero_grad()
        made = F.softplus(-judge(fake)).mean()
        made.backward()
        left.step()
        return judged, made

    for _ in range(5):
        yield step(wg.randn(3, 2))
        yield copied(generator.state_dict()), copied(judge.state_dict())
        yield [p.grad for p in judge.parameters()]


@case(traces=1)
def a_penalty_on_gradients(jit):
    judge = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = optim.Adam(judge.parameters(), lr=0.1)

    @jit
    def step(x):
        x = x.clone().requires_grad_()
        y = judge(x).sum()
        (slope,) = wg.autograd.grad(y, x, create_graph=True)
        loss = ((slope.norm(dim=1) - 1) ** 2).mean() + y * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(5):
        yield step(wg.randn(3, 2))
        yield copied(judge.state_dict())


@case(traces=1)
def learning_to_learn(jit):
    model = nn.Linear(2, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @jit
    def step(x, y):
        params = dict(model.named_parameters())
        loss = F.mse_loss(functional_call(model, params, (x,)), y)
        slopes = wg.autograd.grad(loss, list(params.values()), create_graph=True)
        adapted = {name: p - 0.1 * g for (name, p), g in zip(params.items(), slopes)}
        outer = F.mse_loss(functional_call(model, adapted, (x,)), y)
        optimizer.zero_grad()
        outer.backward()
        optimizer.step()
        return outer

    for _ in range(4):
        yield step(wg.randn(3, 2), wg.randn(3, 1))
        yield copied(model.state_dict())


@case
def an_epoch_of_a_loader(jit):
    model = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = optim.Adam(model.parameters())
    loader = DataLoader(TensorDataset(wg.randn(8, 2), wg.randn(8, 1)), batch_size=4, shuffle=True)

    @jit
    def epoch():
        total = 0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total = total + loss.detach()
        return total

    for _ in range(4):
        yield epoch()
        yield copied(model.state_dict())


@case(traces=1)
def a_loader_around(jit):
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(*batch()), batch_size=4, shuffle=True)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        for x, y in loader:
            yield step(x, y)


@case(traces=4)
def a_last_batch_that_is_smaller(jit):
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for n in (4, 4, 3, 4, 3, 0, 1):
        x = wg.randn(n, 4)
        yield step(x, x[:, :1] * 2)
        yield copied(model.state_dict())


@case(traces=3)
def three_functions_of_one_model(jit):
    model = nn.Linear(2, 2)
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @jit
    def first():
        optimizer.zero_grad()
        model(wg.ones(2)).sum().backward()
        optimizer.step()

    @jit
    def second():
        optimizer.zero_grad(set_to_none=False)
        (model(wg.ones(2)) ** 2).sum().backward()
        optimizer.step()

    look = jit(lambda x: model(x).detach())
    for _ in range(4):
        first()
        yield look(wg.ones(2))
        second()
        yield look(wg.ones(2))
        yield [p.grad for p in model.parameters()], copied(optimizer.state_dict())


@case(traces=3)
def layers_that_freeze_and_thaw(jit):
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.01, weight_decay=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for frozen in (False, True, False, True):
        model[0].requires_grad_(not frozen)
        for _ in range(2):
            yield step(*batch())
            yield [p.grad for p in model.parameters()], copied(model.state_dict())


@case(traces=2)
def training_that_resumes(jit):
    def fresh():
        model = network()
        optimizer = optim.Adam(model.parameters(), lr=0.1)

        @jit
        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return model, optimizer, step

    model, optimizer, step = fresh()
    for _ in range(3):
        yield step(*batch())
    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    for _ in range(2):
        yield step(*batch())
    other, resumed, again = fresh()
    for _ in range(2):
        yield again(*batch())
    other.load_state_dict(kept[0])
    resumed.load_state_dict(kept[1])
    for _ in range(2):
        yield again(*batch())
        yield copied(other.state_dict()), copied(resumed.state_dict())


@case(traces=1)
def noise_added_to_gradients(jit):
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.01)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        for p in model.parameters():
            p.grad.add_(wg.randn_like(p.grad) * 0.01)
        optimizer.step()
        return loss

    for _ in range(4):
        yield step(*batch())
        yield [p.grad for p in model.parameters()], copied(model.state_dict())


@case(traces=3)
def a_module_chosen_by_its_name(jit):
    layers = nn.ModuleDict({"first": nn.Linear(2, 2), "second": nn.Tanh()})
    choice = ["first"]
    f = jit(lambda x: layers[choice[0]](x).detach())
    for choice[0] in ("first", "second", "first"):
        yield f(wg.ones(2))
    layers["first"] = nn.ReLU()
    yield f(wg.ones(2))


@case(traces=3)
def a_part_of_a_sequence(jit):
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    f = jit(lambda x, n: model[:n](x).detach())
    for n in (1, 2, 3, 1):
        yield f(wg.ones(2), n)


@case(traces=2)
def a_forward_that_asks_for_its_mode(jit):
    class Asking(nn.Module):
        def forward(self, x):
            return x * 2 if self.training else x

    model = nn.Sequential(Asking())
    f = jit(lambda x: model(x))
    for training in (True, False, True):
        model.train(training)
        yield f(wg.ones(2))
