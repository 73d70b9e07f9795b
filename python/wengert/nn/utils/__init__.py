"""Gradient clipping, parameters as one vector or as functions of others, sequences of different lengths."""

from . import parametrizations, parametrize, rnn
from .clip import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .vector import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "rnn",
    "vector_to_parameters",
]


def __dir__() -> list[str]:
    """What is public."""
    return __all__
