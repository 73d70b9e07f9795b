"""Files of safetensors that are refused: damaged, hostile, or of another kind."""

import io
import json
import pickle
import tracemalloc
from pathlib import Path

import pytest
import wengert as wg
from exchange.safetensors_bytes import at, entry, written
from wengert.safetensors import SafetensorError, load, load_file, safe_open, save

X = wg.arange(6.0).reshape(2, 3)
ONE = entry("F32", [1], 0, 4)
HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "a file of 0 bytes is too short"),
    "short": (b"\x02\0\0\0\0\0\0", "a file of 7 bytes is too short"),
    "no header": (bytes(8), "the header begins with b'', not with b'{'"),
    "a long header": (
        b"\xff" * 8 + b"{}",
        "a header of 18446744073709551615 bytes is announced in a file of 10",
    ),
    "cut in the header": (save({"a": X})[:40], "is announced in a file of 40"),
    "cut in the data": (save({"a": X})[:-1], "the tensors have 24 bytes, and the file 23 behind its header"),
    "appended": (save({"a": X}) + b"x", "the tensors have 24 bytes, and the file 25 behind"),
    "no UTF-8": (written(b'{"\xff":1}'), "the header is not UTF-8"),
    "a space first": (written(" {}"), "begins with b' '"),
    "a list": (written("[]"), "begins with b'\\['"),
    "two objects": (written("{}{}"), "the end expected at character 2 of the header, got '{}'"),
    "no end": (written('{"a":'), "dtype, shape and data_offsets of 'a' expected at character 5"),
    "a comma": (written(f'{{"a":{json.dumps(ONE)},}}', bytes(4)), "a text expected at character 60"),
    "no comma": (written('{"__metadata__":{} "a":1}'), "',' expected at character 19 of the header"),
    "deep": (written('{"a":' + "[" * 100_000), "data_offsets of 'a' expected at character 5"),
    "deep objects": (written('{"a":' * 100_000), "data_offsets of 'a' expected at character 5"),
    "a deep shape": (written('{"a":{"dtype":"U8","shape":' + "[" * 3000 + "}}"), "'a' is described by"),
    "twice": (written(f'{{"a":{json.dumps(ONE)},"\\u0061":{json.dumps(ONE)}}}', bytes(4)), "has 'a' twice"),
    "a field twice": (
        written('{"a":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}}', b"x"),
        "'a' is described by",
    ),
    "metadata twice": (written('{"__metadata__":{},"__metadata__":{}}'), "has '__metadata__' twice"),
    "a text twice": (written('{"__metadata__":{"a":"","a":""}}'), "the metadata has 'a' twice"),
    "metadata of numbers": (written('{"__metadata__":{"a":1}}'), "a text expected at character 21"),
    "half a pair": (written('{"\\ud800":{}}'), "a text expected at character 1 of the header"),
    "a control character": (written('{"\n":{}}'), "a text expected at character 1"),
    "an unknown dtype": (
        written({"a": entry("F33", [1], 0, 4)}, bytes(4)),
        "'a' is of an unknown dtype, 'F33'",
    ),
    "a hole": (
        written({"a": ONE, "b": entry("F32", [1], 5, 9)}, bytes(9)),
        "'b' lies in bytes 5 to 9, where .* at 4",
    ),
    "overlap": (written({"a": ONE, "b": entry("F32", [1], 2, 6)}, bytes(6)), "'b' lies in bytes 2 to 6"),
    "equal places": (
        written({"a": ONE, "b": ONE}, bytes(4)),
        "'b' lies in bytes 0 to 4, where the tensor before",
    ),
    "a late start": (written({"a": entry("F32", [1], 4, 8)}, bytes(8)), "'a' lies in bytes 4 to 8"),
    "backwards": (written({"a": ONE, "b": entry("F32", [0], 4, 0)}, bytes(4)), "lies in bytes"),
    "beyond the end": (written({"a": entry("F32", [100], 0, 400)}, bytes(4)), "the tensors have 400 bytes"),
    "another size": (
        written({"a": entry("F64", [1], 0, 4)}, bytes(4)),
        "4 bytes, which do not make its shape '\\[1\\]'",
    ),
    "half a byte": (written({"a": entry("F4", [3], 0, 2)}, bytes(2)), "2 bytes, which do not make"),
    "too much": (written({"a": entry("U8", [2**62, 2**62], 0, 2**63)}), "is described by"),
    "a product of 2^64": (
        written({"a": entry("U8", [2**32, 2**32], 0, 0)}),
        "has a shape beyond every memory",
    ),
    "nothing of much": (
        written({"a": entry("U8", [0, 2**40, 2**40], 0, 0)}),
        "has a shape beyond every memory",
    ),
    "minus nothing": (
        written('{"a":{"dtype":"U8","shape":[],"data_offsets":[-0,1]}}', b"x"),
        "'a' is described by",
    ),
    "negative": (written({"a": entry("F32", [-1], 0, 4)}, bytes(4)), "'a' is described by"),
    "broken": (written({"a": entry("F32", [1.0], 0, 4)}, bytes(4)), "'a' is described by"),
    "truth": (written({"a": entry("F32", [True], 0, 4)}, bytes(4)), "'a' is described by"),
    "a text": (written({"a": entry("F32", "1", 0, 4)}, bytes(4)), "'a' is described by"),
    "three places": (written({"a": {**ONE, "data_offsets": [0, 4, 4]}}, bytes(4)), "'a' is described by"),
    "no dtype": (written({"a": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4)), "'a' is described by"),
    "more fields": (written({"a": {**ONE, "device": "cpu"}}, bytes(4)), "'a' is described by"),
    "digits": (
        written('{"a":{"dtype":"U8","shape":[' + "9" * 3900 + '],"data_offsets":[0,1]}}', b"x"),
        "is described",
    ),
    "many axes": (written({"a": entry("U8", [1] * 5000, 0, 1)}, b"x"), "data_offsets of 'a' expected"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(tmp_path: Path, name: str) -> None:
    data, message = HOSTILE[name]
    path = at(tmp_path / "x", data)
    tracemalloc.start()
    try:
        for call in (lambda: load(data), lambda: load_file(path), lambda: safe_open(path, "pt")):
            with pytest.raises(SafetensorError, match=f"^safetensors: .*{message}"):
                call()
        # Nothing is made in proportion to what a file claims.
        assert tracemalloc.get_traced_memory()[1] < 100_000 + 6 * len(data)
    finally:
        tracemalloc.stop()


def test_a_header_beyond_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.write((100_000_001).to_bytes(8, "little") + b"{")
        file.truncate(100_000_009)  # holes take no disk
    with pytest.raises(SafetensorError, match="headers have at most 100000000"):
        load_file(path)


def test_files_of_another_kind() -> None:
    file = io.BytesIO()
    wg.save(X, file)
    with pytest.raises(
        SafetensorError, match=r"a zip archive, as wengert\.save .* write; read it with wengert\.load$"
    ):
        load(file.getvalue())
    with pytest.raises(
        pickle.UnpicklingError, match=r"a file of safetensors; read it with wengert\.safetensors\.load"
    ):
        wg.load(io.BytesIO(save({"a": X})))


def test_many_axes_have_the_error_of_shapes() -> None:
    with pytest.raises(wg.ShapeError):
        load(written({"a": entry("U8", [1] * 20, 0, 1)}, b"x"))
