"""What a server packs, in plain Python, written from docs/PROTOCOL.md, section 19, alone and independent of the
programs: packing tables and masks of the matrix, and bodies of responses. With plain_scheme.py this is both sides of
the mode "packed" at full size. Transforms are fast here, as there are thousands. check_transforms() compares them with
those of plain_scheme.py, which evaluate by the definition.

Polynomials are arrays whose last axis has the 2048 coefficients, or the values at the points."""

from __future__ import annotations

import functools
from typing import Sequence

import numpy

from plain_scheme import DIGITS, N, PACK, Q, ROOT, Words, at_points, exponent, multiply, raised

Numbers = numpy.ndarray  # int64

STEPS = PACK - 1  # of the chain


@functools.cache
def powers(root: int, count: int) -> Numbers:
    made = [1]
    for _ in range(count - 1):
        made.append(made[-1] * root % Q)
    return numpy.array(made, dtype=numpy.int64)


@functools.cache
def order_of_points() -> Numbers:
    """Where the power of the root that is each point stands among its odd powers."""
    return numpy.array([exponent(k) // 2 for k in range(N)])


def cyclic_transform(x: Numbers, root: int) -> Numbers:
    """The values at the powers of a root of order 2048. x: coefficients, one polynomial a column. In turn there are
    2048 transforms of 1 coefficient, 1024 of 2 and so on. The first axis has the values of each. The second axis has
    one transform for each set of coefficients."""
    x = x[numpy.newaxis]
    while (left := x.shape[1] // 2) > 0:
        factors = powers(pow(root, left, Q), len(x)).reshape(-1, *[1] * (x.ndim - 1))
        turned = multiply(x[:, left:], factors)
        x = numpy.concatenate((x[:, :left] + turned, x[:, :left] - turned)) % Q
    return x[:, 0]


def columns_first(x: Numbers) -> Numbers:
    """The last axis as the first one, and back again."""
    return numpy.ascontiguousarray(x.T)


def to_points(coefficients: Numbers) -> Numbers:
    shifted = multiply(coefficients % Q, powers(ROOT, N))
    return columns_first(cyclic_transform(columns_first(shifted), pow(ROOT, 2, Q))[order_of_points()])


def to_coefficients(values: Numbers) -> Numbers:
    odd = numpy.empty_like(values)
    odd[..., order_of_points()] = values
    shifted = columns_first(cyclic_transform(columns_first(odd), pow(ROOT, -2, Q)))
    return multiply(shifted, multiply(powers(pow(ROOT, -1, Q), N), numpy.int64(pow(N, -1, Q))))


def check_transforms(small: Numbers, any_values: Numbers) -> None:
    """small: coefficients such as -1, 0 and 1."""
    assert (to_points(small) == at_points(small)).all()
    assert (to_points(to_coefficients(any_values)) == any_values).all()


def turned(values: Numbers, i: int) -> Numbers:
    """[14] From the values of f to those of f(X^(5^i))."""
    halves = values.reshape(*values.shape[:-1], 2, N // 2)
    return numpy.roll(halves, -i, axis=-1).reshape(values.shape)


def hint_polynomials(blocks: Words, columns: numpy.ndarray) -> Words:
    """h_c, one a row. blocks: a_j, one a row. columns: of the matrix, signed bytes, one column a row."""
    found = numpy.zeros((len(columns), N), dtype=numpy.int64)
    for j, a in enumerate(blocks):
        d = columns[:, j * N:(j + 1) * N].astype(numpy.int64)
        d = numpy.concatenate((d[:, :1], -d[:, :0:-1]), axis=1)  # D(X^-1)
        spectrum = numpy.fft.rfft(d, 2 * N)
        for shift in 0, 16:  # halves of the words, so that sums stay below 2^34 and doubles have them exactly
            half = (a.astype(numpy.int64) >> shift) & 0xFFFF
            exact = numpy.fft.irfft(spectrum * numpy.fft.rfft(half, 2 * N), 2 * N)
            product = numpy.rint(exact).astype(numpy.int64)
            assert abs(exact - product).max() < 0.01
            found += (product[:, :N] - product[:, N:]) << shift
    return (found % 2**32).astype(numpy.uint32)


def traces(hints: Words) -> Numbers:
    """R_g at the points for g = 5^0 .. 5^1023, one a row; hints: h_c of the columns of one pack, 1024 at most."""
    at = numpy.zeros((N, N), dtype=numpy.int64)  # row m': H_c(point m') as the coefficient of X^c
    at[:, :len(hints)] = to_points(raised(hints, 32)).T
    sums = multiply(to_points(at), numpy.int64(pow(PACK, -1, Q)))  # row m', column m: that at point m
    found = numpy.empty((PACK, N), dtype=numpy.int64)
    m = numpy.arange(PACK)
    for i in range(PACK):
        for first in 0, PACK:  # (point m)^(5^i) is point m + i of the same half
            found[i, first:first + PACK] = sums[first + (m + i) % PACK, first + m]
    return found


def digits(coefficients: Numbers) -> Numbers:
    """One a row."""
    x0 = numpy.where(coefficients > Q // 2, coefficients - Q, coefficients) + 128 >> 8
    low = (x0 + 128) % 256 - 128
    x1 = (x0 - low) // 256
    middle = (x1 + 128) % 256 - 128
    return numpy.stack((low, middle, (x1 - middle) // 256))


def table_and_mask(hints: Words, key_masks: Sequence[Words]) -> tuple[Words, Numbers]:
    """The values of T_k at the points, for each step from i = 1022 down and each digit k, and the mask's coefficients;
    key_masks: the values of w_k."""
    r = traces(hints)
    w = numpy.stack([mask.astype(numpy.int64) for mask in key_masks])
    table = numpy.empty((STEPS, len(DIGITS), N), dtype=numpy.uint32)
    t = r[STEPS]
    for number, i in enumerate(range(STEPS - 1, -1, -1)):
        values = to_points(digits(to_coefficients(t)))
        table[number] = values
        t = (r[i] + multiply(values, turned(w, i)).sum(axis=0)) % Q
    return table, to_coefficients(t)


def body(table: Words, key: Sequence[Words], responses: Words) -> Numbers:
    """The body's coefficients. key: the values of y_k; responses: r[c] of the columns of the pack."""
    y = numpy.stack([digit.astype(numpy.int64) for digit in key])
    b = numpy.zeros(N, dtype=numpy.int64)
    for number, i in enumerate(range(STEPS - 1, -1, -1)):
        b = (b + multiply(table[number], turned(y, i)).sum(axis=0)) % Q
    made = -to_coefficients(b)
    made[:len(responses)] += raised(responses, 32)
    return made % Q
