"""Activation checkpointing: forget what a part of a model saves for backward, and run that part again when
backward comes to it (Chen et al. 2016, "Training deep nets with sublinear memory cost").

A checkpoint saves its arguments alone. The second run sees the same random numbers, autocast region and
recording mode, and what it saves is freed once backward has used it. It works with closed-over parameters,
keyword arguments, nested checkpoints, hooks, higher derivatives, and inside every transform.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from wengert import _core

__all__ = ["checkpoint", "checkpoint_sequential", "set_checkpoint_early_stop"]
__dir__ = __all__.copy


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = False,
    context_fn: Callable[[], tuple[Any, Any]] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Computes `function(*args, **kwargs)`, run once more in backward instead of keeping what it saves.

    Args:
        function: must do the same both times.
        args: any objects; tensors among them are what the checkpoint saves.
            They must not be written before backward.
        use_reentrant: only False. There is one kind of checkpoint, which may be used inside other
            checkpoints, in every transform, and in second derivatives.
        context_fn: gives two contexts, one around the first run and one around each later one.
        determinism_check: `"default"`, or `"none"`, which is accepted; what is saved is always compared.
        debug, early_stop: accepted; errors always say which operations differ, and a second run goes to its
            end (`set_checkpoint_early_stop` is a context for the latter).
        preserve_rng_state: accepted; random numbers are always the same in the second run.
        kwargs: passed on.

    Returns:
        What the function returns.

    Raises:
        CheckpointError: in backward, if the second run saves something else than the first, or if a tensor
            among the arguments (in lists, tuples and dictionaries too) was written since the function began.
        ValueError: for `use_reentrant=True`, and for another `determinism_check`.

    Example:
        >>> x = wg.zeros(3, requires_grad=True)
        >>> wg.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x).sum().backward()
        >>> x.grad
        tensor([0.5403, 0.5403, 0.5403])
    """
    if use_reentrant:
        raise ValueError(
            "checkpoint: use_reentrant=True is not available; leave it out, nothing is lost by that"
        )
    if not callable(function):
        raise TypeError(f"checkpoint: a function expected, got {type(function).__name__}")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"checkpoint: determinism_check is 'default' or 'none', got {determinism_check!r}")
    if context_fn is not None:
        function = _within(function, *context_fn())
    return _core._checkpoint(function, args, kwargs)


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Returns a context that changes nothing; it exists so that programs written for PyTorch run.

    There, `enable` decides whether a second run may end once it has saved what backward needs. Here it always
    goes to its end, so it is noticed if it saves more than the first.

    Args:
        enable: True or False.

    Raises:
        TypeError: for something else.

    Example:
        >>> x = wg.ones(2, requires_grad=True)
        >>> with wg.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     y = wg.utils.checkpoint.checkpoint(wg.exp, x)
        >>> y.sum().backward()
    """
    if not isinstance(enable, bool):
        raise TypeError(f"set_checkpoint_early_stop: True or False expected, got {type(enable).__name__}")
    yield


def _within(function: Callable[..., Any], first: Any, later: Any) -> Callable[..., Any]:
    """The function in one context the first time, and in another from then on."""
    contexts = itertools.chain([first], itertools.repeat(later))

    def run(*args: Any, **kwargs: Any) -> Any:
        with next(contexts):
            return function(*args, **kwargs)

    return run


def checkpoint_sequential(
    functions: Iterable[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool = False,
    **kwargs: Any,
) -> Any:
    """Runs functions one after another, in `segments` checkpoints of equal length; the last part is not
    checkpointed, since backward would run it again at once. About sqrt(n) segments need the least memory.

    Args:
        functions: a `Sequential`, or any iterable of functions of one argument.
        segments: between 1 and the number of functions.
        input: the first function's argument.
        use_reentrant: only False.
        kwargs: `preserve_rng_state` is accepted.

    Returns:
        What the last function returns.

    Raises:
        ValueError: for a number of segments out of range, and for `use_reentrant=True`.
        TypeError: for another keyword.

    Example:
        >>> model = wg.nn.Sequential(wg.nn.Linear(2, 2), wg.nn.ReLU(), wg.nn.Linear(2, 1))
        >>> wg.utils.checkpoint.checkpoint_sequential(model, 2, wg.ones(3, 2)).shape
        (3, 1)
    """
    unknown = set(kwargs) - {"preserve_rng_state"}
    if unknown:
        raise TypeError(f"checkpoint_sequential: unknown keyword {sorted(unknown)[0]!r}")
    chain = list(functions)
    if not 1 <= segments <= max(len(chain), 1):
        raise ValueError(
            f"checkpoint_sequential: between 1 and {len(chain)} segments expected, got {segments}"
        )
    length = len(chain) // segments
    for start in range(0, length * (segments - 1), length or 1):
        input = checkpoint(_run, chain[start : start + length], input, use_reentrant=use_reentrant)
    return _run(chain[length * (segments - 1) :], input)


def _run(chain: list[Callable[..., Any]], x: Any) -> Any:
    for function in chain:
        x = function(x)
    return x
