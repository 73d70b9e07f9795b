"""What the core asks of a function with rules of its own; `autograd.Function`, `custom_vjp` and `custom_jvp`
are subclasses of `Rule`.

A rule is one call of such a function. The core runs its forward once, on plain values, and keeps for the
rules what the forward names: inputs, outputs, and values that are neither (hidden outputs). All of it goes
through the tape's own way of saving, so versions are checked, saved-tensor hooks and checkpoints see it, and
the ledger counts it.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wengert import _core
from wengert._axis_names import AXES, use_axes
from wengert._core import Tensor
from wengert.tree import TreeDef, tree_flatten, tree_unflatten

__all__ = ["Kept", "Plan", "Rule", "Saving", "restored"]

# The number of outputs; the values to save as (0 input, 1 output, 2 hidden; index); per output whether it has
# no derivative; whether hidden outputs have derivatives; the outputs that are inputs written in place.
Plan = tuple[int, list[tuple[int, int]], list[bool], bool, list[int]]


class Saving:
    """Collects the values to save: finds out which input or output each is, and makes the rest hidden
    outputs."""

    __slots__ = ("_known", "hidden", "sources")

    def __init__(
        self, inputs: Iterable[Tensor], outputs: Iterable[Tensor], dirty: Iterable[Tensor] = ()
    ) -> None:
        """Values are told apart by the identity of their objects, which must live as long as this. An input
        that was written in place is an output: what it was before is nobody's.
        """
        self._known = {id(y): (1, i) for i, y in enumerate(outputs)}
        written = {id(x) for x in dirty}
        for i, x in enumerate(inputs):
            if id(x) not in written:
                self._known[id(x)] = (0, i)
        self.hidden: list[Tensor] = []
        self.sources: list[tuple[int, int]] = []

    def add(self, value: Tensor | None) -> int | None:
        """Where the value will stand in the list of saved ones; None for None."""
        if value is None:
            return None
        source = self._known.get(id(value))
        if source is None:
            source = (2, len(self.hidden))
            self._known[id(value)] = source
            self.hidden.append(value)
        if source not in self.sources:
            self.sources.append(source)
        return self.sources.index(source)

    def add_tree(self, value: Any, recorded: bool = True) -> "Kept":
        """A tree of which the tensors are saved, those that need a gradient with `recorded` only."""
        leaves, structure = tree_flatten(value)

        def is_saved(x: Any) -> bool:
            return isinstance(x, Tensor) and (recorded or not x.requires_grad)

        return [(self.add(x), None) if is_saved(x) else (None, x) for x in leaves], structure


# A tree to be put together again: of each leaf where it stands among the saved values, or what it is.
Kept = tuple[list[tuple[int | None, Any]], TreeDef]


def restored(kept: Kept, saved: Sequence[Tensor]) -> Any:
    """The tree with its saved tensors."""
    leaves, structure = kept
    return tree_unflatten(structure, [x if at is None else saved[at] for at, x in leaves])


class Rule:
    """One call of a function with rules of its own. Lists hold tensors alone, in the order of the inputs."""

    __slots__ = ("__weakref__",)
    name: str

    def run(self, inputs: list[Tensor], hidden: bool) -> tuple[list[Tensor], Plan]:
        """The outputs, with `hidden` also the hidden ones after them, and the plan."""
        raise NotImplementedError

    def retrace(self, inputs: list[Tensor]) -> list[Tensor]:
        """The outputs and hidden outputs once more."""
        raise NotImplementedError

    def vjp(
        self, saved: list[Tensor], cotangents: list[Tensor | None], needs: tuple[bool, ...]
    ) -> Sequence[Tensor | None]:
        """Per input its cotangent."""
        raise NotImplementedError

    def jvp(
        self, inputs: list[Tensor], saved: list[Tensor], tangents: list[Tensor | None]
    ) -> tuple[Sequence[Tensor] | None, Sequence[Tensor | None]]:
        """The outputs, if the rule computes them, and per output its tangent."""
        raise NotImplementedError

    def advice(self, attribute: str, error: BaseException) -> str:
        """The text of the error for a rule (`jvp`, `backward`) that is missing and could not be derived."""
        raise NotImplementedError

    def call(
        self,
        inputs: list[Tensor],
        reverse: str = "own",
        forward: str = "own",
        strict: bool = False,
        batches: bool = False,
    ) -> list[Tensor]:
        """Calls the function: its outputs.

        Args:
            inputs: the tensors.
            reverse: where the VJP comes from: `own`, or `transpose` of the JVP.
            forward: where the JVP comes from: `own`, `transpose` of the VJP, or `trace` of the forward.
            strict: whether differentiated tensors that come in by a closure are an error rather than
                constants.
            batches: whether the rule has methods `batch` and `describe`.
        """
        axes = AXES.get()
        rule: Any = _Within(self, axes) if axes else self
        return _core._custom(rule, self.name, inputs, (reverse, forward), strict, batches)


class _Within:
    """A rule that runs where the axes have the names that they had at the call, also when a backward that
    comes later runs it.
    """

    __slots__ = ("__weakref__", "axes", "rule")

    def __init__(self, rule: Rule, axes: dict[str, Any]) -> None:
        self.rule, self.axes = rule, axes

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.rule, name)

        def run(*args: Any) -> Any:
            with use_axes(self.axes):
                return method(*args)

        return run if callable(method) else method


def check_like(g: Any, like: tuple[tuple[int, ...], Any, Any], sums: bool, who: str, what: str) -> None:
    """Raises unless `g` is a tensor of this shape, or with `sums` of one that broadcasting made of it, and
    real where a real one is expected.
    """
    if not isinstance(g, Tensor):
        raise RuntimeError(f"{who} returned {type(g).__name__} for {what}, expected a tensor or None")
    shape, dtype, _ = like
    got = tuple(g.shape)
    if g.dtype.is_complex and dtype.is_floating_point:
        raise RuntimeError(
            f"{who} returned {g.dtype!r} for {what}, expected {dtype!r}; the derivative of a real tensor is "
            "real: return its .real"
        )
    if got == shape:
        return
    if sums and len(got) >= len(shape):
        tail = got[len(got) - len(shape) :]
        if all(n in (m, 1) for n, m in zip(shape, tail)):
            return
    raise RuntimeError(f"{who} returned shape {got} for {what}, expected {shape}")


def zeros(like: tuple[tuple[int, ...], Any, Any]) -> Tensor:
    """Zeros of this shape and dtype on this device."""
    shape, dtype, device = like
    return _core.zeros(shape, dtype=dtype, device=device)


def aval(x: Tensor) -> tuple[tuple[int, ...], Any, Any]:
    """Shape, dtype and device."""
    return tuple(x.shape), x.dtype, x.device


def places_with_defaults(function: Callable[..., Any]) -> int:
    """How many arguments a function takes by position, if some of them have defaults; else 0."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(places) if any(p.default is not p.empty for p in places) else 0


def positional(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], places: int, who: str
) -> tuple[Any, ...]:
    """Keyword arguments in the places of their parameters, defaults filled in up to so many places."""
    if not kwargs and len(args) >= places:
        return args
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{who}: arguments {sorted(bound.kwargs)} are keyword-only, and rules know arguments by position"
        )
    return bound.args
