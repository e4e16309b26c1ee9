#!/usr/bin/env python3
"""bench/report.py: tiny databases are measured and asked, tables and chart follow from the results, and the check finds
what does not follow. --bin names the folder with the programs."""

import argparse
import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import report  # noqa: E402

BIN = ROOT / "build" / "bin"
# One of each kind, and all applications.
MEASURED = [report.MEGABYTE[0], report.OVERVIEW[0], "database.index-16777216x64.two-levels",
            "database.keyword-1048576x1024.hint-one-shard"]


class DependencyTreeTest(unittest.TestCase):
    INDEX = {
        "a": b"Package: a\nPre-Depends: b\nDepends: c (>= 1) | x, d:any,\n missing, b\nDescription: Depends: e\n",
        "b": b"Package: b\nRecommends: e\n",
        "c": b"Depends: e\n",
        "d": b"Depends: a\n",
        "e": b"Package: e\n",
    }

    def test_first_alternatives_level_by_level(self) -> None:
        index = report.applications()[1]
        self.assertEqual(index.depends_on(self.INDEX, "a"), ["b", "c", "d"])
        self.assertEqual(index.levels_of_tree(self.INDEX, "a", 3), [["a"], ["b", "c"]])
        self.assertEqual(index.levels_of_tree(self.INDEX, "a", 9), [["a"], ["b", "c", "d"], ["e"]])


class ReportTest(unittest.TestCase):
    """On copies of the pages and of the results."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results, self.docs = (pathlib.Path(folder.name, name) for name in ("results", "docs"))
        shutil.copytree(report.RESULTS, self.results)
        shutil.copytree(ROOT / "docs", self.docs)

    def check(self) -> list[str]:
        """The names of the files that are not what the results give."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = report.main(["--check", "--results", str(self.results), "--docs", str(self.docs)])
        found = [pathlib.Path(line.split()[0]).name for line in output.getvalue().splitlines()]
        self.assertEqual(status, 1 if found else 0)
        return found

    def test_a_cell_that_somebody_changed_is_found(self) -> None:
        page = self.docs / "BENCHMARKS.md"
        page.write_text(page.read_text().replace("| 1.92 s |", "| 1.02 s |"))
        self.assertEqual(self.check(), ["BENCHMARKS.md"])

    def test_a_result_that_the_tables_and_the_chart_do_not_show_is_found(self) -> None:
        path = next(self.results.glob("*/database.index-4194304x256.hint.json"))
        content = json.loads(path.read_text())
        content["figures"]["lookup"]["server"]["median"] *= 2
        path.write_text(json.dumps(content))
        self.assertEqual(sorted(self.check()), ["BENCHMARKS.md", "bytes-over-throughput.svg"])

    def test_people_s_text_stays_and_rendering_mends_the_tables(self) -> None:
        page = self.docs / "BENCHMARKS.md"
        page.write_text(page.read_text().replace("| 1.92 s |", "| 1.02 s |").replace("# Benchmarks", "# Our benchmarks"))
        report.main(["--render", "--results", str(self.results), "--docs", str(self.docs)])
        self.assertTrue(page.read_text().startswith("# Our benchmarks"))
        self.assertEqual(self.check(), [])

    def test_a_table_is_of_one_machine(self) -> None:
        one = next(self.results.glob("*/overview.keyword-150000x256.json"))
        other = self.results / "another-machine"
        other.mkdir()
        shutil.copy(one, other)
        found = report.Results(self.results).of_one_machine(report.OVERVIEW)
        self.assertEqual([each["name"] for each in found], report.OVERVIEW)


class MeasureTest(unittest.TestCase):
    def test_everything_is_measured_asked_and_shown(self) -> None:
        names = MEASURED + [name for module in report.applications() for name in module.MEASURED]
        with tempfile.TemporaryDirectory() as folder:
            results, docs = pathlib.Path(folder, "results"), pathlib.Path(folder, "docs")
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                failed = report.measure(BIN.resolve(), names, results / "tiny", (2, 0.2, True))
            self.assertEqual(failed, [], errors.getvalue())
            shutil.copytree(ROOT / "docs", docs)
            made = report.rendered(report.Results(results), docs)
        page = made[docs / "BENCHMARKS.md"]
        for block, rows in (("overview", 1), ("megabyte", 1), ("databases", 2)):
            text = page.partition(f"<!-- begin: {block} -->")[2].partition("<!-- end:")[0]
            self.assertEqual(text.count("\n| "), 1 + rows, text)
        self.assertEqual(made[docs / report.CHART].count('fill="#1a7f37"><title>'), 1)

    def test_one_that_fails_keeps_no_other_from_being_made(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            programs = pathlib.Path(folder, "bin")
            programs.mkdir()
            (programs / "blindfuse").write_text("#!/bin/sh\nexit 1\n")
            (programs / "blindfuse").chmod(0o755)
            failed = report.measure(programs, report.MEGABYTE[:2], pathlib.Path(folder, "results"), (2, 0.2, True))
        self.assertEqual(failed, report.MEGABYTE[:2])


def main() -> None:
    global BIN
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=BIN, metavar="FOLDER")
    arguments, rest = parser.parse_known_args()
    BIN = arguments.bin
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
