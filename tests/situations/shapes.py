"""Of shapes and axes: broadcasting, products, views, joins, reductions."""

import wengert as wg

from situations.table import Situations, i, ones

SHAPES: Situations = {
    "broadcast": (
        lambda: ones(2, 3) + ones(4),
        wg.ShapeError,
        (
            "add: shapes (2, 3) and (4,) do not broadcast: aligned from the last axis, each pair of "
            "lengths must be equal or 1"
        ),
    ),
    "matmul": (
        lambda: ones(2, 3) @ ones(4, 5),
        wg.ShapeError,
        (
            "matmul: shapes (2, 3) and (4, 5) do not multiply: the last axis of the first must equal "
            "the second-to-last (or only) axis of the second, and leading axes must broadcast"
        ),
    ),
    "matmul_batches": (
        lambda: ones(2, 3, 4) @ ones(5, 4, 3),
        wg.ShapeError,
        (
            "matmul: shapes (2, 3, 4) and (5, 4, 3) do not multiply: the last axis of the first must "
            "equal the second-to-last (or only) axis of the second, and leading axes must broadcast"
        ),
    ),
    "matmul_scalar": (
        lambda: ones(2) @ wg.tensor(1.0),
        wg.ShapeError,
        "matmul: operands need at least one axis, got shapes (2,) and (); multiply scalars with *",
    ),
    "axis_out_of_range": (
        lambda: ones(2, 3).sum(2),
        IndexError,
        "sum: axis 2 is out of range for a tensor with 2 axes, expected -2..1",
    ),
    "axis_twice": (
        lambda: ones(2, 3).sum((0, -2)),
        ValueError,
        "sum: axis -2 appears twice in [0, -2]",
    ),
    "axis_of_scalar": (
        lambda: wg.tensor(1.0).softmax(2),
        IndexError,
        "softmax: axis 2 is out of range for a tensor with 1 axes, expected -1..0",
    ),
    "empty_maximum": (
        lambda: wg.zeros(0).amax(),
        ValueError,
        "amax: axis 0 of shape (0,) is empty and has no extremum",
    ),
    "empty_argmax": (
        lambda: wg.zeros(2, 0).argmax(1),
        ValueError,
        "argmax: axis 1 of shape (2, 0) is empty",
    ),
    "mean_of_integers": (
        lambda: i(1, 2).mean(),
        TypeError,
        "mean: a floating point tensor expected, got int64; convert with .float() first",
    ),
    "reshape": (
        lambda: ones(6).reshape(4, 2),
        wg.ShapeError,
        "reshape: shape (6,) has 6 elements and cannot become (4, 2) with 8",
    ),
    "reshape_inferred": (
        lambda: ones(6).reshape(4, -1),
        wg.ShapeError,
        (
            "reshape: 6 elements cannot take the shape [4, -1]; one length may be -1, and the others "
            "must divide the number of elements"
        ),
    ),
    "expand": (
        lambda: ones(2, 3).expand(2, 4),
        wg.ShapeError,
        (
            "expand: shape (2, 3) cannot be broadcast to (2, 4): axes are aligned from the last, and "
            "only length 1 grows"
        ),
    ),
    "permute_count": (
        lambda: ones(2, 3).permute(0),
        ValueError,
        "permute: 1 axes given for a tensor with 2",
    ),
    "permute_twice": (
        lambda: ones(2, 3).permute(0, 0),
        ValueError,
        "permute: axis 0 appears twice in [0, 0]",
    ),
    "cat_shapes": (
        lambda: wg.cat([ones(2, 3), ones(2, 4)], dim=0),
        wg.ShapeError,
        "cat: tensor 1 has shape (2, 4), expected (2, 3) except along axis 0",
    ),
    "cat_nothing": (
        lambda: wg.cat([]),
        ValueError,
        "cat: at least one tensor expected, got none",
    ),
    "stack_shapes": (
        lambda: wg.stack([ones(2), ones(3)]),
        wg.ShapeError,
        "stack: tensor 1 has shape (3,), expected (2,) as the first",
    ),
    "split_lengths": (
        lambda: ones(5).split([2, 2]),
        ValueError,
        "split: lengths [2, 2] add up to 4, expected 5 as axis 0",
    ),
    "too_many_axes": (
        lambda: ones(*[1] * 9),
        wg.ShapeError,
        ("a tensor has at most 8 axes, got 9 (shape [1, 1, 1, 1, 1, 1, 1, 1, 1]); merge axes with reshape"),
    ),
    "triangle_of_vector": (
        lambda: ones(3).tril(),
        wg.ShapeError,
        "triangle: at least two axes expected, got shape (3,)",
    ),
}
