#!/usr/bin/env python3
"""Bounds the probability that a request for K keys has no bucket left for one of them: docs/PARAMETERS.md, section 9.

  left_out.py [K B]...      prints a row for each pair, as the table there has it"""
import functools
import math
import sys
from math import comb, factorial, lgamma, log2

EXACT_MAX = 64  # sets of more keys than this are bounded; they hardly count


def powers_of(f, j, top):
    """Coefficients 0 .. top of (f[0] + f[1] y + f[2] y^2 + f[3] y^3)^j."""
    if f[0] == 0:
        result = [1] + [0] * top
        for _ in range(j):
            result = [sum(f[i] * result[k - i] for i in range(min(3, k) + 1)) for k in range(top + 1)]
        return result
    result = [f[0] ** j]
    for k in range(1, top + 1):  # from f g' = j f' g
        total = sum((i * j - (k - i)) * f[i] * result[k - i] for i in range(1, min(3, k) + 1))
        result.append(total // (k * f[0]))
    return result


def coverings(n, j):
    """In how many ways j keys have three of n buckets each, so that each bucket has two keys or more. By inclusion and
    exclusion: `a` buckets without a key, b with one."""
    total = 0
    for m in range(n + 1):
        coefficients = powers_of([6 * comb(m, 3), 6 * comb(m, 2), 3 * m, 1], j, n - m)
        for b in range(n - m + 1):
            a = n - m - b
            total += (-1) ** (a + b) * comb(n, a) * comb(n - a, b) * factorial(b) * coefficients[b]
    return total // 6**j


def log2_of(x):
    """Of an integer of any size."""
    shift = max(0, x.bit_length() - 60)
    return log2(x >> shift) + shift


@functools.cache
def log2_coverings(n, j):
    """An upper bound where j is large."""
    if j <= EXACT_MAX:
        return log2_of(coverings(n, j))
    r = 2.149  # any number gives a bound, and this one nearly the least
    return (lgamma(3 * j + 1) - 3 * j * math.log(r) + n * math.log(math.exp(r) - 1 - r)) / math.log(2) - j * log2(6)


def usual_bucket_count(key_count):
    """As src/arithmetic/layout.h has it."""
    if key_count <= 16:
        return min(2 * key_count + 8, 32)
    return min(2 * key_count, max((3 * key_count + 1) // 2, 96))


def log2_of_sum(terms):
    """Of powers of two, which may be too large for a number."""
    largest = max(terms)
    return largest + log2(sum(2 ** (term - largest) for term in terms))


def log2_bounds(key_count, bucket_count):
    """The plain union bound, the one over smallest sets, and for how many keys the latter's term is largest."""
    plain, smallest = [], []
    for j in range(4, min(key_count, bucket_count + 1) + 1):
        sets = log2_of(comb(key_count, j)) + log2_of(comb(bucket_count, j - 1)) - j * log2_of(comb(bucket_count, 3))
        plain.append(sets + j * log2_of(comb(j - 1, 3)))
        smallest.append((sets + min(log2_coverings(j - 1, j), j * log2_of(comb(j - 1, 3))), j))
    return log2_of_sum(plain), log2_of_sum([term for term, _ in smallest]), max(smallest)[1]


def main(arguments):
    for key_count, bucket_count in zip(map(int, arguments[::2]), map(int, arguments[1::2]), strict=True):
        plain, smallest, largest = log2_bounds(key_count, bucket_count)
        same = log2_of(comb(key_count, 4)) - 3 * log2_of(comb(bucket_count, 3))
        print(f"| {key_count} | {bucket_count} | 2^{plain:.1f} | 2^{smallest:.1f} | j = {largest} | 2^{same:.1f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
