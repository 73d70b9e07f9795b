"""Values that leave the tensors: numbers, texts, arrays, truth values, lengths, and what they decide."""

import copy
import io
import math
import pickle

import numpy as np
import wengert as wg
from staging.comparing import calls, case
from wengert import distributions, nn
from wengert.nn import functional as F

BRANCHES = [1.0, 2.0, 3.0, 1.0]
NAN = float("nan")


def scaled():
    return [wg.ones(2) * k for k in BRANCHES]


def pairs():
    return [wg.tensor(pair) for pair in ([1.0, 1.0], [1.0, 5.0], [5.0, 1.0], [2.0, 2.0], [1.0, 1.0])]


def drawn():
    return [wg.randn(5).round() for _ in range(6)]


def through_a_file(x):
    file = io.BytesIO()
    wg.save(x, file)
    file.seek(0)
    return wg.load(file)


def assigned(x):
    y = x.clone()
    y[y > 1] = wg.ones(int((y > 1).sum())) * 9
    return y


def doubled_until(x):
    count = 0
    while x.sum() < 100:
        x = x * 2
        count += 1
    return x, count


def filled(x, i):
    result = wg.zeros(3)
    n = int(i)
    result[:n] = x[:n]
    return result


calls("item_of_a_float", lambda x: x * x.sum().item(), scaled)
calls("float", lambda x: x * round(float(x[0])), scaled)
calls("complex", lambda x: x * complex(x[0]).real, scaled)
calls("floor", lambda x: x * math.floor(x[0]), scaled)
calls("tolist", lambda x: x * sum(x.tolist()), lambda: [wg.tensor([i, i + 1]) for i in range(3)] + scaled())
calls("a_tensor_of_a_list", lambda x: wg.tensor(x.tolist()), scaled)
calls("a_tensor_of_tensors", lambda x: wg.tensor([x[0], x[1] * 2]), scaled, traces=1)
calls("a_list_of_floats", lambda x: wg.tensor(list(map(float, x))), scaled)
calls("text", lambda x: x * float(str(x.sum())[7:-1]), scaled)
calls("formatted", lambda x: x * len(f"{x.sum():.0f}"), lambda: [wg.full((2,), 10.0**i) for i in range(4)])
calls("representation", lambda x: x * 2 if "1." in repr(x) else x * 3, scaled)
calls("numpy", lambda x: wg.tensor(np.sort(x.numpy())), drawn)
calls("numpy_asarray", lambda x: x + np.asarray(x).sum(), drawn)
calls("numpy_array", lambda x: x + wg.tensor(np.array(x)), drawn)
calls("numpy_function", lambda x: x * float(np.max(x)), drawn)
calls("numpy_sine", lambda x: wg.tensor(np.sin(x)), scaled)
calls("dlpack", lambda x: wg.from_dlpack(x) * 1, scaled, traces=1)
calls("dlpack_by_numpy", lambda x: x + wg.from_numpy(np.from_dlpack(x) * 2), drawn)
calls("buffer", lambda x: wg.tensor(list(memoryview(x.numpy()))), scaled)
calls("a_file", through_a_file, scaled)
calls("pickle", lambda x: pickle.loads(pickle.dumps(x)), scaled)
calls("a_copy", lambda x: copy.deepcopy(x) + copy.copy(x), scaled)
calls("a_hash", lambda x: x * (hash(x) == hash(x)), scaled)

calls(
    "an_integer",
    lambda x, i: x[i.item()] * float(i),
    lambda: [(wg.arange(3.0), wg.tensor(i)) for i in (0, 1, 2, 0)],
    traces=3,
)
calls("an_index", lambda x: x * [5, 6, 7, 8][x[0].int()], scaled)
calls("a_range", lambda x: sum([x * 1 for _ in range(x[0].int())]), scaled)
calls("a_slice", filled, lambda: [(wg.randn(3), wg.tensor(i)) for i in (1, 2, 3, 1, 0)])
calls("a_loop", doubled_until, lambda: [wg.full((2,), k) for k in (1.0, 3.0, 9.0, 1.0, 200.0)], traces=4)
calls("any", lambda x: x * 2 if (x > 1).any() else x * 3, scaled, traces=2)
calls("a_comparison", lambda x: x * 2 if 0 < x[0] < 2 else x, scaled, traces=2)
calls("and_or", lambda x: (x[0] - 1 and x[1]) or x[0] * 9, scaled)
calls("contains", lambda x: x * 2 if 1.0 in x else x, pairs)
calls("equal", lambda x: x * 2 if wg.equal(x, wg.ones(2)) else x * 3, scaled, traces=2)
calls("allclose", lambda x: x * 2 if x.allclose(wg.ones(2)) else x * 3, scaled, traces=2)
calls("is_nonzero", lambda x: x * 2 if (x[0] - 1).is_nonzero() else x * 3, scaled)
calls(
    "isfinite",
    lambda x: x if wg.isfinite(x).all() else x * 0,
    lambda: [wg.ones(2) * k for k in (1, NAN, 1)],
    traces=2,
)
calls(
    "rank",
    lambda x: x * 2 if wg.linalg.matrix_rank(x * wg.eye(2)) == 2 else x,
    lambda: [*scaled(), wg.zeros(2)],
)
calls("max_min_sorted", lambda x: max(x) * min(x) * sorted(x)[0], pairs)
calls(
    "iteration",
    lambda x: sum(row * i for i, row in enumerate(x)),
    lambda: [wg.randn(n, 2) for n in (3, 4, 3)],
    traces=2,
)

calls("nonzero", lambda x: (wg.nonzero(x), x[x > 0] * 2, wg.unique(x)), drawn, traces=5)
calls("mean_of_a_selection", lambda x: x[x > 0].sum() / x[x > 0].numel(), drawn, traces=2)
calls("masked_select", lambda x: wg.masked_select(x, x > 1), scaled, traces=2)
calls("argwhere", lambda x: (wg.argwhere(x > 1), wg.where(x > 1)[0]), scaled, traces=2)
calls("unique", lambda x: (wg.unique_consecutive(x), wg.unique(x, return_counts=True)[1]), pairs, traces=2)
calls("bincount", lambda x: wg.bincount(x.long()), scaled)
calls("one_hot", lambda x: F.one_hot(x.long()), scaled)
calls("repeat_interleave", lambda x: wg.repeat_interleave(x, x.long()), scaled, traces=3)
calls("unravel_index", lambda x: wg.unravel_index(x.long(), (3, 4)), scaled, traces=1)
calls("unravelled_out_of_range", lambda x: wg.unravel_index(x.long(), (1, 2)), scaled)
calls("histc", lambda x: wg.histc(x, 3), pairs)
calls("tensor_split", lambda x: wg.tensor_split(wg.arange(6.0), x.long())[0], scaled)
calls("split", lambda x: wg.split(wg.arange(6.0), [int(x[0]), 6 - int(x[0])])[0], scaled)
calls("a_masked_assignment", assigned, scaled)
calls("full_of_a_tensor", lambda x: wg.full((2,), x.sum()), scaled, traces=1)
calls("arange_of_a_tensor", lambda x: wg.arange(x[0]) + 0, scaled)
calls("linspace_of_a_tensor", lambda x: wg.linspace(0, x[0], 3), scaled)
calls(
    "alpha_of_a_tensor",
    lambda x, k: wg.add(x, x[0], alpha=k),
    lambda: [(x, x[0]) for x in scaled()],
    traces=1,
)
calls("bounds_of_tensors", lambda x: wg.clamp(x, max=x[0] * 2) + x ** x[0], scaled, traces=1)
calls("fills_of_tensors", lambda x: wg.where(x > 0, x[0], 0.0) + x.masked_fill(x > 0, x[1]), scaled, traces=1)

calls(
    "cholesky_that_fails",
    lambda x: wg.linalg.cholesky(x * wg.eye(2)),
    lambda: [wg.ones(2) * k for k in (1, -1, 2)],
    traces=1,
)
calls(
    "inverse_that_fails",
    lambda x: wg.linalg.inv(x * wg.eye(2)),
    lambda: [wg.ones(2) * k for k in (1, 0, 1)],
    traces=1,
)
calls(
    "division_by_zero",
    lambda x, y: (x // y, x % y),
    lambda: [(wg.tensor([5]), wg.tensor([k])) for k in (1, 2, 0, 3)],
    traces=1,
)
calls(
    "a_class_out_of_range",
    lambda x, y: F.cross_entropy(x, y),
    lambda: [(wg.ones(1, 3), wg.tensor([k])) for k in (0, 1, 9, 2, -100)],
    traces=1,
)
calls(
    "scatter_out_of_range",
    lambda x: wg.zeros(3).scatter(0, x.long(), x),
    lambda: [wg.ones(2) * k for k in (1, 2, 7, 1)],
)
calls(
    "chances_out_of_range",
    lambda x: F.binary_cross_entropy(x, x * 0),
    lambda: [wg.ones(2) * k for k in (0.5, 2, -1)],
)
calls("weights_out_of_range", lambda x: wg.multinomial(x, 1), lambda: [wg.ones(2) * k for k in (1, -1, 1)])
calls("bernoulli_out_of_range", lambda x: wg.bernoulli(x), lambda: [wg.ones(2) * k for k in (1, -1, 3)])
calls(
    "a_distribution_out_of_range",
    lambda x: distributions.Normal(x, x).log_prob(x),
    lambda: [wg.ones(2) * k for k in (1, -1, 1)],
)


@case
def a_loss_that_is_logged(jit):
    floats, integers = [], []

    @jit
    def f(x):
        loss = (x * x).sum()
        floats.append(loss.item())
        integers.append(int((x > 0).sum()))
        return loss

    for i in range(4):
        yield f(wg.full((2,), float(i)))
        yield floats, integers


@case
def packed_sequences(jit):
    @jit
    def f(x):
        packed = nn.utils.rnn.pack_padded_sequence(wg.ones(3, 2, 1) * x[0], x.long())
        return nn.utils.rnn.pad_packed_sequence(packed)[0]

    for x in scaled():
        yield f(x)


@case
def a_break_between_writes(jit):
    weight = wg.ones(2)

    @jit
    def f(x):
        for _ in range(20):
            weight.sub_(x * 0.1)
            if bool((weight < 0).any()):
                break
        return weight * 1

    for k in (1.0, 0.3, 0.01, -0.1, 1.0):
        yield f(wg.full((2,), k))
        yield weight
