"""Reverse mode on the tape, as PyTorch spells it: `autograd.grad`, `autograd.backward`, recording modes."""

import importlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wengert import _core
from wengert._core import Tensor
from wengert._switches import Variable
from wengert.autograd import function
from wengert.autograd.anomaly import (
    AnomalyError,
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from wengert.autograd.function import Function, FunctionCtx
from wengert.autograd.gradcheck import GradcheckError, adjoint_check, gradcheck, gradgradcheck
from wengert.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

if TYPE_CHECKING:
    from wengert.autograd import (
        forward_ad as forward_ad,
        functional as functional,
        graph as graph,
        profiler as profiler,
    )

__all__ = [
    "AnomalyError",
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "Variable",
    "adjoint_check",
    "anomaly",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
]
__dir__ = __all__.copy

Tensors = Tensor | Sequence[Tensor]


def _list(tensors: Any, what: str) -> list[Any]:
    """The tensors of an argument, which is one or a sequence of them."""
    if isinstance(tensors, Tensor) or tensors is None:
        return [tensors]
    found = list(tensors) if isinstance(tensors, Iterable) and not isinstance(tensors, str) else [tensors]
    for x in found:
        if not isinstance(x, Tensor):
            raise TypeError(f"{what} must be a tensor or a sequence of tensors, got {type(x).__name__}")
    return found


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Gradients of (the sum of) `outputs` with respect to `inputs`; no `.grad` changes.

    Args:
        outputs: tensors with a graph.
        inputs: tensors that they depend on, leaves or not.
        grad_outputs: a cotangent per output, of its shape and converted to its dtype; may be None for outputs
            with one element.
        retain_graph: keep what was saved, for another backward. Defaults to `create_graph`.
        create_graph: record the backward itself, for higher derivatives.
        only_inputs: accepted for PyTorch's sake; only True has a meaning, `backward` fills `.grad`.
        allow_unused: give None for inputs that no output depends on, instead of raising.
        is_grads_batched: the cotangents have a batch axis in front, and so have the gradients; one batched
            walk does what a loop over them would do.
        materialize_grads: give zeros for inputs that no output depends on.

    Inside a transform, the gradient with respect to the argument of the transformed function is recorded for
    that transform; with respect to leaves that were made inside, it is a constant.

    Raises:
        RuntimeError: for an input that no output depends on, without `allow_unused` and `materialize_grads`;
            for a complex cotangent of a real output.
        ValueError: for options that contradict each other, and for batched cotangents of unequal batch sizes.

    Example:
        >>> x = wg.tensor(3.0, requires_grad=True)
        >>> (g,) = wg.autograd.grad(x**2, x, create_graph=True)
        >>> wg.autograd.grad(g, x)
        (tensor(2.),)
    """
    outputs, inputs = _list(outputs, "grad: outputs"), _list(inputs, "grad: inputs")
    seeds = _cotangents("grad", "outputs", outputs, grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    if not only_inputs:
        raise ValueError(
            "grad: only_inputs=False is not supported, for it would fill .grad of all leaves; call "
            "backward() for that"
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "grad: materialize_grads=True gives zeros for unused inputs, which allow_unused=False forbids; "
            "leave allow_unused out"
        )
    walk = _batched if is_grads_batched else _core._grad
    found = walk(outputs, inputs, seeds, retain, create_graph)
    for i, (g, x) in enumerate(zip(found, inputs)):
        if g is not None:
            continue
        if materialize_grads:
            found[i] = _core.zeros_like(x.detach())
        elif not allow_unused:
            raise RuntimeError(
                f"grad: no output depends on input {i} of shape {tuple(x.shape)}; pass allow_unused=True for "
                "None in its place, or materialize_grads=True for zeros"
            )
    return tuple(found)


def _cotangents(what: str, name: str, tensors: list[Tensor], given: Any) -> list[Tensor | None]:
    """One cotangent, or None, per tensor."""
    many = given if isinstance(given, (list, tuple)) else [given]
    if given is None:
        many = [None] * len(tensors)
    seeds = [_cotangent(what, g) for g in many]
    if len(seeds) != len(tensors):
        raise ValueError(
            f"{what}: {len(seeds)} cotangents given for {len(tensors)} {name}; pass one (or None) for each"
        )
    return seeds


def _cotangent(what: str, given: Any) -> Tensor | None:
    """A cotangent as a tensor."""
    if given is None or isinstance(given, Tensor):
        return given
    try:
        return _core.as_tensor(given)
    except (TypeError, ValueError):
        raise TypeError(
            f"{what}: a cotangent is a tensor, an array, a number or None, got {type(given).__name__}"
        ) from None


def _batched(
    outputs: list[Tensor],
    inputs: list[Tensor],
    seeds: list[Tensor | None],
    retain: bool,
    create: bool,
) -> list[Tensor | None]:
    """The walk for a whole batch of cotangents at once."""
    from wengert.transforms import vmap

    places = [i for i, g in enumerate(seeds) if g is not None]
    reached: list[int] = []

    def pull(rows: list[Tensor]) -> list[Tensor]:
        one: list[Tensor | None] = [None] * len(seeds)
        for i, row in zip(places, rows):
            one[i] = row
        found = _core._grad(outputs, inputs, one, retain, create)
        reached[:] = [i for i, g in enumerate(found) if g is not None]
        return [g for g in found if g is not None]

    rows = [g for g in seeds if g is not None]
    for g, i in zip(rows, places):
        if g.ndim == 0:
            raise ValueError(
                f"grad: is_grads_batched=True, but the cotangent of output {i} has no axis for the batch; "
                f"expected shape (batch, *{tuple(outputs[i].shape)})"
            )
    found: list[Tensor | None] = [None] * len(inputs)
    for i, g in zip(reached, vmap(pull, randomness="same")(rows)) if rows else ():
        found[i] = g
    return found


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Back-propagates from `tensors`, in one walk, and adds the gradients of all leaves to their `.grad`.

    Args:
        tensors: where to start.
        grad_tensors: a cotangent per tensor; may be None for tensors with one element.
        retain_graph: keep what was saved, for another backward. Defaults to `create_graph`.
        create_graph: record the backward itself, for higher derivatives.
        inputs: the tensors to accumulate into; all leaves by default. Results of operations keep their
            gradient as after `retain_grad()`.

    Example:
        >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
        >>> wg.autograd.backward([x.sum(), (x * x).sum()])
        >>> x.grad
        tensor([3., 5.])
    """
    roots = _list(tensors, "backward: tensors")
    seeds = _cotangents("backward", "tensors", roots, grad_tensors)
    targets = None if inputs is None else _list(inputs, "backward: inputs")
    if targets is not None and not targets:
        raise RuntimeError(
            "backward: inputs= names no tensor, so nothing would be accumulated; name at least one, or leave "
            "it out for all leaves"
        )
    retain = create_graph if retain_graph is None else retain_graph
    _core._backward(roots, seeds, retain, create_graph, targets)


def __getattr__(name: str) -> Any:
    """Imports what is seldom needed, and finds PyTorch's names of modules."""
    if name in ("forward_ad", "functional", "graph", "profiler"):
        return importlib.import_module(f"wengert.autograd.{name}")
    if name == "grad_mode":
        return importlib.import_module("wengert.autograd.modes")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
