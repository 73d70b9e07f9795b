"""Of indices, masks, gather and scatter."""

import wengert as wg
from messages import Situations
from wengert.nn import functional as F

from situations.operands import i, ones

INDEXING: Situations = {
    "index_out_of_range": (
        lambda: ones(3)[3],
        IndexError,
        "index 3 is out of range for axis 0 of length 3",
    ),
    "index_below_range": (
        lambda: ones(3)[-4],
        IndexError,
        "index -4 is out of range for axis 0 of length 3",
    ),
    "too_many_indices": (
        lambda: ones(3)[0, 0],
        IndexError,
        "too many indices: 2 given for a tensor of shape (3,)",
    ),
    "index_tensor_out_of_range": (
        lambda: ones(3)[i(0, 5)],
        IndexError,
        "index 5 is out of range for an axis of length 3",
    ),
    "index_tensors_that_do_not_broadcast": (
        lambda: ones(3, 3)[i(0, 1), i(0, 1, 2)],
        IndexError,
        "index tensors of shapes (2,) and (3,) do not broadcast together",
    ),
    "index_by_float": (
        lambda: ones(3)[wg.tensor([0.5])],
        IndexError,
        (
            "a tensor is indexed by integers, slices, None, ..., integer tensors and bool masks, got "
            "a float32 tensor; convert it with .long()"
        ),
    ),
    "mask_of_wrong_shape": (
        lambda: ones(3)[wg.tensor([True, False])],
        IndexError,
        "a mask of shape (2,) does not fit axes of shape (3,)",
    ),
    "gather_shape": (
        lambda: ones(3, 3).gather(0, i(0)),
        wg.ShapeError,
        (
            "gather: index of shape (1,) does not fit shape (3, 3): the same number of axes, and no "
            "longer except along axis 0"
        ),
    ),
    "gather_range": (
        lambda: ones(3).gather(0, i(3)),
        IndexError,
        "index 3 is out of range for an axis of length 3",
    ),
    "gather_dtype": (
        lambda: ones(3).gather(0, ones(1)),
        TypeError,
        ("gather: indices must be integers, got float32; convert with .long() (or .int() on a GPU)"),
    ),
    "scatter_shape": (
        lambda: ones(3).scatter_add(0, i(0, 1), ones(1)),
        wg.ShapeError,
        "scatter_add: index of shape (2,) does not fit source (1,) and tensor (3,)",
    ),
    "embedding_range": (
        lambda: F.embedding(i(4), ones(4, 2)),
        IndexError,
        "embedding: index 4 is out of range for an axis of length 4",
    ),
    "zero_step": (
        lambda: ones(3)[::0],
        ValueError,
        "slice step cannot be zero",
    ),
}
