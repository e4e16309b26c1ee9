#!/usr/bin/env python3
"""What the compiler made of the CUDA kernels: which instructions, and no register spilled to memory.

For every architecture of the libraries: the tensor core kernels multiply bytes with bytes and do not saturate, the
few-queries kernels use four-byte dot products, loads from the matrix are 16 bytes wide, and no kernel has local memory.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77
ARCHITECTURES = ["sm_80", "sm_89", "sm_90a"]
KERNELS = {
    # kernel: how many versions of it there are, and instructions that each must have
    "scan_mma": (4, [r"IMMA\.16832\.S8\.S8", r"LDG\.E\.NA\S*\.128", r"LDGSTS\.E\.BYPASS\.128", r"LDS\.128"]),
    "scan_dp4a": (3, [r"IDP\.4A\.S8\.S8", r"LDG\.E\.NA\S*\.128", r"REDUX"]),
    "scan_wgmma": (4, []),
    "cut_bit_sequences": (1, [r"STG\.E\.128"]),
    "cut_plain_words": (1, [r"STG\.E\.128"]),
    "round_products": (1, []),
    "combine_sums": (1, []),
    "sum_points": (4, [r"IMMA\.16832\.U8\.U8", r"LDGSTS\.E\.BYPASS\.128", r"LDS\.128"]),
    "cut_table": (1, [r"STG\.E\.128"]),
    "cut_keys": (1, []),
    "finish_packs": (1, []),
    "cut_public_rows": (1, [r"STG\.E\.128"]),
    "ntt_columns": (1, []),
    "ntt_and_rotate_rows": (1, []),
    "transpose_squares": (1, []),
    "key_switch_down": (1, []),
    "key_switch_last": (1, []),
}
# And those that one architecture alone has.
ONLY = {("scan_wgmma", "sm_90a"): [r"IGMMA\.64x\d+x32\.S8\.S8", r"LDG\.E\.NA\S*\.128", r"LDGSTS\.E\.BYPASS\.128"]}
# Saturating arithmetic, and local memory: registers that did not fit.
FORBIDDEN = [r"IG?MMA\S*\.SAT", r"IDP\S*\.SAT", r"\b(LDL|STL)\b"]


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


def hopper_troubles(instructions):
    """Products that follow one another without a wait, and nothing that touches their registers until it."""
    lines = [line.split("*/")[1].strip() for line in instructions.splitlines()]
    names = [re.sub(r"^@!?U?P\w+ ", "", line).split(" ")[0] for line in lines]
    products = [i for i, name in enumerate(names) if name.startswith("IGMMA")]
    waits = [i for i, name in enumerate(names) if name.startswith("WARPGROUP.DEPBAR")]
    if len(products) != 4 or len(waits) != 1 or any("HGMMA" in name for name in names):
        yield f"{len(products)} products and {len(waits)} waits, not 4 and 1"
        return
    used = set()
    for i in products:
        columns = int(re.search(r"64x(\d+)x32", names[i])[1])
        sums, a = (int(r) for r in re.findall(r"\bR(\d+)\b", lines[i])[:2])
        used |= {*range(sums, sums + columns // 2), *range(a, a + 4)}
    for line in lines[products[0]:waits[0]]:
        if "IGMMA" in line:
            continue
        # A load of 16 bytes names the first of four registers.
        written = re.match(r"(?:@!?U?P\w+ )?(\S+) R(\d+)", line)
        wide = 4 if written and ".128" in written[1] else 1
        named = {int(r) for r in re.findall(r"\bR(\d+)\b", line)}
        if written:
            named |= set(range(int(written[2]), int(written[2]) + wide))
        if named & used:
            yield f"touches what a product is using: {line}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", nargs="*", default=[], help="where cuobjdump and nvdisasm may be, beside PATH")
    parser.add_argument("--libraries", nargs="+", required=True, help="those that have kernels")
    options = parser.parse_args()
    os.environ["PATH"] = os.pathsep.join([*options.tools, os.environ["PATH"]])
    cuobjdump = shutil.which("cuobjdump")
    if cuobjdump is None:
        print("skipped: there is no cuobjdump to look into the machine code with")
        return SKIPPED
    code, usage = {}, []
    for library in options.libraries:
        code |= machine_code(cuobjdump, library)
        usage += local_memory(cuobjdump, library)
    wrong = []
    for kernel, (count, instructions) in KERNELS.items():
        versions = [key for key in code if kernel in key[1]]
        for architecture in ARCHITECTURES:
            found = sum(1 for key in versions if key[0] == architecture)
            if found != count:
                wrong.append(f"{kernel} is there {found} times for {architecture}, not {count}")
        for key in versions:
            here = instructions + ONLY.get((kernel, key[0]), [])
            wrong += [f"{key}: no {i}" for i in here if not re.search(i, code[key])]
            wrong += [f"{key}: has {i}" for i in FORBIDDEN if re.search(i, code[key])]
    wrong += [f"{key}: {trouble}" for key in code if "scan_wgmma" in key[1] and key[0] == "sm_90a"
              for trouble in hopper_troubles(code[key])]
    if len(usage) != len(code):
        wrong.append(f"the resources of {len(usage)} kernels were printed, not of {len(code)}")
    wrong += [f"{name}: {stack} bytes of stack, {local} of local memory" for name, stack, local in usage if stack or local]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(code)} kernels looked at, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
