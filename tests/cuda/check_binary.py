#!/usr/bin/env python3
"""What the compiler made of the CUDA kernels: which instructions, and no register spilled to memory.

For every architecture of the libraries: the tensor core kernels multiply bytes with bytes and do not saturate, the
few-queries kernels use four-byte dot products, loads from the matrix are 16 bytes wide, and no kernel has local memory.
A step of every scan's main loop has no more instructions, moves and barriers than it should, enough loads are in flight
when its products begin, and registers and shared memory leave room for the blocks that the launch counts on. Hopper's
products are fenced, and their registers are left alone until they are done. Where the tensor memory accelerator copies
what they multiply, the main loop has no barrier of the block, no load, no fence, and no wait for the last products.
"""
import argparse
import os
import re
import shutil
import sys
from typing import NamedTuple

from sass import decoded, main_loop_step, machine_code, resources, step_path

SKIPPED = 77
ARCHITECTURES = ["sm_80", "sm_89", "sm_90a"]
KERNELS = {
    # kernel: how many versions of it there are, and instructions that each must have
    "scan_mma": (8, [r"IMMA\.16832\.S8\.S8", r"LDG\.E\.NA\S*\.128", r"LDGSTS\.E\.BYPASS\.128", r"LDS\.128"]),
    "scan_dp4a": (6, [r"IDP\.4A\.S8\.S8", r"LDG\.E\.NA\S*\.128", r"REDUX"]),
    "scan_wgmma": (8, []),
    "scan_wgmma_tma": (4, []),
    "ask_for_wgmma": (1, []),
    "cut_bit_sequences": (1, [r"STG\.E\.128", r"LDG\.E\.128", r"REDUX"]),
    "cut_plain_words": (1, [r"STG\.E\.128"]),
    "round_products": (1, []),
    "weigh_columns": (1, [r"LDG\.E\.NA\S*\.128"]),
    "weigh_products": (1, [r"REDUX"]),
    "cut_table": (1, [r"STG\.E\.128"]),
    "cut_keys": (1, [r"STG\.E\.128"]),
    "finish_packs": (1, []),
    "cut_public_rows": (1, [r"STG\.E\.128"]),
    "ntt_columns": (1, []),
    "ntt_and_rotate_rows": (1, []),
    "transpose_squares": (1, []),
    "key_switch_down": (1, []),
    "second_column_values": (1, []),
    "second_traces": (1, []),
    "second_products": (1, []),
    "second_chains": (1, []),
}
# And those that one architecture alone has. Of UTMALDG, the second operand has the cache hint.
ONLY = {("scan_wgmma", "sm_90a"): [r"IGMMA\.64x\d+x32\.S8\.S8", r"LDG\.E\.NA\S*\.128", r"LDGSTS\.E\.BYPASS\.128"],
        ("scan_wgmma_tma", "sm_90a"): [r"IGMMA\.64x\d+x32\.S8\.S8", r"UTMALDG\.2D \[UR\d+\], \[UR\d+\], desc",
                                       r"USETMAXREG\.DEALLOC\S* 0x28\b", r"USETMAXREG\.TRY_ALLOC\S* UP\d, 0xe8\b"]}


# Of each scan kernel, by the first of its template's parameters (queries, or rows of limbs). Main loops are the same
# whether products or the sums over packing tables leave the kernel.
class Scan(NamedTuple):
    products: int  # of a warp for a step: a turn of the main loop
    in_flight: int  # the least loads of the matrix that were started when a step's products begin
    barriers: int  # the most of the block in a step
    blocks: int  # of a multiprocessor at a time, which the launch counts on
    shared: int  # bytes that a launch asks for
    instructions: list[int]  # the most in a step, of each of ARCHITECTURES; of Hopper alone for wgmma
    moves: int  # the most in a step
    warps: int = 8  # of a block


def limb_stages(rows):
    """limb_shared_bytes<rows, 4>() of cuda/scan/kernels/tensor_scan.cuh"""
    return 4 * rows * 128


def tensor_stages(rows, stages):
    """TensorStages<rows, stages>::kSharedBytes of cuda/scan/kernels/scan_wgmma_tma.cuh"""
    return stages * ((128 + rows) * 128 + 16)


# A few instructions more than the compiler makes now.
SCANS = {
    ("scan_dp4a", 1): Scan(128, 8, 0, 2, 0, [255, 255, 247], 10),
    ("scan_dp4a", 2): Scan(256, 7, 0, 2, 0, [433, 433, 424], 18),
    ("scan_dp4a", 3): Scan(384, 6, 0, 2, 0, [609, 609, 600], 26),
    ("scan_mma", 16): Scan(16, 8, 1, 2, limb_stages(16), [93, 93, 101], 16),
    ("scan_mma", 32): Scan(32, 8, 1, 2, limb_stages(32), [115, 115, 111], 15),
    ("scan_mma", 64): Scan(64, 8, 1, 1, limb_stages(64), [158, 158, 157], 15),
    ("scan_mma", 128): Scan(128, 8, 1, 1, limb_stages(128), [248, 248, 248], 15),
    ("scan_wgmma", 32): Scan(4, 4, 1, 3, limb_stages(32), [115], 36),
    ("scan_wgmma", 64): Scan(4, 4, 1, 2, limb_stages(64), [117], 36),
    ("scan_wgmma", 128): Scan(4, 4, 1, 2, limb_stages(128), [130], 37),
    ("scan_wgmma", 256): Scan(4, 4, 1, 1, limb_stages(256), [141], 37),
    ("scan_wgmma_tma", 32): Scan(4, 0, 0, 1, tensor_stages(32, 8), [66], 18, 12),
    ("scan_wgmma_tma", 64): Scan(4, 0, 0, 1, tensor_stages(64, 8), [66], 18, 12),
    ("scan_wgmma_tma", 128): Scan(4, 0, 0, 1, tensor_stages(128, 6), [68], 19, 12),
    ("scan_wgmma_tma", 256): Scan(4, 0, 0, 1, tensor_stages(256, 4), [69], 19, 12),
}
REGISTERS = 65536
# CUDA C++ Programming Guide, "Compute capabilities": shared memory of a multiprocessor, of which each block takes 1 KB
# more than it asks for.
SHARED = {"sm_80": 164 << 10, "sm_89": 100 << 10, "sm_90a": 228 << 10}
# Saturating arithmetic, and local memory: registers that did not fit.
FORBIDDEN = [r"IG?MMA\S*\.SAT", r"IDP\S*\.SAT", r"\b(LDL|STL)\b"]


def scan_of(name):
    """The kernel and the first of its template's parameters; None when the kernel is not a scan."""
    kernels = "|".join({kernel for kernel, _ in SCANS})
    match = re.search(rf"({kernels})ILi(\d+)E", name)
    return (match[1], int(match[2])) if match else None


def blocks_that_fit(scan, architecture, used):
    """By shared memory and by registers, of which a warp takes eights for each lane from its quarter's."""
    warps = REGISTERS // 4 // (-(-used.registers // 8) * 8 * 32)
    return min(4 * warps // scan.warps, SHARED[architecture] // (scan.shared + used.shared + 1024))


def scan_troubles(scan, architecture, step, used):
    instructions = scan.instructions[ARCHITECTURES.index(architecture) if len(scan.instructions) > 1 else 0]
    for what, found, most in (("instructions", step.instructions, instructions), ("moves", step.moves, scan.moves),
                              ("barriers", step.barriers, scan.barriers), ("accesses to local memory", step.spills, 0)):
        if found > most:
            yield f"has {found} {what} in a step, more than {most}"
    if step.products != scan.products:
        yield f"has {step.products} products in a step, not {scan.products}"
    if step.in_flight < scan.in_flight:
        yield f"has {step.in_flight} loads of the matrix in flight, not {scan.in_flight}"
    blocks = blocks_that_fit(scan, architecture, used)
    if blocks < scan.blocks:
        yield (f"has {used.registers} registers and {scan.shared} bytes of shared memory: {blocks} blocks fit, "
               f"not {scan.blocks}")


def hopper_troubles(instructions):
    """Products that see what was copied, follow one another without a wait, and keep their registers until it."""
    code = list(decoded(instructions))
    lines, names = [i.text for i in code], [i.name for i in code]
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


# Barriers of the block and of memory, fences between proxies, loads.
NOT_IN_TENSOR_LOOP = ("BAR", "MEMBAR", "ERRBAR", "FENCE", "CCTL", "LDG", "LD.", "LDS", "LDGSTS", "WARPSYNC")


def tensor_troubles(instructions):
    """A loop that waits for phases and products alone, of all of them but the last step's."""
    path = step_path(list(decoded(instructions)))
    names = [i.name for i in path]
    yield from (f"has {name} in its main loop" for name in names if name.startswith(NOT_IN_TENSOR_LOOP))
    waits = [i.text for i in path if i.name.startswith("WARPGROUP.DEPBAR")]
    if waits != ["WARPGROUP.DEPBAR.LE gsb0, 0x1"]:
        yield f"waits for products by {waits} in a step, not for all but the last ones"
    for name, count in (("WARPGROUP.ARRIVE", 1), ("SYNCS.PHASECHK", 1), ("SYNCS.ARRIVE", 1)):
        if sum(n.startswith(name) for n in names) != count:
            yield f"has {sum(n.startswith(name) for n in names)} of {name} in a step, not {count}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", nargs="*", default=[], help="where cuobjdump and nvdisasm may be, next to PATH")
    parser.add_argument("--libraries", nargs="+", required=True, help="those that have kernels")
    options = parser.parse_args()
    os.environ["PATH"] = os.pathsep.join([*options.tools, os.environ["PATH"]])
    cuobjdump = shutil.which("cuobjdump")
    if cuobjdump is None:
        print("skipped: there is no cuobjdump to look into the machine code with")
        return SKIPPED
    code, usage = {}, {}
    for library in options.libraries:
        code |= machine_code(cuobjdump, library)
        usage |= resources(cuobjdump, library)
    steps = {key: main_loop_step(list(decoded(instructions))) for key, instructions in code.items()
             if scan_of(key[1]) and (key[0] == "sm_90a" or "scan_wgmma" not in key[1])}
    wrong = []
    for kernel, (count, instructions) in KERNELS.items():
        # Mangled, a name has its length before it: scan_wgmma is not the beginning of scan_wgmma_tma.
        versions = [key for key in code if f"{len(kernel)}{kernel}" in key[1]]
        for architecture in ARCHITECTURES:
            found = sum(1 for key in versions if key[0] == architecture)
            if found != count:
                wrong.append(f"{kernel} is there {found} times for {architecture}, not {count}")
        for key in versions:
            here = instructions + ONLY.get((kernel, key[0]), [])
            wrong += [f"{key}: no {i}" for i in here if not re.search(i, code[key])]
            wrong += [f"{key}: has {i}" for i in FORBIDDEN if re.search(i, code[key])]
    wrong += [f"{key}: {trouble}" for key, step in steps.items()
              for trouble in scan_troubles(SCANS[scan_of(key[1])], key[0], step, usage[key])]
    wrong += [f"{key}: {trouble}" for key in code if "10scan_wgmma" in key[1] and key[0] == "sm_90a"
              for trouble in hopper_troubles(code[key])]
    wrong += [f"{key}: {trouble}" for key in code if "14scan_wgmma_tma" in key[1] and key[0] == "sm_90a"
              for trouble in tensor_troubles(code[key])]
    printed, looked_at = {name for _, name in usage}, {name for _, name in code}
    if printed != looked_at:
        wrong.append(f"the resources of {len(printed)} kernels were printed, not of {len(looked_at)}")
    wrong += [f"{key}: {used.stack} bytes of stack, {used.local} of local memory" for key, used in usage.items()
              if used.stack or used.local]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(code)} kernels looked at, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
