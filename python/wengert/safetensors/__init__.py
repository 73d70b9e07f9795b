"""Files of safetensors, which hold named tensors and nothing that could run: `save_file`, `load_file`,
`safe_open`.

The functions are those of `safetensors.torch`, and so are the files, byte for byte; the package itself is not
needed. Tensors that are loaded to the CPU lie in the file, which is mapped into memory, until they are
written to.

Example:
    >>> from wengert.safetensors import load_file, save_file
    >>> save_file({"weight": wg.ones(2, 2), "step": wg.tensor(3)}, "model.safetensors", metadata={"format": "pt"})
    >>> load_file("model.safetensors")["step"]
    tensor(3)
"""

# Read next: header.py (what a file may say), reading.py, writing.py, models.py (modules that share
# parameters).

from .header import SafetensorError
from .models import load_model, save_model
from .reading import load, load_file, safe_open
from .writing import save, save_file

__all__ = [
    "SafetensorError",
    "load",
    "load_file",
    "load_model",
    "safe_open",
    "save",
    "save_file",
    "save_model",
]
__dir__ = __all__.copy
