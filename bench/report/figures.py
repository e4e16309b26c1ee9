#!/usr/bin/env python3
"""Draws the report's figures from bench/results, as SVG and PNG, into docs/figures; sources.json there says of which
results they were made. A figure of which nothing has been measured is left out."""

import argparse
import hashlib
import json
import pathlib
import sys
from typing import Any, Callable

import costs
import lookups_figure
import published
import shapes
import style
from results import FIGURES, RESULTS, Results, folders
from shapes import Shape, layout_of
from tasks import BATCH_SHAPE, LOAD_SHAPE

LOOKUPS_SHOWN = 100


def bytes_over_shards(pyplot: Any, results: Results) -> Any:
    found = results.find(f"plan.{BATCH_SHAPE.name}.json")
    if found is None:
        return None
    layouts = sorted(found.figures["layouts"], key=lambda layout: layout["shard_count"])
    chosen = layout_of(found.figures, "planned")
    title = f"Bytes of a look-up over shards: {chosen['key_count']:,} keys, values of {chosen['value_bytes']:,} bytes"

    def total(layout: dict[str, Any]) -> float:
        return layout["query_bytes"] + layout["response_bytes"] + layout["sync_bytes"] / LOOKUPS_SHOWN

    # Further right there are only larger hints.
    layouts = [layout for layout in layouts if total(layout) <= 100 * total(chosen)]
    drawn, axis = style.figure(pyplot, title, results.about([found.file]))
    counts = [layout["shard_count"] for layout in layouts]

    lines: list[tuple[str, Callable[[dict[str, Any]], float]]] = [
        ("query", lambda layout: layout["query_bytes"]),
        ("response", lambda layout: layout["response_bytes"]),
        (f"hint, shared by {LOOKUPS_SHOWN} look-ups", lambda layout: layout["sync_bytes"] / LOOKUPS_SHOWN),
    ]
    for i, (label, of) in enumerate(lines):
        axis.plot(counts, [of(layout) for layout in layouts], label=label, **style.look(i + 1), linestyle="--")
    axis.plot(counts, [total(layout) for layout in layouts], label="in all", **style.look(0), linewidth=2.6)
    axis.annotate(
        f"the planner's choice: {chosen['shard_count']} shards",
        (chosen["shard_count"], total(chosen)),
        xytext=(0, 38),
        textcoords="offset points",
        ha="center",
        color=style.INK,
        arrowprops={"arrowstyle": "->", "color": style.INK},
    )
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.get_xaxis().set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.get_yaxis().set_major_formatter(style.bytes_text)
    axis.set_xlabel("shards")
    axis.set_ylabel("bytes")
    axis.legend()
    return drawn


def throughput_over_batch(pyplot: Any, results: Results) -> Any:
    """Every kernel of the CPU, next to what memory and the best kernel's instruction allow."""
    found = results.find(f"product.{BATCH_SHAPE.name}.planned.kernels.json")
    if found is None:
        return None
    lines = found.figures["products"]
    matrix = found.figures["layout"]["matrix_bytes"]
    drawn, axis = style.figure(
        pyplot,
        f"Queries of a batch share one pass: a matrix of {style.bytes_text(matrix)}, one thread",
        results.about([found.file]),
    )
    batches = sorted({line["batch"] for line in lines})
    kernels = list(dict.fromkeys(line["kernel"] for line in lines))
    for i, kernel in enumerate(kernels):
        mine = sorted((line for line in lines if line["kernel"] == kernel), key=lambda line: line["batch"])
        rates = [
            [line["effective_bytes_per_second"][each] / 1e9 for line in mine] for each in ("median", "least", "most")
        ]
        axis.plot([line["batch"] for line in mine], rates[0], label=kernel, **style.look(i))
        axis.fill_between(
            [line["batch"] for line in mine], rates[1], rates[2], color=style.look(i)["color"], alpha=0.15, linewidth=0
        )
    read = max(line["read_bytes_per_second"]["median"] for line in lines) / 1e9
    peak = max(line.get("peak_multiply_adds_per_second", {"median": 0})["median"] for line in lines) / 1e9
    axis.plot(
        batches,
        [min(read * batch, peak) for batch in batches],
        color=style.INK,
        linestyle=":",
        label=f"roofline: {read:.0f} GB/s read, {peak:.0f} G multiply-adds/s",
    )
    style.powers_of_two(axis, batches)
    axis.set_yscale("log")
    style.one_two_five(axis)
    axis.get_yaxis().set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_xlabel("queries in a batch")
    axis.set_ylabel("matrix bytes times queries, GB/s")
    axis.legend(ncols=2, fontsize=7.5)
    return drawn


def throughput_on_gpu(pyplot: Any, results: Results) -> Any:
    found = results.find("device.all.json")
    if found is None:
        return None
    scans = [line for line in found.figures["lines"] if line["measurement"] == "scan"]
    if not scans:
        return None
    shape = scans[0]["shape"]
    scans = [line for line in scans if line["shape"] == shape]
    drawn, axis = style.figure(
        pyplot, f"Queries of a batch share one pass, on {scans[0]['device']}: {shape}", results.about([found.file])
    )
    for i, kernel in enumerate(dict.fromkeys(line["kernel"] for line in scans)):
        mine = sorted(
            (line["batch"], line["effective_bytes_per_second"] / 1e12) for line in scans if line["kernel"] == kernel
        )
        axis.plot(*zip(*mine), label=kernel, **style.look(i))
    batches = sorted({line["batch"] for line in scans})
    read = max(line["read_bytes_per_second"] for line in scans) / 1e12
    peak = max(line["peak_byte_multiply_adds_per_second"] or 0 for line in scans) / 4e12
    axis.plot(
        batches,
        [min(read * batch, peak or read * batch) for batch in batches],
        color=style.INK,
        linestyle=":",
        label="roofline",
    )
    style.powers_of_two(axis, batches)
    axis.set_yscale("log")
    axis.set_xlabel("queries in a batch")
    axis.set_ylabel("matrix bytes times queries, TB/s")
    axis.legend()
    return drawn


def latency_over_load(pyplot: Any, results: Results) -> Any:
    found = results.find(f"load.{LOAD_SHAPE.name}.json")
    if found is None:
        return None
    loads = found.figures["loads"]
    drawn, axis = style.figure(
        pyplot,
        f"Latency over load: matrix of {style.bytes_text(found.figures['layout']['matrix_bytes'])}",
        results.about([found.file]),
    )
    for i, (name, label) in enumerate((("p50", "median"), ("p90", "90th percentile"), ("p99", "99th percentile"))):
        axis.plot(
            [load["rate"] for load in loads],
            [load[name]["median"] / 1e3 for load in loads],
            label=label,
            **style.look(i),
        )
    capacity = found.figures["capacity"]["median"]
    axis.axvline(capacity, color=style.INK, linestyle=":", label="closed loop, 16 clients")
    axis.set_yscale("log")
    style.one_two_five(axis)
    axis.get_yaxis().set_major_formatter(style.seconds_text)
    axis.set_xlim(left=0)
    axis.set_xlabel("look-ups that arrive in a second")
    axis.set_ylabel("from arrival to answer")
    axis.legend()
    return drawn


OFFLINE_VALUE_BYTES = 1024


def offline_over_size(pyplot: Any, results: Results) -> Any:
    """One thread on all sides, on different machines; only the peers ran on one like ours."""
    ours: dict[str, list[tuple[float, float]]] = {"keyword": [], "index": []}
    files = []
    for shape in shapes.keyword_shapes() + shapes.index_shapes():
        found = results.database(shape, "one-shard")
        # Of values as long as FrodoPIR's: others take another time for as many bytes.
        if found and found.content["measured"]["value_bytes"] == OFFLINE_VALUE_BYTES:
            measured = found.content["measured"]
            ours[shape.kind].append((measured["keys"] * measured["value_bytes"], found.number("build", "total").value))
            files.append(found.file)
    if not files:
        return None
    drawn, axis = style.figure(pyplot, "The offline phase, one thread", results.about(files), height=5)
    axis.plot(
        *zip(*sorted(published_points("frodopir", "table-6", "preprocessing_s"))),
        linestyle="--",
        linewidth=1.2,
        label="FrodoPIR, its table 6, EC2 t2.2xlarge",
        **style.look(2),
    )
    for i, name in enumerate(dict.fromkeys(row["scheme"] for row in published.rows("peers", "offline")), 3):
        points = published_points("peers", "offline", "seconds", name)
        if points:
            axis.plot(
                *zip(*points),
                linestyle="",
                label=f"{name}, on a machine like ours",
                markerfacecolor="none",
                markeredgewidth=1.6,
                **style.look(i),
            )
    for i, (kind, points) in enumerate(ours.items()):
        if points:
            axis.plot(
                *zip(*sorted(points)),
                label=f"blindfuse, {kind}, values of 1 KB",
                linewidth=2.6,
                linestyle="-" if i == 0 else ":",
                **style.look(i),
            )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.get_xaxis().set_major_formatter(style.bytes_text)
    axis.get_yaxis().set_major_formatter(style.seconds_text)
    axis.set_xlabel("keys times value bytes")
    axis.legend(ncols=2, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    return drawn


def published_points(name: str, table: str, column: str, scheme: str | None = None) -> list[tuple[float, float]]:
    """Sizes and times of one thread."""
    return [
        (row["keys"] * row["value_bytes"], row[column])
        for row in published.rows(name, table)
        if row.get("threads", 1) == 1 and (scheme is None or row["scheme"] == scheme)
    ]


def misprints() -> dict[str, float]:
    """Costs of table 3 that its own run times contradict, with what those make of them."""
    return {
        entry["where"]: entry["expected"]
        for entry in published.document("chalametpir")["inconsistencies"]
        if entry["where"].endswith("cost_dollars")
    }


def cost_of_a_million(pyplot: Any, results: Results) -> Any:
    """ChalametPIR's comparison with SparsePIR, ours added at the same prices."""
    groups: dict[str, list[tuple[str, float, str]]] = {}
    corrections = []
    files = []
    for row in published.rows("chalametpir", "table-3"):
        dollars = row["cost_dollars"] * 1e6
        expected = misprints().get(row["where"].partition("#")[2] + ".cost_dollars")
        if expected is not None:
            corrections.append(f"*: as printed; ${expected * 1e6:.3g} by the time and bytes printed next to it. ")
        groups.setdefault(row["text"], []).append(
            (row["scheme"], dollars, f"{dollars:.3g}" + ("*" if expected is not None else ""))
        )
        for layout in ("one-shard", "square"):
            shape = Shape("keyword", row["keys"], row["value_bytes"])
            product, plan = results.product(shape, layout), results.plan(shape, layout)
            name = f"blindfuse, {layout}"
            if product and plan and not product.reduced and name not in [bar[0] for bar in groups[row["text"]]]:
                cost = costs.online(product.number("seconds"), plan.number("response_bytes"), "chalametpir").value * 1e6
                groups[row["text"]].append((name, cost, f"{cost:.3g}"))
                files += [product.file, plan.file]
    if not files:
        return None
    drawn, axis = style.figure(
        pyplot,
        "Dollars for a million look-ups, online, at ChalametPIR's prices",
        "".join(corrections) + results.about(files),
        height=4.6,
    )
    names = list(dict.fromkeys(bar[0] for bars in groups.values() for bar in bars))
    names.sort(key=lambda name: not name.startswith("blindfuse"))
    width = 0.85 / len(names)
    for i, name in enumerate(names):
        bars = [
            (place + (i - (len(names) - 1) / 2) * width, cost, text)
            for place, group in enumerate(groups.values())
            for scheme, cost, text in group
            if scheme == name
        ]
        drawn_bars = axis.bar(
            [bar[0] for bar in bars],
            [bar[1] for bar in bars],
            width=0.92 * width,
            label=name,
            color=style.COLORS[i],
            hatch="///" if name.startswith("S") else "",
            edgecolor=style.CARD,
            linewidth=0.3,
        )
        axis.bar_label(drawn_bars, [bar[2] for bar in bars], fontsize=6.5, color=style.INK)
    axis.set_yscale("log")
    axis.get_yaxis().set_major_formatter(lambda value, _: f"${value:g}")
    axis.set_xticks(range(len(groups)), list(groups))
    axis.grid(axis="x", visible=False)
    axis.legend(ncols=3, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    return drawn


# Each with what is written below it.
DRAWERS: dict[str, tuple[Callable[[Any, Results], Any], str]] = {
    "bytes-over-throughput": (
        lookups_figure.bytes_over_throughput,
        "Bytes and throughput of one look-up in 1 GB, of blindfuse and as published.",
    ),
    "bytes-over-shards": (bytes_over_shards, "What more shards buy: shorter queries for longer responses and hints."),
    "throughput-over-batch": (throughput_over_batch, "One pass over the matrix for several queries, kernel by kernel."),
    "throughput-over-batch-gpu": (throughput_on_gpu, "One pass over the matrix for several queries, on a GPU."),
    "latency-over-load": (latency_over_load, "From a look-up's arrival to its answer, however many arrive."),
    "offline-over-size": (offline_over_size, "From records to a database that can be served."),
    "cost-of-a-million": (cost_of_a_million, "What a server's core and its bytes to clients cost."),
}


def fingerprint(results: pathlib.Path) -> str:
    """Of all that figures are drawn from."""
    digest = hashlib.sha256()
    for path in [path for folder in folders(results) for path in sorted(folder.glob("*.*.json"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    for path in sorted(published.FOLDER.glob("*.json")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def stale(results: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """Nothing when the figures there were drawn from these results."""
    if not folders(results):
        return []
    path = folder / "sources.json"
    drawn = json.loads(path.read_text()) if path.exists() else {}
    found = (
        []
        if drawn.get("results") == fingerprint(results)
        else [f"{folder.name} was not drawn from these results; run `make report-tables`"]
    )
    return found + [
        f"{folder.name}/{name} is missing" for name in drawn.get("files", []) if not (folder / name).exists()
    ]


def draw(results: pathlib.Path, folder: pathlib.Path, pyplot: Any) -> list[str]:
    made: list[str] = []
    captions: dict[str, str] = {}
    kinds = folders(results)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (drawer, caption) in DRAWERS.items():
        drawings = [(kind, drawn) for kind in kinds if (drawn := drawer(pyplot, Results(kind))) is not None]
        for kind, drawn in drawings:
            # Where several kinds of machines have it, each has its own.
            stem = name if len(drawings) == 1 else f"{name}.{kind.name}"
            captions[stem] = caption
            for suffix in ("svg", "png"):
                made.append(f"{stem}.{suffix}")
                # No date: the same results make the same file.
                drawn.savefig(
                    folder / made[-1],
                    dpi=160,
                    edgecolor=drawn.patch.get_edgecolor(),
                    metadata={"Date": None} if suffix == "svg" else None,
                )
            pyplot.close(drawn)
    if kinds:
        sources = {"results": fingerprint(results), "files": made, "captions": captions}
        (folder / "sources.json").write_text(json.dumps(sources, indent=1) + "\n")
    return made


def main(command_line: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--output", type=pathlib.Path, default=FIGURES, metavar="FOLDER")
    arguments = parser.parse_args(command_line)
    if not folders(arguments.results):
        print("Nothing has been measured, so nothing is drawn.", file=sys.stderr)
        return 0
    try:
        pyplot = style.pyplot()
    except ImportError:
        print("drawing needs matplotlib, of the Debian package python3-matplotlib", file=sys.stderr)
        return 1
    for name in draw(arguments.results, arguments.output, pyplot):
        print(arguments.output / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
