"""The chart of bytes against throughput: a panel for each size of what a look-up returns."""

from typing import Any

import lookups
import style
from cells import digits
from results import Results

MARKERS = {lookups.NONE: "o", lookups.MASKS: "o", lookups.HINT: "s", lookups.KEYS: "^"}
OURS = {
    lookups.PACKED_MODE: style.COLORS[1],
    lookups.TWO_LEVELS: style.COLORS[2],
    lookups.HINT_MODE: style.COLORS[0],
}
THEIRS = style.QUIET
# For a scheme's labels: which of its points, how far from it in points, and what the label says if not the scheme's
# name. Right of the last point when nothing is said here.
PLACES = {
    (lookups.BITS, "SimplePIR"): [(-1, -6, 9, "right", "")],
    (lookups.BITS, "DoublePIR*"): [(-1, 7, 3, "left", "")],
    (lookups.BITS, "InsPIRe0"): [(-1, 7, 0, "left", "")],
    (lookups.BITS, "VIA"): [(-1, -8, -3, "right", "")],
    (lookups.BITS, "YPIR"): [(0, 7, -5, "left", ""), (-1, 7, -3, "left", "")],
    (lookups.BITS, "HintlessPIR"): [(-1, -8, -3, "right", "")],
    (lookups.BITS, lookups.HINT_MODE): [(-1, -8, -3, "right", "")],
    (lookups.RECORDS, "InsPIRe(2)"): [(0, -8, -3, "right", "")],
    (lookups.RECORDS, lookups.PACKED_MODE): [(-1, -9, -3, "right", "")],
    (lookups.RECORDS, lookups.TWO_LEVELS): [(0, -9, -3, "right", "")],
    (lookups.RECORDS, lookups.HINT_MODE): [(0, 0, 9, "center", ""), (1, -10, -3, "right", "one shard")],
    (lookups.RECORDS, "ChalametPIR"): [
        (0, 0, 8, "center", "ChalametPIR, M1"),
        (-1, 0, 8, "center", "ChalametPIR, EC2"),
    ],
    (lookups.RECORDS, "FrodoPIR"): [(-1, 4, -15, "center", "FrodoPIR, EC2")],
    (lookups.RECORDS, "KSPIR"): [(-1, -3, -14, "right", "")],
    (lookups.RECORDS, "SimpleYPIR"): [(-1, 0, 8, "center", "")],
    (lookups.RECORDS, "HintlessPIR"): [(-1, -8, -5, "right", "")],
    (lookups.LARGE, lookups.HINT_MODE): [(0, -10, -3, "right", "")],
}
# The authors' own version of a scheme and that scheme share a label.
UNLABELLED = {"SimplePIR*", "DoublePIR"}


def _label(axis: Any, group: str, scheme: str, measured: list[lookups.Point], color: str) -> None:
    for which, x, y, side, text in PLACES.get((group, scheme), [(-1, 7, -3, "left", "")]):
        if which >= len(measured):
            continue
        point = measured[which]
        axis.annotate(
            text or scheme.removeprefix("blindfuse, ").rstrip("*"),
            _place(point),
            xytext=(x, y),
            textcoords="offset points",
            ha=side,
            fontsize=8,
            fontweight="bold" if point.ours else "normal",
            color=color,
        )


def _place(point: lookups.Point) -> tuple[float, float]:
    assert point.speed is not None
    return point.lookup.value / 1024, point.speed.value


def _legend(points: list[lookups.Point]) -> dict[str, str]:
    """What a marker's shape says."""

    def span(kind: str) -> str:
        sizes = [point.once.value / 1024**2 for point in points if point.once and point.once_kind == kind]
        return f"{min(sizes):.0f} to {max(sizes):.0f} MB"

    return {
        "o": "nothing, or less than 1 MB",
        "s": f"a hint: {span(lookups.HINT)} down",
        "^": f"keys: {span(lookups.KEYS)} up, kept by the server",
    }


def _panel(axis: Any, group: str, points: list[lookups.Point]) -> None:
    # Ours last, on top.
    schemes = sorted(dict.fromkeys(point.scheme for point in points), key=lambda name: name.startswith("blindfuse"))
    for scheme in schemes:
        mine = [point for point in points if point.scheme == scheme]
        measured = [point for point in mine if point.speed]
        color = OURS.get(scheme, THEIRS)
        for point in measured:
            axis.plot(
                *_place(point),
                marker=MARKERS[point.once_kind],
                markersize=9 if point.ours else 6,
                color=color,
                markerfacecolor=color if point.ours else style.CARD,
                markeredgewidth=1.5,
            )
        if len(measured) > 1 and scheme.startswith("InsPIRe"):
            axis.plot(*zip(*map(_place, measured)), color=color, linewidth=1, zorder=1)
        if measured and scheme not in UNLABELLED:
            _label(axis, group, scheme, measured, color)
        for point in mine:
            if point.speed is None:
                axis.axvline(point.lookup.value / 1024, color=color, linestyle=":", linewidth=1.4, zorder=0)
                axis.annotate(
                    f"{scheme.removeprefix('blindfuse, ')},\n{point.database}:\n"
                    f"{digits(point.lookup.value / 1024)} KB, time\nnot measured",
                    (point.lookup.value / 1024, 0.17),
                    xytext=(-5, 0),
                    textcoords="offset points",
                    ha="right",
                    fontsize=7,
                    color=color,
                )


def bytes_over_throughput(pyplot: Any, results: Results) -> Any:
    points = lookups.points(results)
    if not any(point.scheme == lookups.HINT_MODE for point in points):
        return None
    drawn, axes = pyplot.subplots(1, len(lookups.GROUPS), figsize=(12, 5.2), sharey=True)
    drawn.suptitle(
        "One look-up in 1 GB: bytes, and throughput of one core (up and to the left is better)",
        x=0.01,
        ha="left",
        fontsize=12,
        fontweight="bold",
    )
    for axis, group in zip(axes, lookups.GROUPS):
        _panel(axis, group, [point for point in points if point.group == group])
        axis.set_title(group[0].upper() + group[1:], fontsize=10)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim((1.2, 9000) if group == lookups.BITS else (15, 12000))
        axis.set_ylim(0.15, 25)
        axis.get_xaxis().set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.get_yaxis().set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_xlabel("query and response, KB")
    axes[0].set_ylabel("database a second and core, GB/s")
    shapes = [
        pyplot.Line2D([], [], marker=marker, linestyle="", color=style.INK, markerfacecolor=style.CARD, label=label)
        for marker, label in _legend(points).items()
    ]
    axes[0].legend(handles=shapes, title="once, before the first look-up", title_fontsize=8, fontsize=7.5,
                   loc="lower left", alignment="left")
    files = {place.partition("#")[0].removeprefix("results/") for point in points if point.speed
             for place in point.speed.read if place.startswith("results/")}
    drawn.supxlabel(
        "Filled: blindfuse. Open: as published. The table of the points names each machine. KB and GB are powers of "
        "1024. Hint mode: " + results.about(results.own(files)),
        fontsize=7,
        color=style.QUIET,
        ha="left",
        x=0.01,
    )
    drawn.patch.set_edgecolor(style.GRID)
    drawn.patch.set_linewidth(1.5)
    return drawn
