"""The measured results, by file, with the place of each number."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any, Iterable

import machine
from cells import Number, read
from shapes import Shape, best_compared, layout_of

RESULTS = machine.ROOT / "bench" / "results"
FIGURES = machine.ROOT / "docs" / "figures"
MEASURED_SEVERAL_TIMES = ("product", "database", "packed", "two-levels", "several-keys", "load", "overview", "application")


def folders(results: pathlib.Path) -> list[pathlib.Path]:
    """One for each kind of machine."""
    return sorted(path for path in results.iterdir() if any(path.glob("*.*.json"))) if results.is_dir() else []


def json_text(value: Any, indent: int = 0) -> str:
    """JSON with a line for each thing measured: an object of numbers, words and lists of them."""

    def depth(each: Any) -> int:
        parts = each.values() if isinstance(each, dict) else each if isinstance(each, list) else None
        return 0 if parts is None else 1 + max(map(depth, parts), default=0)

    if indent and depth(value) <= (2 if isinstance(value, dict) else 1):
        return json.dumps(value, ensure_ascii=False)
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        items = [f"{pad}{json.dumps(name)}: {json_text(each, indent + 1)}" for name, each in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + json_text(each, indent + 1) for each in value) + "\n" + " " * indent + "]"


@dataclasses.dataclass(frozen=True)
class Result:
    """One measurement, or a part of it."""

    place: str  # of figures, in which file
    content: dict[str, Any]  # the whole file
    figures: Any

    def part(self, *steps: str | int) -> Result:
        found, place = self.figures, self.place
        for step in steps:
            found, place = found[step], f"{place}.{step}"
        return Result(place, self.content, found)

    def number(self, *steps: str | int) -> Number:
        part = self.part(*steps)
        if isinstance(part.figures, dict):  # a spread
            part = part.part("median")
        return dataclasses.replace(read(part.figures, part.place), partial=bool(self.content.get("reduced")))

    def measured(self, name: str) -> Number:
        """Of the shape that was measured."""
        return read(self.content["measured"][name], f"{self.place.partition('#')[0]}#measured.{name}")

    @property
    def file(self) -> str:
        return self.place.partition("#")[0].rpartition("/")[2]

    @property
    def reduced(self) -> str:
        """The remark on a shape that did not fit; nothing when it did."""
        if not self.content["reduced"]:
            return ""
        measured = self.content["measured"]
        return f" (ours: {measured['keys']} x {measured['value_bytes']} B)"


def whole(path: pathlib.Path, content: dict[str, Any]) -> Result:
    """A file's measurement."""
    return Result(f"results/{path.parent.name}/{path.name}#figures", content, content["figures"])


def of(result: Result | None, *steps: str | int) -> Number | None:
    """A number of a result that may not be there."""
    return result.number(*steps) if result else None


class Results:
    """Those of one kind of machine."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.kind = folder.name
        self.root = folder.parent
        self.files: dict[str, dict[str, Any]] = {
            path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.*.json"))
        }
        self.elsewhere: dict[str, Result | None] = {}  # what was looked for in all folders, by file

    def find(self, name: str) -> Result | None:
        content = self.files.get(name)
        return whole(self.root / self.kind / name, content) if content else None

    @property
    def parameters(self) -> Result | None:
        """Facts that a person entered: the GPU instance and its price."""
        return self.find("parameters.gpu.json")

    def plan(self, shape: Shape, layout: str) -> Result | None:
        found = self.find(f"plan.{shape.name}.json")
        if found is None:
            return None
        return found.part("layouts", found.figures["layouts"].index(layout_of(found.figures, layout)))

    def compared(self, shape: Shape, mode: str, levels: int = 1, matrices: int = 1) -> Result | None:
        """The layout of a kind with the fewest bytes, as best_compared() has it."""
        found = self.find(f"compared.{shape.name}.json")
        place = best_compared(found.figures["compared"], mode, levels, matrices) if found else None
        return found.part("compared", place) if found and place is not None else None

    def product(self, shape: Shape, layout: str, threads: int = 1, batch: int = 1) -> Result | None:
        """Of one batch; of all kernels the one that a server takes."""
        for suffix in ("", ".batches"):
            found = self.find(f"product.{shape.name}.{layout}{suffix}.json")
            for i, line in enumerate(found.figures["products"] if found else []):
                if (line["threads"], line["batch"]) == (threads, batch):
                    return found.part("products", i)
        return None

    def database(self, shape: Shape, layout: str, threads: int = 1) -> Result | None:
        return self.find(f"database.{shape.name}.{layout}.{threads}-threads.json")

    def packed(self, shape: Shape, kind: str = "packed") -> Result | None:
        """In packed mode, or with two levels: of this machine, or else the latest of any other."""
        name = f"{kind}.{shape.name}.json"
        if name in self.files:
            return self.find(name)
        if name not in self.elsewhere:
            found = (whole(path, json.loads(path.read_text())) for path in sorted(self.root.glob(f"*/{name}")))
            self.elsewhere[name] = max(found, key=lambda each: str(each.content["date"]), default=None)
        return self.elsewhere[name]

    def own(self, files: Iterable[str]) -> list[str]:
        """Names of those files (KIND/NAME) that are of this kind of machine."""
        return [name for kind, _, name in (file.partition("/") for file in sorted(files)) if kind == self.kind]

    def about(self, names: Iterable[str]) -> str:
        """The machine, the commits and the days of some files, for the line above what they made."""
        contents = [self.files[name] for name in sorted(set(names))]
        facts = contents[0]["machine"]
        gpu = f"; {facts['gpu']['name']}, driver {facts['gpu']['driver']}" if facts["gpu"] else ""
        commits = sorted(
            {content["commit"][:10] + ("+" if content["uncommitted_changes"] else "") for content in contents}
        )
        days = sorted({content["date"][:10] for content in contents})
        # Exact figures are not measured several times.
        runs = sorted(
            {content["runs"] for content in contents if content.get("kind") in MEASURED_SEVERAL_TIMES}
        )
        medians = f"; medians of {' or '.join(map(str, runs))} runs" if runs else ""
        return (
            f"{machine.name(facts)}, {facts['cores']} cores{gpu}; "
            f"commit {', '.join(commits)}; {days[0]}{' to ' + days[-1] if len(days) > 1 else ''}{medians}"
        )


def places(root: pathlib.Path) -> Any:
    """A function that looks a place up in the files below a folder with results, or in what was published."""
    import published

    opened: dict[str, Any] = {}

    def look_up(where: str) -> float:
        path, _, place = where.partition("#")
        if path.startswith("published/"):
            value = published.lookup(where)
        else:
            if path not in opened:
                opened[path] = json.loads((root / path.removeprefix("results/")).read_text())
            value = opened[path]
            for step in place.split("."):
                value = value[int(step)] if isinstance(value, list) else value[step]
        if not isinstance(value, (int, float)):
            raise ValueError(f"{where} is no number")
        return float(value)

    return look_up
