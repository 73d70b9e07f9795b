"""`set_printoptions` and `printoptions`."""

import math
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import wengert as torch


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    torch.set_printoptions(profile="default")


def test_precision() -> None:
    x = torch.tensor([math.pi, 0.5])
    torch.set_printoptions(precision=2)
    assert repr(x) == "tensor([3.14, 0.50])"
    torch.set_printoptions(precision=6)
    assert repr(x) == "tensor([3.141593, 0.500000])"
    torch.set_printoptions(precision=0)
    assert repr(x) == "tensor([3., 0.])"
    assert repr(torch.tensor(1e-9)) == "tensor(1e-09)"
    torch.set_printoptions(profile="default")
    assert repr(x) == "tensor([3.1416, 0.5000])"


def test_powers_of_ten() -> None:
    torch.set_printoptions(sci_mode=True)
    assert repr(torch.tensor([1.5])) == "tensor([1.5000e+00])"
    torch.set_printoptions(precision=2, sci_mode=True)
    assert repr(torch.tensor([1.5 + 2j])) == "tensor([1.50e+00+2.00e+00j])"
    torch.set_printoptions(sci_mode=False)
    assert repr(torch.tensor([1e9])) == "tensor([1000000000.])"
    # Left out, the numbers decide again, as in PyTorch.
    torch.set_printoptions(profile="default")
    assert repr(torch.tensor([1e9])) == "tensor([1.0000e+09])"


def test_summaries() -> None:
    x = torch.arange(10)
    torch.set_printoptions(threshold=5, edgeitems=2)
    assert repr(x) == "tensor([0, 1, ..., 8, 9])"
    torch.set_printoptions(profile="short")
    assert repr(torch.arange(1001)) == "tensor([   0,    1, ...,  999, 1000])"
    torch.set_printoptions(profile="full")
    assert "..." not in repr(torch.arange(5000))
    torch.set_printoptions(threshold=math.inf)
    assert "..." not in repr(torch.arange(1500))
    torch.set_printoptions(threshold=0, edgeitems=0)
    assert repr(x) == "tensor([...])"


def test_lines() -> None:
    torch.set_printoptions(linewidth=20)
    assert max(map(len, repr(torch.arange(30)).splitlines())) <= 20
    torch.set_printoptions(linewidth=1000)
    assert "\n" not in repr(torch.arange(100))


def test_a_block_has_its_own() -> None:
    x = torch.tensor([math.pi])
    with torch.printoptions(precision=1):
        assert repr(x) == "tensor([3.1])"
        inner = torch.printoptions(sci_mode=True)
        with pytest.raises(KeyError, match=r"3\.1e\+00"), inner:
            assert {}[repr(x)]
        assert repr(x) == "tensor([3.1])"
    assert repr(x) == "tensor([3.1416])"


def test_they_are_those_of_all_threads() -> None:
    torch.set_printoptions(precision=1)
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(repr(torch.tensor([math.pi]))))
    thread.start()
    thread.join()
    assert seen == ["tensor([3.1])"]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"precision": -1}, ValueError),
        ({"precision": 61}, ValueError),
        ({"edgeitems": -3}, ValueError),
        ({"linewidth": 1.5}, TypeError),
        ({"threshold": "all"}, TypeError),
        ({"profile": "long"}, ValueError),
    ],
)
def test_what_is_no_setting_raises(settings: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error, match="set_printoptions: "):
        torch.set_printoptions(**settings)
    assert repr(torch.tensor([0.5])) == "tensor([0.5])"


def test_as_numpy_prints() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=7)
    for digits in (1, 3, 8):
        torch.set_printoptions(precision=digits)
        shown = repr(torch.tensor(values.tolist(), dtype=torch.float64))
        numbers = [float(part) for part in shown[len("tensor([") : shown.index("]")].split(",")]
        np.testing.assert_array_equal(numbers, [float(f"{v:.{digits}f}") for v in values])
