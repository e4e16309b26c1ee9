#!/usr/bin/env python3
"""A rehearsal of bench/gpu/quarter on an emulated GPU with faults: whatever is wrong, fails or hangs has a line in
summary.txt, and costs no other measurement.

    quarter_test.py --bin FOLDER     where the programs are
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import tarfile
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
QUARTER = SOURCE / "bench" / "gpu" / "quarter"
SAYS = '#!/usr/bin/env bash\necho "figure: $*"\n'
# No cuBLAS is emulated: it is not to be found.
NOTHING = '#!/usr/bin/env bash\n'
HANGS = '#!/usr/bin/env bash\necho begun >"$BEGUN"\nexec sleep 3600\n'
TESTS = '#!/usr/bin/env bash\necho "$*"\necho "[  PASSED  ] 7 tests."\n'
# The emulator takes minutes for packed answers, and for large shapes.
EMULATED_BENCH = """#!/usr/bin/env bash
what=("$@")
for ((i = 0; i < ${{#what[@]}}; ++i)); do
  case ${{what[i]}} in
    --shapes) what[i + 1]=tiny ;;
    --batches) what[i + 1]=1,4 ;;
    --measure) what[i + 1]=${{what[i + 1]//,pack*/}} ;;
  esac
done
case "$*" in
{cases}
esac
exec {program} --rehearse "${{what[@]}}"
"""
# Ends sooner what is known to hang.
TIMEOUT = """#!/usr/bin/env bash
case "$*" in *"--kernels wgmma --measure scan"*) set -- "$1" 10 "${@:3}" ;; esac
exec /usr/bin/timeout "$@"
"""
NVIDIA_SMI = """#!/usr/bin/env bash
case "$*" in
  -q) echo 'Product Name : emulator' ;;
  *) echo '1980 MHz, 300 W' && exec sleep 3600 ;;
esac
"""
SANITIZER = """#!/usr/bin/env bash
echo "$BLINDFUSE_CUDA_WALKERS_MAX blocks: $*"
echo '========= ERROR SUMMARY: 0 errors'
"""


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Rehearsal:
    """A tree with a bundle, in a folder of its own. faults: of the scans of kernels, in the benchmark."""

    def __init__(self, work, programs, faults=None, stubs=None):
        self.work = work
        self.kept = work / "kept"
        self.bin = work / "build" / "gpu-bundle" / "bin"
        self.bin.mkdir(parents=True)
        cases = "\n".join(f'  *"--kernels {kernel} --measure scan "*) export BLINDFUSE_FAKE_CUDA_FAULTS={fault} ;;'
                          for kernel, fault in (faults or {}).items())
        for name, text in {
                "blindfuse": f'#!/usr/bin/env bash\nexec {programs}/blindfuse-emulated "$@" --without packing '
                             "--without tables\n",
                "blindfuse-bench-cuda": EMULATED_BENCH.format(
                    cases=cases, program=programs / "blindfuse-emulated-bench-cuda"),
                "blindfuse-bench-probes": SAYS,
                "blindfuse-engine-tests": TESTS,
                "../serve_demo": SAYS,
                **(stubs or {})}.items():
            self.put(self.bin / name, text)
        self.path = work / "path"
        self.path.mkdir()
        for name, text in {"nvidia-smi": NVIDIA_SMI, "timeout": TIMEOUT, "compute-sanitizer": SANITIZER,
                           "ncu": SAYS, "ldconfig": NOTHING, "find": NOTHING}.items():
            self.put(self.path / name, text)
        self.begun = work / "begun"
        self.environment = dict(os.environ, PATH=f"{self.path}:{os.environ['PATH']}", BEGUN=str(self.begun))

    @staticmethod
    def put(path, text):
        path.write_text(text)
        path.chmod(0o755)

    def start(self, part, seconds):
        return subprocess.Popen([QUARTER, str(part), str(seconds), self.kept], cwd=self.work, env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, part=1, seconds=400):
        process = self.start(part, seconds)
        self.printed = process.communicate()[0]
        self.status = process.returncode

    def lines(self):
        """Of summary.txt: result and text by name."""
        found = {}
        for line in (self.kept / "summary.txt").read_text().splitlines():
            name, result, seconds, *text = line.split(maxsplit=3)
            expect(seconds.isdigit() and name not in found, f"the line {line} in\n{self.printed}")
            found[name] = (result, "".join(text))
        return found

    def expect_line(self, name, result, pattern=""):
        found, text = self.lines().get(name, ("none", ""))
        expect(found == result and re.search(pattern, text),
               f"{name}: {found} {text}\ninstead of {result} /{pattern}/ in\n{self.printed}")

    def expect_kept(self, *names):
        with tarfile.open(self.kept / "results.tgz") as archive:
            missing = {f"./{name}" for name in names} - set(archive.getnames())
        expect(not missing, f"not in the archive: {missing}")


def each_fault_costs_its_own_step(rehearsal):
    rehearsal.run()
    rehearsal.expect_line("self-test", "ok", r"^(\d+) of \1 checks passed$")
    rehearsal.expect_line("check", "ok")
    rehearsal.expect_line("scan-mma", "FAILED", "illegal memory access")
    rehearsal.expect_line("scan-wgmma", "stopped", "after 40 s")
    rehearsal.expect_line("scan-dp4a", "WRONG", r"dp4a: \d+ of \d+ products differ from the CPU's with batch 1 on 1216")
    rehearsal.expect_line("scan-wgmma-tma", "ok", "tiny wgmma-tma, 1 query: .* of reads")
    rehearsal.expect_line("answers-wgmma-tma", "ok", "tiny answers: .* queries/s")
    rehearsal.expect_line("answers-auto", "ok", "tiny answers: .* queries/s")
    rehearsal.expect_line("tests-wgmma-tma", "ok", "7 tests passed")
    rehearsal.expect_line("serve-hint", "ok", "--engine cuda:wgmma-tma --mode hint")
    expected = {"scan-mma", "scan-wgmma", "scan-dp4a", "run"}
    others = {name for name, (result, _) in rehearsal.lines().items() if result != "ok"} - expected
    expect(others == {"cublas"}, f"{others} in\n{rehearsal.printed}")
    rehearsal.expect_kept("summary.txt", "samples.csv", "scan-wgmma-tma.json", "answers-auto.json", "hint-packs.json",
                          "scan-large.json")
    rehearsal.expect_line("run", "FAILED")
    expect(rehearsal.status == 1, f"status {rehearsal.status}")


def a_kernel_that_the_self_test_finds_wrong_takes_part_in_nothing(rehearsal):
    rehearsal.environment["BLINDFUSE_FAKE_CUDA_FAULTS"] = "spoil=scan_wgmma_tma"
    rehearsal.run()
    rehearsal.expect_line("self-test", "WRONG", "wrong")
    rehearsal.expect_line("wgmma-tma", "dropped")
    said = "\n".join(text for _, text in rehearsal.lines().values() if "--measure" in text)
    expect("--kernels wgmma,mma,dp4a --measure check" in said, said)
    expect("--kernels wgmma --measure scan,answers,packed,two-levels" in said, said)
    expect("--kernels auto" not in said and "wgmma-tma" not in said, said)
    rehearsal.expect_line("serve-packed", "ok", "--engine cuda:wgmma ")


def what_was_known_is_kept_when_the_run_is_cut_off(rehearsal):
    os.mkfifo(rehearsal.begun)
    process = rehearsal.start(1, 400)
    with open(rehearsal.begun, encoding="ascii") as begun:  # until a scan hangs
        begun.read()
    process.send_signal(signal.SIGTERM)
    rehearsal.printed = process.communicate()[0]
    expect(process.returncode == 143, f"status {process.returncode}")
    rehearsal.expect_line("device", "ok")
    rehearsal.expect_line("run", "cut-off", "during check")
    rehearsal.expect_kept("summary.txt", "device.txt", "check.txt")


def the_tools_run_with_few_blocks(rehearsal):
    rehearsal.run(2, 100)
    for tool in ("memcheck", "racecheck", "synccheck"):
        rehearsal.expect_line(tool, "ok", "ERROR SUMMARY: 0 errors")
    rehearsal.expect_line("ncu", "ok")
    rehearsal.expect_line("run", "ok")
    expect(rehearsal.status == 0, f"status {rehearsal.status}")


def without_time_each_step_is_left_out(rehearsal):
    rehearsal.run(1, 12)
    results = {result for name, (result, _) in rehearsal.lines().items() if name != "run"}
    expect(results == {"left-out"}, rehearsal.printed)
    for arguments in (["3", "10", "kept"], ["1", "many", "kept"], ["1", "10"], []):
        process = subprocess.run([QUARTER, *arguments], capture_output=True, text=True, check=False)
        expect(process.returncode == 2 and "Usage: " in process.stderr, f"{arguments}: {process}")


def the_programs_take_what_they_are_given(rehearsal, programs):
    """The names in the script are those of the programs."""
    script = QUARTER.read_text()
    probes = re.search(r"for probe in (.*); do", script)[1].split()
    known = subprocess.run([programs / "blindfuse-bench-probes", "--list"], capture_output=True, text=True, check=True)
    expect(set(probes) <= set(known.stdout.split()), f"{probes}, {known.stdout}")
    shapes = ",".join(sorted(set(re.findall(r"--shapes (\S+)", script))))
    measured = ",".join(sorted(set(re.findall(r"(?:scan|hint),[a-z,-]+", script))))
    process = subprocess.run([programs / "blindfuse-emulated-bench-cuda", "--shapes", shapes, "--measure", measured,
                              "--kernels", "wgmma-tma,wgmma,mma,dp4a,auto", "--help"], capture_output=True, text=True,
                             check=False)
    expect(process.returncode == 0, f"{process}")


def a_served_database_is_tried(rehearsal, programs):
    """By the CPU, and small."""
    process = subprocess.run(
        [SOURCE / "bench" / "gpu" / "serve_demo", "--programs", programs, "--work", rehearsal.work / "serve", "--engine",
         "cpu", "--mode", "packed", "--keys", "60", "--value-bytes", "20", "--seconds", "8", "--load",
         "--rate 20 --connections 4 --pool 20"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    expect(process.returncode == 0, process.stdout)
    expect(re.search(r"figure: .* look-ups/s, .*; [1-9]\d* answers compared, 0 wrong; [1-9]\d* change", process.stdout),
           process.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    programs = parser.parse_args().bin.resolve()
    faults = {"mma": "fault=scan_mma@2+", "wgmma": "hang=scan_wgmma@2+", "dp4a": "miscount=scan_dp4a@3+"}
    says = {"blindfuse-bench-cuda": SAYS}
    stubs = says | {"blindfuse": SAYS}
    hangs = stubs | {"blindfuse-bench-cuda": HANGS}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(4) as pool:
        def begin(what, *arguments, **options):
            work = pathlib.Path(folder) / what.__name__
            work.mkdir()
            return what.__name__, pool.submit(lambda: what(Rehearsal(work, programs, **options), *arguments))
        cases = [
            begin(each_fault_costs_its_own_step, faults=faults),
            begin(a_kernel_that_the_self_test_finds_wrong_takes_part_in_nothing, stubs=says),
            begin(what_was_known_is_kept_when_the_run_is_cut_off, stubs=hangs),
            begin(the_tools_run_with_few_blocks, stubs=stubs),
            begin(without_time_each_step_is_left_out, stubs=stubs),
            begin(the_programs_take_what_they_are_given, programs, stubs=stubs),
            begin(a_served_database_is_tried, programs, stubs=stubs),
        ]
        failed = 0
        for name, case in cases:
            error = case.exception()
            failed += error is not None
            print(f"{'FAILED' if error else 'ok'}: {name}" + (f"\n{error}" if error else ""), flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
