"""Every test of loaders leaves no process and no thread behind."""

import gc
import multiprocessing
import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    threads = threading.active_count()
    yield
    if multiprocessing.active_children() or threading.active_count() != threads:
        gc.collect()  # the frames of an error hold an iterator
    assert multiprocessing.active_children() == []
    assert threading.active_count() == threads
