"""The version of this library, and of what PyTorch is built with, of which nothing is here."""

from wengert._core import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip"]
__dir__ = __all__.copy

#: Versions of compilers for GPUs that were built in: none.
cuda: str | None = None
hip: str | None = None
#: Whether this is a build for debugging of the whole library: no program need ask.
debug = False
#: The commit that was built, which a wheel does not tell.
git_version: str | None = None
