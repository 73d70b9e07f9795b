"""What must raise, and in which words: what happened, what was given, what was expected, what to do."""

from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert.nn import functional as F
from wengert.utils.checkpoint import checkpoint

ones = wg.ones


def leaf(*shape: int) -> wg.Tensor:
    """A leaf that requires a gradient."""
    return wg.ones(*shape, requires_grad=True)


def used_graph() -> None:
    y = leaf(2).tanh().sum()
    y.backward()
    y.backward()


def used_graph_of_additions() -> None:
    y = (leaf(2) + 1).sum()
    y.backward()
    y.backward()


def saved_then_written() -> None:
    x = leaf(2)
    y = x.exp()
    z = y.tanh().sum()
    w = y.detach()
    w.mul_(2)
    (z + y.sum()).backward()


def written_leaf() -> None:
    x = leaf(2)
    x += 1


def written_view_of_leaf() -> None:
    leaf(2)[0].zero_()


def checkpoint_that_changes() -> None:
    runs = []

    def f(x: wg.Tensor) -> wg.Tensor:
        runs.append(1)
        return x.tanh() if len(runs) == 1 else x.exp()

    checkpoint(f, leaf(2), use_reentrant=False).sum().backward()


def hook_of_another_shape() -> None:
    x = leaf(2)
    y = x * 1
    y.register_hook(lambda g: g[:1])
    y.sum().backward()


def grad_of_unused() -> None:
    x, z = leaf(2), leaf(3)
    wg.autograd.grad((x * 2).sum(), [z])


def escaped() -> None:
    kept = []
    wg.jvp(lambda x: (kept.append(x), x)[1], (ones(2),), (ones(2),))
    kept[0] + 1


def mismatched_batch() -> None:
    wg.vmap(lambda x, y: x + y)(ones(2, 3), ones(4, 3))


def i(*values: int) -> wg.Tensor:
    """Indices."""
    return wg.tensor(list(values), dtype=wg.int64)


# What goes wrong, the class of the exception, the whole message.
SITUATIONS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "backward_twice": (
        used_graph,
        RuntimeError,
        (
            "backward: the graph was already used and freed (reached again at sum); pass "
            "retain_graph=True to the first backward, run the forward again, or detach() state that "
            "is carried from one step to the next"
        ),
    ),
    "backward_twice_nothing_saved": (
        used_graph_of_additions,
        RuntimeError,
        (
            "backward: the graph was already used and freed (reached again at sum); pass "
            "retain_graph=True to the first backward, run the forward again, or detach() state that "
            "is carried from one step to the next"
        ),
    ),
    "saved_value_modified": (
        saved_then_written,
        RuntimeError,
        (
            "backward of exp: its saved output 0 of shape (2,) was modified in place (version 1, "
            "expected 0); write x = x + ... instead of an in-place operation, or modify a clone()"
        ),
    ),
    "in_place_on_leaf": (
        written_leaf,
        RuntimeError,
        (
            "add_: a leaf of shape (2,) that requires a gradient cannot be written in place while "
            "recording; do it under no_grad(), or write x = x.add(...)"
        ),
    ),
    "in_place_on_view_of_leaf": (
        written_view_of_leaf,
        RuntimeError,
        (
            "zero_: this tensor is a view, and writing it in place would leave its base without the "
            "gradient; write base[...] = value on the base, or clone() the view first"
        ),
    ),
    "backward_of_vector": (
        lambda: (leaf(3) * 2).backward(),
        RuntimeError,
        (
            "backward: a tensor of shape (3,) has no single gradient; reduce it first, as in "
            "y.sum().backward(), or pass gradient= of the same shape"
        ),
    ),
    "backward_gradient_shape": (
        lambda: (leaf(3) * 2).backward(ones(2)),
        RuntimeError,
        "backward: gradient= has shape (2,), expected (3,) as the tensor it belongs to",
    ),
    "backward_without_graph": (
        lambda: ones(1).backward(),
        RuntimeError,
        (
            "backward: the float32 tensor of shape (1,) has no graph: no input of its computation "
            "requires a gradient, it was computed under no_grad(), or it was detached; call "
            "requires_grad_() on an input before computing it"
        ),
    ),
    "requires_grad_of_integers": (
        lambda: wg.tensor([1], requires_grad=True),
        RuntimeError,
        "only floating point tensors have gradients, got int64; convert with .float() first",
    ),
    "requires_grad_of_integers_later": (
        lambda: wg.tensor([True]).requires_grad_(),
        RuntimeError,
        "only floating point tensors have gradients, got bool; convert with .float() first",
    ),
    "requires_grad_off_on_non_leaf": (
        lambda: (leaf(2) * 2).requires_grad_(False),
        RuntimeError,
        (
            "requires_grad can be turned off for leaves only; call detach() to cut off the result of "
            "an operation"
        ),
    ),
    "numpy_of_recorded": (
        lambda: leaf(2).numpy(),
        RuntimeError,
        (
            "numpy of a tensor that requires a gradient would leave the tape; call detach() first, as "
            "in x.detach().numpy()"
        ),
    ),
    "grad_of_unused_input": (
        grad_of_unused,
        RuntimeError,
        (
            "grad: no output depends on input 0 of shape (3,); pass allow_unused=True for None in its "
            "place, or materialize_grads=True for zeros"
        ),
    ),
    "grad_of_constant_input": (
        lambda: wg.autograd.grad(leaf(1) * 2, [ones(1)]),
        RuntimeError,
        "grad: input 0 does not require a gradient; call requires_grad_() on it first",
    ),
    "checkpoint_changed": (
        checkpoint_that_changes,
        wg.CheckpointError,
        (
            "checkpoint: the recomputation saved float32(2,) for exp where the forward saved "
            "float32(2,) for tanh; the function must do the same both times (no branches on changing "
            "state, no changed inputs)"
        ),
    ),
    "hook_shape": (
        hook_of_another_shape,
        RuntimeError,
        "a gradient hook returned shape (1,), expected (2,) as it was given",
    ),
    "hook_on_constant": (
        lambda: ones(2).register_hook(print),
        RuntimeError,
        (
            "register_hook: the float32 tensor of shape (2,) does not require a gradient; call "
            "requires_grad_() before using it"
        ),
    ),
    "escaped_tangent": (
        escaped,
        RuntimeError,
        (
            "add: an operand of shape (2,) was made inside a jvp that has ended; return it from the "
            "transformed function instead of keeping it elsewhere"
        ),
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
        ("gather: indices must be int32 or int64, got float32; convert with .long() (or .int() on a GPU)"),
    ),
    "scatter_shape": (
        lambda: ones(3).scatter_add(0, i(0, 1), ones(1)),
        wg.ShapeError,
        "scatter_add: index of shape (2,) does not fit source (1,) and tensor (3,)",
    ),
    "embedding_range": (
        lambda: F.embedding(i(4), ones(4, 2)),
        IndexError,
        "index 4 is out of range for an axis of length 4",
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
        lambda: F.cross_entropy(ones(2, 3), wg.tensor([0, 1], dtype=wg.uint8)),
        TypeError,
        "cross_entropy: class indices must be int64 or int32, got uint8; convert with .long()",
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
        "reduction must be 'mean', 'sum' or 'none', got 'avg'",
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
            "'float12' is not a dtype of wengert; expected one of bool, uint8, int32, int64, float16, "
            "bfloat16, float32, float64"
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
    "grad_of_vector": (
        lambda: wg.grad(lambda x: x * 2)(ones(3)),
        TypeError,
        (
            "grad: <lambda> returned a tensor of shape (3,), expected a scalar of shape (); reduce "
            "it, for example with .sum(), or use jacrev for all derivatives, vmap(grad(f)) for one "
            "per example"
        ),
    ),
    "grad_of_integers": (
        lambda: wg.grad(lambda x: x.sum())(i(1, 2)),
        TypeError,
        (
            "grad: only floating point inputs have derivatives, got wengert.int64 of shape (2,); "
            "convert it with .float(), or leave it out of argnums"
        ),
    ),
    "grad_of_text": (
        lambda: wg.grad(lambda x: "3")(ones(2)),
        TypeError,
        "grad: the function's result is str, expected a tensor or a tree of tensors",
    ),
    "jvp_tangent_shape": (
        lambda: wg.jvp(lambda x: x, (ones(3),), (ones(2),)),
        wg.ShapeError,
        "jvp: a tangent is float32(2,), expected float32(3,) as its primal",
    ),
    "vmap_sizes": (
        mismatched_batch,
        ValueError,
        ("vmap: batch sizes differ: leaf 0 of shape (2, 3), axis 0: 2; leaf 1 of shape (4, 3), axis 0: 4"),
    ),
    "vmap_item": (
        lambda: wg.vmap(lambda x: x.item())(ones(3)),
        TypeError,
        (
            "item: the value of this tensor depends on the batch element or tangent of an enclosing "
            "vmap or jvp; move item out of the transformed function, or use where() instead of a "
            "branch"
        ),
    ),
    "vmap_branch": (
        lambda: wg.vmap(lambda x: x if x > 0 else -x)(ones(3)),
        TypeError,
        (
            "bool: the value of this tensor depends on the batch element or tangent of an enclosing "
            "vmap or jvp; move bool out of the transformed function, or use where() instead of a "
            "branch"
        ),
    ),
    "vmap_numpy": (
        lambda: wg.vmap(lambda x: x.numpy())(ones(3)),
        TypeError,
        (
            "numpy: the value of this tensor depends on the batch element or tangent of an enclosing "
            "vmap or jvp; move numpy out of the transformed function, or use where() instead of a "
            "branch"
        ),
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
    "bits_of_integers": (
        lambda: i(1) & i(3),
        TypeError,
        (
            "the operators &, |, ^ and ~ combine bool tensors, got int64; compare first, or use "
            "logical_and and its kin"
        ),
    ),
    "inverse_of_floats": (
        lambda: ~ones(2),
        TypeError,
        (
            "the operators &, |, ^ and ~ combine bool tensors, got float32; compare first, or use "
            "logical_and and its kin"
        ),
    ),
    "argnums_twice": (
        lambda: wg.grad(lambda x: x.sum(), argnums=(0, 0))(ones(2)),
        ValueError,
        "grad: argnums names an argument twice: (0, 0)",
    ),
    "class_of_one_hot": (
        lambda: F.one_hot(i(3), 2),
        IndexError,
        "one_hot: class 3 is out of range for 2 classes",
    ),
    "zero_step": (
        lambda: ones(3)[::0],
        ValueError,
        "slice step cannot be zero",
    ),
    "in_place_dtype": (
        lambda: i(1, 2).add_(0.5),
        TypeError,
        ("add_: the result is float32 and cannot be stored in a int64 tensor; write x = x.add(...)"),
    ),
    "in_place_shape": (
        lambda: ones(2).add_(ones(3, 2)),
        wg.ShapeError,
        "add_: the result has shape (3, 2) and does not fit into the tensor of shape (2,)",
    ),
    "in_place_on_repeated_memory": (
        lambda: ones(3).expand(2, 3).add_(1),
        RuntimeError,
        "add_: elements of this expanded tensor of shape (2, 3) share memory; clone() it first",
    ),
    "vmap_mask": (
        lambda: wg.vmap(lambda x: x[x > 0])(ones(2, 2)),
        TypeError,
        (
            "indexing with a mask, whose result has a size that depends on the data; use where() "
            "instead: nonzero: the value of this tensor depends on the batch element or tangent of "
            "an enclosing vmap or jvp; move nonzero out of the transformed function, or use "
            "where() instead of a branch"
        ),
    ),
    "axes_of_a_jacobian": (
        lambda: wg.jacrev(lambda x: x * x)(ones(1, 1, 1, 1, 1)),
        wg.ShapeError,
        (
            "a tensor has at most 8 axes, got 10 (shape [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]); merge "
            "axes with reshape"
        ),
    ),
}
