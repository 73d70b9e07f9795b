"""`wengert.config`: the settings of `jax.config` that mean something here."""

from typing import Any

import wengert as wg
from wengert._caller import warn

__all__ = ["update"]
__dir__ = __all__.copy


def update(name: str, value: Any) -> None:
    """Changes a setting of JAX.

    Args:
        name: `"jax_enable_x64"`, which makes float64 or float32 the default dtype; others that begin with
            `jax_` change nothing, which a warning says.

    Raises:
        AttributeError: a name that is none of JAX's.
        TypeError: what is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"config.update: name is a string, got {type(name).__name__}")
    if not name.startswith("jax_"):
        raise AttributeError(f"config.update: {name!r} is no setting of JAX; those begin with 'jax_'")
    if name == "jax_enable_x64":
        wg.set_default_dtype(wg.float64 if value else wg.float32)
    else:
        warn(f"config.update: {name} changes nothing; jax_enable_x64 is the one setting that does")
