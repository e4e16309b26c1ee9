#!/usr/bin/env python3
"""Puts the tables made of bench/results and bench/published into docs/BENCHMARKS.md and docs/BENCHMARKS_DETAILS.md,
each between its markers (<!-- begin: NAME --> and <!-- end: NAME -->); people write the rest. A table of which nothing
has been measured leaves its place empty."""

import argparse
import json
import pathlib
import re
import sys
import textwrap
from typing import Any

import beside_chalametpir
import beside_frodopir
import beside_inspire
import beside_peers
import beside_sealpir
import beside_ypir
import costs
import machine
import megabyte
import own_tables
import several_keys
import two_levels
from comparison import Comparison, Table, worse_table
from results import FIGURES, RESULTS, Results, folders, json_text

DOCUMENTS = machine.ROOT / "docs"
MARKERS = re.compile(r"<!-- begin: ([a-z0-9-]+) -->\n(.*?)<!-- end: \1 -->", re.DOTALL)
GROUPS = {
    "Cell by cell": ("slower",),
    "What each can do": ("features",),
    "ChalametPIR": tuple(f"chalametpir-{part}" for part in ("table-1", "table-2", "table-3", "table-5", "figure-3"))
    + ("figure-cost-of-a-million",),
    "FrodoPIR": tuple(f"frodopir-table-{number}" for number in (6, 8, 9, 10)),
    "YPIR and SimplePIR": ("ypir-figure-4", "ypir-table-2", "ypir-table-7"),
    "InsPIRe, KSPIR, HintlessPIR and VIA": ("inspire", "via"),
    "SealPIR": ("sealpir",),
    "Peers' own code on a machine like ours": tuple(
        f"peers-{part}" for part in ("server", "batching", "offline", "client")
    )
    + ("figure-offline-over-size",),
    "Bytes and dollars": ("figure-bytes-over-shards", "bytes", "costs", "costs-gpu"),
    "Latency over load": ("figure-latency-over-load", "load"),
}
MAKERS = (
    beside_chalametpir,
    beside_frodopir,
    beside_ypir,
    beside_inspire,
    beside_sealpir,
    beside_peers,
    own_tables,
    megabyte,
    two_levels,
    several_keys,
    costs,
)


def documents(folder: pathlib.Path) -> list[pathlib.Path]:
    """Those with markers."""
    return [folder / "BENCHMARKS.md", folder / "BENCHMARKS_DETAILS.md"]


def tables_of(folder: pathlib.Path) -> tuple[Results, list[Table]]:
    """The tables that one kind of machine has anything for; what is worse than theirs comes first."""
    made = Comparison(Results(folder))
    found = [table for maker in MAKERS for table in maker.tables(made)]
    return made.results, [table for table in [worse_table(made.worse), *found] if table.rows]


def markdown(table: Table) -> str:
    lines = ["| " + " | ".join(table.columns) + " |", "|" + "---|" * len(table.columns)]
    lines += ["| " + " | ".join(cell.text.replace("|", "\\|") for cell in row) + " |" for row in table.rows]
    return "\n".join(lines)


def wrapped(prose: str) -> str:
    return textwrap.fill(prose, 120, break_long_words=False, break_on_hyphens=False)


def pictures(drawn: pathlib.Path) -> dict[str, str]:
    """A block for each figure that was drawn, whose files lie next to the document."""
    path = drawn / "sources.json"
    captions: dict[str, str] = json.loads(path.read_text())["captions"] if path.exists() else {}
    made: dict[str, str] = {}
    for stem, caption in captions.items():
        name = f"figure-{stem.partition('.')[0]}"
        made[name] = (
            made.get(name, "") + f"![{caption}](figures/{stem}.svg)\n\n{caption} ([PNG](figures/{stem}.png))\n\n"
        )
    return made


def blocks(results: pathlib.Path, drawn: pathlib.Path) -> dict[str, str]:
    """The text of every block."""
    features = beside_peers.features()
    made = {features.block: f"{features.about}\n\n{markdown(features)}\n"} | pictures(drawn)
    tables: dict[str, list[tuple[bool, str]]] = {}
    for folder in folders(results):
        measured, found = tables_of(folder)
        for table in found:
            about = f"{wrapped(table.explained)}\n\n" if table.about else ""
            own = measured.own(table.results)
            of_ours = f" {measured.about(own)}." if own else ""
            text = wrapped(f"**{table.title}.**{of_ours}") + f"\n\n{about}{markdown(table)}\n\n"
            # Every machine's tables show packed mode as it was measured on any.
            is_own = any(not name.startswith("packed.") for name in own)
            tables.setdefault(table.block, []).append((is_own, text))
    for block, texts in tables.items():
        # Of published figures, and those of other machines, alone: once, and only where there are no others.
        made[block] = "".join(text for is_own, text in texts if is_own) or texts[0][1]
    return {name: text.rstrip("\n") + "\n" for name, text in made.items()}


def rendered(document: str, texts: dict[str, str]) -> str:
    """The document with these texts between its markers; the first of a group that has any gets its heading."""
    done: set[str] = set()

    def block(found: re.Match[str]) -> str:
        name, text = found[1], texts.get(found[1], "")
        heading = next((heading for heading, names in GROUPS.items() if name in names), None)
        if text and heading and heading not in done:
            done.add(heading)
            text = f"### {heading}\n\n{text}"
        # Blank lines, so that every reader of Markdown sees where a table ends.
        inside = f"\n{text}\n" if text else ""
        return f"<!-- begin: {name} -->\n{inside}<!-- end: {name} -->"

    return MARKERS.sub(block, document)


def write_parameters(results: pathlib.Path, instance: str, price: float) -> None:
    for folder in folders(results):
        if (folder / "device.all.json").exists():
            content: dict[str, Any] = {
                "kind": "parameters",
                "name": "gpu",
                **machine.commit(),
                "runs": 1,
                "reduced": False,
                "machine": machine.facts(),
                "date": machine.now(),
                "figures": {"instance": instance, "dollars_per_hour": price},
            }
            (folder / "parameters.gpu.json").write_text(json_text(content) + "\n")


def main(command_line: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--figures", type=pathlib.Path, default=FIGURES, metavar="FOLDER")
    parser.add_argument("--documents", type=pathlib.Path, default=DOCUMENTS, metavar="FOLDER")
    parser.add_argument("--gpu-instance", metavar="NAME", help="what a GPU is rented as; with --gpu-dollars-per-hour")
    parser.add_argument("--gpu-dollars-per-hour", type=float, metavar="X")
    arguments = parser.parse_args(command_line)
    if (arguments.gpu_instance is None) != (arguments.gpu_dollars_per_hour is None):
        parser.error("--gpu-instance and --gpu-dollars-per-hour go together")
    if arguments.gpu_instance:
        write_parameters(arguments.results, arguments.gpu_instance, arguments.gpu_dollars_per_hour)
    texts = blocks(arguments.results, arguments.figures)
    before = {path: path.read_text() for path in documents(arguments.documents)}
    missing = texts.keys() - {found[1] for text in before.values() for found in MARKERS.finditer(text)}
    if missing:
        print(f"no document has a place for {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    for path, text in before.items():
        path.write_text(rendered(text, texts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
