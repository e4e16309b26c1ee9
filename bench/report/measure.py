#!/usr/bin/env python3
"""Measures what the report needs, and writes one JSON file a measurement into bench/results/HOST-KIND, each with
commit, processor, threads, date and its yardsticks. A measurement that is there already, of the same commit, is not
repeated."""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
from typing import Any

import kinds
import machine
from measurements import Settings
from programs import Failure, Programs
from results import RESULTS, json_text
from shapes import Limits
from tasks import EXACT, Task, every_task

# Of the machine's memory, what a matrix may take: queries, products and the system want some, too.
MEMORY_SHARE = 0.6
TINY = Limits(matrix_bytes=1 << 16, keys=512, value_bytes=64)


def arguments_of(command_line: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bin",
        type=pathlib.Path,
        default=machine.ROOT / "build" / "bin",
        metavar="FOLDER",
        help="the programs (default: build/bin)",
    )
    parser.add_argument(
        "--output", type=pathlib.Path, metavar="FOLDER", help="where results go (default: bench/results/HOST-KIND)"
    )
    parser.add_argument(
        "--work",
        type=pathlib.Path,
        metavar="FOLDER",
        help="where databases are made, up to 20 GB at a time (default: a temporary folder)",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="measurements with that in their names")
    parser.add_argument("--again", action="store_true", help="measure also what is there already")
    parser.add_argument("--list", action="store_true", help="print what would be measured, and about how long it takes")
    parser.add_argument(
        "--tiny", action="store_true", help="small databases and few runs, for tests; --output has to be given"
    )
    made = parser.parse_args(command_line)
    if made.tiny:
        if made.output is None:
            parser.error("--tiny needs --output")
        if made.output.resolve().is_relative_to(RESULTS):
            parser.error("--tiny is for tests: its results have no place in bench/results")
    made.output = made.output or RESULTS / machine.host_kind()
    return made


def is_there(path: pathlib.Path) -> bool:
    """Whether that measurement has been made of this commit."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return False
    now = machine.commit()
    return found["commit"] == now["commit"] and not found["uncommitted_changes"] and not now["uncommitted_changes"]


def write(path: pathlib.Path, content: dict[str, Any]) -> None:
    """All of it or nothing: what is interrupted is measured again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json_text(content) + "\n")
    new.replace(path)


def result_of(task: Task, settings: Settings, limits: Limits, memory: dict[Any, Any]) -> dict[str, Any]:
    shape = task.shape.fitted(limits) if task.shape else None
    arguments = dict(task.arguments)
    # In tests many shapes shrink to the same one.
    key = (task.kind, shape, repr(task.arguments))
    if key not in memory or not settings.tiny:
        measured = (settings, shape) if shape else (settings,)
        memory[key] = kinds.KINDS[task.kind](*measured, **arguments)
    programs = {
        path.name: machine.program_hash(path)
        for path in sorted(settings.programs.folder.iterdir())
        if path.name in ("blindfuse", "blindfuse-client") or path.name.startswith("blindfuse-bench-")
    }
    return {
        "kind": task.kind,
        "name": task.name,
        "arguments": arguments,
        "asked": task.shape.facts() if task.shape else None,
        "measured": shape.facts() if shape else None,
        "reduced": shape != task.shape,
        "runs": settings.runs,
        "rounds": settings.rounds,
        "tiny": settings.tiny,
        **machine.commit(),
        "programs": programs,
        "machine": machine.facts(),
        "date": machine.now(),
        "figures": memory[key],
    }


def main(command_line: list[str] | None = None) -> int:
    arguments = arguments_of(command_line)
    limits = TINY if arguments.tiny else Limits(int(MEMORY_SHARE * machine.facts()["memory_bytes"]))
    # Of what is exact, also of databases that would not fit.
    everything = TINY if arguments.tiny else Limits(1 << 62)
    chosen = [task for task in every_task() if arguments.only in task.file]
    waiting = [task for task in chosen if arguments.again or not is_there(arguments.output / task.file)]
    runs = 2 if arguments.tiny else Settings.runs
    if arguments.list:
        for task in waiting:
            print(f"{task.seconds(runs, limits):8.0f} s  {task.file}")
        print(f"{sum(task.seconds(runs, limits) for task in waiting) / 60:8.0f} minutes in all")
        return 0
    if machine.commit()["uncommitted_changes"] and not arguments.tiny:
        print(
            "There are changes that are not committed: these results will say so, and be measured again.",
            file=sys.stderr,
        )
    failed = []
    memory: dict[Any, Any] = {}
    if arguments.work:
        arguments.work.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="blindfuse-report-", dir=arguments.work))
    settings = Settings(Programs(arguments.bin.resolve()), work, runs=runs)
    if arguments.tiny:
        settings = Settings(
            Programs(arguments.bin.resolve()),
            work,
            runs=runs,
            rounds=1,
            load_seconds=0.2,
            yardstick="1024x96",
            tiny=True,
        )
    try:
        for number, task in enumerate(waiting, 1):
            print(f"{number}/{len(waiting)}  {task.file}", file=sys.stderr)
            try:
                task_limits = everything if task.kind in EXACT else limits
                write(arguments.output / task.file, result_of(task, settings, task_limits, memory))
            except Failure as failure:
                # The others are worth having, and a second run tries only this one again.
                failed.append(task.file)
                print(failure, file=sys.stderr)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for name in failed:
        print(f"FAILED: {name}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
