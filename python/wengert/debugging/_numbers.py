"""How a cotangent comes through a reverse rule, in a few numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._core import Tensor

__all__ = ["Passage", "array", "passage"]

# The largest derivative of functions that saturate; one per cent of it and less counts as saturated.
STEEPEST = {"sigmoid": 0.25, "tanh": 1.0, "log_sigmoid": 1.0, "erf": 2 / np.pi**0.5}
SATURATED = 0.01
# Besides elementwise operations: those whose output has an element for each of the input.
ALIKE = ("where", "softmax", "log_softmax")


def array(t: Tensor) -> np.ndarray[Any, Any]:
    """The elements in float64."""
    t = t.detach().cpu()
    return np.asarray((t.float() if t.dtype == "bfloat16" else t).numpy(), dtype=np.float64)


@dataclass(frozen=True)
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
    # Where both have one shape: elements that stopped, and units (places of the last axis) that stopped everywhere.
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


def _norm(values: np.ndarray[Any, Any]) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(np.sum(values * values)))


def passage(op: str, kind: str, cotangents: tuple[Tensor | None, ...], gradient: Tensor) -> Passage:
    """How `cotangents` came through to `gradient`, by the operation `op` of the class `kind`."""
    given = [array(g) for g in cotangents if g is not None]
    sent = array(gradient)
    numbers: dict[str, Any] = {
        "given": sum(g.size for g in given),
        "given_zeros": sum(int((g == 0).sum()) for g in given),
        "given_norm": float(np.sqrt(sum(_norm(g) ** 2 for g in given))),
        "given_finite": all(bool(np.isfinite(g).all()) for g in given),
        "sent": sent.size,
        "sent_zeros": int((sent == 0).sum()),
        "sent_norm": _norm(sent),
        "sent_finite": bool(np.isfinite(sent).all()),
    }
    if len(given) == 1 and sent.size and (kind == "elementwise" or op in ALIKE):
        # Inside vmap a cotangent can be one for the whole batch.
        numbers |= _elements(op, np.broadcast_to(given[0], sent.shape), sent)
    return Passage(**numbers)


def _elements(op: str, given: np.ndarray[Any, Any], sent: np.ndarray[Any, Any]) -> dict[str, Any]:
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
