"""An error speaks in the name of the function that was called, of whatever others that is made."""

import re
import warnings
from typing import Any

import pytest
import wengert as wg
from messages import Situations, message_tests
from wengert import nn
from wengert.nn import functional as F

from arguments.calls import OTHER_NAMES, WRITTEN
from arguments.rows import of_name

X, Y = wg.ones(2, 3), wg.ones(4)
FIT = "shapes (2, 3) and (4,) do not broadcast: aligned from the last axis, each pair of lengths must be equal or 1"
SWAPPED = FIT.replace("(2, 3) and (4,)", "(4,) and (2, 3)")
AXIS = "axis 9 is out of range for a tensor with 2 axes, expected -2..1"
MATCH = "input of shape (2, 3) and target of shape (4,) do not match; reshape one of them"
itself: list[Any] = []
itself.append(itself)
numbered: list[Any] = [1.0, 2.0]
numbered.append(numbered)

SITUATIONS: Situations = {
    # What Python makes of several operations: functions, methods, layers.
    "dist": (lambda: wg.dist(X, Y), wg.ShapeError, f"dist: {FIT}"),
    "dist, the method": (lambda: X.dist(Y), wg.ShapeError, f"dist: {FIT}"),
    "addcmul": (lambda: wg.addcmul(X, X, Y), wg.ShapeError, f"addcmul: {FIT}"),
    "kl_div": (lambda: F.kl_div(X, Y), wg.ShapeError, f"kl_div: {SWAPPED}"),
    "KLDivLoss": (lambda: nn.KLDivLoss()(X, Y), wg.ShapeError, f"kl_div: {SWAPPED}"),
    "mse_loss": (lambda: F.mse_loss(X, Y), wg.ShapeError, f"mse_loss: {MATCH}"),
    "smooth_l1_loss": (lambda: F.smooth_l1_loss(X, Y), wg.ShapeError, f"smooth_l1_loss: {MATCH}"),
    "nanmean": (lambda: X.nanmean(9), IndexError, f"nanmean: {AXIS}"),
    "var_mean": (lambda: wg.var_mean(X, 9), IndexError, f"var_mean: {AXIS}"),
    "l1_loss": (
        lambda: F.l1_loss(X, X, reduction="most"),
        ValueError,
        "l1_loss: reduction must be 'mean', 'sum' or 'none', got 'most'",
    ),
    "cosine_similarity": (
        lambda: F.cosine_similarity(X, Y),
        wg.ShapeError,
        "cosine_similarity: shapes (2, 3), (4,) do not broadcast",
    ),
    "hstack": (
        lambda: wg.hstack([X, Y]),
        wg.ShapeError,
        "hstack: tensor 1 has shape (4,), expected (2, 3) except along axis 1",
    ),
    "eigvalsh": (
        lambda: wg.linalg.eigvalsh(X),
        wg.ShapeError,
        "eigvalsh: square matrices expected, got shape (2, 3)",
    ),
    # What the core makes of several.
    "std": (lambda: X.std(9), IndexError, f"std: {AXIS}"),
    "norm": (lambda: X.norm(dim=9), IndexError, f"norm: {AXIS}"),
    "allclose": (lambda: X.allclose(Y), wg.ShapeError, f"allclose: {FIT}"),
    "masked_fill": (lambda: X.masked_fill(Y > 0, 0), wg.ShapeError, f"masked_fill: {SWAPPED}"),
    "max": (
        lambda: wg.ones(0).max(),
        ValueError,
        "max: axis 0 of shape (0,) is empty and has no extremum",
    ),
    "index_select": (
        lambda: X.index_select(0, wg.tensor([5])),
        IndexError,
        "index_select: index 5 is out of range for an axis of length 2",
    ),
    # A function of the user's own is no function of the library.
    "a user's distance": (
        lambda: F.triplet_margin_with_distance_loss(X, X, X, distance_function=lambda x, y: x + Y),
        wg.ShapeError,
        f"add: {FIT}",
    ),
    "vmap": (lambda: wg.vmap(lambda x: x + Y)(X), wg.ShapeError, f"add: {FIT.replace('(2, 3)', '(3,)')}"),
    # Lists.
    "a list in itself": (
        lambda: wg.tensor(itself),
        ValueError,
        (
            "lists nested more than 8 deep, and a tensor has at most 8 axes; a list that contains itself has "
            "no shape"
        ),
    ),
    "a list among its numbers": (
        lambda: wg.tensor(numbered),
        ValueError,
        "nested lists of unequal depth: a list of 3 elements where a number was expected",
    ),
    "view": (
        lambda: X.view(wg.bool),
        TypeError,
        "view: not every byte of float32 is a bool; use x != 0, which copies",
    ),
}

test_message = message_tests(SITUATIONS)

# Names under which a function has others do its work, and is understood.
PLAIN = {
    **{f: {"tensor_split"} for f in ("dsplit", "hsplit", "vsplit")},
    **{f: {"item"} for f in ("arange", "linspace", "logspace", "numpy.linspace")},
    **{f: {"arange"} for f in ("tril_indices", "triu_indices")},
    **{f"numpy.{f}": {"item"} for f in ("fromfunction", "indices")},
    **{f"numpy.{f}": {"item", "linspace"} for f in ("geomspace", "logspace")},
    "scipy.special.expit": {"sigmoid"},
    "scipy.special.gammaln": {"lgamma"},
    "scipy.special.multigammaln": {"mvlgamma"},
    "scipy.special.psi": {"digamma"},
    **{f"{f}_like": {f} for f in ("full", "rand", "randn", "randint")},
    "broadcast_to": {"expand"},
    "ger": {"outer"},
    "logspace": {"linspace", "item"},
    "swapdims": {"swapaxes"},
    "numpy.full_like": {"full"},
    "stft": {"pad"},
}
NONSENSE = [wg.ones(7, 5), wg.ones(0), wg.ones(2, dtype=wg.complex64), wg.ones(2, 3, dtype=wg.bool), 99, -99]


def spoken(function: Any, args: list[Any]) -> str | None:
    """The name that the message of an error begins with."""
    try:
        function(*args)
    except Exception as error:
        found = re.match(r"(\w+): ", str(error))
        return found and found[1]
    return None


@pytest.mark.parametrize("name", WRITTEN)
def test_senseless_arguments(name: str) -> None:
    """No message begins with the name of another function."""
    last = name.rpartition(".")[2]
    known = {None, last, OTHER_NAMES.get(last, last), *PLAIN.get(name, ())}
    for function in of_name(name):
        for place, given in enumerate(WRITTEN[name]):
            for value in NONSENSE if place else NONSENSE[:4]:
                args = list(WRITTEN[name])
                args[place] = value
                assert spoken(function, args) in known, f"{value} for {given}"


def test_warnings_belong_to_the_line_of_the_user() -> None:
    scale = lambda x: F.smooth_l1_loss(x, wg.ones(3))
    calls = (
        lambda: F.mse_loss(wg.ones(3, 1), wg.ones(3)),
        lambda: nn.MSELoss()(wg.ones(3, 1), wg.ones(3)),
        lambda: wg.vmap(scale)(wg.ones(2, 3, 1)),
        lambda: F.l1_loss(X, X, size_average=False),
        lambda: F.dropout2d(wg.ones(2, 3)),
        lambda: wg.autograd.gradcheck(wg.sin, wg.ones(2, requires_grad=True), atol=0.1, eps=1e-2),
        lambda: wg.optim.SGD({wg.ones(1, requires_grad=True)}, lr=0.1),
    )
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert {warning.filename for warning in caught} == {__file__}
