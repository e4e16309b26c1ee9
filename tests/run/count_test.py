#!/usr/bin/env python3
"""What tests/run/count.py makes of the results that ctest itself writes."""

import pathlib
import subprocess
import sys
import tempfile

TESTS = """cmake_minimum_required(VERSION 3.25)
project(counted NONE)
enable_testing()
add_test(NAME passes COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME skips COMMAND ${CMAKE_COMMAND} -E false)
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 1)
add_test(NAME not_there COMMAND /nonexistent/program)
add_test(NAME fails COMMAND ${CMAKE_COMMAND} -E false)
set_tests_properties(fails PROPERTIES FIXTURES_SETUP something)
add_test(NAME cannot_run COMMAND ${CMAKE_COMMAND} -E true)
set_tests_properties(cannot_run PROPERTIES FIXTURES_REQUIRED something)
"""
EXPECTED = [  # in any order
    "1 passed, 3 failed, 1 skipped",
    "failed: cannot_run: Fixture dependency failed",
    "failed: fails",
    "failed: not_there: Unable to find executable",
    "skipped: skips: no reason given",
]

with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "CMakeLists.txt").write_text(TESTS)
    subprocess.run(["cmake", "."], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ctest", "--output-junit", "ctest.xml"], cwd=folder, check=False, capture_output=True)
    count = subprocess.run(
        [sys.executable, pathlib.Path(__file__).with_name("count.py"), folder], check=False, capture_output=True, text=True)
if (sorted(count.stdout.splitlines()), count.returncode) != (EXPECTED, 1):
    sys.exit(f"status {count.returncode}, and this instead of what is expected:\n{count.stdout}{count.stderr}")
