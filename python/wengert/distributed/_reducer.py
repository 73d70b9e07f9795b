"""Averages gradients over ranks while backward is still computing others.

Gradients travel in buckets, whose contents and order the rank 0 decides: first in the reverse order of
registration, and after the first step in the order in which its gradients were complete. A bucket starts when
it and all before it are complete, so that every rank issues the same collectives in the same order. A thread
of its own waits for them, since MPI advances only while somebody does; the last bucket, which nothing is left
to be hidden behind, is summed by the thread that runs backward, at its end.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import wengert as wg
from wengert import _core
from wengert._core import Tensor

from ._flat import flatten_tensors, unflatten_tensors
from ._group import Group
from ._lines import Line, caller_line, on_behalf_of
from ._tensors import sum_tensors
from ._values import broadcast_value

__all__ = ["Reducer", "divide"]

# The bytes of the first and of the last bucket.
_SMALL = 1 << 20


def divide(params: Sequence[Tensor], order: Iterable[int], limit: int) -> list[list[int]]:
    """Buckets of parameters, in this order: of one dtype and device, the first and the last one small, so
    that the first message leaves soon and little is left for the end."""
    small = min(limit, _SMALL)
    buckets, sizes = list[list[int]](), list[int]()
    filling: dict[Any, int] = {}
    for i in order:
        kind = str(params[i].dtype), str(params[i].device)
        at = filling.get(kind)
        if at is None or sizes[at] >= (limit if at else small):
            at = filling[kind] = len(buckets)
            buckets.append([])
            sizes.append(0)
        buckets[at].append(i)
        sizes[at] += params[i].nbytes
    if not buckets:
        return []
    last, tail, room = buckets[-1], list[int](), small
    if sizes[-1] > small:
        while len(last) > 1 and (room := room - params[last[-1]].nbytes) >= 0:
            tail.insert(0, last.pop())
    return [*buckets, tail] if tail else buckets


class Reducer:
    """Averages the gradients of parameters at the end of each backward that reaches them.

    Args:
        named: the parameters that require a gradient, by name, in the order of registration.
        group: the ranks; nobody else talks through it.
        limit: about how many bytes a bucket has.
        find_unused: whether a backward may leave parameters out; otherwise that raises.
    """

    def __init__(self, named: Mapping[str, Tensor], group: Group, limit: int, find_unused: bool) -> None:
        self.names, self.params = list(named), list(named.values())
        self.group, self.limit, self.find_unused = group, limit, find_unused
        self.enabled = True
        #: How many backwards have ended.
        self.count = 0
        #: How many ranks an average is over.
        self.divisor = group.size
        self._lay_out(list(reversed(range(len(self.params)))))
        # The order in which gradients are complete, until the layout follows it.
        self._arrived: list[int] | None = []
        self._walk: int | None = None
        # The averages of buckets, in order; None for the last one until the end of backward.
        self._started: list[Future[Tensor] | None] = []
        self._thread: ThreadPoolExecutor | None = None
        self._handles = [
            param.register_post_accumulate_grad_hook(partial(self._on_complete, i))
            for i, param in enumerate(self.params)
        ]

    def __deepcopy__(self, memo: dict[int, Any]) -> Reducer:
        """One for copies of the parameters."""
        copies = {name: copy.deepcopy(x, memo) for name, x in zip(self.names, self.params)}
        return Reducer(copies, self.group, self.limit, self.find_unused)

    def _lay_out(self, order: list[int]) -> None:
        """Divides the parameters into buckets, in this order."""
        self.buckets = divide(self.params, order, self.limit)
        self._bucket_of = {i: b for b, bucket in enumerate(self.buckets) for i in bucket}

    def _on_complete(self, i: int, _: Tensor) -> None:
        """Takes note that a gradient is complete."""
        if not self.enabled:
            return
        walk = _core._backward_ids()[0]
        if walk != self._walk:
            self._begin(walk)
        if i in self._waiting:
            self._mark(i)

    def settle(self) -> None:
        """Waits for what a backward that raised has sent, so that others may talk in the group."""
        if self._started:
            wait([sent for sent in self._started if sent is not None])

    def _begin(self, walk: int) -> None:
        """Prepares for the gradients of a backward."""
        self.settle()
        self._walk, self._next = walk, 0
        self._left = [len(bucket) for bucket in self.buckets]
        self._started = []
        self._waiting = dict.fromkeys(range(len(self.params)))
        _core._at_end_of_backward(self._finish)
        absent = [i for i, handle in enumerate(self._handles) if not handle._is_reached()]
        if absent and not self.find_unused:
            self._walk = None
            names = ", ".join(self.names[i] for i in absent[:5]) + (", ..." if len(absent) > 5 else "")
            raise RuntimeError(
                f"DataParallel: backward on rank {self.group.rank} reaches no {names}, whose gradients the "
                "other ranks may wait for; use them, or pass find_unused_parameters=True"
            )
        for i in absent:
            self._mark(i)

    def _mark(self, i: int) -> None:
        """One more is complete; starts the buckets that are."""
        del self._waiting[i]
        if self._arrived is not None:
            self._arrived.append(i)
        self._left[self._bucket_of[i]] -= 1
        while self._next < len(self.buckets) and self._left[self._next] == 0:
            self._start(self.buckets[self._next])
            self._next += 1

    def _start(self, bucket: list[int]) -> None:
        """Sends the gradients of a bucket on their way, unless it is the last."""
        if len(self._started) == len(self.buckets) - 1:
            self._started.append(None)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "wengert.distributed")
        # Backward may add to gradients that are its own until they are copied.
        parts = [flatten_tensors(self._parts(bucket))]
        self._started.append(self._thread.submit(self._average, parts, caller_line()))

    def _parts(self, bucket: list[int]) -> list[Tensor]:
        """The gradients of a bucket, and which of them there are where some may be missing."""
        grads = [self.params[i].grad for i in bucket]
        with wg.no_grad():
            parts = [wg.zeros_like(self.params[i]) if g is None else g for i, g in zip(bucket, grads)]
            if self.find_unused:
                # Above 0 where some rank has the gradient.
                parts.append(parts[0].new_tensor([float(g is not None) for g in grads]))
        return parts

    def _average(self, parts: list[Tensor], line: Line) -> Tensor:
        """The average of all parts as one vector; `line` is where backward was called, for messages."""
        with wg.no_grad(), on_behalf_of(line):
            if parts[0].itemsize == 2:
                # The sum may be beyond the range of halves where the average is not.
                return sum_tensors(flatten_tensors(parts) / self.divisor, self.group)
            return _core._sum_joined(parts, self.group.members).div_(self.divisor)

    def _finish(self) -> None:
        """Waits for the sums at the end of backward, and makes the averages gradients."""
        # Gradients that turned out to be zero were not sent to their parameters.
        for i in tuple(self._waiting):
            self._mark(i)
        self._walk = None
        averages = [sent if sent is None else sent.result() for sent in self._started]
        for bucket, average in zip(self.buckets, averages):
            params = [self.params[i] for i in bucket]
            if average is None:
                if not self.find_unused and _core._average_gradients(
                    params, self.group.members, self.divisor
                ):
                    continue
                average = self._average(self._parts(bucket), caller_line())
            counts = average[-len(bucket) :].tolist() if self.find_unused else None
            with wg.no_grad():
                for j, (param, grad) in enumerate(zip(params, unflatten_tensors(average, params))):
                    if counts is None or counts[j]:
                        param.grad = grad
        self._started = []
        self.count += 1
        self._adopt_order()

    def _adopt_order(self) -> None:
        """Lays the buckets out once more, in the order of the first backward on the rank 0."""
        if self._arrived is not None:
            order, self._arrived = (
                broadcast_value(self._arrived or list(range(len(self.params))), self.group),
                None,
            )
            self._lay_out(order)

    def shadow(self) -> None:
        """Takes part in one backward of the other ranks, with gradients of zero."""
        self._started = []
        for bucket in self.buckets:
            size = sum(self.params[i].numel() for i in bucket) + len(bucket) * self.find_unused
            self._average([self.params[bucket[0]].new_zeros(size)], caller_line())
        self.count += 1
        self._adopt_order()
