"""Modules, files and pickles on their way to a GPU."""

import io
import pickle
import warnings
from typing import Any

import pytest
import wengert as wg
from wengert import nn
from wengert.optim.swa_utils import AveragedModel, get_ema_avg_fn

STATISTICS: dict[str, Any] = {
    "BatchNorm1d": (lambda **kw: nn.BatchNorm1d(3, **kw), (4, 3)),
    "BatchNorm2d": (lambda **kw: nn.BatchNorm2d(3, **kw), (2, 3, 2, 2)),
    "BatchNorm3d": (lambda **kw: nn.BatchNorm3d(3, **kw), (2, 3, 2, 2, 2)),
    "averaged evenly": (lambda **kw: nn.BatchNorm1d(3, momentum=None, **kw), (4, 3)),
    "InstanceNorm1d": (lambda **kw: nn.InstanceNorm1d(3, track_running_stats=True, **kw), (2, 3, 4)),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_running_statistics_move(name: str) -> None:
    make, shape = STATISTICS[name]
    wg.manual_seed(0)
    x = wg.randn(*shape)
    here = make()
    moved, made = make().to("gpu"), make(device="gpu")
    for _ in range(2):
        want = here(x)
        for there in (moved, made):
            assert wg.allclose(there(x.gpu()).cpu(), want, atol=1e-5)
    for there in (moved, made):
        state = there.state_dict()
        assert {k: str(v.device) for k, v in state.items() if k != "num_batches_tracked"}.popitem()[
            1
        ] == "gpu:0"
        assert state["num_batches_tracked"].item() == here.num_batches_tracked.item()
        assert state["num_batches_tracked"].dtype == wg.int64
        assert wg.allclose(state["running_var"].cpu(), here.running_var, atol=1e-5)
        assert wg.allclose(there.eval().to("cpu")(x), here.eval()(x), atol=1e-5)
        here.load_state_dict(there.state_dict())


def test_integers_keep_their_type() -> None:
    m = nn.Module()
    m.register_buffer("places", wg.arange(3))
    m.register_buffer("again", m.places)
    m.to("gpu")
    assert (str(m.places.device), m.places.dtype, m.places.tolist()) == ("gpu:0", wg.int64, [0, 1, 2])
    assert m.again is m.places
    m.register_buffer("large", wg.tensor([2**31]))
    assert m.to("cpu").to("gpu:0").large.tolist() == [2**31]


def test_a_move_that_fails_changes_nothing() -> None:
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2).double())
    m[0].weight.grad = wg.ones(2, 2)
    before = {k: (v.dtype, str(v.device)) for k, v in m.state_dict().items()}
    with pytest.raises(TypeError, match="gpu:0 has no float64"):
        m.to("gpu")
    assert {k: (v.dtype, str(v.device)) for k, v in m.state_dict().items()} == before
    assert str(m[0].weight.grad.device) == "cpu"


def test_loaded_onto_a_gpu() -> None:
    file = io.BytesIO()
    wg.save({"net": nn.BatchNorm1d(2).state_dict(), "labels": wg.arange(4)}, file)
    file.seek(0)
    found = wg.load(file, map_location="gpu")
    assert str(found["net"]["running_mean"].device) == "gpu:0"
    assert found["net"]["num_batches_tracked"].item() == 0
    assert (str(found["labels"].device), found["labels"].dtype) == ("gpu:0", wg.int64)
    nn.BatchNorm1d(2).to("gpu").load_state_dict(found["net"])


@pytest.mark.parametrize("average", [None, get_ema_avg_fn(0.5)], ids=["mean", "moving"])
def test_averaged_models(average: Any) -> None:
    net = nn.Linear(1, 1, bias=False).to("gpu")
    averaged = AveragedModel(net, avg_fn=average).to("gpu")
    for value in (1.0, 2.0):
        with wg.no_grad():
            net.weight.fill_(value)
        averaged.update_parameters(net)
    assert averaged.n_averaged.item() == 2
    assert str(averaged.module.weight.device) == "gpu:0"
    assert averaged.module.weight.item() == 1.5


def test_pickles_keep_the_device() -> None:
    t = wg.arange(3.0, device="gpu", requires_grad=True)
    again = pickle.loads(pickle.dumps(t))
    assert (str(again.device), again.tolist(), again.requires_grad) == ("gpu:0", [0.0, 1.0, 2.0], True)
    m = pickle.loads(pickle.dumps(nn.BatchNorm1d(2).to("gpu")))
    assert str(m.weight.device) == "gpu:0"
    assert isinstance(m.weight, nn.Parameter)
    assert str(pickle.loads(pickle.dumps(wg.ones(2))).device) == "cpu"


def test_a_pickle_from_a_device_that_is_not_here() -> None:
    data = pickle.dumps(wg.ones(2, device="gpu")).replace(b"gpu:0", b"gpu:9")
    with pytest.warns(
        UserWarning, match=r"unpickling: a tensor of shape \(2,\) was on gpu:9, which is not to be had here"
    ):
        found = pickle.loads(data)
    assert (str(found.device), found.tolist()) == ("cpu", [1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(wg.ones(2)))


def test_addresses_differ() -> None:
    a, b = wg.ones(4, device="gpu"), wg.ones(4, device="gpu")
    assert a.data_ptr() not in (0, b.data_ptr())
    assert a.data_ptr() == a.view(2, 2).data_ptr() == a.detach().data_ptr()
    assert a[1:].data_ptr() != a.data_ptr()


def test_normal_of_tensors() -> None:
    zeros, ones = wg.zeros(3, device="gpu"), wg.ones(3, device="gpu")
    for args in ((zeros, 1.0), (0.0, ones), (zeros, ones), (zeros, wg.tensor(1.0))):
        wg.manual_seed(3)
        found = wg.normal(*args)
        wg.manual_seed(3)
        assert str(found.device) == "gpu:0"
        assert wg.allclose(found.cpu(), wg.normal(0.0, 1.0, (3,)), atol=1e-5)
    assert str(wg.normal(0.0, 1.0, (3,), device="gpu").device) == "gpu:0"


def test_places_and_types_of_indices() -> None:
    rows = wg.tril_indices(2, 3, device="gpu")
    assert (str(rows.device), rows.dtype, rows.tolist()) == ("gpu:0", wg.int32, [[0, 1, 1], [0, 0, 1]])
    assert wg.triu_indices(2, 2, 1, dtype=wg.int32).tolist() == [[0], [1]]
    assert wg.tril_indices(2, 2).dtype == wg.int64
    assert wg.randperm(4, dtype=wg.int32).dtype == wg.int32
    assert sorted(wg.randperm(4, dtype=wg.float32, device="gpu").tolist()) == [0.0, 1.0, 2.0, 3.0]
    assert wg.randperm(4, dtype=wg.int64, device="gpu").dtype == wg.int64


def test_refusals_say_what_to_move_where() -> None:
    a, index = wg.arange(3.0), wg.tensor([0, 2], dtype=wg.int32, device="gpu")
    with pytest.raises(
        ValueError, match=r"the index is on gpu:0 and the tensor on cpu; move the index with \.cpu\(\)"
    ):
        a[index]
    with pytest.raises(ValueError, match=r"cpu and gpu:0; move one with \.to\('gpu:0'\)"):
        a.gpu().masked_fill(a > 1, 0.0)
    with pytest.raises(
        ValueError, match=r"give it as a tensor there, wengert.as_tensor\(value, device='gpu:0'\)"
    ):
        a.gpu()[0:2] = a[:2].numpy()
    x = wg.ones(2, device="gpu", requires_grad=True)
    with pytest.raises(
        ValueError, match=r"backward: a cotangent \(gradient=\) is on cpu, .* on gpu:0; move it"
    ):
        (x * 2).backward(wg.ones(2))


def test_examples_without_axes_follow_the_others() -> None:
    x, y = wg.tensor([1.0, 2.0], device="gpu"), wg.tensor([10.0, 20.0])
    for f in (lambda a, b: a + b, lambda a, b: b.mul(a), lambda a, b: wg.where(a > 1, a, b)):
        found = wg.vmap(f)(x, y)
        # A batch is the loop over its examples.
        assert found.is_gpu
        assert found.tolist() == [f(a, b).item() for a, b in zip(x, y)]
    with pytest.raises(ValueError, match=r"move one with \.to\('gpu:0'\)"):
        wg.vmap(lambda a, b: a + b)(x.expand(3, 2), y.expand(3, 2))
