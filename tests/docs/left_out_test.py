#!/usr/bin/env python3
"""The counts of docs/security/left_out.py are right where each way can be counted by itself, and the usual numbers of
buckets leave out as few keys as section 9 of docs/PARAMETERS.md says.

  left_out_test.py SOURCE"""
import importlib.util
import pathlib
import sys
from itertools import combinations, product


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

    # The document says so of all numbers of keys.
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
