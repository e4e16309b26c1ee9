"""Dollars, at the papers' prices: a core's time, and bytes to clients; bytes from clients are free."""

import published
import shapes
from cells import Cell, Number, count, dollars, read, shown
from comparison import GIB, Comparison, Table
from shapes import LAYOUTS, LOOKUPS

MILLION = 1e6


def price(paper: str, name: str) -> Number:
    return read(published.document(paper)["prices"][name], f"published/{paper}.json#prices.{name}")


def online(seconds: Number, response_bytes: Number, paper: str) -> Number:
    """One look-up on one core."""
    core_second = price(paper, "cpu_dollars_per_hour") / 3600
    byte = price(paper, "download_dollars_per_GB") / GIB.size
    return seconds * core_second + response_bytes * byte


def millions(made: Comparison) -> Table:
    """Online and with each client's hint, by a client's number of look-ups, one query and sixteen at a time."""
    table = Table(
        "costs",
        "Dollars for a million look-ups",
        [
            "keys x value, layout",
            "prices of",
            "one at a time, online alone",
            *(f"with hints, L = {lookups}" for lookups in LOOKUPS),
            "batches of 16, online alone",
        ],
        about="One core's time and bytes to clients at each paper's prices; the core is ours, and not theirs. "
        "Batches are of different clients' queries. With hints: "
        "of clients who make L look-ups each.",
    )
    for shape in shapes.keyword_shapes():
        for layout in LAYOUTS:
            one, plan = made.results.product(shape, layout), made.results.plan(shape, layout)
            sixteen = made.results.product(shape, layout, batch=16)
            if one is None or plan is None:
                continue
            for paper in ("chalametpir", "ypir"):
                response = plan.number("response_bytes")
                each = online(one.number("seconds"), response, paper)
                hint = plan.number("sync_bytes") * (price(paper, "download_dollars_per_GB") / GIB.size)
                shared = sixteen and online(sixteen.number("seconds") / 16, response, paper)
                table.add(
                    f"keyword, {shape.keys} x {shape.value_bytes} B, {layout}{one.reduced}",
                    Cell(paper),
                    dollars(each * MILLION),
                    *(dollars((each + hint / lookups) * MILLION) for lookups in LOOKUPS),
                    dollars(shared * MILLION if shared else None),
                )
    return table


def on_a_gpu(made: Comparison) -> Table:
    """Full batches of the GPU's fastest kernel, at the price of an instance that is a parameter."""
    table = Table(
        "costs-gpu",
        "Dollars for a million look-ups on a GPU",
        ["shape", "kernel", "batch", "look-ups a second", "dollars, GPU time alone"],
    )
    device = made.results.find("device.all.json")
    parameters = made.results.parameters
    if device is None or parameters is None:
        return table
    table.about = f"{parameters.figures['instance']}; transfer is not included."
    hour = parameters.number("dollars_per_hour")
    best: dict[str, int] = {}
    for i, line in enumerate(device.figures["lines"]):
        if line["measurement"] == "pipeline":
            before = best.get(line["shape"])
            if before is None or line["queries_per_second"] > device.figures["lines"][before]["queries_per_second"]:
                best[line["shape"]] = i
    for shape, i in best.items():
        line = device.part("lines", i)
        rate = line.number("queries_per_second")
        table.add(
            shape,
            Cell(line.figures["kernel"]),
            count(line.number("batch")),
            shown(rate),
            dollars(hour / (rate * 3600) * MILLION),
        )
    return table


def tables(made: Comparison) -> list[Table]:
    return [millions(made), on_a_gpu(made)]
