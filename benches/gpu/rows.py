"""The kernels that are measured: their inputs, their work, a small instance with its reference, gate and
goal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RNG = np.random.default_rng(0)
Arrays = list[np.ndarray]
#: Makes of a library and tensors what a call takes.
Before = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class Sizes:
    """How large the inputs are."""

    small: bool
    #: Bytes of a tensor whose speed is that of memory.
    bytes: int
    #: Side of a large square matrix.
    side: int
    #: Sequence length of attention.
    length: int

    @classmethod
    def of(cls, small: bool) -> "Sizes":
        """Those for a software adapter, or for a card."""
        return cls(True, 4 << 20, 256, 128) if small else cls(False, 256 << 20, 4096, 4096)

    def rows(self, columns: int) -> int:
        """Rows of `columns` float32 numbers that make up a tensor."""
        return max(1, self.bytes // 4 // columns)


@dataclass(frozen=True)
class Row:
    """One kernel."""

    name: str
    #: Inputs for these sizes, and the bytes moved or FLOP done.
    inputs: Callable[[Sizes], tuple[Arrays, float]]
    #: The call, in wengert or in a library with its names.
    call: Callable[..., Any]
    #: A small instance in float64 or integers, and the result that NumPy finds.
    check: Callable[[], tuple[Arrays, Any]]
    unit: str = "bytes"
    gate: str = ""
    goal: str = ""
    #: What runs once, unmeasured, and returns the arguments of the call; the tensors themselves where None.
    before: Before | None = None
    #: The dtype of the inputs that are floats.
    dtype: str = "float32"

    def given(self, arrays: Arrays) -> Arrays:
        """Inputs in the dtype of the row; NumPy has no bfloat16."""
        dtype = np.dtype("float32" if self.dtype == "bfloat16" else self.dtype)
        return [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]

    def ready(self, m: Any, tensors: list[Any]) -> Callable[[], Any]:
        """The call with its arguments."""
        if self.dtype == "bfloat16":
            tensors = [x.to(m.bfloat16) if x.is_floating_point() else x for x in tensors]
        arguments = tensors if self.before is None else self.before(m, *tensors)
        return lambda: self.call(m, *arguments)


def normal(*shape: int) -> np.ndarray:
    """Standard normal float32 numbers, the same few thousand again and again."""
    some = RNG.standard_normal(min(int(np.prod(shape)), 1 << 16)).astype(np.float32)
    return np.resize(some, shape)


def exact(*shape: int) -> np.ndarray:
    """Numbers of float32 as float64, for references."""
    return RNG.standard_normal(shape).astype(np.float32).astype(np.float64)


def product(m: int, n: int, k: int, form: str) -> Callable[[Sizes], tuple[Arrays, float]]:
    """Operands of a product; lengths are in sides of the large square (0: literally below)."""

    def make(sizes: Sizes) -> tuple[Arrays, float]:
        rows, columns, depth = (sizes.side // d for d in (m, n, k))
        left = (depth, rows) if form[0] == "T" else (rows, depth)
        right = (columns, depth) if form[1] == "T" else (depth, columns)
        return [normal(*left), normal(*right)], 2.0 * rows * columns * depth

    return make


def product_check(form: str) -> Callable[[], tuple[Arrays, Any]]:
    """A product of matrices whose sides are no multiples of a tile."""

    def make() -> tuple[Arrays, Any]:
        a, b = exact(67, 45), exact(45, 83)
        given = [a.T.copy() if form[0] == "T" else a, b.T.copy() if form[1] == "T" else b]
        return given, a @ b

    return make


def matrix(
    columns: int, moved: float, *more: Callable[[int], np.ndarray]
) -> Callable[[Sizes], tuple[Arrays, float]]:
    """A matrix of this many columns, vectors of as many, and `moved` bytes per element."""

    def make(sizes: Sizes) -> tuple[Arrays, float]:
        rows = sizes.rows(columns)
        return [normal(rows, columns), *(f(columns) for f in more)], moved * rows * columns

    return make


def softmax(x: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalised(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Layer normalisation along the last axis."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


def of_unit_square(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """RMS normalisation along the last axis."""
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w


def heads(sizes: Sizes) -> tuple[Arrays, float]:
    """Queries, keys and values of 16 heads of width 64."""
    shape = (1, 16 if not sizes.small else 2, sizes.length, 64)
    return [normal(*shape) for _ in range(3)], 4.0 * shape[1] * sizes.length**2 * 64


def attention_check() -> tuple[Arrays, Any]:
    """A short one."""
    q, k, v = (exact(1, 2, 33, 64) for _ in range(3))
    return [q, k, v], softmax(q @ k.swapaxes(-1, -2) / 8.0) @ v


def batches(sizes: Sizes) -> tuple[Arrays, float]:
    """Many small matrices."""
    count = 4096 if not sizes.small else 16
    return [normal(count, 64, 64), normal(count, 64, 64)], 2.0 * count * 64**3


def batches_check() -> tuple[Arrays, Any]:
    """Three of them."""
    a, b = exact(3, 64, 64), exact(3, 64, 64)
    return [a, b], a @ b


def thin(sizes: Sizes) -> tuple[Arrays, float]:
    """A large matrix by a vector: the bytes of the matrix."""
    columns = 4096 if not sizes.small else 512
    rows = sizes.rows(columns)
    return [normal(rows, columns), normal(columns)], 4.0 * rows * columns


def thin_check() -> tuple[Arrays, Any]:
    """A small one."""
    a, b = exact(65, 130), exact(130)
    return [a, b], a @ b


def pairs(sizes: Sizes) -> tuple[Arrays, float]:
    """Two tensors that are read, and one that is written."""
    count = sizes.bytes // 4
    return [normal(count), normal(count)], 12.0 * count


def pairs_check() -> tuple[Arrays, Any]:
    """Two vectors."""
    a, b = exact(1000), exact(1000)
    return [a, b], a + b


def table_rows(sizes: Sizes) -> tuple[Arrays, float]:
    """A table of rows of 256 numbers and as many indices."""
    rows = sizes.rows(256)
    return [normal(rows, 256), RNG.integers(0, rows, rows).astype(np.int32)], 8.0 * rows * 256


def table_check() -> tuple[Arrays, Any]:
    """More indices than rows."""
    x, i = exact(50, 256), RNG.integers(0, 50, 70).astype(np.int32)
    return [x, i], x[i]


def few(sizes: Sizes) -> tuple[Arrays, float]:
    """Sixteen rows by a large matrix: the bytes of the matrix."""
    (a, _), moved = thin(sizes)
    return [normal(16, a.shape[0]), a], moved


def few_check() -> tuple[Arrays, Any]:
    """A small one."""
    a, b = exact(16, 65), exact(65, 130)
    return [a, b], a @ b


def by_heads(sizes: Sizes) -> tuple[Arrays, float]:
    """Positions, heads of width 64: read and written."""
    rows = sizes.rows(1024)
    return [normal(1, rows, 16, 64)], 8.0 * rows * 1024


def by_heads_check() -> tuple[Arrays, Any]:
    """Two short sequences."""
    x = exact(2, 33, 4, 64)
    return [x], x.transpose(0, 2, 1, 3)


def of_matrix(f: Callable[..., Any], *vectors: int) -> Callable[[], tuple[Arrays, Any]]:
    """A reference for a matrix of 37 x 300, and vectors of 300."""

    def make() -> tuple[Arrays, Any]:
        given = [exact(37, 300), *(exact(300) for _ in vectors)]
        return given, f(*given)

    return make


FORMS: dict[str, Callable[..., Any]] = {
    "NN": lambda m, a, b: a @ b,
    "NT": lambda m, a, b: a @ b.T,
    "TN": lambda m, a, b: a.T @ b,
}


def multiplied(name: str, part: int, form: str, gate: str, goal: str, dtype: str = "float32") -> Row:
    """A product of matrices whose sides are a part of the large one."""
    check = product_check(form)
    return Row(name, product(part, part, part, form), FORMS[form], check, "flop", gate, goal, None, dtype)


def over(
    name: str, columns: int, moved: float, f: Callable[..., Any], reference: Any, gate: str, goal: str
) -> Row:
    """A function of a matrix of this many columns, with the bytes that it moves per element."""
    return Row(name, matrix(columns, moved), f, of_matrix(reference), "bytes", gate, goal)


ROWS = [
    multiplied("matmul float32, large, NN", 1, "NN", "66%", "78%"),
    multiplied("matmul float32, large, NT", 1, "NT", "66%", "78%"),
    multiplied("matmul float32, large, TN", 1, "TN", "66%", "78%"),
    multiplied("matmul float32, half the side", 2, "NN", "57%", "72%"),
    multiplied("matmul float32, a quarter of the side", 4, "NN", "36%", "48%"),
    multiplied("matmul float16, large, NN", 1, "NN", "373%", "522%", "float16"),
    multiplied("matmul float16, large, NT", 1, "NT", "373%", "522%", "float16"),
    multiplied("matmul bfloat16, large, NN", 1, "NN", "448%", "746%", "bfloat16"),
    Row("matmul of 64 x 64, a batch", batches, FORMS["NN"], batches_check, "flop", "27%", "45%"),
    Row("matrix by vector", thin, FORMS["NN"], thin_check, "bytes", "80%", "90%"),
    Row("16 rows by a matrix", few, FORMS["NN"], few_check, "bytes", "80%", "90%"),
    Row("add", pairs, lambda m, a, b: a + b, pairs_check, "bytes", "90%", "96%"),
    over("tanh", 1024, 8, lambda m, x: m.tanh(x), np.tanh, "90%", "96%"),
    over("sum of all", 1024, 4, lambda m, x: x.sum(), np.sum, "88%", "95%"),
    over("sum of rows of 256", 256, 4, lambda m, x: x.sum(1), lambda x: x.sum(1), "88%", "95%"),
    over("sum of rows of 65,536", 65_536, 4, lambda m, x: x.sum(1), lambda x: x.sum(1), "88%", "95%"),
    over("sum of columns", 1024, 4, lambda m, x: x.sum(0), lambda x: x.sum(0), "75%", "90%"),
    over("maximum of rows of 1,024", 1024, 4, lambda m, x: x.amax(1), lambda x: x.max(1), "88%", "95%"),
    over("argmax of rows", 1024, 4, lambda m, x: x.argmax(1), lambda x: x.argmax(1), "75%", "90%"),
    over("transpose", 1024, 8, lambda m, x: x.T.contiguous(), np.transpose, "70%", "85%"),
    Row(
        "permutation of 4 axes",
        by_heads,
        lambda m, x: x.transpose(1, 2).contiguous(),
        by_heads_check,
        "bytes",
        "70%",
        "85%",
    ),
    over("softmax of rows of 1,024", 1024, 8, lambda m, x: x.softmax(-1), softmax, "88%", "95%"),
    over("softmax of rows of 16,384", 16_384, 8, lambda m, x: x.softmax(-1), softmax, "88%", "95%"),
    over("softmax of rows of 65,536", 65_536, 12, lambda m, x: x.softmax(-1), softmax, "70%", "85%"),
    Row(
        "layer norm",
        matrix(1024, 8, normal, normal),
        lambda m, x, w, b: m.nn.functional.layer_norm(x, (x.shape[-1],), w, b),
        of_matrix(normalised, 1, 2),
        "bytes",
        "85%",
        "95%",
    ),
    Row(
        "RMS norm",
        matrix(1024, 8, normal),
        lambda m, x, w: m.nn.functional.rms_norm(x, (x.shape[-1],), w, 1e-5),
        of_matrix(of_unit_square, 1),
        "bytes",
        "85%",
        "95%",
    ),
    Row("rows by index", table_rows, lambda m, x, i: x[i], table_check, "bytes", "70%", "85%"),
    Row(
        "attention float32",
        heads,
        lambda m, q, k, v: m.nn.functional.scaled_dot_product_attention(q, k, v),
        attention_check,
        "flop",
        "36%",
        "52%",
    ),
    Row(
        "attention float16",
        heads,
        lambda m, q, k, v: m.nn.functional.scaled_dot_product_attention(q, k, v),
        attention_check,
        "flop",
        "149%",
        "299%",
        dtype="float16",
    ),
]
