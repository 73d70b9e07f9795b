"""Models over several devices as programs for PyTorch write it; there is one device here."""

from typing import Any, NoReturn

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
                "give one, or leave device_ids out"
            )
        self.module = module
        self.device_ids, self.output_device, self.dim = ids, output_device, dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Returns what the module returns."""
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """Raises NotImplementedError: there are no groups of processes here.

    Args:
        module: the model; further arguments are PyTorch's.

    Example:
        >>> try:
        ...     wg.nn.parallel.DistributedDataParallel(wg.nn.Linear(2, 1))
        ... except NotImplementedError as error:
        ...     print(str(error).split(":")[0])
        DistributedDataParallel
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        """Raises."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotImplementedError(
            "DistributedDataParallel: no gradients are exchanged between processes here; train in one "
            "process, with the module itself"
        )
