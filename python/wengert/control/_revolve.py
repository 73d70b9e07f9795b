"""Binomial checkpointing: which carries of a long chain of steps to keep, so that backward runs few steps
again.

Griewank and Walther, "Algorithm 799: revolve", *ACM Transactions on Mathematical Software* 26(1), 2000. With
s slots and each step run again at most r times, a chain of `binomial(s + r, s)` steps can be reversed, and
none that is longer. Of a chain of l steps the first m are one checkpoint, which keeps its first carry alone;
the others share the remaining slots. When backward comes to the first m, all slots are free for them.
"""

import weakref
from collections.abc import Callable
from math import comb
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.utils.checkpoint import checkpoint

__all__ = ["DEPTH", "chain", "repetitions", "split"]

# How many checkpoints may lie in one another: each takes some of the stack when it runs again.
DEPTH = 100

Leaves = list[Tensor]
Step = Callable[[Leaves, Leaves], tuple[Leaves, Any]]


def repetitions(length: int, slots: int) -> int:
    """How often a step runs again at most: the smallest r with `binomial(slots + r, slots) >= length`."""
    r = 0
    while comb(slots + r, slots) < length:
        r += 1
    return r


def split(length: int, slots: int) -> int:
    """How many of the first steps are one checkpoint, for a chain of two or more."""
    r = repetitions(length, slots)
    return min(comb(slots + r - 1, slots), length - comb(slots + r - 2, slots - 1))


def chain(step: Step, carry: Leaves, rows: list[Leaves], slots: int) -> tuple[Leaves, list[Any]]:
    """The last carry and the results of all steps, with `slots` carries kept."""
    whole = _Part(step, rows, slots, None)
    whole.carry = carry
    return whole()


class _Part:
    """Some steps that follow one another, and their parts, each of which is a checkpoint.

    Of the parts of a part nothing is kept at first, since they would take more than its share. Backward comes
    to the last step first, for which the part runs again: then the carries of its parts are kept.

    Attributes:
        carry: the carry before the first step, where it is kept.
    """

    __slots__ = ("__weakref__", "_parent", "_parts", "_random", "_rows", "_slots", "_step", "carry")

    def __init__(self, step: Step, rows: list[Leaves], slots: int, parent: "_Part | None") -> None:
        self._step, self._rows, self._slots, self._parent = step, rows, slots, parent
        self._parts: list[tuple[weakref.ref[_Part], int]] | None = None
        self._random = _core.get_rng_state()
        self.carry: Leaves | None = None

    def __call__(self) -> tuple[Leaves, list[Any]]:
        """Runs all steps, the first time or again: the last carry and the results."""
        if self._parts is not None and self._parent is not None:
            self._parent._forget_behind(self)
        carry, ys, rows, slots = self._first(), [], self._rows, self._slots
        parts: list[_Part] = []
        while len(rows) > 1:
            first = split(len(rows), slots)
            part = _Part(self._step, rows[:first], slots, self)
            part.carry = carry
            parts.append(part)
            carry, results = checkpoint(part)
            ys += results
            rows = rows[first:]
            slots -= 1
        carry, y = self._step(carry, rows[0])
        if self._parts is None:
            self._parts = [(weakref.ref(part), len(part._rows)) for part in parts]
            if self._parent is not None:
                for part in parts:
                    part.carry = None
        else:
            # The parts of before are those that backward goes through.
            for (known, _), part in zip(self._parts[1:], parts[1:]):
                if (before := known()) is not None:
                    before.carry = part.carry
        return carry, [*ys, y]

    def _forget_behind(self, part: "_Part | None") -> None:
        """Drops the carries behind a part, which backward has passed, if the graph stays for another; behind
        none, those of all parts.
        """
        for known, _ in reversed(self._parts or ()):
            if (after := known()) is part and part is not None:
                return
            if after is not None:
                after._forget_behind(None)
                if self._parent is not None:
                    after.carry = None

    def _first(self) -> Leaves:
        """The carry before the first step."""
        if self.carry is not None:
            return self.carry
        assert self._parent is not None
        return self._parent._carry_of(self)

    def _carry_of(self, wanted: "_Part") -> Leaves:
        """The carry that a part begins with: the own one, or one for which steps run again.

        This is for a part that backward comes to without a need of the steps behind it.
        """
        carry, start = self._first(), 0
        now = _core.get_rng_state()
        _core.set_rng_state(self._random)
        try:
            for known, length in self._parts or ():
                part = known()
                if part is wanted:
                    break
                carry = checkpoint(_run, self._step, carry, self._rows[start : start + length])
                start += length
        finally:
            _core.set_rng_state(now)
        return carry


def _run(step: Step, carry: Leaves, rows: list[Leaves]) -> Leaves:
    for row in rows:
        carry, _ = step(carry, row)
    return carry
