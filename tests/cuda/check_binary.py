#!/usr/bin/env python3
"""What the compiler made of the CUDA kernels: which instructions, and no register spilled to memory.

For every architecture of the library: the tensor core kernels multiply bytes with bytes and do not saturate, the
few-queries kernels use four-byte dot products, loads from the matrix are 16 bytes wide, and no kernel has local memory.
"""
import argparse
import os
import re
import subprocess
import sys

SKIPPED = 77
ARCHITECTURES = {"sm_80", "sm_89", "sm_90a"}
KERNELS = {
    # kernel: instructions that it must have
    "scan_many": [r"IMMA\.16832\.S8\.S8", r"LDG\.E\.NA\S*\.128", r"LDGSTS\.E\.BYPASS\.128", r"LDS\.128"],
    "scan_few": [r"IDP\.4A\.S8\.S8", r"LDG\.E\.NA\S*\.128", r"REDUX"],
    "cut_packed_words": [r"STG\.E\.128"],
    "cut_plain_words": [r"STG\.E\.128"],
    "round_products": [],
    "combine_sums": [],
    "checksum_columns": [],
}
# Saturating arithmetic, and local memory: registers that did not fit.
FORBIDDEN = [r"IMMA\S*\.SAT", r"IDP\S*\.SAT", r"\b(LDL|STL)\b"]


def output_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def machine_code(cuobjdump, library):
    """(architecture, mangled name of a kernel) -> its instructions."""
    code, architecture, name = {}, None, None
    for line in output_of([cuobjdump, "--dump-sass", library]).splitlines():
        if match := re.match(r"\s*code for (\S+)", line):
            architecture = match[1]
        elif match := re.match(r"\s*Function : (\S+)", line):
            name = match[1]
            code[architecture, name] = []
        elif name is not None and re.match(r"\s*/\*[0-9a-f]+\*/", line):
            code[architecture, name].append(line)
    return {key: "\n".join(lines) for key, lines in code.items()}


def local_memory(cuobjdump, library):
    """Bytes of stack and local memory of every kernel."""
    found, name = [], None
    for line in output_of([cuobjdump, "--dump-resource-usage", library]).splitlines():
        if match := re.match(r"\s*Function (\S+):", line):
            name = match[1]
        elif match := re.search(r"STACK:(\d+).*LOCAL:(\d+)", line):
            found.append((name, int(match[1]), int(match[2])))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuobjdump", required=True)
    parser.add_argument("library")
    options = parser.parse_args()
    if not os.access(options.cuobjdump, os.X_OK):
        print("skipped: there is no cuobjdump to look into the machine code with")
        return SKIPPED
    code = machine_code(options.cuobjdump, options.library)
    usage = local_memory(options.cuobjdump, options.library)
    wrong = []
    missing = ARCHITECTURES - {architecture for architecture, _ in code}
    if missing:
        wrong.append(f"no machine code for {', '.join(sorted(missing))}")
    for kernel, instructions in KERNELS.items():
        versions = [key for key in code if kernel in key[1]]
        if {architecture for architecture, _ in versions} < ARCHITECTURES:
            wrong.append(f"{kernel} is not there for every architecture")
        for key in versions:
            wrong += [f"{key}: no {i}" for i in instructions if not re.search(i, code[key])]
            wrong += [f"{key}: has {i}" for i in FORBIDDEN if re.search(i, code[key])]
    if not usage:
        wrong.append("no resource usage was printed")
    wrong += [f"{name}: {stack} bytes of stack, {local} of local memory" for name, stack, local in usage if stack or local]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(code)} kernels looked at, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
