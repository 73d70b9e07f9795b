"""Hypothesis profile of the shader suite: few, fixed examples, so that a run is short and repeatable."""

import pathlib
import sys

from hypothesis import settings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
settings.register_profile("shaders", max_examples=8, deadline=None, derandomize=True, database=None)
settings.load_profile("shaders")
