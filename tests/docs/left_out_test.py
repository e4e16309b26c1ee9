#!/usr/bin/env python3
"""The bounds of keys that are left out, in section 9 of docs/PARAMETERS.md, are those that docs/security/left_out.py
computes, and its counts are right where each way can be counted by itself.

  left_out_test.py SOURCE"""
import importlib.util
import pathlib
import re
import sys
from itertools import combinations, product
from math import comb, log2


def main():
    root = pathlib.Path(sys.argv[1])
    spec = importlib.util.spec_from_file_location("left_out", root / "docs/security/left_out.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    faults = []
    for n, j in (3, 4), (4, 4), (4, 5), (5, 4):
        found = 0
        for keys in product(combinations(range(n), 3), repeat=j):
            found += all(sum(bucket in key for key in keys) > 1 for bucket in range(n))
        if script.coverings(n, j) != found:
            faults.append(f"coverings({n}, {j}) is {script.coverings(n, j)}, and there are {found}")
    exact, script.EXACT_MAX = script.EXACT_MAX, 8
    for j in 9, 20, 40:
        bound = script.log2_coverings(j - 1, j)
        if not 0 <= bound - script.log2_of(script.coverings(j - 1, j)) < 12:
            faults.append(f"the bound of coverings({j - 1}, {j}) is 2^{bound:.1f}")
    script.EXACT_MAX = exact
    script.log2_coverings.cache_clear()

    document = (root / "docs/PARAMETERS.md").read_text(encoding="utf-8")
    power = r"2\^([-\d.]+)"
    row = rf"^\| (\d+) \| (\d+) \| (?:none \()?{power}\)? \| {power} \| j = (\d+) \| {power} \|"
    rows = re.findall(row, document, re.MULTILINE)
    if len(rows) != 7:
        faults.append(f"PARAMETERS.md has {len(rows)} rows of bounds")
    for key_count, bucket_count, *stated in rows:
        plain, smallest, largest = script.log2_bounds(int(key_count), int(bucket_count))
        same = log2(comb(int(key_count), 4)) - 3 * log2(comb(int(bucket_count), 3))
        computed = [f"{plain:.1f}", f"{smallest:.1f}", str(largest), f"{same:.1f}"]
        if stated != computed:
            faults.append(f"PARAMETERS.md has {stated} for K = {key_count} and B = {bucket_count}, not {computed}")
    # The document says so of all numbers of keys, and host/publish/left_out_keys.h of what is proven.
    usual = {k: script.log2_bounds(k, script.usual_bucket_count(k))[1] for k in [*range(4, 129), 256, 512, 1024]}
    if max(usual.values()) > -20 or max(usual, key=usual.get) != 16:
        faults.append(f"the usual numbers of buckets leave out more than PARAMETERS.md says: {max(usual.values()):.1f}")
    if max((k for k in usual if k > 19), key=usual.get) != 64:
        faults.append("of more than 19 keys, not 64 leave out most")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
