#!/usr/bin/env python3
"""Estimates the security of each parameter set with the lattice estimator of Albrecht, Player and Scott.

  sage -python docs/security/estimate.py --estimator FOLDER >docs/security/estimate.json

FOLDER is a clone of https://github.com/malb/lattice-estimator; Debian has SageMath as the package sagemath. The cost model
of lattice reduction is MATZOV. The attacks are the primal one (usvp), bounded distance decoding (bdd), the dual hybrid
attack, and that of Arora and Ge with Groebner bases (arora-gb), which takes advantage of errors with few values.

A number of bits is the logarithm of the operations that an attack takes. "bits" of a set is the least of its attacks, rounded
down. tests/docs/security_test.py compares PARAMETERS.md and the source with this output."""
import argparse
import datetime
import json
import math
import subprocess
import sys

Q = 2**32
PACKING_Q = 4_294_955_009

# Of each set: n, the largest error (errors are uniform from minus that), and instances: modulus and samples.
# A query of R rows is R samples of one secret; packing keys are 12,288 samples modulo the packing modulus.
SETS = {
    "lwe-1774": (1774, 1, [(Q, 2**20)]),
    "lwe-1572": (1572, 1, [(Q, 2**20)]),
    "lwe-1288": (1288, 4, [(Q, 2**20)]),
    "ring-2048": (2048, 1, [(Q, 2**20), (PACKING_Q, 12_288)]),
}


def bits_of(cost):
    return round(float(math.log2(cost["rop"])), 1) if cost["rop"] < float("inf") else None


def attacks_on(estimator, params):
    lwe = estimator.LWE
    costs = {}
    for name, attack in (("usvp", lwe.primal_usvp), ("bdd", lwe.primal_bdd), ("dual-hybrid", lwe.dual_hybrid),
                         ("arora-gb", estimator.lwe.arora_gb)):
        cost = attack(params)
        costs[name] = bits_of(cost)
        print(f"{params.tag}: {name}: {cost!r}", file=sys.stderr)
    return costs


def estimate(estimator, name, dimension, error_max, modulus, samples):
    params = estimator.LWE.Parameters(
        n=dimension, q=modulus, Xs=estimator.ND.UniformMod(3), Xe=estimator.ND.Uniform(-error_max, error_max),
        m=samples, tag=f"{name}, modulo {modulus}")
    attacks = attacks_on(estimator, params)
    return {"modulus": modulus, "samples": samples, "attacks": attacks}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--estimator", required=True, metavar="FOLDER", help="a clone of the lattice estimator")
    options = parser.parse_args()
    sys.path.insert(0, options.estimator)
    import estimator
    import sage.version

    commit = subprocess.run(["git", "-C", options.estimator, "log", "-1", "--format=%H"], check=True,
                            capture_output=True, text=True).stdout.strip()
    sets = {}
    for name, (dimension, error_max, instances) in SETS.items():
        found = [estimate(estimator, name, dimension, error_max, *instance) for instance in instances]
        least = min(bits for each in found for bits in each["attacks"].values() if bits is not None)
        sets[name] = {"dimension": dimension, "error_max": error_max, "bits": math.floor(least), "instances": found}
    print(json.dumps({"estimator": commit, "sage": sage.version.version, "cost_model": "MATZOV",
                      "date": datetime.date.today().isoformat(), "sets": sets}, indent=2))


if __name__ == "__main__":
    main()
