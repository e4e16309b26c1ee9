"""Polynomials of the ring, and their values."""

import numpy
import plain_scheme as scheme
from plain_scheme import DIGITS, N, Q, sha256

from .inputs import array, stream, stream_words, ternary, words_to_bytes


def ring_value(coefficients, point):
    value = 0
    for c in reversed(coefficients):
        value = (value * point + int(c)) % Q
    return value


def nearest(numerator, denominator):
    """Halves are rounded up."""
    return (2 * numerator + denominator) // (2 * denominator)


def ring_digits(x):
    """Of the centered number over 256, rounded; each digit but the last in -128 .. 127."""
    x = nearest(x - Q if x > Q // 2 else x, 256)
    low = (x + 128) % 256 - 128
    x = (x - low) // 256
    middle = (x + 128) % 256 - 128
    return [low, middle, (x - middle) // 256]


def check_points():
    """The points' tables, by Horner's rule; the root is a small number's power."""
    assert scheme.ROOT == next(root for root in (pow(g, (Q - 1) // 4096, Q) for g in range(2, 1000))
                               if pow(root, N, Q) == Q - 1)
    polynomial = scheme.signed(ternary("vectors/ring/points", N))
    found = scheme.at_points(polynomial)
    for k in (0, 1, 1024, 2047):
        assert found[k] == ring_value(polynomial, pow(scheme.ROOT, scheme.exponent(k), Q))


def ring_file():
    seed = stream("vectors/ring/seed", 32)
    polynomial = [int(w) % Q for w in scheme.public_block(seed, 0)]
    some = [(k, scheme.exponent(k), pow(scheme.ROOT, scheme.exponent(k), Q))
            for k in (0, 1, 2, 511, 1023, 1024, 1025, 2047)]
    numbers = [0, 1, 127, 128, 129, 255, 256, 384, 32767, 32768, 65536, Q // 2, Q // 2 + 1, Q - 1,
               *(w % Q for w in stream_words("vectors/ring/x", 20))]
    words = [0, 1, 2**31 - 1, 2**31, 2**32 - 1, *stream_words("vectors/ring/words", 10)]

    def polynomial_of(name, values, **members):
        return {**members, "first": values[:4].tolist(), "last": values[-2:].tolist(),
                "sha256": sha256(words_to_bytes(values)).hex(), "name": name}

    def raised(t, bits):
        found = int(scheme.raised(array([t]), bits)[0])
        assert found == nearest(t * Q, 2**bits) < Q
        return found

    def lowered(x, bits):
        found = int(scheme.lowered(numpy.array([x]), bits)[0])
        assert found == nearest(x * 2**bits, Q) % 2**bits
        return found

    return {
        "about": "Sections 14 and 15: the ring of packed responses. lift is raise with 32 bits; digits "
                 "are those of section 19.",
        "dimension": N, "modulus": Q, "root": scheme.ROOT, "seed": seed.hex(),
        "points": [{"point": k, "exponent": exponent, "value": point} for k, exponent, point in some],
        "blocks": [polynomial_of("a", scheme.public_block(seed, j), j=j) for j in (0, 1, 1000)],
        "key_masks": [polynomial_of("w", scheme.key_mask(seed, digit), digit=digit) for digit in DIGITS],
        "values_of_block_0": [{"point": k, "value": ring_value(polynomial, point)} for k, _, point in some],
        "digits": [{"x": x, "digits": ring_digits(x)} for x in numbers],
        "lift": [{"word": w, "lifted": raised(w, 32)} for w in words],
        "lower": [{"x": x, "bits": bits, "lowered": lowered(x, bits)} for bits in (8, 10, 18) for x in numbers],
        "raise": [{"number": t, "bits": bits, "raised": raised(t, bits)}
                  for bits, t in ((8, 0), (8, 1), (8, 128), (8, 255), (10, 513), (18, 1), (18, 262143))],
    }
