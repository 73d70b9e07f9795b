"""`why`: each reason with a network that shows it, and the share of each use."""

import re

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F

HERE = re.escape(__file__)


def text(report: object) -> str:
    """The report, with the lines of this file replaced by L."""
    return re.sub(HERE + r":\d+", "L", str(report))


def kinds(report: object) -> list[str]:
    """The kinds of its reasons."""
    return [r.kind for r in report.reasons]


def leaf(*values: float) -> wg.Tensor:
    """A leaf that requires a gradient."""
    return wg.tensor(list(values), requires_grad=True)


def test_no_requires_grad() -> None:
    assert text(wg.why(wg.ones(2))) == (
        "the tensor of shape (2,) has no gradient\n"
        "  because it does not require a gradient; call requires_grad_() on it before use"
    )


def test_never_used() -> None:
    p = leaf(1.0)
    with wg.debug():
        (leaf(2.0) * 2).sum().backward()
    report = wg.why(p)
    assert (report.status, kinds(report)) == ("no gradient", ["unused"])
    assert text(report) == (
        "the leaf of shape (1,) has no gradient\n  because no operation of the region used it"
    )


CUTS = {
    "detach()": lambda h: h.detach(),
    ".data": lambda h: h.data,
    "item()": lambda h: wg.tensor(h.sum().item()),
    "float()": lambda h: wg.tensor(float(h.sum())),
    "bool()": lambda h: wg.ones(1) if h.sum() > 0 else wg.zeros(1),
    "tolist()": lambda h: wg.tensor(h.tolist()),
    "numpy()": lambda h: wg.tensor(h.numpy(force=True)),
    "tensor()": lambda h: wg.tensor(h),
    "argmax (no derivative)": lambda h: h.argmax().float(),
    "round (no derivative)": None,
}


@pytest.mark.parametrize("how", [how for how, f in CUTS.items() if f is not None])
def test_cut_off(how: str) -> None:
    p, q = leaf(1.0, 2.0), leaf(1.0)
    with wg.debug():
        h = p.tanh()
        (CUTS[how](h) * q).sum().backward()
    report = wg.why(p)
    assert report.status == "no gradient"
    cut = [r for r in report.reasons if r.kind == "cut"]
    expected = "gt (no derivative)" if how == "bool()" else how
    assert any(f"left the tape by {expected} at L" in text(r) for r in cut), text(report)
    assert all(r.location is not None and r.location.file == __file__ for r in cut)


def test_message_of_a_cut() -> None:
    p = leaf(1.0)
    with wg.debug():
        loss = p.tanh().detach().sum()
    assert text(wg.why(p, loss)) == (
        "the leaf of shape (1,) has no gradient\n"
        "  because the result of tanh at L left the tape by detach() at L\n"
        "  and     no backward ran in the region"
    )


def test_recording_was_off() -> None:
    p, q = leaf(1.0), leaf(1.0)
    with wg.debug():
        with wg.no_grad():
            h = p * 3
        (h * q).sum().backward()
    assert text(wg.why(p)) == (
        "the leaf of shape (1,) has no gradient\n  because it left the tape by mul (recording was off) at L"
    )


def test_result_that_the_loss_did_not_use() -> None:
    p, q = leaf(1.0), leaf(1.0)
    with wg.debug():
        p.exp()
        (q * 2).sum().backward()
    assert text(wg.why(p)) == (
        "the leaf of shape (1,) has no gradient\n"
        "  because nothing that was recorded used the result of exp at L"
    )


def test_loss_without_a_region() -> None:
    p, q = leaf(1.0), leaf(2.0)
    report = wg.why(p, (q * 2).sum())
    assert text(report) == (
        "the leaf of shape (1,) has no gradient\n"
        "  because the loss does not depend on it; run the step inside `with wengert.debug():` to be told "
        "where it was cut off"
    )
    assert "because the loss has no graph; run" in text(wg.why(p, wg.ones(())))


def test_dead_relu() -> None:
    w = wg.tensor([[1.0, -1.0, 1.0], [1.0, -1.0, -5.0]], requires_grad=True)
    x = wg.tensor([[1.0, 1.0], [3.0, 0.5]])
    with wg.debug():
        (x @ w).relu().sum().backward()
    report = wg.why(w)
    assert report.status == "partly zero"
    assert text(report) == (
        "the leaf of shape (2, 3) has a gradient that is zero in 33% of its elements, norm 5.244\n"
        "  because relu at L passes nothing for 1 of 3 units (they are not positive for every example) and "
        "50% of the elements\n"
        "  it came from\n"
        "    matmul at L: norm 5.244, 100%"
    )


def test_a_whole_dead_layer() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    with wg.no_grad():
        model[0].bias.fill_(-100.0)
    with wg.debug():
        model(wg.ones(2, 3)).sum().backward()
    report = wg.why(model[0].weight)
    assert (report.status, kinds(report)) == ("zero", ["dead"])
    assert "passes nothing for 4 of 4 units" in text(report)
    assert wg.why(model[2].bias).status == "complete"


def test_masked() -> None:
    p = leaf(1.0, -2.0, 3.0, 4.0)
    report = wg.why(p, wg.where(p > 0, p, 0.0).sum())
    assert (report.status, report.zeros, kinds(report)) == ("partly zero", 0.25, ["masked"])
    assert "where masks 25% of the elements" in str(report)


@pytest.mark.parametrize("function", [wg.sigmoid, wg.tanh])
def test_saturated(function) -> None:
    p = leaf(0.0, 0.5, 15.0, -15.0)
    report = wg.why(p, function(p).sum())
    assert report.status in ("complete", "partly zero")
    assert kinds(report) == ["saturated"]
    assert f"{function.__name__} is saturated in 50% of the elements" in str(report)


def test_sum_of_softmax() -> None:
    p = leaf(1.0, 2.0, 3.0)
    with wg.debug():
        p.softmax(-1).sum().backward()
    report = wg.why(p)
    assert (report.status, kinds(report)) == ("zero", ["softmax"])
    assert "its outputs always add up to 1" in str(report)


def test_multiplied_by_zero() -> None:
    p = leaf(1.0, 2.0)
    report = wg.why(p, (p.exp() * wg.zeros(2)).sum())
    assert (report.status, kinds(report)) == ("zero", ["factor"])
    assert "mul multiplies by zero in 100% of the elements" in str(report)


def test_zero_cotangent() -> None:
    p = leaf(1.0, 2.0)
    with wg.debug():
        p.exp().backward(wg.zeros(2))
    report = wg.why(p)
    assert (report.status, kinds(report)) == ("zero", ["seed"])


def test_contributions_that_cancel() -> None:
    p = leaf(1.0, 2.0)
    with wg.debug():
        (p * 2 - p * 2).sum().backward()
    report = wg.why(p)
    assert (report.status, kinds(report)) == ("zero", ["cancelled"])
    assert [u.share for u in report.uses] == [0.5, 0.5]


def test_rows_that_were_not_looked_up() -> None:
    table = wg.ones(4, 2, requires_grad=True)
    report = wg.why(table, F.embedding(wg.tensor([0, 2]), table).sum())
    assert (report.status, report.zeros, kinds(report)) == ("partly zero", 0.5, ["picked"])


def test_not_finite() -> None:
    p = leaf(1.0, 0.0)
    with wg.debug():
        (p.sqrt() * 3).sum().backward()
    report = wg.why(p)
    assert report.status == "not finite"
    assert text(report.reasons[0]) == "sqrt at L made it from a finite cotangent"


def test_many_uses_are_counted() -> None:
    p = leaf(1.0)
    total = p * 0.5
    for k in range(1, 13):
        total = total + p * k
    report = wg.why(p, total)
    assert len(report.uses) == 13
    lines = str(report).splitlines()
    assert lines[2].startswith("    mul: norm 12,")
    assert lines[-1] == "    and 3 more uses, with less each"


def test_before_the_backward_of_an_open_region() -> None:
    p, q = leaf(1.0, -1.0), leaf(1.0)
    with wg.debug() as region:
        loss = p.relu().sum()
        q.exp().detach()
        report = wg.why(p, loss)
        assert text(report.reasons[0]) == "relu at L passes nothing for 50% of the elements"
        assert "left the tape by detach() at L" in text(wg.why(q, loss))
        assert region.walks == []
        loss.backward()
    assert len(region.walks) == 1


def test_inside_a_checkpoint() -> None:
    p = leaf(1.0, -1.0)
    with wg.debug():
        wg.utils.checkpoint.checkpoint(lambda x: x.exp().relu() * 2, p, use_reentrant=False).sum().backward()
    report = wg.why(p)
    assert (report.status, [u.op for u in report.uses]) == ("complete", ["exp"])


@pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_on_every_device(device: str) -> None:
    p = wg.tensor([[1.0, -1.0], [1.0, -1.0]], device=device, requires_grad=True)
    with wg.debug():
        p.relu().sum().backward()
    report = wg.why(p)
    assert (report.zeros, kinds(report)) == (0.5, ["dead"])
    assert wg.trace_backward(p.exp().sum()).gradients["p"].shape == (2, 2)


def test_share_of_each_use() -> None:
    p = leaf(3.0, 4.0)
    with wg.debug():
        a = p * 3
        b = p * 1
        (a + b).sum().backward()
    report = wg.why(p)
    assert report.status == "complete"
    assert report.norm == pytest.approx(np.hypot(4, 4))
    assert [(u.op, round(u.share, 6)) for u in report.uses] == [("mul", 0.25), ("mul", 0.75)]
    assert report.uses[1].location.line == report.uses[0].location.line - 1
    assert sum(u.norm for u in report.uses) == pytest.approx(report.norm)


def test_results_too() -> None:
    x = leaf(1.0, -1.0)
    h = x * 2
    report = wg.why(h, h.relu().sum())
    assert (report.subject, report.status, report.zeros) == (
        "the result of mul of shape (2,)",
        "partly zero",
        0.5,
    )
    assert report.norm == 1.0


def test_walking_again_changes_nothing() -> None:
    p = leaf(1.0, 2.0)
    loss = p.exp().sum()
    wg.why(p, loss)
    assert p.grad is None
    assert not loss.grad_fn.is_freed
    loss.backward()
    with pytest.raises(RuntimeError) as caught:
        wg.why(p, loss)
    assert str(caught.value) == (
        "why: the graph of this loss was freed by its backward(); ask before, pass retain_graph=True to it, "
        "or run the step inside `with wengert.debug():`"
    )


def test_region_remembers_after_parameters_change() -> None:
    model = nn.Linear(3, 2)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)
    with wg.debug():
        loss = model(wg.ones(4, 3)).relu().mean()
        loss.backward()
        optimizer.step()
        del loss
    assert [u.op for u in wg.why(model.weight).uses] == ["linear"]


def test_the_walk_of_the_given_loss() -> None:
    p = leaf(1.0)
    with wg.debug() as region:
        first, second = (p * 2).sum(), (p * 5).sum()
        first.backward()
        second.backward()
    assert len(region.walks) == 2
    assert wg.why(p, first).uses[0].norm == 2.0
    assert wg.why(p, second).uses[0].norm == 5.0
    assert wg.why(p).uses[0].norm == 5.0


def test_inside_transforms() -> None:
    with wg.debug() as region:
        wg.vmap(wg.grad(lambda x: x.relu().sum()))(wg.tensor([[1.0, -1.0], [1.0, -2.0]]))
    (walk,) = region.walks
    relu = next(p for p in walk.pulls if p.op == "relu")
    assert (relu.passages[0][1].units, relu.passages[0][1].stopped_units) == (2, 1)


def test_limit_of_the_log() -> None:
    p = leaf(1.0)
    with wg.debug(limit=10) as region:
        y = p * 1
        for _ in range(20):
            y = y + 1
    assert len(region.lines) == 10
    assert region.dropped == 11
    assert "as far as its last 10 lines tell" in str(wg.why(p))


def test_regions_nest_and_wrap() -> None:
    p = leaf(1.0)

    @wg.debug()
    def step() -> None:
        p.exp().sum().backward()

    with wg.debug() as outer:
        p.tanh()
        step()
        assert [u.op for u in wg.why(p).uses] == ["exp"]
        p.sin()
    assert [line.what for line in outer.lines] == ["tanh", "sin"]
    with pytest.raises(TypeError, match=r"write @debug\(\) with brackets"):
        wg.debug(step)
    assert p.exp().grad_fn.location is None


def test_nothing_known(monkeypatch) -> None:
    monkeypatch.setattr(wg.debugging._session, "_thread", wg.debugging._session._Thread())
    with pytest.raises(RuntimeError) as caught:
        wg.why(leaf(1.0))
    assert str(caught.value) == (
        "why: nothing is known of this tensor's gradient; pass the loss before its backward(), or run the "
        "step inside `with wengert.debug():`"
    )


def test_exceptions_leave_the_region() -> None:
    with pytest.raises(KeyError), wg.debug():
        raise KeyError
    assert leaf(1.0).exp().grad_fn.location is None
