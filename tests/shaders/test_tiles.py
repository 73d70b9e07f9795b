"""attention*.wgsl against NumPy in float64: results, tangents and gradients, of every kind of mask, with
dropout."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from shaders.host import BF16, as_halves, axes, close, epw, has_halves, load, rng, run, store

TILE = 64
SEED, OFFSET = (0x12345678, 0x9ABCDEF0), (0xFFFFFFFE, 3)


def philox(counter: int) -> list[int]:
    """The four words of a counter, by the paper (Salmon et al. 2011)."""
    c = [counter & 0xFFFFFFFF, counter >> 32 & 0xFFFFFFFF, 0, 0]
    key = list(SEED)
    for _ in range(10):
        x, z = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        low = 0xFFFFFFFF
        c = [z >> 32 ^ c[1] ^ key[0], z & low, x >> 32 ^ c[3] ^ key[1], x & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    return c


def uniforms(count: int) -> np.ndarray:
    """The numbers of `rand(count)`."""
    first = OFFSET[0] | OFFSET[1] << 32
    words = [w for j in range(-(-count // 4)) for w in philox(first + j)]
    return (np.array(words[:count], np.uint32) >> 8).astype(np.float64) * 2.0**-24


@dataclass
class Problem:
    """Queries (a, b, L, E), keys (a, 1 or b, S, E), values, a mask that broadcasts, and how they lie in
    memory."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    mask: np.ndarray | None = None
    causal: bool = False
    drop: float = 0.0
    scale: float = 0.3
    blocks: int = 1
    t: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """L, S, E, V."""
        return self.q.shape[2], self.k.shape[2], self.q.shape[3], self.v.shape[3]

    @property
    def batch(self) -> tuple[int, ...]:
        return self.q.shape[:2]

    def keep(self) -> np.ndarray:
        """Dropout's factors."""
        shape = (*self.batch, *self.sizes[:2])
        if not self.drop:
            return np.ones(shape)
        return (uniforms(int(np.prod(shape))).reshape(shape) >= np.float32(self.drop)) / (1 - self.drop)

    def scores(self) -> np.ndarray:
        q, k = self.q.astype(np.float64), self.k.astype(np.float64)
        s = self.scale * q @ k.swapaxes(-1, -2)
        if self.mask is not None:
            s = np.where(self.mask, s, -np.inf) if self.mask.dtype == bool else s + self.mask
        return np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf) if self.causal else s

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The softmax, and the logarithm of the sum of exponentials."""
        s = self.scores()
        top = s.max(-1, keepdims=True, initial=-np.inf)
        e = np.exp(s - np.where(np.isfinite(top), top, 0))
        total = e.sum(-1, keepdims=True)
        with np.errstate(divide="ignore"):
            return e / np.where(total == 0, 1, total), np.where(total == 0, -np.inf, top + np.log(total))

    def moved(self) -> np.ndarray:
        """The tangents of the scores."""
        t, w = self.t, np.zeros((*self.batch, *self.sizes[:2]))
        if "q" in t:
            w = w + self.scale * t["q"] @ self.k.swapaxes(-1, -2)
        if "k" in t:
            w = w + self.scale * self.q @ t["k"].swapaxes(-1, -2)
        return w + t["mask"] if "mask" in t else w


def sum_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The sum over what was broadcast."""
    return x.sum(tuple(i for i in range(x.ndim) if shape[i] == 1 < x.shape[i]), keepdims=True)


def gradients(p: Problem, g: np.ndarray) -> dict[str, np.ndarray]:
    """Of <g, out>, or of <g, tangent> where there are tangents, by the formulas of the whole matrix."""
    w, keep, t = p.weights()[0], p.keep(), p.t
    h = keep * (g @ p.v.swapaxes(-1, -2))
    adjoint = w * (h - (w * h).sum(-1, keepdims=True))
    direct, values = adjoint, w * keep
    if t:
        moved = p.moved()
        mean, delta = (w * moved).sum(-1, keepdims=True), (w * h).sum(-1, keepdims=True)
        cross = keep * (g @ t["v"].swapaxes(-1, -2)) if "v" in t else 0
        x = h * moved + cross - delta * moved - mean * h
        direct, values = w * (x - (w * x).sum(-1, keepdims=True)), w * keep * (moved - mean)
    dq, dk = direct @ p.k, direct.swapaxes(-1, -2) @ p.q
    if "k" in t:
        dq = dq + adjoint @ t["k"]
    if "q" in t:
        dk = dk + adjoint.swapaxes(-1, -2) @ t["q"]
    out = {
        "q": p.scale * dq,
        "k": sum_to(p.scale * dk, p.k.shape),
        "v": sum_to(values.swapaxes(-1, -2) @ g, p.v.shape),
    }
    return out | ({} if p.mask is None else {"mask": sum_to(direct, p.mask.shape)})


def strides(x: np.ndarray) -> list[int]:
    """In elements, 0 along axes of length 1."""
    return [0 if n == 1 else s // x.itemsize for n, s in zip(x.shape, x.strides, strict=True)]


def flat(x: np.ndarray) -> np.ndarray:
    """The memory that `x` is a view of."""
    while x.base is not None and isinstance(x.base, np.ndarray):
        x = x.base
    return x.reshape(-1)


def operand(p: Problem, name: str) -> tuple[np.ndarray, list[int], list[int]]:
    """The buffer of an operand and its tangent, batch strides, and (offset, row, column, way to the
    tangent)."""
    x = getattr(p, name)
    if name in p.t:
        x = np.ascontiguousarray(x)
        both = np.concatenate([x.reshape(-1), p.t[name].astype(x.dtype).reshape(-1)])
        return both, strides(x)[:2], [0, *strides(x)[2:], x.size]
    base = flat(x)
    start = x.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return base, strides(x)[:2], [start // x.itemsize, *strides(x)[2:], 0]


def launch(p: Problem, file: str, entry: str, g: np.ndarray, stats: np.ndarray, outs, **how):
    """Runs one pass; of float16 also with operands of type f16, which must give the same bits. `how`: walked
    axes, their product, tiles, chunks, size of the mask's gradient, constants."""
    length, source, depth, width = p.sizes
    a, b = p.batch
    parts = {name: operand(p, name) for name in ("q", "k", "v")}
    parts["mask"] = operand(p, "mask") if p.mask is not None else (parts["q"][0], [], [0, 0, 0, 0])
    kind = 0 if p.mask is None else 1 if p.mask.dtype == bool else 2
    moves = sum(1 << i for i, name in enumerate(("q", "k", "v", "mask")) if name in p.t)
    out, out2 = (np.zeros(shape, np.uint8) for shape, _ in outs)
    walked, sharing = how.get("walked", 0), how.get("sharing", 1)
    own = a * b // sharing
    params = [axes(p.batch)]
    params += [axes(parts[name][1]) for name in parts]
    params += [axes(strides(x)[:2]) for x in (g, out, out2)] + [axes([b * length, length])]
    params += [2, walked, own, sharing, how["tiles"], how["chunks"], length, source, depth, width]
    params += [*parts["q"][2], *parts["k"][2], *parts["v"][2], *parts["mask"][2], *how.get("size", (0, 0))]
    params += [0, *strides(g)[2:], out.shape[3], out2.shape[3], p.scale, float(p.drop), 1 / (1 - p.drop)]
    params += [*SEED, *OFFSET]
    replace = {f"load {name}": load(name, parts[name][0].dtype) for name in parts}
    replace |= {"load g": load("g", g.dtype), "store out": store("out", outs[0][1])}
    replace |= {
        "const EPW": f"const EPW: u32 = {epw(outs[0][1])}u;",
        "const MASK": f"const MASK: u32 = {kind}u;",
        "const CAUSAL": f"const CAUSAL: bool = {str(p.causal).lower()};",
        "const DROPOUT": f"const DROPOUT: bool = {str(p.drop > 0).lower()};",
        "const MOVES": f"const MOVES: u32 = {moves}u;",
        **how.get("replace", {}),
    }
    replace["const BLOCKS"] = f"const BLOCKS: u32 = {p.blocks}u;"
    ins = [*(parts[name][0] for name in parts), g, stats]
    groups = own * how["tiles"] * how["chunks"]
    found = run(file, ins, outs, params, groups, replace, entry, limit=3)
    if has_halves() and all(x.dtype == np.float16 for x in (p.q, p.k, p.v, g)):
        halves = [(i, name) for i, name in enumerate((*parts, "g")) if ins[i].dtype == np.float16]
        replace |= as_halves(*((name, i, False) for i, name in halves), sums=False)
        for x, y in zip(run(file, ins, outs, params, groups, replace, entry, limit=3), found, strict=True):
            np.testing.assert_array_equal(x.view(np.uint8), y.view(np.uint8))
    return found


def tiles(n: int) -> int:
    return -(-n // TILE)


def chunks(p: Problem, columns: int) -> int:
    return -(-columns // (TILE * p.blocks))


def numbers_shape(p: Problem) -> tuple[int, ...]:
    return (*p.batch, p.sizes[0], 1)


def forward(p: Problem, dtype=np.float32, y=None, lse=None):
    """The result and the logarithms; with those given, their tangents."""
    shape = (*p.q.shape[:3], p.sizes[3])
    entry = "attention" if y is None else "attention_tangent"
    outs = [(shape, dtype), (numbers_shape(p), np.float32)]
    how = {"tiles": tiles(p.sizes[0]), "chunks": max(1, chunks(p, p.sizes[3]))}
    return launch(
        p, "attention.wgsl", entry, p.q if y is None else y, p.q if lse is None else lse, outs, **how
    )


def statistics(p: Problem, g, y, lse, moved=None, mean=None):
    """The four numbers per query, by their kernel."""
    rows, second = int(np.prod(p.q.shape[:3])), moved is not None
    params = [axes(p.q.shape[:3]), *(axes([s // x.itemsize for s in x.strides[:3]]) for x in (g, y, y))]
    params += [3, rows, p.sizes[3], 0, 1, 0, 1, 0, 1]
    replace = {f"load {name}": load(name, x.dtype) for name, x in [("g", g), ("y", y), ("moved", y)]}
    replace["const SECOND"] = f"const SECOND: bool = {str(second).lower()};"
    ins = [g, y, moved if second else y, lse, mean if second else lse]
    outs = [np.zeros((rows, 4), np.float32)]
    return run("attention_rows.wgsl", ins, outs, params, -(-rows // 16), replace)[0]


def backward(p: Problem, g, dtype=np.float32) -> dict[str, np.ndarray]:
    """All gradients, by the passes."""
    length, source, depth, width = p.sizes
    plain = Problem(p.q, p.k, p.v, p.mask, p.causal, p.drop, p.scale, p.blocks)
    y, lse = forward(plain, p.q.dtype.type)
    more = forward(p, p.q.dtype.type, y, lse) if p.t else ()
    stats = statistics(p, g, y, lse, *more)
    second = {"const SECOND": f"const SECOND: bool = {str(bool(p.t)).lower()};"}

    def go(entry, outs, wants=0, out2=None, **how):
        replace = second | {
            "const WANTS": f"const WANTS: u32 = {wants}u;",
            "store out2": store("out2", outs[1][1]),
        }
        return launch(p, "attention_backward.wgsl", entry, g, stats, outs, replace=replace, **how)

    spare = ((1, 1, 1, 1), dtype)
    found = {
        "q": go(
            "attention_queries", [(p.q.shape, dtype), spare], tiles=tiles(length), chunks=chunks(p, depth)
        )[0]
    }
    shared = p.k.shape[1] == 1 < p.batch[1]
    how = {"walked": 2 * shared, "sharing": p.batch[1] if shared else 1}
    outs = [(p.k.shape, dtype), (p.v.shape, dtype)]
    found["k"], found["v"] = go(
        "attention_keys", outs, 6, tiles=tiles(source), chunks=chunks(p, max(depth, width)), **how
    )
    if p.mask is not None and p.mask.dtype != bool:
        axes_ = [i for i in range(2) if p.mask.shape[i] == 1 < p.batch[i]]
        how = {"walked": sum(1 << i for i in axes_), "sharing": int(np.prod([p.batch[i] for i in axes_]))}
        rows, cols = p.mask.shape[2:]
        size = {"size": (rows, cols), "tiles": tiles(rows), "chunks": tiles(cols)}
        found["mask"] = go("attention_mask", [(p.mask.shape, np.float32), spare], **size, **how)[0]
    return found


def problem(seed: int, sizes, kind: str = "", dtype=np.float32, heads: int = 2) -> Problem:
    """An attention of this kind."""
    length, source, depth, width = sizes
    g = rng(seed)

    def normal(*shape):
        return g.standard_normal(shape).astype(dtype)

    q, k, v = (
        normal(2, heads, length, depth),
        normal(2, heads, source, depth),
        normal(2, heads, source, width),
    )
    if "shared" in kind:
        k, v = k[:, :1].copy(), v[:, :1].copy()
    if "strided" in kind:
        # Heads beside each other, a turned matrix, and a slice.
        q = normal(2, length, heads, depth).transpose(0, 2, 1, 3)
        k = normal(2, heads, depth, source).swapaxes(-1, -2)
        v = normal(2, heads, source, width + 3)[..., 2:-1]
    mask = None
    if "take" in kind:
        mask = g.random((1, heads, length, source)) < 0.6
        mask[:, 0, length // 2] = False
    if "add" in kind:
        shape = {"add": (2, heads), "add-plane": (1, 1), "add-row": (1, heads), "add-column": (2, 1)}
        name = next(n for n in sorted(shape, key=len, reverse=True) if n in kind)
        last = {"add-row": (1, source), "add-column": (length, 1)}.get(name, (length, source))
        mask = normal(*shape[name], *last).astype(np.float32)
        mask = np.where(g.random(mask.shape) < 0.1, -np.inf, mask).astype(np.float32)
    return Problem(q, k, v, mask, "causal" in kind, 0.3 if "dropout" in kind else 0.0)


def moving(p: Problem, names) -> Problem:
    """The problem with tangents of these operands."""
    g = rng(77)
    p.t = {name: g.standard_normal(getattr(p, name).shape).astype(np.float32) for name in names}
    return p


SIZES = [(1, 1, 1, 1), (5, 70, 3, 4), (64, 64, 16, 64), (65, 129, 33, 7), (130, 40, 70, 66)]
KINDS = [
    "plain",
    "causal",
    "shared",
    "strided",
    "take",
    "add",
    "add-plane causal",
    "add-row",
    "add-column",
    "dropout",
    "causal dropout shared",
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("kind", "blocks"), [("plain", 1), ("causal", 1), ("causal", 2)])
def test_forward_across_tiles(sizes, kind, blocks):
    p = problem(1, sizes, kind)
    p.blocks = blocks
    w, lse = p.weights()
    got, numbers = forward(p)
    close(got, w @ p.v)
    close(numbers, lse)


@pytest.mark.parametrize("kind", KINDS)
def test_forward(kind):
    p = problem(2, (70, 75, 9, 5), kind)
    w, lse = p.weights()
    got, numbers = forward(p)
    close(got, (w * p.keep()) @ p.v, scale=2)
    seen = np.isfinite(lse)
    close(numbers[seen], lse[seen])
    assert np.isneginf(numbers[~seen]).all()
    assert (got[~seen[..., 0]] == 0).all()


ONE_AT_A_TIME = [(kind, name) for kind in ("plain", "causal dropout shared") for name in "qkv"]


@pytest.mark.parametrize(("kind", "moves"), [*((kind, "qkv") for kind in KINDS), *ONE_AT_A_TIME])
def test_tangent(kind, moves):
    p = problem(3, (70, 75, 9, 5), kind)
    plain = forward(p)
    p = moving(p, [*moves, "mask"] if "add" in kind else moves)
    w, moved = p.weights()[0], p.moved()
    mean = (w * moved).sum(-1, keepdims=True)
    want = (w * p.keep() * (moved - mean)) @ p.v
    if "v" in p.t:
        want = want + (w * p.keep()) @ p.t["v"]
    # The kernel subtracts the mean times the result, which is the mean of the kept weights.
    want += mean * ((w * p.keep()) @ p.v - plain[0])
    got, numbers = forward(p, np.float32, *plain)
    close(got, want, scale=8)
    close(numbers, mean, scale=8)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("blocks", [1, 2])
def test_backward_across_tiles(sizes, blocks):
    p = problem(4, sizes, "causal")
    p.blocks = blocks
    g = rng(5).standard_normal((*p.q.shape[:3], sizes[3])).astype(np.float32)
    want = gradients(p, g.astype(np.float64))
    for name, got in backward(p, g).items():
        close(got, want[name], scale=16)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_backward(kind, order):
    p = problem(6, (70, 75, 9, 5), kind)
    if order == 2:
        p = moving(p, ["q", "k", "v", "mask"] if "add" in kind else ["q", "k", "v"])
    g = rng(7).standard_normal((*p.q.shape[:3], 5)).astype(np.float32)
    want = gradients(p, g.astype(np.float64))
    for name, got in backward(p, g).items():
        close(got, want[name], scale=64, rtol=1e-4)


@pytest.mark.parametrize("blocks", [1, 2])
def test_second_order_of_many_features(blocks):
    p = moving(problem(12, (20, 70, 140, 130), "causal"), ["q", "k", "v"])
    p.blocks, p.scale = blocks, 0.05
    plain = Problem(p.q, p.k, p.v, causal=True, scale=0.05, blocks=blocks)
    w, moved = p.weights()[0], p.moved()
    want = (w * (moved - (w * moved).sum(-1, keepdims=True))) @ p.v + w @ p.t["v"]
    close(forward(p, np.float32, *forward(plain))[0], want, scale=16)
    g = rng(13).standard_normal((*p.q.shape[:3], 130)).astype(np.float32)
    want = gradients(p, g.astype(np.float64))
    for name, got in backward(p, g).items():
        close(got, want[name], scale=256, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("kind", ["causal", "strided dropout add-plane", "shared take"])
def test_half(dtype, kind):
    p = problem(8, (70, 75, 8, 6), kind, dtype)
    q, k, v = (x.astype(np.float64) for x in (p.q, p.k, p.v))
    wide = Problem(q, k, v, p.mask, p.causal, p.drop)
    w = wide.weights()[0]
    close(forward(p, dtype)[0], (w * p.keep()) @ v, dtype, scale=2)
    g = rng(9).standard_normal((*p.q.shape[:3], 6)).astype(dtype)
    want = gradients(wide, g.astype(np.float64))
    for name, got in backward(p, g, dtype).items():
        close(got, want[name], dtype, scale=8)


def test_the_same_bits_every_time():
    p = problem(10, (130, 140, 20, 12), "causal dropout shared add-plane")
    g = rng(11).standard_normal((*p.q.shape[:3], 12)).astype(np.float32)
    first, second = backward(p, g), backward(p, g)
    assert all((first[name] == second[name]).all() for name in first)
