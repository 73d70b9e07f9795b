"""Places the boxes of a layered graph and routes its edges, as Sugiyama, Tagawa and Toda do it (IEEE SMC-11,
1981).

Four steps: ranks by longest path; edges that pass several ranks get a bend point in each; boxes of a rank are
ordered by the barycentre of their neighbours; positions come from isotonic regression, which is the exact
least-squares answer to "as near to the neighbours as the gaps allow". Read next: `svg.py`, which draws the
result.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Layout", "Link", "arrange"]

# Distances in pixels: between boxes of a rank, between bend points, between ranks.
GAP, BEND_GAP, RANK_GAP = 28.0, 16.0, 44.0
SWEEPS = 12

Point = tuple[float, float]


@dataclass(frozen=True)
class Link:
    """From output `port` of box `source` to box `target`."""

    source: int
    target: int
    port: int = 0


@dataclass
class Layout:
    """Centres of the boxes, and per link its points from the source's lower to the target's upper edge."""

    centres: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


@dataclass
class _Item:
    """A box, or a bend point of an edge where `box` is None."""

    rank: int
    half: float
    box: int | None
    # The longest paths from the first boxes to here, and from here to the last.
    depth: int
    height: int
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)
    # Neighbours that decide where this stands: along the longest path, so that the main line of a graph is
    # straight.
    strong_up: list[int] = field(default_factory=list)
    strong_down: list[int] = field(default_factory=list)
    # A leaf, or made of one leaf alone and followed by nothing: stands wherever its users do.
    loose: bool = False
    x: float = 0.0


def arrange(sizes: Sequence[tuple[float, float]], links: Sequence[Link]) -> Layout:
    """A picture of boxes of these (width, height), given so that every link leads from a box to a later
    one."""
    ranks, depths, heights = _ranks(len(sizes), links)
    items = [_Item(ranks[i], size[0] / 2, i, depths[i], heights[i]) for i, size in enumerate(sizes)]
    chains = _bend(items, links)
    _strengthen(items)
    layers = _first_order(items)
    layers = _uncross(items, layers)
    _place(items, layers)
    return _measure(items, layers, sizes, links, chains)


def _ranks(count: int, links: Sequence[Link]) -> tuple[list[int], list[int], list[int]]:
    """Ranks, and the longest paths to and from each box. A box with few inputs moves down to its users."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for link in links:
        before[link.target].append(link.source)
        after[link.source].append(link.target)
    depths, heights = [0] * count, [0] * count
    for box in range(count):
        depths[box] = max((depths[source] + 1 for source in before[box]), default=0)
    ranks = list(depths)
    for box in reversed(range(count)):
        heights[box] = max((heights[target] + 1 for target in after[box]), default=0)
        if after[box] and len(set(before[box])) <= len(set(after[box])):
            ranks[box] = min(ranks[target] for target in after[box]) - 1
    first = min(ranks, default=0)
    return [rank - first for rank in ranks], depths, heights


def _bend(items: list[_Item], links: Sequence[Link]) -> dict[tuple[int, int], list[int]]:
    """Adds bend points. Links from one output share them, so that a value used often is one line with
    branches."""
    chains: dict[tuple[int, int], list[int]] = {}
    for link in links:
        chain = chains.setdefault((link.source, link.port), [link.source])
        for rank in range(items[link.source].rank + len(chain), items[link.target].rank):
            items.append(_Item(rank, 1.0, None, items[link.source].depth, items[link.target].height))
            _connect(items, chain[-1], len(items) - 1)
            chain.append(len(items) - 1)
        last = chain[items[link.target].rank - items[link.source].rank - 1]
        if link.target not in items[last].down:
            _connect(items, last, link.target)
    return chains


def _connect(items: list[_Item], above: int, below: int) -> None:
    items[above].down.append(below)
    items[below].up.append(above)


def _strengthen(items: list[_Item]) -> None:
    """A box follows its deepest inputs, and of its users those that lead furthest; a bend only if there is no
    box."""
    for i, item in enumerate(items):
        deepest = max((items[j].depth for j in item.up), default=0)
        item.strong_up = [j for j in item.up if items[j].depth == deepest]
        for j in item.strong_up:
            items[j].strong_down.append(i)
    for item in items:
        alone = not item.strong_down and item.box is not None and len(item.up) == 1
        item.loose = not item.up or (alone and items[item.up[0]].loose)
        near = item.strong_down or item.down
        boxes = [j for j in near if items[j].box is not None]
        near = boxes if boxes and item.box is not None else near
        highest = max((items[j].height for j in near), default=0)
        item.strong_down = [j for j in near if items[j].height == highest]


def _first_order(items: list[_Item]) -> list[list[int]]:
    """Ranks filled in the order of a depth-first walk from the results back."""
    layers: list[list[int]] = [[] for _ in range(max((item.rank for item in items), default=-1) + 1)]
    seen: set[int] = set()
    stack = [i for i in reversed(range(len(items))) if not items[i].down]
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        layers[items[i].rank].append(i)
        stack.extend(reversed(items[i].up))
    return layers


def _crossings(items: list[_Item], layers: list[list[int]]) -> int:
    """How many pairs of edge pieces cross: inversions between neighbouring ranks."""
    total = 0
    for upper, lower in pairwise(layers):
        place = {i: p for p, i in enumerate(lower)}
        seen: list[int] = []
        for i in upper:
            ends = sorted(place[j] for j in items[i].down)
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _uncross(items: list[_Item], layers: list[list[int]]) -> list[list[int]]:
    """Sweeps up and down, sorting each rank by the mean place of the neighbours there; keeps the best order
    met."""
    best, fewest = [list(layer) for layer in layers], _crossings(items, layers)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        for layer, fixed in _pairs(layers, down):
            place = {i: p for p, i in enumerate(fixed)}
            centre: dict[int, float] = {}
            for p, i in enumerate(layer):
                near = items[i].up if down else items[i].down
                centre[i] = sum(place[j] for j in near) / len(near) if near else p * len(fixed) / len(layer)
            layer.sort(key=centre.__getitem__)
        crossings = _crossings(items, layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _pairs(layers: list[list[int]], down: bool) -> list[tuple[list[int], list[int]]]:
    """(rank to move, its fixed neighbour) in the order of a sweep."""
    if down:
        return list(zip(layers[1:], layers))
    return list(zip(layers[-2::-1], layers[:0:-1]))


def _place(items: list[_Item], layers: list[list[int]]) -> None:
    """Gives every item its x: sweeps both ways, then one down for straight lines and one up that brings
    leaves near."""
    for layer in layers:
        _pack(items, layer, [0.0] * len(layer))
    for sweep in range(2 * SWEEPS + 2):
        down, settle = sweep % 2 == 0, sweep >= 2 * SWEEPS
        for layer in layers if down else layers[::-1]:
            wanted = []
            for i in layer:
                item = items[i]
                if settle:
                    near = item.strong_up if down else item.strong_down if item.loose else []
                elif sweep < SWEEPS:
                    near = (
                        (item.strong_up if down else item.strong_down) or item.strong_up or item.strong_down
                    )
                else:
                    near = item.strong_up + item.strong_down
                wanted.append(sum(items[j].x for j in near) / len(near) if near else item.x)
            _pack(items, layer, wanted)


def _pack(items: list[_Item], layer: list[int], wanted: list[float]) -> None:
    """Moves a rank as near to the wanted places as order and gaps allow; what lies on the longest path stands
    firm."""
    offset, offsets = 0.0, []
    for before, i in zip([None, *layer], layer):
        if before is not None:
            gap = GAP if items[before].box is not None and items[i].box is not None else BEND_GAP
            offset += items[before].half + gap + items[i].half
        offsets.append(offset)
    longest = max(items[i].depth + items[i].height for i in layer)
    weights = [(1.0 + longest - items[i].depth - items[i].height) ** -2 for i in layer]
    for i, x in zip(layer, _nearest(wanted, weights, offsets)):
        items[i].x = x


def _nearest(wanted: Sequence[float], weights: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """The x that minimise the weighted sum of (x - wanted)^2, with x - offsets not falling: pool adjacent
    violators."""
    # Blocks of items that touch: weighted sum of wants less offsets, weight, count.
    blocks: list[tuple[float, float, int]] = []
    for want, weight, offset in zip(wanted, weights, offsets):
        total, count = weight * (want - offset), 1
        while blocks and blocks[-1][0] * weight >= total * blocks[-1][1]:
            total, weight, count = total + blocks[-1][0], weight + blocks[-1][1], count + blocks[-1][2]
            blocks.pop()
        blocks.append((total, weight, count))
    levels = [total / weight for total, weight, count in blocks for _ in range(count)]
    return [level + offset for level, offset in zip(levels, offsets)]


def _measure(
    items: list[_Item],
    layers: list[list[int]],
    sizes: Sequence[tuple[float, float]],
    links: Sequence[Link],
    chains: dict[tuple[int, int], list[int]],
) -> Layout:
    """Heights of the ranks, and the points of the routes."""
    left = min((item.x - item.half for item in items), default=0.0)
    bands: list[Point] = []
    y = 0.0
    for layer in layers:
        height = max((sizes[items[i].box or 0][1] for i in layer if items[i].box is not None), default=0.0)
        bands.append((y, y + height))
        y += height + RANK_GAP
    centres = []
    for i in range(len(sizes)):
        top, bottom = bands[items[i].rank]
        centres.append((items[i].x - left, (top + bottom) / 2))
    routes = []
    for link in links:
        chain = chains[(link.source, link.port)]
        bends = chain[1 : items[link.target].rank - items[link.source].rank]
        points = [(centres[link.source][0], centres[link.source][1] + sizes[link.source][1] / 2)]
        for i in bends:
            points += [(items[i].x - left, edge) for edge in bands[items[i].rank]]
        routes.append(points)
    _enter(centres, sizes, links, routes)
    right = max((item.x + item.half for item in items), default=0.0)
    return Layout(centres, routes, right - left, max(y - RANK_GAP, 0.0))


def _enter(
    centres: list[Point],
    sizes: Sequence[tuple[float, float]],
    links: Sequence[Link],
    routes: list[list[Point]],
) -> None:
    """Ends each route on its target, near to where it comes from: what comes from straight above stays
    straight."""
    ends: dict[int, list[int]] = {}
    for k, link in enumerate(links):
        ends.setdefault(link.target, []).append(k)
    for target, ks in ends.items():
        ks.sort(key=lambda k: routes[k][-1][0])
        reach = max(sizes[target][0] / 2 - 14.0, 0.0)
        space = min(14.0, 2 * reach / max(len(ks) - 1, 1))
        offsets = [space * p for p in range(len(ks))]
        low, high = centres[target][0] - reach, centres[target][0] + reach
        wanted = [min(max(routes[k][-1][0], low), high) for k in ks]
        for p, (k, x) in enumerate(zip(ks, _nearest(wanted, [1.0] * len(ks), offsets))):
            x = min(max(x, low + offsets[p]), high - offsets[-1] + offsets[p])
            routes[k].append((x, centres[target][1] - sizes[target][1] / 2))
