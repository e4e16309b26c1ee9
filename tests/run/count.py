#!/usr/bin/env python3
"""Counts the tests in folders of results: ctest.xml, which ctest writes, and a file for each shard of a GoogleTest
program. Names those that failed, and those that were skipped with the reason they gave; the last line is
"N passed, N failed, N skipped". Exits with 1 if anything failed, or if nothing ran."""

import argparse
import pathlib
import sys
import xml.etree.ElementTree


class Count:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []  # of pairs: test, reason

    def add_googletest(self, path):
        for case in xml.etree.ElementTree.parse(path).iter("testcase"):
            if case.get("status") == "notrun":  # left out by the filter, or another shard's
                continue
            name = f"{case.get('classname')}.{case.get('name')}"
            skipped = case.find("skipped")
            if case.find("failure") is not None:
                self.failed.append(name)
            elif skipped is not None:
                # The first line is the place in the source.
                lines = (skipped.get("message") or skipped.text or "").strip().splitlines()
                self.skipped.append((name, " ".join(lines[1:] or lines)))
            else:
                self.passed += 1

    def add_ctest(self, path):
        for case in xml.etree.ElementTree.parse(path).iter("testcase"):
            name = case.get("name")
            shard = path.parent / f"{name}.xml"
            failed_before = len(self.failed)
            if shard.exists():
                self.add_googletest(shard)
            if case.get("status") == "fail":
                # What a shard leaves tells which of its tests failed, unless it died first.
                if len(self.failed) == failed_before:
                    self.failed.append(name)
            elif shard.exists():
                pass
            elif case.get("status") in ("notrun", "disabled"):
                output = (case.findtext("system-out") or "").strip()
                skipped = case.find("skipped")
                why = skipped.get("message", "") if skipped is not None else ""
                # Of its own will, or because a program or what comes before it is missing.
                if case.get("status") == "notrun" and not why.startswith("SKIP_"):
                    self.failed.append(f"{name}: {why}")
                else:
                    reason = output.splitlines()[-1].removeprefix("skipped: ") if output else "no reason given"
                    self.skipped.append((name, reason))
            else:
                self.passed += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--failed-stages", type=int, default=0, help="stages that failed, of whatever kind")
    arguments = parser.parse_args()
    count = Count()
    for folder in arguments.folders:
        results = folder / "ctest.xml"
        if results.exists():
            count.add_ctest(results)
        else:
            count.failed.append(f"{results} was not written")
    reasons = {}
    for name, reason in count.skipped:
        reasons.setdefault(reason, []).append(name)
    for reason, names in sorted(reasons.items()):
        print(f"skipped: {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: {reason}")
    for name in count.failed:
        print(f"failed: {name}")
    failed = max(len(count.failed), arguments.failed_stages)
    print(f"{count.passed} passed, {failed} failed, {len(count.skipped)} skipped")
    sys.exit(1 if failed or not count.passed else 0)


if __name__ == "__main__":
    main()
