"""`ZeroRedundancyOptimizer`: each rank keeps the optimiser's state of its part of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert.optim import Optimizer

from ._flat import broadcast
from ._group import Group, resolve_group
from ._values import broadcast_state

__all__ = ["ZeroRedundancyOptimizer"]
__dir__ = __all__.copy


class ZeroRedundancyOptimizer(Optimizer):
    """Any optimiser whose state is divided among ranks (Rajbhandari et al. 2020).

    Each parameter belongs to one rank, which takes its step and sends its new values to the others; so a rank
    holds about `1 / ranks` of the state. The steps are those of the optimiser itself, bit for bit. Gradients
    must be the same on all ranks, as `DataParallel` leaves them.

    Args:
        params: as of the optimiser, the same on all ranks.
        optimizer_class: the optimiser; one that updates each parameter by itself.
        process_group: the ranks; None for all.
        defaults: settings of the optimiser.

    Example:
        >>> from wengert.distributed.optim import ZeroRedundancyOptimizer
        >>> x = wg.tensor([1.0], requires_grad=True)
        >>> sgd = ZeroRedundancyOptimizer([x], wg.optim.SGD, lr=0.5)
        >>> (x * x).sum().backward()
        >>> sgd.step()
        >>> x.tolist()
        [0.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: Callable[..., Optimizer],
        process_group: Group | None = None,
        **defaults: Any,
    ) -> None:
        """Divides the parameters: the largest first, each to the rank that has least."""
        whole = optimizer_class(params, **defaults)
        self.group = resolve_group("ZeroRedundancyOptimizer", process_group)
        #: The rank of each parameter.
        self.owners: list[int] = []
        self._filled, self._own = [0] * self.group.size, set[int]()
        self._is_made = False
        super().__init__(whole.param_groups, whole.defaults)
        self._divide(self._all())
        #: The optimiser of this rank's parameters.
        self.optim = optimizer_class([self._part(group, True) for group in self.param_groups], **defaults)
        self._is_made = True

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with settings of their own, divided among ranks; all ranks call it."""
        super().add_param_group(param_group)
        if self._is_made:
            added = self.param_groups[-1]
            self._divide(added["params"])
            self.optim.add_param_group(self._part(added, True))

    def _check(self, group: dict[str, Any]) -> None:
        """Raises for settings that the optimiser refuses."""
        if self._is_made:
            self.optim._check(group)

    def _divide(self, params: list[Tensor]) -> None:
        """Gives each parameter to the rank that has least, the largest first."""
        owners = [0] * len(params)
        for i in sorted(range(len(params)), key=lambda i: -params[i].nbytes):
            owners[i] = self._filled.index(min(self._filled))
            self._filled[owners[i]] += params[i].nbytes
        self.owners += owners
        self._own |= {id(p) for p, owner in zip(params, owners) if owner == self.group.rank}

    def _part(self, group: dict[str, Any], with_params: bool) -> dict[str, Any]:
        """The settings of a group, and those of its parameters that this rank has."""
        settings = {key: value for key, value in group.items() if key not in ("params", "param_names")}
        own = {"params": [p for p in group["params"] if id(p) in self._own]} if with_params else {}
        return settings | own

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes the step of this rank's parameters, and gets the others."""
        self.group.check_current("ZeroRedundancyOptimizer")
        loss = None
        if closure is not None:
            with wg.enable_grad():
                loss = closure()
        for group, part in zip(self.param_groups, self.optim.param_groups):
            part.update(self._part(group, False))
        self.optim.step()
        params = self._all()
        for rank in range(self.group.size):
            broadcast([p for p, owner in zip(params, self.owners) if owner == rank], self.group, rank)
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Returns settings and state as the optimiser itself has them, whole; every rank calls it.

        Any number of ranks loads it, and so does the optimiser itself.
        """
        numbers = {id(p): i for i, p in enumerate(self._all())}
        own = {numbers[id(p)]: dict(entry) for p, entry in self.optim.state.items()}
        state: dict[int, Any] = {}
        for rank in range(self.group.size):
            state |= broadcast_state(own, self.group, rank)
        return {**super().state_dict(), "state": dict(sorted(state.items()))}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over the settings, and the state of this rank's parameters."""
        super().load_state_dict({**state_dict, "state": {}})
        numbers = {id(p): i for i, p in enumerate(self._all())}
        groups = [
            self._part(group, False) | {"params": [numbers[id(p)] for p in part["params"]]}
            for group, part in zip(self.param_groups, self.optim.param_groups)
        ]
        own = {i for group in groups for i in group["params"]}
        state = {i: entry for i, entry in state_dict["state"].items() if i in own}
        self.optim.load_state_dict({"state": state, "param_groups": groups})
