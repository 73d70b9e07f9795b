"""Optimisers that users write, with and without the base class, and optimisers around optimisers."""

import wengert as wg
from staging.comparing import case, copied
from wengert import nn, optim


def ones():
    return wg.ones(2)


def leaf():
    return wg.ones(2, requires_grad=True)


def training(jit, weight, optimizer):
    """A staged step, whose result is what the optimiser returns."""

    @jit
    def step(x):
        weight.grad = None
        (weight * weight * x).sum().backward()
        found = optimizer.step()
        return weight.detach() * 1, found

    return step


class Own(optim.Optimizer):
    """An optimiser that changes what a case says."""

    def __init__(self, params, **settings):
        super().__init__(params, dict(lr=0.1))
        self.steps, self.scale, self.loss, self.norm = 0, 1.0, None, wg.zeros(())
        self.__dict__.update(settings)

    def each(self):
        return [(group, p) for group in self.param_groups for p in group["params"]]


@case(traces=1)
def that_count(jit):
    class Counting(Own):
        def step(self, closure=None):
            self.steps += 1
            with wg.no_grad():
                for group, p in self.each():
                    state = self.state[p]
                    state["step"] = state.get("step", 0) + 1
                    p.add_(p.grad, alpha=-group["lr"] / state["step"])

    weight = leaf()
    optimizer = Counting([weight])
    step = training(jit, weight, optimizer)
    for _ in range(6):
        yield step(ones())
        yield optimizer.steps, copied(optimizer.state_dict())


@case
def whose_counter_is_read(jit):
    class Counting(Own):
        def step(self, closure=None):
            self.steps += 1
            with wg.no_grad():
                for group, p in self.each():
                    p.add_(p.grad, alpha=-group["lr"] * self.steps)

    weight = leaf()
    optimizer = Counting([weight])

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return weight.detach() * optimizer.steps

    for _ in range(5):
        yield step(ones())
        yield optimizer.steps


@case
def that_return_a_number(jit):
    class Counting(Own):
        def step(self, closure=None):
            self.steps += 1
            with wg.no_grad():
                for _, p in self.each():
                    p.sub_(0.1 * p.grad)
            return self.steps

    weight = leaf()
    step = training(jit, weight, Counting([weight]))
    for _ in range(4):
        yield step(ones())


@case
def that_are_told_the_loss(jit):
    class Told(Own):
        def step(self, closure=None):
            with wg.no_grad():
                for group, p in self.each():
                    p.sub_(group["lr"] * self.loss * p.grad)

    weight = leaf()
    optimizer = Told([weight])

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (weight * weight * x).sum()
        loss.backward()
        optimizer.loss = loss.detach()
        optimizer.step()
        return loss.detach()

    for _ in range(4):
        yield step(ones())
        yield weight


@case(traces=1)
def with_a_scale_that_changes(jit):
    class Scaled(Own):
        def step(self, closure=None):
            with wg.no_grad():
                for group, p in self.each():
                    p.sub_(group["lr"] * self.scale * p.grad)

    weight = leaf()
    optimizer = Scaled([weight])
    step = training(jit, weight, optimizer)
    for i in range(4):
        yield step(ones())
        optimizer.scale = i + 1


@case
def that_keep_a_norm(jit):
    class Measuring(Own):
        def step(self, closure=None):
            with wg.no_grad():
                self.norm = sum(p.grad.norm() for _, p in self.each())
                for _, p in self.each():
                    p.sub_(0.1 * p.grad)

    weight = leaf()
    optimizer = Measuring([weight])

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * weight * x).sum().backward()
        optimizer.step()
        return optimizer.norm * 1

    for _ in range(4):
        yield step(ones())
        yield optimizer.norm


@case
def that_replace_data_and_gradients(jit):
    class Replacing(Own):
        def step(self, closure=None):
            self.steps += 1
            for _, p in self.each():
                p.data = p.data - 0.1 * self.steps * p.grad
                p.grad = None

    weight = leaf()
    step = training(jit, weight, Replacing([weight]))
    for _ in range(4):
        yield step(ones())
        yield weight, weight.grad


@case(traces=1)
def that_log(jit):
    seen = []

    class Logging(optim.SGD):
        def step(self, closure=None):
            found = super().step(closure)
            seen.append(float(self.param_groups[0]["params"][0][0]))
            return found

    weight = leaf()
    step = training(jit, weight, Logging([weight], lr=0.1))
    for _ in range(5):
        yield step(ones())
        yield seen


@case
def of_a_list_of_buffers_that_are_replaced(jit):
    class Momentum:
        def __init__(self, params):
            self.params, self.steps = list(params), 0
            self.buffers = [wg.zeros_like(p) for p in self.params]

        def step(self):
            self.steps += 1
            for i, p in enumerate(self.params):
                self.buffers[i] = self.buffers[i] * 0.9 + p.grad
                p.data = p.data - 0.1 / self.steps * self.buffers[i]

    weight = leaf()
    optimizer = Momentum([weight])
    step = training(jit, weight, optimizer)
    for _ in range(6):
        yield step(ones())
        yield optimizer.steps, optimizer.buffers


@case
def of_a_list_of_buffers_that_are_written(jit):
    class Momentum:
        def __init__(self, params, rate):
            self.params, self.rate = list(params), rate
            self.buffers = [wg.zeros_like(p) for p in self.params]

        def step(self):
            for p, buffer in zip(self.params, self.buffers):
                buffer.copy_(buffer * 0.9 + p.grad)
                p.data.sub_(self.rate * buffer)
                p.grad = None

    model = nn.Linear(2, 1)
    optimizer = Momentum(model.parameters(), 0.1)

    @jit
    def step(x):
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for change in (lambda: None, lambda: setattr(optimizer, "rate", 0.01), lambda: model.weight.data.mul_(2)):
        change()
        for _ in range(3):
            yield step(ones())
            yield copied(model.state_dict())
    for p in model.parameters():
        p.data = p.data * 2
    for _ in range(3):
        yield step(ones())
        yield copied(model.state_dict())


@case
def sharpness_aware(jit):
    class Sharpness(optim.Optimizer):
        def __init__(self, params, base, radius=0.05, **settings):
            super().__init__(params, dict(radius=radius, **settings))
            self.base = base(self.param_groups, **settings)

        @wg.no_grad()
        def climb(self):
            for group in self.param_groups:
                for p in group["params"]:
                    self.state[p]["climbed"] = p.grad * group["radius"]
                    p.add_(self.state[p]["climbed"])
            self.zero_grad()

        @wg.no_grad()
        def descend(self):
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(self.state[p]["climbed"])
            self.base.step()
            self.zero_grad()

    weight = leaf()
    optimizer = Sharpness([weight], optim.SGD, lr=0.1)

    @jit
    def step(x):
        (weight * weight * x).sum().backward()
        optimizer.climb()
        (weight * weight * x).sum().backward()
        optimizer.descend()
        return weight.detach().clone()

    for _ in range(5):
        yield step(ones())


@case
def looking_ahead(jit):
    class Lookahead:
        def __init__(self, optimizer):
            self.optimizer, self.steps = optimizer, 0
            self.slow = [p.detach().clone() for p in optimizer.param_groups[0]["params"]]

        def step(self):
            self.optimizer.step()
            self.steps += 1
            if self.steps % 2 == 0:
                for p, slow in zip(self.optimizer.param_groups[0]["params"], self.slow):
                    slow.add_(p.data - slow, alpha=0.5)
                    p.data.copy_(slow)

    weight = leaf()
    optimizer = Lookahead(optim.SGD([weight], lr=0.1))
    step = training(jit, weight, optimizer)
    for _ in range(6):
        yield step(ones())
        yield optimizer.steps, optimizer.slow


@case
def with_a_closure(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = (weight * weight * x).sum()
            loss.backward()
            return loss

        return optimizer.step(closure).detach()

    for _ in range(4):
        yield step(ones())
        yield weight


@case(traces=1)
def lbfgs_with_a_staged_closure(jit):
    model = nn.Linear(2, 1)
    optimizer = optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)
    x = wg.randn(4, 2)

    @jit
    def closure():
        optimizer.zero_grad()
        loss = (model(x) - 1).square().sum()
        loss.backward()
        return loss

    for _ in range(4):
        yield optimizer.step(closure)
        yield copied(model.state_dict())


@case
def lbfgs_inside(jit):
    model = nn.Linear(2, 1)
    optimizer = optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")

    @jit
    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = (model(x) - 1).square().sum()
            loss.backward()
            return loss

        return optimizer.step(closure)

    x = wg.randn(4, 2)
    for _ in range(3):
        yield step(x)
        yield copied(model.state_dict())


@case
def that_puts_gradients_in_the_place_of_others(jit):
    class Halving(wg.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        @wg.no_grad()
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                p.grad = p.grad * 0.5
                p.sub_(p.grad)

    class Filling(Halving):
        @wg.no_grad()
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                p.sub_(0.25)
                p.grad = p * 2

    for kind in (Halving, Filling):
        weight = wg.ones(2, requires_grad=True)
        optimizer, halves = kind([weight]), kind is Halving

        @jit
        def step(x):
            optimizer.zero_grad()  # noqa: B023 (called in this turn)
            if halves:  # noqa: B023
                (weight * x).sum().backward()  # noqa: B023
            optimizer.step()  # noqa: B023

        for i in range(4):
            step(wg.tensor([1.0, float(i)]))
            yield weight, weight.grad
