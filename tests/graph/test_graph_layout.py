"""Graphs laid out, folded and capped."""

from itertools import pairwise

import pytest
import wengert as wg
from hypothesis import given, strategies as st
from samples.graph_samples import network, small
from wengert.graph import draw, layout
from wengert.graph.fold import cap, fold
from wengert.graph.layout import Link, arrange
from wengert.graph.tape import read


def overlap(a, b):
    """Whether two boxes (x, y, width, height) share area."""
    return abs(a[0] - b[0]) < (a[2] + b[2]) / 2 and abs(a[1] - b[1]) < (a[3] + b[3]) / 2


def placed(graph):
    sizes = wg.graph.svg.sizes(graph)
    result = arrange(sizes, graph.links)
    return [(*centre, *size) for centre, size in zip(result.centres, sizes)], result


@pytest.mark.parametrize("layers", [1, 5])
def test_boxes_do_not_overlap_and_edges_lead_down(layers):
    _, loss = network(layers)
    graph, _ = read(loss)
    boxes, result = placed(graph)
    for i, a in enumerate(boxes):
        assert a[0] - a[2] / 2 >= -1e-6
        assert a[0] + a[2] / 2 <= result.width + 1e-6
        assert not any(overlap(a, b) for b in boxes[:i])
    for link, route in zip(graph.links, result.routes):
        assert all(y1 >= y0 for (_, y0), (_, y1) in pairwise(route))
        (x0, y0), (x1, y1) = route[0], route[-1]
        source, target = boxes[link.source], boxes[link.target]
        assert (x0, y0) == (source[0], source[1] + source[3] / 2)
        assert y1 == target[1] - target[3] / 2
        assert abs(x1 - target[0]) <= target[2] / 2


@st.composite
def pictures(draw_from):
    """Boxes of any size, each link from one to a later one."""
    count = draw_from(st.integers(1, 18))
    sizes = [
        (float(draw_from(st.integers(20, 200))), float(draw_from(st.integers(20, 90)))) for _ in range(count)
    ]
    links = []
    for target in range(1, count):
        for source in draw_from(st.lists(st.integers(0, target - 1), max_size=3)):
            links.append(Link(source, target, draw_from(st.integers(0, 1))))
    return sizes, links


@given(pictures())
def test_any_graph_is_laid_out(picture):
    sizes, links = picture
    result = arrange(sizes, links)
    boxes = [(*centre, *size) for centre, size in zip(result.centres, sizes)]
    for i, a in enumerate(boxes):
        assert not any(overlap(a, b) for b in boxes[:i])
        assert a[0] - a[2] / 2 >= -1e-6
        assert a[0] + a[2] / 2 <= result.width + 1e-6
        assert a[1] - a[3] / 2 >= -1e-6
        assert a[1] + a[3] / 2 <= result.height + 1e-6
    for link, route in zip(links, result.routes):
        assert boxes[link.source][1] < boxes[link.target][1]
        assert all(y1 >= y0 for (_, y0), (_, y1) in pairwise(route))
        for (x0, y0), (x1, y1) in pairwise(route[1:-1]):
            # Where a line runs beside the boxes of a rank, it touches none.
            if x0 == x1:
                assert not any(overlap((x0, (y0 + y1) / 2, 0.0, 0.0), box) for box in boxes)


@given(st.lists(st.tuples(st.sampled_from("esta"), st.integers(1, 4)), min_size=1, max_size=60))
def test_folding_and_capping_lose_nothing(steps):
    x = wg.ones(2, requires_grad=True)
    y, older = x, x
    for kind, back in steps:
        made = y + older if kind == "a" else {"e": y.exp, "s": y.sin, "t": y.tanh}[kind]()
        y, older = made, y if back > 2 else older
    graph, _ = read(y.sum(), {"x": x})
    for small_one in (fold(graph), cap(graph, 7), cap(fold(graph), 5)):
        assert small_one.operations == graph.operations
        assert sum(b.saved_bytes for b in small_one.boxes) == sum(b.saved_bytes for b in graph.boxes)
        assert all(link.source < link.target for link in small_one.links)
        assert [box.names for box in small_one.boxes if box.kind == "output"] == [["loss"]]
    assert len(cap(graph, 7).boxes) <= 7


def test_edges_do_not_cross_boxes():
    """A skip connection goes round what it skips."""
    x = wg.ones(3, requires_grad=True)
    y = x.exp()
    graph, _ = read((y.sin().cos().tanh() + y).sum())
    boxes, result = placed(graph)
    for link, route in zip(graph.links, result.routes):
        for (x0, y0), (x1, y1) in pairwise(route):
            point = ((x0 + x1) / 2, (y0 + y1) / 2, 0.0, 0.0)
            others = [box for i, box in enumerate(boxes) if i not in (link.source, link.target)]
            assert not any(overlap(point, box) for box in others)


def test_a_chain_is_a_straight_line():
    x = wg.ones(3, requires_grad=True)
    graph, _ = read(x.exp().sin().cos().sum())
    _, result = placed(graph)
    assert len({round(x, 6) for x, _ in result.centres}) == 1


def test_crossings_are_removed():
    links = [Link(0, 4), Link(1, 3), Link(2, 5), Link(3, 6), Link(4, 6), Link(5, 6)]
    result = arrange([(40.0, 20.0)] * 7, links)
    x = [centre[0] for centre in result.centres]
    assert sorted(range(3), key=lambda i: x[i]) == sorted(range(3), key=lambda i: x[{0: 4, 1: 3, 2: 5}[i]])


def test_nearest_is_the_least_squares_answer():
    # Two that want the same place share the way, the heavier moving less.
    assert layout._nearest([0.0, 0.0], [1.0, 1.0], [0.0, 10.0]) == [-5.0, 5.0]
    assert layout._nearest([0.0, 0.0], [3.0, 1.0], [0.0, 10.0]) == [-2.5, 7.5]
    assert layout._nearest([0.0, 30.0], [1.0, 1.0], [0.0, 10.0]) == [0.0, 30.0]


def test_layout_of_nothing_and_of_one():
    assert arrange([], []).centres == []
    assert arrange([(40.0, 20.0)], []) == layout.Layout([(20.0, 10.0)], [], 40.0, 20.0)


# Large graphs.


def chain(length):
    x = wg.ones(3, requires_grad=True)
    y = x
    for _ in range(length):
        y = y.sin()
    return y.sum()


def test_repeated_layers_fold():
    model, loss = network(20)
    graph, _ = read(loss, model)
    folded = fold(graph)
    (box,) = [box for box in folded.boxes if box.kind == "fold"]
    # The first layer differs (its input is a constant), the second is drawn, eighteen are folded.
    assert box.title == "the same 18 more times"
    assert box.note == "2 operations each, 36 leaves in all"
    assert folded.operations == graph.operations
    assert sum(b.saved_bytes for b in folded.boxes) == sum(b.saved_bytes for b in graph.boxes)
    assert folded.notices == ["repetitions are folded: 36 operations in 1 box"]
    assert all(link.source < link.target for link in folded.links)


def test_steps_of_a_recurrent_network_fold_and_keep_their_weights():
    w = wg.ones(4, 4, requires_grad=True)
    h = wg.zeros(4)
    for _ in range(50):
        h = (h @ w).tanh()
    graph, _ = read(h.sum(), {"w": w})
    folded = fold(graph)
    (at,) = [i for i, box in enumerate(folded.boxes) if box.kind == "fold"]
    sources = {folded.boxes[link.source].title for link in folded.links if link.target == at}
    assert "w" in sources
    assert len(folded.boxes) < 15


def test_what_does_not_repeat_stays():
    _, _, loss = small()
    graph, _ = read(loss)
    assert fold(graph) is graph
    assert cap(graph, 100) is graph


def test_named_results_are_never_folded_away():
    x = wg.ones(3, requires_grad=True)
    y, kept = x, None
    for step in range(40):
        y = y.sin()
        kept = y if step == 20 else kept
    graph, _ = read({"last": y.sum(), "middle": kept})
    names = [name for box in fold(graph).boxes for name in box.names]
    assert names == ["middle", "last"]


def test_pictures_are_capped_with_notice():
    x = wg.ones(3, requires_grad=True)
    y = x
    for k in range(300):
        y = y * float(k) if k % 3 else y.sin() + float(k) if k % 7 else y.exp()
    drawing = draw(y.sum(), max_nodes=50, collapse=False)
    assert len(drawing._picture.boxes) == 50
    (notice,) = drawing.notices
    assert notice.endswith(
        "not drawn: only the 49 boxes nearest to the outputs are; raise max_nodes (now 50), or take .dot, "
        "which is complete unless max_nodes is given"
    )
    assert drawing._picture.boxes[0].kind == "rest"
    assert drawing._picture.operations == drawing.graph.operations
    assert "not drawn" in drawing.svg


def test_ten_thousand_operations():
    loss = chain(10_000)
    drawing = draw(loss)
    assert drawing.dot.count(" -> ") == 10_001
    assert len(drawing._picture.boxes) < 10
    assert "the same 9,998 more times" in drawing.mermaid
    assert "repetitions are folded" in drawing.svg


def test_deep_graphs_need_no_recursion():
    graph = draw(chain(5_000), backward=True).graph
    assert all(norm is not None for box in graph.boxes for norm in box.norms)
