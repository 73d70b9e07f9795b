"""Functions for parameters, under the names of `torch.distributions.utils`."""

from ..parameters import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]
__dir__ = __all__.copy
