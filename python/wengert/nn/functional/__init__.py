"""Layers and losses as functions, under PyTorch's names: `import wengert.nn.functional as F`.

Activations (`relu`, `gelu`, `softmax`, ...), affine maps and embeddings (`linear`, `embedding`, ...),
convolution and pooling (`conv2d`, `max_pool2d`, ...), normalisation and dropout (`layer_norm`, `batch_norm`,
`dropout`, ...), attention (`scaled_dot_product_attention`, ...), images (`interpolate`, `grid_sample`, `pad`,
...), distances and losses (`cross_entropy`, ...). Fused kernels (softmax, layer norm, cross-entropy) are the
core's; everything else is composed of tensor operations, so it works in every transform.
"""

# `top_level.py` has what PyTorch calls otherwise at its top level.

from . import (
    activation,
    alignment,
    attention,
    batch,
    convolution,
    distance,
    dropout as _dropout,
    extremes,
    indices,
    layers,
    loss,
    margins,
    pooling,
    sampling,
    simplex,
    tables,
    vision,
)
from .activation import *
from .alignment import *
from .attention import *
from .batch import *
from .convolution import *
from .distance import *
from .dropout import *
from .extremes import *
from .indices import *
from .layers import *
from .loss import *
from .margins import *
from .pooling import *
from .sampling import *
from .simplex import *
from .tables import *
from .vision import *

__all__: list[str] = []
__all__ += activation.__all__
__all__ += alignment.__all__
__all__ += attention.__all__
__all__ += batch.__all__
__all__ += convolution.__all__
__all__ += distance.__all__
__all__ += _dropout.__all__
__all__ += extremes.__all__
__all__ += indices.__all__
__all__ += layers.__all__
__all__ += loss.__all__
__all__ += margins.__all__
__all__ += pooling.__all__
__all__ += sampling.__all__
__all__ += simplex.__all__
__all__ += tables.__all__
__all__ += vision.__all__
__dir__ = __all__.copy
