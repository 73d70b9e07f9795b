"""Padded and packed sequences, and recurrent layers over packs: as over each sequence alone."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import Array, array, assert_near
from wengert import nn
from wengert.nn.utils import rnn


def drawn(*lengths: int, width: int = 3) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, width)) for n in lengths]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_padding(batch_first: bool, side: str) -> None:
    sequences = drawn(2, 4, 1)
    padded = rnn.pad_sequence([wg.tensor(x) for x in sequences], batch_first, 7.0, side)
    expected = np.full((3, 4, 3), 7.0)
    for row, x in zip(expected, sequences):
        row[slice(4 - len(x), None) if side == "left" else slice(len(x))] = x
    assert_near(padded, expected if batch_first else expected.swapaxes(0, 1), 0)
    if side == "right":
        for got, x in zip(rnn.unpad_sequence(padded, [2, 4, 1], batch_first), sequences):
            assert_near(got, x, 0)


def test_packs() -> None:
    sequences = drawn(4, 2, 2, 1, width=1)
    pack = rnn.pack_sequence([wg.tensor(x) for x in sequences])
    assert pack.batch_sizes.tolist() == [4, 3, 1, 1]
    assert pack.sorted_indices is None
    expected = [x[t] for t in range(4) for x in sequences if len(x) > t]
    assert_near(pack.data, np.stack(expected), 0)
    padded, lengths = rnn.pad_packed_sequence(pack, True, -1.0, total_length=5)
    assert lengths.tolist() == [4, 2, 2, 1]
    assert padded.shape == (4, 5, 1)
    for row, x in zip(array(padded), sequences):
        assert_near(wg.tensor(row[: len(x)]), x, 0)
        assert (row[len(x) :] == -1.0).all()
    assert pack.to(wg.float32).data.dtype == wg.float32


def test_packs_in_any_order() -> None:
    sequences = drawn(2, 5, 1, 4)
    pack = rnn.pack_sequence([wg.tensor(x) for x in sequences], enforce_sorted=False)
    assert pack.sorted_indices is not None
    assert pack.sorted_indices.tolist() == [1, 3, 0, 2]
    for got, x in zip(rnn.unpack_sequence(pack), sequences):
        assert_near(got, x, 0)


def test_gradients_and_batches_of_packs() -> None:
    x = wg.tensor(np.stack(drawn(4, 4)))
    lengths = [2, 4]

    def through(x: wg.Tensor) -> wg.Tensor:
        pack = rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        return rnn.pad_packed_sequence(pack._replace(data=pack.data.square()), True)[0]

    expected = 2 * array(x)
    expected[0, 2:] = 0
    assert_near(wg.grad(lambda x: through(x).sum())(x), expected, 1e-15)
    many = wg.stack([x, 2 * x, -x])
    assert_near(wg.vmap(through)(many), np.stack([array(through(one)) for one in many]), 0)
    assert_near(wg.jvp(through, (x,), (x,))[1], 2 * array(through(x)), 1e-15)


LAYERS: dict[str, dict[str, Any]] = {
    "one": {},
    "several": {"num_layers": 2, "bidirectional": True},
    "without bias": {"bias": False, "bidirectional": True},
}


@pytest.mark.parametrize("lengths", [(5, 5, 3, 1), (2, 5, 1, 4)], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("options", list(LAYERS))
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM", "projected"])
def test_recurrent_layers(kind: str, options: str, lengths: tuple[int, ...]) -> None:
    wg.manual_seed(1)
    more = {"proj_size": 2} if kind == "projected" else {}
    kind = "LSTM" if kind == "projected" else kind
    layer = getattr(nn, kind)(3, 4, **LAYERS[options], **more).double()
    sequences = [wg.tensor(x) for x in drawn(*lengths)]
    count = LAYERS[options].get("num_layers", 1) * (2 if LAYERS[options].get("bidirectional") else 1)
    rng = np.random.default_rng(5)
    widths = [more.get("proj_size", 4), 4][: 2 if kind == "LSTM" else 1]
    start = tuple(wg.tensor(rng.normal(size=(count, len(lengths), w))) for w in widths)

    def packed(start: tuple[wg.Tensor, ...]) -> tuple[list[wg.Tensor], tuple[wg.Tensor, ...]]:
        pack = rnn.pack_sequence(sequences, enforce_sorted=False)
        out, last = layer(pack, start if kind == "LSTM" else start[0])
        return rnn.unpack_sequence(out), last if kind == "LSTM" else (last,)

    def alone(start: tuple[wg.Tensor, ...]) -> tuple[list[wg.Tensor], tuple[wg.Tensor, ...]]:
        outs, lasts = [], []
        for i, x in enumerate(sequences):
            own = tuple(s[:, i : i + 1] for s in start)
            out, last = layer(x.unsqueeze(1), own if kind == "LSTM" else own[0])
            outs.append(out.squeeze(1))
            lasts.append(last if kind == "LSTM" else (last,))
        return outs, tuple(wg.cat(parts, 1) for parts in zip(*lasts))

    def loss(run: Any, start: tuple[wg.Tensor, ...]) -> wg.Tensor:
        outs, last = run(start)
        return sum(x.sin().sum() for x in outs) + sum(s.cos().sum() for s in last)

    for got, want in zip(packed(start)[0] + list(packed(start)[1]), alone(start)[0] + list(alone(start)[1])):
        assert_near(got, array(want), 1e-14)
    for got, want in zip(wg.grad(lambda s: loss(packed, s))(start), wg.grad(lambda s: loss(alone, s))(start)):
        assert_near(got, array(want), 1e-13)
    for parameter in layer.parameters():
        got, want = (wg.autograd.grad(loss(run, start), parameter)[0] for run in (packed, alone))
        assert_near(got, array(want), 1e-12)


ERRORS: Situations = {
    "order": (
        lambda: rnn.pack_padded_sequence(wg.ones(3, 2), [1, 3]),
        ValueError,
        "pack_padded_sequence: lengths from the longest down expected, got [1, 3]; sort the sequences, or "
        "pass enforce_sorted=False",
    ),
    "lengths": (
        lambda: rnn.pack_padded_sequence(wg.ones(3, 2), [3, 0]),
        ValueError,
        "pack_padded_sequence: lengths of at least 1 expected, got [3, 0]",
    ),
    "input": (
        lambda: rnn.pack_padded_sequence(wg.ones(3, 2), [4, 1]),
        ValueError,
        "pack_padded_sequence: 2 lengths up to 4 do not fit input of shape (3, 2)",
    ),
    "total": (
        lambda: rnn.pad_packed_sequence(rnn.pack_sequence([wg.ones(3)]), total_length=2),
        ValueError,
        "pad_packed_sequence: total_length of at least 3 expected, the longest sequence, got 2",
    ),
    "side": (
        lambda: rnn.pad_sequence([wg.ones(3)], padding_side="top"),
        ValueError,
        "pad_sequence: padding_side must be 'left' or 'right', got 'top'",
    ),
    "none": (
        lambda: rnn.pad_sequence([]),
        ValueError,
        "pad_sequence: at least one sequence expected, got none",
    ),
    "unpad": (
        lambda: rnn.unpad_sequence(wg.ones(3, 2), [1]),
        ValueError,
        "unpad_sequence: 1 lengths up to 1 do not fit sequences of shape (3, 2)",
    ),
    "width": (
        lambda: nn.RNN(3, 4)(rnn.pack_sequence([wg.ones(3, 2)])),
        wg.ShapeError,
        "RNN: packed data of shape (3, 2), expected 2 axes, the last of length input_size = 3",
    ),
}

test_errors = message_tests(ERRORS)
