#!/usr/bin/env python3
"""The Grafana dashboard and the Prometheus alerts name metrics, labels and their values that the server has, and
docs/REFERENCE.md names all of its metrics."""
import argparse
import itertools
import json
import pathlib
import re
import sys

METRIC = re.compile(r"\b((?:blindfuse|process)_\w+)\b(\{[^}]*\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
# What a scrape adds, and what a histogram has by itself.
SCRAPED = {"job", "instance"}
HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")
# Labels whose values are words of the server's source.
WORDS = {"outcome", "result", "part", "route"}


def metrics_of(source):
    """Every name that /metrics shows, and every label."""
    names = set()
    for kind, name in re.findall(r'\b(counter|gauge|histogram)\(\s*"(\w+)"', source):
        names.update([name + suffix for suffix in HISTOGRAM_SUFFIXES] if kind == "histogram" else [name])
    return names, set(re.findall(r'\{"(\w+)", ', source)) | SCRAPED | {"le"}


def strings_under(value, names):
    """The values of these members, wherever they are in a JSON document."""
    if isinstance(value, list):
        for item in value:
            yield from strings_under(item, names)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in names and isinstance(item, str):
                yield item
            else:
                yield from strings_under(item, names)


def rules_of(text):
    """The expressions of a rules file: the text after expr, or, after >-, on the deeper lines below it."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = re.match(r"( *)expr: (.*)", line)
        if not found:
            continue
        deeper = itertools.takewhile(lambda below: below.startswith(found[1] + "  "), lines[number + 1:])
        yield " ".join(part.strip() for part in deeper) if found[2] == ">-" else found[2]


def faults_in(where, expression, names, labels, source):
    for name, selector in METRIC.findall(expression):
        if name not in names:
            yield f"{where}: there is no metric {name}: {expression}"
        for label, value in MATCHER.findall(selector):
            if label not in labels:
                yield f"{where}: there is no label {label}: {expression}"
            for word in value.split("|") if label in WORDS else ():
                if f'"{word}"' not in source:
                    yield f"{where}: {label} is never {word}: {expression}"
    for group in re.findall(r"\b(?:by|on|group_left|without)\s*\(([^)]*)\)", expression):
        for label in filter(None, re.split(r"[\s,]+", group)):
            if label not in labels:
                yield f"{where}: there is no label {label}: {expression}"


def faults_of_reference(reference, names):
    """Whether the tables of the reference name the server's metrics, all and no others."""
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    rows = [line.split("|")[1] for line in reference.partition("## Metrics")[2].splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name, _ in METRIC.findall(row)}
    yield from (f"REFERENCE.md does not name the metric {name}" for name in sorted(families - listed))
    yield from (f"REFERENCE.md: there is no metric {name}" for name in sorted(listed - families))


def late_alerts(text):
    """Alerts that say for how long something has been so, and that come later."""
    for alert in text.split("- alert: ")[1:]:
        name = alert.split()[0]
        said = re.search(r"summary: .* for (\d+) minutes", alert)
        windows = [int(minutes) for minutes in re.findall(r"\[(\d+)m\]", alert)]
        waits = [int(minutes) for minutes in re.findall(r"\bfor: (\d+)m", alert)]
        if said and max(windows, default=0) + sum(waits) > int(said[1]):
            yield f"alerts: {name} comes after more than the {said[1]} minutes that it says"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True, help="root of the source")
    root = parser.parse_args().source
    server = root / "host/server"
    metrics = (server / "serving/server_metrics.cpp").read_text()
    names, labels = metrics_of(metrics)
    source = metrics + (server / "routes/api.cpp").read_text()

    dashboard = json.loads((root / "host/packaging/grafana/blindfuse.json").read_text())
    shown = list(strings_under(dashboard, {"expr", "query"}))
    rules = (root / "host/packaging/prometheus/alerts.yml").read_text()
    alerts = list(rules_of(rules))
    faults = list(late_alerts(rules))
    for where, expressions in (("dashboard", shown), ("alerts", alerts)):
        for expression in expressions:
            faults += faults_in(where, expression, names, labels, source)
    used = {name for expression in shown for name, _ in METRIC.findall(expression)}
    for name in sorted(names):
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        if not any(other == name or other.startswith(family + "_") for other in used):
            faults.append(f"dashboard: {name} is not shown")
    faults += faults_of_reference((root / "docs/REFERENCE.md").read_text(), names)
    if len(names) < 20 or len(shown) < 20 or len(alerts) < 5:
        faults.append(f"only {len(names)} metrics, {len(shown)} expressions and {len(alerts)} alerts were found")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
