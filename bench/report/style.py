"""How figures look: a light card with dark ink, which reads on paper and on screens of either mode, lines that are told
apart by colour, dash and marker, and text that stays text in SVG."""

import textwrap
from typing import Any

INK, QUIET, GRID, CARD = "#1f2328", "#57606a", "#d8dee4", "#ffffff"
# Told apart with the common kinds of colour blindness, and dark enough for white paper.
COLORS = ("#0b62a8", "#c2410c", "#18794e", "#9d2b77", "#8a6d00", "#5746af", "#57606a", "#0e7c86", "#a61c3c", "#4b3621")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")


def pyplot() -> Any:
    """Raises ImportError where matplotlib is not installed."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {
            "figure.facecolor": CARD,
            "axes.facecolor": CARD,
            "savefig.facecolor": CARD,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "xtick.color": QUIET,
            "ytick.color": QUIET,
            "axes.edgecolor": QUIET,
            "grid.color": GRID,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "axes.titleweight": "bold",
            "legend.frameon": False,
            "legend.fontsize": 8.5,
            "font.size": 9.5,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
            "svg.fonttype": "none",
            "svg.hashsalt": "blindfuse",
            "figure.constrained_layout.use": True,
        }
    )
    from matplotlib import pyplot as made

    return made


def look(i: int) -> dict[str, Any]:
    return {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)]}


def figure(made: Any, title: str, note: str, height: float = 4.2) -> tuple[Any, Any]:
    """One axis below a title, with small print: machine, commit, day."""
    drawn, axis = made.subplots(figsize=(7.2, height))
    axis.set_title(title)
    drawn.supxlabel(textwrap.fill(note, 130), fontsize=7, color=QUIET, ha="left", x=0.01)
    drawn.patch.set_edgecolor(GRID)
    drawn.patch.set_linewidth(1.5)
    return drawn, axis


def powers_of_two(axis: Any, values: list[float]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xticks(sorted(set(values)))
    axis.get_xaxis().set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.minorticks_off()


def one_two_five(axis: Any) -> None:
    """Lines at 1, 2 and 5 of every decade, for less than two of them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.get_yaxis().set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.get_yaxis().set_minor_formatter(NullFormatter())


def bytes_text(value: float, _: Any = None) -> str:
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:g} B"


def seconds_text(value: float, _: Any = None) -> str:
    for size, name in ((1, "s"), (1e-3, "ms")):
        if value >= size * 0.999:
            return f"{value / size:g} {name}"
    return f"{value * 1e6:g} µs"
