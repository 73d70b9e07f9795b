"""Pictures of the tape: what is read from it, how it is laid out, and what each format holds."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import pytest
import wengert as wg
from hypothesis import given
from hypothesis import strategies as st
from wengert.graph import draw, layout
from wengert.graph.fold import cap, fold
from wengert.graph.layout import Link, arrange
from wengert.graph.tape import read

NASTY = 'a"b<c>&\\d#`{e}|\n%%</script>'


def small():
    """A logistic unit by hand, its parameters and its loss."""
    w = wg.tensor([[0.5], [-1.0]], requires_grad=True)
    b = wg.tensor([0.25], requires_grad=True)
    x = wg.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]])
    return w, b, (x @ w + b).sigmoid().sum()


def network(layers):
    """A deep network of equal layers and its loss."""
    wg.manual_seed(0)
    parts = [part for _ in range(layers) for part in (wg.nn.Linear(4, 4), wg.nn.ReLU())]
    model = wg.nn.Sequential(*parts, wg.nn.Linear(4, 1))
    return model, model(wg.randn(3, 4)).sum()


def titles(graph):
    return [box.title for box in graph.boxes]


def test_boxes_say_operation_shape_dtype_and_bytes():
    w, b, loss = small()
    graph = draw(loss, params={"w": w, "b": b}).graph
    assert titles(graph) == ["w", "b", "constant", "matmul", "add", "sigmoid", "sum"]
    assert [box.kind for box in graph.boxes] == [
        *("parameter", "parameter", "data", "operation", "operation", "operation", "output")
    ]
    by_title = {box.title: box for box in graph.boxes}
    assert by_title["matmul"].lines() == ["matmul", "3 × 1 float32", "saves 24 B"]
    assert by_title["constant"].lines() == ["constant", "3 × 2 float32"]
    assert by_title["sum"].lines() == ["sum", "loss", "scalar float32"]
    assert by_title["sigmoid"].saved_bytes == loss.grad_fn.next_functions[0][0].saved_bytes == 12
    links = [(graph.boxes[link.source].title, graph.boxes[link.target].title) for link in graph.links]
    assert links == [
        ("constant", "matmul"),
        ("w", "matmul"),
        ("matmul", "add"),
        ("b", "add"),
        ("add", "sigmoid"),
        ("sigmoid", "sum"),
    ]
    assert graph.summary() == "4 operations · 2 parameters · 36 B kept for backward"
    assert "constant" not in titles(draw(loss, constants=False).graph)


def test_reading_changes_nothing():
    w, b, loss = small()
    assert draw(loss, params={"w": w}, backward=True).html
    assert w.grad is None
    loss.backward()
    assert w.grad is not None
    assert b.grad is not None


def test_gradient_norms_are_those_of_backward():
    w, b, loss = small()
    graph = draw(loss, params={"w": w, "b": b}, backward=True).graph
    norms = {box.title: box.norms[0] for box in graph.boxes if box.norms}
    sigmoid = loss.grad_fn.next_functions[0][0]
    assert sigmoid.name() == "SigmoidBackward"
    loss.backward(retain_graph=True)
    assert norms["w"] == pytest.approx(w.grad.norm().item(), rel=1e-6)
    assert norms["b"] == pytest.approx(b.grad.norm().item(), rel=1e-6)
    assert norms["sum"] == 1.0
    assert norms["sigmoid"] == pytest.approx(3**0.5)


def test_gradients_of_shared_values_add_up():
    x = wg.tensor([3.0, 4.0], requires_grad=True)
    y = x * 2.0
    graph = draw((y * y).sum() + y.sum(), params={"x": x, "y": y}, backward=True).graph
    ((norm,),) = [box.norms for box in graph.boxes if box.title == "x"]
    assert norm == pytest.approx(((2 * (2 * 6 + 1)) ** 2 + (2 * (2 * 8 + 1)) ** 2) ** 0.5)
    (named,) = [box for box in graph.boxes if "y" in box.names]
    assert named.title == "mul"


def test_recording_a_backward():
    w, b, loss = small()
    loss.grad_fn.next_functions[0][0].register_prehook(lambda grads: (grads[0] * 2.0,))
    with wg.graph.record(loss, params={"w": w, "b": b}) as recording:
        loss.backward(wg.tensor(3.0))
    norms = {box.title: box.norms[0] for box in recording.graph.boxes if box.norms}
    assert norms["sum"] == 3.0
    assert norms["sigmoid"] == pytest.approx(6 * 3**0.5)
    assert norms["w"] == pytest.approx(w.grad.norm().item(), rel=1e-6)
    drawing = recording.draw(title="What happened")
    # Read before backward freed it.
    assert "36 B kept for backward" in drawing.svg
    assert "What happened" in drawing.svg


def test_a_recording_knows_only_what_passed():
    _, _, loss = small()
    with wg.graph.record(loss) as recording:
        pass
    loss.backward()
    assert all(norm is None for box in recording.graph.boxes for norm in box.norms)
    v, u = wg.ones(2, requires_grad=True), wg.ones(2, requires_grad=True)
    loss = (v * u).sum()
    with wg.graph.record(loss, params={"v": v, "u": u}) as recording:
        loss.backward(inputs=[v])
    norms = {box.title: box.norms[0] for box in recording.graph.boxes}
    assert norms["u"] is None
    assert norms["v"] == pytest.approx(2**0.5)


def test_pictures_inside_transforms_and_of_second_orders():
    u = wg.ones(3, requires_grad=True)
    seen = []

    def f(v):
        y = (v * v * u).sum()
        seen.append(draw(y, params={"u": u, "v": v}, backward=True).graph)
        return y

    wg.grad(f)(wg.full((3,), 2.0))
    norms = {box.title: box.norms for box in seen[0].boxes}
    assert norms["v"] == [pytest.approx(4 * 3**0.5)]
    (g,) = wg.autograd.grad((u**3).sum(), u, create_graph=True)
    drawing = draw(g.sum(), params={"u": u}, backward=True)
    assert {box.title: box.norms for box in drawing.graph.boxes}["u"] == [pytest.approx(6 * 3**0.5)]
    with pytest.raises(RuntimeError, match="or this is inside vmap"):
        wg.vmap(lambda v: draw((v * u).sum()) and v)(wg.ones(2, 3))


def test_lines_of_the_program_where_they_were_kept():
    x = wg.ones(3, requires_grad=True)
    with wg.debug():
        y = x.exp()  # the line
    drawing = draw(y.sin().sum())
    by_title = {box.title: box for box in drawing.graph.boxes}
    file, line, function = by_title["exp"].place
    assert file.endswith("test_graph.py")
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1].endswith("# the line")
    assert function == "test_lines_of_the_program_where_they_were_kept"
    assert by_title["sin"].place is None
    assert f"test_graph.py:{line} in " in drawing.svg
    assert f"test_graph.py:{line} in " in drawing.html


def test_writes_in_place_and_views():
    a = wg.ones(6, requires_grad=True)
    b = a * 1.0
    b[:3] = b[3:] * 2.0
    b.mul_(3.0)
    graph = draw(b.sum(), params={"a": a}, backward=True).graph
    (norm,) = next(box.norms for box in graph.boxes if box.title == "a")
    b.sum().backward()
    assert norm == pytest.approx(a.grad.norm().item())


def test_after_backward_named_leaves_show_their_grad():
    w, b, loss = small()
    loss.backward()
    drawing = draw(loss, params={"w": w, "b": b})
    by_title = {box.title: box for box in drawing.graph.boxes}
    assert by_title["w"].norms == [pytest.approx(w.grad.norm().item())]
    assert by_title["sigmoid"].norms == [None]
    assert by_title["sigmoid"].lines() == ["sigmoid", "3 × 1 float32", "saved values freed"]
    with pytest.raises(RuntimeError, match="the graph was already used and freed"):
        draw(loss, backward=True)


def test_names_of_modules_dicts_pairs_and_shared_parameters():
    model, loss = network(1)
    names = {box.title for box in draw(loss, params=model).graph.boxes if box.kind == "parameter"}
    assert names == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert names == {
        box.title
        for box in draw(loss, params=model.named_parameters()).graph.boxes
        if box.kind == "parameter"
    }
    w, b, loss = small()
    nested = {"layer": {"w": w, "again": [w]}, "b": b}
    assert titles(draw(loss, params=nested).graph)[:2] == ["layer.w = layer.again.0", "b"]
    assert titles(draw(loss).graph)[:2] == ["leaf", "leaf"]


def test_parameters_that_are_not_reached_are_reported():
    w, b, loss = small()
    drawing = draw(loss, params={"w": w, "b": b, "idle": wg.ones(2, requires_grad=True)})
    assert drawing.notices == ["not reached from here, so no gradient will arrive: idle"]
    assert "not reached from here" in repr(drawing)
    for kind in (drawing.dot, drawing.mermaid, drawing.svg, drawing.html):
        assert "no gradient will arrive: idle" in kind


def test_several_outputs_and_trees():
    x = wg.ones(3, requires_grad=True)
    graph = draw([x.exp(), x.sum()]).graph
    assert [box.names for box in graph.boxes if box.kind == "output"] == [["output 0"], ["loss 1"]]
    graph = draw({"a": x.exp(), "b": {"c": x.sum()}}).graph
    assert [box.names for box in graph.boxes if box.kind == "output"] == [["a"], ["b.c"]]
    drawing = draw((x.exp(), wg.ones(2)))
    assert drawing.notices == ["output 1 of shape (2,) has no graph, so it is not drawn"]
    # A leaf is a result, too; so is an operation with several outputs.
    assert draw((x, x.sum())).graph.boxes[0].names == ["output 0"]
    first, second = wg.split(wg.ones(4, requires_grad=True), 2)
    assert draw(first + second, backward=True).graph.operations >= 2


def test_errors():
    with pytest.raises(RuntimeError) as caught:
        draw(wg.ones(2).sum())
    assert str(caught.value) == (
        "draw: there is no graph behind the tensor; none of its inputs required a gradient, or it was computed under "
        "no_grad(), or detach() cut it off, or this is inside vmap: set requires_grad=True on an input before "
        "computing it, and draw outside of vmap"
    )
    with pytest.raises(RuntimeError, match="behind any of the 2 tensors"):
        draw([wg.ones(2), wg.ones(3)])
    with pytest.raises(TypeError) as caught:
        draw({"a": 3})
    assert str(caught.value) == "draw: a tensor or a tree of tensors expected, got int at 'a'"
    with pytest.raises(ValueError, match="nothing to draw, the outputs are an empty tree"):
        draw([])
    loss = small()[-1]
    with pytest.raises(TypeError) as caught:
        draw(loss, params={"w": "w"})
    assert str(caught.value) == (
        "draw: params holds str at 'w'; give a module, its named_parameters(), or a dict from names to tensors"
    )
    with pytest.raises(ValueError, match="max_nodes must be an integer of at least 2, got 1"):
        draw(loss, max_nodes=1)
    with pytest.raises(ValueError, match="format='svg' says how to write a file, but no path was given"):
        draw(loss, format="svg")


def test_saving_by_suffix(tmp_path):
    _, _, loss = small()
    for name, start in {
        "a.dot": "digraph",
        "a.gv": "digraph",
        "a.mmd": "flowchart TD",
        "a.SVG": "<svg",
        "a.html": "<!doctype html>",
    }.items():
        draw(loss, tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    draw(loss, str(tmp_path / "a.txt"), "mermaid")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8").startswith("flowchart TD")
    with pytest.raises(ValueError, match=r"the suffix of 'a.png' tells no format; use one of \.dot, \.gv"):
        draw(loss, tmp_path / "a.png")
    with pytest.raises(ValueError, match="unknown format 'png'; expected one of dot, html, mermaid, svg"):
        draw(loss, tmp_path / "a.png", "png")


def test_names_cannot_break_the_formats():
    w, b, loss = small()
    drawing = draw(loss, params={NASTY: w, "b": b}, title=NASTY)
    assert drawing.dot.count("\n") == len(drawing.graph.boxes) + len(drawing.graph.links) + 5
    assert '\\"b<c>&\\\\d#`{e}|' in drawing.dot
    label = next(line for line in drawing.mermaid.splitlines() if line.startswith("  n0"))
    assert label.count('"') == 2
    assert "a#quot;b#lt;c#gt;#amp;" in label
    ElementTree.fromstring(drawing.svg)
    assert drawing.html.count("</script>") == 2
    data = re.search(r'<script id="graph" type="application/json">(.*?)</script>', drawing.html, re.S)
    assert json.loads(data[1])["boxes"][0]["title"] == NASTY
    assert "<script>" not in drawing._repr_html_()


def test_svg_is_well_formed_and_holds_everything():
    w, b, loss = small()
    drawing = draw(loss, params={"w": w, "b": b}, backward=True)
    root = ElementTree.fromstring(drawing.svg)
    space = "{http://www.w3.org/2000/svg}"
    boxes = [g for g in root.iter(f"{space}g") if g.get("class", "").startswith("box")]
    assert len(boxes) == 7
    assert len([g for g in root.iter(f"{space}g") if g.get("class") == "link"]) == 6
    texts = [t.text for t in root.iter(f"{space}text")]
    assert "3 × 1" in texts
    assert "matmul" in texts
    assert any(text.startswith("|gradient| ") for text in texts)
    assert "prefers-color-scheme: dark" in drawing.svg


def test_the_page_loads_nothing():
    _, _, loss = small()
    page = draw(loss).html
    assert not re.findall(r"(?:src|href)\s*=|url\(|@import|fetch\(|https?://(?!www\.w3\.org)", page)
    assert "default-src 'none'" in page


# Layout.


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
    assert box.note == "4 operations each, 36 leaves in all"
    assert folded.operations == graph.operations
    assert sum(b.saved_bytes for b in folded.boxes) == sum(b.saved_bytes for b in graph.boxes)
    assert folded.notices == ["repetitions are folded: 72 operations in 1 box"]
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
        "not drawn: only the 49 boxes nearest to the outputs are; raise max_nodes (now 50), or take .dot, which is "
        "complete unless max_nodes is given"
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


def test_package_imports_it_when_used():
    code = "import sys, wengert; assert 'wengert.graph' not in sys.modules; wengert.graph.draw"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.gpu
def test_on_a_gpu():
    model = wg.nn.Sequential(wg.nn.Linear(4, 8), wg.nn.ReLU(), wg.nn.Linear(8, 1))
    x = wg.randn(16, 4)
    on_cpu = draw(model(x).sum(), params=model, backward=True).graph
    model.to("gpu")
    loss = model(x.to("gpu")).sum()
    on_gpu = draw(loss, params=model, backward=True).graph
    with wg.graph.record(loss, params=model) as recording:
        loss.backward()
    report = wg.plot.gradient_flow(model, x.to("gpu"))
    assert titles(on_gpu) == titles(on_cpu) == titles(recording.graph)
    for a, b, c in zip(on_gpu.boxes, on_cpu.boxes, recording.graph.boxes):
        assert a.norms == c.norms == (pytest.approx(b.norms, rel=1e-4) if None not in b.norms else b.norms)
    assert report.table["0"].dead is not None
