"""Memory: arguments that alias each other, views that are written through, strides, replaced data."""

import numpy as np
import wengert as wg
from staging.comparing import calls, case, raised
from wengert import nn


def ones():
    return wg.ones(2)


def layouts():
    base = wg.arange(24.0).reshape(4, 6)
    return [
        base,
        base.t()[:4, :4],
        base[:, ::2],
        base[::2],
        base[1:],
        wg.ones(1, 6).expand(4, 6),
        base.flip(0),
        base[:0],
        base,
    ]


def squares():
    base = wg.arange(16.0).reshape(4, 4)
    return [base, base.t(), base, base[1:], base[:, 1:]]


calls("layouts", lambda x: (x * 2).sum(0) + x.t()[:, :1].sum(), layouts)
calls("contiguous_or_not", lambda x: x * 2 if x.is_contiguous() else x * 3, squares)
calls("strides_and_offsets", lambda x: x * x.stride(0) + x.storage_offset(), squares)
calls(
    "conjugates",
    lambda x: x * 2,
    lambda: [wg.full((2,), 1 + 2j).conj(), wg.full((2,), 1 + 2j), wg.full((2,), 1 + 2j).imag],
)
calls("writes_into_a_transpose", lambda x: (x.t().add_(1).sum(), x * 1), squares)
calls(
    "a_write_into_expanded_memory",
    lambda x: x.add_(1),
    lambda: [wg.ones(2), wg.ones(1).expand(2), wg.ones(2)],
)


@case
def arguments_that_alias_each_other(jit):
    @jit
    def f(a, b):
        a.add_(1)
        return a * b

    x, y = wg.arange(4.0), wg.arange(4.0)
    for a, b in ((x, y), (x, x), (x, x[:]), (x[:2], x[1:3]), (x, y), (x[1:3], x[:2]), (x, x.flip(0))):
        yield f(a, b)
        yield x, y


@case
def arguments_that_alias_what_is_closed_over(jit):
    weight = wg.arange(4.0)

    @jit
    def f(a):
        a.add_(1)
        return a * weight

    for a in (wg.ones(4), weight, weight.flip(0), weight[:], weight.detach(), wg.ones(4)):
        yield f(a)
        yield weight


@case
def what_is_closed_over_is_written_and_given(jit):
    weight = wg.arange(4.0)

    @jit
    def f(a):
        b = a * 2
        weight.add_(1)
        return a + b

    for a in (wg.ones(4), weight, weight[::1], wg.ones(4)):
        yield f(a)
        yield weight


@case(traces=1)
def views_that_are_written_through(jit):
    weight = wg.arange(6.0).reshape(2, 3)

    @jit
    def f(x):
        weight[0].mul_(x)
        weight.t()[1] += 1
        weight.view(-1)[::2].sub_(1)
        weight.diagonal().add_(x[:2])
        first, second = weight.unbind(0)
        first.add_(second)
        return weight.sum()

    for _ in range(4):
        yield f(wg.full((3,), 2.0))
        yield weight


@case(traces=1)
def a_view_made_outside(jit):
    weight = wg.arange(6.0)
    view = weight[1:4]

    @jit
    def f(x):
        view.add_(x)
        return weight * 1

    for _ in range(3):
        yield f(wg.ones(3))
        yield weight, view
    weight.mul_(2)
    yield f(wg.ones(3))


@case
def writes_of_all_kinds(jit):
    weight = wg.ones(4)

    @jit
    def f(x):
        weight[1:3] = x
        weight.copy_(weight.flip(0))
        weight[weight > 5] = 0
        weight.index_add_(0, wg.tensor([0, 0]), x)
        weight.masked_fill_(weight < 0, 1.0)
        weight.scatter_(0, wg.tensor([3]), x[:1])
        weight.clamp_(max=9)
        return weight.clone()

    for _ in range(5):
        yield f(wg.randn(2) * 6)
        yield weight


@case(traces=1)
def buffers_that_are_swapped(jit):
    first, second = wg.zeros(3), wg.ones(3)

    @jit
    def f(x):
        kept = first.clone()
        first.copy_(second)
        second.copy_(kept + x)
        return first - second

    for _ in range(4):
        yield f(wg.ones(3))
        yield first, second


@case
def names_that_are_swapped(jit):
    buffers = {"front": wg.zeros(2), "back": wg.ones(2)}

    @jit
    def f(x):
        buffers["front"], buffers["back"] = buffers["back"], buffers["front"]
        return buffers["front"].add_(x) * 1

    for _ in range(4):
        yield f(ones())
        yield buffers


@case(traces=1)
def rows_that_are_swapped(jit):
    @jit
    def f(x):
        x[0], x[1] = x[1].clone(), x[0].clone()
        return x.sum(1)

    x = wg.arange(4.0).reshape(2, 2)
    for _ in range(3):
        yield f(x)
        yield x


def reshaped(name, change):
    """A case that changes the shape or the data of a tensor in place, of its own and of its argument."""

    def body(jit):
        closed = wg.arange(4.0).reshape(1, 4)

        @jit
        def own(x):
            change(closed)
            return x * 1

        @jit
        def given(x):
            change(x)
            return x.sum()

        for _ in range(3):
            yield own(ones())
            yield closed, closed.requires_grad
            x = wg.arange(4.0).reshape(1, 4)
            yield given(x)
            yield x, x.requires_grad

    body.__name__ = name
    case(body)


reshaped("squeeze_in_place", lambda x: x.squeeze_() if x.ndim > 1 else x.unsqueeze_(0))
reshaped("unsqueeze_in_place", lambda x: x.unsqueeze_(0))
reshaped("transpose_in_place", lambda x: x.transpose_(0, 1))
reshaped("resize_in_place", lambda x: x.resize_(2, 2))
reshaped("data_set", lambda x: setattr(x, "data", x * 2))
reshaped("requires_grad_in_place", lambda x: x.requires_grad_(not x.requires_grad))


@case
def data_that_is_replaced_inside(jit):
    weight = wg.ones(2, requires_grad=True)

    @jit
    def f(x):
        weight.data = weight.data * x
        return weight.detach()

    for _ in range(4):
        yield f(ones() * 2)
        yield weight


@case
def data_that_is_replaced_outside(jit):
    weight = wg.ones(2, requires_grad=True)
    f = jit(lambda x: (weight * x).detach())
    for data in (wg.ones(2), wg.full((2,), 5.0), wg.full((1,), 6.0), wg.full((2,), 7.0, dtype=wg.float64)):
        weight.data = data
        yield f(ones())


@case(traces=1)
def detached_tensors_that_are_written(jit):
    weight = wg.ones(2, requires_grad=True)

    @jit
    def f(x):
        detached = weight.detach()
        y = weight * x
        detached.add_(1)
        return y.detach(), detached

    for _ in range(3):
        yield f(ones())
        yield weight


@case
def a_ring(jit):
    ring, place = wg.zeros(5, 2), wg.tensor(0)

    @jit
    def at(x, i):
        ring[i] = x
        return ring.sum(0)

    @jit
    def turning(x):
        ring[place] = x
        place.add_(1).remainder_(5)
        return ring.sum(0)

    for i in range(7):
        yield at(wg.randn(2), i % 5)
        yield ring
    for _ in range(7):
        yield turning(wg.randn(2))
        yield ring, place


@case
def a_ring_with_a_counter_of_python(jit):
    keys, place = wg.zeros(8, 2), [0]

    @jit
    def f(x):
        keys[place[0]] = x
        total = keys[: place[0] + 1].sum(0)
        place[0] += 1
        return total

    for _ in range(6):
        yield f(wg.randn(2))
        yield keys


@case(traces=1)
def a_codebook(jit):
    codes, counts = wg.randn(5, 3), wg.zeros(5)

    @jit
    def f(x):
        nearest = ((x[:, None] - codes[None]) ** 2).sum(-1).argmin(1)
        counts.scatter_add_(0, nearest, wg.ones(len(nearest)))
        codes.index_add_(0, nearest, (x - codes[nearest]) * 0.1)
        return codes[nearest]

    for _ in range(4):
        yield f(wg.randn(7, 3))
        yield codes, counts


@case(traces=1)
def memory_of_numpy_as_an_argument(jit):
    array = np.zeros(2, np.float32)
    f = jit(lambda x: x.add_(1))
    for _ in range(3):
        yield f(wg.from_numpy(array))
        yield array


@case(traces=2)
def memory_that_is_shared_by_two_parameters(jit):
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    f = jit(lambda x: second(first(x)).detach())
    yield f(ones())
    second.weight.data = first.weight.data
    yield f(ones())
    first.weight.data.add_(1)
    yield f(ones())
    yield second.weight


@case
def empty_and_zero_d_memory(jit):
    empty, scalar = wg.zeros(0, 2), wg.tensor(1.0)

    @jit
    def f(x):
        empty.add_(x[:0])
        scalar.add_(x.sum())
        return empty.sum() + scalar, wg.cat([empty, x])

    for n in (1, 2, 0, 1):
        yield f(wg.ones(n, 2))
        yield empty, scalar


@case(traces=1)
def complex_memory(jit):
    weight = wg.ones(2) * (1 + 2j)

    @jit
    def f(x):
        weight.real.add_(x)
        wg.view_as_real(weight)[:, 1].mul_(2)
        return weight * x, weight.conj() * 1

    for _ in range(3):
        yield f(ones())
        yield weight


@case(undoes=True)
def a_write_that_fails(jit):
    weight = wg.zeros(3)

    @jit
    def f(x):
        weight.add_(1)
        return weight @ x

    for n in (3, 4, 3):
        yield raised(f, wg.ones(n))
        yield weight


@case
def targets_that_are_resized(jit):
    @jit
    def f(x, target):
        wg.add(x, 1, out=target)
        return target * 2

    for n in (2, 3, 2):
        target = wg.empty(0)
        yield raised(f, wg.ones(n), target)
        yield target
