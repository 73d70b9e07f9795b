"""The same bits on any number of ranks: a step is divided into a fixed number of shards.

What a shard computes does not depend on where: it starts from the same buffers, draws random numbers of its
own, and has the same part of the batch. Losses, gradients and buffers of all shards are added by one tree:
neighbours in pairs, and neighbours of these. A rank has shards that are next to each other and whose sum is a
node of the tree, so that it makes no difference which additions happen on one rank and which between ranks,
nor which of the elements travel in one message. So sums of gradients travel while the backward of the last
shard of the rank computes others.
"""

from __future__ import annotations

import copy
import hashlib
import struct
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import wengert as wg
from wengert import _core
from wengert._core import Tensor
from wengert.nn import Module

from ._flat import apply_flat, flatten_tensors, unflatten_tensors
from ._group import Group
from ._lines import caller_line, on_behalf_of
from ._reducer import divide
from ._tensors import gather_tensors, sum_tensors

__all__ = ["Shards", "Tree"]


class Tree:
    """Adds what it is given, neighbours first; holds one sum for each level."""

    def __init__(self) -> None:
        self.sums: list[tuple[int, list[Tensor]]] = []

    def add(self, tensors: list[Tensor]) -> None:
        """Takes the next leaf."""
        level = 0
        while self.sums and self.sums[-1][0] == level:
            tensors, level = _add_pairwise(self.sums.pop()[1], tensors), level + 1
        self.sums.append((level, tensors))

    def total(self, i: int, last: Tensor) -> Tensor:
        """The sum of tensor `i` of all leaves, of which `last` is that of the last one."""
        for _, tensors in reversed(self.sums):
            last = tensors[i] + last
        return last


def _add_pairwise(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
    return [x + y for x, y in zip(left, right)]


class Departure:
    """Sends the sums of gradients while the backward of this rank's last shard computes others.

    Args:
        params: the parameters.
        buckets: which of them travel in one message, in the order of messages.
        total: the sum of the gradients of a parameter, by its number.
        send: what makes averages over ranks of a vector of such sums.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        buckets: Sequence[Sequence[int]],
        total: Callable[[int], Tensor],
        send: Callable[[Tensor], Future[Tensor]],
    ) -> None:
        self.params, self.buckets, self.total, self.send = params, buckets, total, send
        self.places = {id(param): i for i, param in enumerate(params)}
        self.missing = [set(bucket) for bucket in self.buckets]
        self.sent: list[Future[Tensor]] = []

    def complete(self, param: int) -> None:
        """Takes note that the parameter with this id has its gradient; sends buckets that are complete."""
        place = self.places.get(param)
        for missing in self.missing:
            missing.discard(place)
        while len(self.sent) < len(self.buckets) and not self.missing[len(self.sent)]:
            self._send_next()

    def _send_next(self) -> None:
        with wg.no_grad():
            sums = [self.total(i) for i in self.buckets[len(self.sent)]]
            # Backward may add to gradients that are its own until they are copied.
            self.sent.append(self.send(flatten_tensors(sums)))

    def arrive(self) -> dict[int, Tensor]:
        """Sends what backward did not reach, and waits for the averages, by number of the parameter."""
        while len(self.sent) < len(self.buckets):
            self._send_next()
        found: dict[int, Tensor] = {}
        for bucket, sent in zip(self.buckets, self.sent):
            found |= zip(bucket, unflatten_tensors(sent.result(), [self.params[i] for i in bucket]))
        return found


class Shards:
    """The shards of a model that this rank has; see `DataParallel.backward`."""

    #: How many calls of `backward` are at work.
    _running = 0

    def __init__(self, module: Module, group: Group, grain: int, limit: int) -> None:
        own, rest = divmod(grain, group.size)
        if rest or own < 1 or (group.size > 1 and own & (own - 1)):
            raise ValueError(
                f"DataParallel: grain={grain} on {group.size} ranks; each rank needs 1, 2, 4, 8, ... shards, "
                "the same number on all"
            )
        self.module, self.group, self.grain, self.limit = module, group, grain, limit
        self._departure: Departure | None = None
        self._layout: tuple[list[int], list[list[int]]] = [], []
        self._thread = ThreadPoolExecutor(1, "wengert.distributed")
        self._last: Future[Tensor] | None = None
        self._handles: list[Any] = []
        self.own = range(group.rank * own, (group.rank + 1) * own)
        self._agree_on_instructions()
        self._compare()
        wg.set_rng_state(self._first_state())
        self._guard()

    def __deepcopy__(self, memo: dict[int, Any]) -> Shards:
        """The shards of a copy of the module, on the same ranks."""
        copied = copy.copy(self)
        copied.module, copied._handles = copy.deepcopy(self.module, memo), []
        copied._guard()
        return copied

    def _guard(self) -> None:
        """Lets any other backward to the parameters raise while these shards are there: it would average
        nothing. In theirs, gradients are complete behind all other hooks."""
        for handle in self._handles:
            handle.remove()
        shards = weakref.ref(self)

        def on_complete(param: int, _: Tensor) -> None:
            own = shards()
            if not Shards._running and own is not None:
                raise RuntimeError(
                    "DataParallel: with grain= the gradients of ranks are averaged by model.backward("
                    "function, *batch), not by loss.backward(), which leaves them as they are"
                )
            if own is not None and own._departure is not None:
                own._departure.complete(param)

        self._handles = [
            param.register_post_accumulate_grad_hook(partial(on_complete, id(param)))
            for param in self.module.parameters()
            if param.requires_grad
        ]

    def _first_state(self) -> tuple[int, int]:
        """Where the random numbers of rank 0 stand."""
        state = bytearray(struct.pack("=QQ", *wg.get_rng_state()))
        self.group.broadcast(state, 0)
        seed, position = struct.unpack("=QQ", state)
        return seed, position

    def _agree_on_instructions(self) -> None:
        """Lets all ranks use the least instruction set among them, as bits depend on it."""
        sets = ("baseline", "avx2", "avx512")
        everyone = gather_tensors(wg.tensor(sets.index(_core._isa())), self.group)
        _core._isa(sets[int(everyone.min())])

    def _compare(self) -> None:
        """Raises where the processors of two ranks compute other bits."""
        x = wg.arange(6300.0).sin().reshape(70, 90)
        normed = wg.nn.functional.layer_norm(x, (90,))
        probe = wg.cat([part.reshape(-1) for part in (x @ x.T, x @ x[0], x.softmax(1), normed, x.sum(1))])
        bits = gather_tensors(probe.view(wg.int32), self.group)
        for rank in range(self.group.size):
            if not bool((bits[rank] == bits[0]).all()):
                raise RuntimeError(
                    f"DataParallel: rank {rank} computes other bits than rank 0, also with the instruction "
                    f"set {_core._isa()!r}; start all ranks on processors of one kind, or with "
                    "WENGERT_ISA=baseline"
                )

    def backward(self, function: Callable[..., Tensor], batch: Sequence[Tensor]) -> Tensor:
        """Computes the average loss of all shards; adds its gradients to those of the parameters."""
        parts = self._parts(batch)
        if self._last is not None:
            # A backward that raised may have left it.
            wait([self._last])
        self._guard()
        params = [param for param in self.module.parameters() if param.requires_grad]
        is_averaged = lambda buffer: buffer.is_floating_point() or buffer.is_complex()
        buffers = [buffer for buffer in self.module.buffers() if is_averaged(buffer)]
        counters = [buffer for buffer in self.module.buffers() if not is_averaged(buffer)]
        before = [buffer.clone() for buffer in (*buffers, *counters)]
        held = [param.grad for param in params]
        # Ranks may draw data of their own between steps; shards draw from where rank 0 is.
        own_state, state = wg.get_rng_state(), self._first_state()
        tree, arrived = Tree(), dict[int, Tensor]()
        # In a leaf of the tree the gradients are behind the loss and the counts.
        total = lambda i: tree.total(i + 2, _widened(_gradient(params[i])))
        Shards._running += 1
        try:
            for shard, part in zip(self.own, parts):
                wg.set_rng_state((_seed(*state, shard), 0))
                with wg.no_grad():
                    for buffer, value in zip((*buffers, *counters), before):
                        buffer.copy_(value)
                for param in params:
                    param.grad = None
                loss = function(*part)
                if not isinstance(loss, Tensor):
                    raise TypeError(
                        "DataParallel.backward: a function that returns the loss, a tensor, expected; it "
                        f"returned {type(loss).__name__}"
                    )
                is_last = shard == self.own[-1]
                if is_last and self.group.size > 1:
                    self._departure = Departure(params, self._buckets(params), total, self._send)
                loss.backward()
                counts = [float(param.grad is not None) for param in params]
                leaf = [loss.detach(), wg.tensor(counts, device=loss.device), *map(_gradient, params)]
                leaf = [_widened(x) for x in (*leaf, *(buffer.clone() for buffer in buffers))]
                if not is_last:
                    tree.add(leaf)
            if self._departure is not None:
                arrived = self._departure.arrive()
        finally:
            self._departure = None
            Shards._running -= 1
            for param, grad in zip(params, held):
                param.grad = grad
            wg.set_rng_state((own_state[0], own_state[1] + 1))
        with wg.no_grad():
            means = {i + 2: mean for i, mean in arrived.items()}
            rest = [i for i in range(len(leaf)) if i not in means]
            means |= zip(rest, apply_flat(self._mean, [tree.total(i, leaf[i]) for i in rest]))
            loss, present, *grads = (means[i] for i in range(len(leaf)))
            values = grads[len(params) :]
            for param, grad, is_used in zip(params, grads, present.tolist()):
                if is_used:
                    grad = grad.to(param.dtype)
                    param.grad = grad if param.grad is None else param.grad + grad
            for buffer, value in zip(buffers, values):
                buffer.copy_(value)
        return loss

    def _parts(self, batch: Sequence[Tensor]) -> Sequence[tuple[Tensor, ...]]:
        """The batch of this rank, divided among its shards."""
        count = len(self.own)
        for x in batch:
            if x.ndim == 0 or x.shape[0] % count:
                raise ValueError(
                    f"DataParallel.backward: a tensor of shape {tuple(x.shape)} is not divided into {count} "
                    f"equal parts along axis 0, one for each shard of this rank"
                )
        return list(zip(*(x.chunk(count) for x in batch))) if batch else [()] * count

    def _buckets(self, params: Sequence[Tensor]) -> list[list[int]]:
        """Which gradients travel during backward, in one message each; the others travel with the loss."""
        own = [id(param) for param in params]
        if self._layout[0] != own:
            self._layout = own, divide(params, reversed(range(len(params))), self.limit)[:-1]
        return self._layout[1]

    def _mean(self, vector: Tensor) -> Tensor:
        """The average over all shards of a vector that holds the sums of this rank."""
        return sum_tensors(vector, self.group) / self.grain

    def _send(self, vector: Tensor) -> Future[Tensor]:
        """The same, computed beside the program."""
        line = caller_line()

        def run() -> Tensor:
            with wg.no_grad(), on_behalf_of(line):
                return self._mean(vector)

        self._last = self._thread.submit(run)
        return self._last


def _gradient(param: Tensor) -> Tensor:
    """The gradient of a parameter, zeros where it has none."""
    return wg.zeros_like(param) if param.grad is None else param.grad


def _widened(x: Tensor) -> Tensor:
    """The tensor, of float32 at least."""
    return x.float() if x.itemsize == 2 else x


def _seed(seed: int, count: int, shard: int) -> int:
    """The seed of the random numbers of one shard of one step."""
    text = f"{seed} {count} {shard}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
