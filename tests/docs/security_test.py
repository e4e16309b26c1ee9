#!/usr/bin/env python3
"""What docs/security/estimate.json says of each parameter set is what the source and docs/PARAMETERS.md say, and what the
script that made it asks for is what the source has.

  security_test.py SOURCE"""
import importlib.util
import json
import math
import pathlib
import re
import sys


def sets_of_source(text):
    """Of each row of the table of sets: name to dimension, largest error, bits."""
    text = text.replace("ring::kDimension", "2048")
    rows = re.findall(r'\{"([\w-]+)", (\d+), Mode::\w+, (\d+), [^,]+, (\d+),', text)
    return {name: (int(dimension), int(error), int(bits)) for name, dimension, error, bits in rows}


def main():
    root = pathlib.Path(sys.argv[1])
    estimate = json.loads((root / "docs/security/estimate.json").read_text(encoding="utf-8"))
    spec = importlib.util.spec_from_file_location("estimate", root / "docs/security/estimate.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    source = sets_of_source((root / "src/arithmetic/lwe_params.cpp").read_text(encoding="utf-8"))
    document = (root / "docs/PARAMETERS.md").read_text(encoding="utf-8")

    layout = (root / "src/arithmetic/layout.h").read_text(encoding="utf-8")
    log2_rows = int(re.search(r"kUnroundedRowsMax = 1u << (\d+);", layout)[1])

    faults = []
    estimated = {name: (each["dimension"], each["error_max"], each["bits"]) for name, each in estimate["sets"].items()}
    if source != estimated:
        faults.append(f"src/arithmetic/lwe_params.cpp has {source}, and estimate.json {estimated}")
    asked = {name: each[:2] for name, each in script.SETS.items()}
    if asked != {name: each[:2] for name, each in estimated.items()}:
        faults.append(f"estimate.py asks for {asked}, and estimate.json has {estimated}")
    for name, (_, _, bits) in estimated.items():
        if not re.search(rf"^\| `{name}`.*\b{bits} bits\b", document, re.MULTILINE):
            faults.append(f"PARAMETERS.md has no row with {name} and its {bits} bits")
        if bits < 128:
            faults.append(f"{name} has less than 128 bits")
    section = document.partition("**Errors and samples.**")[2].partition("**Many queries.**")[0]
    ternary = min(filter(None, estimate["ternary_lwe-1288"]["attacks"].values()))
    if f"{math.floor(ternary)} bits" not in section:
        faults.append(f"PARAMETERS.md does not say that ternary errors would give lwe-1288 {ternary} bits")
    for each in estimate["many_samples"]:
        bits = each["arora-gb"]
        if f"2^{math.floor(bits)}" not in section:
            faults.append(f"PARAMETERS.md does not say 2^{math.floor(bits)} of {each}")
        if each["log2_samples"] <= log2_rows and bits < 128:
            faults.append(f"queries without rounding may have 2^{log2_rows} rows: {each}")
    if estimate["estimator"] not in document:
        faults.append("PARAMETERS.md does not name the commit of the estimator")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
