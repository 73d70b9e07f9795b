"""The reasons that `why` gives, read from a walk and a log."""

from collections.abc import Iterable
from dataclasses import dataclass

from wengert._core import Node
from wengert.autograd.anomaly import Location
from wengert.debugging._numbers import Passage
from wengert.debugging._session import Line, Pull, Value, Walk, debug

__all__ = ["Reason", "consumers", "missing", "not_finite", "partial", "zero"]

# Reasons of one kind in a report.
MANY = 5
GATES = ("relu", "relu6", "leaky_relu", "hardtanh", "clamp", "clip", "threshold", "hardswish", "hardsigmoid")
FACTORS = ("mul", "matmul", "div")
PICKERS = ("take", "gather", "slice", "max", "min", "amax", "amin")


@dataclass(frozen=True)
class Reason:
    """One reason: its kind, one word for programs; its text; the line of the program, if known."""

    kind: str
    text: str
    location: Location | None = None

    def __str__(self) -> str:
        """The text, which names the line."""
        return self.text


def _at(location: Location | None) -> str:
    return f" at {location}" if location else ""


def consumers(walk: Walk) -> dict[int, list[Pull]]:
    """For each entry, the rules that sent a gradient to it."""
    found: dict[int, list[Pull]] = {}
    for pull in walk.pulls:
        for entry in {v[0] for v, _ in pull.passages}:
            found.setdefault(entry, []).append(pull)
    return found


def _path(value: Value, walk: Walk) -> list[tuple[Pull, Passage]]:
    """Every passage from the loss to the tensor, nearest to the tensor first."""
    above = consumers(walk)
    found: dict[tuple[int, Value], tuple[Pull, Passage]] = {}
    wanted, seen = [value], {value[0]}
    for at in wanted:
        for pull in above.get(at[0], []):
            for v, passage in pull.passages:
                if v == at or (at is not value and v[0] == at[0]):
                    found[(pull.entry, v)] = (pull, passage)
            if pull.entry not in seen:
                seen.add(pull.entry)
                wanted.append((pull.entry, 0))
    return sorted(found.values(), key=lambda f: f[0].entry)


def _of(count: int, total: int) -> str:
    return f"{count / total:.0%}" if total else "0%"


def _loss(pull: Pull, p: Passage) -> Reason | None:
    """Why part of the cotangent did not come through this rule, in the words of its operation."""
    where = _at(pull.location)
    if p.constant:
        text = f"{pull.op}{where} was given one cotangent for all classes, as by .sum(): its outputs always add up to 1"
        if pull.op == "log_softmax":
            text = f"{pull.op}{where} was given one cotangent for all classes"
        return Reason("softmax", text, pull.location) if p.is_zero else None
    if p.saturated and p.given > p.given_zeros:
        share = _of(p.saturated, p.given - p.given_zeros)
        text = (
            f"{pull.op}{where} is saturated in {share} of the elements: its slope is below 1% of the steepest"
        )
        return Reason("saturated", text, pull.location)
    # Where the shapes differ, zeros that were given cannot be told from zeros that the rule made.
    structural = pull.op in PICKERS or (pull.op in FACTORS and not p.given_zeros)
    stopped = p.stopped or (p.sent_zeros if structural else 0)
    if not stopped or p.given_is_zero:
        return None
    share = _of(stopped, p.sent)
    if pull.op in GATES:
        low = "not positive" if pull.op == "relu" else "outside its range"
        units = ""
        if p.stopped_units:
            units = f" {p.stopped_units} of {p.units} units (they are {low} for every example) and"
        text = f"{pull.op}{where} passes nothing for{units} {share} of the elements"
        return Reason("dead" if p.stopped_units else "gate", text, pull.location)
    if pull.op == "where":
        return Reason("masked", f"where{where} masks {share} of the elements", pull.location)
    if pull.op in FACTORS:
        return Reason(
            "factor", f"{pull.op}{where} multiplies by zero in {share} of the elements", pull.location
        )
    if pull.op in PICKERS:
        return Reason(
            "picked", f"{pull.op}{where} reads only part of its input: {share} get nothing", pull.location
        )
    return Reason(
        "flat", f"{pull.op}{where} has a derivative of zero in {share} of the elements", pull.location
    )


def _distinct(reasons: Iterable[Reason]) -> list[Reason]:
    found = list({r.text: r for r in reasons}.values())
    more = len(found) - MANY
    return [*found[:MANY], Reason("more", f"{more} more of this kind")] if more > 0 else found


def partial(value: Value, walk: Walk) -> list[Reason]:
    """What held back parts of the gradient on the way."""
    losses = [(pull, p, _loss(pull, p)) for pull, p in _path(value, walk)]
    rank = {"dead": 0, "softmax": 1, "saturated": 2, "masked": 3}
    kept = sorted((r for _, _, r in losses if r), key=lambda r: rank.get(r.kind, 4))
    return _distinct(kept)


def zero(value: Value, walk: Walk) -> list[Reason]:
    """Where the cotangent became zero."""
    above = consumers(walk)
    found: list[Reason] = []
    wanted, seen = [value], {value[0]}
    for at in wanted:
        readers = above.get(at[0], [])
        if not readers:
            found.append(Reason("seed", "the gradient that backward began with is zero there"))
        for pull in readers:
            for v, p in pull.passages:
                if v[0] != at[0] or (at is value and v != at) or not p.is_zero:
                    continue
                if not p.given_is_zero:
                    text = f"{pull.op}{_at(pull.location)} passes nothing: its derivative is zero in all elements"
                    found.append(_loss(pull, p) or Reason("flat", text, pull.location))
                elif pull.entry not in seen:
                    seen.add(pull.entry)
                    wanted.append((pull.entry, 0))
    return _distinct(found)


def not_finite(value: Value, walk: Walk) -> list[Reason]:
    """The rules that made a gradient that is not finite from one that was."""
    found = [
        Reason("not finite", f"{pull.op}{_at(pull.location)} made it from a finite cotangent", pull.location)
        for pull, p in reversed(_path(value, walk))
        if p.given_finite and not p.sent_finite
    ]
    return _distinct(found) or [Reason("not finite", "backward began with a gradient that is not finite")]


def missing(
    value: Value, walk: Walk | None, region: debug | None, graph: dict[int, Node], loss_given: bool
) -> list[Reason]:
    """Why no gradient came: never used, cut off, or not part of the loss."""
    if graph and value[0] in graph:
        return [Reason("flat", "every rule between the loss and this tensor is zero by definition")]
    lines = region.lines if region else []
    found = _cuts(value, lines)
    if region is None or not lines or (not found and loss_given and not region.is_open):
        text = "the loss does not depend on it"
        if walk is None and not graph:
            text = "the loss has no graph"
        return [
            Reason(
                "unused",
                f"{text}; run the step inside `with wengert.debug():` to be told where it was cut off",
            )
        ]
    if not found:
        text = "no operation of the region used it"
        if region.dropped:
            text += f", as far as its last {len(lines)} lines tell"
        return [Reason("unused", text)]
    if walk is None:
        found.append(Reason("backward", "no backward ran in the region"))
    return found


def _cuts(value: Value, lines: list[Line]) -> list[Reason]:
    """Where the values that depend on the tensor left the tape, and which of them nobody used."""
    reached: dict[int, Line | None] = {value[0]: None}
    read: set[int] = set()
    cuts: list[Reason] = []
    for line in lines:
        inputs = [v for v in line.inputs if v == value or (v[0] != value[0] and v[0] in reached)]
        if not inputs:
            continue
        read.update(v[0] for v in inputs)
        if line.entry is not None:
            reached[line.entry] = line
            continue
        origin = reached[inputs[0][0]]
        what = "it" if origin is None else f"the result of {origin.what}{_at(origin.location)}"
        cuts.append(Reason("cut", f"{what} left the tape by {line.what}{_at(line.location)}", line.location))
    ends = [
        Reason(
            "unread",
            f"nothing that was recorded used the result of {line.what}{_at(line.location)}",
            line.location,
        )
        for entry, line in reached.items()
        if line is not None and entry not in read
    ]
    return _distinct(cuts) + _distinct(ends)
