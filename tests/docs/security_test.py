#!/usr/bin/env python3
"""The parameter sets of the source are those that docs/security/estimate.json estimates and docs/security/estimate.py asks
for, each with 128 bits or more.

  security_test.py SOURCE"""
import importlib.util
import json
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
    layout = (root / "src/arithmetic/layout.h").read_text(encoding="utf-8")
    log2_rows = int(re.search(r"kUnroundedRowsMax = 1u << (\d+);", layout)[1])

    faults = []
    estimated = {name: (each["dimension"], each["error_max"], each["bits"]) for name, each in estimate["sets"].items()}
    if source != estimated:
        faults.append(f"src/arithmetic/lwe_params.cpp has {source}, and estimate.json {estimated}")
    asked = {name: each[:2] for name, each in script.SETS.items()}
    if asked != {name: each[:2] for name, each in estimated.items()}:
        faults.append(f"estimate.py asks for {asked}, and estimate.json has {estimated}")
    faults += [f"{name} has less than 128 bits" for name, (_, _, bits) in estimated.items() if bits < 128]
    for each in estimate["many_samples"]:
        if each["log2_samples"] <= log2_rows and each["arora-gb"] < 128:
            faults.append(f"queries without rounding may have 2^{log2_rows} rows: {each}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
