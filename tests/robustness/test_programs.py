"""Random programs of tensors, views, in-place writes, modes and backward, against a model that knows no tape.

The model carries, with each value, its derivatives along every element of every leaf, in a NumPy array with
one more axis. A view of a tensor is a view of both arrays, so an in-place write through any of them changes
what all of them know, which is what reverse mode must find out by other means. Where wengert refuses (a value
saved for backward was overwritten, a graph is gone, a write that cannot be recorded) it must say so and leave
everything as it was.
"""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import wengert as wg
from hypothesis import settings, strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from support import examples

LEAVES, SHAPE = 3, (2, 3)
SIZE = SHAPE[0] * SHAPE[1]
DIRECTIONS = LEAVES * SIZE

#: What may be refused, and only with one of these reasons.
REFUSALS = re.compile(
    r"modified in place|already used and freed|has no graph|leaf|in place|in-place|view|share "
    r"memory|no_grad|version"
)


@dataclass
class Pair:
    """A tensor, and what the model knows of it."""

    t: wg.Tensor
    value: np.ndarray[Any, Any]
    #: Derivatives along all directions, in the last axis. None: not recorded.
    slope: np.ndarray[Any, Any] | None
    leaf: int | None = None

    @property
    def moving(self) -> np.ndarray[Any, Any]:
        """The derivatives, zero where there are none."""
        return np.zeros((*self.value.shape, DIRECTIONS)) if self.slope is None else self.slope


class Program:
    """Runs instructions on both sides."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        """`values` are those of the leaves, one behind the other."""
        self.pairs: list[Pair] = []
        self.leaves: list[Pair] = []
        self.grads: list[np.ndarray[Any, Any] | None] = [None] * LEAVES
        self.recording = True
        self.refused = 0
        for i in range(LEAVES):
            value = values[i]
            slope = np.zeros((*SHAPE, DIRECTIONS))
            for k in range(SIZE):
                slope.reshape(SIZE, DIRECTIONS)[k, i * SIZE + k] = 1.0
            leaf = Pair(wg.tensor(value, requires_grad=True), value.copy(), slope, i)
            self.leaves.append(leaf)
            self.pairs.append(leaf)

    def pick(self, k: int) -> Pair:
        return self.pairs[k % len(self.pairs)]

    def step(self, name: str, a: int, b: int, c: int) -> None:
        """One instruction; its operands are chosen by numbers."""
        with wg.set_grad_enabled(self.recording):
            getattr(self, name)(self.pick(a), self.pick(b), c)

    def add(self, t: wg.Tensor, value: Any, slope: Any, parents: list[Pair]) -> None:
        recorded = self.recording and any(p.slope is not None for p in parents)
        assert t.requires_grad == recorded
        self.pairs.append(Pair(t, np.array(value), np.array(slope) if recorded else None))
        self.check(self.pairs[-1])

    def check(self, p: Pair) -> None:
        np.testing.assert_allclose(p.t.detach().numpy(), p.value, rtol=1e-9, atol=1e-9)

    def refuse(self, error: RuntimeError) -> None:
        assert REFUSALS.search(str(error)), error
        self.refused += 1

    # ---- operations

    def unary(self, x: Pair, _: Pair, kind: int) -> None:
        v, d = x.value, x.moving
        kind %= 4
        if kind == 0:
            self.add(x.t.sin(), np.sin(v), np.cos(v)[..., None] * d, [x])
        elif kind == 1:
            y = np.tanh(v)
            self.add(x.t.tanh(), y, (1 - y * y)[..., None] * d, [x])
        elif kind == 2:
            self.add(x.t * 0.5 + 1.0, v * 0.5 + 1.0, d * 0.5, [x])
        else:
            self.add(x.t.relu(), np.maximum(v, 0), (v > 0)[..., None] * d, [x])

    def binary(self, x: Pair, y: Pair, kind: int) -> None:
        if x.value.shape != y.value.shape:
            y = x
        if kind % 2 == 0:
            self.add(x.t + y.t, x.value + y.value, x.moving + y.moving, [x, y])
        else:
            slope = x.moving * y.value[..., None] + y.moving * x.value[..., None]
            self.add(x.t * y.t, x.value * y.value, slope, [x, y])

    def total(self, x: Pair, _: Pair, kind: int) -> None:
        if x.value.ndim == 0:
            return
        axis = kind % x.value.ndim
        self.add(x.t.sum(axis), x.value.sum(axis), x.moving.sum(axis), [x])

    # ---- views

    def view(self, x: Pair, _: Pair, kind: int) -> None:
        # Views taken without recording learn of later writes to what they view; the model does not follow
        # that.
        if x.value.ndim == 0 or (x.slope is not None and not self.recording):
            return
        key: Any = [(0, ...), slice(None, None, 2), slice(None, None, -1), slice(1, None), (..., 0)][kind % 5]
        if kind % 6 == 5:
            axes = tuple(reversed(range(x.value.ndim)))
            t, value, order = x.t.permute(*axes), x.value.transpose(axes), (*axes, x.value.ndim)
            slope = None if x.slope is None else x.slope.transpose(order)
        else:
            t, value = x.t[key], x.value[key]
            full = (*key, slice(None)) if isinstance(key, tuple) else key
            slope = None if x.slope is None else x.slope[full]
        if value.size == 0:
            return
        assert t.requires_grad == (slope is not None)
        self.pairs.append(Pair(t, value, slope))
        self.check(self.pairs[-1])

    def detached(self, x: Pair, _: Pair, kind: int) -> None:
        self.pairs.append(Pair(x.t.detach(), x.value, None))

    # ---- in place

    def write(self, x: Pair, y: Pair, kind: int) -> None:
        """`x += y`, `x *= y` or `x[0] = 2`; refused, or done as the model does it."""
        if x.value.shape != y.value.shape or x.value.ndim == 0:
            kind = 2
        if x.value.ndim == 0:
            return
        kind %= 3
        before = x.t.detach().numpy().copy()
        if self.recording and x.slope is None and kind < 2 and y.slope is not None:
            return  # would begin a history, also of what shares the memory: not modelled
        v, d, w, e = x.value, x.moving, y.value.copy(), y.moving.copy()
        try:
            if kind == 0:
                x.t.add_(y.t)
            elif kind == 1:
                x.t.mul_(y.t)
            else:
                x.t[0] = 2.0
        except RuntimeError as error:
            self.refuse(error)
            assert x.t.detach().numpy().tolist() == before.tolist(), "a refused write wrote"
            return
        old = v.copy()
        new_slope = d.copy()
        if kind == 0:
            v += w
            new_slope += e
        elif kind == 1:
            v *= w
            new_slope = d * w[..., None] + e * old[..., None]
        else:
            v[0] = 2.0
            new_slope[0] = 0.0
        if self.recording and x.slope is not None:
            x.slope[...] = new_slope
        for p in self.pairs:
            self.check(p)

    # ---- backward and the rest

    def backward(self, x: Pair, _: Pair, kind: int) -> None:
        retain = kind % 3 != 0
        if x.slope is None:
            return
        weights = np.linspace(1.0, 2.0, x.value.size).reshape(x.value.shape)
        try:
            with wg.enable_grad():
                x.t.backward(wg.tensor(weights), retain_graph=retain)
        except RuntimeError as error:
            self.refuse(error)
            # A walk that was refused may have reached some leaves.
            for i, leaf in enumerate(self.leaves):
                leaf.t.grad = None
                self.grads[i] = None
            return
        change = (weights.ravel() @ x.slope.reshape(-1, DIRECTIONS)).reshape(LEAVES, *SHAPE)
        for i, leaf in enumerate(self.leaves):
            got = leaf.t.grad
            if self.grads[i] is None:
                expected = change[i]
                if got is None:
                    assert not np.any(expected), f"no gradient of leaf {i}, expected {expected}"
                    continue
            else:
                expected = self.grads[i] + change[i]
            assert got is not None
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-7, atol=1e-7)
            self.grads[i] = expected

    def mode(self, _: Pair, __: Pair, kind: int) -> None:
        self.recording = kind % 3 != 0

    def forget(self, x: Pair, _: Pair, kind: int) -> None:
        if x.leaf is None:
            # By identity: arrays do not compare to one truth value.
            self.pairs = [p for p in self.pairs if p is not x]


NAMES = "unary binary total view detached write backward mode forget".split()
NUMBER = st.integers(0, 30)
LEAF_VALUES = hnp.arrays(np.float64, (LEAVES, *SHAPE), elements=st.floats(-1, 1, allow_subnormal=False))


def instruction(name: str) -> Any:
    """The rule that runs an instruction."""

    def run(self: Programs, a: int, b: int, kind: int) -> None:
        self.program.step(name, a, b, kind)

    run.__name__ = name
    return rule(a=NUMBER, b=NUMBER, kind=NUMBER)(run)


class Programs(RuleBasedStateMachine):
    """Draws programs; hypothesis leaves kinds of instructions out at random, and shrinks what fails."""

    @initialize(values=LEAF_VALUES)
    def start(self, values: np.ndarray[Any, Any]) -> None:
        self.program = Program(values)

    unary = instruction("unary")
    binary = instruction("binary")
    total = instruction("total")
    view = instruction("view")
    detached = instruction("detached")
    write = instruction("write")
    backward = instruction("backward")
    mode = instruction("mode")
    forget = instruction("forget")

    def teardown(self) -> None:
        """In the end every tensor is differentiated."""
        self.program.recording = True
        for p in self.program.pairs:
            self.program.backward(p, p, 1)
        assert wg.is_grad_enabled()


TestPrograms = Programs.TestCase
TestPrograms.settings = settings(examples(150), stateful_step_count=30)


def test_programs_give_everything_back() -> None:
    def run() -> None:
        for seed in range(30):
            rng = np.random.default_rng(seed)
            program = Program(rng.uniform(-1, 1, (LEAVES, *SHAPE)))
            for _ in range(40):
                program.step(NAMES[rng.integers(len(NAMES))], *(int(k) for k in rng.integers(0, 30, 3)))

    run()
    gc.collect()
    before = wg.memory.live_bytes(), wg.memory.live_nodes()
    run()
    gc.collect()
    assert (wg.memory.live_bytes(), wg.memory.live_nodes()) == before
