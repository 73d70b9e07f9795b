"""The conventions of `shaders/README.md`, checked on every file, and that each compiles as it stands."""

import re
from itertools import pairwise

import pytest
from shaders.host import SHADERS, device, pipeline, source

FILES = sorted(SHADERS.glob("*.wgsl"))
LIBRARY = {path.stem for path in (SHADERS / "lib").glob("*.wgsl")}
README = (SHADERS / "README.md").read_text(encoding="utf-8")
KINDS = "alias|const|halves|words|load|load4|store|store4|fn|tensors|lists|chain|slots|shuffle"
MARKER = re.compile(rf"//@ ({KINDS}) \w+$")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_conventions(path):
    text = source(path.name)
    own = path.read_text(encoding="utf-8")
    lines = own.splitlines()
    header = own[: re.search(r"^(struct|//@)", own, re.MULTILINE).start()]
    for word in ("bindings", "grid", "workgroup"):
        assert re.search(rf"^// .*\b{word}\b", header, re.MULTILINE), f"the header does not say {word}"
    assert f"`{path.stem}`" in README, "README.md does not list the file"
    assert max(map(len, lines)) <= 110
    assert len(lines) <= 400
    assert not re.search(r"^(enable|requires|override)\b", text, re.MULTILINE), "not portable"
    for line, after in pairwise(text.splitlines()):
        if line.startswith("//@ use"):
            assert line.removeprefix("//@ use ") in LIBRARY
        elif line.lstrip().startswith("//@"):
            assert MARKER.match(line.lstrip()), line
            assert after.rstrip().endswith(("}", ";", ",")) or "; //" in after, f"not one line: {after}"
    assert set(re.findall(r"@workgroup_size\((.*?)\)", text)) == {"256"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_compiles_as_it_stands(path):
    text = source(path.name)
    inputs = len(re.findall(r"var<storage, read> ", text))
    outputs = len(re.findall(r"var<storage, read_write> ", text))
    numbers = [int(n) for n in re.findall(r"@binding\((\d)\)", text)]
    assert numbers == list(range(inputs + outputs + 1))
    assert inputs + outputs <= 8
    for entry in re.findall(r"@compute @workgroup_size\(256\)\nfn (\w+)", text):
        assert pipeline(text, entry, inputs, outputs)


#: What kernels complete, or another file of the library.
PARTS = {
    "attention_scores",
    "chain",
    "halves",
    "lines",
    "long",
    "matmul",
    "norm_vjp",
    "optim",
    "places",
    "row_out",
    "rows",
    "shuffle",
    "strided",
    "tensors",
    "tile",
    "tile_matrices",
    "tile_threads",
}


@pytest.mark.parametrize("name", sorted(LIBRARY - PARTS))
def test_library_compiles_as_it_stands(name):
    assert device().create_shader_module(code=source(f"lib/{name}.wgsl"))
