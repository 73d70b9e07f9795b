"""Random damage to safetensors files: what is read is what the file says, as another reader has it."""

import importlib
import importlib.util
import json
import math
import random
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.safetensors import SafetensorError, load, save

BITS = {
    "F64": 64,
    "F32": 32,
    "F16": 16,
    "BF16": 16,
    "I64": 64,
    "I32": 32,
    "I16": 16,
    "I8": 8,
    "U8": 8,
    "BOOL": 8,
}
BITS |= {"U64": 64, "U32": 32, "U16": 16, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
BITS |= {f"F8_{kind}": 8 for kind in ("E5M2", "E4M3", "E8M0", "E4M3FNUZ", "E5M2FNUZ")}
Found = dict[str, tuple[str, list[int], bytes]]


def by_rules(data: bytes) -> Found | None:
    """The tensors of a file; None if it is none. Written over JSON's parser, unlike the library's."""

    def no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    def digits(text: str) -> int:
        return int(text) if text.isdigit() else -1

    try:
        size = int.from_bytes(data[:8], "little")
        assert len(data) >= 8 + size
        text = data[8 : 8 + size].decode()
        assert text[0] == "{"
        header = json.loads(text, object_pairs_hook=no_doubles, parse_int=digits)
        json.dumps(header, ensure_ascii=False).encode()
        metadata = header.pop("__metadata__", {})
        assert all(isinstance(x, str) for x in metadata.values())
        place, found, rest = 0, {}, data[8 + size :]
        for name, one in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            assert set(one) == {"dtype", "shape", "data_offsets"}
            begin, end = one["data_offsets"]
            numbers = [begin, end, *one["shape"]]
            assert all(type(n) is int and 0 <= n < 1 << 63 for n in numbers)
            assert math.prod(max(n, 1) for n in one["shape"]) < 1 << 60
            assert begin == place <= end
            assert math.prod(one["shape"]) * BITS[one["dtype"]] == 8 * (end - begin)
            found[name] = one["dtype"], one["shape"], rest[begin:end]
            place = end
        assert place == len(rest)
    except (AssertionError, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        return None
    return found


def by_package(data: bytes) -> Found | None:
    """The same, by the package."""
    package = importlib.import_module("safetensors")
    try:
        listed = package.deserialize(data)
    except package.SafetensorError:
        return None
    return {name: (x["dtype"], list(x["shape"]), bytes(x["data"])) for name, x in listed}


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The file with one to three changes."""
    out = bytearray(data)
    header = 8 + int.from_bytes(data[:8], "little")
    for _ in range(rng.randint(1, 3)):
        reach = min(len(out), header if rng.random() < 0.9 else len(out))
        at = rng.randrange(max(reach, 1))
        kind = rng.randrange(8)
        if kind == 0:
            out[at : at + 1] = rng.randbytes(1)
        elif kind == 1:
            out[at : at + 1] = rng.choice(b'0123456789[]{}",:eE.-+ \\tn').to_bytes()
        elif kind == 2:
            del out[at : at + rng.randint(1, 30)]
        elif kind == 3:
            out[at:at] = rng.choice(
                [b"0", b",", b" ", b"[", b"{}", b'"a":1,', b"\\u0061", b"1e3", b"-", b"\xff", b"\n"]
            )
        elif kind == 4:
            start = rng.randrange(max(reach, 1))
            out[at:at] = out[start : start + rng.randint(1, 90)]
        elif kind == 5:
            del out[len(out) - rng.randint(1, 4) :]
        elif kind == 6:
            old, new = rng.sample(
                [b"F32", b"BF16", b"U8", b"I8", b"BOOL", b"I64", b"F64", b"F16", b"F4", b"C64"], 2
            )
            out = bytearray(bytes(out).replace(old, new, 1))
        else:
            out += rng.randbytes(rng.randint(1, 8))
        if rng.random() < 0.8:  # a length that fits lets the rest be looked at
            out[:8] = max(header + len(out) - len(data) - 8, 0).to_bytes(8, "little")
    return bytes(out)


def sample(rng: random.Random) -> bytes:
    """A file of few small tensors."""
    kinds = ["float32", "bfloat16", "uint8", "int64", "bool", "complex64", "float16", "int8"]
    shapes = [(), (0,), (1,), (2,), (2, 3), (4, 1)]
    tensors = {
        rng.choice("abcdé") * rng.randint(0, 2): wg.ones(
            rng.choice(shapes), dtype=getattr(wg, rng.choice(kinds))
        )
        for _ in range(rng.randint(0, 4))
    }
    return save(tensors, rng.choice([None, {}, {"format": "pt"}, {"a": "b", "c": "\n"}]))


def elements(x: wg.Tensor) -> bytes:
    host = x.to(wg.float32) if x.dtype == wg.bfloat16 else x
    return host.numpy().tobytes()


def of_file(kind: str, data: bytes) -> bytes:
    if kind == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).tobytes()
    return np.frombuffer(data, bool).astype("u1").clip(0, 1).tobytes() if kind == "BOOL" else data


JUDGES = [by_rules] + ([by_package] if importlib.util.find_spec("safetensors") else [])


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files(seed: int) -> None:
    rng, accepted = random.Random(seed), 0
    for _ in range(1000):
        data = damaged(rng, sample(rng))
        expected = by_rules(data)
        try:
            found = load(data)
        except SafetensorError:
            assert expected is None, data
            continue
        except TypeError:
            assert expected is not None
            assert any(kind.startswith(("F8", "F6", "F4")) for kind, *_ in expected.values())
            continue
        accepted += 1
        for judge in JUDGES:
            told = judge(data)
            assert told is not None, data
            assert set(found) == set(told)
            for name, (kind, shape, part) in told.items():
                assert list(found[name].shape) == shape
                assert elements(found[name]) == of_file(kind, part)
    assert accepted > 50
