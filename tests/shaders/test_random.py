"""random.wgsl against the published known answers of Philox4x32-10 and a NumPy twin."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, close, run, types
from shaders.views import few

ONES = 0xFFFFFFFF
DIGITS = {np.dtype(np.float32): 24, np.dtype(np.float16): 11, np.dtype(BF16): 8}
KNOWN = [
    ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def philox(count, seed, offset, stream=0):
    """The first `count` words of the stream, in Python integers."""
    words = []
    for j in range(-(-count // 4)):
        at = (offset + j) % 2**64
        c = [at % 2**32, at >> 32, stream % 2**32, stream >> 32]
        k = [seed % 2**32, seed >> 32]
        for _ in range(10):
            x, z = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(z >> 32) ^ c[1] ^ k[0], z % 2**32, (x >> 32) ^ c[3] ^ k[1], x % 2**32]
            k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
        words += c
    return np.array(words[:count], np.uint32)


def draw(entry, count, seed=1, offset=0, stream=0, low=0.0, scale=1.0, int_low=0, span=1, dtype=np.float32):
    params = [count]
    for wide in (seed, offset, stream):
        params += [wide % 2**32, wide >> 32]
    params += [float(low), float(scale), int_low, span]
    replace = types(out=("out", dtype)) if entry in ("uniform", "normal") else {}
    if entry == "uniform":
        replace["const DIGITS"] = f"const DIGITS: u32 = {DIGITS[np.dtype(dtype)]}u;"
    return run(
        "random.wgsl", [], [((count,), dtype)], params, -(-count // 1024), replace, f"draw_{entry}", limit=2
    )[0]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter, key, answer):
    offset, stream = counter[0] | counter[1] << 32, counter[2] | counter[3] << 32
    got = draw("bits", 4, key[0] | key[1] << 32, offset, stream, dtype=np.uint32)
    assert " ".join(f"{w:08x}" for w in got) == answer


@few
@given(st.integers(1, 3000), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_bits(count, seed, offset):
    np.testing.assert_array_equal(
        draw("bits", count, seed, offset, dtype=np.uint32), philox(count, seed, offset)
    )


def test_counter_carries_into_its_upper_word():
    offset = 2**32 - 2
    np.testing.assert_array_equal(draw("bits", 20, 5, offset, dtype=np.uint32), philox(20, 5, offset))


@few
@given(st.integers(1, 2000), st.integers(0, 2**64 - 1))
def test_uniform_is_exact(count, seed):
    want = (philox(count, seed, 3) >> 8).astype(np.float32) * np.float32(2**-24)
    np.testing.assert_array_equal(draw("uniform", count, seed, 3), want)


@few
@given(st.integers(1, 2000), st.integers(0, 2**64 - 1))
def test_normal(count, seed):
    bits = philox(-(-count // 4) * 4, seed, 0).reshape(-1, 2) >> 8
    r, angle = np.sqrt(-2 * np.log((bits[:, 0] + 1.0) / 2**24)), 2 * np.pi * bits[:, 1] / 2**24
    want = np.stack([r * np.cos(angle), r * np.sin(angle)], 1).reshape(-1)[:count]
    close(draw("normal", count, seed), want, scale=20)
    close(draw("normal", count, seed, low=5, scale=3), 5 + 3 * want, scale=40)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9001])
@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_half(dtype, count):
    want = (philox(count, 9, 0) >> 8) * 2.0**-24
    got = draw("uniform", count, 9, dtype=dtype)
    close(got, want, dtype)
    assert (got.astype(np.float32) < 1).all()


@few
@given(st.integers(1, 2000), st.integers(-1000, 1000), st.integers(1, 2**31 - 1))
def test_randint(count, low, span):
    got = draw("randint", count, 7, int_low=low, span=span, dtype=np.int32)
    np.testing.assert_array_equal(
        got,
        (low + (philox(count, 7, 0).astype(np.uint64) * span >> np.uint64(32)).astype(np.int64)).astype(
            np.int32
        ),
    )
