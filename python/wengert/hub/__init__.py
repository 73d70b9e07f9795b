"""Models from the net, of which this library fetches none: programs that import it run until they use it."""

import os
from typing import Any

from wengert._arguments import refusing

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]
__dir__ = __all__.copy

_chosen: dict[str, str] = {}


def get_dir() -> str:
    """Returns the folder in which programs keep downloaded files: that of `set_dir`, or `wengert/hub` in the
    cache of the user.

    Example:
        >>> wg.hub.get_dir().endswith("hub")
        True
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return _chosen.get("dir", os.path.join(cache, "wengert", "hub"))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets what `get_dir` returns.

    Args:
        d: a folder.

    Example:
        >>> before = wg.hub.get_dir()
        >>> wg.hub.set_dir("models")
        >>> wg.hub.get_dir()
        'models'
        >>> wg.hub.set_dir(before)
    """
    _chosen["dir"] = os.path.expanduser(d)


_refused = refusing(
    "hub",
    "nothing is downloaded here; "
    "fetch the file by other means, read it by wengert.load, and build the model in your program",
)


@_refused('"pytorch/vision", "resnet18"')
def load(repo_or_dir: Any, model: Any = None, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: nothing is downloaded.

    Args:
        repo_or_dir: a repository.
        model: the name of a model in it.
    """


@_refused('"pytorch/vision"')
def list(github: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: nothing is downloaded.

    Args:
        github: a repository.
    """


@_refused('"pytorch/vision", "resnet18"')
def help(github: Any, model: Any = None, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: nothing is downloaded.

    Args:
        github: a repository.
        model: the name of a model in it.
    """


@_refused('"https://example.org/model.pt"')
def load_state_dict_from_url(url: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: nothing is downloaded.

    Args:
        url: an address.
    """


@_refused('"https://example.org/model.pt", "model.pt"')
def download_url_to_file(url: Any, dst: Any = None, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: nothing is downloaded.

    Args:
        url: an address.
        dst: a file.
    """
