"""`dim` and `axis` are two names of one argument: either is taken, both are not."""

from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg
from wengert import fft, linalg

X = wg.arange(1.0, 10.0).reshape(3, 3)
#: Functions of a tensor and the settings beside it, and an axis that is not the default one.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    **{
        name: (lambda *args, name=name, **settings: getattr(X, name)(*args, **settings), 1)
        for name in (
            *(
                "sum",
                "mean",
                "prod",
                "std",
                "var",
                "amax",
                "amin",
                "max",
                "min",
                "argmax",
                "argmin",
                "any",
                "all",
            ),
            *("logsumexp", "count_nonzero", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"),
            *("unsqueeze", "squeeze"),
        )
    },
    "softmax": (X.softmax, 0),
    "log_softmax": (X.log_softmax, 0),
    "norm": (lambda **settings: X.norm(2, **settings), 1),
    "norm of half a power": (lambda **settings: X.norm(0.5, **settings), 1),
    "chunk": (lambda **settings: X.chunk(3, **settings), 1),
    "take_along_dim": (lambda **settings: wg.take_along_dim(X, X.argsort(1), **settings), 1),
    "diff": (lambda **settings: wg.diff(X, **settings), 0),
    "cat": (lambda **settings: wg.cat([X, X], **settings), 1),
    "stack": (lambda **settings: wg.stack([X, X], **settings), 1),
    "linalg.cross": (lambda **settings: linalg.cross(X, X + 1, **settings), 0),
    "linalg.vecdot": (lambda **settings: linalg.vecdot(X, X, **settings), 0),
    "linalg.vector_norm": (lambda **settings: linalg.vector_norm(X, 3, **settings), 1),
    "linalg.norm": (lambda **settings: linalg.norm(X, 3, **settings), 1),
    **{
        f"fft.{name}": (lambda name=name, **settings: getattr(fft, name)(X, **settings), 0)
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
}


def listed(found: Any) -> Any:
    return [x.tolist() for x in found] if isinstance(found, tuple) else found.tolist()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_of_two_names(name: str) -> None:
    function, axis = FUNCTIONS[name]
    if name != "squeeze":
        assert listed(function(dim=axis)) == listed(function(axis=axis))
    with pytest.raises(TypeError, match="two names"):
        function(dim=axis, axis=axis)
