"""Machine code of CUDA kernels, as NVIDIA's cuobjdump prints it: instructions, resources, the main loop of a scan."""
import re
import subprocess
from typing import NamedTuple


class Instruction(NamedTuple):
    address: int
    text: str
    name: str  # without the predicate and the operands


class Resources(NamedTuple):
    registers: int
    stack: int
    shared: int  # static
    local: int


class Step(NamedTuple):
    """One turn of a scan's main loop, on the path that goes on in the same piece."""

    instructions: int
    moves: int
    products: int
    in_flight: int  # loads of the matrix under way where products begin, or where wgmma's are waited for
    barriers: int
    spills: int


PRODUCTS = ("IMMA", "IGMMA", "IDP")
MOVES = ("MOV", "UMOV", "IMAD.MOV", "R2UR")


def output_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def machine_code(cuobjdump, library):
    """(architecture, mangled name of a kernel) -> its instructions, a line each."""
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


def resources(cuobjdump, library):
    """(architecture, mangled name of a kernel) -> Resources."""
    found, architecture, name = {}, None, None
    for line in output_of([cuobjdump, "--dump-resource-usage", library]).splitlines():
        if match := re.match(r"\s*arch = (\S+)", line):
            architecture = match[1]
        elif match := re.match(r"\s*Function (\S+):", line):
            name = match[1]
        elif match := re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", line):
            found[architecture, name] = Resources(*map(int, match.groups()))
    return found


def decoded(instructions):
    for line in instructions.splitlines():
        match = re.match(r"\s*/\*([0-9a-f]+)\*/\s*(.*?)\s*;", line)
        if match:
            name = re.sub(r"^@!?U?P\w+ ", "", match[2]).split(" ")[0]
            yield Instruction(int(match[1], 16), match[2], name)


def is_matrix_load(instruction):
    return instruction.name.startswith("LDG.") and ".128" in instruction.name


def in_flight(path):
    """For each instruction, the loads of the matrix that were started before it and that nothing has waited for."""
    flying = []  # the registers that each load writes
    for instruction in path:
        yield len(flying)
        operands = instruction.text.split(" ", 1)[-1]
        loads = is_matrix_load(instruction)
        if loads and instruction.text.startswith("@"):
            operands = operands.split(" ", 1)[-1]
        sources = operands.split(",", 1)[-1] if loads else operands
        used = {int(r) for r in re.findall(r"\bR(\d+)\b", sources)}
        flying = [load for load in flying if not used & load]
        if loads:
            first = int(re.search(r"\bR(\d+)\b", operands)[1])
            flying.append(set(range(first, first + 4)))


def loops(code):
    """The instructions between every branch backward and where it leads."""
    at = {instruction.address: i for i, instruction in enumerate(code)}
    for i, (address, text, name) in enumerate(code):
        target = re.search(r"\b0x([0-9a-f]+)", text) if name.startswith("BRA") else None
        if target and int(target[1], 16) < address:
            yield code[at[int(target[1], 16)]:i + 1]


class Block(NamedTuple):
    code: list[Instruction]
    targets: list[int]  # addresses of the blocks that may follow


def blocks_of(code):
    """Address -> the instructions from there to the next branch or the next place that one leads to."""
    leaders = {code[0].address}
    jumps = {}
    for i, (address, text, name) in enumerate(code):
        if name.startswith("BRA") and not name.startswith("BRA.DIV"):
            jumps[address] = int(re.search(r"\b0x([0-9a-f]+)", text)[1], 16)
            leaders.add(jumps[address])
        if (address in jumps or name.startswith(("EXIT", "RET"))) and i + 1 < len(code):
            leaders.add(code[i + 1].address)
    blocks, first = {}, 0
    for i in range(1, len(code) + 1):
        if i < len(code) and code[i].address not in leaders:
            continue
        address, text, name = code[i - 1]
        targets = [jumps[address]] if address in jumps else []
        # Taken always: no predicate before it, and none among its operands.
        ends = name.startswith(("BRA", "EXIT", "RET")) and not re.search(r"\bU?P\d\b", text)
        if i < len(code) and not (ends and not name.startswith("BRA.DIV")):
            targets.append(code[i].address)
        blocks[code[first].address] = Block(code[first:i], targets)
        first = i
    return blocks


def step_path(code):
    """One turn of the innermost loop that has all products, without the blocks that add to products in memory.

    Of all ways through the loop the one with the most products, loads and copies, and of these the shortest one: the
    way of a step that neither ends a piece nor is the last.
    """
    products = [i for i in code if i.name.startswith(PRODUCTS)]
    heads = [loop[0].address for loop in loops(code)
             if loop[0].address <= products[0].address and products[-1].address <= loop[-1].address]
    head, blocks = max(heads), blocks_of(code)

    def value(path):
        count = [sum(test(i) for i in path) for test in
                 (lambda i: i.name.startswith(PRODUCTS), is_matrix_load, lambda i: i.name.startswith("LDGSTS"))]
        return (*count, -len(path))

    best, visiting = {}, set()

    def from_block(address):
        """The best way from here to the head; None where there is none."""
        if address in best:
            return best[address]
        block = blocks[address]
        if address in visiting or any(i.name.startswith(("RED.", "ATOM")) for i in block.code):
            return None
        visiting.add(address)
        ways = [[] if target == head else from_block(target) for target in block.targets]
        ways = [block.code + way for way in ways if way is not None]
        visiting.discard(address)
        best[address] = max(ways, key=value, default=None)
        return best[address]

    return from_block(head)


def main_loop_step(code):
    path = step_path(code)
    products = [i for i, instruction in enumerate(path) if instruction.name.startswith(PRODUCTS)]
    # Products of wgmma run while loads are started, others are started after the loads.
    waits = [i for i, instruction in enumerate(path) if instruction.name.startswith("WARPGROUP.DEPBAR")]
    # The second of two turns: what the first one has started is on its way.
    flying = list(in_flight(path + path))
    return Step(
        instructions=len(path),
        moves=sum(i.name.startswith(MOVES) for i in path),
        products=len(products),
        in_flight=flying[len(path) + (waits or products)[0]],
        barriers=sum(i.name.startswith("BAR") for i in path),
        spills=sum(i.name.startswith(("LDL", "STL")) for i in path),
    )
