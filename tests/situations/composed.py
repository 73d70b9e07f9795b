"""Of the operations that are made of others: order statistics, scattering, windows, products."""

import wengert as wg
from messages import Situations

from situations.operands import i, ones

COMPOSED: Situations = {
    "recurrence_of_integers": (
        lambda: i(1, 2).linear_recurrence(i(1, 2)),
        TypeError,
        "linear_recurrence: floating point tensors expected, got int64 and int64; convert with .float() "
        "first",
    ),
    "recurrence_shapes": (
        lambda: ones(2).linear_recurrence(ones(3)),
        wg.ShapeError,
        "linear_recurrence: shapes (2,) and (3,) do not broadcast together",
    ),
    "kthvalue_range": (
        lambda: ones(3).kthvalue(4),
        ValueError,
        "kthvalue: k = 4 is out of range for axis -1 of length 3; k is between 1 and 3",
    ),
    "kthvalue_axis": (
        lambda: ones(3).kthvalue(1, 1),
        IndexError,
        "kthvalue: axis 1 is out of range for a tensor with 1 axes, expected -1..0",
    ),
    "median_of_nothing": (
        lambda: ones(2, 0).median(1),
        ValueError,
        "median: axis 1 of shape (2, 0) is empty and has no median",
    ),
    "quantile_probability": (
        lambda: ones(3).quantile(1.5),
        ValueError,
        "quantile: q = 1.5 is out of range; it is a probability between 0 and 1",
    ),
    "quantile_of_integers": (
        lambda: i(1, 2).quantile(0.5),
        TypeError,
        "quantile: a floating point tensor expected, got wengert.int64; convert with .float() first",
    ),
    "quantile_interpolation": (
        lambda: ones(3).quantile(0.5, interpolation="cubic"),
        ValueError,
        "quantile: interpolation must be one of linear, lower, higher, midpoint, nearest, got 'cubic'",
    ),
    "searchsorted_shapes": (
        lambda: wg.searchsorted(ones(2, 3), ones(3, 1)),
        wg.ShapeError,
        (
            "searchsorted: a sorted sequence of shape (2, 3) does not fit values of shape (3, 1); pass one "
            "axis, or the same shape but for the last axis"
        ),
    ),
    "searchsorted_side": (
        lambda: wg.searchsorted(ones(2), 1.0, side="middle"),
        ValueError,
        "searchsorted: side must be 'left' or 'right', got 'middle'",
    ),
    "bincount_of_negatives": (
        lambda: i(1, -2).bincount(),
        ValueError,
        "bincount: numbers from 0 expected, got -2",
    ),
    "bincount_of_floats": (
        lambda: ones(2).bincount(),
        TypeError,
        "bincount: integers expected, got wengert.float32; convert with .long() first",
    ),
    "histc_range": (
        lambda: ones(2).histc(3, 2, 1),
        ValueError,
        "histc: max = 1 is less than min = 2",
    ),
    "scatter_range": (
        lambda: ones(3).scatter(0, i(3), ones(1)),
        IndexError,
        "scatter: index 3 is out of range for an axis of length 3",
    ),
    "scatter_source": (
        lambda: ones(3).scatter(0, i(0, 1), ones(1)),
        wg.ShapeError,
        (
            "scatter: index of shape (2,) does not fit a source of shape (1,) and a tensor of shape (3,): as "
            "many axes, and no longer on any but axis 0 of the tensor"
        ),
    ),
    "scatter_without_source": (
        lambda: ones(3).scatter(0, i(0)),
        TypeError,
        "scatter: a source is missing; pass a tensor or a number",
    ),
    "scatter_index_of_floats": (
        lambda: ones(3).scatter(0, ones(1), ones(1)),
        TypeError,
        "scatter: indices must be integers, got float32; convert with .long() (or .int() on a GPU)",
    ),
    "scatter_reduction": (
        lambda: ones(3).scatter_reduce(0, i(0), ones(1), "max"),
        ValueError,
        "scatter_reduce: reduce must be one of sum, prod, mean, amax, amin, got 'max'",
    ),
    "index_add_source": (
        lambda: ones(3, 2).index_add(0, i(0, 1), ones(2, 3)),
        wg.ShapeError,
        (
            "index_add: index of shape (2,) and source of shape (2, 3) along axis 0 of a tensor of shape (3, "
            "2); expected a vector, and a source as long as it along that axis and as the tensor elsewhere"
        ),
    ),
    "index_copy_source": (
        lambda: ones(3, 2).index_copy(0, i(0, 1), ones(1, 2)),
        wg.ShapeError,
        (
            "index_copy: index of shape (2,) and source of shape (1, 2) for axis 0 of a tensor of shape (3, "
            "2); expected a vector and a source of shape (2, 2)"
        ),
    ),
    "repeats": (
        lambda: ones(3).repeat_interleave(i(1, 2), 0),
        ValueError,
        "repeat_interleave: repeats must be a number or a vector of 3 integers, got wengert.int64 of shape "
        "(2,)",
    ),
    "rot90_axes": (
        lambda: ones(2, 2).rot90(1, (0, 0)),
        ValueError,
        "rot90: two different axes expected, got (0, 0) for a tensor with 2 axes",
    ),
    "unfold_size": (
        lambda: ones(3).unfold(0, 4),
        ValueError,
        (
            "unfold: windows of 4 every 1 do not fit axis 0 of length 3; the size is at most the length, the "
            "step at least 1"
        ),
    ),
    "as_strided_range": (
        lambda: ones(4).as_strided((2, 2), (3, 1)),
        IndexError,
        "as_strided: shape (2, 2) with strides [3, 1] from 0 reaches outside of a tensor of 4 elements",
    ),
    "cross_length": (
        lambda: wg.cross(ones(2), ones(2)),
        wg.ShapeError,
        "cross: length 3 along axis -1 expected, got shapes (2,) and (2,)",
    ),
    "chain_shapes": (
        lambda: wg.chain_matmul(ones(2, 3), ones(2, 3)),
        wg.ShapeError,
        "chain_matmul: matrices 0 and 1 of shapes (2, 3) and (2, 3) do not multiply",
    ),
}
