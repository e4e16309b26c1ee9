#!/usr/bin/env python3
"""A rehearsal of bench/gpu/run on an emulated GPU that has one fault or another: whatever is wrong, crashes or hangs is
named in summary.txt, and costs nothing else that is measured.

    first_hour_test.py --bin FOLDER     where the programs are
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RUN = HERE.parent.parent / "bench" / "gpu" / "run"
FAKES = HERE / "first_hour"
# The names of a bundle's programs, and the programs that stand in for them.
PROGRAMS = {
    "blindfuse": "blindfuse-emulated",
    "blindfuse-client": "blindfuse-client",
    "blindfuse-bench-load": "blindfuse-bench-load",
    "blindfuse-bench-cuda": "blindfuse-emulated-bench-cuda",
    "blindfuse-bench-probes": "blindfuse-bench-probes",
    "blindfuse-engine-tests": "blindfuse-emulated-cuda-tests",
}
# Faults that the benchmark has and the self-test does not.
FAULTY_BENCH = """#!/usr/bin/env bash
case "$*" in
{cases}
esac
exec {program} "$@"
"""
# An emulator takes too long for these.
SLOW_KERNELS = ["--without", "packing", "--without", "tables"]


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Rehearsal:
    """One run in a folder of its own."""

    def __init__(self, programs, work, tools, faults="", faulty_bench=None):
        self.work = work
        self.out = work / "out"
        folder = work / "programs"
        folder.mkdir()
        for name, program in PROGRAMS.items():
            (folder / name).symlink_to(programs / program)
        if faulty_bench:
            bench = folder / "blindfuse-bench-cuda"
            cases = "\n".join(f'  *"--kernels {kernel} --measure {what}"*) export BLINDFUSE_FAKE_CUDA_FAULTS={fault} ;;'
                              for (kernel, what), fault in faulty_bench.items())
            bench.unlink()
            bench.write_text(FAULTY_BENCH.format(cases=cases, program=programs / PROGRAMS[bench.name]))
            bench.chmod(0o755)
        path = work / "path"
        path.mkdir()
        for name, fake in tools.items():
            (path / name).symlink_to(FAKES / fake)
        self.environment = dict(os.environ, PATH=f"{path}:{os.environ['PATH']}", BLINDFUSE_FAKE_CUDA_FAULTS=faults)
        self.folder = folder

    def start(self, *options):
        return subprocess.Popen(
            [RUN, "--rehearse", "--programs", self.folder, *SLOW_KERNELS, *options, self.out],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *options):
        process = self.start(*options)
        self.printed = process.communicate()[0]
        self.status = process.returncode
        return self

    def lines(self):
        """Of summary.txt: name, result and text of each, in order."""
        found = []
        for line in (self.out / "summary.txt").read_text().splitlines():
            name, result, seconds, *text = line.split(maxsplit=3)
            expect(seconds.isdigit(), f"no seconds: {line}")
            found.append((name, result, "".join(text)))
        return found

    def line(self, name):
        found = [(result, text) for other, result, text in self.lines() if other == name]
        expect(len(found) == 1, f"{len(found)} lines of {name} in\n{self.printed}")
        return found[0]

    def expect_line(self, name, result, pattern=""):
        is_result, text = self.line(name)
        expect(is_result == result and re.search(pattern, text),
               f"{name}: {is_result} {text}\ninstead of {result} /{pattern}/ in\n{self.printed}\n{self.log(name)}")

    def expect_none(self, *names):
        for name in names:
            expect(name not in [other for other, _, _ in self.lines()], f"a line of {name} in\n{self.printed}")

    def log(self, name):
        path = self.out / f"{name}.txt"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""

    def measured(self, name):
        """The measurements of a step, as JSON."""
        return [json.loads(line) for line in (self.out / f"{name}.json").read_text().splitlines()]

    def expect_measured(self, *kernels):
        """That the scans of these kernels were measured, and of no others."""
        for kernel in ("dp4a", "mma", "wgmma", "auto"):
            if kernel not in kernels:
                expect(not self.has_result(f"scan-{kernel}", "ok"), f"{kernel} was measured")
                continue
            self.expect_line(f"scan-{kernel}", "ok", rf"tiny {kernel}, 1 query: .* of reads")
            scans = [line for line in self.measured(f"scan-{kernel}") if line["measurement"] == "scan"]
            expect([line["batch"] for line in scans] == [1, 4, 33], f"batches of {kernel}: {scans}")
            expect({line["kernel"] for line in scans} == {kernel}, f"kernels: {scans}")

    def expect_archive(self, *names):
        """That results.tgz has the whole summary and these files, and no databases, sources or caches."""
        with tarfile.open(self.out / "results.tgz") as archive:
            found = archive.getnames()
            summary = archive.extractfile("./summary.txt").read().decode()
        expect(summary == (self.out / "summary.txt").read_text(), f"another summary: {summary}")
        for name in names:
            expect(f"./{name}" in found, f"{name} is not in the archive: {found}")
        unwanted = [name for name in found if re.search(r"/(database|cache)|\.(tsv|tgz)$", name)]
        expect(not unwanted, f"in the archive: {unwanted}")

    def has_result(self, name, result):
        return (name, result) in [(other, is_result) for other, is_result, _ in self.lines()]


def all_is_right(rehearsal):
    rehearsal.run()
    for name in PROGRAMS:
        rehearsal.expect_line(f"starts-{name}", "ok")
    rehearsal.expect_line("device", "ok")
    rehearsal.expect_line("device-after", "ok")
    rehearsal.expect_line("sampler", "ok", r"^\d+ lines")
    samples = (rehearsal.out / "samples.csv").read_text()
    expect("clocks_throttle_reasons.active" in samples and "power.draw" in samples, samples[:300])
    for kernel in ("dp4a", "mma", "wgmma"):
        rehearsal.expect_line(f"smoke-{kernel}", "ok", r"^(\d+) of \1 checks passed$")
        rehearsal.expect_line(f"kernel-{kernel}", "ok", r"^[1-9]\d* checks passed on emulator")
        rehearsal.expect_line(f"check-{kernel}", "ok")
        rehearsal.expect_line(f"sample-{kernel}", "ok", "^[1-9][0-9]* tests passed")
        rehearsal.expect_line(f"tests-{kernel}", "ok", "^[1-9][0-9]* tests passed")
    rehearsal.expect_line("kernel-packing", "left-out", "not wanted")
    rehearsal.expect_measured("dp4a", "mma", "wgmma", "auto")
    rehearsal.expect_line("answers", "ok", "tiny answers: .* queries/s")
    answers = [line for line in rehearsal.measured("answers") if line["measurement"] == "pipeline"]
    expect([line["batch"] for line in answers] == [1, 4, 33], f"batches of answers: {answers}")
    for line in answers:
        bound = min(line["batch"] / line["scan_seconds"], line["pcie_bytes_per_second"] / line["query_bytes"])
        expect(abs(line["bound_queries_per_second"] / bound - 1) < 1e-6, f"the bound is not {bound}: {line}")
    rehearsal.expect_line("hint", "ok", "hint: ")
    for name in ("packed", "two-levels", "buckets"):
        rehearsal.expect_line(name, "left-out", "packing")
    rehearsal.expect_line("serve-hint", "ok", r"look-ups/s, p50 .*, 0 wrong; [1-9]\d* change of epoch under load")
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        rehearsal.expect_line(tool, "ok", "ERROR SUMMARY: 0 errors")
    rehearsal.expect_line("nsys", "stopped", "after 30 s")
    rehearsal.expect_line("ncu", "ok")
    expect("--clock-control none" in rehearsal.log("ncu"), rehearsal.log("ncu"))
    # No GPU is emulated for these: they fail, which costs nothing else.
    rehearsal.expect_line("probe-ldg-131k", "FAILED", "there is no GPU to measure")
    rehearsal.expect_line("run", "FAILED", "part all")
    expect(rehearsal.status == 1, f"status {rehearsal.status}")
    order = [name for name, _, _ in rehearsal.lines()]
    steps = ["device", "smoke-dp4a", "check-dp4a", "sample-dp4a", "probe-ldg-contiguous", "scan-dp4a", "scan-mma",
             "scan-wgmma", "scan-auto", "answers", "tests-dp4a", "serve-hint", "memcheck", "nsys", "run"]
    expect(sorted(steps, key=order.index) == steps, f"the order is {order}")
    expect(not (rehearsal.out / "running.txt").exists(), "nothing runs any more")
    rehearsal.expect_archive("device.txt", "samples.csv", "answers.json", "serve-hint/load.json", "memcheck.txt")


def a_wrong_kernel(rehearsal):
    rehearsal.run("--part", "bench")
    rehearsal.expect_line("smoke-mma", "FAILED", "of . checks passed")
    rehearsal.expect_line("kernel-mma", "dropped", r"16 queries: wrong: 16 of 16 responses differ from the CPU's, "
                          r"in \d+ of 2400 words, first word \d+ of number 0: \d+ instead of \d+")
    rehearsal.expect_none("scan-mma", "memcheck", "check-dp4a", "serve-hint")
    rehearsal.expect_measured("dp4a", "wgmma")
    rehearsal.expect_line("scan-auto", "left-out", "it may choose a kernel that is out")
    rehearsal.expect_line("answers", "ok", "tiny answers")
    expect({line["kernel"] for line in rehearsal.measured("answers")} == {"wgmma"}, "answers are those of the next one")
    rehearsal.expect_archive("answers.json", "smoke-mma.txt")
    expect(rehearsal.status == 1, f"status {rehearsal.status}")


def a_kernel_that_hangs(rehearsal):
    """And an nvidia-smi that hangs, and no other tools."""
    rehearsal.run("--part", "bench", "--seconds-per-check", "10")
    rehearsal.expect_line("device", "stopped", "after 20 s")
    rehearsal.expect_none("sampler", "device-after")
    rehearsal.expect_line("kernel-wgmma", "dropped", "8 queries: hung: it did not end in 10000 ms")
    rehearsal.expect_measured("dp4a", "mma")
    expect({line["kernel"] for line in rehearsal.measured("answers")} == {"mma"}, "answers are those of the next one")


def a_kernel_that_faults(rehearsal):
    rehearsal.run("--part", "bench")
    rehearsal.expect_line("kernel-dp4a", "dropped", "1 query: failed: .*illegal memory access")
    rehearsal.expect_measured("mma", "wgmma")


def a_kernel_that_ends_its_process(rehearsal):
    rehearsal.run("--part", "bench")
    rehearsal.expect_line("kernel-mma", "dropped", "8 queries: crashed: the process ended: signal 9")
    rehearsal.expect_measured("dp4a", "wgmma")


def faults_that_the_self_test_does_not_find(rehearsal):
    """Of the first one's check, and then of two scans: each costs what it happens in."""
    rehearsal.run("--part", "first")
    rehearsal.expect_line("check-mma", "FAILED",
                          r"mma: \d+ of \d+ products differ from the CPU's with batch \d+ on 384 x 72")
    checks = [line for line in rehearsal.measured("check-mma") if line["differing"] > 0]
    expect(checks and all(line["found"] != line["expected"] for line in checks), f"what differs: {checks}")
    rehearsal.expect_line("check-wgmma", "FAILED", "exit status 137")
    rehearsal.expect_line("check-dp4a", "stopped", "after 30 s")
    dropped = [(name, text) for name, result, text in rehearsal.lines() if result == "dropped"]
    expect([name for name, _ in dropped] == ["kernel-dp4a", "kernel-mma", "kernel-wgmma"], f"dropped: {dropped}")
    rehearsal.expect_none("sample-dp4a", "sample-mma", "sample-wgmma")


def no_time(rehearsal):
    rehearsal.run("--seconds", "16")
    results = {name: (result, text) for name, result, text in rehearsal.lines()}
    expect(results["device"] == ("left-out", "no time left"), f"{results}")
    expect(results["smoke-dp4a"] == ("left-out", "no time left"), f"{results}")
    expect(results["memcheck"] == ("left-out", "no time left"), f"{results}")
    if not shutil.which("ncu"):
        expect(results["ncu"] == ("left-out", "ncu is not installed"), f"{results}")
    rehearsal.expect_archive()
    done = [name for name, (result, _) in results.items() if result == "ok" and name not in ("run", "cublas")]
    expect(not done, f"without time: {done}")
    expect(rehearsal.status == 0, f"status {rehearsal.status}")


def a_run_that_is_cut_off(rehearsal):
    process = rehearsal.start()
    running = rehearsal.out / "running.txt"
    while not (running.exists() and running.read_text().startswith("device:")):
        expect(process.poll() is None, "it has ended")
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    rehearsal.printed = process.communicate()[0]
    expect(process.returncode == 143, f"status {process.returncode}")
    rehearsal.expect_line("run", "cut-off", "during device: nvidia-smi -q")
    expect(rehearsal.lines()[-1][0] == "run", f"{rehearsal.lines()}")
    rehearsal.expect_archive("device.txt")


def cublas_that_the_system_does_not_find(rehearsal):
    """Every program that runs after it was found has its folder, and the bundle's libraries before it."""
    toolkit = rehearsal.work / "toolkit"
    toolkit.mkdir()
    (toolkit / "libcublas.so.13").touch()
    for name in ("blindfuse", "blindfuse-bench-cuda"):
        program = rehearsal.folder / name
        program.unlink()
        program.write_text('#!/usr/bin/env bash\necho "$LD_LIBRARY_PATH"\n')
        program.chmod(0o755)
    rehearsal.environment.update(CUDA_HOME=str(toolkit), LD_LIBRARY_PATH="/of/before")
    rehearsal.run("--part", "first")
    rehearsal.expect_line("cublas", "ok", "^/")
    folder = rehearsal.line("cublas")[1]  # or that of a package of Python
    path = f"{folder}:/of/before\n"
    found = rehearsal.log("smoke-dp4a")
    expect(found == f"{rehearsal.folder}/../lib:{path}", f"smoke-dp4a has {found}")


def misuse(rehearsal):
    for options in (["--part", "last"], ["--seconds", "many"], ["--bogus"], ["--part"]):
        process = subprocess.run([RUN, *options], capture_output=True, text=True, check=False)
        expect(process.returncode == 2 and "Usage: run" in process.stderr, f"{options}: {process}")
    rehearsal.out.mkdir()
    (rehearsal.out / "summary.txt").write_text("of another run\n")
    rehearsal.run()
    expect(rehearsal.status == 2 and "is not empty" in rehearsal.printed, rehearsal.printed)


def programs_say_what_they_take(rehearsal):
    def run(name, *options):
        return subprocess.run([rehearsal.folder / name, *options], env=rehearsal.environment, capture_output=True,
                              text=True, check=False)

    names = run("blindfuse-bench-probes", "--list").stdout.split()
    expect(len(names) == len(set(names)), names)
    expect({"ldg-131k", "tma-1180k", "limbs", "reductions", "wgmma"} <= set(names), names)
    for program, options, status, said in [
            ("blindfuse-bench-probes", ["--probe", "nothing"], 2, "--probe: nothing not in"),
            ("blindfuse-bench-probes", ["--seconds", "-1"], 2, "--seconds"),
            ("blindfuse-bench-probes", ["--probe", "wgmma"], 1, "there is no GPU to measure"),
            ("blindfuse-bench-cuda", ["--measure", "nothing"], 2, "--measure: nothing not in"),
            ("blindfuse-bench-cuda", ["--rehearse", "--kernels", "dp4a", "--measure", "hint", "--shapes", "tiny"], 1,
             "nothing was measured")]:
        process = run(program, *options)
        is_said = said in process.stdout + process.stderr
        expect(process.returncode == status and is_said, f"{program} {options}: {process}")

    # Answers have the check of products that a server's have.
    rehearsal.environment["BLINDFUSE_FAKE_CUDA_FAULTS"] = "miscount=weigh_products"
    process = run("blindfuse-bench-cuda", "--rehearse", "--kernels", "dp4a", "--measure", "answers")
    expect(process.returncode == 1 and "weighing" in process.stderr, f"{process}")

    # One that is wrong leaves the others in the same process, too.
    rehearsal.environment["BLINDFUSE_FAKE_CUDA_FAULTS"] = "spoil=scan_mma"
    process = run("blindfuse-bench-cuda", "--rehearse", "--json", "--kernels", "dp4a,mma,wgmma", "--measure", "scan")
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    wrong = {line["kernel"] for line in lines if line["measurement"] == "check" and line["differing"] > 0}
    measured = {line["kernel"] for line in lines if line["measurement"] == "scan"}
    expect(wrong == {"mma"} and measured == {"dp4a", "wgmma"}, f"wrong {wrong}, measured {measured}")
    expect(process.returncode == 1 and "1 of 3 kernels differ from the CPU" in process.stderr, process.stderr)


WORKING = {"nvidia-smi": "nvidia-smi"}
HANGING = {"nvidia-smi": "hangs"}
# The rehearsals, with the tools that are there and the faults.
REHEARSALS = [
    (all_is_right, dict(WORKING, **{"compute-sanitizer": "compute-sanitizer", "nsys": "hangs", "ncu": "says"}), {}),
    (a_wrong_kernel, WORKING, {"faults": "spoil=scan_mma<64>"}),
    (a_kernel_that_hangs, HANGING, {"faults": "hang=scan_wgmma<32>"}),
    (a_kernel_that_faults, WORKING, {"faults": "fault=scan_dp4a<1>"}),
    (a_kernel_that_ends_its_process, WORKING, {"faults": "die=scan_mma<32>"}),
    (faults_that_the_self_test_does_not_find, WORKING, {"faulty_bench": {
        ("mma", "check"): "spoil=scan_mma", ("wgmma", "check"): "die=scan_wgmma",
        ("dp4a", "check"): "hang=scan_dp4a"}}),
    (no_time, dict(WORKING, **{"compute-sanitizer": "compute-sanitizer"}), {}),
    (a_run_that_is_cut_off, HANGING, {}),
    (cublas_that_the_system_does_not_find, dict(WORKING, ldconfig="says"), {}),
    (misuse, WORKING, {}),
    (programs_say_what_they_take, WORKING, {}),
]


def rehearse(programs, what, tools, faults):
    with tempfile.TemporaryDirectory() as work:
        began = time.monotonic()
        try:
            what(Rehearsal(programs, pathlib.Path(work), tools, **faults))
        except AssertionError as error:
            return f"FAILED: {what.__name__}: {error}"
        print(f"{what.__name__}: right, {time.monotonic() - began:.0f} s", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="the name of one")
    arguments = parser.parse_args()
    chosen = [each for each in REHEARSALS if arguments.only in (None, each[0].__name__)]
    # A program that hangs takes time, and no processor.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda each: rehearse(arguments.bin.resolve(), *each), chosen))
    failures = [result for result in results if result]
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
