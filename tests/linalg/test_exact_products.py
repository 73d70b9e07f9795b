"""Lists of Python's numbers beside float64 tensors keep their digits in products, and where
they are added."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg

V, W = [0.1, 0.2, 0.3], [0.3, 0.7, 0.11]
A, B = [[0.1, 0.2], [0.3, 0.7]], [[0.6, 0.9], [1.1, 0.13]]
v, w, a, b = (np.array(x) for x in (V, W, A, B))
C = np.array([0.1 + 0.3j, 0.7 - 0.2j])


def double(x: Any) -> wg.Tensor:
    """A float64 or complex128 tensor."""
    return wg.tensor(np.array(x))


ZERO = wg.tensor([0])

#: Calls with lists beside one tensor of double precision, and NumPy's answers.
CALLS: dict[str, tuple[Callable[[], Any], Any]] = {
    "dot": (lambda: double(V).dot(W), v @ w),
    "dot of a list": (lambda: wg.dot(V, double(W)), v @ w),
    "dot by name": (lambda: wg.dot(V, other=double(W)), v @ w),
    "dot, complex": (lambda: double(C).dot([0.1 + 0.2j, 0.3]), C @ np.array([0.1 + 0.2j, 0.3])),
    "dot with a complex list": (lambda: wg.dot(double(V[:2]), C.tolist()), v[:2] @ C),
    "vdot": (lambda: wg.vdot(double(C), C.tolist()), np.vdot(C, C)),
    "inner": (lambda: wg.inner(V, double(W)), v @ w),
    "outer": (lambda: double(V).outer(W), np.outer(v, w)),
    "outer of a list": (lambda: wg.outer(V, double(W)), np.outer(v, w)),
    "ger": (lambda: wg.ger(double(V), W), np.outer(v, w)),
    "kron": (lambda: wg.kron(A, double(B)), np.kron(a, b)),
    "matmul": (lambda: double(A).matmul(B), a @ b),
    "matmul of a list": (lambda: wg.matmul(A, double(B)), a @ b),
    "mm": (lambda: wg.mm(double(A), B), a @ b),
    "mv": (lambda: wg.mv(double(A), V[:2]), a @ v[:2]),
    "mv of a list": (lambda: wg.mv(A, double(V[:2])), a @ v[:2]),
    "bmm": (lambda: double([A]).bmm([B]), [a @ b]),
    "addmm": (lambda: wg.addmm(double(A), A, B), a + a @ b),
    "addmm to a list": (lambda: wg.addmm(A, A, double(B)), a + a @ b),
    "addmv": (lambda: wg.addmv(double(V[:2]), A, W[:2]), v[:2] + a @ w[:2]),
    "addr": (lambda: wg.addr(double(A), V[:2], W[:2]), a + np.outer(v[:2], w[:2])),
    "baddbmm": (lambda: wg.baddbmm([A], double([A]), [B]), [a + a @ b]),
    "addbmm": (lambda: wg.addbmm(double(A), [A], [B]), a + a @ b),
    "tensordot": (lambda: wg.tensordot(A, double(B), 1), a @ b),
    "chain_matmul": (lambda: wg.chain_matmul(A, double(B), A), a @ b @ a),
    "multi_dot": (lambda: wg.linalg.multi_dot([A, B, double(A)]), a @ b @ a),
    "einsum": (lambda: wg.einsum("ij,jk", A, double(B)), a @ b),
    "cross": (lambda: double(V).cross(W), np.cross(v, w)),
    "cross of a list": (lambda: wg.cross(V, double(W)), np.cross(v, w)),
    "vecdot": (lambda: wg.linalg.vecdot(V, double(W)), v @ w),
    "mul": (lambda: wg.mul(V, double(W)), v * w),
    "add": (lambda: wg.add(V, double(W)), v + w),
    "pow": (lambda: wg.pow(V, double(W)), v**w),
    "atan2": (lambda: wg.atan2(V, double(W)), np.arctan2(v, w)),
    "maximum": (lambda: wg.maximum(V, double(W)), np.maximum(v, w)),
    "addcmul": (lambda: wg.addcmul(V, double(V), double(W)), v + v * w),
    "float_power": (lambda: wg.float_power(double(V), W), v**w),
    "float_power of a float32": (lambda: wg.float_power(wg.tensor([0.25]), W), 0.25**w),
    "beside a number": (lambda: wg.float_power(double(0.1), W), 0.1**w),
    "index_add": (lambda: double(V).index_add(0, ZERO, [0.7]), [0.1 + 0.7, 0.2, 0.3]),
    "index_add_": (lambda: double(V).index_add_(0, ZERO, [0.7]), [0.1 + 0.7, 0.2, 0.3]),
    "scatter_add": (lambda: double(V).scatter_add(0, ZERO, [0.7]), [0.1 + 0.7, 0.2, 0.3]),
    "scatter_add_": (lambda: double(V).scatter_add_(0, ZERO, [0.7]), [0.1 + 0.7, 0.2, 0.3]),
}


@pytest.mark.parametrize("name", CALLS)
def test_lists_beside_double_precision(name: str) -> None:
    call, expected = CALLS[name]
    got, expected = call().numpy(), np.asarray(expected)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=0)


def test_lists_alone_and_beside_float32_are_float32() -> None:
    assert wg.matmul(A, B).dtype == wg.dot(V, wg.tensor(W)).dtype == wg.float32
    assert wg.mm(wg.tensor(A), B).dtype == wg.float32
    assert wg.tensor(V, dtype=wg.float16).dot(wg.tensor(W, dtype=wg.float16)).dtype == wg.float16


def test_what_is_no_list_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="str cannot become a tensor"):
        double(V).dot("abc")
    with pytest.raises(
        wg.ShapeError, match=r"mv: operands with 2 and 1 axes expected, got shapes \(2, 2\) and \(2, 2\)"
    ):
        double(A).mv(B)
