#!/usr/bin/env python3
"""Whether the tables of bench/published have the form that bench/report.py reads: every row has all columns, its machine
is described, and the size that its text names is the one in its numbers. What is listed as a paper's own inconsistency
stands in its cell."""

import json
import pathlib
import sys
from typing import Any, Iterator

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "bench" / "published"
UNITS = {"B": 1, "kB": 1024, "KB": 1024}


def rows(document: dict[str, Any], table: str) -> list[dict[str, Any]]:
    found = document["tables"][table]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def faults_of(document: dict[str, Any]) -> Iterator[str]:
    for table, content in document["tables"].items():
        for i, row in enumerate(rows(document, table)):
            machine = row.get("machine", content.get("machine"))
            if machine is not None and machine not in document["machines"]:
                yield f"{table}.{i} was measured on an unknown machine, {machine}"
            words = str(row.get("text", "")).split()
            if "value_bytes" not in row or not row.get("text", "").startswith("2^"):
                continue
            if (1 << int(words[0][2:]), int(words[2]) * UNITS[words[3]]) != (row["keys"], row["value_bytes"]):
                yield f"{table}.{i} says {row['text']} and has {row['keys']} x {row['value_bytes']}"
            if "database_GB" in row and row["database_GB"] != row["keys"] * row["value_bytes"] / 1024**3:
                yield f"{table}.{i} has {row['database_GB']} GB"
    for entry in document["inconsistencies"]:
        table, row, column = entry["where"].rsplit(".", 2)
        if rows(document, table)[int(row)][column] != entry["printed"]:
            yield f"{entry['where']} is listed as {entry['printed']:g}, and another number stands there"


def main() -> None:
    documents = sorted(FOLDER.glob("*.json"))
    faults = [f"{path.name}: {fault}" for path in documents for fault in faults_of(json.loads(path.read_text()))]
    for fault in faults:
        print(fault)
    sys.exit(bool(faults) or len(documents) < 7)


if __name__ == "__main__":
    main()
