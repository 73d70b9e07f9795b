"""Loops that memory decides: each family over dtypes, layouts and sizes, as ratios to the best peer.

    python benches/peers/loops.py [--threads N] [--seconds S] [--only WORDS] [--output FILE]

Libraries take turns of a few milliseconds, and what counts is the fastest call of each: for loops this short
it is the same on a busy machine as on a quiet one, as long as no more threads are asked for than cores are
free.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from clock import SAMPLE_SECONDS, Row, Target, Work, repetitions
from libraries import prepared
from run import confine

RNG = np.random.default_rng(0)
FLOATS = ("float32", "float64", "bfloat16", "float16")
NUMBERS = ("float32", "float64", "bfloat16", "int32", "int64", "uint8")
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
MILLION = 1 << 20
PAIRS = (1 << 10, 1 << 16, 4 * MILLION)

# A function of the library (or None for NumPy) and its tensors.
Loop = Callable[..., object]


def numbers(dtype: str, *shape: int) -> Any:
    """Numbers between -4 and 4, or 0 and 8 for unsigned integers; bfloat16 comes as float32."""
    if dtype == "bool":
        return RNG.random(shape) < 0.5
    if dtype.endswith(("16", "32", "64")) and "float" in dtype:
        return RNG.uniform(-4, 4, shape).astype("float32" if dtype == "bfloat16" else dtype)
    return RNG.integers(0 if dtype == "uint8" else -4, 8 if dtype == "uint8" else 4, shape).astype(dtype)


def tensors(m: Any, dtype: str, arrays: list[Any]) -> list[Any]:
    """The arrays as tensors of a library."""
    return [m.tensor(a).to(getattr(m, dtype)) if a.dtype == np.float32 else m.tensor(a) for a in arrays]


def with_tensors(m: Any, loop: Loop, dtype: str, shapes: list[tuple[int, ...]]) -> Work:
    """The loop over fresh tensors of wengert or torch."""
    inputs = tensors(m, dtype, [numbers(dtype, *shape) for shape in shapes])
    loop(m, *inputs)
    return lambda: loop(m, *inputs)


def with_arrays(loop: Loop, dtype: str, shapes: list[tuple[int, ...]]) -> Work:
    """The loop over fresh NumPy arrays."""
    inputs = [numbers(dtype, *shape) for shape in shapes]
    loop(np, *inputs)
    return lambda: loop(np, *inputs)


def row(name: str, dtype: str, shapes: list[tuple[int, ...]], loop: Loop, plain: Loop | None = None) -> Row:
    """One line: the loop in wengert and torch, and in NumPy where `plain` gives it."""
    makers = {m: partial(prepared, m, with_tensors, loop, dtype, shapes) for m in ("wengert", "torch")}
    if plain is not None and dtype != "bfloat16":
        makers["numpy"] = partial(with_arrays, plain, dtype, shapes)
    sizes = ", ".join("x".join(map(str, shape)) for shape in shapes[:1])
    return Row(f"{name} {dtype} {sizes}", Target(ratio=1.2), makers)


def elementwise() -> Iterator[Row]:
    """Sums, products, selections and comparisons."""
    add, relu = (lambda m, x, y: x + y), (lambda m, x: m.relu(x))
    for dtype in NUMBERS:
        for n in PAIRS:
            yield row("add", dtype, [(n,), (n,)], add, add)
    for dtype in ("float32", "float64", "bfloat16"):
        n = 4 * MILLION
        yield row("mul", dtype, [(n,), (n,)], lambda m, x, y: x * y, lambda m, x, y: x * y)
        yield row("div", dtype, [(n,), (n,)], lambda m, x, y: x / y, lambda m, x, y: x / y)
        yield row("scale", dtype, [(n,)], lambda m, x: x * 2.0, lambda m, x: x * np.float32(2))
        yield row("relu", dtype, [(n,)], relu, lambda m, x: np.maximum(x, np.float32(0)))
        yield row("abs", dtype, [(n,)], lambda m, x: abs(x), lambda m, x: abs(x))
        yield row("clip", dtype, [(n,)], lambda m, x: m.clamp(x, -1.0, 1.0), lambda m, x: np.clip(x, -1, 1))
        yield row(
            "maximum", dtype, [(n,), (n,)], lambda m, x, y: m.maximum(x, y), lambda m, x, y: np.maximum(x, y)
        )
        yield row(
            "add in place",
            dtype,
            [(n,), (n,)],
            lambda m, x, y: x.mul_(0.5),
            lambda m, x, y: np.multiply(x, 0.5, x),
        )
    for dtype in ("float32", "int64", "uint8", "float64"):
        n = 4 * MILLION
        yield row("less", dtype, [(n,), (n,)], lambda m, x, y: x < y, lambda m, x, y: x < y)
        yield row("equal", dtype, [(n,), (n,)], lambda m, x, y: x == y, lambda m, x, y: x == y)
        choose = lambda m, x, y: m.where(x > 0, x, y)
        yield row("greater, where", dtype, [(n,), (n,)], choose, choose)
        yield row("greater, where a scalar", dtype, [(n,)], lambda m, x: m.where(x > 0, x, x[0]), None)
    yield row("and", "bool", [(4 * MILLION,)] * 2, lambda m, x, y: x & y, lambda m, x, y: x & y)
    yield row("not", "bool", [(4 * MILLION,)], lambda m, x: ~x, lambda m, x: ~x)
    yield row(
        "masked_fill", "float32", [(2048, 2048), (2048, 2048)], lambda m, x, y: x.masked_fill(y > 0, 0.0)
    )


def layouts() -> Iterator[Row]:
    """Operands that broadcast or are strided, and copies."""
    side = 2048
    for dtype in ("float32", "bfloat16", "float64"):
        big, add = (side, side), (lambda m, x, y: x + y)
        yield row("add a row", dtype, [big, (side,)], add, add)
        yield row("add a column", dtype, [big, (side, 1)], add, add)
        yield row("add a narrow row", dtype, [(400_000, 10), (10,)], add, add)
        yield row("add a transpose", dtype, [big, big], lambda m, x, y: x + y.T, lambda m, x, y: x + y.T)
        yield row(
            "add of transposes", dtype, [big, big], lambda m, x, y: x.T + y.T, lambda m, x, y: x.T + y.T
        )
        both = lambda m, x, y: x[:, ::2] + y[:, ::2]
        yield row("add every other", dtype, [big, big], both, both)
        left = lambda m, x, y: x[:, :1000] + y[:, 1000:2000]
        yield row("add parts of rows", dtype, [big, big], left, left)
        outer = lambda m, x, y: x * y
        yield row("outer product", dtype, [(side, 1), (1, side)], outer, outer)
        channel = lambda m, x, y: x * y
        yield row("scale channels", dtype, [(64, 64, 32, 32), (64, 1, 1)], channel, channel)
    for dtype in ("uint8", "bfloat16", "float32", "int64"):
        big = (side, side)
        yield row("copy", dtype, [big], lambda m, x: x.clone(), lambda m, x: x.copy())
        turned = lambda m, x: x.T.contiguous()
        yield row("copy a transpose", dtype, [big], turned, lambda m, x: np.ascontiguousarray(x.T))
        yield row("copy a transpose", dtype, [(1000, 1000)], turned, lambda m, x: np.ascontiguousarray(x.T))
        heads = lambda m, x: x.permute(0, 2, 1, 3).contiguous()
        yield row("copy heads", dtype, [(8, 256, 16, 64)], heads, lambda m, x: x.transpose(0, 2, 1, 3).copy())
        keys = lambda m, x: x.permute(0, 2, 3, 1).contiguous()
        yield row("copy keys", dtype, [(8, 256, 16, 64)], keys, lambda m, x: x.transpose(0, 2, 3, 1).copy())
        pixels = lambda m, x: x.permute(0, 3, 1, 2).contiguous()
        yield row(
            "channels first", dtype, [(16, 224, 224, 3)], pixels, lambda m, x: x.transpose(0, 3, 1, 2).copy()
        )
        yield row(
            "copy every other",
            dtype,
            [big],
            lambda m, x: x[:, ::2].contiguous(),
            lambda m, x: x[:, ::2].copy(),
        )
        yield row("copy reversed", dtype, [big], lambda m, x: m.flip(x, (1,)), lambda m, x: x[:, ::-1].copy())
        yield row("copy a row 1000 times", dtype, [(side,)], lambda m, x: x.expand(1000, side).contiguous())
        yield row(
            "concatenate",
            dtype,
            [big, big],
            lambda m, x, y: m.cat([x, y], 1),
            lambda m, x, y: np.concatenate([x, y], 1),
        )
    for dtype in ("uint8", "float32", "float64", "bfloat16"):
        made = getattr(np, dtype, None)
        fill = None if made is None else (lambda m, x, made=made: np.full(4 * MILLION, 3, made))
        yield row("full", dtype, [(1,)], lambda m, x: m.full((4 * MILLION,), 3, dtype=x.dtype), fill)
        zero = None if made is None else (lambda m, x: x.fill(0))
        yield row("zero in place", dtype, [(4 * MILLION,)], lambda m, x: x.zero_(), zero)
    yield row("arange", "int64", [(1,)], lambda m, x: m.arange(MILLION), lambda m, x: np.arange(MILLION))


def casts() -> Iterator[Row]:
    """Every pair of dtypes."""
    for source in DTYPES:
        for target in DTYPES:
            if source != target:
                plain = None if "bf" in target else (lambda m, x, t=target: x.astype(t))
                loop = lambda m, x, t=target: x.to(getattr(m, t))
                yield row(f"cast to {target},", source, [(MILLION,)], loop, plain)


def reductions() -> Iterator[Row]:
    """Everything, rows, columns, the middle axis, narrow rows."""
    shapes = [
        ((4 * MILLION,), 0),
        ((4096, 1024), 1),
        ((4096, 1024), 0),
        ((64, 256, 256), 1),
        ((400_000, 10), 1),
    ]
    shapes += [((400_000, 10), 0), ((10, 400_000), 1), ((64, 64, 1024), 2), ((65_536,), 0), ((256, 64), 1)]
    for shape, axis in shapes:
        for dtype in ("float32", "float64", "bfloat16", "int64"):
            for name in ("sum", "amax"):
                loop = lambda m, x, axis=axis, name=name: getattr(m, name)(x, axis)
                yield row(f"{name} over {axis},", dtype, [shape], loop, loop)
            extreme = lambda m, x, axis=axis: m.argmax(x, axis)
            yield row(f"argmax over {axis},", dtype, [shape], extreme, extreme)
    yield row("prod over 1,", "float32", [(4096, 1024)], lambda m, x: m.prod(x, 1), lambda m, x: x.prod(1))
    yield row("mean over 1,", "float32", [(4096, 1024)], lambda m, x: x.mean(1), lambda m, x: x.mean(1))
    yield row("var over 1,", "float32", [(4096, 1024)], lambda m, x: x.var(1), lambda m, x: x.var(1))
    yield row("logsumexp over 1,", "float32", [(4096, 1024)], lambda m, x: m.logsumexp(x, 1))
    yield row("any over 1,", "bool", [(4096, 1024)], lambda m, x: m.any(x, 1), lambda m, x: x.any(1))
    yield row("all over 0,", "bool", [(4096, 1024)], lambda m, x: m.all(x, 0), lambda m, x: x.all(0))
    yield row("count", "bool", [(4 * MILLION,)], lambda m, x: x.sum(), lambda m, x: x.sum())
    yield row(
        "sum of a transpose over 1,",
        "float32",
        [(2048, 2048)],
        lambda m, x: x.T.sum(1),
        lambda m, x: x.T.sum(1),
    )
    for dtype in ("float32", "float64", "int64"):
        for shape, axis in [((4 * MILLION,), 0), ((4096, 1024), 1), ((4096, 1024), 0), ((64, 256, 256), 1)]:
            loop = lambda m, x, axis=axis: m.cumsum(x, axis)
            yield row(f"cumsum over {axis},", dtype, [shape], loop, loop)


def there_and_back(function: Loop) -> Loop:
    """Forward and backward, with the output's own memory order as cotangent."""
    kept: dict[str, Any] = {}

    def loop(m: Any, *inputs: Any) -> None:
        leaves = [x.requires_grad_() if x.dtype.is_floating_point else x for x in inputs]
        out = function(m, *leaves)
        if out.shape == ():
            out.backward()
        else:
            if m.__name__ not in kept:
                kept[m.__name__] = m.tensor(numbers("float32", *out.shape)).to(out.dtype)
            out.backward(gradient=kept[m.__name__])
        for x in leaves:
            x.grad = None

    return loop


def rows() -> Iterator[Row]:
    """Softmax, normalisation, losses: forward alone, and with backward."""
    shapes = [(4096, 1024), (65_536, 10), (4096, 128), (64, 32_768)]
    for dtype in ("float32", "bfloat16"):
        for shape in shapes if dtype == "float32" else shapes[:1]:
            soft, log = (lambda m, x: m.softmax(x, -1)), (lambda m, x: m.log_softmax(x, -1))
            yield row("softmax", dtype, [shape], soft)
            yield row("softmax, backward", dtype, [shape], there_and_back(soft))
            yield row("log_softmax, backward", dtype, [shape], there_and_back(log))
            norm = lambda m, x, w, b: m.nn.functional.layer_norm(x, (w.shape[0],), w, b)
            sizes = [shape, shape[1:], shape[1:]]
            yield row("layer_norm", dtype, sizes, norm)
            yield row("layer_norm, backward", dtype, sizes, there_and_back(norm))
            rms = lambda m, x, w: m.nn.functional.rms_norm(x, (w.shape[0],), w)
            yield row("rms_norm", dtype, sizes[:2], rms)
            yield row("rms_norm, backward", dtype, sizes[:2], there_and_back(rms))
            loss = lambda m, x: m.nn.functional.cross_entropy(x, m.zeros(x.shape[0], dtype=m.int64))
            yield row("cross_entropy, backward", dtype, [shape], there_and_back(loss))
    n = 4 * MILLION
    gated = lambda m, x, y: (m.nn.functional.gelu(x) * m.sigmoid(y) + x).sum()
    yield row("gated, backward", "float32", [(n,), (n,)], there_and_back(gated))
    for name in ("gelu", "silu", "relu", "sigmoid", "tanh"):
        function = lambda m, x, name=name: getattr(m.nn.functional, name, None) or getattr(m, name)
        yield row(f"{name}, backward", "float32", [(n,)], there_and_back(lambda m, x, f=function: f(m, x)(x)))
    yield row("mul, backward", "float32", [(n,), (n,)], there_and_back(lambda m, x, y: x * y))
    yield row("div, backward", "float32", [(n,), (n,)], there_and_back(lambda m, x, y: x / y))
    yield row("sum, backward", "float32", [(n,)], there_and_back(lambda m, x: x.sum()))
    yield row(
        "add a row, backward", "float32", [(4096, 1024), (1024,)], there_and_back(lambda m, x, y: x + y)
    )
    yield row(
        "mse, backward",
        "float32",
        [(n,), (n,)],
        there_and_back(lambda m, x, y: m.nn.functional.mse_loss(x, y)),
    )


FAMILIES = (elementwise, layouts, casts, reductions, rows)


TURN_SECONDS = 0.004
CALL_SECONDS = 5e-5


def fastest(entry: Row, seconds: float) -> tuple[dict[str, float], dict[str, str]]:
    """Microseconds of the fastest call of each library, and why a library is not there."""
    ready, absent = {}, {}
    for library, maker in entry.makers.items():
        try:
            work = maker()
            ready[library] = (work, max(1, round(repetitions(work) * CALL_SECONDS / SAMPLE_SECONDS)))
        except Exception as error:  # a library that lacks the work is a line of the report, not the end of it
            absent[library] = f"{library}: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
    best = dict.fromkeys(ready, float("inf"))
    end = time.perf_counter() + seconds * len(ready)
    while time.perf_counter() < end:
        for library, (work, calls) in ready.items():
            turn = time.perf_counter() + TURN_SECONDS
            while (start := time.perf_counter()) < turn:
                for _ in range(calls):
                    work()
                best[library] = min(best[library], (time.perf_counter() - start) / calls)
    return {library: 1e6 * best[library] for library in best}, absent


def line(name: str, best: dict[str, float], absent: dict[str, str]) -> list[str]:
    """Cells of the table: work, our time, each peer's with our ratio to it, the ratio to the best."""
    peers = [library for library in best if library != "wengert"]
    if "wengert" not in best or not peers:
        return [name, "", "", "", "not measured: " + "; ".join(absent.values())]
    ours = best["wengert"]
    cell = lambda peer: f"{best[peer]:.4g} ({ours / best[peer]:.2f})" if peer in peers else ""
    worst = ours / min(best[peer] for peer in peers)
    return [name, f"{ours:.4g}", cell("torch"), cell("numpy"), f"{worst:.2f}"]


def main() -> int:
    """Measure and print, and write the table where `--output` says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.15, help="per library and row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--output", type=Path, help="file for the Markdown table")
    options = parser.parse_args()
    threads = confine(options.threads)
    lines = ["| work | wengert, us | torch | numpy | of the best |", "|---|---|---|---|---|"]
    for entry in (entry for family in FAMILIES for entry in family()):
        if options.only.lower() in entry.name.lower():
            cells = line(entry.name, *fastest(entry, options.seconds))
            lines.append(" | ".join(cells).join(("| ", " |")))
            print(
                f"{cells[0]:<52} {cells[1]:>9}  torch {cells[2]:<18} numpy {cells[3]:<18} {cells[4]}",
                flush=True,
            )
    if options.output is not None:
        note = f"\n{threads} core(s); the fastest call within {options.seconds} s, in parentheses ours over theirs.\n"
        options.output.write_text("\n".join(lines) + "\n" + note, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
