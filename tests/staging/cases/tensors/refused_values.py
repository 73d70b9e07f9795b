"""Operations whose values may be refused: each fails in a program as without, with the same text."""

import wengert as wg
from staging.comparing import calls
from wengert import nn


def indices(*values):
    return lambda: [wg.tensor([value]) for value in values]


TABLE = wg.arange(6.0).reshape(3, 2)
calls("a_row", lambda i: TABLE[i], indices(0, 3, -3, -4, 1))
calls("an_element", lambda i: TABLE[i, i], indices(0, 2, 1))
calls("index_select", lambda i: TABLE.index_select(0, i), indices(0, 3, -1, 1))
calls("gather", lambda i: TABLE.gather(0, i[None]), indices(0, 3, -1, 1))
calls("take", lambda i: TABLE.take(i), indices(0, 6, -1, 1))
calls("take_along_dim", lambda i: TABLE.take_along_dim(i[None], 0), indices(0, 6, -1, 1))
calls("index_add", lambda i: TABLE.index_add(0, i, wg.ones(1, 2)), indices(0, 3, -1, 1))
calls("index_copy", lambda i: TABLE.index_copy(0, i, wg.ones(1, 2)), indices(0, 3, -1, 1))
calls("index_fill", lambda i: TABLE.index_fill(0, i, 5.0), indices(0, 3, -1, 1))
calls("scatter_add", lambda i: TABLE.scatter_add(0, i[None], wg.ones(1, 1)), indices(0, 3, -1, 1))
calls(
    "scatter_reduce", lambda i: TABLE.scatter_reduce(0, i[None], wg.ones(1, 1), "amax"), indices(0, 3, -1, 1)
)
calls("one_hot", lambda i: nn.functional.one_hot(i, 3), indices(0, 3, -1, 1))
calls("embedding", lambda i: nn.functional.embedding(i, TABLE), indices(0, 3, -1, 1))
calls("embedding_bag", lambda i: nn.functional.embedding_bag(i[None], TABLE), indices(0, 3, -1, 1))
calls("nll_loss", lambda i: nn.functional.nll_loss(wg.zeros(1, 3), i), indices(0, 3, -1, -100, 1))
calls("multi_margin_loss", lambda i: nn.functional.multi_margin_loss(wg.zeros(1, 3), i), indices(0, 3, -1, 1))
calls("repeat_interleave", lambda i: wg.repeat_interleave(TABLE[:1], i, 0), indices(0, 3, -1, 1))
calls("bincount", lambda i: wg.bincount(i), indices(0, 3, -1, 1))
calls("an_integer_power", lambda i: wg.tensor([2]) ** i, indices(0, 3, -1, 1))
calls("a_shift", lambda i: (wg.tensor([2]) << i, wg.tensor([2]) >> i), indices(0, 3, -1, 70))
calls("floor_divide", lambda i: wg.tensor([5]).floor_divide(i), indices(1, 0, 2))
calls("fmod", lambda i: (wg.tensor([5]).fmod(i), wg.gcd(wg.tensor([4]), i)), indices(1, 0, 2))
calls(
    "ctc_loss",
    lambda i: nn.functional.ctc_loss(wg.zeros(4, 1, 3), i[None], wg.tensor([4]), i * 0 + 1),
    indices(1, 5, 2),
)
calls(
    "grid_of_nan",
    lambda i: nn.functional.grid_sample(wg.ones(1, 1, 2, 2), wg.zeros(1, 1, 1, 2) / i),
    indices(1, 0, 2),
)


def matrices():
    return [
        wg.eye(2),
        -wg.eye(2),
        wg.zeros(2, 2),
        wg.eye(2) * float("nan"),
        wg.eye(2) * float("inf"),
        wg.eye(2) * 2,
    ]


calls("cholesky", lambda a: wg.linalg.cholesky(a), matrices)
calls("inverse", lambda a: wg.linalg.inv(a), matrices)
calls("solve", lambda a: wg.linalg.solve(a, wg.ones(2)), matrices)
calls("determinant", lambda a: (wg.linalg.det(a), wg.linalg.slogdet(a)), matrices)
calls("eigenvalues", lambda a: wg.linalg.eigvalsh(a), matrices)
calls("singular_values", lambda a: wg.linalg.svdvals(a), matrices)
calls("least_squares", lambda a: wg.linalg.lstsq(a, wg.ones(2, 1)), matrices)
calls("lu", lambda a: wg.linalg.lu_factor(a), matrices)
calls("matrix_power", lambda a: wg.linalg.matrix_power(a, -1), matrices)
calls("pinv", lambda a: wg.linalg.pinv(a), matrices)
calls("matrix_rank", lambda a: wg.linalg.matrix_rank(a), matrices)
calls("poisson", lambda a: wg.poisson(a), matrices)
calls("multinomial", lambda a: wg.multinomial(a, 1), matrices)
calls("histc", lambda a: wg.histc(a, 3), matrices)
calls("quantile", lambda a: wg.quantile(a, a[0, 0]), matrices)
calls("categorical", lambda a: wg.distributions.Categorical(probs=a).probs, matrices)
calls("int_of_a_float", lambda a: wg.zeros(int(a[0, 0] + 1)), matrices)
