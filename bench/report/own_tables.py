"""Ours alone: all bytes of every layout, and how far measurements were apart."""

import shapes
from cells import Cell, count, ratio, seconds, shown, size
from comparison import Comparison, Table
from shapes import LAYOUTS, LOOKUPS, Shape


def bytes_of_clients(made: Comparison) -> Table:
    table = Table(
        "bytes",
        "All bytes of a client",
        [
            "database, layout",
            "shards",
            "bits of query, response, hint",
            "query",
            "response",
            "hint and table",
            *(f"in all, L = {lookups}" for lookups in LOOKUPS),
        ],
        about="Exact, and the same on every machine. In all: L look-ups of one client, with hint and table. The "
        "planner's layout is the one for 100 look-ups a client.",
    )
    every: list[Shape] = shapes.keyword_shapes() + [shapes.safe_browsing()] + shapes.record_shapes()
    for shape in every:
        for layout in LAYOUTS:
            plan = made.results.plan(shape, layout)
            if plan is None:
                continue
            once = plan.number("sync_bytes")
            each = plan.number("query_bytes") + plan.number("response_bytes")
            found = plan.figures
            table.add(
                f"{shape.kind}, {shape.keys} x {shape.value_bytes} B, {layout}{plan.reduced}",
                count(plan.number("shard_count")),
                Cell(" / ".join(str(found[f"{name}_bits"]) for name in ("query", "response", "hint"))),
                size(plan.number("query_bytes")),
                size(plan.number("response_bytes")),
                size(once),
                *(size(once + each * lookups) for lookups in LOOKUPS),
            )
    return table


def spreads(made: Comparison) -> Table:
    """Every time that a table shows, with its least and most and the yardstick of the same runs."""
    table = Table(
        "spread",
        "Every time, with its spread and its yardsticks",
        ["measurement", "threads", "median", "least", "most", "streaming reads, GB/s", "instruction, G/s"],
    )
    for name in made.results.files:
        found = made.results.find(name)
        kind = found.content.get("kind")
        label = f"{kind}, {found.content['name']}{found.reduced}" if kind else ""
        if kind == "product":
            for i, line in enumerate(found.figures["products"]):
                if name.endswith(".kernels.json"):
                    continue
                part = found.part("products", i)
                table.add(
                    f"{label}, batch {line['batch']}",
                    count(part.number("threads")),
                    *(seconds(part.number("seconds", each)) for each in ("median", "least", "most")),
                    shown(part.number("read_bytes_per_second") / 1e9),
                    shown(part.number("peak_multiply_adds_per_second") / 1e9),
                )
        if kind == "database":
            for group, what in (("build", "total"), ("lookup", "prepare"), ("lookup", "server"), ("lookup", "decode")):
                part = found.part(group)
                table.add(
                    f"{label}, {group}: {what}",
                    count(found.number("threads")),
                    *(seconds(part.number(what, each)) for each in ("median", "least", "most")),
                    shown(part.number("read_bytes_per_second") / 1e9),
                    shown(part.number("peak_multiply_adds_per_second") / 1e9),
                )
    return table


def load(made: Comparison) -> Table:
    table = Table(
        "load",
        "Latency over load",
        [
            "share of the closed loop's rate",
            "look-ups a second arriving",
            "answered",
            "mean batch",
            "p50",
            "p90",
            "p99",
        ],
    )
    found = next((made.results.find(name) for name in made.results.files if name.startswith("load.")), None)
    if found is None:
        return table
    table.about = (
        f"{found.content['name']}{found.reduced}: arrivals whether or not others are answered; the engine on all "
        "cores but one, the load on that."
    )
    for i, _ in enumerate(found.figures["loads"]):
        part = found.part("loads", i)
        milliseconds = [part.number(name) / 1000 for name in ("p50", "p90", "p99")]
        table.rows.append(
            [
                ratio(part.number("share")),
                shown(part.number("rate")),
                shown(part.number("lookups_per_second")),
                shown(part.number("mean_batch")),
                *(seconds(each) for each in milliseconds),
            ]
        )
    return table


def overview(made: Comparison) -> Table:
    table = Table(
        "overview",
        "With default options",
        ["keys x value", "mode", "build", "memory of the build", "memory of the server", "first visit", "its time", "query", "response",
         "a look-up", "look-ups a second and core"],
        about="`build` chose the mode. First visit: what a client downloads once an epoch. A look-up: one "
        "client on the same machine, from making the query to the value. The last column: 32 clients at once.",
    )
    found_ones = [made.results.find(name) for name in made.results.files if name.startswith("overview.")]
    for found in sorted(filter(None, found_ones), key=lambda each: Shape(**each.content["asked"]).raw_bytes):
        shape = found.content["asked"]
        table.add(
            f"{shape['keys']:,} x {shape['value_bytes']} B{found.reduced}",
            Cell(found.figures["layout"]["mode"]),
            seconds(found.number("build", "wall")),
            size(found.number("build", "peak_bytes")),
            size(found.number("server_resident_bytes")),
            size(found.number("sync", "bytes")),
            seconds(found.number("sync", "seconds")),
            size(found.number("lookup_bytes", "query")),
            size(found.number("lookup_bytes", "response")),
            seconds(found.number("lookup", "total")),
            shown(found.number("lookups_per_second_and_core")),
        )
    return table


def tables(made: Comparison) -> list[Table]:
    return [overview(made), bytes_of_clients(made), load(made), spreads(made)]
