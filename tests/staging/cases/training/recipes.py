"""Recipes as users write them: generative models, control, adapters, physics, distillation."""

import wengert as wg
from staging.comparing import case, copied
from wengert import distributions, nn, optim
from wengert.nn import functional as F


@case(traces=1)
def a_variational_autoencoder(jit):
    encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
    optimizer = optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)

    @jit
    def step(x):
        optimizer.zero_grad()
        mean, log_variance = encoder(x).chunk(2, -1)
        z = mean + wg.randn_like(mean) * (log_variance / 2).exp()
        fit = F.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
        loss = fit + divergence
        loss.backward()
        optimizer.step()
        return {"fit": fit.detach(), "divergence": divergence.detach()}

    for _ in range(5):
        yield step(wg.rand(3, 6))
        yield copied(encoder.state_dict())


@case
def a_policy_gradient(jit):
    policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = optim.Adam(policy.parameters(), lr=0.01)

    @jit
    def act(state):
        with wg.no_grad():
            return distributions.Categorical(logits=policy(state)).sample()

    @jit
    def learn(states, actions, returns):
        optimizer.zero_grad()
        chosen = distributions.Categorical(logits=policy(states))
        loss = -(chosen.log_prob(actions) * returns).mean() - 0.01 * chosen.entropy().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(4):
        states = wg.randn(5, 4)
        actions = act(states)
        yield actions
        yield learn(states, actions, wg.randn(5))
        yield copied(policy.state_dict())


@case
def a_buffer_of_experience(jit):
    critic = nn.Linear(2, 1)
    optimizer = optim.SGD(critic.parameters(), lr=0.01)
    memory, count = wg.zeros(16, 2), wg.tensor(0)

    @jit
    def remember(x):
        memory[count % 16] = x
        count.add_(1)

    @jit
    def learn():
        chosen = memory[wg.randint(0, 16, (4,))]
        optimizer.zero_grad()
        loss = (critic(chosen) - chosen.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(6):
        remember(wg.randn(2))
        yield learn()
        yield memory, count


@case(traces=3)
def a_diffusion_model(jit):
    model = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 2))
    kept = wg.cumprod(1 - wg.linspace(0.01, 0.2, 10), 0)
    optimizer = optim.AdamW(model.parameters(), lr=0.01)

    @jit
    def step(x):
        times = wg.randint(0, 10, (x.shape[0],))
        noise = wg.randn_like(x)
        share = kept[times][:, None]
        noisy = share.sqrt() * x + (1 - share).sqrt() * noise
        optimizer.zero_grad()
        loss = F.mse_loss(model(wg.cat([noisy, times[:, None] / 10], 1)), noise)
        loss.backward()
        optimizer.step()
        return loss.detach()

    @jit
    @wg.no_grad()
    def sample(n):
        x = wg.randn(n, 2)
        for t in reversed(range(10)):
            x = x - 0.1 * model(wg.cat([x, wg.full((n, 1), t / 10)], 1))
            if t > 0:
                x = x + 0.01 * wg.randn(n, 2)
        return x

    for _ in range(4):
        yield step(wg.randn(4, 2))
    for n in (2, 2, 3):
        yield sample(n)
    yield step(wg.randn(4, 2))
    yield sample(2)


@case(traces=2)
def a_contrastive_loss_with_a_temperature(jit):
    encoder, temperature = nn.Linear(4, 3), nn.Parameter(wg.tensor(2.0))
    optimizer = optim.Adam([*encoder.parameters(), temperature], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        left = F.normalize(encoder(x + 0.1 * wg.randn_like(x)), dim=1)
        right = F.normalize(encoder(F.dropout(x, 0.2)), dim=1)
        loss = F.cross_entropy(left @ right.t() * temperature.exp(), wg.arange(len(x)))
        loss.backward()
        optimizer.step()
        with wg.no_grad():
            temperature.clamp_(0, 2)
        return loss.detach()

    for n in (4, 4, 3, 4):
        yield step(wg.randn(n, 4))
        yield temperature


@case(traces=2)
def a_teacher(jit):
    teacher, student = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)), nn.Linear(4, 3)
    teacher.eval().requires_grad_(False)
    optimizer = optim.SGD(student.parameters(), lr=0.1)

    @jit
    def step(x):
        with wg.no_grad():
            wanted = F.softmax(teacher(x) / 2, -1)
        optimizer.zero_grad()
        loss = F.kl_div(F.log_softmax(student(x) / 2, -1), wanted, reduction="batchmean") * 4
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(3):
        yield step(wg.randn(5, 4))
    teacher.train()
    yield step(wg.randn(5, 4))
    teacher[0].weight.zero_()
    yield step(wg.randn(5, 4))
    yield copied(student.state_dict())


@case
def batches_that_are_mixed(jit):
    model = nn.Linear(4, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @jit
    def step(x, y):
        share = distributions.Beta(0.4, 0.4).sample()
        order = wg.randperm(len(x))
        mixed = share * x + (1 - share) * x[order]
        optimizer.zero_grad()
        scores = model(mixed)
        loss = share * F.cross_entropy(scores, y) + (1 - share) * F.cross_entropy(scores, y[order])
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(4):
        yield step(wg.randn(5, 4), wg.randint(0, 3, (5,)))
        yield copied(model.state_dict())


@case
def a_differential_equation(jit):
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    @jit
    def step(t):
        t = t.detach().requires_grad_()
        y = model(t)
        (slope,) = wg.autograd.grad(y.sum(), t, create_graph=True)
        (curve,) = wg.autograd.grad(slope.sum(), t, create_graph=True)
        loss = (curve + y).square().mean() + (model(wg.zeros(1, 1)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(4):
        yield step(wg.rand(5, 1))
        yield copied(model.state_dict())


@case(traces=5)
def adapters_of_low_rank(jit):
    class Adapted(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner.requires_grad_(False)
            self.down, self.up = nn.Parameter(wg.randn(1, 4)), nn.Parameter(wg.zeros(3, 1))
            self.merged = False

        def forward(self, x):
            y = self.inner(x)
            return y if self.merged else y + x @ self.down.t() @ self.up.t()

        def merge(self):
            self.inner.weight.data += (self.up @ self.down).detach()
            self.merged = True

    model = nn.Sequential(nn.Linear(4, 3))
    look = jit(lambda x: model(x).detach())
    x = wg.randn(2, 4)
    yield look(x)
    model[0] = Adapted(model[0])
    optimizer = optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(3):
        yield step(x)
        yield look(x)
    model[0].merge()
    yield look(x)
    model[0] = model[0].inner
    yield look(x)


@case(traces=4)
def attention_with_a_growing_cache(jit):
    project = nn.Linear(4, 12)

    @jit
    @wg.no_grad()
    def decode(x, keys, values):
        q, k, v = project(x).chunk(3, -1)
        keys, values = wg.cat([keys, k]), wg.cat([values, v])
        return F.softmax(q @ keys.t() / 2, -1) @ values, keys, values

    for _ in range(2):
        keys = values = wg.zeros(0, 4)
        for _ in range(4):
            y, keys, values = decode(wg.randn(1, 4), keys, values)
            yield y, keys


@case(traces=1)
def losses_weighed_by_what_is_learnt(jit):
    model, weights = nn.Linear(3, 2), nn.Parameter(wg.zeros(2))
    optimizer = optim.Adam([{"params": model.parameters()}, {"params": [weights], "lr": 0.1}], lr=0.01)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        losses = (model(x) - y).square().mean(0)
        total = (losses * (-weights).exp() + weights).sum()
        total.backward()
        optimizer.step()
        return [loss.detach() for loss in losses]

    for _ in range(4):
        yield step(wg.randn(4, 3), wg.randn(4, 2))
        yield weights


@case(traces=2)
def truncated_backpropagation(jit):
    cell, head = nn.GRUCell(2, 3), nn.Linear(3, 1)
    optimizer = optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)

    @jit
    def step(xs, state):
        optimizer.zero_grad()
        loss = 0.0
        for x in xs:
            state = cell(x, state)
            loss = loss + (head(state) - x.sum(-1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach(), state.detach()

    state = wg.zeros(2, 3)
    for length in (3, 3, 2, 3):
        loss, state = step(wg.randn(length, 2, 2), state)
        yield loss, state


@case(traces=2)
def messages_along_edges(jit):
    layer = nn.Linear(3, 3)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)

    @jit
    def step(x, edges):
        source, target = edges
        optimizer.zero_grad()
        sums = wg.zeros_like(x).index_add(0, target, layer(x)[source])
        degrees = wg.zeros(len(x)).index_add(0, target, wg.ones(len(target))).clamp(min=1)
        loss = (sums / degrees[:, None] - x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for count in (4, 4, 6, 4):
        yield step(wg.randn(5, 3), wg.randint(0, 5, (2, count)))
        yield copied(layer.state_dict())


@case(traces=1)
def master_weights_of_higher_precision(jit):
    model = nn.Linear(4, 2).to(wg.bfloat16)
    masters = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = optim.Adam(masters, lr=0.01)

    @jit
    def step(x):
        for p in model.parameters():
            p.grad = None
        loss = model(x.to(wg.bfloat16)).float().square().mean()
        loss.backward()
        for master, p in zip(masters, model.parameters()):
            master.grad = p.grad.float()
        optimizer.step()
        with wg.no_grad():
            for master, p in zip(masters, model.parameters()):
                p.copy_(master)
        return loss.detach()

    for _ in range(4):
        yield step(wg.randn(3, 4))
        yield copied(model.state_dict()), masters


@case(traces=3)
def a_model_that_grows(jit):
    model = nn.Sequential(nn.Linear(3, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(3):
        for _ in range(2):
            yield step(wg.randn(2, 3))
        model.append(nn.Linear(3, 3))
        optimizer.add_param_group({"params": model[-1].parameters()})
    yield copied(model.state_dict())


@case
def decay_of_some_parameters_by_hand(jit):
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    optimizer, decay = optim.SGD(model.parameters(), lr=0.1), {"weight": 0.1}

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        with wg.no_grad():
            for name, p in model.named_parameters():
                if p.ndim > 1 and name.endswith("weight"):
                    p.mul_(1 - decay["weight"])
        optimizer.step()
        return loss.detach()

    for decay["weight"] in (0.1, 0.1, 0.2):
        yield step(wg.randn(2, 3))
        yield copied(model.state_dict())
