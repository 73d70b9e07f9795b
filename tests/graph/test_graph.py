"""Pictures of the tape: what is read from it, how it is laid out, and what each format holds."""

import collections
import dataclasses
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import wengert as wg
from samples.graph_samples import network, small
from wengert.graph import draw

NASTY = 'a"b<c>&\\d#`{e}|\n%%</script>'


def test_settings_of_drawings_and_recordings():
    x = wg.ones(2, requires_grad=True)
    y = x
    for _ in range(6):
        y = (y * wg.tensor([2.0, 3.0])).tanh()
    graph = draw(y.sum()).graph
    whole = wg.graph.Drawing(graph, "title")
    assert whole.dot.count("tanh") == 6
    assert whole.notices == []
    assert wg.graph.Drawing(graph, "title", collapse=True).dot.count("tanh") < 6
    few = wg.graph.Drawing(graph, "title", max_nodes=4)
    assert few.dot.count("tanh") < 6
    assert few.notices
    assert "constant" in titles(wg.graph.record(y.sum()).graph)
    assert "constant" not in titles(wg.graph.record(y.sum(), constants=False).graph)


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
    # Inside vmap the tape around it is drawn, which has all examples at once.
    batched = []
    wg.vmap(lambda v: batched.append(draw((v * u).sum()).graph) or v)(wg.ones(2, 3))
    shapes = {box.title: box.shapes for box in batched[0].boxes}
    assert (shapes["mul"], shapes["sum"]) == ([(2, 3)], [(2,)])


def test_lines_of_the_program_where_they_were_kept():
    x = wg.ones(3, requires_grad=True)
    with wg.debug():
        y = x.exp()  # the line
    drawing = draw(y.sin().sum())
    by_title = {box.title: box for box in drawing.graph.boxes}
    file, line, function = by_title["exp"].location
    assert file.endswith("test_graph.py")
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1].endswith("# the line")
    assert function == "test_lines_of_the_program_where_they_were_kept"
    assert by_title["sin"].location is None
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
    pair = collections.namedtuple("pair", "a b")
    assert len(draw(pair(x.exp(), [x.sin(), None])).graph.results) == 2

    @wg.tree.register_dataclass
    @dataclasses.dataclass
    class Both:
        a: wg.Tensor
        b: wg.Tensor

    graph = draw({"both": Both(x.exp(), x.sin())}).graph
    assert [box.names for box in graph.boxes if box.kind == "output"] == [["both.0"], ["both.1"]]
    # A leaf is a result, too; so is an operation with several outputs.
    assert draw((x, x.sum())).graph.boxes[0].names == ["output 0"]
    first, second = wg.split(wg.ones(4, requires_grad=True), 2)
    assert draw(first + second, backward=True).graph.operations >= 2


def test_errors():
    with pytest.raises(RuntimeError) as caught:
        draw(wg.ones(2).sum())
    assert str(caught.value) == (
        "draw: there is no graph behind the tensor; none of its inputs required a gradient, or it was "
        "computed under "
        "no_grad(), or detach() cut it off: set requires_grad=True on an input before computing it"
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
        "draw: params holds str at 'w'; give a module, its named_parameters(), or a dict from names to "
        "tensors"
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
