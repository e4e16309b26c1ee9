#!/usr/bin/env python3
"""Builds the wheel of the Python package, installs it in a fresh virtual environment, and runs mypy and pytest over it.
Exits with 77, for "skipped", where the tools for that are not installed (`make test` installs them)."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent.parent
PACKAGE = ROOT / "client" / "python"
LICENCES = ("LICENSE", "NOTICE", "THIRD_PARTY_LICENSES")

# In an environment with only the wheel.
ALONE = """
import sys, tempfile, blindfuse
with tempfile.TemporaryDirectory() as folder:
    with blindfuse.Database.build({"tea": "hot"}, folder + "/db").serve() as server:
        with server.connect(cache=folder + "/cache") as drinks:
            assert drinks.get_many(["tea", "coffee"]) == {"tea": b"hot", "coffee": None}
try:
    blindfuse.connect(server.url, progress=True)
    sys.exit("a progress bar without tqdm")
except blindfuse.InputError as error:
    assert "pip install" in str(error)
"""


def run(*command, **options):
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def check_source_package(python, work):
    """All that the wheel was compiled from is in the source package as well, at the same places."""
    run(python, "-m", "build", "--sdist", "--no-isolation", "--outdir", work / "dist", PACKAGE,
        stdout=subprocess.DEVNULL)
    with tarfile.open(next((work / "dist").glob("*.tar.gz"))) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    compiled = {pathlib.Path(entry["file"]) for entry in json.loads((work / "build/compile_commands.json").read_text())}
    for several in [path for path in compiled if path.parent.name == "Unity"]:
        compiled |= {pathlib.Path(line.split('"')[1]) for line in several.read_text().splitlines()
                     if line.startswith("#include")}
    # Not what was installed into a build folder.
    sources = [path.relative_to(ROOT) for path in compiled if path.is_relative_to(ROOT)]
    ours = {f"tree/{path}" for path in sources if not path.parts[0].startswith("build")}
    headers = {f"tree/{path.relative_to(ROOT)}" for name in ("src", "client") for path in (ROOT / name).rglob("*.h")}
    missing = ((ours | headers) - packed) | ({"tree/CMakeLists.txt", "tree/cmake/client.cmake", "PKG-INFO", *LICENCES} - packed)
    if missing or not ours:
        sys.exit(f"missing in the source package: {sorted(missing)}")
    if junk := [name for name in packed if "__pycache__" in name or name.endswith((".so", ".o"))]:
        sys.exit(f"in the source package: {junk}")


def check_licence(wheel):
    """The wheel names its licence in the form of PEP 639 and holds its text, that of the tree."""
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(f"{info}/METADATA").decode().partition("\n\n")[0].splitlines()
        wanted = {"License-Expression: Apache-2.0", *(f"License-File: {name}" for name in LICENCES)}
        if missing := wanted - set(metadata):
            sys.exit(f"not in the metadata of {wheel.name}: {sorted(missing)}")
        for name in ("LICENSE", "NOTICE"):
            if archive.read(f"{info}/licenses/{name}") != (ROOT / name).read_bytes():
                sys.exit(f"{wheel.name} has another {name} than the tree")
        if b"3-clause BSD" not in archive.read(f"{info}/licenses/THIRD_PARTY_LICENSES"):
            sys.exit(f"{wheel.name} lacks the licences of what is compiled in")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blindfuse", required=True, help="the operator's program")
    parser.add_argument("--client", required=True, help="the client's program")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="virtual environment of `make test`")
    parser.add_argument("--compiler", required=True, help="the compiler that has built the programs")
    parser.add_argument("--werror", required=True, help="whether its warnings are errors: ON or OFF")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder to build in, next to the programs' own")
    arguments = parser.parse_args()
    tools = arguments.tools.resolve() / "bin"
    if not (tools / "pytest").exists():
        print(f"skipped: there is no {tools / 'pytest'}")
        sys.exit(77)
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, BLINDFUSE_PROGRAM=str(pathlib.Path(arguments.blindfuse).resolve()),
                       BLINDFUSE_CLIENT=str(pathlib.Path(arguments.client).resolve()),
                       CMAKE_BUILD_PARALLEL_LEVEL=str(os.cpu_count() or 1))

    # The folder of the last build is used again: only what changed is compiled. The compiler's cache has what the
    # programs have been built from: the options are the same, and the folders at the same depth.
    with tempfile.TemporaryDirectory(dir=work) as fresh:
        fresh = pathlib.Path(fresh)
        run(tools / "python", "-m", "build", "--wheel", "--no-isolation", "--outdir", fresh / "dist",
            f"-Cbuild-dir={work}", "-Ccmake.define.CMAKE_UNITY_BUILD=ON",
            "-Ccmake.define.CMAKE_UNITY_BUILD_BATCH_SIZE=12", f"-Ccmake.define.BLINDFUSE_WERROR={arguments.werror}",
            f"-Ccmake.define.CMAKE_CXX_COMPILER={arguments.compiler}", PACKAGE, env=environment, stdout=subprocess.DEVNULL)
        (wheel,) = (fresh / "dist").glob("*.whl")
        print(wheel.name)
        check_licence(wheel)
        (fresh / "build").symlink_to(work)
        check_source_package(tools / "python", fresh)

        run(tools / "python", "-m", "venv", fresh / "venv")
        python = fresh / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
        run(python, "-I", "-c", ALONE, env=environment)

        mypy = [tools / "mypy", "--strict", f"--cache-dir={work / 'mypy'}"]
        run(*mypy, PACKAGE / "src" / "blindfuse")
        run(*mypy, *sorted(TESTS.glob("[!r]*.py")), env=dict(environment, MYPYPATH=f"{TESTS}:{PACKAGE / 'src'}"))
        run(*mypy, "--python-executable", python, TESTS / "usage.py")
        # The tools are the other environment's; what is in this one comes first.
        (packages,) = arguments.tools.resolve().glob("lib/python*/site-packages")
        (own,) = (fresh / "venv").glob("lib/python*/site-packages")
        (own / "tools.pth").write_text(f"{packages}\n")
        run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={fresh / 'tests'}", TESTS,
            env=environment)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failed:
        sys.exit(f"failed: {' '.join(map(str, failed.cmd))}")
