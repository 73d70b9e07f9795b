"""What the namespace can do: `__array_namespace_info__`."""

from typing import Any

from wengert import _core, gpu

from ._dtypes import DTYPES, KINDS, default_float

__all__ = ["__array_namespace_info__"]

# A tensor of another dtype raises on its way to a GPU.
_ON_GPU = ("bool", *KINDS["integral"], "float32", "complex64")


class __array_namespace_info__:
    """What the namespace can do: dtypes, devices, defaults.

    Example:
        >>> import wengert.numpy as xp
        >>> xp.__array_namespace_info__().default_dtypes()["real floating"]
        wengert.float32
    """

    def capabilities(self) -> dict[str, Any]:
        """Tells that masks and shapes that depend on data are there, and the greatest number of axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> Any:
        """Returns where tensors are made unless told otherwise."""
        return _core.device("cpu")

    def devices(self) -> list[Any]:
        """Returns the host and every GPU."""
        return [self.default_device(), *(_core.device("gpu", i) for i in range(gpu.device_count()))]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Returns the dtypes of tensors made of Python numbers; GPUs compute with 32 bits."""
        integer = "int64" if _is_host(device) else "int32"
        real = default_float().name
        names = {
            "real floating": real,
            "complex floating": "complex128" if real == "float64" else "complex64",
            "integral": integer,
            "indexing": integer,
        }
        return {kind: DTYPES[name] for kind, name in names.items() if name in DTYPES}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Returns the dtypes that a device has, by name.

        Args:
            kind: only those of one of the standard's kinds, or of any in a tuple.

        Raises:
            ValueError: another word for a kind.
        """
        if isinstance(kind, tuple):
            return {name: d for k in kind for name, d in self.dtypes(device=device, kind=k).items()}
        if kind is not None and kind not in KINDS:
            raise ValueError(
                f"dtypes: {kind!r} is no kind of dtypes; expected one of {', '.join(map(repr, KINDS))}"
            )
        names = DTYPES if kind is None else KINDS[kind]
        host = _is_host(device)
        return {name: DTYPES[name] for name in names if name in DTYPES and (host or name in _ON_GPU)}


def _is_host(device: Any) -> bool:
    return device is None or _core.device(str(device)).type == "cpu"
