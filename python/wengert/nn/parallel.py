"""Models over several devices and processes as programs for PyTorch write it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]
__dir__ = __all__.copy


class DataParallel(Module):
    """Calls the module that it is given, on the one device where its parameters lie.

    Programs wrap a model in it whatever the number of devices; the names in its state dict begin with
    `module.`, as they do in PyTorch.

    Args:
        module: the model.
        device_ids: None, or one device; several raise.
        output_device: accepted.
        dim: accepted, the axis that would be divided.

    Raises:
        NotImplementedError: for several devices.

    Example:
        >>> model = wg.nn.DataParallel(wg.nn.Linear(2, 1))
        >>> model(wg.ones(3, 2)).shape, list(model.state_dict())
        ((3, 1), ['module.weight', 'module.bias'])
    """

    module: Module

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        """Keeps `module` under that name."""
        super().__init__()
        ids = [] if device_ids is None else list(device_ids)
        if len(ids) > 1:
            raise NotImplementedError(
                f"DataParallel: {len(ids)} devices given, and a batch is not divided among devices here; "
                "give one, or use DistributedDataParallel with a process for each"
            )
        self.module = module
        self.device_ids, self.output_device, self.dim = ids, output_device, dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Returns what the module returns."""
        return self.module(*inputs, **kwargs)


if TYPE_CHECKING:
    from wengert.distributed._parallel import DistributedDataParallel
else:

    def __getattr__(name: str) -> Any:
        """`DistributedDataParallel`, which lies beside what ranks are."""
        if name == "DistributedDataParallel":
            return import_module("wengert.distributed._parallel").DistributedDataParallel
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
