"""Does what CONTRIBUTING.md says: adds its example of an elementwise operation in two places, and runs its
tests.

    python tools/two_places.py

The two code blocks of the section "Add an elementwise operation" go into a copy of the repository: the row
into the table, the record into the list of samples. The copy is built, its stub regenerated, and the tests
that walk the records run for the new operation alone, on the CPU and on a GPU adapter (`WENGERT_GPU=software`
for Mesa's). It fails if a test does, if none ran, or if any file but those two and the stub changed.
Dependencies are compiled into CARGO_TARGET_DIR (or target/), where they are shared with the release wheel.
"""

import difflib
import filecmp
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
SECTION = "## Add an elementwise operation"
STUBS = {"python/wengert/_core.pyi", "python/wengert/_functions.py"}
#: Per language of a code block: the file it goes into, and what it is put behind (the last match).
PLACES = {
    "rust": (
        "src/ops/pointwise/unary.rs",
        r"^            \w+ \w+\(x\) = .*;\n(?=        }\n    };\n}\npub\(crate\) use unary_table;)",
    ),
    "python": ("tests/samples/op_samples.py", r"^unary\(.*\)\n"),
}
IGNORED = (
    ".git",
    "target",
    "dist",
    "__pycache__",
    ".venv",
    ".hypothesis",
    ".*_cache",
    "*.so",
    "*.pyd",
    "shared",
)
#: Tests that walk the records, and the one that misses a record.
TESTS = [
    "ops/test_ops.py",
    "autograd/test_grad.py",
    "transforms/test_vmap.py",
    "ops/test_kernels.py",
    "gpu/test_gpu.py",
]


def example() -> dict[str, str]:
    """The code blocks of the section, by language."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.split(f"{SECTION}\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"^ *```(\w+)\n(.*?)^ *```$", section, re.MULTILINE | re.DOTALL)
    found = {language: textwrap.dedent(code) for language, code in blocks}
    if set(found) != set(PLACES) or len(blocks) != len(PLACES):
        raise SystemExit(f"CONTRIBUTING.md: one block each of {sorted(PLACES)} expected in '{SECTION}'")
    return found


def ignored(directory: str, names: list[str]) -> set[str]:
    """What is not copied."""
    is_target = {name for name in names if Path(directory, name).resolve() == TARGET}
    return is_target | shutil.ignore_patterns(*IGNORED)(directory, names)


def insert(folder: Path, language: str, code: str) -> None:
    """Puts a block where it belongs, indented as its neighbours are."""
    name, behind = PLACES[language]
    path = folder / name
    text = path.read_text(encoding="utf-8")
    places = list(re.finditer(behind, text, re.MULTILINE))
    if not places:
        raise SystemExit(f"{name}: the place to add to was not found")
    neighbour = places[-1]
    indent = re.match(" *", neighbour[0])[0]
    added = textwrap.indent(code, indent)
    path.write_text(text[: neighbour.end()] + added + text[neighbour.end() :], encoding="utf-8")


def build(folder: Path) -> None:
    """Builds the extension of the copy and puts it beside its Python files."""
    # As the wheel is built, whose dependencies are compiled already; the crate itself with less care.
    library = ["--release", "--lib", "--crate-type", "cdylib", "--features", "python"]
    own = "profile.release.package.wengert"
    careless = ["--config", f"{own}.opt-level=0", "--config", f"{own}.codegen-units=16"]
    command = ["cargo", "rustc", "--locked", *library, *careless, "--message-format", "json"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "PYO3_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and "cdylib" in message["target"]["kind"]:
            built = [Path(f) for f in message["filenames"] if Path(f).suffix in (".so", ".dylib", ".dll")]
            suffix = ".pyd" if built[0].suffix == ".dll" else ".abi3.so"
            shutil.copy(built[0], folder / "python" / "wengert" / f"_core{suffix}")


def in_copy(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in the copy, with the copy's package."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test(folder: Path, operation: str, device: str) -> int:
    """Runs the tests of one operation on one device and returns how many passed."""
    paths = [f"tests/{name}" for name in TESTS]
    choice = ["-m", "gpu" if device == "gpu" else "not gpu", "-k", f"{operation} or has_a_record"]
    done = in_copy(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths, *choice)
    passed = re.search(r"(\d+) passed", done.stdout)
    if done.returncode != 0 or passed is None:
        raise SystemExit(f"the tests on the {device} failed:\n{done.stdout}{done.stderr}")
    return int(passed[1])


def changes(folder: Path) -> dict[str, tuple[int, int]]:
    """Added and removed lines of every file that differs from the repository."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        original = ROOT / name
        is_ignored = any(fnmatch.fnmatch(part, pattern) for part in Path(name).parts for pattern in IGNORED)
        if is_ignored or (original.exists() and filecmp.cmp(path, original, shallow=False)):
            continue
        before = original.read_text(encoding="utf-8").splitlines() if original.exists() else []
        lines = list(difflib.ndiff(before, path.read_text(encoding="utf-8").splitlines()))
        found[name] = (sum(x[0] == "+" for x in lines), sum(x[0] == "-" for x in lines))
    return found


def main() -> int:
    """Adds, builds, tests, compares; prints what came out."""
    blocks = example()
    operation = re.search(r"^\w+ (\w+)\(x\) =", blocks["rust"], re.MULTILINE)[1]
    folder = TARGET / "two-places"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT, folder, ignore=ignored)
    try:
        for language, code in blocks.items():
            insert(folder, language, code)
        build(folder)
        stub = in_copy(folder, "tools/stubs.py")
        if stub.returncode != 0:
            raise SystemExit(stub.stderr)
        passed = {device: test(folder, operation, device) for device in ("cpu", "gpu")}
        changed = changes(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, (added, removed) in changed.items():
        print(f" {name}: {added} lines added, {removed} removed{' (generated)' if name in STUBS else ''}")
    print(f"{operation}: {passed['cpu']} tests passed on the CPU, {passed['gpu']} on the GPU")
    expected = {name for name, _ in PLACES.values()} | STUBS
    if set(changed) != expected:
        raise SystemExit(f"changed files: {sorted(changed)}, expected {sorted(expected)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
