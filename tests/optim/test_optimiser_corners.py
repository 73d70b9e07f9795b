"""Optimisers at their corners: infinite and complex parameters, settings of groups, hooks,
optimisers of one's own.
"""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
import wengert as wg
from references.optim_reference import CASES, FUSED
from wengert import nn, optim

COMPLEX = [name for name in CASES if not name.startswith("adafactor")]


def one(value=1.0, **kwargs):
    """A parameter with a gradient of ones."""
    p = wg.tensor(value, **kwargs).requires_grad_()
    p.grad = wg.ones_like(p.detach())
    return p


@pytest.mark.parametrize("dtype", [wg.float32, wg.float64, wg.float16, wg.bfloat16])
@pytest.mark.parametrize("name", FUSED)
def test_without_decay_an_infinite_parameter_stays_infinite(name, dtype):
    make, _, settings = CASES[name]
    settings = {**settings, "weight_decay": 0.0}
    p, q = one([math.inf, 1.0], dtype=dtype), one([2.0, 1.0], dtype=dtype)
    for param in (p, q):
        optimizer = make([param], **settings)
        for _ in range(2):
            optimizer.step()
        for entry in optimizer.state[param].values():
            assert np.isfinite(np.asarray(entry if isinstance(entry, int) else entry.float())).all()
    assert p.tolist()[0] == math.inf
    assert p.tolist()[1] == q.tolist()[1]


def test_the_mean_of_averaged_descent_begins_with_an_infinite_parameter():
    p = one([math.inf, 1.0])
    optimizer = optim.ASGD([p], lr=0.1, lambd=0.0, t0=3)
    optimizer.step()
    optimizer.step()
    mean = optimizer.state[p]["ax"]
    # Before t0 it is the parameter, whatever the parameter was.
    assert mean.tolist() == p.tolist() == pytest.approx([math.inf, 0.8])
    with wg.no_grad():
        p[0] = 2.0
    optimizer.step()
    assert mean.tolist() == p.tolist() == pytest.approx([1.9, 0.7])


@pytest.mark.parametrize("name", COMPLEX)
def test_a_complex_parameter_moves_as_its_parts(name):
    make, formula, settings = CASES[name]
    rng = np.random.default_rng(0)
    pairs = rng.standard_normal((3, 2))
    p = wg.view_as_complex(wg.tensor(pairs)).clone().requires_grad_()
    optimizer, state = make([p], **settings), {}
    for _ in range(12):
        g = rng.standard_normal((3, 2))
        p.grad = wg.view_as_complex(wg.tensor(g))
        optimizer.step()
        pairs = formula(pairs, g, state, **settings)
    np.testing.assert_allclose(wg.view_as_real(p.detach()).numpy(), pairs, atol=1e-12)
    kinds = {v.dtype for v in optimizer.state[p].values() if isinstance(v, wg.Tensor)}
    assert kinds <= {wg.complex128}
    # The state of the parameter resumes.
    again = p.detach().clone().requires_grad_()
    second = make([again], **settings)
    second.load_state_dict(optimizer.state_dict())
    again.grad = p.grad
    for each in (optimizer, second):
        each.step()
    assert again.tolist() == p.tolist()


@pytest.mark.parametrize("make", [optim.Adafactor, optim.Muon])
def test_who_wants_real_parameters_says_so(make):
    with pytest.raises(TypeError, match=r"parameter 0 is wengert.complex64; real parameters expected"):
        make([wg.ones(2, 2, dtype=wg.complex64).requires_grad_()])


def test_decoupled_decay_of_a_group():
    # p = 1 - lr (g = 1) with the decay in p first: (1 - 0.1 * 0.5) - 0.1.
    p, q = one(), one()
    optimizer = optim.Adam(
        [{"params": [p], "decoupled_weight_decay": True}, {"params": [q]}], lr=0.1, weight_decay=0.5
    )
    optimizer.step()
    assert (p.item(), q.item()) == pytest.approx((0.85, 0.9))
    # What was loaded counts, too; AdamW stays AdamW.
    saved = optim.Adam([one()], lr=0.1, weight_decay=0.5, decoupled_weight_decay=True).state_dict()
    for make, state in (
        (optim.Adam, saved),
        (optim.AdamW, optim.Adam([one()], 0.1, weight_decay=0.5).state_dict()),
    ):
        p = one()
        optimizer = make([p])
        optimizer.load_state_dict(state)
        optimizer.step()
        assert p.item() == pytest.approx(0.85), make


def test_nesterov_of_a_group():
    p, q = one(), one()
    groups = [{"params": [p]}, {"params": [q], "nesterov": True, "momentum": 0.9}]
    optimizer = optim.SGD(groups, lr=0.1, dampening=0.5)
    optimizer.step()
    optimizer.step()
    # v = 1, then 0.9 + 0.5; each step is g + 0.9 v.
    assert (p.item(), q.item()) == pytest.approx((0.8, 1 - 0.1 * 1.9 - 0.1 * (1 + 0.9 * 1.4)))
    with pytest.raises(ValueError, match="nesterov needs a positive momentum"):
        optim.SGD([{"params": [one()], "momentum": 0.9}], nesterov=True)


def test_rprop_leaves_what_has_no_gradient():
    p = wg.ones(2).requires_grad_()
    optimizer = optim.Rprop([p], lr=0.5)
    for g in ([1.0, math.nan], [1.0, 1.0], [1.0, 1.0]):
        p.grad = wg.tensor(g)
        optimizer.step()
    # The first: 0.5 (1 + 1.2 + 1.44). The second stands, then moves by 0.5, and by 1.2 times as much.
    assert p.tolist() == pytest.approx([1 - 0.5 * 3.64, 1 - 0.5 * 2.2])


POSITIONS = {
    # The order of PyTorch's documentation, and where `maximize` stands in it.
    "RMSprop": (optim.RMSprop, (0.1, 0.99, 1e-8, 0.0, 0.0, False, False, None, True, False)),
    "ASGD": (optim.ASGD, (0.1, 1e-4, 0.75, 1e6, 0.0, None, True, False, False)),
}


@pytest.mark.parametrize("name", list(POSITIONS))
def test_the_order_of_settings(name):
    make, given = POSITIONS[name]
    assert make([one()], *given).defaults["maximize"] is True


KEYWORDS = {
    optim.SGD: ("foreach", "differentiable", "fused"),
    optim.Adam: ("foreach", "capturable", "differentiable", "fused"),
    optim.AdamW: ("foreach", "capturable", "differentiable", "fused"),
    optim.Adagrad: ("foreach", "differentiable", "fused"),
    optim.Adadelta: ("foreach", "capturable", "differentiable"),
    optim.RMSprop: ("foreach", "capturable", "differentiable"),
    optim.Adamax: ("foreach", "capturable", "differentiable"),
    optim.NAdam: ("foreach", "capturable", "differentiable"),
    optim.RAdam: ("foreach", "capturable", "differentiable"),
    optim.Rprop: ("foreach", "capturable", "differentiable"),
    optim.ASGD: ("foreach", "capturable", "differentiable"),
}


@pytest.mark.parametrize("make", list(KEYWORDS), ids=lambda make: make.__name__)
def test_keywords_that_change_nothing(make):
    p, q = one(), one()
    make([p]).step()
    make([q], **dict.fromkeys(KEYWORDS[make], False)).step()
    assert p.item() == q.item()
    with pytest.raises(ValueError, match=f"{make.__name__}: differentiable=True is not supported"):
        make([p], differentiable=True)


class Lion(optim.Optimizer):
    """Signs of a mean (Chen et al. 2023), written as for PyTorch; its rate has another name."""

    def __init__(self, params, rate=0.1, beta=0.5):
        super().__init__(params, dict(rate=rate, beta=beta))

    @wg.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with wg.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["mean"], state["step"] = wg.zeros_like(p), 0
                state["step"] += 1
                p.sub_(state["mean"].lerp_(p.grad, 1 - group["beta"]).sign() * group["rate"])
        return loss


def test_an_optimiser_of_ones_own():
    p = one([1.0, -1.0])
    optimizer = Lion([p])
    assert optimizer.state[wg.ones(1)] == {}
    optimizer.state.clear()
    for _ in range(2):
        assert optimizer.step(lambda: 5.0) == 5.0
    assert p.tolist() == pytest.approx([0.8, -1.2])
    optimizer.state["shared"] = [1, 2]
    saved = pickle.loads(pickle.dumps(optimizer.state_dict()))
    other = Lion([one([0.0, 0.0])])
    other.load_state_dict(saved)
    assert other.state["shared"] == [1, 2]
    entry = other.state[other.param_groups[0]["params"][0]]
    assert (entry["step"], entry["mean"].tolist()) == (2, [0.75, 0.75])
    assert copy.deepcopy(other).state["shared"] == [1, 2]


@pytest.mark.parametrize(
    "make", [optim.SGD, Lion, optim.LBFGS, optim.Adagrad], ids=lambda make: make.__name__
)
def test_hooks_run_around_the_whole_step(make):
    p = one()
    optimizer, seen = make([p]), []

    def closure():
        seen.append("closure")
        p.grad = wg.ones_like(p.detach())
        return p.sum()

    def before(got, args, kwargs):
        assert (got, args, kwargs) == (optimizer, (optimizer, closure), {})
        seen.append("before")

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(lambda got, args, kwargs: seen.append(len(args)))
    optimizer.step(closure)
    assert seen[:2] == ["before", "closure"]
    assert (seen[-1], seen.count("before"), seen.count(2)) == (2, 1, 1)


def test_a_hook_may_change_the_arguments():
    p = one()
    optimizer = optim.SGD([p], lr=0.5)
    handle = optimizer.register_step_pre_hook(lambda got, args, kwargs: ((got,), {"closure": lambda: 7.0}))
    assert optimizer.step() == 7.0
    handle.remove()
    optimizer.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(
        RuntimeError, match=r"a hook before the step returns None or the new \(args, kwargs\), got int"
    ):
        optimizer.step()


@pytest.mark.parametrize("make", [optim.SGD, Lion, optim.LBFGS], ids=lambda make: make.__name__)
def test_hooks_see_arguments_as_they_were_passed(make):
    optimizer, seen = make([one()]), []

    def closure():
        return wg.zeros(1)

    optimizer.register_step_pre_hook(lambda _, args, kwargs: seen.append(("before", args[1:], kwargs)))
    optimizer.register_step_post_hook(lambda _, args, kwargs: seen.append(("after", args[1:], kwargs)))
    calls = [((closure,), {}), ((), {"closure": closure})]
    if make is not optim.LBFGS:
        calls += [((), {}), ((None,), {}), ((), {"closure": None})]
    for args, kwargs in calls:
        optimizer.step(*args, **kwargs)
        assert seen == [("before", args, kwargs), ("after", args, kwargs)]
        seen.clear()


class Twice(optim.SGD):
    """Steps twice by the base class's own step."""

    def step(self, closure=None):
        super().step(closure)
        return super().step(closure)


def test_hooks_run_once_around_a_step_made_of_steps():
    p, seen = one(), []
    optimizer = Twice([p], lr=0.25)
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.step()
    optimizer.step()
    assert (p.item(), seen) == (0.0, ["before", "before"])


def test_names_of_parameters_are_kept():
    layer = nn.Linear(2, 1)
    optimizer = optim.Adam(layer.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["param_names"] == ["weight", "bias"]
    other = optim.Adam(layer.named_parameters(), lr=0.2)
    del saved["param_groups"][0]["param_names"]
    other.load_state_dict(saved)
    assert other.param_groups[0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="names for all groups of parameters or for none expected"):
        other.add_param_group({"params": [one()]})
    with pytest.raises(ValueError, match="names for all parameters or for none expected, got 1 for 2"):
        optim.SGD([("a", one()), one()])


def test_a_loaded_count_keeps_its_digits():
    # 4097 is no float16.
    p = one(dtype=wg.float16)
    optimizer = optim.Adam([p])
    optimizer.step()
    saved = optimizer.state_dict()
    saved["state"][0]["step"] = wg.tensor(4097.0)
    optimizer.load_state_dict(saved)
    optimizer.step()
    assert optimizer.state[p]["step"] == 4098


def test_a_loaded_state_is_a_copy():
    p = one()
    optimizer = Lion([p])
    optimizer.state[p] = {
        "history": [wg.ones(1, dtype=wg.float64)],
        "nested": {"mean": wg.ones(1)},
        "table": [1],
    }
    saved = optimizer.state_dict()
    saved["param_groups"][0]["table"] = [1]
    other = Lion([one()])
    other.load_state_dict(saved)
    entry = other.state[other.param_groups[0]["params"][0]]
    assert entry["history"][0].dtype == wg.float32
    saved["state"][0]["history"][0].fill_(5.0)
    saved["state"][0]["nested"]["mean"].fill_(5.0)
    saved["state"][0]["table"].append(2)
    saved["param_groups"][0]["table"].append(2)
    assert (entry["history"][0].item(), entry["nested"]["mean"].item()) == (1.0, 1.0)
    assert entry["table"] == other.param_groups[0]["table"] == [1]


def test_what_an_optimiser_takes():
    results = one() * 2
    results.retain_grad()
    results.sum().backward()
    optim.SGD([results], lr=0.5).step()
    assert results.item() == 1.5
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optim.SGD({one()}, lr=0.1)
    assert "the order of a set changes from run to run" in str(seen[0].message)
    with pytest.raises(TypeError, match="a list of parameters expected, got a set"):
        optim.SGD([{"params": {one()}}], lr=0.1)


def test_adagrad_of_groups():
    """Each group begins with its own sum of squares: 1 - 0.1 / sqrt(start + 1)."""
    p, q = one(), one()
    groups = [{"params": [p]}, {"params": [q], "initial_accumulator_value": 8.0}]
    optim.Adagrad(groups, lr=0.1, initial_accumulator_value=3.0).step()
    assert (p.item(), q.item()) == pytest.approx((1 - 0.1 / 2, 1 - 0.1 / 3))
