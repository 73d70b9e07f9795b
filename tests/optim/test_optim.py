"""Optimisers against the published formulas in NumPy. The schedules are in `test_schedules.py`."""

import copy
import math

import numpy as np
import pytest
import wengert as wg
from references.optim_reference import CASES, FUSED, SHAPES, gradients, run, start
from wengert import nn, optim


@pytest.mark.parametrize("name", CASES)
def test_formula(name):
    make, formula, settings = CASES[name]
    params, _ = run(make, settings, wg.float64)
    states = [{} for _ in SHAPES]
    expected = start()
    for grads in gradients(6):
        expected = [formula(p, g, s, **settings) for p, g, s in zip(expected, grads, states)]
    for param, value in zip(params, expected):
        np.testing.assert_allclose(np.asarray(param.tolist()), value, rtol=1e-10, atol=1e-12)
    single, _ = run(make, settings, wg.float32)
    for param, value in zip(single, expected):
        np.testing.assert_allclose(np.asarray(param.tolist()), value, rtol=2e-4, atol=2e-5)


def test_defaults():
    params = [nn.Parameter(wg.zeros(1))]
    assert optim.SGD(params).defaults == dict(
        lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False
    )
    adam_defaults = dict(
        lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False
    )
    decoupled = dict(weight_decay=1e-2, decoupled_weight_decay=True)
    assert optim.Adam(params).defaults == {**adam_defaults, "decoupled_weight_decay": False}
    assert optim.AdamW(params).defaults == {**adam_defaults, **decoupled}
    expected = {
        optim.RMSprop: dict(lr=1e-2, alpha=0.99, eps=1e-8, momentum=0.0, centered=False),
        optim.Adagrad: dict(lr=1e-2, eps=1e-10, lr_decay=0.0, initial_accumulator_value=0.0),
        optim.Adadelta: dict(lr=1.0, rho=0.9, eps=1e-6),
        optim.Adamax: dict(lr=2e-3, betas=(0.9, 0.999), eps=1e-8),
        optim.NAdam: dict(lr=2e-3, momentum_decay=4e-3, decoupled_weight_decay=False),
        optim.RAdam: dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8),
        optim.Rprop: dict(lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50)),
        optim.ASGD: dict(lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6),
        optim.LBFGS: dict(
            lr=1.0, max_iter=20, max_eval=25, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100
        ),
        optim.Adafactor: dict(lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0),
        optim.Muon: dict(
            lr=1e-3, weight_decay=0.1, momentum=0.95, ns_coefficients=(3.4445, -4.775, 2.0315), ns_steps=5
        ),
    }
    matrix = [nn.Parameter(wg.zeros(1, 1))]
    for make, settings in expected.items():
        assert settings.items() <= make(matrix).defaults.items(), make


def test_muon_makes_steps_orthogonal():
    rng = np.random.default_rng(0)
    for shape in ((4, 7), (7, 4), (3, 3)):
        p = nn.Parameter(wg.zeros(shape, dtype=wg.float64))
        p.grad = wg.tensor(rng.standard_normal(shape))
        optim.Muon([p], lr=1.0, weight_decay=0.0).step()
        singular = np.linalg.svd(p.detach().numpy() / math.sqrt(max(1, shape[0] / shape[1])))[1]
        assert 0.6 < singular.min() < singular.max() < 1.3
        # The singular vectors are those of the gradient.
        u, _, v = np.linalg.svd(p.grad.numpy(), full_matrices=False)
        inner = u.T @ p.detach().numpy() @ v.T
        np.testing.assert_allclose(inner - np.diag(np.diagonal(inner)), 0.0, atol=1e-12)


def test_muon_follows_its_formula():
    settings = dict(lr=0.1, weight_decay=0.2, momentum=0.8)
    rng, coefficients = np.random.default_rng(1), (3.4445, -4.775, 2.0315)
    for nesterov, name, scale in (
        (True, None, math.sqrt(5 / 3)),
        (False, "match_rms_adamw", 0.2 * math.sqrt(5)),
    ):
        value = rng.standard_normal((5, 3))
        p = nn.Parameter(wg.tensor(value))
        optimizer = optim.Muon([p], **settings, nesterov=nesterov, adjust_lr_fn=name)
        mean = np.zeros((5, 3))
        for _ in range(3):
            g = rng.standard_normal((5, 3))
            p.grad = wg.tensor(g)
            optimizer.step()
            mean = 0.8 * mean + 0.2 * g
            # Odd powers act on singular values alone.
            u, s, v = np.linalg.svd(0.2 * g + 0.8 * mean if nesterov else mean, full_matrices=False)
            s = s / np.linalg.norm(s)
            for _ in range(5):
                s = sum(c * s ** (2 * k + 1) for k, c in enumerate(coefficients))
            value = value * (1 - 0.1 * 0.2) - 0.1 * scale * (u * s) @ v
        np.testing.assert_allclose(p.detach().numpy(), value, atol=1e-10)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def minimised(f, start, steps=8, **settings):
    """Where L-BFGS comes to, in two parameters, and its optimiser."""
    first, rest = (wg.tensor(part, requires_grad=True) for part in (start[:2], start[2:]))
    optimizer = optim.LBFGS([first, rest], **settings)

    def closure():
        optimizer.zero_grad()
        loss = f(wg.cat([first, rest]))
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(steps)]
    return np.concatenate([first.detach().numpy(), rest.detach().numpy()]), losses, optimizer


def test_lbfgs_finds_minima():
    from scipy.optimize import minimize, rosen, rosen_der

    start = np.array([-1.2, 1.0, 0.3, -0.5, 1.4])
    found, losses, optimizer = minimised(rosenbrock, start, line_search_fn="strong_wolfe")
    expected = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B").x
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert losses == sorted(losses, reverse=True)
    assert optimizer.state[optimizer._all()[0]]["n_iter"] > 10
    # A quadratic function of n variables takes about n steps, whatever its condition.
    scale = np.array([1.0, 10.0, 100.0, 3.0, 30.0])
    quadratic = lambda x: (wg.tensor(scale) * (x - 1).square()).sum()
    found, *_ = minimised(quadratic, start, 1, max_iter=30, line_search_fn="strong_wolfe")
    np.testing.assert_allclose(found, 1.0, atol=1e-5)
    # Without a line search the first step is one of steepest descent of length 1 in the 1-norm.
    g = 2 * scale * (start - 1)
    found, *_ = minimised(quadratic, start, 1, max_iter=1)
    np.testing.assert_allclose(found, start - g / np.abs(g).sum(), atol=1e-12)


def test_lbfgs_climbs():
    start = np.array([-1.2, 1.0, 0.3])
    down, *_ = minimised(rosenbrock, start, 2, line_search_fn="strong_wolfe")
    up, *_ = minimised(lambda x: -rosenbrock(x), start, 2, line_search_fn="strong_wolfe", maximize=True)
    assert up.tolist() == down.tolist()


def test_lbfgs_resumes():
    start = np.array([-1.2, 1.0, 0.3])
    settings = dict(line_search_fn="strong_wolfe", max_iter=4)
    whole, *_ = minimised(rosenbrock, start, 4, **settings)
    half, _, first = minimised(rosenbrock, start, 2, **settings)
    a, b = (wg.tensor(part, requires_grad=True) for part in (half[:2], half[2:]))
    second = optim.LBFGS([a, b])
    second.load_state_dict(first.state_dict())

    def closure():
        second.zero_grad()
        loss = rosenbrock(wg.cat([a, b]))
        loss.backward()
        return loss

    for _ in range(2):
        second.step(closure)
    assert [*a.tolist(), *b.tolist()] == whole.tolist()


def test_averages_of_asgd():
    p = nn.Parameter(wg.zeros(1, dtype=wg.float64))
    optimizer = optim.ASGD([p], lr=0.1, lambd=0.0, t0=2)
    seen = []
    for k in range(6):
        p.grad = wg.tensor([1.0 + k], dtype=wg.float64)
        optimizer.step()
        seen.append(p.item())
    assert optimizer.state[p]["ax"].item() == pytest.approx(np.mean(seen[3:]))


def test_non_contiguous_parameter_and_gradient():
    base = wg.tensor(np.arange(6.0).reshape(2, 3))
    param = base.T.requires_grad_()
    param.grad = wg.tensor(np.ones((2, 3))).T
    optim.SGD([param], lr=1.0).step()
    assert param.tolist() == [[-1, 2], [0, 3], [1, 4]]


def test_groups_maximize_and_missing_gradients():
    a, b, c = (nn.Parameter(wg.zeros(2)) for _ in range(3))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=1.0, maximize=True)
    a.grad, b.grad = wg.ones(2), wg.ones(2)
    optimizer.step()
    assert (a.tolist(), b.tolist()) == ([1, 1], [0.5, 0.5])
    optimizer.add_param_group({"params": [c], "lr": 2.0, "maximize": False})
    optimizer.zero_grad()
    assert a.grad is None
    c.grad = wg.ones(2)
    optimizer.step()
    assert (a.tolist(), c.tolist()) == ([1, 1], [-2, -2])
    b.grad = wg.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert b.grad.tolist() == [0, 0]


def stepped(params, make=optim.Adam, **settings):
    """Values after two steps along gradients of ones."""
    optimizer = make(params, lr=0.5, **settings)
    for _ in range(2):
        for param in params:
            param.grad = wg.ones_like(param.detach())
        optimizer.step()
    return [param.detach().to(wg.float64).tolist() for param in params]


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
def test_one_group_of_several_dtypes_and_layouts(make):
    values = np.arange(6.0).reshape(2, 3)
    dtypes = (wg.float16, wg.float64, wg.float32, wg.bfloat16)
    params = [wg.tensor(values, dtype=dtype).requires_grad_() for dtype in dtypes]
    params.append(wg.tensor(np.asfortranarray(values)).requires_grad_())
    params.append(nn.Parameter(wg.zeros(0, 3)))
    *found, empty = stepped(params, make)
    for value in found:
        np.testing.assert_allclose(value, values - 1.0, rtol=1e-2, atol=1e-3)
    assert empty == []


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
def test_parameters_that_share_memory_step_one_after_the_other(make):
    memory = np.zeros(40_000, np.float32)
    a, b = (wg.from_numpy(memory).requires_grad_() for _ in range(2))
    stepped([a, b], make)
    np.testing.assert_allclose(memory, -2.0, rtol=1e-6)
    # Views of one memory that do not overlap.
    left, right = (wg.from_numpy(memory[half]).requires_grad_() for half in np.split(np.arange(40_000), 2))
    assert stepped([left, right], make)[0][0] == pytest.approx(-3.0)


def test_a_gradient_that_is_a_parameter():
    a, b = nn.Parameter(wg.full((3,), 4.0)), nn.Parameter(wg.ones(3))
    a.grad, b.grad = a.detach(), a.detach()
    optim.SGD([a, b], lr=0.5).step()
    # b sees what the step of a left.
    assert (a.tolist(), b.tolist()) == ([2.0] * 3, [0.0] * 3)


@pytest.mark.parametrize("name", [*FUSED, "rmsprop", "nadam", "rprop"])
def test_bits_do_not_depend_on_threads(name):
    make, _, settings = CASES[name]
    rng = np.random.default_rng(0)
    start = [rng.standard_normal(n).astype(np.float32) for n in (270_001, 3, 133_000)]
    before, found = wg.get_num_threads(), []
    for threads in (1, 2, 3):
        wg.set_num_threads(threads)
        params = [wg.tensor(x).requires_grad_() for x in start]
        optimizer = make(params, **settings)
        for _ in range(2):
            for param in params:
                param.grad = param.detach().sin()
            nn.utils.clip_grad_norm_(params, 1.0)
            optimizer.step()
        found.append([p.detach().numpy().tobytes() for p in params])
    wg.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_state_is_pytorchs():
    p = nn.Parameter(wg.ones(2))
    plain, adam = optim.SGD([p], lr=0.1), optim.Adam([p], amsgrad=True)
    adam.step()
    assert adam.state_dict()["state"] == {}
    p.grad = wg.ones(2)
    plain.step()
    assert plain.state_dict()["state"] == {}
    adam.step()
    entry = adam.state_dict()["state"][0]
    assert list(entry) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert entry["step"] == 1
    # PyTorch counts steps in tensors.
    counted = adam.state_dict()
    counted["state"][0]["step"] = wg.tensor(7.0)
    adam.load_state_dict(counted)
    adam.step()
    assert adam.state[p]["step"] == 8
    momentum = optim.SGD([p], lr=0.1, momentum=0.9)
    momentum.state[p] = {"momentum_buffer": None}
    momentum.step()
    assert momentum.state[p]["momentum_buffer"].tolist() == [1.0, 1.0]


def test_a_failed_step_changes_nothing():
    a, b = nn.Parameter(wg.ones(2)), nn.Parameter(wg.ones(3))
    optimizer = optim.Adam([a, b])
    b.grad = wg.ones(3)
    optimizer.step()
    a.grad = wg.ones(2)
    optimizer.state[b]["exp_avg"] = wg.ones(4)
    before = a.tolist()
    with pytest.raises(wg.ShapeError, match=r"Adam: a gradient or state is .*, expected shape \(3,\)"):
        optimizer.step()
    assert a.tolist() == before
    assert a not in optimizer.state
    assert optimizer.state[b]["step"] == 1


def test_adam_with_decoupled_decay_is_adamw():
    def steps(make):
        p = nn.Parameter(wg.tensor([1.0, -2.0]))
        optimizer = make([p])
        for _ in range(3):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        return p.tolist()

    decoupled = steps(lambda p: optim.Adam(p, lr=0.1, weight_decay=0.3, decoupled_weight_decay=True))
    assert decoupled == steps(lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.3))
    assert decoupled != steps(lambda p: optim.Adam(p, lr=0.1, weight_decay=0.3))


def test_validation():
    p = nn.Parameter(wg.zeros(2))
    with pytest.raises(ValueError, match="no parameters"):
        optim.SGD([])
    with pytest.raises(
        TypeError, match=r"an iterable of parameters expected, got one tensor; write \[tensor\]"
    ):
        optim.SGD(p)
    with pytest.raises(ValueError, match="is the result of an operation; only leaves can be optimised"):
        optim.SGD([p * 2])
    with pytest.raises(ValueError, match="appears twice"):
        optim.Adam([p, p])
    with pytest.raises(TypeError, match="parameter 0 is a int, not a tensor"):
        optim.Adam([3])
    with pytest.raises(ValueError, match="lr must be 0 or more, got -1"):
        optim.SGD([p], lr=-1.0)
    with pytest.raises(ValueError, match="nesterov needs a positive momentum"):
        optim.SGD([p], nesterov=True)
    with pytest.raises(ValueError, match=r"betas\[1\] must lie in \[0, 1\), got 1\.0"):
        optim.AdamW([p], betas=(0.9, 1.0))
    with pytest.raises(ValueError, match=r"eps must lie in \[0, inf\)"):
        optim.Adam([p], eps=-1.0)
    with pytest.raises(ValueError, match=r"Adadelta: rho must lie in \[0, 1\], got 2"):
        optim.Adadelta([p], rho=2)
    with pytest.raises(ValueError, match=r"RMSprop: alpha must lie in \[0, inf\), got -1"):
        optim.RMSprop([p], alpha=-1)
    with pytest.raises(ValueError, match=r"NAdam: betas\[0\] must lie in \[0, 1\), got 1"):
        optim.NAdam([p], betas=(1, 0.5))
    with pytest.raises(
        ValueError, match=r"Rprop: etas are a factor between 0 and 1 and one above 1, got \(1, 2\)"
    ):
        optim.Rprop([p], etas=(1, 2))
    with pytest.raises(
        ValueError, match=r"Muon: parameter 0 of shape \(2,\) is no matrix; give it to another"
    ):
        optim.Muon([p])
    with pytest.raises(ValueError, match=r"Muon: adjust_lr_fn must be None, 'original' or"):
        optim.Muon([nn.Parameter(wg.ones(2, 2))], adjust_lr_fn="other")
    with pytest.raises(ValueError, match="Adafactor: d must be 1 or more, got 0"):
        optim.Adafactor([p], d=0)
    with pytest.raises(TypeError, match=r"LBFGS: step\(\) needs a closure"):
        optim.LBFGS([p]).step()
    with pytest.raises(
        ValueError, match="LBFGS: line_search_fn must be None or 'strong_wolfe', got 'armijo'"
    ):
        optim.LBFGS([p], line_search_fn="armijo")
    with pytest.raises(ValueError, match="LBFGS: one group of parameters expected, got 2"):
        optim.LBFGS([{"params": [p]}, {"params": [nn.Parameter(wg.ones(1))]}])


def test_a_copy_made_during_a_step_is_not_in_one():
    p = wg.ones(1, requires_grad=True)
    optimizer, copies, seen = wg.optim.SGD([p], lr=0.1), [], []
    optimizer.register_step_pre_hook(lambda *_: None)
    optimizer.step(lambda: (copies.append(copy.deepcopy(optimizer)), 1.0)[1])
    copies[0].register_step_pre_hook(lambda *_: seen.append("before"))
    copies[0].step()
    assert seen == ["before"]


def test_closure_and_hooks():
    p = nn.Parameter(wg.tensor([2.0]))
    optimizer, seen = optim.SGD([p], lr=0.25), []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    handle = optimizer.register_step_post_hook(lambda *_: seen.append("after"))

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with wg.no_grad():
        assert optimizer.step(closure).item() == 4.0
    assert p.item() == 1.0
    handle.remove()
    optimizer.step()
    assert seen == ["before", "after", "before"]


@pytest.mark.parametrize(
    "name", ["sgd_momentum", "adam_amsgrad", "adamw", *(n for n in CASES if n not in FUSED)]
)
def test_state_dict_resumes_exactly(name):
    make, _, settings = CASES[name]
    whole, _ = run(make, settings, wg.float32, steps=6)
    half, first = run(make, settings, wg.float32, steps=3)
    params = [p.detach().clone().requires_grad_() for p in half]
    second = make(params, lr=9.0)
    second.load_state_dict(first.state_dict())
    for grads in gradients(6)[3:]:
        for param, g in zip(params, grads):
            param.grad = wg.tensor(g, dtype=wg.float32)
        second.step()
    for a, b in zip(whole, params):
        assert a.tolist() == b.tolist()
    with pytest.raises(ValueError, match=r"groups of \[3\] parameters in the state dict, of \[1\]"):
        make(params[:1], lr=1.0).load_state_dict(first.state_dict())


def test_a_step_invalidates_the_graph():
    p = nn.Parameter(wg.tensor([2.0, 3.0]))
    optimizer = optim.SGD([p], lr=0.1)
    loss = (p * p).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="version"):
        loss.backward()


def test_training_reaches_the_least_squares_solution():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((50, 3)), rng.standard_normal((50, 1))
    expected = np.linalg.lstsq(x, y, rcond=None)[0]
    layer = nn.Linear(3, 1, bias=False).double()
    optimizer = optim.SGD(layer.parameters(), lr=0.2, momentum=0.5)
    for _ in range(300):
        optimizer.zero_grad()
        nn.functional.mse_loss(layer(wg.tensor(x)), wg.tensor(y)).backward()
        optimizer.step()
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected.T, atol=1e-8)
