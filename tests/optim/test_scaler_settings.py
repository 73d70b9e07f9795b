"""Settings of `GradScaler` that are read and set, and questions about autocast that name a device."""

import pytest
import wengert as wg
from wengert import nn, optim
from wengert.amp import GradScaler


def test_settings_are_read_and_set():
    scaler = GradScaler("cpu", growth_factor=4.0, backoff_factor=0.25, growth_interval=3)
    assert scaler.get_growth_factor() == 4.0
    assert scaler.get_backoff_factor() == 0.25
    assert scaler.get_growth_interval() == 3
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.125)
    scaler.set_growth_interval(1)
    state = scaler.state_dict()
    assert (state["growth_factor"], state["backoff_factor"], state["growth_interval"]) == (3.0, 0.125, 1)
    p = nn.Parameter(wg.ones(1))
    optimizer = optim.SGD([p], lr=0.1)
    for factor, expected in ((1.0, 3 * 65536.0), (float("inf"), 3 * 8192.0)):
        optimizer.zero_grad()
        scaler.scale(p.sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == expected


@pytest.mark.parametrize(
    ("name", "value"), [("growth_factor", 1.0), ("backoff_factor", 1.0), ("growth_interval", 0)]
)
def test_settings_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"GradScaler: .*{name}.* expected, got {value}"):
        getattr(GradScaler(), f"set_{name}")(value)


def test_losses_of_any_iterable():
    scaler = GradScaler(init_scale=2.0)
    assert [x.item() for x in scaler.scale(wg.tensor(float(k)) for k in range(3))] == [0.0, 2.0, 4.0]


def test_questions_that_name_a_device():
    for device in (None, "cpu", "gpu:0", "cuda"):
        assert not wg.is_autocast_enabled(device)
        assert wg.get_autocast_dtype(device) is None
        with wg.autocast("cpu", dtype=wg.float16):
            assert wg.is_autocast_enabled(device)
            assert wg.get_autocast_dtype(device) == wg.float16
    with pytest.raises(ValueError, match='is_autocast_enabled: "tpu" is not a device'):
        wg.is_autocast_enabled("tpu")


def test_what_is_no_device():
    with pytest.raises(
        ValueError, match=r"^GradScaler: 'xla' is not a device; expected 'cpu' or 'gpu', or nothing at all$"
    ):
        GradScaler("xla")
    with pytest.raises(
        TypeError, match=r"^GradScaler: device is a string, got float; pass the first factor as init_scale=$"
    ):
        GradScaler(1024.0)
    for device in (None, "cpu", "gpu:0", "cuda", wg.device("cpu")):
        assert GradScaler(device).get_scale() == 65536.0
