"""How cost grows: per node of a graph with its length, per element with the layout of short axes; beside
torch.

    python benches/peers/growth.py [--only curves|layouts] [--most NODES] [--output DIR]

Libraries take turns, and what counts is the fastest of several runs. It writes `growth.md` and two pictures,
`growth_nodes.png` and `growth_layouts.png`.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from libraries import TORCHLIKE, versions
from run import RESULTS, confine, processor

RNG = np.random.default_rng(0)
WIDTH = 28
HIDDEN = 32
PASSES = 3
ROWS = 31_843
INNER = range(1, 9)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def chain(m: Any, count: int) -> Callable[[], Any]:
    """A chain of `count` products of 28 numbers."""
    x = m.tensor(np.linspace(0.9, 1.1, WIDTH), requires_grad=True)
    w = m.tensor(np.ones(WIDTH))

    def forward() -> Any:
        y = x
        for _ in range(count):
            y = y * w
        return y.sum()

    return forward


def cells(m: Any, count: int) -> Callable[[], Any]:
    """An LSTM cell, written out, over a sequence of `count` steps that is sliced step by step."""
    rng = np.random.default_rng(0)
    w = m.tensor(rng.normal(size=(2 * HIDDEN, 4 * HIDDEN)) * 0.1, requires_grad=True)
    b = m.tensor(np.zeros(4 * HIDDEN), requires_grad=True)
    sequence = m.tensor(rng.normal(size=(count, 1, HIDDEN)), requires_grad=True)

    def forward() -> Any:
        h = c = m.zeros(1, HIDDEN, dtype=m.float64)
        for t in range(count):
            i, f, g, o = (m.cat([sequence[t], h], 1) @ w + b).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h.sum()

    return forward


def listed(m: Any, count: int) -> Callable[[], Any]:
    """Python's `sum` of a list of `count` tensors."""
    x = m.tensor(np.linspace(0.9, 1.1, WIDTH), requires_grad=True)
    parts = [x * 1.0 for _ in range(min(count, 1000))]
    parts = [parts[i % len(parts)].detach().requires_grad_(True) for i in range(count)]
    return lambda: sum(parts).sum()


CURVES: dict[str, tuple[Callable[[Any, int], Callable[[], Any]], int]] = {
    "product of 28 numbers": (chain, 1_000_000),
    "LSTM cell, sliced sequence": (cells, 10_000),
    "sum of a list": (listed, 100_000),
}


def seconds(forward: Callable[[], Any], runs: int) -> tuple[float, int]:
    """The fastest of `runs` runs forward and back, and the memory that the first graph takes."""
    fastest, grown = float("inf"), 0
    for i in range(runs):
        gc.collect()
        before = resident()
        start = time.perf_counter()
        y = forward()
        if i == 0:
            middle = time.perf_counter()
            grown = resident() - before
            start += time.perf_counter() - middle
        y.backward()
        del y
        fastest = min(fastest, time.perf_counter() - start)
    return fastest, grown


def curves(
    libraries: dict[str, Any], most: int
) -> tuple[list[str], dict[str, dict[str, list[tuple[int, float]]]]]:
    """The cost of a node of each graph at each length: lines of Markdown, and the points."""
    lines, points = ["## Per node of a graph", ""], {}
    for name, (make, limit) in CURVES.items():
        points[name] = {library: [] for library in libraries}
        heads = [f"{library}, us" for library in libraries]
        lines += [
            f"{name}, forward and back:",
            "",
            f"| nodes | {' | '.join(heads)} | bytes in memory |",
            "|---" * (len(heads) + 2) + "|",
        ]
        count = 10
        while count <= min(limit, most):
            cost = {}
            for library, m in libraries.items():
                time_of, grown = seconds(make(m, count), max(3, min(200, 50_000 // count)))
                cost[library] = (time_of / count * 1e6, grown / count)
                points[name][library].append((count, cost[library][0]))
            shown = [f"{count:,}", *(f"{us:.3g}" for us, _ in cost.values())]
            lines.append(f"| {' | '.join(shown)} | {cost['wengert'][1]:.0f} |")
            print(lines[-1], flush=True)
            count *= 10
        lines.append("")
    return lines, points


def layouts(m: Any, inner: int, rows: int = ROWS) -> dict[str, Any]:
    """Tensors of `rows x inner` numbers, or that broadcast to it."""
    whole = lambda *shape: m.tensor(RNG.uniform(0.5, 1.5, shape))
    return {
        "contiguous": whole(rows, inner),
        "one column": whole(rows, 1),
        "one row": whole(1, inner),
        "first columns": whole(rows, inner + 1)[:, :inner],
        "other columns": whole(rows, 2 * inner)[:, ::2],
        "other rows": whole(2 * rows, inner)[::2],
        "transposed": whole(inner, rows).T,
    }


def spread(layout: str, inner: int) -> float:
    """The memory that such a tensor lies in, in contiguous tensors of its shape; cache lines are read
    whole."""
    return {"first columns": (inner + 1) / inner, "other columns": 2.0, "other rows": 2.0}.get(layout, 1.0)


def loops(m: Any) -> dict[str, Callable[..., Any]]:
    """Functions of two and of three operands."""
    return {"x * y": lambda x, y: x * y, "where(c, x, y)": lambda x, y: m.where(y > 1.0, x, y)}


def fastest(work: Callable[[], Any], runs: int = 12) -> float:
    """The fastest of several runs, in seconds."""
    work()
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def both_ways(f: Callable[..., Any], x: Any, y: Any) -> Callable[[], Any]:
    """`f` forward and back."""
    x, y = x.detach().requires_grad_(True), y.detach().requires_grad_(True)
    g = f(x, y).detach() * 0 + 1

    def work() -> None:
        x.grad = y.grad = None
        f(x, y).backward(g)

    return work


def grid(m: Any) -> tuple[list[str], list[str], np.ndarray]:
    """Each layout's time over that of the contiguous one: names of the rows and columns, and the ratios.

    Every cell is timed in several passes over the grid, so that what disturbs one of them is not its time.
    """
    passes = [times(m) for _ in range(PASSES)]
    taken = {key: min(found[key] for found in passes) for key in passes[0]}
    rows: dict[str, list[float]] = {}
    for (name, layout, inner), seconds in taken.items():
        if layout != "contiguous":
            over = taken[name, "contiguous", inner]
            rows.setdefault(f"{name[0]}, {layout}, {name[1]}", []).append(seconds / over)
    return list(rows), [str(inner) for inner in INNER], np.array(list(rows.values()))


def over_as_many_bytes(m: Any, name: str, layout: str, inner: int) -> float:
    """The time of a cell over that of contiguous operands with so many more rows that they lie in as many
    bytes: of two operands and the result, one is spread.
    """
    f, rows = loops(m)[name], round(ROWS * (2 + spread(layout, inner)) / 3)
    cell = (layouts(m, inner)["contiguous"], layouts(m, inner)[layout])
    whole = (layouts(m, inner, rows)["contiguous"], layouts(m, inner, rows)["contiguous"])
    taken = [[fastest(lambda pair=pair: f(*pair)) for pair in (cell, whole)] for _ in range(4 * PASSES)]
    return min(a for a, _ in taken) / min(b for _, b in taken)


def beside_bytes(m: Any, names: list[str], columns: list[str], table: np.ndarray) -> list[str]:
    """The cells that cost more than twice the contiguous layout, beside contiguous operands of as many
    bytes."""
    lines = [
        "Cells above 2, beside contiguous operands that lie in as many bytes:",
        "",
        "| cell | inner axis | over the contiguous layout | over as many bytes |",
        "|---|---|---|---|",
    ]
    for i, j in np.argwhere(table > 2.0):
        name, layout, direction = names[i].rsplit(", ", 2)
        if direction == "forward":
            ratio = over_as_many_bytes(m, name, layout, int(columns[j]))
            lines.append(f"| {names[i]} | {columns[j]} | {table[i, j]:.2f} | {ratio:.2f} |")
        else:
            lines.append(f"| {names[i]} | {columns[j]} | {table[i, j]:.2f} | |")
    return lines


def times(m: Any) -> dict[tuple[tuple[str, str], str, int], float]:
    """Seconds by function and direction, layout, and length of the inner axis: one pass over the grid."""
    taken = {}
    for name, f in loops(m).items():
        for direction in ("forward", "forward and back"):
            for inner in INNER:
                # An operand of its own, so that the contiguous case reads two arrays as well.
                x = layouts(m, inner)["contiguous"]
                for layout, y in layouts(m, inner).items():
                    work = (lambda x=x, y=y, f=f: f(x, y)) if direction == "forward" else both_ways(f, x, y)
                    taken[(name, direction), layout, inner] = fastest(work)
    return taken


def draw_curves(points: dict[str, dict[str, list[tuple[int, float]]]], path: Path) -> None:
    """One panel per graph."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(points), figsize=(4.2 * len(points), 3.4), layout="constrained")
    for panel, (name, found) in zip(panels, points.items(), strict=True):
        for library, curve in found.items():
            panel.loglog(*zip(*curve, strict=True), marker="o", label=library)
        panel.set(title=name, xlabel="nodes or steps", ylabel="us each, forward and back")
        panel.set_ylim(bottom=0.1)
        panel.grid(alpha=0.3)
    panels[0].legend()
    figure.savefig(path, dpi=110)


def draw_grid(names: list[str], columns: list[str], table: np.ndarray, path: Path) -> None:
    """A cell per layout and length: white where it costs what the contiguous layout does."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, panel = plt.subplots(figsize=(8, 0.3 * len(names) + 1.2), layout="constrained")
    picture = panel.imshow(table, cmap="Reds", vmin=1, vmax=4, aspect="auto")
    panel.set_xticks(range(len(columns)), columns)
    panel.set_yticks(range(len(names)), names, fontsize=7)
    panel.set_xlabel("length of the inner axis")
    for i, j in np.ndindex(*table.shape):
        panel.text(j, i, f"{table[i, j]:.1f}", ha="center", va="center", fontsize=7)
    figure.colorbar(picture, label="time / time of the contiguous layout")
    figure.savefig(path, dpi=110)


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=("curves", "layouts"))
    parser.add_argument("--most", type=int, default=1_000_000, help="the longest graph")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    confine(1)
    import importlib

    installed = versions()
    libraries = {
        name: importlib.import_module(name) for name in TORCHLIKE if installed[name] != "not installed"
    }
    for m in libraries.values():
        m.set_num_threads(1)
    options.output.mkdir(parents=True, exist_ok=True)
    lines = [
        "# How cost grows",
        "",
        f"One thread of {processor()}; "
        + ", ".join(f"{name} {installed[name]}" for name in libraries)
        + ". Made by `python benches/peers/growth.py`.",
        "",
    ]
    if options.only != "layouts":
        found, points = curves(libraries, options.most)
        lines += [*found, "![Cost of a node against the length of the graph](growth_nodes.png)", ""]
        draw_curves(points, options.output / "growth_nodes.png")
    if options.only != "curves":
        lines += [
            "## Per element of short axes",
            "",
            f"{ROWS:,} rows, float64; the time over that of two contiguous operands.",
            "",
        ]
        above: list[str] = []
        for name, m in libraries.items():
            names, columns, table = grid(m)
            lines.append(
                f"{name}: median {np.median(table):.2f}, largest {table.max():.2f} "
                f"({names[table.max(1).argmax()]})."
            )
            print(lines[-1], flush=True)
            if name == "wengert":
                above = beside_bytes(m, names, columns, table)
                draw_grid(names, columns, table, options.output / "growth_layouts.png")
        lines += ["", "![Time over that of the contiguous layout](growth_layouts.png)", "", *above, ""]
    (options.output / "growth.md").write_text("\n".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
