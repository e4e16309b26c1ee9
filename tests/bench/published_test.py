#!/usr/bin/env python3
"""Whether the figures of bench/published agree with each other: what follows from others (sizes from parameters, rates,
throughputs, costs) is computed again. A cell that does not come out has to be listed as one of the paper's own
inconsistencies, and one that is listed must not come out."""

import json
import math
import pathlib
import sys
from typing import Any, Iterator

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "bench" / "published"
KIB = 1024
Row = dict[str, Any]
# A cell, what is printed there, what it should be, and how far apart the two may be.
Check = tuple[str, float, float, float]


def load(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text())


def rows(document: dict[str, Any], table: str) -> list[Row]:
    found = document["tables"][table]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def last_digit(value: float, digits: int) -> float:
    """How far a printed number may be from the real one: one in its last digit, since papers cut as well as round."""
    return 10 ** (math.floor(math.log10(abs(value))) - digits + 1)


def words(row: Row) -> int:
    """Entries of a record, of this many bits each."""
    return math.ceil(8 * row["value_bytes"] / row["plaintext_bits"])


def chalametpir(document: dict[str, Any]) -> Iterator[Check]:
    factors, prices = document["filter_factor"], document["prices"]
    for i, row in enumerate(rows(document, "table-1")):
        for k in ("3", "4"):
            query, response = row[f"query_kB_k{k}"], row[f"response_kB_k{k}"]
            if row["layout"] == "FrodoPIR":
                yield f"table-1.{i}.query_kB_k{k}", query, 4 * factors[k] * row["keys"] / KIB, 1
                expected = 4 * words(row) / KIB
                yield f"table-1.{i}.response_kB_k{k}", response, expected, last_digit(expected, 2)
        if row["layout"] == "SimplePIR":
            # A square: query and response have one size, and a row less a key makes both smaller.
            yield f"table-1.{i}.query_kB_k4", row["query_kB_k4"], row["response_kB_k4"], 0
            yield f"table-1.{i}.response_kB_k3", row["response_kB_k3"], row["query_kB_k3"], 0
    yield from chalametpir_costs(document, prices)
    keyword, index = rows(document, "table-2"), rows(document, "table-4")
    for i, (row, other) in enumerate(zip(keyword, index, strict=True)):
        assert (row["machine"], row["text"]) == (other["machine"], other["text"])
        # A filter has 1.13 times the rows, and the same machine ran both: half as much again is the most seen.
        ratio = row["response_ms"] / other["response_ms"]
        yield f"table-4.{i}.response_ms", ratio, 1.3, 0.2
    for i, row in enumerate(rows(document, "table-5")):
        bits = 10 if row["keys"] <= 1 << 18 else 9
        entries = math.ceil(8 * row["value_bytes"] / bits)
        yield f"table-5.{i}.storage_GB", row["storage_GB"], 4 * 1.13 * row["keys"] * entries / KIB**3, 0.002
        yield f"table-5.{i}.download_MB_frodopir", row["download_MB_frodopir"], 4 * 1774 * entries / KIB**2, 0.01
        simple = next(
            r
            for r in rows(document, "table-1")
            if r["layout"] == "SimplePIR" and r["keys"] == row["keys"] and r["value_bytes"] == 1024
        )
        # Dimension 1024: the hint is 1024 responses; the paper's own sizes differ by up to 1.6 per cent.
        expected = simple["query_kB_k3"]
        yield f"table-5.{i}.download_MB_simplepir", row["download_MB_simplepir"], expected, 0.016 * expected


def chalametpir_costs(document: dict[str, Any], prices: Row) -> Iterator[Check]:
    first = {row["text"]: row for row in rows(document, "table-1") if row["layout"] == "FrodoPIR"}
    times = {row["text"]: row for row in rows(document, "table-2")}
    for i, row in enumerate(rows(document, "table-3")):
        cell = f"table-3.{i}."
        bytes_in_all = row["keys"] * row["value_bytes"]
        rate = row["value_bytes"] / KIB / row["response_kB"]
        yield cell + "rate", row["rate"], rate, 0.001 if row["rate"] != 0.28 else 0.005
        speed = bytes_in_all / KIB**2 / row["runtime_s"]
        yield cell + "throughput_MB_s", row["throughput_MB_s"], speed, 1
        cost = (
            row["runtime_s"] * prices["cpu_dollars_per_hour"] / 3600
            + row["response_kB"] / KIB**2 * prices["download_dollars_per_GB"]
        )
        yield cell + "cost_dollars", row["cost_dollars"], cost, last_digit(cost, 3)
        if row["scheme"] == "ChalametPIR, FrodoPIR":
            yield cell + "query_kB", row["query_kB"], first[row["text"]]["query_kB_k3"], 0
            yield cell + "response_kB", row["response_kB"], first[row["text"]]["response_kB_k3"], 0
        if row["scheme"].startswith("ChalametPIR"):
            yield cell + "runtime_s", row["runtime_s"], times[row["text"]]["response_ms"] / 1000, 1e-9


def frodopir(document: dict[str, Any]) -> Iterator[Check]:
    sixth = {row["keys"]: row for row in rows(document, "table-6")}
    for table in ("table-6", "table-8", "table-10"):
        for i, row in enumerate(rows(document, table)):
            cell, entries = f"{table}.{i}.", words(row)
            download = (4 * row.get("dimension", 1774) * entries + 16) / KIB
            yield cell + "download_KB", row["download_KB"], download, {"table-6": 0.01, "table-8": 0.5}.get(table, 0.06)
            if table == "table-10":
                if row["dimension"] == 1774:
                    yield cell + "preprocessing_s", row["preprocessing_s"], sixth[row["keys"]]["preprocessing_s"], 0
                    yield cell + "derive_s", row["derive_s"], sixth[row["keys"]]["derive_s"], 0
                continue
            yield cell + "query_KB", row["query_KB"], 4 * row["keys"] / KIB, 0
            yield cell + "response_KB", row["response_KB"], 4 * entries / KIB, 0.001 if table == "table-6" else 0.005
    table = document["tables"]["table-9"]
    ours = rows(document, "table-9")[3]
    one = rows(document, "table-8")[0]
    shard_bits = 1774 * words(one) * 32
    mib = 8 * KIB**2
    day = (16 * words(one) * 32 + table["updates_per_day"] * shard_bits + 32 * 268) / mib
    yield "table-9.3.initial_communication_MB", ours["initial_communication_MB"], (128 + 16 * shard_bits) / mib, 0.01
    # 1 MB a query, as the text says.
    online = table["days_per_month"] * (table["queries_per_day"] + day)
    yield "table-9.3.online_communication_MB_month", ours["online_communication_MB_month"], online, 0.1
    yield "table-9.3.storage_MB", ours["storage_MB"], 16 + 11.44 + 2.82, 0.01
    yield "table-9.3.client_running_s_month", ours["client_running_s_month"], 31 * 40.48, 0.1


def ypir(document: dict[str, Any]) -> Iterator[Check]:
    second = {(row["database_GB"], row["scheme"]): row for row in rows(document, "table-2")}
    for table in ("table-2", "table-7", "table-8"):
        for i, row in enumerate(rows(document, table)):
            cell = f"{table}.{i}."
            # Of a time printed with two or three digits.
            speed = row["database_GB"] / row["server_ms"] * 1000
            yield cell + "throughput_GB_s", row["throughput_GB_s"], speed, 0.051 + 0.007 * speed
            if "keys" in row:
                yield cell + "database_GB", row["database_GB"], row["keys"] * row["value_bytes"] / KIB**3, 0
            if table == "table-7" and row["scheme"] == "SimplePIR":
                for name in ("prep_MB_s", "hint_MB", "upload_KB", "download_KB", "server_ms"):
                    yield cell + name, row[name], second[row["database_GB"], "SimplePIR"][name], 0
            if row["scheme"] == "SimplePIR":
                # Dimension 1024, so the hint is 1024 responses.
                yield cell + "hint_MB", row["hint_MB"], row["download_KB"], 1
    eighth = {(row["database_GB"], row["scheme"]): row for row in rows(document, "table-8")}
    for i, row in enumerate(rows(document, "figure-4")):
        if row["batch"] == 1:
            source = eighth.get((32, row["scheme"])) or second[32, row["scheme"]]
            yield f"figure-4.{i}.throughput_GB_s", row["throughput_GB_s"], source["throughput_GB_s"], 0


def peers(document: dict[str, Any]) -> Iterator[Check]:
    for i, row in enumerate(rows(document, "server")):
        cell = f"server.{i}."
        raw = row["keys"] * row["value_bytes"] / row["server_ms"] / 1e6
        yield cell + "raw_GB_s", row["raw_GB_s"], raw, 0.01 * raw
        # The yardstick that the ratio stands for, within what was seen of it.
        yardstick = row["raw_GB_s"] / row["ratio"]
        least, most = (28, 39) if row["threads"] == 1 else (36, 61)
        slack = 0.005 / row["ratio"] * yardstick
        yield cell + "ratio", yardstick, (least + most) / 2, (most - least) / 2 + slack
    measured = {(row["scheme"].partition(", 3-wise")[0], row["text"]): row
                for row in rows(document, "server") if row["threads"] == 1}
    for i, row in enumerate(rows(document, "one query")):
        if row["scheme"] != "blindfuse":
            same = measured[row["scheme"], row["text"].partition(", by key")[0]]
            for name in ("server_ms", "ratio"):
                yield f"one query.{i}.{name}", row[name], same[name], 0
    for i, row in enumerate(rows(document, "batching")):
        yardstick = row["batch"] * 1.073741824 / row["scan_ms"] * 1000 / row["ratio"]
        yield f"batching.{i}.ratio", yardstick, 33.5, 5.5


def sizes(document: dict[str, Any]) -> Iterator[Check]:
    """A database has its records' bytes."""
    for table in document["tables"]:
        for i, row in enumerate(rows(document, table)):
            if "keys" in row and "database_GB" in row:
                yield f"{table}.{i}.database_GB", row["database_GB"], row["keys"] * row["value_bytes"] / KIB**3, 0


def inspire(document: dict[str, Any]) -> Iterator[Check]:
    yield from sizes(document)
    # YPIR's bytes are those of its own paper, which prints megabytes with one decimal.
    known = {row["database_GB"]: row for row in rows(load("ypir"), "table-2") if row["scheme"] == "YPIR"}
    for i, row in enumerate(rows(document, "table-2")):
        if row["scheme"] == "YPIR":
            theirs = known[row["database_GB"]]
            slack = 0.05 * KIB if theirs["upload_KB"] > KIB else 0
            yield f"table-2.{i}.total_KB", row["total_KB"], theirs["upload_KB"] + theirs["download_KB"], slack
    # A setting that costs more bytes is there because it is faster.
    for table in document["tables"]:
        last: Row = {}
        for i, row in enumerate(rows(document, table)):
            if (row["scheme"], row["text"]) == (last.get("scheme"), last.get("text")):
                least = last["throughput_GB_s"]
                assert row["total_KB"] > last["total_KB"], (table, i)
                yield f"{table}.{i}.throughput_GB_s", row["throughput_GB_s"], 50, 50 - least
            last = row


def via(document: dict[str, Any]) -> Iterator[Check]:
    for i, row in enumerate(rows(document, "table-1")):
        speed = row["database_GB"] / row["online_s"]
        yield f"table-1.{i}.throughput_GB_s", row["throughput_GB_s"], speed, 0.006


def sealpir(document: dict[str, Any]) -> Iterator[Check]:
    paper, found = document["paper"], rows(document, "figure-9")
    # A ciphertext is two polynomials of 64-bit words.
    assert paper["ciphertext_KB"] == 2 * paper["ring_dimension"] * 8 / KIB
    for i, row in enumerate(found):
        for name in ("query_KB", "answer_KB"):
            whole = round(row[name] / paper["ciphertext_KB"]) * paper["ciphertext_KB"]
            yield f"figure-9.{i}.{name}", row[name], whole, 0
        smaller = next((r for r in found if (r["scheme"], 4 * r["keys"]) == (row["scheme"], row["keys"])), None)
        if row["scheme"].startswith("SealPIR"):
            # A ciphertext for each dimension. Expansion costs 11 to 38 per cent more, as section 7.1 says.
            yield f"figure-9.{i}.query_KB", row["query_KB"], row["dimensions"] * paper["ciphertext_KB"], 0
            yield f"figure-9.{i}.expand_s", row["expand_s"] / row["answer_s"], 0.245, 0.14
        elif smaller:
            # A query grows with the root of the elements, in whole ciphertexts for each dimension.
            expected = smaller["query_KB"] * 4 ** (1 / row["dimensions"])
            yield f"figure-9.{i}.query_KB", row["query_KB"], expected, row["dimensions"] * paper["ciphertext_KB"]
    several = rows(document, "figure-12")
    for i, row in enumerate(several):
        if row["scheme"] == "mPIR":
            # A query for each bucket, of which there are 1.5 for each element (section 4.5).
            yield f"figure-12.{i}.query_KB", row["query_KB"], 1.5 * several[0]["query_KB"], 0
            # In whole ciphertexts of each bucket.
            whole = round(row["answer_KB"] / 1.5 / paper["ciphertext_KB"]) * 1.5 * paper["ciphertext_KB"]
            yield f"figure-12.{i}.answer_KB", row["answer_KB"], whole, 0


CHECKS = {
    "chalametpir": chalametpir,
    "frodopir": frodopir,
    "ypir": ypir,
    "inspire": inspire,
    "via": via,
    "sealpir": sealpir,
    "peers": peers,
}


def failures_of(name: str) -> list[str]:
    document = load(name)
    listed = {entry["where"]: entry for entry in document["inconsistencies"]}
    wrong: list[str] = []
    failing: set[str] = set()
    for cell, printed, expected, slack in CHECKS[name](document):
        if abs(printed - expected) <= slack + 1e-12:
            continue
        failing.add(cell)
        if cell not in listed:
            wrong.append(f"{name}: {cell} is {printed:g}, and {expected:g} by the figures beside it")
        elif listed[cell]["expected"] is not None and not math.isclose(
            listed[cell]["expected"], expected, rel_tol=0.005
        ):
            wrong.append(f"{name}: {cell} is listed with {listed[cell]['expected']:g} expected: it is {expected:g}")
    wrong += [f"{name}: {cell} is listed as inconsistent, and comes out" for cell in sorted(listed.keys() - failing)]
    for cell, entry in listed.items():
        table, row, column = cell.rsplit(".", 2)
        if rows(document, table)[int(row)][column] != entry["printed"]:
            wrong.append(f"{name}: {cell} is listed as {entry['printed']:g}, and another number stands there")
    return wrong


def shape_failures() -> list[str]:
    """Every row has all columns; the size that a row's text names is the one in its numbers."""
    wrong = []
    units = {"B": 1, "kB": KIB, "KB": KIB}
    for name in CHECKS:
        document = load(name)
        for table in document["tables"]:
            for i, row in enumerate(rows(document, table)):
                words_of_text = str(row.get("text", "")).split()
                if row.get("text", "").startswith("2^") and "value_bytes" in row:
                    keys, size = 1 << int(words_of_text[0][2:]), int(words_of_text[2]) * units[words_of_text[3]]
                    if (keys, size) != (row["keys"], row["value_bytes"]):
                        wrong.append(
                            f"{name}: {table}.{i} says {row['text']} and has {row['keys']} x {row['value_bytes']}"
                        )
                machine = row.get("machine", document["tables"][table].get("machine"))
                if machine is not None and machine not in document["machines"]:
                    wrong.append(f"{name}: {table}.{i} was measured on an unknown machine, {machine}")
    return wrong


def main() -> None:
    wrong = shape_failures() + [failure for name in CHECKS for failure in failures_of(name)]
    for failure in wrong:
        print(failure)
    known = sum(len(load(name)["inconsistencies"]) for name in CHECKS)
    print(f"{known} inconsistencies are known, {len(wrong)} are not")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
