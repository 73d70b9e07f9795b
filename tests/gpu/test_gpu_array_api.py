"""`wengert.numpy` on a GPU: what it says of the device, and functions whose dtypes differ there."""

import numpy as np
import wengert as wg
import wengert.numpy as xp


def test_the_dtypes_of_a_gpu() -> None:
    info = xp.__array_namespace_info__()
    # A software adapter is listed where it is asked for.
    assert ("gpu:0" in info.devices()) == wg.gpu.is_available()
    there = info.dtypes(device="gpu")
    for name, dtype in info.dtypes().items():
        try:
            placed = xp.zeros(2, dtype=dtype).to_device("gpu")
        except TypeError:
            assert name not in there
        else:
            assert placed.dtype == dtype
            assert name in there
    assert info.default_dtypes(device="gpu")["integral"] == xp.int32


def test_functions_stay_on_the_device() -> None:
    x = xp.asarray([[3.0, 1.0, 2.0], [4.0, 1.0, 6.0]], device="gpu")
    i = xp.astype(x, xp.int32)
    for found in (xp.sum(i), xp.argmax(x), xp.unique_all(x).counts, xp.searchsorted(xp.sort(x[0]), x[1])):
        assert (found.device, found.dtype) == ("gpu:0", "int32")
    results = {
        "eye": lambda p, x: p.eye(2, 3, k=1, dtype=p.float32, **({"device": "gpu"} if p is xp else {})),
        "cumulative_sum": lambda p, x: p.cumulative_sum(x, axis=1, include_initial=True),
        "subtract": lambda p, x: p.subtract(2.0, x),
        "concat": lambda p, x: p.concat([x, x], axis=None),
        "var": lambda p, x: p.var(x, axis=0),
        "roll": lambda p, x: p.roll(x, 1, axis=(0, 1)),
        "pad": lambda p, x: p.pad(x, ((1, 0), (2, 1)), "edge"),
        "delete": lambda p, x: p.delete(x, 1, axis=1),
        "percentile": lambda p, x: p.percentile(x, [30, 60], axis=1),
        "linspace": lambda p, x: p.linspace(x[0], x[1], 4),
        "gradient": lambda p, x: p.gradient(x, 0.5, axis=1),
        "convolve": lambda p, x: p.convolve(x[0], x[1]),
        "where": lambda p, x: p.where(x > 2, 1.0, 0.0),
        "nanmax": lambda p, x: p.nanmax(x, axis=0),
    }
    for name, function in results.items():
        found = function(xp, x)
        assert isinstance(found, wg.Tensor), name
        assert found.device == "gpu:0"
        np.testing.assert_allclose(
            np.asarray(found.cpu()), function(np, np.asarray(x.cpu())), rtol=1e-6, err_msg=name
        )
