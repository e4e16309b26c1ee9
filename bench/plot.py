#!/usr/bin/env python3
"""Draws a sweep of blindfuse-bench-load (its --json lines, as bench/load/sweep writes them) as SVG and PNG:

  load-concurrency   throughput and latency over the number of connections
  load-batch         effective bytes a second over the size of the engine's batches
  load-formats       the throughput of JSON bodies next to that of binary ones

Each where the lines have what it takes: the last one needs both formats at the same concurrency."""

import argparse
import json
import os
import sys

# Blue, orange and green that are told apart by most eyes, and stand out from black as from white. So does the gray of
# text and axes: there is no background, and one file serves print and both modes of a screen.
FORMAT_COLORS = {"binary": "#3b82c4", "json": "#d9822b"}
PERCENTILES = {"p50": ("#3b82c4", "o"), "p90": ("#2f9e6e", "s"), "p99": ("#d9822b", "^"), "p999": ("#c2507f", "v")}
GRAY = "#808080"

# What a line cannot do without.
MEMBERS = {"lookups_per_second", "latency_ms", "format", "matrix_bytes", "effective_bytes_per_second", "loop",
           "concurrency", "queries_per_request"}


def fail(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def load_pyplot():
    try:
        import matplotlib
    except ImportError:
        fail("drawing needs matplotlib, of the Debian package python3-matplotlib: apt-get install python3-matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams.update({
        "axes.edgecolor": GRAY, "axes.labelcolor": GRAY, "axes.titlecolor": GRAY, "text.color": GRAY,
        "xtick.color": GRAY, "ytick.color": GRAY, "grid.color": GRAY, "grid.alpha": 0.3, "axes.grid": True,
        "axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "none", "axes.facecolor": "none",
        "savefig.facecolor": "none", "legend.frameon": False, "font.size": 10, "lines.linewidth": 1.8,
        "svg.hashsalt": "blindfuse", "figure.constrained_layout.use": True})
    from matplotlib import pyplot
    return pyplot


def read_lines(paths):
    """The measurements of closed loops in which something was answered, and the only database's facts."""
    lines = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                texts = file.readlines()
        except OSError as error:
            fail(f"cannot read {path}: {error.strerror}")
        for number, text in enumerate(texts, 1):
            try:
                line = json.loads(text)
                missing = MEMBERS - line.keys()
            except (ValueError, AttributeError):
                fail(f"{path}:{number}: no JSON object")
            if missing:
                fail(f"{path}:{number}: no line of blindfuse-bench-load: {min(missing)} is missing")
            lines.append(line)
    lines = [line for line in lines if line["loop"] == "closed" and line["latency_ms"]]
    if not lines:
        fail("there is no measurement of a closed loop in which anything was answered")
    if len({line["matrix_bytes"] for line in lines}) > 1:
        fail("the measurements are of databases of different sizes; draw each by itself")
    return sorted(lines, key=lambda line: line["concurrency"])


def formats_of(lines):
    return [name for name in FORMAT_COLORS if any(line["format"] == name for line in lines)]


def use_powers_of_two(axis, values):
    """A logarithmic axis with a tick for each value."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(sorted(set(values)))
    axis.get_xaxis().set_major_formatter(lambda value, _: f"{value:g}")
    axis.minorticks_off()


def draw_concurrency(pyplot, lines):
    """Throughput of every format; latencies of one, binary if there is any."""
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 6.5), sharex=True)
    for name in formats_of(lines):
        mine = [line for line in lines if line["format"] == name]
        above.plot([line["concurrency"] for line in mine], [line["lookups_per_second"] for line in mine],
                   marker="o", color=FORMAT_COLORS[name], label=name)
    above.set_ylabel("look-ups a second")
    above.set_ylim(bottom=0)
    above.legend()
    shown = formats_of(lines)[0]
    mine = [line for line in lines if line["format"] == shown]
    for name, (color, marker) in PERCENTILES.items():
        label = name.replace("p999", "p99.9")
        below.plot([line["concurrency"] for line in mine], [line["latency_ms"][name] for line in mine],
                   marker=marker, color=color, label=label)
    below.set_yscale("log")
    # Often less than a decade: 1, 2 and 5 of each have a line.
    below.get_yaxis().set_major_locator(pyplot.LogLocator(subs=(1, 2, 5)))
    below.get_yaxis().set_minor_formatter(pyplot.NullFormatter())
    below.get_yaxis().set_major_formatter(lambda value, _: f"{value:g}")
    below.set_ylabel(f"latency, ms ({shown})")
    below.set_xlabel("connections, each with one request at a time")
    below.legend(ncols=4)
    use_powers_of_two(below, [line["concurrency"] for line in lines])
    return figure


def draw_batch(pyplot, lines):
    """Over the server's own count of batches; without that, over the queries that were under way at most."""
    known = all(line.get("mean_batch") for line in lines)
    figure, axis = pyplot.subplots(figsize=(7, 4))
    for name in formats_of(lines):
        points = sorted((line["mean_batch"] if known else line["concurrency"] * line["queries_per_request"],
                         line["effective_bytes_per_second"] / 1e9)
                        for line in lines if line["format"] == name)
        axis.plot(*zip(*points), marker="o", color=FORMAT_COLORS[name], label=name)
    axis.set_xlabel("queries in a batch, on average" if known else "queries under way (the server tells no batches)")
    axis.set_ylabel("matrix bytes times queries a second, GB/s")
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.legend()
    return figure


def draw_formats(pyplot, lines):
    """Pairs of bars, one at each concurrency that both formats were measured at; None when there is none."""
    rates = {(line["format"], line["concurrency"]): line["lookups_per_second"] for line in lines}
    shared = sorted(c for name, c in rates if name == "json" and ("binary", c) in rates)
    if not shared:
        return None
    figure, axis = pyplot.subplots(figsize=(7, 4))
    places = range(len(shared))
    for shift, name in ((-0.2, "binary"), (0.2, "json")):
        axis.bar([place + shift for place in places], [rates[name, c] for c in shared], width=0.38,
                 color=FORMAT_COLORS[name], label=name, hatch="//" if name == "json" else None, edgecolor="white",
                 linewidth=0)
    for place, c in zip(places, shared):
        axis.annotate(f"{100 * rates['json', c] / rates['binary', c]:.0f} %", (place + 0.2, rates["json", c]),
                      ha="center", va="bottom", fontsize=8)
    axis.set_xticks(places, [str(c) for c in shared])
    axis.set_xlabel("connections")
    axis.set_ylabel("look-ups a second")
    axis.grid(axis="x", visible=False)
    axis.set_axisbelow(True)
    axis.legend()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="lines of blindfuse-bench-load --json")
    parser.add_argument("--output", default="build/bench", metavar="FOLDER", help="(default: %(default)s)")
    arguments = parser.parse_args()
    pyplot = load_pyplot()
    lines = read_lines(arguments.files)
    os.makedirs(arguments.output, exist_ok=True)
    figures = {"load-concurrency": draw_concurrency, "load-batch": draw_batch, "load-formats": draw_formats}
    for name, draw in figures.items():
        figure = draw(pyplot, lines)
        if figure is None:
            print(f"{name} is left out: no two formats were measured at the same concurrency", file=sys.stderr)
            continue
        for kind in ("svg", "png"):
            path = os.path.join(arguments.output, f"{name}.{kind}")
            # No date: the same lines make the same file.
            figure.savefig(path, dpi=160, metadata={"Date": None} if kind == "svg" else None)
            print(path)


if __name__ == "__main__":
    main()
