"""What must raise, and in which words: what happened, what was given, what was expected, what to do.

One table per subject; a new situation goes into the table of its subject.
"""

from messages import Situations

from situations.autograd import AUTOGRAD
from situations.checked import CHECKED
from situations.composed import COMPOSED
from situations.indexing import INDEXING
from situations.layers import LAYERS
from situations.linalg import LINALG
from situations.operands import leaf, ones
from situations.shapes import SHAPES
from situations.tape import TAPE
from situations.transforms import TRANSFORMS
from situations.values import VALUES
from situations.windows import WINDOWS

__all__ = ["SITUATIONS", "leaf", "ones"]

TABLES = (AUTOGRAD, TAPE, TRANSFORMS, SHAPES, INDEXING, VALUES, CHECKED, COMPOSED, WINDOWS, LINALG, LAYERS)
SITUATIONS: Situations = {name: situation for table in TABLES for name, situation in table.items()}

assert len(SITUATIONS) == sum(map(len, TABLES)), "a name is used twice"
