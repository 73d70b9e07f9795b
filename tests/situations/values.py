"""Of arguments and dtypes: layers, losses, random numbers, conversions."""

import wengert as wg
from messages import Situations
from wengert.nn import functional as F

from situations.operands import i, ones

VALUES: Situations = {
    "a_list_as_a_factor": (
        lambda: ones(3) * [1, 2, 3],
        TypeError,
        "a float32 tensor of shape (3,) cannot be multiplied by a list; make a tensor of it with "
        "wengert.tensor()",
    ),
    "a_factor_of_a_list": (
        lambda: (1, 2, 3) * ones(3),
        TypeError,
        "a float32 tensor of shape (3,) cannot be multiplied by a tuple; make a tensor of it with "
        "wengert.tensor()",
    ),
    "truth_of_many": (
        lambda: bool(ones(2)),
        RuntimeError,
        "the truth value of a tensor of shape (2,) is ambiguous; use any() or all()",
    ),
    "item_of_many": (
        lambda: ones(2, 2).item(),
        ValueError,
        "item: a tensor with one element expected, got shape (2, 2); use tolist() or index it",
    ),
    "layer_norm_shape": (
        lambda: F.layer_norm(ones(2, 3), (4,)),
        wg.ShapeError,
        "layer_norm: a tensor of shape (2, 3) does not end in the normalised shape (4,)",
    ),
    "layer_norm_weight": (
        lambda: F.layer_norm(ones(2, 3), (3,), ones(2)),
        wg.ShapeError,
        "layer_norm: weight has shape (2,), expected (3,)",
    ),
    "rms_norm_shape": (
        lambda: F.rms_norm(ones(2, 3), (4,)),
        wg.ShapeError,
        "rms_norm: a tensor of shape (2, 3) does not end in the normalised shape (4,)",
    ),
    "rms_norm_weight": (
        lambda: F.rms_norm(ones(2, 3), (3,), ones(2)),
        wg.ShapeError,
        "rms_norm: weight has shape (2,), expected (3,)",
    ),
    "class_out_of_range": (
        lambda: F.cross_entropy(ones(2, 3), i(0, 3)),
        IndexError,
        (
            "cross_entropy: target 3 in row 1 is out of range for 3 classes, expected 0..2 (or -100, "
            "which is ignored)"
        ),
    ),
    "class_negative": (
        lambda: F.cross_entropy(ones(2, 3), i(0, -1)),
        IndexError,
        (
            "cross_entropy: target -1 in row 1 is out of range for 3 classes, expected 0..2 (or -100, "
            "which is ignored)"
        ),
    ),
    "class_dtype": (
        lambda: F.cross_entropy(ones(2, 3), wg.tensor([False, True])),
        TypeError,
        "cross_entropy: class indices must be integers, got bool; convert with .long()",
    ),
    "class_shape": (
        lambda: F.cross_entropy(ones(2, 3), i(0, 1, 2)),
        wg.ShapeError,
        "cross_entropy: class indices have shape (3,), expected (2,) for logits of shape (2, 3)",
    ),
    "class_probabilities_shape": (
        lambda: F.cross_entropy(ones(2, 3), ones(2, 4)),
        wg.ShapeError,
        (
            "cross_entropy: class probabilities have shape (2, 4), expected (2, 3) as the logits; "
            "class indices must be integers"
        ),
    ),
    "loss_reduction": (
        lambda: F.cross_entropy(ones(2, 3), i(0, 1), reduction="avg"),
        ValueError,
        "cross_entropy: reduction must be 'mean', 'sum' or 'none', got 'avg'",
    ),
    "bce_shape": (
        lambda: F.binary_cross_entropy_with_logits(ones(2), ones(3)),
        wg.ShapeError,
        "binary_cross_entropy_with_logits: target has shape (3,), expected (2,) as the logits",
    ),
    "clamp_without_bounds": (
        lambda: ones(2).clamp(),
        ValueError,
        "clamp: give min, max or both",
    ),
    "subtract_masks": (
        lambda: wg.tensor([True]) - wg.tensor([False]),
        TypeError,
        "sub: not defined for bool tensors; use logical_xor, or ~ to negate a mask",
    ),
    "negate_mask": (
        lambda: -wg.tensor([True]),
        TypeError,
        "neg: not defined for bool tensors; use ~ or logical_not",
    ),
    "dropout_probability": (
        lambda: F.dropout(ones(2), 1.5),
        ValueError,
        "dropout: p is a probability between 0 and 1, got 1.5",
    ),
    "rand_dtype": (
        lambda: wg.rand(2, dtype=wg.int64),
        TypeError,
        "rand: a floating point dtype expected, got int64; use randint for integers",
    ),
    "randint_bounds": (
        lambda: wg.randint(5, 5, (2,)),
        ValueError,
        "randint: low must be below high, got 5 and 5",
    ),
    "arange_step": (
        lambda: wg.arange(0, 1, 0),
        ValueError,
        "arange: finite bounds and a non-zero step expected, got start=0, stop=1, step=0",
    ),
    "devices": (
        lambda: ones(2).to("toaster"),
        ValueError,
        "'toaster' is not a device; expected 'cpu', 'gpu' or 'gpu:0', 'gpu:1', ...",
    ),
    "unknown_dtype": (
        lambda: ones(2, dtype="float12"),
        TypeError,
        (
            "'float12' is not a dtype of wengert; expected one of bool, uint8, int8, uint16, int16, uint32, "
            "int32, uint64, int64, float16, bfloat16, float32, float64, complex64, complex128"
        ),
    ),
    "operand_type": (
        lambda: ones(2) + "a",
        TypeError,
        "unsupported operand type(s) for +: 'wengert.Tensor' and 'str'",
    ),
    "ragged_list": (
        lambda: wg.tensor([[1, 2], [3]]),
        ValueError,
        "nested lists of unequal length: 1 elements in axis 1, expected 2",
    ),
    "randint_range": (
        lambda: wg.randint(0, 300, (2,), dtype=wg.uint8),
        ValueError,
        "randint: numbers from 0 to 299 do not fit into uint8, which holds 0 to 255",
    ),
    "bernoulli_probability": (
        lambda: wg.bernoulli(wg.tensor([0.5, 2.0])),
        ValueError,
        "bernoulli: probabilities between 0 and 1 expected, got 2",
    ),
    "std_of_integers": (
        lambda: i(1, 2).std(),
        TypeError,
        "std: a floating point tensor expected, got int64; convert with .float() first",
    ),
    "bits_of_floats": (
        lambda: i(1) & ones(1),
        TypeError,
        "bitwise_and: bools or integers expected, got float32; compare first, or use logical_and and its kin",
    ),
    "inverse_of_floats": (
        lambda: ~ones(2),
        TypeError,
        "bitwise_not: bools or integers expected, got float32; compare first, or use logical_and and its kin",
    ),
    "shift_of_bools": (
        lambda: wg.tensor([True]) << True,
        TypeError,
        "bitwise_left_shift: integers expected, got bool; convert with .to() to an integer dtype",
    ),
    "order_of_polygamma": (
        lambda: wg.polygamma(21, ones(1)),
        ValueError,
        "polygamma: an order from 0 to 20 expected, got 21",
    ),
    "fmod_of_integers_by_zero": (
        lambda: wg.fmod(i(1), i(0)),
        ZeroDivisionError,
        (
            "fmod: int64 cannot be divided by zero; mask the divisor with where(), or convert with .float() "
            "for inf and nan"
        ),
    ),
    "class_of_one_hot": (
        lambda: F.one_hot(i(3), 2),
        IndexError,
        "one_hot: class 3 is out of range for 2 classes",
    ),
    "negative_count": (
        lambda: wg.eye(-1),
        ValueError,
        "eye: n cannot be negative, got -1",
    ),
    "negative_columns": (
        lambda: wg.eye(2, -3),
        ValueError,
        "eye: m cannot be negative, got -3",
    ),
    "negative_permutation": (
        lambda: wg.randperm(-1),
        ValueError,
        "randperm: n cannot be negative, got -1",
    ),
    "negative_steps": (
        lambda: wg.linspace(0, 1, -1),
        ValueError,
        "linspace: steps cannot be negative, got -1",
    ),
    "no_threads": (
        lambda: wg.set_num_threads(-1),
        ValueError,
        "set_num_threads: at least one thread expected, got -1",
    ),
    "large_seed": (
        lambda: wg.manual_seed(2**64),
        ValueError,
        "manual_seed: a seed from -2^63 to 2^64 - 1 expected, got 18446744073709551616; take it modulo 2**64",
    ),
    "seed_type": (
        lambda: wg.manual_seed("7"),
        TypeError,
        "manual_seed: an integer expected, got str",
    ),
    "integer_division_by_zero": (
        lambda: i(1, 2) // i(1, 0),
        ZeroDivisionError,
        (
            "floor_divide: int64 cannot be divided by zero; mask the divisor with where(), or convert "
            "with .float() for inf and nan"
        ),
    ),
    "integer_remainder_by_zero": (
        lambda: i(1, 2).remainder(0),
        ZeroDivisionError,
        (
            "remainder: int64 cannot be divided by zero; mask the divisor with where(), or convert "
            "with .float() for inf and nan"
        ),
    ),
    "einsum_of_text": (
        lambda: wg.einsum("i,i", ones(2), "a"),
        TypeError,
        "einsum: tensors, arrays or numbers expected, got str",
    ),
    "einsum_without_equation": (
        lambda: wg.einsum(ones(2), ones(2)),
        TypeError,
        "einsum: an equation such as 'ij,jk->ik' expected first, got Tensor",
    ),
    "meshgrid_of_text": (
        lambda: wg.meshgrid("a", ones(2)),
        TypeError,
        "meshgrid: tensors, arrays or numbers expected, got str",
    ),
    "tensordot_of_none": (
        lambda: wg.tensordot(None, ones(2), 1),
        TypeError,
        "tensordot: tensors, arrays or numbers expected, got NoneType",
    ),
    "vstack_of_number": (
        lambda: wg.vstack(3),
        TypeError,
        "vstack: a sequence of tensors expected, got int",
    ),
    "vstack_of_text": (
        lambda: wg.vstack([ones(2), "a"]),
        TypeError,
        "vstack: tensors, arrays or numbers expected, got str",
    ),
    "bernoulli_of_text": (
        lambda: wg.bernoulli("a"),
        TypeError,
        "bernoulli: tensors, arrays or numbers expected, got str",
    ),
    "exp_of_text": (
        lambda: wg.exp("a"),
        TypeError,
        "exp: tensors, arrays or numbers expected, got str",
    ),
    "softmax_of_list": (
        lambda: F.softmax([1.0, 2.0], 0),
        TypeError,
        "softmax: input must be a tensor, got list; convert it with wengert.tensor()",
    ),
    "linear_weight": (
        lambda: F.linear(ones(2), [[1.0, 2.0]]),
        TypeError,
        "linear: weight must be a tensor, got list; convert it with wengert.tensor()",
    ),
    "mse_of_number": (
        lambda: F.mse_loss(ones(2), 0.5),
        TypeError,
        "mse_loss: target must be a tensor, got float; convert it with wengert.tensor()",
    ),
    "layer_norm_of_number": (
        lambda: F.layer_norm(ones(2), (2,), 3.0),
        TypeError,
        "layer_norm: weight must be a tensor, got float; convert it with wengert.tensor()",
    ),
    "product_of_bools": (
        lambda: ones(2, 2, dtype=wg.bool) @ ones(2, 2, dtype=wg.bool),
        TypeError,
        "matmul: numbers expected, got two bool tensors; convert one with .int() to count, and compare the "
        "counts with > 0 for a logical product",
    ),
    "sum_along_a_truth_value": (
        lambda: ones(2).sum(True),
        TypeError,
        "an integer expected for an axis or a length, got True; pass a bool by the name of its parameter",
    ),
    "cumsum_along_a_truth_value": (
        lambda: ones(2).cumsum(False),
        TypeError,
        "an integer expected for an axis or a length, got False; pass a bool by the name of its parameter",
    ),
    "std_along_a_truth_value": (
        lambda: ones(2).std(False, True),
        TypeError,
        "an integer expected for an axis or a length, got False; pass a bool by the name of its parameter",
    ),
    "reshape_to_truth_values": (
        lambda: ones(2).reshape(True, 2),
        TypeError,
        "an integer expected for an axis or a length, got True; pass a bool by the name of its parameter",
    ),
}
