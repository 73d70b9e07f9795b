"""`DataParallel`: a model on every rank, which train as one. Read next: `_reducer.py`, `_grain.py`."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert.nn import Module

from ._flat import broadcast
from ._grain import Shards
from ._group import Group, resolve_group
from ._reducer import Reducer
from ._tensors import gather_tensors
from ._values import broadcast_value

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel(Module):
    """A model that every rank has and trains on its own part of the data.

    Parameters and buffers start with the values of rank 0. Each backward leaves the average of all ranks'
    gradients in the parameters, so that optimisers on all ranks take the same step; the gradients travel
    while backward computes others. With one rank it is the model. The names in its state dict begin with
    `module.`, as they do in PyTorch.

    Args:
        module: the model, the same on all ranks.
        process_group: the ranks; None for all.
        broadcast_buffers: whether each forward in training starts with the buffers of rank 0.
        bucket_cap_mb: the size of one message in units of 2**20 bytes.
        find_unused_parameters: whether a backward may leave out parameters; those that no rank used keep
            the gradient that they had. Without it, a backward that leaves out some raises, with their names.
        grain: a number of shards, a multiple of the number of ranks: `backward(function)`, in the place of
            `loss.backward()`, then computes the same bits on any number of ranks.

    Raises:
        RuntimeError: where models of ranks have other parameters.
        ValueError: for a model without parameters that require gradients; a `grain` that does not fit.

    Example:
        >>> model = wg.distributed.DataParallel(wg.nn.Linear(2, 1))
        >>> model(wg.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
    """

    module: Module

    def __init__(
        self,
        module: Module,
        process_group: Group | None = None,
        *,
        broadcast_buffers: bool = True,
        bucket_cap_mb: float = 25.0,
        find_unused_parameters: bool = False,
        grain: int | None = None,
    ) -> None:
        """Compares the models of all ranks, and gives them the values of rank 0."""
        super().__init__()
        self.module = module
        given = resolve_group("DataParallel", process_group)
        # A communicator of its own, so that messages of the program do not come between.
        self.group = given.split(0, given.rank) if given.size > 1 else given
        self.broadcast_buffers = broadcast_buffers and next(module.buffers(), None) is not None
        named = {name: param for name, param in module.named_parameters() if param.requires_grad}
        if not named:
            raise ValueError(
                "DataParallel: no parameter of the model requires a gradient; call the model itself"
            )
        if self.group.size > 1:
            self._compare()
            broadcast([*module.parameters(), *module.buffers()], self.group)
        limit = int(bucket_cap_mb * 2**20)
        self.shards = None if grain is None else Shards(module, self.group, grain, limit)
        self.reducer = None
        if self.group.size > 1 and grain is None:
            self.reducer = Reducer(named, self.group, limit, find_unused_parameters)
        self.is_joining, self.divides_by_all, self.root = False, True, 0
        # After how many backwards a forward inside of `join` has asked the other ranks.
        self.asked = -1

    def _compare(self) -> None:
        """Raises unless the parameters and buffers of all ranks have the same names, shapes and dtypes."""
        named = [*self.module.named_parameters(), *self.module.named_buffers()]
        own = [[name, str(tuple(x.shape)), str(x.dtype), x.requires_grad] for name, x in named]
        first = broadcast_value(own, self.group)
        for i in range(max(len(first), len(own))):
            here, there = (entries[i] if i < len(entries) else None for entries in (own, first))
            if here != there:
                raise RuntimeError(
                    f"DataParallel: parameter or buffer {i} of rank {self.group.rank} is {here}, that of "
                    f"rank 0 {there}; make the same model on all ranks"
                )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the module returns."""
        self.group.check_current("DataParallel")
        reducer = self.reducer
        if reducer is not None and reducer.enabled and self.training and wg.is_grad_enabled():
            reducer.settle()
            # Ranks without data take part in steps, not in every forward.
            begins = not self.is_joining or self.asked != reducer.count
            if begins and self.is_joining:
                self._ask(True)
                self.asked = reducer.count
            if begins and self.broadcast_buffers:
                broadcast(list(self.module.buffers()), self.group, self.root)
        return self.module(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> DataParallel:
        """A copy of the model on the same ranks, which must not run backward while another one does."""
        memo[id(self.group)] = self.group
        memo[id(self)] = copied = type(self).__new__(type(self))
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def __reduce__(self) -> Any:
        """Raises: a group of processes is in no file."""
        raise TypeError("DataParallel: save model.module or model.state_dict(); ranks cannot be pickled")

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Lets gradients add up on each rank; the first backward outside of it averages the sums.

        Example:
            >>> model = wg.distributed.DataParallel(wg.nn.Linear(2, 1))
            >>> with model.no_sync():
            ...     model(wg.ones(3, 2)).sum().backward()
            >>> model(wg.ones(1, 2)).sum().backward()
            >>> model.module.bias.grad
            tensor([4.])
        """
        self._check_no_grain("no_sync", "gradients of several calls of model.backward add up without it")
        if self.reducer is None:
            yield
            return
        before, self.reducer.enabled = self.reducer.enabled, False
        try:
            yield
        finally:
            self.reducer.enabled = before

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True) -> Iterator[None]:
        """Ranks whose data end sooner take part in the steps of the others, with gradients of zero.

        At the end all ranks have the model of one that had data last. A step is one backward outside of
        `no_sync`, after as many forwards as it needs; buffers are those of one rank at its first forward.

        Args:
            divide_by_initial_world_size: whether averages are over all ranks, or over those with data.
            enable: False does nothing.
        """
        if enable:
            self._check_no_grain("join", "let all ranks take the same number of steps")
        if self.reducer is None or not enable:
            yield
            return
        self.is_joining, self.divides_by_all = True, divide_by_initial_world_size
        try:
            yield
            if self.asked == self.reducer.count:
                # The last forward had no backward.
                self.reducer.shadow()
            while self._ask(False):
                if self.broadcast_buffers:
                    broadcast(list(self.module.buffers()), self.group, self.root)
                self.reducer.shadow()
            broadcast([*self.module.parameters(), *self.module.buffers()], self.group, self.root)
        finally:
            self.is_joining, self.root, self.reducer.divisor = False, 0, self.group.size
            self.asked = -1

    def _check_no_grain(self, method: str, instead: str) -> None:
        if self.shards is not None:
            raise RuntimeError(f"DataParallel.{method}: not with grain=; {instead}")

    def _ask(self, has_data: bool) -> bool:
        """Whether a rank has data for one more step; the first that has gives its buffers to all."""
        ranks = gather_tensors(wg.tensor(has_data), self.group).nonzero().flatten().tolist()
        if ranks and self.reducer is not None:
            self.root = ranks[0]
            self.reducer.divisor = self.group.size if self.divides_by_all else len(ranks)
        return bool(ranks)

    def backward(self, function: Any, *batch: Tensor) -> Tensor:
        """Computes a loss and its gradients with the same bits on any number of ranks; for `grain=`.

        The batch of this rank is divided into as many parts as the rank has shards. For each,
        `function(*part)` returns the loss, the mean over the part. Random numbers, the statistics of batches
        and losses of float16 that overflow belong to a shard; losses, gradients and buffers are averaged over
        all shards by one tree of additions. Buffers of integers, such as counts of batches, stay those of the
        rank's last shard.

        Random numbers are those of `manual_seed` on rank 0. A `Generator` that `function` uses goes on from
        one shard to the next, so what it gives depends on the number of ranks.

        Args:
            function: returns a loss of shape ().
            batch: tensors whose first axis is divided; none where `function` finds its data itself, for
                example by random numbers.

        Returns:
            The average loss of all shards of all ranks.
        """
        if self.shards is None:
            raise RuntimeError("DataParallel.backward: pass grain= to DataParallel, the number of shards")
        return self.shards.backward(function, batch)


class DistributedDataParallel(DataParallel):
    """`DataParallel` with PyTorch's arguments.

    Args:
        module: the model, the same on all ranks.
        device_ids: None, or one device; accepted, as `output_device` and `dim`.
        broadcast_buffers: whether each forward in training starts with the buffers of rank 0.
        init_sync: accepted; ranks always start with the parameters of rank 0.
        process_group: the ranks; None for all.
        bucket_cap_mb: the size of one message in units of 2**20 bytes; None for 25.
        find_unused_parameters: whether a backward may leave out parameters.
        gradient_as_bucket_view: accepted, gradients are views of messages; so are `check_reduction`, and
            `static_graph`, for nothing is remembered of graphs.
        grain: as of `DataParallel`.

    Example:
        >>> model = wg.nn.parallel.DistributedDataParallel(wg.nn.Linear(2, 1))
        >>> model(wg.ones(3, 2)).shape
        (3, 1)
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Group | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        *,
        grain: int | None = None,
    ) -> None:
        """As `DataParallel`."""
        if device_ids is not None and len(list(device_ids)) > 1:
            raise ValueError("DistributedDataParallel: a process has one device; start a process for each")
        super().__init__(
            module,
            process_group,
            broadcast_buffers=broadcast_buffers,
            bucket_cap_mb=25.0 if bucket_cap_mb is None else bucket_cap_mb,
            find_unused_parameters=find_unused_parameters,
            grain=grain,
        )
