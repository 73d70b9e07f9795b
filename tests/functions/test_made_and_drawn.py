"""Windows, numerical derivatives, ranges, buffers, counts, and what fills a tensor: against NumPy and
SciPy."""

import array
import math
from typing import Any

import numpy as np
import pytest
import wengert as wg
from scipy import signal, stats

WINDOWS: list[tuple[str, dict[str, Any], Any]] = [
    ("bartlett", {}, "bartlett"),
    ("blackman", {}, "blackman"),
    ("cosine", {}, "cosine"),
    ("exponential", {"tau": 2.5}, ("exponential", None, 2.5)),
    ("gaussian", {"std": 1.7}, ("gaussian", 1.7)),
    ("general_cosine", {"a": [0.4, 0.3, 0.3]}, ("general_cosine", [0.4, 0.3, 0.3])),
    ("general_hamming", {"alpha": 0.6}, ("general_hamming", 0.6)),
    ("hamming", {}, "hamming"),
    ("hann", {}, "hann"),
    ("kaiser", {"beta": 8.6}, ("kaiser", 8.6)),
    ("kaiser", {"beta": 2000.0}, ("kaiser", 2000.0)),
    ("nuttall", {}, "nuttall"),
]


@pytest.mark.parametrize(("name", "settings", "reference"), WINDOWS)
def test_windows(name: str, settings: dict[str, Any], reference: Any) -> None:
    window = getattr(wg.signal.windows, name)
    for length in (0, 1, 2, 5, 8):
        for sym in (True, False):
            got = window(length, **settings, sym=sym, dtype=wg.float64)
            if settings.get("beta") == 2000.0 and length > 1:
                continue  # SciPy's overflows.
            want = signal.get_window(reference, length, fftbins=not sym) if length else np.ones(0)
            np.testing.assert_allclose(got.numpy(), want, atol=1e-15)
    made = window(4, **settings, dtype=wg.float32, device="cpu", requires_grad=True)
    assert made.dtype == wg.float32
    assert made.requires_grad
    assert window(3, **settings).isfinite().all()


PERIODIC: list[tuple[str, dict[str, Any]]] = [
    ("bartlett", {"sym": False}),
    ("blackman", {"sym": False}),
    ("cosine", {"sym": False}),
    ("gaussian", {"std": 2.0, "sym": False}),
    ("general_cosine", {"a": [0.5, 0.3, 0.2], "sym": False}),
    ("general_hamming", {"alpha": 0.7, "sym": False}),
    ("hamming", {"sym": False}),
    ("kaiser", {"beta": 3.0, "sym": False}),
    ("nuttall", {"sym": False}),
]


@pytest.mark.parametrize(("name", "settings"), PERIODIC)
def test_a_period_is_a_symmetric_window_without_its_last(name: str, settings: dict[str, Any]) -> None:
    window = getattr(wg.signal.windows, name)
    assert wg.equal(window(6, **settings), window(7, **{**settings, "sym": True})[:-1])


def test_windows_away_from_their_middle() -> None:
    got = wg.signal.windows.exponential(5, center=1.0, tau=3.0, sym=False, dtype=wg.float64)
    np.testing.assert_allclose(got.numpy(), np.exp(-np.abs(np.arange(5) - 1.0) / 3.0))


def test_windows_refuse() -> None:
    windows = wg.signal.windows
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: windows.hann(-1), ValueError, "hann: M must not be negative, got -1"),
        (lambda: windows.hann(2.5), TypeError, "hann: M must be an integer, got float"),
        (
            lambda: windows.hann(3, dtype=wg.int32),
            TypeError,
            "hann: a floating point dtype expected, got wengert.int32",
        ),
        (
            lambda: windows.exponential(3, tau=0.0),
            ValueError,
            "exponential: a positive tau expected, got 0.0",
        ),
        (
            lambda: windows.exponential(3, center=1.0),
            ValueError,
            "exponential: a symmetric window has its center",
        ),
        (lambda: windows.gaussian(3, std=-1.0), ValueError, "gaussian: a positive std expected, got -1.0"),
        (
            lambda: windows.kaiser(3, beta=-1.0),
            ValueError,
            "kaiser: a beta that is not negative expected, got -1.0",
        ),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message.replace("(", r"\(")):
            call()


# ---- derivatives by differences
# ------------------------------------------------------------------------------------


def test_gradient() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 5, 6))
    x = wg.tensor(a)
    places = [np.sort(rng.uniform(0, 9, n)) for n in a.shape]
    for edge_order in (1, 2):
        for got, want in zip(wg.gradient(x, edge_order=edge_order), np.gradient(a, edge_order=edge_order)):
            np.testing.assert_allclose(got.numpy(), want, atol=1e-13)
        spaced = wg.gradient(x, spacing=[0.5, 2.0, 3], edge_order=edge_order)
        for got, want in zip(spaced, np.gradient(a, 0.5, 2.0, 3, edge_order=edge_order)):
            np.testing.assert_allclose(got.numpy(), want, atol=1e-13)
        uneven = wg.gradient(x, spacing=tuple(map(wg.tensor, places)), edge_order=edge_order)
        for got, want in zip(uneven, np.gradient(a, *places, edge_order=edge_order)):
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-12)
    (only,) = wg.gradient(x, spacing=2.0, dim=-2)
    np.testing.assert_allclose(only.numpy(), np.gradient(a, 2.0, axis=1), atol=1e-13)
    pair = wg.gradient(x, dim=(2, 0))
    np.testing.assert_allclose(pair[0].numpy(), np.gradient(a, axis=2), atol=1e-13)
    np.testing.assert_allclose(pair[1].numpy(), np.gradient(a, axis=0), atol=1e-13)
    assert wg.gradient([0, 1, 4])[0].tolist() == [1.0, 2.0, 3.0]
    assert wg.gradient(wg.tensor([1j, 2j, 4j]))[0].tolist() == [1j, 1.5j, 2j]


def test_gradient_refuses() -> None:
    x = wg.zeros(2, 3)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"edge_order": 3}, "gradient: edge_order must be 1 or 2, got 3"),
        ({"edge_order": 2}, "gradient: at least 3 points along axis 0 expected for edge_order=2, got 2"),
        ({"dim": (0, -2)}, "gradient: an axis is given twice"),
        ({"spacing": [1.0]}, "gradient: one spacing or one for each of 2 axes expected, got 1"),
        (
            {"spacing": (wg.zeros(3),), "dim": 0},
            "gradient: 2 coordinates expected for axis 0, got a tensor of shape",
        ),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            wg.gradient(x, **arguments)


# ---- numbers from memory and from nothing
# --------------------------------------------------------------------------


def test_range_includes_its_end() -> None:
    assert wg.range(3).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert wg.range(1, 4).dtype == wg.float32
    assert wg.range(1, 2, 0.5).tolist() == [1.0, 1.5, 2.0]
    assert wg.range(2, -1, -2).tolist() == [2.0, 0.0]
    made = wg.range(start=1, end=2, step=1, dtype=wg.float64, device="cpu", requires_grad=True)
    assert made.requires_grad
    assert made.dtype == wg.float64
    assert "range" not in wg.__all__
    assert "range" in dir(wg)
    for arguments in ((1, 2, 0), (1, 2, -1)):
        with pytest.raises(
            ValueError, match=f"range: a step that leads from 1 to 2 expected, got {arguments[2]}"
        ):
            wg.range(*arguments)


def test_buffers_are_shared() -> None:
    memory = bytearray(16)
    x = wg.frombuffer(memory, dtype=wg.float32)
    x[1] = 1.0
    assert np.frombuffer(memory, np.float32).tolist() == [0.0, 1.0, 0.0, 0.0]
    memory[0:4] = np.float32(2.5).tobytes()
    assert x[0].item() == 2.5
    assert wg.frombuffer(memory, dtype=wg.float32, count=1, offset=4).tolist() == [1.0]
    assert wg.frombuffer(memory, dtype=wg.bfloat16, offset=6, count=1).item() == 1.0
    assert wg.frombuffer(memory, dtype="float32", requires_grad=True).requires_grad
    assert wg.frombuffer(b"\x01\x00", dtype=wg.bool).tolist() == [True, False]
    assert wg.frombuffer(b"\x02\x00", dtype=wg.bool).tolist() == [True, False]
    assert wg.frombuffer(b"abcde", dtype=wg.uint8, offset=1).tolist() == list(b"bcde")
    assert wg.frombuffer(memory, dtype=wg.int16, offset=1, count=1).tolist() == [
        np.frombuffer(memory, "<i2", 1, 1)[0]
    ]
    assert wg.frombuffer(array.array("d", [1.0, 2.0]), dtype=wg.float64).tolist() == [1.0, 2.0]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"offset": 17}, "frombuffer: offset must lie between 0 and 16, the bytes there are, got 17"),
        ({"offset": 1}, "frombuffer: 15 bytes are no whole number of float32, which has 4"),
        ({"count": 5}, "frombuffer: 5 numbers of 4 bytes expected, got 16 bytes"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            wg.frombuffer(memory, dtype=wg.float32, **arguments)


def test_frexp() -> None:
    for dtype in (np.float64, np.float32, np.float16):
        limits = np.finfo(dtype)
        x = np.array(
            [
                *(0.0, -0.0, 1.0, -1.0, 0.5, 3.7, -1e-3, limits.max, limits.tiny, limits.smallest_subnormal),
                *(
                    np.nextafter(dtype(1), dtype(0)),
                    np.nextafter(dtype(4), dtype(0)),
                    np.inf,
                    -np.inf,
                    np.nan,
                ),
            ],
            dtype,
        )
        mantissa, exponent = wg.frexp(wg.from_numpy(x))
        want = np.frexp(x)
        np.testing.assert_array_equal(mantissa.numpy(), want[0])
        finite = np.isfinite(x)
        np.testing.assert_array_equal(exponent.numpy()[finite], want[1][finite])
        assert exponent.dtype == wg.int32
    split = wg.tensor([3.0]).frexp()
    assert (split.mantissa.item(), split.exponent.item()) == (0.75, 2)
    with pytest.raises(TypeError, match=r"frexp: a floating point tensor expected, got wengert\.int64"):
        wg.frexp(wg.tensor([1]))


def test_rsub_and_fill() -> None:
    x = wg.tensor([1.0, 2.0])
    assert x.rsub(5).tolist() == [4.0, 3.0]
    assert wg.rsub(x, wg.tensor([[10.0]]), alpha=3).tolist() == [[7.0, 4.0]]
    assert x.fill(3).tolist() == [3.0, 3.0]
    assert x.tolist() == [1.0, 2.0]
    assert wg.grad(lambda v: (wg.fill(x, v) * x).sum())(wg.tensor(2.0)).item() == 3.0
    with pytest.raises(
        ValueError, match=r"fill: a number or a tensor without axes expected, got shape \(2,\)"
    ):
        wg.fill(x, x)


# ---- random numbers ------------------------------------------------------------------------------


def test_counts() -> None:
    generator = wg.Generator().manual_seed(3)
    rates = wg.full((20_000,), 3.5)
    found = wg.poisson(rates, generator=generator)
    assert found.dtype == wg.float32
    expected = stats.poisson(3.5).pmf(range(10)) * 20_000
    observed = [(found == k).sum().item() for k in range(10)]
    assert (
        stats.chisquare([*observed, 20_000 - sum(observed)], [*expected, 20_000 - sum(expected)]).pvalue
        > 1e-3
    )
    successes = wg.binomial(wg.full((20_000,), 7.0), wg.tensor(0.3), generator)
    expected = stats.binom(7, 0.3).pmf(range(8)) * 20_000
    observed = [(successes == k).sum().item() for k in range(8)]
    assert stats.chisquare(observed, expected).pvalue > 1e-3
    # A generator gives the same numbers again, and leaves the default stream alone.
    wg.manual_seed(0)
    first = wg.rand(3).tolist()
    wg.manual_seed(0)
    again = wg.poisson(rates, generator=wg.Generator().manual_seed(3))
    assert wg.equal(again, found)
    assert wg.rand(3).tolist() == first
    # The gradient is zero.
    assert wg.grad(lambda x: wg.poisson(x).sum())(wg.tensor([2.0])).tolist() == [0.0]
    both = wg.grad(lambda n, p: wg.binomial(n, p).sum(), argnums=(0, 1))(wg.tensor([3.0]), wg.tensor(0.5))
    assert [v.tolist() for v in both] == [[0.0], 0.0]
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: wg.poisson(wg.tensor([1.0, -2.0])),
            ValueError,
            "poisson: rates that are not negative expected, got -2.0",
        ),
        (
            lambda: wg.poisson(wg.tensor([1])),
            TypeError,
            "poisson: a floating point tensor expected, got wengert.int64",
        ),
        (
            lambda: wg.binomial(wg.ones(2), wg.tensor(1.5)),
            ValueError,
            "probabilities between 0 and 1 expected, got 1.5",
        ),
        (
            lambda: wg.binomial(-wg.ones(2), wg.tensor(0.5)),
            ValueError,
            "counts that are not negative expected, got -1.0",
        ),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()


def test_random_integers_from_a_bound_on() -> None:
    wg.manual_seed(0)
    found = wg.zeros(1000, dtype=wg.int8).random_(100, None)
    assert found.min().item() == 100
    assert found.max().item() == 127
    assert wg.zeros(100).random_(**{"from": 5, "to": None}).min().item() >= 5
    assert wg.zeros(50).random_(low=3, high=5).unique().tolist() == [3.0, 4.0]
    assert wg.zeros(50).random_(low=2).unique().tolist() == [0.0, 1.0]
    assert wg.zeros(50).random_(to=2).unique().tolist() == [0.0, 1.0]
    assert wg.zeros(50).random_(None, None).min().item() >= 0
    assert set(wg.zeros(100, dtype=wg.bool).random_(2).tolist()) == {False, True}


def test_bounds_lie_within_the_dtype() -> None:
    half = wg.zeros(1000, dtype=wg.float16)
    assert half.uniform_(-65504.0, 65504.0).isfinite().all()
    assert half.random_(60000, 65505).isfinite().all()
    cases = {
        "random_: numbers from 0 to 9 do not fit into bool, which holds 0 to 1": lambda: wg.zeros(
            3, dtype=wg.bool
        ).random_(10),
        "random_: numbers from 0 to 99999 do not fit into float16": lambda: half.random_(100_000),
        "randint: numbers from 0 to 99999 do not fit into float16": lambda: wg.randint(
            0, 100_000, (3,), dtype=wg.float16
        ),
        "uniform_: bounds within the range of float16 expected, got 0 and 1000000": lambda: half.uniform_(
            0, 1e6
        ),
        "uniform_: bounds within the range of float32 expected, got 0 and 1": lambda: wg.zeros(2).uniform_(
            0, 1e39
        ),
    }
    for message, call in cases.items():
        with pytest.raises(ValueError, match=message):
            call()
    assert math.isfinite(wg.zeros(100, dtype=wg.bfloat16).uniform_(0, 3e38).max().item())


def test_counts_of_nan() -> None:
    bad = wg.tensor([1.0, math.nan])
    with pytest.raises(ValueError, match=r"^poisson: rates that are not negative expected, got nan$"):
        wg.poisson(bad)
    counted = wg.vmap(wg.poisson, randomness="different")(bad)
    assert counted.isnan().tolist() == [False, True]
    for drawn in (wg.binomial(wg.tensor([3.0, 3.0]), bad), wg.binomial(bad, wg.tensor([0.5, 0.5]))):
        assert drawn.isnan().tolist() == [False, True]


def test_windows_of_no_factors() -> None:
    window = wg.signal.windows.general_cosine
    with pytest.raises(ValueError, match=r"^general_cosine: a must have at least one factor, got \[\]$"):
        window(4, a=[])
    for a in (3, ["x", None], None):
        with pytest.raises(TypeError, match=r"^general_cosine: a must be a sequence of numbers, got"):
            window(4, a=a)
