#!/usr/bin/env python3
"""Estimates the security of each parameter set with the lattice estimator of Albrecht, Player and Scott.

  sage -python docs/security/estimate.py --estimator FOLDER >docs/security/estimate.json

FOLDER is a clone of https://github.com/malb/lattice-estimator; Debian has SageMath as the package sagemath. The cost model
of lattice reduction is MATZOV. The attacks are the primal one (usvp), bounded distance decoding (bdd), the dual hybrid
attack, and that of Arora and Ge with Groebner bases (arora-gb), which takes advantage of errors with few values.

"many_samples" has the attack of Arora and Ge alone, for more samples: what limits the rows of queries without rounding.
"ternary_lwe-1288" has that set with the errors of the others.

A number of bits is the logarithm of the operations that an attack takes. "bits" of a set is the least of its attacks, rounded
down. tests/docs/security_test.py compares the source with this output."""
import argparse
import datetime
import json
import math
import subprocess
import sys

Q = 2**32
PACKING_Q = 4_294_955_009

# Of each set: n, the largest error (errors are uniform from minus that), and instances: modulus and samples.
# A query of R rows is R samples of one secret. A packing key is 6,144 samples modulo the packing modulus: the estimate, for
# twice as many, is on the safe side.
SETS = {
    "lwe-1774": (1774, 1, [(Q, 2**20)]),
    "lwe-1572": (1572, 1, [(Q, 2**20)]),
    "lwe-1288": (1288, 4, [(Q, 2**20)]),
    "ring-2048": (2048, 1, [(Q, 2**20), (PACKING_Q, 12_288)]),
}


# Dimension, largest error, logarithm of the number of samples. Errors up to 2 are ternary ones after rounding by one bit.
MANY_SAMPLES = [(1774, 1, 20), (1774, 1, 24), (1774, 1, 25), (1774, 1, 26), (1572, 1, 24), (1572, 1, 25), (1572, 2, 26.6)]


def bits_of(cost):
    return round(float(math.log2(cost["rop"])), 1) if cost["rop"] < float("inf") else None


def parameters(estimator, dimension, error_max, modulus, samples):
    return estimator.LWE.Parameters(
        n=dimension, q=modulus, Xs=estimator.ND.UniformMod(3), Xe=estimator.ND.Uniform(-error_max, error_max), m=samples)


def attacks_on(estimator, params):
    lwe = estimator.LWE
    costs = {}
    for name, attack in (("usvp", lwe.primal_usvp), ("bdd", lwe.primal_bdd), ("dual-hybrid", lwe.dual_hybrid),
                         ("arora-gb", estimator.lwe.arora_gb)):
        cost = attack(params)
        costs[name] = bits_of(cost)
        print(f"n = {params.n}, modulo {params.q}: {name}: {cost!r}", file=sys.stderr)
    return costs


def estimate(estimator, dimension, error_max, modulus, samples):
    attacks = attacks_on(estimator, parameters(estimator, dimension, error_max, modulus, samples))
    return {"modulus": modulus, "samples": samples, "attacks": attacks}


def many_samples(estimator, dimension, error_max, log2_samples):
    params = parameters(estimator, dimension, error_max, Q, int(2**log2_samples))
    return {"dimension": dimension, "error_max": error_max, "log2_samples": log2_samples,
            "arora-gb": bits_of(estimator.lwe.arora_gb(params))}


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
        found = [estimate(estimator, dimension, error_max, *instance) for instance in instances]
        least = min(bits for each in found for bits in each["attacks"].values() if bits is not None)
        sets[name] = {"dimension": dimension, "error_max": error_max, "bits": math.floor(least), "instances": found}
    print(json.dumps({"estimator": commit, "sage": sage.version.version, "cost_model": "MATZOV",
                      "date": datetime.date.today().isoformat(), "sets": sets,
                      "ternary_lwe-1288": estimate(estimator, 1288, 1, Q, 2**20),
                      "many_samples": [many_samples(estimator, *each) for each in MANY_SAMPLES]}, indent=2))


if __name__ == "__main__":
    main()
