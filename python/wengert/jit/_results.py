"""Results of functions that run as programs, and how programs put them together."""

import enum
from collections.abc import Callable
from functools import partial
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.autograd import enable_grad, grad
from wengert.tree import TreeDef, tree_flatten, tree_unflatten

from ._state import VALUES, State

__all__ = ["CONSTANTS", "Results", "Variant", "is_held"]

# What nobody can change: arguments that are compared, and results that are the same in every run.
CONSTANTS = (*VALUES, type(None), type(...), _core.dtype, _core.device, range, slice, enum.Enum)


class Variant:
    """A program, what it found when it was made, and how its results are put together."""

    __slots__ = ("fixed", "given", "has_history", "made", "modules", "program", "state", "tree")

    def __init__(
        self, program: Any, state: State, tree: TreeDef, results: "Results", modules: list[str]
    ) -> None:
        self.program, self.state, self.tree, self.modules = program, state, tree, modules
        self.fixed, self.given, self.made = results.fixed, results.given, results.made
        self.has_history = program.has_history

    def run(self, tensors: list[Tensor], again: Callable[[], Any]) -> tuple[list[Tensor] | None, bool]:
        """Runs the program; `again` calls the function with these arguments."""
        if not self.has_history:
            return self.program.run(tensors)
        return self.program.run(tensors, partial(self._pull, tensors, again))

    def again(self, function: Callable[..., Any], args: tuple[Tensor, ...]) -> Callable[..., Any]:
        """What computes gradients by the function itself, of these arguments."""
        return partial(self._pull, [*args], partial(function, *args))

    def _pull(
        self,
        tensors: list[Tensor],
        again: Callable[[], Any],
        targets: list[int],
        cotangents: list[Tensor | None],
        create_graph: bool,
    ) -> list[Tensor | None]:
        """The gradients of the arguments and of the state with these numbers, by the function itself."""
        if not self.state.is_as_it_was():
            raise RuntimeError(
                "jit: what the function reads has changed since its call, and this backward needs it as it "
                "was: it is recorded (create_graph=True), or has other cotangents than the first ones; call "
                "the function without jit"
            )
        with enable_grad():
            leaves, _ = tree_flatten(_core._nested(again))
        made = Results(leaves, tensors, self.state).outputs
        outputs = [(y, g) for y, g in zip(made, cotangents) if g is not None and y.requires_grad]
        known = [*tensors, *self.state.tensors]
        found = grad(
            [y for y, _ in outputs],
            [known[i] for i in targets],
            [g for _, g in outputs],
            create_graph=create_graph,
            allow_unused=True,
        )
        return list(found)

    def result(self, tensors: list[Tensor], outputs: list[Tensor]) -> Any:
        """The result of the function, of arguments that it returns and tensors that it made."""
        results = list(self.fixed)
        for i, k in self.given:
            results[i] = tensors[k]
        for i, k in self.made:
            results[i] = outputs[k]
        return tree_unflatten(self.tree, results)


class Results:
    """The leaves of a result: arguments, tensors that the function made, and what is always the same.

    Attributes:
        fixed: all leaves, with None for the others.
        given, made: the places of arguments and of tensors made, each with its number.
        outputs: the tensors made.
        strange: the type of a leaf that another run would not make.
    """

    def __init__(self, leaves: list[Any], tensors: list[Tensor], state: State) -> None:
        self.fixed: list[Any] = []
        self.given: list[tuple[int, int]] = []
        self.made: list[tuple[int, int]] = []
        self.outputs: list[Tensor] = []
        self.strange: str | None = None
        for i, x in enumerate(leaves):
            kept = None
            if (k := _index(tensors, x)) is not None:
                self.given.append((i, k))
            elif isinstance(x, (*CONSTANTS, _core.Linear)) or state.holds(x):
                kept = x
            elif isinstance(x, Tensor) and type(x) is Tensor and not getattr(x, "__dict__", None):
                if (k := _index(self.outputs, x)) is None:
                    k = len(self.outputs)
                    self.outputs.append(x)
                self.made.append((i, k))
            else:
                self.strange = type(x).__name__
            self.fixed.append(kept)


def is_held(value: Any, state: State) -> bool:
    """Whether a container of a result is the function's own, which it would return again."""
    if isinstance(value, dict):
        return state.holds(value) or any(is_held(x, state) for x in value.values())
    return isinstance(value, list | tuple) and (state.holds(value) or any(is_held(x, state) for x in value))


def _index(tensors: list[Tensor], value: Any) -> int | None:
    """Which of the tensors this object is."""
    return next((i for i, x in enumerate(tensors) if x is value), None)
