"""Export to ONNX, which is not here: programs that import it run until they use it."""

from typing import Any

from wengert._arguments import refusing

__all__ = ["dynamo_export", "export", "is_in_onnx_export"]
__dir__ = __all__.copy


def is_in_onnx_export() -> bool:
    """Tells whether a model is being exported: False.

    Example:
        >>> wg.onnx.is_in_onnx_export()
        False
    """
    return False


_refused = refusing(
    "onnx",
    "models are not exported here; "
    "save parameters by wengert.save(model.state_dict(), path), and load them where the exporter is",
)


@_refused('None, "model.onnx"')
def export(model: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: models are not exported.

    Args:
        model: a model.
    """


@_refused("None")
def dynamo_export(model: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: models are not exported.

    Args:
        model: a model.
    """
