"""`custom_vjp` and `custom_jvp`: functions with derivatives written by hand, as JAX spells them.

Both work on functions of pytrees, and one function can have both rules. A rule that is missing is derived
from the other by transposition, so the two modes never contradict each other. What a rule does is
differentiated in turn, so custom functions nest in every transform and have higher derivatives.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.autograd._rules import (
    Kept,
    Plan,
    Rule,
    Saving,
    aval,
    check_like,
    places_with_defaults,
    positional,
    restored,
    zeros,
)
from wengert.tree import TreeDef, tree_flatten, tree_unflatten

__all__ = ["custom_jvp", "custom_vjp"]

Function = Callable[..., Any]


class _Custom:
    """A function with rules of its own; the base of `custom_vjp` and `custom_jvp`."""

    def __init__(self, function: Function, nondiff_argnums: int | Sequence[int] = ()) -> None:
        """`nondiff_argnums` names arguments that are no data (functions, numbers, strings)."""
        if not callable(function):
            raise TypeError(f"{type(self).__name__}: a function expected, got {type(function).__name__}")
        functools.update_wrapper(self, function)
        self.function = function
        self.nondiff = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self.name = getattr(function, "__name__", type(function).__name__)
        # With fewer arguments than this, defaults are filled in: the rules are given all of them.
        self.places = places_with_defaults(function)
        self.fwd: Function | None = None
        self.bwd: Function | None = None
        self.push: Function | None = None
        if isinstance(function, _Custom) and function.nondiff == self.nondiff:
            self.fwd, self.bwd, self.push = function.fwd, function.bwd, function.push

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Sets the reverse rule.

        Args:
            fwd: of the function's arguments; returns `(output, residuals)`.
            bwd: of the `nondiff_argnums` arguments, the residuals and the cotangent of the output; returns a
                tuple with one cotangent per differentiable argument, of its structure; None stands for zeros.
        """
        self.fwd, self.bwd = fwd, bwd

    def defjvp(self, jvp: Function) -> Function:
        """Sets the forward rule, and returns it, so that this is a decorator.

        Args:
            jvp: of the `nondiff_argnums` arguments, the tuple of primals and the tuple of tangents; returns
                `(output, tangent of the output)`, of the structure, shapes and dtypes of what the function
                returns. In forward mode this output is the value; in reverse mode it is that of the function.
                The tangent must be linear in the tangents: reverse mode takes its derivative at zero tangents
                for the transpose. A rule that does not give zeros there raises NotImplementedError; one that
                is not linear otherwise, like `t * t`, is not noticed.
        """
        if not callable(jvp):
            raise TypeError(
                f"defjvp: a function expected for the rule of {self.name}, got {type(jvp).__name__}"
            )
        self.push = jvp
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Sets the forward rule argument by argument.

        Args:
            jvps: per argument a function of its tangent, the output and all primals, which returns its part
                of the output's tangent; None where an argument has no influence.
        """
        if self.nondiff:
            raise TypeError(f"defjvps: {self.name} has nondiff_argnums; define its rule with defjvp")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
            if len(jvps) != len(primals):
                raise TypeError(
                    f"defjvps: {len(jvps)} rules given, expected {len(primals)}, one per argument of "
                    f"{self.name}"
                )
            out = self(*primals)
            parts = [rule(t, out, *primals) for rule, t in zip(jvps, tangents) if rule is not None]
            leaves, structure = tree_flatten(out)
            columns = [_core._flatten_prefix(part, structure, f"defjvps of {self.name}") for part in parts]
            sums = [_total(column, y) for column, y in zip(zip(*columns), leaves)]
            return out, tree_unflatten(structure, sums or [_core.zeros_like(y) for y in leaves])

        self.push = jvp

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method it takes the instance as first argument."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        if self.bwd is None and self.push is None:
            kind = type(self).__name__
            rule = "defvjp(fwd, bwd)" if kind == "custom_vjp" else "defjvp(jvp)"
            raise NotImplementedError(
                f"{kind}: {self.name} was called before its rules were defined; call {self.name}.{rule} first"
            )
        call = _Call(self, positional(self.function, args, kwargs, self.places, self.name))
        reverse = "transpose" if self.bwd is None else "own"
        forward = "transpose" if self.push is None else "own"
        # From here on the call keeps no tensors: what the tape keeps is decided by the forward.
        tensors = [x for x in call.leaves if isinstance(x, Tensor)]
        call.leaves = [None if isinstance(x, Tensor) else x for x in call.leaves]
        return call.assembled(call.call(tensors, reverse, forward, strict=True))


class custom_vjp(_Custom):
    """A function with a reverse rule of its own.

    Args:
        function: of trees of tensors (and numbers, which are constants).
        nondiff_argnums: positions of arguments that are no data; they come first in the arguments of `bwd`.

    Differentiated tensors that the function or `fwd` closes over are an error, since the rule would miss
    them. Without a `defjvp`, forward mode transposes `bwd`.

    Example:
        >>> @wg.custom_vjp
        ... def clip_gradient(x):
        ...     return x
        >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (g.clamp(-1, 1),))
        >>> wg.grad(lambda x: 5 * clip_gradient(x))(wg.tensor(2.0))
        tensor(1.)
    """


class custom_jvp(_Custom):
    """A function with a forward rule of its own, from which reverse mode follows by transposition.

    Args:
        function: of trees of tensors (and numbers, which are constants).
        nondiff_argnums: positions of arguments that are no data; they come first in the arguments of the
            rule.

    Example:
        >>> @wg.custom_jvp
        ... def log1pexp(x):
        ...     return (1 + x.exp()).log()
        >>> log1pexp.defjvps(lambda t, out, x: t * (1 - 1 / (1 + x.exp())))
        >>> wg.grad(log1pexp)(wg.tensor(100.0))
        tensor(1.)
    """


def _total(parts: tuple[Any, ...], y: Any) -> Any:
    found = [part for part in parts if part is not None]
    return sum(found[1:], found[0]) if found else _core.zeros_like(y)


class _Call(Rule):
    """One call of a custom function."""

    __slots__ = (
        "custom", "fixed", "inputs", "leaves", "name", "out_items", "out_structure", "outputs", "places",
        "positions", "residuals", "structure",
    )  # fmt: skip

    def __init__(self, custom: _Custom, args: tuple[Any, ...]) -> None:
        self.custom = custom
        self.name = custom.name
        count = len(args)
        for i in custom.nondiff:
            if not -count <= i < count:
                raise ValueError(
                    f"{self.name}: nondiff_argnums names argument {i}, but {count} arguments were given"
                )
        nondiff = [i % count for i in custom.nondiff]
        # The arguments that are no data, in the order of `nondiff_argnums`, and where all arguments stand.
        self.fixed = [args[i] for i in nondiff]
        self.places = [nondiff.index(i) if i in nondiff else None for i in range(count)]
        chosen = tuple(x for x, place in zip(args, self.places) if place is None)
        self.leaves, self.structure = tree_flatten(chosen)
        self.positions = [i for i, x in enumerate(self.leaves) if isinstance(x, Tensor)]
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.out_items: list[Any] = []
        self.out_structure: TreeDef | None = None
        self.residuals: Kept | None = None

    # ---- taking apart and putting together ----------------------------------------------------------------

    def tree(self, values: Sequence[Any], other: Callable[[Any], Any] = lambda x: x) -> tuple[Any, ...]:
        """The differentiable arguments with these values for tensors, `other` of the rest."""
        filled = [other(x) for x in self.leaves]
        for i, value in zip(self.positions, values):
            filled[i] = value
        return tree_unflatten(self.structure, filled)

    def arguments(self, values: list[Tensor]) -> list[Any]:
        """All arguments, in the order of the function."""
        rest = iter(self.tree(values))
        return [next(rest) if place is None else self.fixed[place] for place in self.places]

    def assembled(self, outputs: Sequence[Any], other: Callable[[Any], Any] = lambda x: x) -> Any:
        """The result with these values for tensors, `other` of the rest."""
        assert self.out_structure is not None
        values = iter(outputs)
        filled = [next(values) if item is Tensor else other(item) for item in self.out_items]
        return tree_unflatten(self.out_structure, filled)

    def forward(self, inputs: list[Tensor], residuals: bool) -> tuple[list[Tensor], list[Any], TreeDef]:
        """The tensors of the result, and the residuals that the reverse rule asks for."""
        arguments = self.arguments(inputs)
        custom = self.custom
        kept: Any = None
        if custom.fwd is None or not residuals:
            result = custom.function(*arguments)
        else:
            both = custom.fwd(*arguments)
            if not (isinstance(both, tuple) and len(both) == 2):
                raise RuntimeError(
                    f"{self.name}: the forward rule returned {type(both).__name__}, expected a pair "
                    "(output, residuals)"
                )
            result, kept = both
        leaves, self.out_structure = tree_flatten(result)
        self.out_items = [Tensor if isinstance(y, Tensor) else y for y in leaves]
        return [y for y in leaves if isinstance(y, Tensor)], *tree_flatten(kept)

    # ---- rules --------------------------------------------------------------------------------------------

    def run(self, inputs: list[Tensor], hidden: bool) -> tuple[list[Tensor], Plan]:
        """The function; its forward rule, where somebody differentiates it."""
        outputs, leaves, structure = self.forward(inputs, hidden)
        saving = Saving(inputs, outputs)
        kept = [(saving.add(r), None) if isinstance(r, Tensor) else (None, r) for r in leaves]
        if self.custom.bwd is None:
            # The reverse rule is the transpose of the forward one, which reads the primals.
            saving.sources = [(0, i) for i in range(len(inputs))]
        self.residuals = (kept, structure)
        self.inputs, self.outputs = [aval(x) for x in inputs], [aval(y) for y in outputs]
        traceable = any(t.dtype.is_differentiable for t in saving.hidden)
        plan: tuple[Any, ...] = (len(outputs), saving.sources, [False] * len(outputs), traceable, [])
        return (outputs + saving.hidden if hidden else outputs), plan

    def retrace(self, inputs: list[Tensor]) -> list[Tensor]:
        """The forward rule once more."""
        outputs, leaves, _ = self.forward(inputs, True)
        saving = Saving(inputs, outputs)
        for r in leaves:
            if isinstance(r, Tensor):
                saving.add(r)
        return outputs + saving.hidden

    def vjp(
        self, saved: list[Tensor], cotangents: list[Tensor | None], needs: tuple[bool, ...]
    ) -> list[Tensor | None]:
        """The user's reverse rule, checked."""
        assert self.custom.bwd is not None
        assert self.residuals is not None
        residuals = restored(self.residuals, saved)
        given = [zeros(y) if g is None else g for g, y in zip(cotangents, self.outputs)]
        found = self.custom.bwd(*self.fixed, residuals, self.assembled(given, lambda _: 0.0))
        children = self.structure.children()
        count = len(children)
        who = f"the reverse rule of {self.name}"
        if not isinstance(found, (tuple, list)):
            raise RuntimeError(
                f"{who} returned {type(found).__name__}, expected a tuple of {count} cotangents, one per "
                "differentiable argument"
            )
        if len(found) != count:
            raise RuntimeError(
                f"{who} returned {len(found)} cotangents, expected {count}: one per differentiable argument, "
                "None for zeros"
            )
        flat: list[Any] = []
        for i, (part, child) in enumerate(zip(found, children)):
            try:
                flat += _core._flatten_prefix(part, child, who)
            except ValueError:
                got = tree_flatten(part)[1]
                raise RuntimeError(
                    f"{who} returned {got} for argument {i}, expected {child}, the structure of the argument"
                ) from None
        out: list[Tensor | None] = []
        for i, like, need in zip(self.positions, self.inputs, needs):
            g = flat[i]
            if g is not None:
                check_like(g, like, True, who, f"the cotangent of leaf {i} of the arguments")
            out.append(g if need and like[1].is_differentiable else None)
        return out

    def jvp(
        self, inputs: list[Tensor], saved: list[Tensor], tangents: list[Tensor | None]
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """The user's forward rule, checked: the outputs as it computes them, and their tangents."""
        assert self.custom.push is not None
        given = [zeros(x) if t is None else t for t, x in zip(tangents, self.inputs)]
        primals = self.tree(inputs)
        found = self.custom.push(*self.fixed, primals, self.tree(given, lambda _: 0.0))
        who = f"the forward rule of {self.name}"
        if not (isinstance(found, (tuple, list)) and len(found) == 2):
            raise RuntimeError(
                f"{who} returned {type(found).__name__}, expected a pair (output, tangent of the output)"
            )
        assert self.out_structure is not None
        try:
            moved = _core._flatten_prefix(found[1], self.out_structure, who)
        except ValueError:
            got = tree_flatten(found[1])[1]
            raise RuntimeError(
                f"{who} returned a tangent {got}, expected {self.out_structure}, the structure of the output"
            ) from None
        moved = [t for t, item in zip(moved, self.out_items) if item is Tensor]
        for i, (t, like) in enumerate(zip(moved, self.outputs)):
            if t is not None:
                check_like(t, like, False, who, f"the tangent of output {i}")
        leaves, structure = tree_flatten(found[0])
        if structure != self.out_structure:
            raise RuntimeError(
                f"{who} returned an output {structure}, expected {self.out_structure}, as {self.name} returns"
            )
        values = [y for y, item in zip(leaves, self.out_items) if item is Tensor]
        for i, (y, like) in enumerate(zip(values, self.outputs)):
            check_like(y, like, False, who, f"output {i}")
        return values, moved

    def advice(self, attribute: str, error: BaseException) -> str:
        """What to define."""
        rule, other = ("jvp", "reverse") if attribute == "jvp" else ("vjp", "forward")
        return (
            f"{self.name} has no {attribute} rule, and its {other} rule cannot be transposed "
            f"({type(error).__name__}: {error}); define one with {self.name}.def{rule}"
        )
