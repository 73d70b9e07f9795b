"""Of arguments whose values are looked at, and of combinations that contradict each other."""

import wengert as wg
from messages import Situations
from wengert import nn
from wengert.nn import functional as F

from situations.operands import i, ones

CHECKED: Situations = {
    "nll_negative": (
        lambda: F.nll_loss(ones(1, 3), i(-1)),
        IndexError,
        "nll_loss: target -1 is out of range for 3 classes, expected 0..2",
    ),
    "multi_margin_negative": (
        lambda: F.multi_margin_loss(ones(1, 3), i(-1)),
        IndexError,
        "multi_margin_loss: target -1 is out of range for 3 classes, expected 0..2",
    ),
    "embedding_negative": (
        lambda: F.embedding(i(0, -2), ones(3, 2)),
        IndexError,
        "embedding: index -2 is out of range for 3 rows, expected 0..2",
    ),
    "bag_offsets": (
        lambda: F.embedding_bag(i(0, 1, 2), ones(3, 2), i(0, 2, 1)),
        ValueError,
        (
            "embedding_bag: offsets must begin with 0, never decrease, and end at 3 or before, the number of "
            "indices; got [0, 2, 1]"
        ),
    ),
    "bag_first_offset": (
        lambda: F.embedding_bag(i(0, 1, 2), ones(3, 2), i(1)),
        ValueError,
        (
            "embedding_bag: offsets must begin with 0, never decrease, and end at 3 or before, the number of "
            "indices; got [1]"
        ),
    ),
    "bag_last_offset": (
        lambda: F.embedding_bag(i(0, 1, 2), ones(3, 2), i(0, 2), include_last_offset=True),
        ValueError,
        (
            "embedding_bag: offsets must begin with 0, never decrease, and end at 3, the number of indices; "
            "got [0, 2]"
        ),
    ),
    "class_weight": (
        lambda: F.cross_entropy(ones(2, 3), i(0, 1), ones(5)),
        wg.ShapeError,
        (
            "cross_entropy: weight of shape (5,), expected (3,), one for each class of the input of shape "
            "(2, 3)"
        ),
    ),
    "bce_target": (
        lambda: F.binary_cross_entropy(ones(1), ones(1) * 1.5),
        ValueError,
        "binary_cross_entropy: target must lie between 0 and 1, got 1.5",
    ),
    "gaussian_variance": (
        lambda: F.gaussian_nll_loss(ones(2), ones(2), -ones(2)),
        ValueError,
        "gaussian_nll_loss: variances must not be negative, got -1",
    ),
    "gaussian_variance_shape": (
        lambda: F.gaussian_nll_loss(ones(2, 3), ones(2, 3), ones(3)),
        wg.ShapeError,
        (
            "gaussian_nll_loss: var of shape (3,), expected (2, 3) as the input, with axes of length 1 for "
            "what is shared, or without the last axis, (2,)"
        ),
    ),
    "normal_deviation": (
        lambda: wg.normal(ones(2), -ones(2)),
        ValueError,
        "normal: std must not be negative, got -1",
    ),
    "uniform_bounds": (
        lambda: ones(2).uniform_(2, 1),
        ValueError,
        "uniform_: low must not exceed high, got 2 and 1",
    ),
    "bernoulli_write": (
        lambda: ones(2).bernoulli_(1.5),
        ValueError,
        "bernoulli_: p is a probability between 0 and 1, got 1.5",
    ),
    "fill_beyond": (
        lambda: wg.zeros(2, dtype=wg.uint8).masked_fill(ones(2) > 0, 300),
        ValueError,
        (
            "masked_fill: 300 does not fit into uint8, which holds 0 to 255; use a wider dtype, or convert "
            "the tensor first"
        ),
    ),
    "fill_complex": (
        lambda: ones(2).masked_fill(ones(2) > 0, 1j),
        TypeError,
        "masked_fill: float32 does not hold complex numbers; convert with .to(wg.complex64) first",
    ),
    "addbmm_batches": (
        lambda: ones(2, 2).addbmm(ones(2, 2, 3), ones(3, 2, 2)),
        wg.ShapeError,
        (
            "addbmm: batches of matrices of shapes (2, 2, 3) and (3, 2, 2) do not multiply; expected (b, n, "
            "m) and (b, m, p)"
        ),
    ),
    "norm_of_nothing": (
        lambda: wg.linalg.vector_norm(wg.ones(2, 0), -1, dim=1),
        ValueError,
        "vector_norm: the norm of order -1 of no elements, the shape is (2, 0); pass at least one",
    ),
    "norm_name": (
        lambda: ones(2, 2).norm("foo"),
        ValueError,
        "norm: p must be a number, 'fro' or 'nuc', got 'foo'",
    ),
    "unflatten_nothing": (
        lambda: wg.ones(0, 4).unflatten(1, (3, 5)),
        wg.ShapeError,
        (
            "unflatten: axis 1 of length 4 in shape (0, 4) does not split into [3, 5]; their product must be "
            "the length"
        ),
    ),
    "diag_embed_axes": (
        lambda: ones(3).diag_embed(dim1=0, dim2=-2),
        ValueError,
        "diag_embed: two different axes expected, got 0 and -2 of 2",
    ),
    "trace_axes": (
        lambda: ones(2, 2, 2).trace(),
        wg.ShapeError,
        "trace: a matrix expected, got shape (2, 2, 2); linalg.trace sums the diagonals of many",
    ),
    "take_along_shapes": (
        lambda: ones(4, 3).take_along_dim(wg.zeros(2, 3, dtype=wg.int64), 1),
        wg.ShapeError,
        (
            "take_along_dim: indices of shape (2, 3) and a tensor of shape (4, 3) do not broadcast: lengths "
            "on all axes but 1 must be equal or 1"
        ),
    ),
    "search_sides": (
        lambda: wg.searchsorted(ones(2), ones(1), right=True, side="left"),
        ValueError,
        "searchsorted: right=True and side='left' contradict each other; give one of them",
    ),
    "median_of_no_integers": (
        lambda: wg.zeros(0, dtype=wg.int64).median(),
        ValueError,
        "median: no elements, the shape is (0,), and wengert.int64 has no NaN to say so",
    ),
    "unbiased_axes": (
        lambda: ones(2, 2).var(0, 1),
        TypeError,
        (
            "var: unbiased must be a bool, got int; several axes are one argument, dim=(0, 1), and any other "
            "correction is correction="
        ),
    ),
    "unbiased_and_correction": (
        lambda: ones(2).std(unbiased=False, correction=2),
        ValueError,
        "std: give either unbiased or correction, got False and 2",
    ),
    "projection_of_gru": (
        lambda: nn.GRU(2, 3, proj_size=2),
        ValueError,
        "GRU: proj_size is an option of LSTM, got 2; leave it out",
    ),
    "same_padding_with_stride": (
        lambda: nn.Conv2d(1, 1, 3, padding="same", stride=2),
        ValueError,
        "Conv2d: padding 'same' is defined for stride 1, got (2, 2); give the padding in numbers",
    ),
    "padding_name": (
        lambda: nn.Conv2d(1, 1, 3, padding="half"),
        ValueError,
        "Conv2d: padding is numbers, 'valid' or 'same', got 'half'",
    ),
}
