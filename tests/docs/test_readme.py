"""Every example of README.md runs, in order, in one namespace, and prints what the page says it prints."""

import contextlib
import io
import re

from programs import ROOT

README = ROOT / "README.md"
# A python block and, if it stands right behind it, the text block with its output.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[int, str, str | None]]:
    """(line number, code, expected output or None) of each block."""
    page = README.read_text(encoding="utf-8")
    return [(page.count("\n", 0, found.start(1)) + 1, found[1], found[2]) for found in BLOCK.finditer(page)]


def test_examples() -> None:
    blocks = examples()
    assert len(blocks) >= 4
    assert any(expected is not None for _, _, expected in blocks)
    namespace: dict[str, object] = {"__name__": "readme"}
    for line, code, expected in blocks:
        printed = io.StringIO()
        # Leading newlines make the line numbers of a traceback those of the page.
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + code, str(README), "exec"), namespace)
        if expected is not None:
            assert printed.getvalue() == expected, f"README.md:{line}"
