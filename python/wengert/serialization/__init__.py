"""Files of tensors: `wengert.save` and `wengert.load`.

A file is an uncompressed zip archive: `data.pkl` holds the object, pickled, with a reference in place of each
tensor, and `tensors/0`, `tensors/1`, ... hold the elements of one tensor each, in row-major order,
little-endian. Tensors that are the same object, or that share all their memory, are stored once and share it
again when loaded. Loading only accepts plain data unless told otherwise: a pickle from elsewhere can run any
code. Files of `torch.save` are read in the same way.
"""

# Files name `_array_of` and `_number_of` as those of this module. Read next: writing.py, reading.py,
# checking.py (what a file may say), pytorch.py (files of `torch.save`).

from wengert.serialization.allowed import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from wengert.serialization.plain_data import _array_of, _number_of
from wengert.serialization.reading import load
from wengert.serialization.writing import save

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
__dir__ = __all__.copy
