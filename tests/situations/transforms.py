"""Of grad, jvp, vmap and Jacobians."""

import wengert as wg
from messages import Situations

from situations.operands import i, ones


def escaped() -> None:
    kept = []
    wg.jvp(lambda x: (kept.append(x), x)[1], (ones(2),), (ones(2),))
    kept[0] + 1


def mismatched_batch() -> None:
    wg.vmap(lambda x, y: x + y)(ones(2, 3), ones(4, 3))


TRANSFORMS: Situations = {
    "argnums_of_a_string": (
        lambda: wg.grad(lambda x: x.sum(), argnums="a")(ones(2)),
        TypeError,
        "grad: argnums is an integer, the position of an argument, or a sequence of them, got 'a'",
    ),
    "argnums_of_floats": (
        lambda: wg.jacfwd(lambda x: x.sum(), argnums=1.5)(ones(2)),
        TypeError,
        "jacfwd: argnums is an integer, the position of an argument, or a sequence of them, got 1.5",
    ),
    "argnums_far_away": (
        lambda: wg.grad(lambda x: x.sum(), argnums=10**30)(ones(2)),
        ValueError,
        f"grad: argnums names argument {10**30}, but 1 positional arguments were given; what is "
        "differentiated is given by position",
    ),
    "complex_cotangent": (
        lambda: wg.vjp(lambda x: x * x, ones(2))[1](ones(2) * 1j),
        TypeError,
        "vjp: a cotangent of wengert.complex64 given for an output of wengert.float32 and shape (2,); the "
        "cotangent of a real output is real: pass its .real or .imag",
    ),
    "autocast_for_nothing": (
        lambda: wg.autocast("xx"),
        ValueError,
        "autocast: 'xx' is not a device; expected 'cpu' or 'gpu', or nothing at all",
    ),
    "autocast_for_a_dtype": (
        lambda: wg.autocast(wg.bfloat16),
        TypeError,
        "autocast: device_type is a string, got dtype; pass the precision as dtype=",
    ),
    "escaped_tangent": (
        escaped,
        RuntimeError,
        (
            "add: an operand of shape (2,) was made inside a jvp that has ended or runs on another thread; "
            "return it from the transformed function instead of keeping it elsewhere"
        ),
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
        (
            "vmap: batch sizes differ: argument 0 of shape (2, 3), axis 0: 2; argument 1 of shape (4, 3), "
            "axis 0: 4"
        ),
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
            "vmap or jvp; move bool out of the transformed function, or use where(), cond() or "
            "while_loop() instead of a branch"
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
    "argnums_twice": (
        lambda: wg.grad(lambda x: x.sum(), argnums=(0, 0))(ones(2)),
        ValueError,
        "grad: argnums names an argument twice: (0, 0)",
    ),
    "vmap_mask": (
        lambda: wg.vmap(lambda x: x[x > 0])(ones(2, 2)),
        TypeError,
        (
            "vmap: the function's result is Selection, expected a tensor or a tree of tensors; inside vmap a "
            "mask "
            "selects as many elements as each example has, so there is no shape: reduce them, for example "
            "with .sum(), or use where() on all elements"
        ),
    ),
    "vmap_mask_of_an_axis": (
        lambda: wg.vmap(lambda x: x[..., x > 0])(ones(2, 2)),
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
