"""Of linear algebra: shapes, dtypes, and matrices without what was asked for."""

import wengert as wg
from messages import Situations

from situations.operands import i, ones

L = wg.linalg

LINALG: Situations = {
    "inverse_of_a_vector": (
        lambda: L.inv(ones(3)),
        wg.ShapeError,
        "inv: a matrix, or a batch of them, expected, got shape (3,)",
    ),
    "determinant_of_a_rectangle": (
        lambda: L.det(ones(2, 3)),
        wg.ShapeError,
        "det: square matrices expected, got shape (2, 3)",
    ),
    "cholesky_of_halves": (
        lambda: L.cholesky(ones(2, 2, dtype=wg.float16)),
        TypeError,
        "cholesky: a float32, float64, complex64 or complex128 tensor expected, got float16; convert with "
        ".float()",
    ),
    "svd_of_integers": (
        lambda: L.svd(i(1, 2).reshape(1, 2)),
        TypeError,
        "svd: a float32, float64, complex64 or complex128 tensor expected, got int64; convert with .float()",
    ),
    "solve_shapes": (
        lambda: L.solve(ones(2, 2), ones(3, 1)),
        wg.ShapeError,
        (
            "solve: a matrix of shape (2, 2) does not fit right-hand sides of shape (3, 1): as many rows, "
            "and a batch that broadcasts, expected"
        ),
    ),
    "lstsq_shapes": (
        lambda: L.lstsq(ones(3, 2), ones(2)),
        wg.ShapeError,
        (
            "lstsq: a matrix of shape (3, 2) does not fit right-hand sides of shape (2,): as many rows "
            "expected"
        ),
    ),
    "inverse_of_a_singular_matrix": (
        lambda: L.inv(ones(2, 2)),
        wg.LinAlgError,
        (
            "inv: the matrix is singular: pivot 2 of its LU factorisation is zero; linalg.lstsq and "
            "linalg.pinv take it"
        ),
    ),
    "solve_in_a_batch": (
        lambda: L.solve(wg.stack([wg.eye(2), ones(2, 2)]), ones(2, 2, 1)),
        wg.LinAlgError,
        (
            "solve: matrix [1] of the batch is singular: pivot 2 of its LU factorisation is zero; "
            "linalg.lstsq and linalg.pinv take it"
        ),
    ),
    "cholesky_of_an_indefinite_matrix": (
        lambda: L.cholesky(wg.tensor([[1.0, 2.0], [2.0, 1.0]])),
        wg.LinAlgError,
        "cholesky: the matrix is not positive definite: its leading minor of order 2 is not positive",
    ),
    "eigenvalues_of_nan": (
        lambda: L.eigvalsh(ones(2, 2) * float("nan")),
        wg.LinAlgError,
        "eigvalsh: the matrix has elements that are not finite",
    ),
    "svd_of_infinity": (
        lambda: L.svdvals(ones(3, 1, 2) * float("inf")),
        wg.LinAlgError,
        "svdvals: matrix [0] of the batch has elements that are not finite",
    ),
    "qr_mode": (
        lambda: L.qr(ones(2, 2), "full"),
        ValueError,
        "qr: mode must be 'reduced', 'complete' or 'r', got 'full'",
    ),
    "eigh_triangle": (
        lambda: L.eigh(ones(2, 2), "M"),
        ValueError,
        "eigh: UPLO must be 'L' or 'U', got 'M'",
    ),
    "lu_without_pivots": (
        lambda: L.lu(ones(2, 2), pivot=False),
        ValueError,
        "lu: pivot must be True: without row exchanges the factors are not accurate",
    ),
    "matrix_norm_order": (
        lambda: L.matrix_norm(ones(2, 2), 3),
        ValueError,
        "matrix_norm: ord must be one of 'fro', 'nuc', inf, -inf, 1, -1, 2, -2, got 3",
    ),
    "norm_of_a_batch": (
        lambda: L.norm(ones(2, 2, 2), 2),
        wg.ShapeError,
        "norm: with ord and without dim a vector or a matrix is expected, got shape (2, 2, 2)",
    ),
    "matrix_power_of_a_fraction": (
        lambda: L.matrix_power(ones(2, 2), 0.5),
        TypeError,
        "matrix_power: n must be an integer, got float",
    ),
    "tensorinv_shape": (
        lambda: L.tensorinv(ones(2, 3, 4), 2),
        wg.ShapeError,
        "tensorinv: the first 2 axes of shape (2, 3, 4) and the others make no square matrix",
    ),
    "multi_dot_of_one": (
        lambda: L.multi_dot([ones(2, 2)]),
        ValueError,
        "multi_dot: at least two tensors expected, got 1",
    ),
}
