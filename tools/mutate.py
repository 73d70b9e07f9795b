"""Tests a test: breaks one derivative of the tables at a time and asks whether `tests/rules.rs` notices.

Each partial `(g, ..) => rule` in `src/ops/pointwise/unary.rs` and `binary.rs` becomes
`(g, ..) => 1.01 * (rule)`, and that file is built and run. A mutation that survives is a hole in it. Slow,
and meant to be run by hand:

    python tools/mutate.py            # every rule
    python tools/mutate.py tanh erf   # some

It works on a copy of the repository in a temporary folder and never touches the files here.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLES = ("src/ops/pointwise/unary.rs", "src/ops/pointwise/binary.rs")
ROW = re.compile(r"^            \w+ (\w+)\((?:x|x, y)\) = ", re.MULTILINE)
PARTIAL = re.compile(r"\((g[\w, ]*)\) => ")


def end_of_rule(text: str, start: int) -> int:
    """Where the expression that begins at `start` ends: at the `,` or `]` outside of its own brackets."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            if depth == 0:
                return at
            depth -= 1
        elif text[at] == "," and depth == 0:
            return at
    raise ValueError("a rule without an end")


def mutations(text: str) -> list[tuple[str, str]]:
    """(name of the rule, the table with that rule scaled) for every derivative of a table."""
    rows = list(ROW.finditer(text))
    found = []
    for row, following in zip(rows, [*rows[1:], None]):
        stop = following.start() if following else len(text)
        for position, partial in enumerate(PARTIAL.finditer(text, row.end(), stop)):
            end = end_of_rule(text, partial.end())
            rule = text[partial.end() : end]
            changed = f"{text[: partial.end()]}R::lit(1.01) * ({rule}){text[end:]}"
            found.append((f"{row[1]}/{position}", changed))
    return found


def caught(folder: Path) -> bool:
    """Whether the Rust tests of the rules fail in this copy."""
    command = ["cargo", "test", "--quiet", "--locked", "--no-default-features", "--test", "rules"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if "could not compile" in done.stderr:
        raise SystemExit(done.stderr)
    return done.returncode != 0


def main(wanted: list[str]) -> int:
    """Prints one line per mutation; the exit status is the number of survivors."""
    survivors = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "copy"
        shutil.copytree(
            ROOT, folder, ignore=shutil.ignore_patterns(".git", "target", ".venv", "*.so", "dist")
        )
        for table in TABLES:
            path = folder / table
            original = path.read_text(encoding="utf-8")
            for name, changed in mutations(original):
                if wanted and name.split("/")[0] not in wanted:
                    continue
                path.write_text(changed, encoding="utf-8")
                noticed = caught(folder)
                print(f"{name:20} {'caught' if noticed else 'SURVIVED'}", flush=True)
                survivors += [] if noticed else [name]
            path.write_text(original, encoding="utf-8")
    print(f"{len(survivors)} survived: {survivors}" if survivors else "every mutation was caught")
    return len(survivors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
