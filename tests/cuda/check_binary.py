#!/usr/bin/env python3
"""What the compiler made of the CUDA kernels: which instructions, and no register spilled to memory.

For every architecture of the libraries: the tensor core kernels multiply bytes with bytes and do not saturate, the
few-queries kernels use four-byte dot products, loads from the matrix are 16 bytes wide, enough of them are in flight at
once, and no kernel has local memory. Hopper's products are fenced, and their registers are left alone until they are
done.
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
    "ask_for_wgmma": (1, []),
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
# The least loads of the matrix that a thread of a scan has in flight at the same time, by kernel and the first of its
# template's parameters: queries, or rows of limbs.
LOADS_IN_FLIGHT = {
    **{("scan_dp4a", queries): loads for queries, loads in {1: 8, 2: 7, 3: 6}.items()},
    **{("scan_mma", rows): 8 for rows in (16, 32, 64, 128)},
    **{("scan_wgmma", rows): 4 for rows in (32, 64, 128, 256)},
}
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


def decoded(instructions):
    """(address, instruction, its name) of each."""
    for line in instructions.splitlines():
        match = re.match(r"\s*/\*([0-9a-f]+)\*/\s*(.*?);", line)
        if match:
            yield int(match[1], 16), match[2], re.sub(r"^@!?U?P\w+ ", "", match[2]).split(" ")[0]


def loops(code):
    """The instructions between every branch backward and where it leads."""
    at = {address: i for i, (address, _, _) in enumerate(code)}
    for i, (address, text, name) in enumerate(code):
        target = re.search(r"\b0x([0-9a-f]+)", text) if name.startswith("BRA") else None
        if target and int(target[1], 16) < address:
            yield code[at[int(target[1], 16)]:i + 1]


def loads_in_flight(instructions):
    """The most 16-byte loads that a loop starts before it uses the first of them."""
    most = 0
    for loop in loops(list(decoded(instructions))):
        flying = []  # the registers that each load writes
        for _, text, name in loop:
            operands = text.split(" ", 1)[-1]
            loads = name.startswith("LDG.") and ".128" in name
            sources = operands.split(",", 1)[-1] if loads else operands
            used = {int(r) for r in re.findall(r"\bR(\d+)\b", sources)}
            if any(used & load for load in flying):
                flying = [load for load in flying if not used & load]
            if loads:
                first = int(re.search(r"\bR(\d+)\b", operands)[1])
                flying.append(set(range(first, first + 4)))
                most = max(most, len(flying))
    return most


def load_troubles(name, instructions):
    match = re.search(r"(scan_[a-z0-9]+)ILi(\d+)E", name)
    if match is None:
        return
    wanted = LOADS_IN_FLIGHT[match[1], int(match[2])]
    found = loads_in_flight(instructions)
    if found < wanted:
        yield f"has {found} loads of the matrix in flight, not {wanted}"


def hopper_troubles(instructions):
    """Products that see what was copied, follow one another without a wait, and keep their registers until it."""
    code = list(decoded(instructions))
    lines, names = [text for _, text, _ in code], [name for _, _, name in code]
    products = [i for i, name in enumerate(names) if name.startswith("IGMMA")]
    waits = [i for i, name in enumerate(names) if name.startswith("WARPGROUP.DEPBAR")]
    if len(products) != 4 or len(waits) != 1 or any("HGMMA" in name for name in names):
        yield f"{len(products)} products and {len(waits)} waits, not 4 and 1"
        return
    # PTX ISA: a wait for the copies, fence.proxy.async, a barrier of the block, wgmma.fence, and only then products.
    order = ["LDGDEPBAR", "DEPBAR.LE", "FENCE.VIEW.ASYNC", "BAR.SYNC", "WARPGROUP.ARRIVE"]
    places = [max((i for i in range(products[0]) if names[i].startswith(name)), default=None) for name in order]
    if None in places or places != sorted(places):
        yield f"before the products {order} should follow one another, and stand at {places}"
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
    wrong += [f"{key}: {trouble}" for key in code if (key[0] == "sm_90a" or "scan_wgmma" not in key[1])
              for trouble in load_troubles(key[1], code[key])]
    wrong += [f"{key}: {trouble}" for key in code if "scan_wgmma" in key[1] and key[0] == "sm_90a"
              for trouble in hopper_troubles(code[key])]
    # By their names: what Thrust makes of one template in two files has the same name twice.
    printed, looked_at = {name for name, _, _ in usage}, {name for _, name in code}
    if printed != looked_at:
        wrong.append(f"the resources of {len(printed)} kernels were printed, not of {len(looked_at)}")
    # Kernels that Thrust brings are its own, and none of them is on the way of a query.
    wrong += [f"{name}: {stack} bytes of stack, {local} of local memory" for name, stack, local in usage
              if (stack or local) and "CUB_" not in name]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(code)} kernels looked at, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
