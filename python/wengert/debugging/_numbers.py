"""How a cotangent comes through a reverse rule, in a few numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._core import Tensor

__all__ = ["Cotangent", "Passage", "array"]

Numbers = np.ndarray[Any, Any]

# The largest derivative of functions that saturate; one per cent of it and less counts as saturated.
STEEPEST = {"sigmoid": 0.25, "tanh": 1.0, "log_sigmoid": 1.0, "erf": 2 / np.pi**0.5}
SATURATED = 0.01
# Besides elementwise operations: those whose output has an element for each of the input.
ALIKE = ("where", "softmax", "log_softmax")


def array(t: Tensor) -> Numbers:
    """The elements in float64."""
    t = t.detach().cpu()
    return np.asarray((t.float() if t.dtype == "bfloat16" else t).numpy(), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Passage:
    """A cotangent and the gradient that a rule made of it for one input."""

    # Elements, zeros among them, and norm of the cotangent (of all outputs together).
    given: int
    given_zeros: int
    given_norm: float
    given_finite: bool
    # The same of the gradient.
    sent: int
    sent_zeros: int
    sent_norm: float
    sent_finite: bool
    # Where both have one shape: elements that stopped, and units (places of the last axis) that stopped
    # everywhere.
    stopped: int = 0
    units: int = 0
    stopped_units: int = 0
    # For functions that saturate: elements whose derivative is at most one per cent of the largest.
    saturated: int = 0
    # For softmax: whether the cotangent is the same for all classes.
    constant: bool = False

    @property
    def is_zero(self) -> bool:
        """Whether nothing came through, up to rounding for a softmax that was given a constant."""
        return self.sent_norm == 0.0 or (self.constant and self.sent_norm <= 1e-5 * self.given_norm)

    @property
    def given_is_zero(self) -> bool:
        """Whether nothing was given."""
        return self.given_norm == 0.0


def _norm(values: Numbers) -> float:
    # inf or NaN is the answer where numbers overflow or are none.
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(np.sum(np.square(values))))


class Cotangent:
    """What came to a rule, for all outputs together."""

    def __init__(self, op: str, kind: str, cotangents: tuple[Tensor | None, ...]) -> None:
        self.op = op
        values = [array(g) for g in cotangents if g is not None]
        self.only = values[0] if len(values) == 1 and (kind == "elementwise" or op in ALIKE) else None
        self.size = sum(g.size for g in values)
        self.zeros = sum(g.size - int(np.count_nonzero(g)) for g in values)
        self.norm = float(np.hypot.reduce([_norm(g) for g in values])) if values else 0.0
        self.finite = all(bool(np.isfinite(g).all()) for g in values)

    def through(self, gradient: Tensor) -> Passage:
        """How it came through to the gradient of one input."""
        sent = array(gradient)
        more: dict[str, Any] = {}
        if self.only is not None and sent.size:
            # Inside vmap a cotangent can be one for the whole batch.
            more = _elements(self.op, np.broadcast_to(self.only, sent.shape), sent)
        zeros = sent.size - int(np.count_nonzero(sent))
        finite = bool(np.isfinite(sent).all())
        given = (self.size, self.zeros, self.norm, self.finite)
        return Passage(*given, sent.size, zeros, _norm(sent), finite, **more)


def _elements(op: str, given: Numbers, sent: Numbers) -> dict[str, Any]:
    """What can be said element by element."""
    open_ = given != 0
    stopped = open_ & (sent == 0)
    found: dict[str, Any] = {"stopped": int(stopped.sum())}
    if sent.ndim >= 2:
        axes = tuple(range(sent.ndim - 1))
        asked = open_.any(axes)
        found["units"] = int(asked.sum())
        found["stopped_units"] = int((asked & ~(open_ & ~stopped).any(axes)).sum())
    if op in STEEPEST:
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.abs(sent / given)
        found["saturated"] = int((open_ & (slope <= SATURATED * STEEPEST[op])).sum())
    if op in ("softmax", "log_softmax"):
        spread = np.ptp(given, axis=-1)
        found["constant"] = bool((spread <= 1e-6 * np.abs(given).max(axis=-1)).all())
    return found
