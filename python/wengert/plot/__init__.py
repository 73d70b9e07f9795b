"""Pictures of training: how gradients flow through a model, and the demonstration's page. Drawing needs
matplotlib."""

from .flow import FlowTable, LayerFlow, Thresholds
from .gradient_flow import FlowReport, GradientFlow, gradient_flow
from .style import require_matplotlib
from .training import smooth, training

__all__ = [
    "FlowReport",
    "FlowTable",
    "GradientFlow",
    "LayerFlow",
    "Thresholds",
    "gradient_flow",
    "require_matplotlib",
    "smooth",
    "training",
]
__dir__ = __all__.copy
