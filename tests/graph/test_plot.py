"""How gradients flow: what is measured, when a layer is remarked upon, what is drawn."""

import subprocess
import sys

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F
from wengert.plot import GradientFlow, Thresholds, gradient_flow

WIDTH, CLASSES = 16, 3


def batch():
    """Inputs and classes."""
    wg.manual_seed(1)
    return wg.randn(64, WIDTH), wg.randint(0, CLASSES, (64,))


def deep(activation, layers=10, start=None):
    """Equal layers with an activation behind each, then logits; `start` sets the first weights."""
    wg.manual_seed(0)
    parts = []
    for _ in range(layers):
        linear = nn.Linear(WIDTH, WIDTH)
        if start is not None:
            start(linear.weight)
            nn.init.zeros_(linear.bias)
        parts += [linear, activation()]
    return nn.Sequential(*parts, nn.Linear(WIDTH, CLASSES))


def loss_of(model):
    inputs, classes = batch()
    return F.cross_entropy(model(inputs), classes)


def he(weight):
    nn.init.kaiming_normal_(weight, nonlinearity="relu")


def test_sigmoid_layers_make_gradients_vanish():
    """Behind orthogonal weights, n sigmoids scale a gradient by 0.25^n at most."""
    model = deep(nn.Sigmoid, start=nn.init.orthogonal_)
    logits = []
    handle = model[20].register_forward_pre_hook(lambda module, args: logits.append(args[0]))
    loss = loss_of(model)
    handle.remove()
    (last,) = logits
    last.retain_grad()
    loss.backward()
    table = gradient_flow(model).table
    inputs = batch()[0]
    bound = 0.25**10 * last.grad.norm().item() * inputs.norm().item()
    assert 0 < model[0].weight.grad.norm().item() <= bound * (1 + 1e-5)
    norms = [row.grad_norm for row in table]
    assert norms == sorted(norms)
    flagged = [name for name, flags in table.flags.items() if flags == ("vanishing",)]
    assert flagged[:5] == ["0", "2", "4", "6", "8"]
    assert "20" not in table.flags


def test_large_weights_make_gradients_explode():
    def large(weight):
        he(weight)
        with wg.no_grad():
            weight.mul_(4.0)

    model = deep(nn.ReLU, start=large)
    loss_of(model).backward()
    table = gradient_flow(model).table
    assert all(row.flags == ("exploding",) for row in table)
    assert min(row.grad_norm for row in table) > 1e3


def test_he_initialised_relu_is_healthy():
    model = deep(nn.ReLU, start=he)
    loss_of(model).backward()
    table = gradient_flow(model, batch()[0]).table
    assert table.flags == {}
    norms = [row.grad_norm for row in table]
    assert max(norms) / min(norms) < 100


def test_dead_units_are_counted():
    model = deep(nn.ReLU, layers=2, start=he)
    with wg.no_grad():
        model[0].bias[:4] = -1000.0
        model[2].bias[:] = -1e6
    loss_of(model).backward()
    table = gradient_flow(model, batch()[0]).table
    (dead,) = [batch()[0].numpy() @ model[0].weight.detach().numpy().T + model[0].bias.detach().numpy()]
    assert table["0"].dead == (dead <= 0).all(0).mean() >= 0.25
    assert table["2"].dead == 1.0
    assert table["4"].dead is None
    assert table["0"].silent == table["2"].silent == 1.0
    assert table.flags == {"0": ("zero",), "2": ("zero", "dead")}


def test_units_without_gradient_are_seen_without_activation_modules():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)

        def forward(self, x):
            return self.last(F.relu(self.first(x)))

    wg.manual_seed(0)
    model = Plain()
    with wg.no_grad():
        model.first.bias[:2] = -1000.0
    model(wg.randn(32, 4)).sum().backward()
    row = gradient_flow(model).table["first"]
    assert row.dead is None
    assert row.silent >= 0.25


@pytest.mark.parametrize(
    ("activation", "value", "share"), [(nn.Sigmoid, 10.0, 0.5), (nn.Tanh, 3.0, 0.5), (nn.Hardtanh, 2.0, 1.0)]
)
def test_saturated_outputs_are_counted(activation, value, share):
    model = nn.Sequential(nn.Linear(2, 2), activation())
    with wg.no_grad():
        model[0].weight[:] = wg.eye(2)
        model[0].bias[:] = wg.zeros(2)
    inputs = wg.tensor([[value, 0.0 if share < 1 else -value]])
    model(inputs).sum().backward()
    row = gradient_flow(model, inputs).table["0"]
    assert row.saturated == share
    assert "saturated" in row.flags


def test_update_ratios():
    model = deep(nn.ReLU, layers=1, start=he)
    loss_of(model).backward()
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)
    by_optimizer, by_rate = (
        gradient_flow(model, optimizer=optimizer).table,
        gradient_flow(model, lr=0.1).table,
    )
    assert by_optimizer == by_rate
    before = [p.detach().clone() for p in model[0].parameters()]
    optimizer.step()
    moved = sum(((p.detach() - q) ** 2).sum().item() for p, q in zip(model[0].parameters(), before)) ** 0.5
    size = sum((q**2).sum().item() for q in before) ** 0.5
    assert by_rate["0"].update_ratio == pytest.approx(moved / size, rel=1e-4)
    assert gradient_flow(model).table["0"].update_ratio is None


@pytest.mark.parametrize("update_first", [True, False])
def test_the_recorder_measures_real_steps(update_first):
    model = deep(nn.ReLU, layers=2, start=he)
    optimizer = wg.optim.Adam(model.parameters(), lr=1e-2)
    ratios = []
    with GradientFlow(model, optimizer) as flow:
        for _ in range(4):
            optimizer.zero_grad()
            loss_of(model).backward()
            before = model[0].weight.detach().clone(), model[0].bias.detach().clone()
            if update_first:
                flow.update()
            optimizer.step()
            if not update_first:
                flow.update()
            after = model[0].weight.detach(), model[0].bias.detach()
            moved = sum(((a - b) ** 2).sum().item() for a, b in zip(after, before)) ** 0.5
            ratios.append(moved / sum((b**2).sum().item() for b in before) ** 0.5)
    assert flow.history("update_ratio")[:, 0] == pytest.approx(ratios, rel=1e-4)
    assert flow.history("grad_norm").shape == (4, 3)
    assert np.isfinite(flow.history("dead")[:, :2]).all()
    assert np.isnan(flow.history("dead")[:, 2]).all()
    # The hooks are gone: nothing is looked at or measured any more.
    loss_of(model).backward()
    optimizer.step()
    assert not flow._units.alive
    assert np.isfinite(flow.history("update_ratio")).all()


def test_units_live_if_any_forward_between_updates_wakes_them():
    model = nn.Sequential(nn.Linear(1, 2), nn.ReLU())
    with wg.no_grad():
        model[0].weight[:] = wg.tensor([[1.0], [-1.0]])
        model[0].bias[:] = wg.zeros(2)
    with GradientFlow(model) as flow:
        model(wg.tensor([[1.0]])).sum().backward()
        assert flow.update()["0"].dead == 0.5
        model(wg.tensor([[1.0]])).sum().backward()
        model(wg.tensor([[-1.0]])).sum().backward()
        assert flow.update()["0"].dead == 0.0
        # A forward without values of its own is not seen, and does no harm.
        wg.vmap(model)(wg.ones(3, 1))
        assert flow.update()["0"].dead is None


def test_looking_changes_nothing():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU(), nn.Linear(4, 1))
    model.register_buffer("count", wg.zeros(1))
    model.register_forward_hook(lambda module, args, out: module.count.add_(1.0) and None)
    x = wg.randn(8, 4)
    model(x).sum().backward()
    grads = [p.grad.clone() for p in model.parameters()]
    state = wg.get_rng_state()
    gradient_flow(model, (x,))
    assert model.count.item() == 1.0
    assert wg.get_rng_state() == state
    assert all((p.grad == g).all().item() for p, g in zip(model.parameters(), grads))


def test_gradients_that_are_not_finite_or_missing():
    model = deep(nn.ReLU, layers=2, start=he)
    loss_of(model).backward()
    with wg.no_grad():
        model[0].weight.grad[0, 0] = float("nan")
    model[2].weight.grad = None
    model[2].bias.grad = None
    table = gradient_flow(model).table
    assert table.flags == {"0": ("not finite", "exploding"), "2": ("no gradient",)}
    assert table["2"].grad_norm is None


def test_thresholds():
    model = deep(nn.Sigmoid, layers=3)
    loss_of(model).backward()
    assert "0" not in gradient_flow(model).flags
    assert gradient_flow(model, thresholds=Thresholds(vanishing=0.5)).flags["0"] == ("vanishing",)
    assert gradient_flow(model, thresholds=Thresholds(exploding=1e-9)).flags["0"] == ("exploding",)


def test_settings_over_time():
    model = deep(nn.Sigmoid, layers=3)
    for lr in (None, 0.5):
        with GradientFlow(model, lr=lr) as flow:
            loss_of(model).backward()
            row = flow.update()["0"]
        assert row.update_ratio == (
            None if lr is None else pytest.approx(lr * row.grad_norm / row.weight_norm)
        )
        assert row.flags == ()
        model.zero_grad()
    with GradientFlow(model, thresholds=Thresholds(vanishing=0.5)) as flow:
        loss_of(model).backward()
        assert flow.update()["0"].flags == ("vanishing",)


def test_shares_that_are_remarked_upon():
    model = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    with wg.no_grad():
        for layer, weights in ((model[0], [1.0, 1.0, 1.0, -1.0]), (model[2], [9.0, 0.1, 0.1, 0.1])):
            layer.weight.copy_(wg.tensor(weights)[:, None].expand(layer.weight.shape))
            layer.bias.zero_()

    x = wg.ones(3, 1)
    model(x).sum().backward()

    def remarks(**settings):
        return gradient_flow(model, (x,), thresholds=Thresholds(**settings)).flags

    assert remarks() == {}
    assert remarks(dead=0.25) == {"0": ("dead",)}
    assert remarks(saturated=0.25) == {"2": ("saturated",)}


def test_errors():
    model = deep(nn.ReLU, layers=1)
    with pytest.raises(RuntimeError) as caught:
        gradient_flow(model)
    assert str(caught.value) == (
        "gradient_flow: no parameter has a gradient; call loss.backward() before it, and zero_grad() only "
        "after it"
    )
    with pytest.raises(TypeError, match="gradient_flow: a module expected, got list"):
        gradient_flow([])
    with pytest.raises(ValueError, match="GradientFlow: ReLU has no parameters, so there is nothing to show"):
        GradientFlow(nn.ReLU())
    flow = GradientFlow(model)
    with pytest.raises(RuntimeError, match=r"nothing is recorded; call update\(\) after a backward"):
        _ = flow.table
    with pytest.raises(ValueError, match="unknown field 'norm'; expected one of weight_norm, grad_norm"):
        flow.history("norm")
    loss_of(model).backward()
    with pytest.raises(KeyError, match="no layer '1' in the table; there are 0, 2"):
        flow.update()["1"]


def test_the_table_as_text():
    model = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    with wg.no_grad():
        for parameter, value in zip(model.parameters(), (1.0, 0.0, 2.0, 0.0)):
            parameter.fill_(value)
        model[0].weight[1] = -1.0
    x = wg.tensor([[3.0]])
    model(x).sum().backward()
    assert str(gradient_flow(model, x, lr=0.01)) == (
        "layer  kind    parameters  |weight|  |gradient|  gradient/weight  update/weight  dead  without "
        "gradient  remarks\n"
        "0      Linear           4  1.41e+00    6.32e+00         4.47e+00       4.47e-02   50%               "
        "50%  dead\n"
        "2      Linear           3  2.83e+00    3.16e+00         1.12e+00       1.12e-02     -               "
        " 0%"
    )


def test_figures(tmp_path):
    model = deep(nn.Sigmoid, layers=3)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)
    with GradientFlow(model, optimizer) as flow:
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
            flow.update()
        with wg.no_grad():
            model[2].weight.grad.mul_(float("nan"))
        flow.update()
    flow.save(tmp_path / "flow.png")
    assert (tmp_path / "flow.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    titles = [axes.get_title(loc="left") for axes in flow.figure.axes if axes.get_title(loc="left")]
    assert titles == ["Gradient norm (crosses: not finite)", "Update / weight", "Saturated outputs, %"]
    report = gradient_flow(model, batch()[0], lr=0.1, title="Four layers")
    figure, table = report
    assert table is report.table
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["0  Linear", "2  Linear", "4  Linear", "6  Linear"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        *("Gradient norm", "Gradient / weight", "Update / weight", "Saturated units, %")
    ]
    remarks = {text.get_text() for text in figure.axes[-1].texts}
    assert "not finite, exploding" in remarks
    assert report._repr_png_()[:4] == b"\x89PNG"


def test_tables_need_no_matplotlib():
    code = """
import sys
sys.modules["matplotlib"] = None
import wengert as wg
model = wg.nn.Linear(2, 1)
model(wg.ones(1, 2)).sum().backward()
report = wg.plot.gradient_flow(model)
print(report)
try:
    report.figure
except ImportError as error:
    assert "pip install matplotlib" in str(error)
    print("told")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("layer")
    assert done.stdout.endswith("told\n")
