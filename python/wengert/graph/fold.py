"""Makes large graphs small enough to look at: repetitions are folded, and what is still too much is left out.

Between two places where a single value carries everything (as between the layers of a network, the steps of a
recurrent one, the blocks of a transformer) lies a block. Blocks that follow each other and are alike, alone
or in groups, are drawn once; one box stands for the others. A notice tells what was left out.
"""

from collections.abc import Sequence
from typing import Any

from .layout import Link
from .tape import Box, Graph, count_text, number_text

__all__ = ["cap", "fold"]

# The longest group of blocks that is recognised, and the fewest operations worth a fold.
LONGEST, FEWEST = 32, 4
OPERATIONS = ("operation", "output")

Block = list[int]


def fold(graph: Graph) -> Graph:
    """The graph with repetitions folded, the same object where there are none."""
    blocks = _blocks(graph)
    inputs: list[list[Link]] = [[] for _ in graph.boxes]
    for link in graph.links:
        inputs[link.target].append(link)
    numbers: dict[Any, int] = {}
    signs = [numbers.setdefault(_sign(graph, block, inputs), len(numbers)) for block in blocks]
    folded: list[tuple[list[int], int]] = []
    at = 0
    while at < len(signs):
        period, times = _repeat(signs, at)
        hidden = [box for block in blocks[at + period : at + period * times] for box in block]
        if times > 2 and len(hidden) >= FEWEST:
            folded.append((hidden, times - 1))
            at += period * times
        else:
            at += 1
    return _replace(graph, folded) if folded else graph


def _blocks(graph: Graph) -> list[Block]:
    """Operations in order, cut behind each one that alone is used later."""
    last_use = [-1] * len(graph.boxes)
    for link in graph.links:
        if graph.boxes[link.source].kind in OPERATIONS:
            last_use[link.source] = max(last_use[link.source], link.target)
    blocks: list[Block] = [[]]
    open_until = -1
    for i, box in enumerate(graph.boxes):
        if box.kind not in OPERATIONS:
            continue
        blocks[-1].append(i)
        if open_until <= i:
            blocks.append([])
        open_until = max(open_until, last_use[i])
    return [block for block in blocks if block]


def _sign(graph: Graph, block: Block, inputs: list[list[Link]]) -> Any:
    """Equal for blocks that are alike: same operations on same shapes, joined in the same way."""
    place = {box: p for p, box in enumerate(block)}
    rows = []
    for i in block:
        box = graph.boxes[i]
        sources: list[Any] = []
        for link in inputs[i]:
            source = graph.boxes[link.source]
            if source.kind in OPERATIONS:
                sources.append((place.get(link.source, -1), link.port))
            else:
                sources.append((source.kind, tuple(source.shapes), tuple(source.dtypes)))
        rows.append((box.title, tuple(box.shapes), tuple(box.dtypes), tuple(box.names), tuple(sources)))
    return tuple(rows)


def _repeat(signs: Sequence[int], at: int) -> tuple[int, int]:
    """(period, times) of the repetition from `at` that covers most, the shortest period first."""
    best = (1, 1)
    for period in range(1, min(LONGEST, (len(signs) - at) // 2) + 1):
        same = 0
        while at + period + same < len(signs) and signs[at + same] == signs[at + period + same]:
            same += 1
        times = same // period + 1
        if times > 1 and times * period > best[0] * best[1]:
            best = (period, times)
    return best


def _replace(graph: Graph, folded: list[tuple[list[int], int]]) -> Graph:
    """Puts one box in place of each list of operations; leaves used there alone go with them."""
    goes: dict[int, int] = {box: k for k, (hidden, _) in enumerate(folded) for box in hidden}
    users: dict[int, set[int | None]] = {}
    for link in graph.links:
        if graph.boxes[link.source].kind not in OPERATIONS:
            users.setdefault(link.source, set()).add(goes.get(link.target))
    for leaf, where in users.items():
        (only,) = where if len(where) == 1 else (None,)
        if only is not None:
            goes[leaf] = only
    members: list[list[Box]] = [[] for _ in folded]
    for i, k in goes.items():
        members[k].append(graph.boxes[i])
    new = Graph([], [], list(graph.notices))
    number: dict[int, int] = {}
    boxes = [0] * len(folded)
    last = {hidden[-1]: k for k, (hidden, _) in enumerate(folded)}
    for i, box in enumerate(graph.boxes):
        if i not in goes:
            number[i] = len(new.boxes)
            new.boxes.append(box)
        elif i in last:
            k = last[i]
            boxes[k] = len(new.boxes)
            new.boxes.append(_fold_box(box, members[k], folded[k][1]))
    for i, k in goes.items():
        number[i] = boxes[k]
    seen = set()
    for link in graph.links:
        source, target = number[link.source], number[link.target]
        port = 0 if link.source in goes else link.port
        if source != target and (source, target, port) not in seen:
            seen.add((source, target, port))
            new.links.append(Link(source, target, port))
    hidden = sum(len(hidden) for hidden, _ in folded)
    new.notices.append(
        f"repetitions are folded: {count_text(hidden, 'operation')} in "
        f"{count_text(len(folded), 'box', 'boxes')}"
    )
    return new


def _fold_box(last: Box, members: list[Box], times: int) -> Box:
    """The box that stands for `members`, whose result is that of `last`."""
    operations = [box for box in members if box.kind in OPERATIONS]
    leaves = sum(box.kind in ("parameter", "leaf") for box in members)
    norms = [norm for box in operations for norm in box.norms if norm is not None]
    note = count_text(len(operations) // times, "operation") + " each"
    if leaves:
        note += f", {count_text(leaves, 'leaf', 'leaves')} in all"
    if norms:
        note += f", |gradient| {number_text(min(norms))} to {number_text(max(norms))}"
    return Box(
        "fold",
        f"the same {times:,} more times" if times > 1 else "the same once more",
        last.shapes,
        last.dtypes,
        saved_bytes=sum(box.saved_bytes for box in operations),
        freed=any(box.freed for box in operations),
        norms=[None] * len(last.shapes),
        stands_for=len(operations),
        note=note,
    )


def cap(graph: Graph, limit: int) -> Graph:
    """The `limit` boxes nearest to the outputs; one box stands for the rest, and a notice says so."""
    if len(graph.boxes) <= limit:
        return graph
    inputs: list[list[int]] = [[] for _ in graph.boxes]
    for link in graph.links:
        inputs[link.target].append(link.source)
    used = {link.source for link in graph.links}
    near = [i for i in range(len(graph.boxes)) if graph.boxes[i].kind == "output" or i not in used]
    seen = set(near)
    for i in near:
        fresh = [j for j in inputs[i] if j not in seen]
        seen.update(fresh)
        near += fresh
    kept = sorted(near[: max(limit - 1, 1)])
    number = {i: k + 1 for k, i in enumerate(kept)}
    rest = [box for i, box in enumerate(graph.boxes) if i not in number]
    operations = sum(box.stands_for for box in rest if box.kind in (*OPERATIONS, "fold"))
    leaves = sum(box.kind in ("parameter", "leaf") for box in rest)
    title = f"{count_text(operations, 'operation')} and {count_text(leaves, 'leaf', 'leaves')} not drawn"
    saved = sum(box.saved_bytes for box in rest)
    new = Graph([Box("rest", title, saved_bytes=saved, stands_for=operations)], [], list(graph.notices))
    new.boxes += [graph.boxes[i] for i in kept]
    from_rest = set()
    for link in graph.links:
        if link.target in number and link.source in number:
            new.links.append(Link(number[link.source], number[link.target], link.port))
        elif link.target in number and link.target not in from_rest:
            from_rest.add(link.target)
            new.links.append(Link(0, number[link.target]))
    new.notices.append(
        f"{title}: only the {len(kept):,} boxes nearest to the outputs are; raise max_nodes (now {limit:,}), "
        "or take .dot, which is complete unless max_nodes is given"
    )
    return new
