"""Values that decide what follows: after writes, in nested programs, so many that there are no more
programs."""

import wengert as wg
from staging.comparing import calls, case
from wengert import optim


def ones():
    return wg.ones(2)


calls("a_place_in_a_list", lambda i: list(range(10))[i], lambda: [wg.tensor(i) for i in (1, 3, 1)], traces=2)
calls("a_part_of_a_list", lambda i: [1, 2, 3][:i], lambda: [wg.tensor(i) for i in (1, 3, 1)], traces=2)
calls(
    "integers_of_a_list",
    lambda x: [x * k for row in (x[:, None] > x).long().tolist() for k in row],
    lambda: [wg.tensor([1.0, k, 2.0]) for k in (0, 3, -1)],
    traces=2,
)
calls("no_integers", lambda x: (x[x > 5].long().tolist(), x + 1), lambda: [ones()] * 3, traces=1)
calls(
    "the_integer_of_a_float",
    lambda x: x * int(x[0]),
    lambda: [wg.tensor([k, 1.0]) for k in (1.0, 1.9, -1.9, 0.0, -0.5, float("nan"), 1.2, float("inf"), 0.1)],
    traces=5,
)
calls("an_empty_truth_value", lambda x: bool(x), lambda: [wg.zeros(0), wg.ones(2), wg.tensor([1])] * 2)
calls(
    "a_huge_integer",
    lambda x: x + int(x[0]),
    lambda: [wg.tensor([k, 1]) for k in (2**40, -(2**62), 2**62, 0)],
)


@case
def after_a_write_into_an_argument(jit):
    @jit
    def f(x):
        x.add_(1)
        if x.sum() > 4:
            x.mul_(10)
        return x * 1

    for k in (0, 1, 2, 0, 3, 1):
        x = ones() * k
        yield f(x)
        yield x


@case
def after_a_step(jit):
    weight = wg.ones(2, requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def f(x):
        for _ in range(10):
            optimizer.zero_grad()
            loss = (weight * x).square().sum()
            loss.backward()
            optimizer.step()
            if loss < 1:
                break
        return loss.detach()

    for k in (1, 2, 0.5, 1, 1):
        yield f(ones() * k)
        yield weight


@case
def after_random_numbers(jit):
    kept = wg.zeros(2)

    @jit
    def f(x):
        drawn = wg.rand(2)
        if drawn[0] > 0.5:
            kept.add_(drawn * x)
        return drawn + kept

    for k in range(10):
        yield f(ones() * k)
        yield kept


@case
def every_third_time(jit):
    count = wg.tensor(0)

    @jit
    def f(x):
        count.add_(1)
        return x * 10 if count % 3 == 0 else x * 1

    for _ in range(8):
        yield f(ones())
        yield count


@case(traces=2)
def an_early_return(jit):
    kept = ones()

    @jit
    def f(x):
        if not wg.isfinite(x).all():
            return None
        kept.mul_(x)
        return kept.sum()

    for k in (1.0, float("inf"), 2.0, float("nan"), 3.0):
        yield f(ones() * k)
        yield kept


@case
def in_a_program_in_a_program(jit):
    inner = jit(lambda x: x * 2 if x.sum() > 3 else x * 3)

    @jit
    def outer(x):
        y = inner(x)
        return y + inner(y) if y.max() > 5 else inner(x) - y

    for k in (1, 2, 3, 1, 5, 0, 2):
        yield outer(ones() * k)
        yield inner(ones() * k)


@case
def about_several_tensors(jit):
    @jit
    def f(tensors):
        if any(bool((x > 1).any()) for x in tensors):
            return [a * b for a, b in zip(tensors, reversed(tensors))]
        return sum(tensors)

    for k in (1, 2, 0):
        yield f([ones() * k, ones()])
        yield f((ones() * k, ones(), ones()))


@case
def about_a_key_that_is_missing(jit):
    scales = {"a": 1.0}

    @jit
    def f(x):
        try:
            return x * scales["b"]
        except KeyError:
            return x * scales["a"]

    yield f(ones())
    yield f(ones())
    scales["b"] = 5.0
    yield f(ones())
    del scales["b"]
    yield f(ones())


@case
def more_integers_than_programs(jit):
    f = jit(lambda x, i: x * int(i) + i.item())
    for i in (*range(14), *reversed(range(14))):
        yield f(ones(), wg.tensor(i))


@case
def more_numbers_than_programs(jit):
    scale, kept = [0.0], wg.zeros(2)

    @jit
    def f(x):
        kept.add_(scale[0])
        return x * scale[0] + kept

    for i in range(20):
        scale[0] = float(i % 11)
        yield f(ones())


@case
def more_shapes_than_programs(jit):
    total = wg.zeros(())

    @jit
    def f(x):
        total.add_(x.sum())
        return x * total

    for n in (*range(1, 80), *range(1, 80, 7)):
        yield f(wg.ones(n))
