"""Random counts."""

from wengert import _core
from wengert._arguments import operand
from wengert._core import Generator, Tensor, broadcast_tensors
from wengert._types import TensorLike

from ._method import floating

__all__ = ["binomial", "poisson"]


def poisson(input: TensorLike, generator: Generator | None = None) -> Tensor:
    """Draws Poisson counts of these rates, in their dtype; their gradient is zero.

    Args:
        input: rates, floating point numbers that are not negative.
        generator: what to draw from; the default stream for None.

    Raises:
        TypeError: for integers, which `.float()` converts.
        ValueError: for a rate that is negative or NaN; where values cannot be read (on GPUs, inside `vmap`)
            the count of NaN is NaN.

    Example:
        >>> wg.poisson(wg.tensor([0.0, 0.0]))
        tensor([0., 0.])
    """
    from wengert.distributions.numerics.samplers import drawing_from, poisson_sample

    given = floating("poisson", input)
    rate = given.detach()
    _check("poisson", "rates that are not negative", rate, ~(rate >= 0))
    with drawing_from(generator):
        drawn = poisson_sample(rate)
    # NaN stays, and the result depends on the rates with a slope of zero.
    return _core.where(rate == rate, drawn, given)


def binomial(count: TensorLike, prob: TensorLike, generator: Generator | None = None) -> Tensor:
    """Draws how many of `count` trials succeed, each with probability `prob`; the gradient of both is zero.

    Where the number or the probability is NaN, so is the count.

    Args:
        count: numbers of trials, whole numbers in a floating point dtype, which the result has.
        prob: probabilities; both broadcast.
        generator: what to draw from; the default stream for None.

    Raises:
        TypeError: for integers, which `.float()` converts.
        ValueError: for a probability outside of 0 to 1, or a negative count.

    Example:
        >>> wg.binomial(wg.tensor([5.0, 5.0]), wg.tensor([0.0, 1.0]))
        tensor([0., 5.])
    """
    from wengert.distributions.numerics.samplers import binomial_sample, drawing_from

    given = (
        floating("binomial", count),
        floating("binomial", operand("binomial", prob, operand("binomial", count))),
    )
    trials, chance = (x.detach() for x in given)
    _check("binomial", "counts that are not negative", trials, trials < 0)
    _check("binomial", "probabilities between 0 and 1", chance, (chance < 0) | (chance > 1))
    with drawing_from(generator):
        drawn = binomial_sample(*broadcast_tensors(trials, chance))
    both = given[0] + given[1]
    return _core.where(both == both, drawn, both)


def _check(name: str, wanted: str, x: Tensor, bad: Tensor) -> None:
    """Raises ValueError where a mask holds, if its values can be read without a transfer."""
    if x.is_gpu:
        return
    try:
        found = bool(bad.any())
    except TypeError:
        return
    if found:
        raise ValueError(f"{name}: {wanted} expected, got {x[bad].reshape(-1)[0].item()}")
