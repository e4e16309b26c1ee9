"""The papers' and peers' figures, as bench/published has them, with the place of each."""

import json
import pathlib
from functools import cache
from typing import Any

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "published"

Row = dict[str, Any]


@cache
def document(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text())


def table(name: str, key: str) -> dict[str, Any]:
    return document(name)["tables"][key]


def rows(name: str, key: str) -> list[Row]:
    """Rows by column; `where` is the place of the row, to be followed by a column."""
    found = table(name, key)
    return [
        dict(zip(found["columns"], row, strict=True)) | {"where": f"published/{name}.json#{key}.{i}"}
        for i, row in enumerate(found["rows"])
    ]


def machine(name: str, key: str, row: Row | None = None) -> str:
    """What a table, or a row of it, was measured on, with its number of threads."""
    which = (row or {}).get("machine") or table(name, key)["machine"]
    facts = document(name)["machines"][which]
    threads = (row or {}).get("threads", facts["threads"])
    return f"{facts['text']}, {threads} thread{'s' if threads != 1 else ''}"


def lookup(where: str) -> float | None:
    """The value at a place as `rows` makes them: FILE#TABLE.ROW.COLUMN."""
    path, _, place = where.partition("#")
    name = pathlib.PurePath(path).stem
    if place.count(".") < 2 or place.split(".")[0] not in document(name).get("tables", {}):
        value: Any = document(name)
        for step in place.split("."):
            value = value[int(step)] if isinstance(value, list) else value[step]
        return value
    key, row, column = place.rsplit(".", 2)
    return dict(zip(table(name, key)["columns"], table(name, key)["rows"][int(row)], strict=True))[column]
