"""Of shapes and axes: broadcasting, products, views, joins, reductions."""

import wengert as wg
from messages import Situations
from wengert.nn.functional import scaled_dot_product_attention as attend

from situations.operands import i, ones

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
        "tril: at least two axes expected, got shape (3,)",
    ),
    "attention_lengths": (
        lambda: attend(ones(2, 3, 4), ones(2, 5, 4), ones(2, 6, 4)),
        wg.ShapeError,
        (
            "scaled_dot_product_attention: query (2, 3, 4), key (2, 5, 4), value (2, 6, 4); expected (..., "
            "L, E), (..., S, E), (..., S, V)"
        ),
    ),
    "attention_batches": (
        lambda: attend(ones(4, 3, 8), ones(2, 5, 8), ones(2, 5, 8)),
        wg.ShapeError,
        (
            "scaled_dot_product_attention: the batch axes of query (4, 3, 8), key (2, 5, 8) and value (2, 5, "
            "8) do not "
            "broadcast; with enable_gqa=True the heads of the query (axis -3) may be a multiple of those of "
            "key and value"
        ),
    ),
    "attention_groups": (
        lambda: attend(ones(5, 3, 8), ones(2, 5, 8), ones(2, 5, 8), enable_gqa=True),
        wg.ShapeError,
        (
            "scaled_dot_product_attention: enable_gqa=True with query (5, 3, 8), key (2, 5, 8), value (2, 5, "
            "8); expected an axis of heads (axis -3) everywhere, as many heads of key as of value, and a "
            "multiple of them of query"
        ),
    ),
    "attention_mask": (
        lambda: attend(ones(2, 3, 4), ones(2, 5, 4), ones(2, 5, 4), attn_mask=ones(3, 4)),
        wg.ShapeError,
        "scaled_dot_product_attention: attn_mask of shape (3, 4) does not broadcast to the scores, (2, 3, 5)",
    ),
    "attention_mask_dtype": (
        lambda: attend(ones(3, 4), ones(5, 4), ones(5, 4), attn_mask=ones(3, 5).long()),
        TypeError,
        (
            "scaled_dot_product_attention: attn_mask must be bool (True takes part) or floating point (added "
            "to the scores), got int64; convert with .bool()"
        ),
    ),
    "attention_mask_twice": (
        lambda: attend(ones(3, 4), ones(3, 4), ones(3, 4), attn_mask=ones(3, 3), is_causal=True),
        ValueError,
        "scaled_dot_product_attention: give attn_mask or is_causal, not both",
    ),
    "attention_dropout": (
        lambda: attend(ones(3, 4), ones(3, 4), ones(3, 4), dropout_p=1.5),
        ValueError,
        "scaled_dot_product_attention: dropout_p is a probability between 0 and 1, got 1.5",
    ),
    "attention_dtype": (
        lambda: attend(ones(3, 4).long(), ones(3, 4).long(), ones(3, 4).long()),
        TypeError,
        (
            "scaled_dot_product_attention: floating point operands expected, got int64, int64 and int64; "
            "convert with .float()"
        ),
    ),
}
