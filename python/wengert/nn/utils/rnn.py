"""Sequences of different lengths: padded to one tensor, or packed without padding for recurrent layers.

Packed, the elements of all sequences at one time stand together, longest sequence first, so that a recurrent
layer runs over as many rows at each time as sequences go on then. Names and layouts are those of
`torch.nn.utils.rnn`.

Example:
    >>> a, b = wg.tensor([1.0, 2.0, 3.0]), wg.tensor([4.0])
    >>> wg.nn.utils.rnn.pad_sequence([a, b], batch_first=True)
    tensor([[1., 2., 3.],
            [4., 0., 0.]])
    >>> wg.nn.utils.rnn.pack_sequence([a, b]).data
    tensor([1., 4., 2., 3.])
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import wengert as wg
from wengert import _core
from wengert._core import Tensor
from wengert.composed._method import index_dtype

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence(NamedTuple):
    """Sequences without padding.

    Attributes:
        data: `(sum of lengths, *)`, all elements, those of one time together.
        batch_sizes: `(longest length,)`, int64 on the CPU: how many sequences have an element at each time.
        sorted_indices: the places of the sequences, longest first; None if they came in that order.
        unsorted_indices: the inverse of that.

    Example:
        >>> packed = wg.nn.utils.rnn.pack_sequence([wg.tensor([1, 2]), wg.tensor([3])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """Returns the same with `data` converted or moved, and with the places where it is."""
        data = self.data.to(*args, **kwargs)
        if data.device == self.data.device:
            return self._replace(data=data)
        kind = index_dtype(data)
        order, back = (
            x if x is None else x.to(kind).to(data.device)
            for x in (self.sorted_indices, self.unsorted_indices)
        )
        return self._replace(data=data, sorted_indices=order, unsorted_indices=back)

    def cpu(self) -> "PackedSequence":
        """Returns the same on the CPU."""
        return self.to("cpu")

    def float(self) -> "PackedSequence":
        """Returns the same with float32 `data`."""
        return self.to(_core.float32)

    def double(self) -> "PackedSequence":
        """Returns the same with float64 `data`."""
        return self.to(_core.float64)

    def half(self) -> "PackedSequence":
        """Returns the same with float16 `data`."""
        return self.to(_core.float16)

    def bfloat16(self) -> "PackedSequence":
        """Returns the same with bfloat16 `data`."""
        return self.to(_core.bfloat16)

    def long(self) -> "PackedSequence":
        """Returns the same with int64 `data`."""
        return self.to(_core.int64)

    def int(self) -> "PackedSequence":
        """Returns the same with int32 `data`."""
        return self.to(_core.int32)

    @property
    def is_gpu(self) -> bool:
        """Whether `data` is on a GPU."""
        return self.data.is_gpu


def _lengths(name: str, lengths: Any) -> list[int]:
    """Lengths as integers."""
    found = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if not found or any(not isinstance(n, int) or n < 1 for n in found):
        raise ValueError(f"{name}: lengths of at least 1 expected, got {found}")
    return found


def _sizes(lengths: Sequence[int]) -> list[int]:
    """How many of the sequences, longest first, have an element at each time."""
    return [sum(n > t for n in lengths) for t in range(lengths[0])]


def _places(sizes: Sequence[int], batch: int, device: Any) -> Tensor:
    """The rows `time * batch + sequence` of packed elements among padded ones."""
    return _core.tensor([t * batch + b for t, size in enumerate(sizes) for b in range(size)], device=device)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences.

    Args:
        input: `(longest length, batch, *)`, or with `batch_first` `(batch, longest length, *)`.
        lengths: one per sequence, a list or a tensor.
        enforce_sorted: the sequences come longest first; otherwise they are sorted, and results of recurrent
            layers are put back in the given order.

    Linear, with gradients of zero for the padding.

    Raises:
        ValueError: lengths below 1, above that of the input, or not in order with `enforce_sorted`.

    Example:
        >>> packed = wg.nn.utils.rnn.pack_padded_sequence(wg.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """
    name = "pack_padded_sequence"
    sizes = _lengths(name, lengths)
    x = input.transpose(0, 1) if batch_first else input
    if x.ndim < 2 or len(sizes) != x.shape[1] or max(sizes) > x.shape[0]:
        raise ValueError(
            f"{name}: {len(sizes)} lengths up to {max(sizes)} do not fit input of shape {tuple(input.shape)}"
        )
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    indices = None
    if order != list(range(len(order))):
        if enforce_sorted:
            raise ValueError(
                f"{name}: lengths from the longest down expected, got {sizes}; sort the sequences, or pass "
                "enforce_sorted=False"
            )
        indices = _core.tensor(order, device=x.device)
        x = x.index_select(1, indices)
    counts = _sizes([sizes[i] for i in order])
    rows = x[: len(counts)].reshape(-1, *x.shape[2:])
    data = rows.index_select(0, _places(counts, len(sizes), x.device))
    back = None if indices is None else indices.argsort()
    return PackedSequence(data, _core.tensor(counts, device="cpu"), indices, back)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns padded sequences `(longest length, batch, *)`, and their lengths, in the order in which they
    were packed.

    Args:
        sequence: from `pack_padded_sequence`, `pack_sequence` or a recurrent layer.
        batch_first: return `(batch, longest length, *)`.
        padding_value: what is put behind the end of shorter sequences.
        total_length: pad up to this length.

    Raises:
        ValueError: a `total_length` below that of the longest sequence.

    Example:
        >>> packed = wg.nn.utils.rnn.pack_sequence([wg.tensor([1, 2]), wg.tensor([3])])
        >>> wg.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    counts = sequence.batch_sizes.tolist()
    longest = len(counts) if total_length is None else total_length
    if longest < len(counts):
        raise ValueError(
            f"pad_packed_sequence: total_length of at least {len(counts)} expected, the longest sequence, "
            f"got {longest}"
        )
    data, batch = sequence.data, counts[0]
    shape = (longest * batch, *data.shape[1:])
    room = _core.full(shape, padding_value, dtype=data.dtype, device=data.device)
    padded = room.index_copy(0, _places(counts, batch, data.device), data)
    padded = padded.reshape(longest, batch, *data.shape[1:])
    lengths = _core.tensor([sum(size > b for size in counts) for b in range(batch)], device="cpu")
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices.cpu())
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences `(length, *)` as one tensor `(longest length, batch, *)`, with `batch_first` batches first.

    Args:
        sequences: at least one; all axes but the first agree.
        batch_first: which layout.
        padding_value: what fills up the shorter ones.
        padding_side: `"right"`, behind their end, or `"left"`.

    Raises:
        ValueError: no sequences, or another side.

    Example:
        >>> wg.nn.utils.rnn.pad_sequence([wg.tensor([1, 2]), wg.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if padding_side not in ("left", "right"):
        raise ValueError(f"pad_sequence: padding_side must be 'left' or 'right', got {padding_side!r}")
    if len(sequences) == 0:
        raise ValueError("pad_sequence: at least one sequence expected, got none")
    longest = max(x.shape[0] for x in sequences)
    padded = []
    for x in sequences:
        missing = longest - x.shape[0]
        widths = [missing, 0] if padding_side == "left" else [0, missing]
        padded.append(
            wg.nn.functional.pad(x, [0, 0] * (x.ndim - 1) + widths, value=padding_value) if missing else x
        )
    return _core.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """Returns the sequences `(length, *)` of a tensor padded on the right: the inverse of `pad_sequence`.

    Args:
        padded_sequences: `(longest length, batch, *)`, with `batch_first` `(batch, longest length, *)`.
        lengths: one per sequence, a list or a tensor.
        batch_first: which layout.

    Raises:
        ValueError: lengths below 1, above that of the input, or of another number.

    Example:
        >>> wg.nn.utils.rnn.unpad_sequence(wg.tensor([[1, 2], [3, 0]]), wg.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    sizes = _lengths("unpad_sequence", lengths)
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    if len(sizes) != x.shape[0] or max(sizes) > x.shape[1]:
        raise ValueError(
            f"unpad_sequence: {len(sizes)} lengths up to {max(sizes)} do not fit sequences of shape "
            f"{tuple(padded_sequences.shape)}"
        )
    return [x[i, :size] for i, size in enumerate(sizes)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs `sequences` `(length, *)`; see `pack_padded_sequence`, also for `enforce_sorted`.

    Example:
        >>> wg.nn.utils.rnn.pack_sequence([wg.tensor([1, 2]), wg.tensor([3])]).data
        tensor([1, 3, 2])
    """
    return pack_padded_sequence(
        pad_sequence(sequences), [x.shape[0] for x in sequences], enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Returns the sequences `(length, *)` of `packed_sequences`, in the order in which they were packed.

    Example:
        >>> packed = wg.nn.utils.rnn.pack_sequence([wg.tensor([1, 2]), wg.tensor([3])])
        >>> wg.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2]), tensor([3])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
