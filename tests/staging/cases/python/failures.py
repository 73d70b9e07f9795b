"""Operations that fail: exceptions that are caught inside, that leave, and what was written before."""

import contextlib

import wengert as wg
from staging.comparing import case, raised
from wengert import nn


def ones():
    return wg.ones(2)


@case
def failures_that_are_caught(jit):
    @jit
    def f(x):
        try:
            return wg.linalg.cholesky(x * wg.eye(2))
        except RuntimeError:
            return x.abs()

    for k in (1, -1, 2, -2):
        yield raised(f, ones() * k)


@case
def failures_that_are_caught_first(jit):
    @jit
    def f(x):
        try:
            return wg.linalg.cholesky(x * wg.eye(2))
        except RuntimeError:
            return x.abs()

    for k in (-1, 1, -2, 2):
        yield raised(f, ones() * k)


@case
def indices_that_are_caught(jit):
    table = wg.arange(3.0)

    @jit
    def f(i):
        with contextlib.suppress(IndexError):
            return table[i] * 2
        return table * 0

    for i in (0, 5, 1, 7):
        yield raised(f, wg.tensor([i]))


@case(traces=2)
def finally_and_else(jit):
    weight, fails = wg.zeros(2), [False]

    @jit
    def f(x):
        try:
            weight.add_(x)
            if fails[0]:
                raise KeyError("a case")
        except KeyError:
            weight.sub_(5)
        else:
            weight.mul_(2)
        finally:
            weight.add_(100)
        return weight * 1

    for fails[0] in (False, False, True, True, False):
        yield f(ones())
        yield weight


@case(undoes=True)
def exceptions_that_leave(jit):
    weight = wg.zeros(2)

    @jit
    def f(x, limit):
        weight.add_(x)
        try:
            if weight[0] > limit:
                raise ValueError(f"more than {limit}")
        finally:
            weight.add_(10)
        return weight * 2

    for limit in (5, 5, 50, 5, 50, 1000):
        yield raised(f, ones(), limit)
        yield weight


@case
def exceptions_with_a_cause(jit):
    @jit
    def f(x):
        try:
            return x.reshape(7)
        except RuntimeError as error:
            raise TypeError("not seven") from error

    for n in (7, 2, 7, 2):
        found = raised(f, wg.ones(n))
        yield found, str(getattr(found, "__cause__", None))


@case(traces=1, undoes=True)
def a_failure_between_two_writes(jit):
    weight, table = wg.zeros(2), wg.ones(3, 2)

    @jit
    def f(i):
        weight.add_(1)
        row = table[i]
        weight.add_(10)
        return row * 1

    for i in (0, 1, 5, 2, -4, 1):
        try:
            yield f(wg.tensor([i]))
        except IndexError as error:
            yield error
        yield weight


@case
def an_embedding_out_of_range_in_training(jit):
    embedding = nn.Embedding(4, 2)
    optimizer = wg.optim.SGD(embedding.parameters(), lr=0.1)

    @jit
    def step(i):
        optimizer.zero_grad()
        loss = embedding(i).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in (0, 1, 7, 2):
        try:
            yield step(wg.tensor([i]))
        except IndexError as error:
            yield error
        yield embedding.weight


@case
def an_assertion(jit):
    @jit
    def f(x):
        assert (x > 0).all(), "all must be positive"
        return x * 2

    for k in (1, -1, 1):
        try:
            yield f(wg.ones(2) * k)
        except AssertionError as error:
            yield error


@case
def a_call_that_fails(jit):
    f = jit(lambda x: x.reshape(3))
    for n in (3, 2, 3, 2):
        yield raised(f, wg.ones(n))


@case
def writes_around_a_failure_that_is_caught(jit):
    weight, table = wg.zeros(2), wg.ones(3, 2)

    @jit
    def f(i):
        weight.add_(1)
        try:
            row = table[i]
            weight.add_(10)
        except IndexError:
            weight.add_(100)
            row = weight * 0
        return row * 1

    for i in (0, 5, 1, 7, 2):
        yield raised(f, wg.tensor([i]))
        yield weight


@case(undoes=True)
def a_failure_with_a_finally(jit):
    weight, table = wg.zeros(2), wg.ones(3, 2)

    @jit
    def f(i):
        weight.add_(1)
        try:
            return table[i] * 1
        finally:
            weight.add_(100)

    for i in (0, 5, 1, 7, 2):
        yield raised(f, wg.tensor([i]))
        yield weight


@case
def a_failure_within_a_context(jit):
    weight, table = wg.zeros(2), wg.ones(3, 2)

    class Undo:
        def __enter__(self):
            weight.add_(1)

        def __exit__(self, kind, *error):
            weight.sub_(1)
            return kind is not None

    undo = Undo()

    @jit
    def f(i):
        with undo:
            return table[i] * 1
        return weight * 1

    for i in (0, 5, 1, 7, 2):
        yield raised(f, wg.tensor([i]))
        yield weight


@case(undoes=True)
def a_failure_of_a_program_that_is_called(jit):
    weight, table = wg.zeros(2), wg.ones(3, 2)

    @jit
    def inner(i):
        weight.add_(1)
        return table[i] * 1

    @jit
    def outer(i):
        try:
            return inner(i)
        except IndexError:
            return weight * 1

    for i in (0, 5, 1, 7, 2):
        yield raised(outer, wg.tensor([i]))
        yield raised(inner, wg.tensor([i]))
        yield weight


@case(undoes=True)
def a_failure_in_a_backward(jit):
    weight = wg.ones(2, requires_grad=True)

    class Failing(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * wg.linalg.cholesky(x.detach() * wg.eye(2)).diagonal()

    @jit
    def f(x):
        weight.grad = None
        Failing.apply(weight * x).sum().backward()

    for k in (1, -1, 4, -4):
        yield raised(f, ones() * k)
        yield weight.grad


@case
def a_failure_of_shapes_that_is_caught(jit):
    @jit
    def f(x, y):
        try:
            return x @ y
        except (RuntimeError, ValueError):
            return x.sum() * y.sum()

    for n, m in ((2, 2), (2, 3), (2, 2), (3, 2)):
        yield raised(f, wg.ones(n), wg.ones(m))
