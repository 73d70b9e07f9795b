"""The page of a graph in a real browser: it reports no error, and its search, zoom, details and colours work.

Needs Chromium (Debian: `apt-get install chromium`). Screenshots stay in pytest's temporary folder, or in the
folder that the environment's WENGERT_SCREENSHOTS names.
"""

import io
import os
from pathlib import Path

import numpy as np
import pytest
import wengert as wg
from graph.chromium import browser, missing
from matplotlib.image import imread
from wengert.graph import draw

pytestmark = [pytest.mark.browser, pytest.mark.skipif(missing() is not None, reason=missing() or "")]

WIDTH, HEIGHT = 1280, 800


def colors(png: bytes) -> dict[str, int]:
    """How often each colour occurs, in every fourth pixel of every fourth row."""
    image = (imread(io.BytesIO(png))[::4, ::4, :3] * 255).round().astype(int)
    assert image.shape[:2] == (HEIGHT // 4, WIDTH // 4)
    found, count = np.unique(image.reshape(-1, 3), axis=0, return_counts=True)
    return {"".join(f"{channel:02x}" for channel in color): int(n) for color, n in zip(found, count)}


def network():
    """A residual network, a parameter that it does not use, and its loss."""
    wg.manual_seed(0)
    first, second = wg.nn.Linear(4, 8), wg.nn.Linear(8, 8)
    params = {"first": first, "second": second}
    named = {f"{k}.{name}": p for k, layer in params.items() for name, p in layer.named_parameters()}
    named["idle"] = wg.ones(2, requires_grad=True)
    h = first(wg.randn(16, 4)).relu()
    return named, ((h + second(h).tanh()) ** 2).mean()


@pytest.fixture(scope="module")
def shots(tmp_path_factory) -> Path:
    """Where screenshots go."""
    given = os.environ.get("WENGERT_SCREENSHOTS")
    folder = Path(given) if given else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    """One browser for all tests of this file."""
    with browser(tmp_path_factory.mktemp("profile")) as page:
        page.size(WIDTH, HEIGHT)
        yield page


@pytest.fixture
def page(window, tmp_path):
    """The page of the network, freshly opened in light colours; at the end it must have reported nothing."""
    named, loss = network()
    path = tmp_path / "graph.html"
    draw(loss, path, params=named, backward=True, title="A residual network")
    window.errors.clear()
    window.prefer("light")
    window.open(path.as_uri())
    yield window
    assert window.errors == []


def text(page, selector):
    return page.run(f"document.querySelector({selector!r}).textContent")


def middle(page, selector):
    """Where an element's middle is in the window."""
    return page.run(
        f"(() => {{ const r = document.querySelector({selector!r}).getBoundingClientRect();"
        " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )


def scale(page):
    return float(text(page, "#scale").rstrip("%"))


def box_of(page, title):
    """The selector of the first box with this title."""
    at = page.run(
        "[...document.querySelectorAll('.box')].findIndex("
        f"(box) => box.querySelector('.title').textContent === {title!r})"
    )
    assert at >= 0
    return f'.box[data-box="{at}"]'


def test_it_shows_the_graph(page, shots):
    assert page.run("document.title") == "A residual network"
    assert page.run("document.querySelectorAll('.box').length") > 10
    assert text(page, ".notices") == "not reached from here, so no gradient will arrive: idle"
    seen = colors(page.screenshot(shots / "page.png"))
    # The page, the tint of parameters, the tint of the result: it is painted, not only present.
    assert max(seen, key=seen.__getitem__) == "fbfbfc"
    assert seen["e3edff"] > 100


def test_search_finds_names_operations_and_shapes(page, shots):
    page.key("/", 191)
    assert page.run("document.activeElement.id") == "search"
    page.type("second.weight")
    assert text(page, "#found") == "1 of 1"
    assert page.run("document.querySelector('.box.current .title').textContent") == "second.weight"
    x, y = middle(page, ".box.current")
    assert abs(x - WIDTH / 2) < 5
    assert abs(y - HEIGHT / 2) < 60
    page.screenshot(shots / "search.png")
    page.key("Escape", 27)
    assert text(page, "#found") == ""
    page.key("/", 191)
    page.type("linear 16 × 8")
    assert text(page, "#found") == "1 of 2"
    page.key("Enter", 13)
    assert text(page, "#found") == "2 of 2"
    page.key("Escape", 27)
    page.key("/", 191)
    page.type("no such thing")
    assert text(page, "#found") == "nothing found"


def test_zoom_and_move(page, shots):
    before = scale(page)
    page.click(*middle(page, "#in"))
    assert scale(page) == pytest.approx(1.25 * before, abs=1)
    x, y = middle(page, box_of(page, "relu"))
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
    assert scale(page) > 1.5 * before
    # The point under the pointer stays where it is.
    assert middle(page, box_of(page, "relu")) == [pytest.approx(x, abs=1.5), pytest.approx(y, abs=1.5)]
    page.screenshot(shots / "zoomed.png")
    page.mouse("mousePressed", 100, 400, button="left", clickCount=1)
    page.mouse("mouseMoved", 160, 370, button="left")
    page.mouse("mouseReleased", 160, 370, button="left", clickCount=1)
    assert middle(page, box_of(page, "relu")) == [
        pytest.approx(x + 60, abs=1.5),
        pytest.approx(y - 30, abs=1.5),
    ]
    page.click(*middle(page, "#fit"))
    inside = page.run(
        "[...document.querySelectorAll('.box')].every((box) => { const r = box.getBoundingClientRect();"
        f" return r.left >= 0 && r.top >= 0 && r.right <= {WIDTH} && r.bottom <= {HEIGHT}; }})"
    )
    assert inside


def test_a_click_tells_everything_about_a_box(page, shots):
    page.click(*middle(page, "#fit"))
    page.click(*middle(page, box_of(page, "tanh")))
    said = text(page, "#details")
    for part in ("tanh", "TanhBackward", "16 × 8 float32", "Gradient", "output 0", "512 B", "linear"):
        assert part in said
    page.screenshot(shots / "details.png")
    # A neighbour's button goes there.
    page.click(*middle(page, "#details .go"))
    assert text(page, "#details h2") == "linear"
    page.key("Escape", 27)
    assert page.run("document.getElementById('details').hidden")


def test_dark_and_light(page, shots):
    page.click(*middle(page, "#theme"))
    seen = colors(page.screenshot(shots / "dark.png"))
    assert max(seen, key=seen.__getitem__) == "14181f"
    assert seen["172c52"] > 100
    page.prefer("dark")
    page.open(page.run("location.href"))
    assert page.run("document.documentElement.dataset.theme") == "dark"


def test_notebooks_show_it_in_a_frame(page, tmp_path):
    _, loss = network()
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><title>notebook</title>{draw(loss)._repr_html_()}", encoding="utf-8")
    page.open(path.as_uri())
    inside = "document.querySelector('iframe').contentDocument.querySelectorAll('.box').length"
    assert page.run(f"new Promise((go) => setTimeout(() => go({inside}), 300))") > 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_svg_file_alone(page, tmp_path, shots, scheme):
    named, loss = network()
    path = tmp_path / "graph.svg"
    draw(loss, path, params=named, backward=True)
    page.prefer(scheme)
    page.open(path.as_uri())
    seen = colors(page.screenshot(shots / f"svg-{scheme}.png"))
    assert seen[{"light": "e3edff", "dark": "172c52"}[scheme]] > 50
