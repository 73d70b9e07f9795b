"""The looks all figures share. matplotlib is imported when something is drawn, and needs no display."""

from typing import Any

INK, MUTED, GRID = "#22262b", "#6b7280", "#e5e7eb"
COLORS = ["#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2"]
STYLE: dict[Any, Any] = {
    "figure.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.labelsize": 9.5,
    "font.size": 9.5,
    "legend.frameon": False,
}


def require_matplotlib() -> Any:
    """Returns the package; raises ImportError if it is missing."""
    import matplotlib

    return matplotlib


def new_figure(width: float, height: float) -> Any:
    """An empty figure that needs no window; matplotlib's own settings stay as they are."""
    try:
        require_matplotlib()
    except ImportError as error:
        raise ImportError(
            f"wengert.plot draws with matplotlib, which is missing ({error}); install it with: pip install "
            "matplotlib. Tables print without it"
        ) from None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    return figure
