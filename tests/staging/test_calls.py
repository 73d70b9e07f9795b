"""What a program cannot see: errors of operations that nobody reads, and what calls of optimisers do beside."""

import contextlib
from collections.abc import Callable

import pytest
import wengert as wg
from wengert import Tensor, nn


def in_turns(make: Callable[[], Callable[[int], Tensor]], calls: int) -> tuple[list[object], wg.jit.Staged]:
    """The results of calls by a program, and the function; they are those of the function as Python."""
    wg.manual_seed(0)
    eager = make()
    expected = [eager(k).tolist() for k in range(calls)]
    after = wg.get_rng_state()
    wg.manual_seed(0)
    staged = wg.jit(make())
    given = [wg.full((), float(k)) for k in range(calls)]
    found = [staged(x).tolist() for x in given]
    assert found == expected
    assert wg.get_rng_state() == after
    return found, staged


def test_an_error_decides_though_nobody_reads_the_result() -> None:
    def is_definite(a: Tensor) -> Tensor:
        try:
            wg.linalg.cholesky(a)
        except wg.linalg.LinAlgError:
            return a * 0
        return a + 1

    staged = wg.jit(is_definite)
    for a in (wg.eye(2), -wg.eye(2), wg.eye(2)):
        assert staged(a).tolist() == is_definite(a).tolist()


def test_an_index_out_of_range_raises_though_nobody_reads_the_result() -> None:
    def f(x: Tensor, i: Tensor) -> Tensor:
        x[i]
        return x * 2

    staged = wg.jit(f)
    x = wg.ones(3)
    assert staged(x, wg.tensor([1])).tolist() == [2.0] * 3
    with pytest.raises(IndexError):
        staged(x, wg.tensor([7]))

    def quiet(x: Tensor, i: Tensor) -> Tensor:
        with contextlib.suppress(IndexError):
            x[i]
            return x * 2
        return x

    staged = wg.jit(quiet)
    for i in (1, 7, 2):
        assert staged(x, wg.tensor([i])).tolist() == quiet(x, wg.tensor([i])).tolist()


def noisy(between: bool) -> Callable[[int], Tensor]:
    """Steps that draw random numbers beside those of the function."""
    p = nn.Parameter(wg.zeros(2))
    optimizer = wg.optim.SGD([p], lr=1.0)

    def noise(optimizer: wg.optim.Optimizer, args: object, kwargs: object) -> None:
        for group in optimizer.param_groups:
            for q in group["params"]:
                q.grad.add_(wg.randn(q.shape))

    optimizer.register_step_pre_hook(noise)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        ((p + wg.rand(2)) * x).sum().backward()
        optimizer.step()
        return p.detach() + wg.randn(2) if between else p.detach().clone()

    return step


@pytest.mark.parametrize("between", [False, True])
def test_calls_draw_their_numbers_where_the_function_calls_them(between: bool) -> None:
    _, staged = in_turns(lambda: noisy(between), 6)
    assert staged.traces == 1, staged.why()


def test_a_call_that_draws_in_later_calls_alone() -> None:
    def make() -> Callable[[int], Tensor]:
        p, count = nn.Parameter(wg.zeros(2)), [0]
        optimizer = wg.optim.SGD([p], lr=1.0)

        def noise(optimizer: wg.optim.Optimizer, args: object, kwargs: object) -> None:
            count[0] += 1
            if count[0] > 2:
                wg.randn(3)

        optimizer.register_step_pre_hook(noise)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            (p * x * wg.rand(2)).sum().backward()
            optimizer.step()
            return p.detach() * wg.rand(2)

        return step

    in_turns(make, 6)


class Clipped(wg.optim.SGD):
    """Replaces large gradients."""

    def step(self, closure: object = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad.abs().max() > 1:
                    p.grad = p.grad.clamp(-1, 1)
        super().step()


def test_a_call_that_replaces_a_gradient_later_raises_where_it_is_read() -> None:
    w = nn.Parameter(wg.ones(2))
    optimizer = Clipped([w], lr=0.1)

    @wg.jit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return w.grad.sum()

    step(wg.full((2,), 0.5))
    step(wg.full((2,), 0.25))
    with pytest.raises(RuntimeError, match="gives parameters other gradients"):
        step(wg.full((2,), 3.0))


def test_a_call_that_replaces_memory_or_state_later_raises_where_it_is_read() -> None:
    p, count = nn.Parameter(wg.ones(2)), [0]
    optimizer = wg.optim.SGD([p], lr=0.1)

    def look_ahead(optimizer: wg.optim.Optimizer, args: object, kwargs: object) -> None:
        count[0] += 1
        if count[0] == 3:
            p.data = wg.zeros(2)

    optimizer.register_step_post_hook(look_ahead)

    @wg.jit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return p.detach() * 1

    assert step(wg.ones(2)).tolist() == pytest.approx([0.9] * 2)
    assert step(wg.ones(2)).tolist() == pytest.approx([0.8] * 2)
    with pytest.raises(RuntimeError, match="changes what the function reads"):
        step(wg.ones(2))
    assert step(wg.ones(2)).tolist() == pytest.approx([-0.1] * 2)


def test_a_call_that_returns_something_later_raises() -> None:
    p, count = nn.Parameter(wg.ones(2)), [0]

    class Telling(wg.optim.SGD):
        def step(self, closure: object = None) -> object:
            super().step()
            count[0] += 1
            return count[0] if count[0] > 1 else None

    optimizer = Telling([p], lr=0.1)

    @wg.jit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return x

    step(wg.ones(2))
    with pytest.raises(RuntimeError, match="returns something, which it did not"):
        step(wg.ones(2))


def test_a_step_that_is_skipped_while_the_program_is_made() -> None:
    """Backward after a step that wrote is an error, which a skipped one hides."""
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    optimizer = wg.optim.SGD(model.parameters(), lr=0.5)
    scaler = wg.amp.GradScaler(init_scale=2.0**127)

    @wg.jit
    def step(x: Tensor) -> Tensor:
        first, second = model(x).square().sum(), model(2 * x).square().sum()
        scaler.scale(first).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        second.backward()
        optimizer.zero_grad()
        return first

    step(wg.ones(3, 2) * 1e30)
    assert any("a step that changed nothing" in reason for reason in step.why())
    scaler.update(1.0)
    with pytest.raises(RuntimeError, match="modified in place"):
        step(wg.ones(3, 2))


def test_where_a_tensor_lies_in_its_memory_is_not_staged() -> None:
    memory = wg.ones(10)
    offset = wg.jit(lambda x: x * 2 if x.storage_offset() == 0 else x * 3)
    assert (offset(memory[0:2]).tolist(), offset(memory[4:6]).tolist()) == ([2.0] * 2, [3.0] * 2)
    size = wg.jit(lambda x: x + x.untyped_storage().nbytes())
    assert (size(memory[:2]).tolist(), size(wg.zeros(2)).tolist()) == ([41.0] * 2, [8.0] * 2)
    count = wg.jit(lambda x: x + x.storage().size())
    assert (count(memory[:2]).tolist(), count(wg.zeros(2)).tolist()) == ([11.0] * 2, [2.0] * 2)


def test_backward_of_dropout_finds_its_numbers_behind_a_call() -> None:
    """The gradient of attention reads the numbers of its forward again, though a step lies between them."""
    attend = nn.functional.scaled_dot_product_attention

    def make() -> Callable[[Tensor], Tensor]:
        w, u = nn.Parameter(wg.ones(2, 4, 8)), nn.Parameter(wg.ones(3))
        optimizer = wg.optim.SGD([u], lr=0.1)

        def step(x: Tensor) -> Tensor:
            w.grad = None
            optimizer.zero_grad()
            y = attend(w, w * 0.5, w + x, dropout_p=0.5)
            (u * x).square().sum().backward()
            optimizer.step()
            y.square().sum().backward()
            return w.grad * 1

        return step

    _, staged = in_turns(make, 4)
    assert staged.traces == 1, staged.why()


def test_tangents_of_attention_draw_anew() -> None:
    attend = nn.functional.scaled_dot_product_attention
    q = wg.linspace(0, 1, 64).reshape(2, 4, 8)

    def make() -> Callable[[Tensor], Tensor]:
        def f(x: Tensor) -> Tensor:
            y, t = wg.jvp(lambda q: attend(q, q, q, dropout_p=0.5), (q + x,), (wg.ones_like(q),))
            return wg.stack([y, t])

        return f

    in_turns(make, 4)


def test_parts_of_complex_arguments_that_begin_elsewhere() -> None:
    z = wg.complex(wg.arange(10.0), -wg.arange(10.0))
    parts = wg.jit(lambda z: z.real * 2 + z.imag)
    for k in (0, 3, 6, 1):
        assert parts(z[k : k + 4]).tolist() == (z[k : k + 4].real * 2 + z[k : k + 4].imag).tolist()


def test_large_integers_are_told_apart() -> None:
    staged = wg.jit(lambda x, n: x * (n.item() % 7))
    for n in (2**53, 2**53 + 1, 2**53 + 2, 5):
        assert staged(wg.ones(1), wg.tensor([n])).tolist() == [float(n % 7)]
