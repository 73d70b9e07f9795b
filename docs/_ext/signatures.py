"""Parameters of the compiled functions, from the type stub: their own text signatures have no types."""

import ast
import re
from pathlib import Path
from typing import Any

import wengert as wg

# The stub's short names of types.
ALIASES = {
    "Dims": "int | Sequence[int] | None",
    "Operand": "Tensor | ndarray | float",
    "DTypeLike": "dtype | str",
    "DeviceLike": "device | str",
    "dtype": "dtype",
    "device": "device",
}


def spelled(found: re.Match[str]) -> str:
    """A short name written out; others stay."""
    return ALIASES.get(found[1], found[0])


def read_stub() -> dict[str, tuple[str, str]]:
    """Per full name in the stub: parameters and result, as written there."""
    path = Path(wg.__file__).with_name("_core.pyi")
    found: dict[str, tuple[str, str]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for member in inside:
            if isinstance(member, ast.FunctionDef):
                found[prefix + member.name] = written(member)
    return found


def written(function: ast.FunctionDef) -> tuple[str, str]:
    """Parameters and result of one function."""
    plain = lambda text: re.sub(r"\b_(\w+)\b", spelled, text.replace("builtins.", ""))
    drop = {"self", "cls"}
    arguments = function.args
    for group in (arguments.posonlyargs, arguments.args):
        group[:] = [a for a in group if a.arg not in drop]
    result = ast.unparse(function.returns) if function.returns else "Any"
    return f"({plain(ast.unparse(arguments))})", plain(result)


STUB = read_stub()


def signature(full: str) -> tuple[str, str] | None:
    """Parameters and result of a compiled function or method, or of a function made from a method."""
    name = full.removeprefix("wengert.").removeprefix("Tensor.")
    of_tensor = full.startswith("wengert.Tensor.")
    if full.count(".") == 1 and name in STUB:
        return STUB[name]
    method = STUB.get(f"Tensor.{name}")
    if method is None or "**kwargs" in method[0]:
        # The in-place form of an operation takes what the operation takes.
        method = STUB.get(f"Tensor.{name.removesuffix('_')}", method)
    if method is None or full.count(".") > 2 or not (of_tensor or full.count(".") == 1):
        return None
    if of_tensor:
        return method
    inner = method[0][1:-1].removeprefix("/, ")
    return (
        "(input: Tensor | ndarray | float, /" + (f", {inner}" if inner and inner != "/" else "") + ")"
    ), method[1]


def process(
    app: Any, what: str, name: str, obj: Any, options: Any, given: str | None, returned: str | None
) -> Any:
    """Sphinx's `autodoc-process-signature`."""
    del app, obj, options
    if what not in ("function", "method"):
        return given, returned
    return signature(name) or (given, returned)
