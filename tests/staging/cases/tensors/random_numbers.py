"""Random numbers: of the library, of generators, of Python and NumPy, and what they decide."""

import random

import numpy as np
import wengert as wg
from staging.comparing import calls, case
from wengert import distributions, nn
from wengert.nn import functional as F


def ones():
    return wg.ones(2)


def ramps():
    return [wg.arange(5.0) for _ in range(5)]


def rows(x):
    return x.reshape(1, 5, 1)


calls("rand", lambda x: wg.rand(2) * x[:2], ramps, traces=1)
calls("randn", lambda x: wg.randn(5) * x, ramps, traces=1)
calls("randint", lambda x: wg.randint(0, 10, (5,)), ramps, traces=1)
calls("rand_like", lambda x: wg.rand_like(x) + wg.randn_like(x), ramps, traces=1)
calls("dropout", lambda x: F.dropout(x) + F.alpha_dropout(x), ramps, traces=1)
calls("randperm", lambda x: wg.randperm(5), ramps, traces=1)
calls("randperm_as_an_index", lambda x: x[wg.randperm(5)], ramps, traces=1)
calls("randperm_cut", lambda x: x[wg.randperm(len(x))[:3]], ramps, traces=1)
calls("randperm_between_others", lambda x: (wg.rand(2), wg.randperm(4), wg.rand(2)), ramps, traces=1)
calls("multinomial", lambda x: wg.multinomial(wg.ones(5), 2), ramps, traces=1)
calls("bernoulli", lambda x: wg.bernoulli(wg.full((5,), 0.5)), ramps, traces=1)
calls("bernoulli_of_an_argument", lambda x: wg.bernoulli(x / 5), ramps, traces=1)
calls("normal", lambda x: wg.normal(0.0, 1.0, (5,)), ramps, traces=1)
calls("poisson", lambda x: wg.poisson(x), ramps)
calls("exponential_", lambda x: x.clone().exponential_(), ramps, traces=1)
calls("geometric_", lambda x: x.clone().geometric_(0.3), ramps, traces=1)
calls("uniform_", lambda x: x.clone().uniform_().add_(x.clone().normal_()), ramps, traces=1)
calls("bernoulli_", lambda x: x.clone().bernoulli_(0.4), ramps, traces=1)
calls("normal_of_tensors", lambda x: wg.normal(x, x + 1), ramps, traces=1)
calls("random_", lambda x: x.clone().random_(0, 9), ramps, traces=1)
calls("rrelu", lambda x: F.rrelu(-x, training=True), ramps, traces=1)
calls("gumbel_softmax", lambda x: F.gumbel_softmax(x, hard=True), ramps, traces=1)
calls(
    "attention",
    lambda x: F.scaled_dot_product_attention(rows(x), rows(x), rows(x), dropout_p=0.5),
    ramps,
    traces=1,
)
calls("fractional_pooling", lambda x: F.fractional_max_pool2d(wg.rand(1, 1, 6, 6), 2, output_size=3), ramps)
calls("normal_distribution", lambda x: distributions.Normal(0.0, 1.0).sample((5,)), ramps, traces=1)
calls("categorical_distribution", lambda x: distributions.Categorical(logits=x).sample(), ramps)
calls("gamma_distribution", lambda x: distributions.Gamma(x + 1, 1.0).sample(), ramps)
calls("beta_distribution", lambda x: distributions.Beta(x + 1, 1.0).sample(), ramps)
calls("dirichlet_distribution", lambda x: distributions.Dirichlet(x + 1).sample(), ramps)
calls("orthogonal_init", lambda x: nn.init.orthogonal_(wg.empty(3, 3)), ramps)
calls("sparse_init", lambda x: nn.init.sparse_(wg.empty(5, 3), 0.4), ramps, traces=1)
calls("a_layer_made_inside", lambda x: nn.Linear(5, 2)(x).detach(), ramps, traces=1)
calls("the_initial_seed", lambda x: x * wg.initial_seed(), ramps)
calls("python", lambda x: x * random.random(), ramps)
calls("python_choice", lambda x: x * random.choice([1, 2, 3]), ramps)
calls("python_branch", lambda x: x.flip(0) if random.random() < 0.5 else x, ramps)
calls("numpy", lambda x: x * np.random.rand(), ramps)  # noqa: NPY002 (the old way is meant)
calls("numpy_array", lambda x: x + wg.from_numpy(np.random.randn(5)), ramps)  # noqa: NPY002
calls("numpy_branch", lambda x: x * 2 if np.random.rand() < 0.5 else x, ramps)  # noqa: NPY002
calls(
    "a_branch",
    lambda x: x * wg.rand(5) if wg.rand(()) < 0.5 else x * wg.randn(3)[0],
    lambda: ramps() * 2,
    traces=2,
)
calls("a_number", lambda x: x * int(wg.randint(0, 4, ())) + wg.rand(5), lambda: ramps() * 2, traces=4)


@case
def a_generator_of_python(jit):
    draws = random.Random(3)
    f = jit(lambda x: x * 2 if draws.random() < 0.5 else x)
    for _ in range(8):
        yield f(ones())


@case
def a_function_imported_from_random(jit):
    from random import random as draw

    f = jit(lambda x: x * draw())
    for _ in range(4):
        yield f(ones())


@case
def a_shuffle_of_python(jit):
    def shuffled(x):
        order = list(range(4))
        random.shuffle(order)
        return x[order]

    f = jit(shuffled)
    for _ in range(6):
        yield f(wg.arange(4.0))


@case
def a_generator_of_numpy(jit):
    draws = np.random.default_rng(0)
    f, g = jit(lambda x: x * float(draws.random())), jit(lambda x: x * wg.tensor(draws.random(2)))
    for _ in range(4):
        yield f(ones())
        yield g(ones())


@case
def a_generator(jit):
    generator = wg.Generator()
    generator.manual_seed(1)
    f = jit(lambda x: x * wg.rand(2, generator=generator))
    for _ in range(3):
        yield f(ones())
    generator.manual_seed(1)
    yield f(ones())
    yield wg.rand(2, generator=generator)


@case
def a_generator_given(jit):
    f = jit(lambda x, generator: x * wg.rand(2, generator=generator))
    for i in range(3):
        yield f(ones(), wg.Generator().manual_seed(i))
    generator = wg.Generator().manual_seed(9)
    for _ in range(3):
        yield f(ones(), generator)


@case(traces=1)
def a_seed_outside(jit):
    f = jit(lambda x: wg.rand(2) * x)
    yield f(ones())
    wg.manual_seed(5)
    yield f(ones())
    state = wg.get_rng_state()
    yield f(ones())
    wg.set_rng_state(state)
    yield f(ones())
    with wg.random.fork_rng():
        yield f(ones())
    yield f(ones())


@case
def a_seed_inside(jit):
    @jit
    def f(x):
        wg.manual_seed(3)
        return x * wg.rand(2)

    for _ in range(3):
        yield f(ones())
        yield wg.rand(2)


@case
def a_state_inside(jit):
    @jit
    def f(x):
        state = wg.get_rng_state()
        first = wg.rand(2)
        wg.set_rng_state(state)
        return first, wg.rand(2)

    for _ in range(3):
        yield f(ones())


@case
def a_fork_inside(jit):
    @jit
    def f(x):
        with wg.random.fork_rng():
            wg.manual_seed(1)
            first = wg.rand(2)
        return first, wg.rand(2)

    for _ in range(3):
        yield f(ones())


@case
def initialisers(jit):
    weight = wg.empty(3, 4)

    @jit
    def f():
        nn.init.xavier_uniform_(weight)
        nn.init.kaiming_normal_(weight)
        return nn.init.trunc_normal_(weight) * 1

    for _ in range(4):
        yield f()
        yield weight


@case(traces=5)
def a_rate_of_dropout(jit):
    layer = nn.Dropout(0.5)
    f = jit(lambda x: layer(x))
    x = wg.ones(10)
    for layer.p in (0.5, 0.1, 0.0, 0.5, 0.5, 1.0):
        yield f(x)
    layer.eval()
    yield f(x)


@case(traces=1)
def tokens_that_are_drawn(jit):
    embedding = nn.Embedding(5, 5)

    @jit
    @wg.no_grad()
    def generate(x, n):
        for _ in range(n):
            chances = embedding(x[-1:]).softmax(-1)
            x = wg.cat([x, wg.multinomial(chances, 1)[0]])
        return x

    for _ in range(4):
        yield generate(wg.tensor([1]), 4)


@case
def a_rejection_loop(jit):
    @jit
    def draw(x):
        y = wg.randn(2)
        while (y.abs() > 1).any():
            y = wg.randn(2)
        return x * y

    for _ in range(8):
        yield draw(ones())


def _seeded(name, seed):
    """A case that sets a seed between two draws; by the third call the seed before the call is that one."""

    def body(jit):
        @jit
        def f():
            first = wg.rand(2)
            seed(0)
            return first, wg.rand(2)

        for _ in range(4):
            yield f()

    body.__name__ = name
    case(body)


_seeded("a_seed_between_two_draws", wg.manual_seed)
_seeded("a_seed_of_the_default_generator_inside", lambda seed: wg.default_generator.manual_seed(seed))
_seeded("a_seed_of_all_cards_inside", lambda seed: wg.cuda.manual_seed_all(seed))


@case
def a_state_from_outside_that_is_set(jit):
    state = wg.get_rng_state()

    @jit
    def f():
        wg.set_rng_state(state)
        return wg.rand(2)

    for _ in range(3):
        yield f()
        wg.rand(5)
