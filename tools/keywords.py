"""Which keywords of public functions no test passes: `--check` fails where there is one.

A keyword that is accepted and ignored looks right until somebody relies on it. This tool reads the signatures
of the built module and the text of the tests; it runs neither. A keyword counts as passed where a call of
that name in tests/ passes it, by name or by position; where a small row of a table (a call, tuple or dict)
holds both names; where a call of that name unpacks keywords, and the test, which may call a function of its
file for it, has them in a `dict(…)`; where a sample compares it with NumPy; and where a walk in
tests/arguments passes it to every function that has it. Keywords that have no effect by intention stand in
the table of docs/keywords.md, which is read here.
"""

import argparse
import ast
import dataclasses
import enum
import importlib
import importlib.util
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "keywords.md"
EVERY = "*"  # stands for every function that has a keyword
ROW = 80  # nodes of syntax: what is larger is a table, not a row of one

Pair = tuple[str, str]


def documented() -> Iterator[tuple[str, Any]]:
    """The public functions, classes and methods, by the last part of their names."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "_ext" / "reference.py")
    assert spec
    assert spec.loader
    reference = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = reference
    spec.loader.exec_module(reference)
    for page in reference.pages():
        for full in page.names:
            value, name = reference.resolve(full), full.rpartition(".")[2]
            yield name, value
            if inspect.isclass(value):
                for method, member in vars(value).items():
                    if not method.startswith("_") and callable(member):
                        yield method, member


def parameters(value: Any) -> list[inspect.Parameter]:
    """The parameters that a caller passes; none where the signature does not tell.

    Records and enumerations have none either: their constructors are made by Python, and keep what they are
    given.
    """
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields") or isinstance(value, enum.EnumMeta):
        return []
    try:
        found = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return []
    return found[1:] if found and found[0].name == "self" else found


def keywords() -> dict[Pair, int | None]:
    """The parameters with defaults, by name of the function; with their position where they have one."""
    found: dict[Pair, int | None] = {}
    for name, value in documented():
        for position, p in enumerate(parameters(value)):
            if p.default is p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
                continue
            by_position = position if p.kind is not p.KEYWORD_ONLY else None
            old = found.get((name, p.name), by_position)
            found[name, p.name] = min((x for x in (old, by_position) if x is not None), default=None)
    return found


def called(node: ast.Call) -> str | None:
    """The last part of the name that is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else None


def words(row: list[ast.AST]) -> set[str]:
    """The names that a row of a table speaks of: identifiers, attributes, strings, keywords."""
    found = set()
    for node in row:
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)):
                found.add(word)
            case ast.Constant(value=str(word)) if (last := word.rpartition(".")[2]).isidentifier():
                found.add(last)
    return found


def unpacked(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """The functions that a file calls with `**settings`, and the keywords of the `dict(…)`s beside them."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    inside = {f.name: [node for node in ast.walk(f) if isinstance(node, ast.Call)] for f in functions}
    open_to = {
        f: {name for call in calls if any(k.arg is None for k in call.keywords) and (name := called(call))}
        for f, calls in inside.items()
    }
    for f in functions:
        given = {k.arg for call in inside[f.name] if called(call) == "dict" for k in call.keywords if k.arg}
        used = {node.id for node in ast.walk(f) if isinstance(node, ast.Name)} | {f.name}
        for name in set().union(*(open_to[helper] for helper in used & set(open_to))):
            yield name, given


def passed() -> tuple[dict[str, set[str]], dict[str, int]]:
    """What tests pass, by function: names of keywords, and the most arguments by position."""
    named: dict[str, set[str]] = defaultdict(set)
    placed: dict[str, int] = defaultdict(int)
    for path in sorted((ROOT / "tests").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, given in unpacked(tree):
            named[name] |= given
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (name := called(node)):
                named[name] |= {k.arg for k in node.keywords if k.arg}
                placed[name] = max(placed[name], len(node.args))
            if isinstance(node, ast.Call | ast.Tuple | ast.Dict):
                row = list(ast.walk(node))
                if len(row) <= ROW:
                    found = words(row)
                    for word in found:
                        named[word] |= found
    return named, placed


def compared() -> Iterator[Pair]:
    """The keywords that the samples draw and compare with a reference."""
    for sample in importlib.import_module("samples.op_samples").SAMPLES:
        for seed in range(20):
            for keyword in sample.case(importlib.import_module("support").random_source(seed)[0]).kwargs:
                yield sample.name, keyword


def without_effect() -> set[Pair]:
    """The rows of the page: functions (`EVERY` where the cell has no name in backquotes) and keywords."""
    found = set()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        functions, keyword = line.split("|")[1:3] if line.startswith("|") else ("", "")
        for word in re.findall(r"`(\w+)`", keyword):
            for function in re.findall(r"`([\w.]+)`", functions) or [EVERY]:
                found.add((function.rpartition(".")[2], word))
    return found


def untested() -> list[str]:
    """The keywords that no test passes, a line each."""
    named, placed = passed()
    for name, keyword in compared():
        named[name].add(keyword)
    walked = [
        importlib.import_module(f"arguments.test_keyword_{walk}").WALKED_PAIRS
        for walk in ("functions", "layers")
    ]
    for name, keyword in (pair for pairs in walked for pair in pairs):
        named[name].add(keyword)
    walked = importlib.import_module("arguments.test_keyword_walks").WALKED
    harmless = without_effect() | {(EVERY, keyword) for keyword in walked}
    left = []
    for (name, keyword), position in keywords().items():
        by_position = position is not None and placed[name] > position
        # An in-place form of the core hands its arguments on to the method.
        method = getattr(importlib.import_module("wengert").Tensor, name, None)
        if name[-1] == "_" and inspect.ismethoddescriptor(method):
            by_position = by_position or keyword in named[method.__name__.rstrip("_")]
        if (
            keyword not in named[name]
            and not by_position
            and not harmless & {(name, keyword), (EVERY, keyword)}
        ):
            left.append(f"{name} {keyword}")
    return sorted(left)


def main() -> int:
    """Prints them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail where there is such a keyword")
    options = parser.parse_args()
    sys.path[0] = str(ROOT / "tests")
    found = untested()
    for line in found:
        print(f"no test passes this keyword: {line}")
    print(f"{len(keywords())} keywords of public functions, {len(found)} passed by no test")
    return 1 if options.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
