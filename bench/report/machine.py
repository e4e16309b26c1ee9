"""Where and of what something was measured: processor, memory, GPU, commit."""

import datetime
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
from functools import cache
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What is measured, as opposed to what measures, draws and describes.
SOURCES = (
    "src",
    "host",
    "cuda",
    "client",
    "cmake",
    "CMakeLists.txt",
    "CMakePresets.json",
    "bench/*.cpp",
    "bench/*.h",
    "bench/load",
    "bench/cuda",
)


def _output(*command: str | os.PathLike[str]) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _of_proc(path: str, name: str) -> str | None:
    try:
        text = pathlib.Path(path).read_text()
    except OSError:
        return None
    found = re.search(rf"^{name}\s*:\s*(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else None


# What documents call the machines of bench/results, by family and model.
NAMES = {("6", "143"): "Xeon (Sapphire Rapids)", ("25", "1"): "EPYC (Zen 3)"}


def name(facts_of_one: dict[str, Any]) -> str:
    """A machine's one name in all documents; where it has none, what the processor says."""
    numbers = facts_of_one["cpu_family_model_stepping"]
    named = NAMES.get(tuple(numbers.split("/")[:2]))
    return named or f"{facts_of_one['cpu']} ({numbers})"


@cache
def gpu() -> dict[str, str] | None:
    if not shutil.which("nvidia-smi"):
        return None
    line = _output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    if not line:
        return None
    name, driver = (part.strip() for part in line.splitlines()[0].split(","))
    return {"name": name, "driver": driver}


@cache
def facts() -> dict[str, Any]:
    numbers = [_of_proc("/proc/cpuinfo", name) for name in ("cpu family", "model", "stepping")]
    return {
        "cpu": _of_proc("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cpu_family_model_stepping": "/".join(n for n in numbers if n),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "gpu": gpu(),
    }


def host_kind() -> str:
    """A name for results of machines like this one."""
    found = facts()
    words = re.findall(r"[a-z0-9]+", found["cpu"].lower().split("@")[0])
    kind = "-".join(word for word in words if word not in ("r", "tm", "cpu", "processor"))
    kind = f"{kind}-{found['cores']}-cores"
    if found["gpu"]:
        kind += "-" + "-".join(re.findall(r"[a-z0-9]+", found["gpu"]["name"].lower()))
    return kind


@cache
def commit() -> dict[str, Any]:
    """The last commit that changed what is measured, and whether there is more than was committed. One that changes
    documents or results alone leaves what was measured before it valid."""
    return {
        "commit": _output("git", "log", "-1", "--format=%H", "--", *SOURCES) or "unknown",
        "uncommitted_changes": bool(_output("git", "status", "--porcelain", "--", *SOURCES)),
    }


@cache
def program_hash(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
