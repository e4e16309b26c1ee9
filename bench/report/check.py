#!/usr/bin/env python3
"""Whether the report is what the JSON says: no block of a document is stale, every number in the blocks follows
from bench/results and bench/published, every result says of what it is, and figures were drawn from these results."""

import argparse
import json
import pathlib
import re
import sys
from typing import Any, Iterable, Iterator

import figures
import published
import render
from cells import Cell
from results import FIGURES, RESULTS, folders, places
from shapes import LOOKUPS
from tasks import every_task

LEAST_RUNS = 5
NUMBER = re.compile(r"(?<![\w.])[0-9][0-9,]*(?:\.[0-9]+)?(?:e-?[0-9]+)?")
# What people write of the tables on look-ups, and the tables that its numbers have to be in.
SUMMARY = re.compile(r"^## Where others win$(.*?)^<!-- begin: slower -->$", re.DOTALL | re.MULTILINE)
SUMMARIZED = ("look-ups", "inspire", "via", "sealpir")
MEASURED = re.compile(r"([0-9][0-9.]*)(?: (?:to|and) ([0-9][0-9.]*))? (?:KB|MB|GB/s|s)\b")
REQUIRED = ("commit", "date", "machine", "programs", "runs", "figures")


def numbers_in(text: str) -> set[str]:
    return {found.replace(",", "") for found in NUMBER.findall(text)}


def numbers_of(value: Any) -> Iterator[str]:
    """Every number of a JSON value, in its keys and strings too."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers_in(key.replace("_", " "))
            yield from numbers_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from numbers_of(each)
    elif isinstance(value, str):
        yield from numbers_in(value.replace("-", " ").replace("_", " "))
        yield from numbers_in(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield f"{value:.10g}"


def cell_is_true(cell: Cell, look_up: Any) -> bool:
    """Whether the digits shown are those of the number, and what it was computed from stands in the files."""
    token = NUMBER.search(cell.text)
    if token is None or cell.number is None:
        return False
    if any(look_up(place) != found for place, found in cell.number.read.items()):
        return False
    value = cell.number.value
    digits = token[0].replace(",", "")
    mantissa, _, exponent = digits.partition("e")
    decimals = len(mantissa.partition(".")[2])
    half = 0.5000001 * 10.0 ** (int(exponent or 0) - decimals)
    # Three significant digits of a number above a thousand end in zeros.
    if not decimals and not exponent:
        half = max(half, 0.5000001 * 10.0 ** (len(digits) - 3))
    return abs(float(digits) - value) <= half


def wrong_cells(folder: pathlib.Path, results: pathlib.Path, tests: bool) -> Iterator[str]:
    look_up = places(results)
    known = set(numbers_of([published.document(path.stem) for path in published.FOLDER.glob("*.json")]))
    known |= set(numbers_of([json.loads(each.read_text()) for each in folder.glob("*.*.json")]))
    known |= set(map(str, LOOKUPS))
    for table in render.tables_of(folder)[1]:
        labels = [table.title, table.explained, *table.columns]
        for cell in [cell for row in table.rows for cell in row]:
            if cell.number is None:
                labels.append(cell.text)
            elif not cell_is_true(cell, look_up):
                yield f"{folder.name}, {table.title}: {cell.text} does not follow from the files"
        for label in labels:
            if "no reason is written" in label and not tests:
                yield f"{folder.name}, {table.title}: bench/report/reasons.json lacks a reason"
            for number in sorted(numbers_in(label) - known):
                yield f"{folder.name}, {table.title}: {number}, in '{label}', stands in no JSON file"


def wrong_summary(document: str, measured: Iterable[pathlib.Path]) -> Iterator[str]:
    """Every measured number of the summary is one of the tables', of any machine, with as many decimals or fewer."""
    found_tables = [table for folder in measured for table in render.tables_of(folder)[1]]
    tables = [table for table in found_tables if table.block in SUMMARIZED]
    cells = [cell for table in tables for row in table.rows for cell in row]
    known = [float(number) for cell in cells for number in numbers_in(cell.text)]
    summary = SUMMARY.search(document)
    if summary is None:
        yield "BENCHMARKS.md has no section 'Where others win'"
        return
    for found in MEASURED.finditer(summary[1]):
        for number in filter(None, found.groups()):
            decimals = len(number.partition(".")[2])
            if not any(round(each, decimals) == float(number) for each in known):
                yield f"BENCHMARKS.md, 'Where others win': {number}, in '{found[0]}', is in none of the tables"


def wrong_results(folder: pathlib.Path, tests: bool) -> Iterator[str]:
    # Those of a GPU are measured on machines that have one.
    measured = {task.file for task in every_task()} | {"device.all.json", "parameters.gpu.json"}
    for path in sorted(folder.glob("*.*.json")):
        if path.name not in measured:
            yield f"{path.name} is of a measurement that the report does not make; remove it"
        content = json.loads(path.read_text())
        if content.get("kind") == "parameters":
            continue
        missing = [name for name in REQUIRED if name not in content]
        if missing:
            yield f"{path.name} lacks {', '.join(missing)}"
        elif not tests and (content["tiny"] or content["runs"] < LEAST_RUNS):
            yield f"{path.name} is no measurement: {content['runs']} runs" + (
                " of a tiny database" if content["tiny"] else ""
            )
        elif not tests and content["uncommitted_changes"]:
            yield f"{path.name} was measured with changes that no commit has"


def problems(results: pathlib.Path, documents: pathlib.Path, drawn: pathlib.Path, tests: bool = False) -> list[str]:
    found = []
    blocks = render.blocks(results, drawn)
    for document in render.documents(documents):
        text = document.read_text()
        if render.rendered(text, blocks) != text:
            found.append(f"{document.name} has blocks that are not what the results make; run `make report-tables`")
    if not tests:
        found += wrong_summary((documents / "BENCHMARKS.md").read_text(), folders(results))
    for folder in folders(results):
        found += wrong_results(folder, tests)
        found += wrong_cells(folder, results, tests)
    return found + figures.stale(results, drawn)


def main(command_line: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--documents", type=pathlib.Path, default=render.DOCUMENTS, metavar="FOLDER")
    parser.add_argument("--figures", type=pathlib.Path, default=FIGURES, metavar="FOLDER")
    parser.add_argument("--tests", action="store_true", help="results of --tiny are fine")
    arguments = parser.parse_args(command_line)
    found = problems(arguments.results, arguments.documents, arguments.figures, arguments.tests)
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
