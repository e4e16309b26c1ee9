#!/usr/bin/env python3
"""The report from beginning to end, over databases of a few hundred keys: measured, drawn, put into a copy of the
document and checked; and that the check sees what is wrong. --bin names the folder with the programs."""

import argparse
import importlib.util
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "report"))
import cells  # noqa: E402
import check  # noqa: E402
import comparison  # noqa: E402
import figures  # noqa: E402
import machine  # noqa: E402
import measure  # noqa: E402
import megabyte  # noqa: E402
import render  # noqa: E402
import results  # noqa: E402
import several_keys  # noqa: E402
import shapes  # noqa: E402
import style  # noqa: E402
import tasks  # noqa: E402

# On the path once bench/report/applications.py has put it there.
import package_index  # noqa: E402

BIN = ROOT / "build" / "bin"


class CellsTest(unittest.TestCase):
    def test_digits(self) -> None:
        expected = {0.00123456: "0.00123", 12.345: "12.3", 999.6: "1,000", 1234567: "1,230,000", 0: "0"}
        for value, text in expected.items():
            self.assertEqual(cells.digits(value), text)

    def test_numbers_know_what_they_were_computed_from(self) -> None:
        made = (cells.read(6, "a#x") / cells.read(3, "b#y") + 1) * 10
        self.assertEqual(made.value, 30)
        self.assertEqual(made.read, {"a#x": 6, "b#y": 3})
        self.assertIsNone(made.place)
        self.assertEqual(cells.read(6, "a#x").place, "a#x")

    def test_a_number_of_a_smaller_database_stays_one(self) -> None:
        self.assertTrue((cells.Number(1, {}) / cells.Number(2, {}, partial=True)).partial)

    def test_the_digits_of_a_cell_have_to_be_those_of_the_file(self) -> None:
        cell = cells.seconds(cells.read(0.012345, "a#x"))
        self.assertEqual(cell.text, "12.3 ms")
        self.assertTrue(check.cell_is_true(cell, lambda _: 0.012345))
        self.assertFalse(check.cell_is_true(cell, lambda _: 0.012845))
        self.assertFalse(check.cell_is_true(cells.Cell("12.4 ms", cell.number), lambda _: 0.012345))


class ShapesTest(unittest.TestCase):
    def test_what_does_not_fit_is_made_smaller_by_keys(self) -> None:
        large = shapes.Shape("index", 1 << 19, 1 << 16)
        self.assertEqual(large.fitted(shapes.Limits(1 << 40)), large)
        self.assertEqual(large.fitted(shapes.Limits(11 << 30)), shapes.Shape("index", 1 << 17, 1 << 16))

    def test_every_published_shape_is_measured(self) -> None:
        names = {task.name for task in tasks.every_task()}
        for shape in shapes.planned_shapes():
            self.assertIn(shape.name, names)
        self.assertEqual(len(shapes.keyword_shapes()), 8)

    def test_files_are_told_apart(self) -> None:
        files = [task.file for task in tasks.every_task()]
        self.assertEqual(len(files), len(set(files)))


class MegabyteTest(unittest.TestCase):
    """Of what a plan may compare, with sizes that are easy to check."""

    MATRIX = 1 << 30

    def layout(self, total: int, tables: int, mode: str = "packed", levels: int = 2) -> dict[str, object]:
        return {
            "mode": mode, "levels": levels, "query_bytes": 150_000, "response_bytes": 50_000, "sync_bytes": 7_000_000,
            "total_bytes": total, "matrix_bytes": self.MATRIX, "packing_table_bytes": tables,
        }

    def compared(self) -> list[dict[str, object]]:
        return [
            self.layout(1, 3 * self.MATRIX),
            self.layout(9, 0, "hint", 1),
            self.layout(2, self.MATRIX, "packed", 1),
            self.layout(5, self.MATRIX),
            self.layout(4, self.MATRIX),  # with a short key, for example
            self.layout(3, 2 * self.MATRIX),
        ]

    def test_the_fewest_bytes_of_a_kind_whose_tables_are_small_enough(self) -> None:
        best = shapes.best_compared
        self.assertEqual(best(self.compared(), "hint"), 1)
        self.assertEqual(best(self.compared(), "packed"), 2)
        self.assertEqual(best(self.compared(), "packed", levels=2), 4)
        self.assertEqual(best(self.compared(), "packed", levels=2, matrices=2), 5)
        # Where nothing else is compared, it is the same layout.
        self.assertEqual(best(self.compared()[:5], "packed", levels=2, matrices=2), 4)
        self.assertIsNone(best(self.compared(), "hint", levels=2))

    def test_small_tables_never_count_as_too_many(self) -> None:
        layout = self.layout(1, 256 << 20) | {"matrix_bytes": 1}
        self.assertEqual(shapes.best_compared([layout], "packed", levels=2), 0)
        layout["packing_table_bytes"] = (256 << 20) + 1
        self.assertIsNone(shapes.best_compared([layout], "packed", levels=2))

    def test_look_ups_in_a_million_bytes(self) -> None:
        shape = shapes.mobile_shapes()[0]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a", f"compared.{shape.name}.json")
            path.parent.mkdir()
            content = {"reduced": False, "figures": {"compared": self.compared()[:3]}}
            path.write_text(json.dumps(content))
            table = megabyte.a_megabyte(comparison.Comparison(results.Results(path.parent)))
            look_up = results.places(path.parents[1])
            cells_ = table.rows[0]
            self.assertEqual(
                [cell.text for cell in cells_],
                ["1,000,000 x 32 B", "5.00", "5.00", "–", "–", "7.00 MB", "7.00 MB", "–", "–"],
            )
            for cell in cells_[1:3] + cells_[5:7]:
                self.assertTrue(check.cell_is_true(cell, look_up))


class ResultsTest(unittest.TestCase):
    """Of several kinds of machines."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.shape = shapes.Shape("index", 100, 10)

    def write(self, kind: str, date: str) -> None:
        (self.root / kind).mkdir()
        content = {"date": date, "figures": {}, "kind": "packed"}
        (self.root / kind / "packed.index-100x10.json").write_text(json.dumps(content))

    def date(self, kind: str) -> str | None:
        found = results.Results(self.root / kind).packed(self.shape)
        return found.content["date"] if found else None

    def test_packed_mode_is_that_of_this_machine_or_the_latest_of_another(self) -> None:
        self.write("a", "2026-11-01")
        self.write("b", "2026-11-03")
        self.write("c", "2026-11-02")
        (self.root / "d").mkdir()
        self.assertEqual([self.date(kind) for kind in "abcd"], ["2026-11-01", "2026-11-03", "2026-11-02", "2026-11-03"])

    def test_files_of_other_machines_are_not_its_own(self) -> None:
        files = ["a/load.x.json", "b/load.x.json", "a/plan.y.json"]
        self.assertEqual(results.Results(self.root / "a").own(files), ["load.x.json", "plan.y.json"])

    def test_a_table_of_other_machines_figures_alone_is_shown_once(self) -> None:
        self.write("a", "2026-11-01")
        self.write("b", "2026-11-03")
        published = comparison.Table("via", "Published alone", ["scheme"], [[cells.Cell("theirs")]])
        with mock.patch.object(render, "tables_of", lambda folder: (results.Results(folder), [published])):
            text = render.blocks(self.root, self.root)["via"]
        self.assertEqual(text.count("Published alone"), 1)


class SeveralKeysTest(unittest.TestCase):
    """Of figures that are easy to check."""

    def made(self, name: str, figures: dict[str, object]) -> comparison.Comparison:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "a", name)
        path.parent.mkdir()
        path.write_text(json.dumps({"reduced": False, "figures": figures}))
        return comparison.Comparison(results.Results(path.parent))

    def test_a_request_in_the_time_of_single_look_ups(self) -> None:
        shape = shapes.several_keys_shapes()[0]
        figures = {
            "keys_per_request": 64,
            "one_key": {"load": {"lookups_per_second": {"median": 32}}},
            # Of 64 keys: a single look-up takes 1/32 s in full batches, so 64 of them take 2 s.
            "several_keys": {
                "asked_all": {"server": {"median": 3}},
                "load": {"requests_per_second": {"median": 4}},
            },
        }
        found = several_keys.measured(self.made(f"several-keys.{shape.name}.64-keys.json", figures), shape)
        assert found
        alone, batches = several_keys.request_to_lookups(found)
        self.assertAlmostEqual(alone.value, 3 / 2)
        self.assertAlmostEqual(batches.value, (1 / 4) / 2)

    def test_bytes_are_those_of_a_key(self) -> None:
        layout = {
            "keys_per_request": 64, "bucket_count": 96, "row_count": 12288, "query_bytes": 6_400_000,
            "response_bytes": 640_000, "bytes_per_key": 110_000, "passes_per_key": 0.05, "sync_bytes": 1,
            "matrix_bytes": 1, "packing_table_bytes": 1,
        }
        figures = {"layout": layout, "one_key": layout, "keys_that_pay": None, "single_key_bytes": 7_040_000}
        shape = shapes.several_keys_planned_shapes()[0]
        made = self.made(f"several-keys-plan.{shape.name}.64-keys.json", figures)
        one, several = several_keys.planned(made).rows
        self.assertEqual(one[1].text, "1")
        self.assertEqual([cell.text for cell in several[1:5]], ["64", "96", "12,288", "110 kB"])
        self.assertEqual([cell.text for cell in several[9:]], ["7.04 MB", "–"])

    def test_sealpirs_figures_are_there_without_ours(self) -> None:
        table = several_keys.next_to_sealpir(self.made("plan.x.json", {}))
        self.assertEqual(len(table.rows), 3 * 4)
        self.assertTrue(all(row[4].text == "not measured" for row in table.rows))
        answers = [row[3].text for row in table.rows if row[1].text == "server, s"]
        self.assertEqual(answers, ["3.24", "0.69", "0.23", "0.08"])


class DependencyTreeTest(unittest.TestCase):
    INDEX = {
        "a": b"Package: a\nPre-Depends: b\nDepends: c (>= 1) | x, d:any,\n missing, b\nDescription: Depends: e\n",
        "b": b"Package: b\nRecommends: e\n",
        "c": b"Depends: e\n",
        "d": b"Depends: a\n",
        "e": b"Package: e\n",
    }

    def test_first_alternatives_that_are_in_the_index(self) -> None:
        self.assertEqual(package_index.depends_on(self.INDEX, "a"), ["b", "c", "d"])
        self.assertEqual(package_index.depends_on(self.INDEX, "b"), [])

    def test_level_by_level_and_no_more_than_wanted(self) -> None:
        self.assertEqual(package_index.levels_of_tree(self.INDEX, "a", 9), [["a"], ["b", "c", "d"], ["e"]])
        self.assertEqual(package_index.levels_of_tree(self.INDEX, "a", 3), [["a"], ["b", "c"]])
        self.assertEqual(package_index.dependency_tree(self.INDEX, 5), [["a"], ["b", "c", "d"], ["e"]])


class MeasureTest(unittest.TestCase):
    def test_tiny_results_stay_out_of_the_report(self) -> None:
        for options in (["--tiny"], ["--tiny", "--output", str(measure.RESULTS / "tiny")]):
            with mock.patch("sys.stderr"), self.assertRaises(SystemExit):
                measure.arguments_of(options)

    def test_what_is_there_of_the_same_commit_is_not_measured_again(self) -> None:
        now = {"commit": "c", "uncommitted_changes": False}
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(machine, "commit", lambda: now):
            path = pathlib.Path(folder, "plan.x.json")
            self.assertFalse(measure.is_there(path))
            for content, expected in ((now, True), (now | {"commit": "d"}, False),
                                      (now | {"uncommitted_changes": True}, False)):
                measure.write(path, content)
                self.assertEqual(measure.is_there(path), expected)


class SummaryTest(unittest.TestCase):
    """Of the report that is there."""

    def test_a_number_that_no_table_has_is_found(self) -> None:
        measured = results.folders(results.RESULTS)
        text = (render.DOCUMENTS / "BENCHMARKS.md").read_text()
        self.assertEqual(list(check.wrong_summary(text, measured)), [])
        section = check.SUMMARY.search(text)
        assert section
        altered = text.replace(section[1], section[1].replace(" KB", "7 KB", 1))
        self.assertEqual(len(list(check.wrong_summary(altered, measured))), 1)
        self.assertEqual(len(list(check.wrong_summary("", measured))), 1)


class ReportTest(unittest.TestCase):
    """One report for all tests, as making it takes seconds."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.results = pathlib.Path(folder.name, "results")
        cls.documents = pathlib.Path(folder.name, "docs")
        cls.document = cls.documents / "BENCHMARKS.md"
        cls.drawn = pathlib.Path(folder.name, "figures")
        for path in render.documents(render.DOCUMENTS):
            copy = cls.documents / path.relative_to(render.DOCUMENTS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        with mock.patch("sys.stderr"):
            status = measure.main(["--tiny", "--bin", str(BIN), "--output", str(cls.results / "tiny")])
        assert status == 0
        # As if these shapes had been asked for, so that there are ratios.
        for path in cls.results.glob("*/*.json"):
            path.write_text(json.dumps(json.loads(path.read_text()) | {"reduced": False}))
        cls.make()

    @classmethod
    def make(cls) -> None:
        if importlib.util.find_spec("matplotlib"):
            figures.draw(cls.results, cls.drawn, style.pyplot())
        else:
            cls.drawn.mkdir(exist_ok=True)
            sources = {"results": figures.fingerprint(cls.results), "files": [], "captions": {}}
            (cls.drawn / "sources.json").write_text(json.dumps(sources))
        options = {"results": cls.results, "figures": cls.drawn, "documents": cls.documents}
        assert render.main([text for name, path in options.items() for text in (f"--{name}", str(path))]) == 0

    def problems(self) -> list[str]:
        return check.problems(self.results, self.documents, self.drawn, tests=True)

    def test_it_is_true(self) -> None:
        self.assertEqual(self.problems(), [])

    def test_every_block_has_a_table(self) -> None:
        for document in render.documents(self.documents):
            for name, text in render.MARKERS.findall(document.read_text()):
                if name != "costs-gpu" and not name.startswith("figure-"):
                    self.assertIn("|---|", text, name)

    def test_nothing_outside_the_markers_changes(self) -> None:
        def outside(text: str) -> str:
            return render.rendered(text, {})

        for path in render.documents(render.DOCUMENTS):
            copy = self.documents / path.relative_to(render.DOCUMENTS)
            self.assertEqual(outside(copy.read_text()), outside(path.read_text()))

    def test_tiny_results_are_refused_in_the_report(self) -> None:
        found = check.problems(self.results, self.documents, self.drawn)
        self.assertTrue(any("tiny database" in problem for problem in found))

    def test_an_altered_number_is_found(self) -> None:
        text = self.document.read_text()
        self.addCleanup(self.document.write_text, text)
        cell = re.compile(r"(<!-- begin: bytes -->.*?\| )([0-9.]+)( KiB)", re.DOTALL)
        altered = cell.sub(r"\g<1>99999\3", text, count=1)
        self.assertNotEqual(altered, text)
        self.document.write_text(altered)
        self.assertTrue(any("blocks that are not" in problem for problem in self.problems()))

    def test_a_new_measurement_makes_the_document_stale(self) -> None:
        path = next(self.results.glob("*/plan.keyword-65536x1024-k3.json"))
        before = path.read_text()
        self.addCleanup(path.write_text, before)
        content = json.loads(before)
        for layout in content["figures"]["layouts"]:
            layout["query_bytes"] += 12345
        path.write_text(json.dumps(content))
        found = self.problems()
        for part in ("blocks that are not", "was not drawn"):
            self.assertTrue(any(part in problem for problem in found), part)

    def test_a_result_that_is_not_measured_any_more_is_found(self) -> None:
        path = self.results / "tiny" / "stages.all.json"
        shutil.copy(next(self.results.glob("*/plan.*.json")), path)
        self.addCleanup(path.unlink)
        self.assertTrue(any("stages.all.json is of a measurement" in problem for problem in self.problems()))

    def test_a_number_that_stands_in_no_file_is_found(self) -> None:
        table = render.tables_of(self.results / "tiny")[1][0]
        self.assertNotIn("31337", table.explained)
        with mock.patch.object(render.beside_chalametpir, "tables", lambda _: [table]), \
                mock.patch.object(type(table), "explained", property(lambda _: "about 31337 of them")):
            found = list(check.wrong_cells(self.results / "tiny", self.results, True))
        self.assertTrue(any("31337" in problem for problem in found))


def main() -> None:
    global BIN
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=BIN, metavar="FOLDER")
    arguments, rest = parser.parse_known_args()
    BIN = arguments.bin
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
