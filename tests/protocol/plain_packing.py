"""What a server packs, in plain Python, written from docs/PROTOCOL.md, sections 19 to 21, alone and independent of
the programs: packing tables and masks of the matrix, bodies of responses, the second level, and what buckets change.
With plain_scheme.py this is both sides of the mode "packed" at full size. Transforms are fast here, as there are thousands.
check_transforms() compares them with those of plain_scheme.py, which evaluate by the definition.

Polynomials are arrays whose last axis has the 2048 coefficients, or the values at the points."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Sequence

import numpy

import plain_scheme as scheme
from plain_scheme import (DIGITS, N, PACK, Q, ROOT, Words, at_points, exponent, lowered, multiply, pack, raised,
                          require, unpack)

Numbers = numpy.ndarray  # int64

STEPS = PACK - 1  # of the chain of the first level


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


def traces(hints: Numbers, order: int = PACK) -> Numbers:
    """R_g at the points for the powers g = 5^(1024 i / order), i = 0 .. order - 1, one a row. hints: the values of H_c
    of the columns of one pack, `order` at most."""
    if order < PACK:
        return few_traces(hints, order)
    at = numpy.zeros((N, N), dtype=numpy.int64)  # row m': H_c(point m') as the coefficient of X^c
    at[:, :len(hints)] = hints.T
    sums = multiply(to_points(at), numpy.int64(pow(PACK, -1, Q)))  # row m', column m: that at point m
    found = numpy.empty((PACK, N), dtype=numpy.int64)
    m = numpy.arange(PACK)
    for i in range(PACK):
        for first in 0, PACK:  # (point m)^(5^i) is point m + i of the same half
            found[i, first:first + PACK] = sums[first + (m + i) % PACK, first + m]
    return found


def few_traces(hints: Numbers, order: int) -> Numbers:
    """The same, by the definition, which is fast enough for small orders."""
    monomials = to_points(numpy.eye(order, N, dtype=numpy.int64))[:len(hints)]  # the values of X^k
    found = [multiply(monomials, turned(hints, PACK // order * i)).sum(axis=0) % Q for i in range(order)]
    return multiply(numpy.stack(found), numpy.int64(pow(order, -1, Q)))


def digits(coefficients: Numbers) -> Numbers:
    """One a row."""
    x0 = numpy.where(coefficients > Q // 2, coefficients - Q, coefficients) + 128 >> 8
    low = (x0 + 128) % 256 - 128
    x1 = (x0 - low) // 256
    middle = (x1 + 128) % 256 - 128
    return numpy.stack((low, middle, (x1 - middle) // 256))


def chain(r: Numbers, key_masks: Sequence[Words]) -> tuple[Words, Numbers]:
    """The values of T_k at the points, for each step from the last but one R_g down and each digit k, and the mask's
    coefficients. r: as traces() has them; key_masks: the values of w_k, or of w'_k for an order below 1024."""
    order = len(r)
    w = numpy.stack([mask.astype(numpy.int64) for mask in key_masks])
    table = numpy.empty((order - 1, len(DIGITS), N), dtype=numpy.uint32)
    t = r[order - 1]
    for number, i in enumerate(range(order - 2, -1, -1)):
        values = to_points(digits(to_coefficients(t)))
        table[number] = values
        t = (r[i] + multiply(values, turned(w, PACK // order * i)).sum(axis=0)) % Q
    return table, to_coefficients(t)


def packed_body(table: Words, key: Sequence[Words], numbers: Numbers) -> Numbers:
    """The body's coefficients. key: the values of y_k or y'_k; numbers: modulo Q, of the columns of the pack."""
    order = len(table) + 1
    y = numpy.stack([digit.astype(numpy.int64) for digit in key])
    b = numpy.zeros(N, dtype=numpy.int64)
    for number, i in enumerate(range(order - 2, -1, -1)):
        b = (b + multiply(table[number], turned(y, PACK // order * i)).sum(axis=0)) % Q
    made = -to_coefficients(b)
    made[:len(numbers)] += numbers
    return made % Q


# ---- The first level [19]


def table_and_mask(hints: Words, key_masks: Sequence[Words]) -> tuple[Words, Numbers]:
    """Of one pack: what chain() gives; hints: h_c of its columns."""
    return chain(traces(to_points(raised(hints, 32))), key_masks)


def body(table: Words, key: Sequence[Words], responses: Words) -> Numbers:
    """responses: r[c] of the columns of the pack."""
    return packed_body(table, key, raised(responses, 32))


# ---- Requests for several keys [21]; m: the manifest; columns: of all shards, signed bytes, one column a row


def bucket_hints(m: SimpleNamespace, columns: numpy.ndarray) -> Words:
    """h_c, one a row: each column's by the public polynomials of its bucket."""
    blocks, found = scheme.bucket_blocks(m).reshape(m.bucket_count, -1, N), []
    for own, part in zip(blocks, numpy.split(columns, m.bucket_count), strict=True):
        found.append(hint_polynomials(own, part))
    return numpy.concatenate(found)


def bucket_products(m: SimpleNamespace, b: Words, columns: numpy.ndarray) -> Words:
    """r[c]: each column's by the words of its bucket. b: the restored words of a query."""
    found = []
    for own, part in zip(numpy.split(b, m.bucket_count), numpy.split(columns, m.bucket_count), strict=True):
        found.append(part.astype(numpy.uint32) @ own)
    return numpy.concatenate(found)


# ---- The second level [20]; m: the manifest


def entries_of(m: SimpleNamespace, numbers: Words) -> Numbers:
    """E, G rows of g W numbers; numbers: v[c]."""
    found = numpy.zeros(m.group_count * m.group_columns, dtype=numpy.int64)
    found[:len(numbers)] = numbers.astype(numpy.int64) - (1 << m.response_bits - 1)
    return found.reshape(m.group_count, m.group_columns)


def second_products(seed: bytes, b2: Numbers, entries: Numbers) -> tuple[Numbers, Numbers]:
    """r2[k], and the values of h2_k, one a row. b2: numbers modulo Q, one for each row of `entries`."""
    products = numpy.zeros(entries.shape[1], dtype=numpy.int64)
    for number, row in zip(b2, entries, strict=True):
        products = (products + number * row) % Q
    hints = numpy.zeros((entries.shape[1], N), dtype=numpy.int64)
    for j in range(-(-len(entries) // N)):
        e = numpy.zeros((entries.shape[1], N), dtype=numpy.int64)
        rows = entries[j * N:(j + 1) * N]
        e[:, :len(rows)] = rows.T
        inverted = numpy.concatenate((e[:, :1], -e[:, :0:-1]), axis=1)  # E(X^-1)
        hints = (hints + multiply(to_points(inverted), scheme.second_block(seed, j))) % Q
    return products, hints


def split_query(m: SimpleNamespace, query: bytes) -> tuple[Words, list[list[Words]], Numbers]:
    """Of a query with two levels: b's words, its keys, and b2 modulo Q."""
    require(len(query) == m.query_bytes, "the query has another size")
    words_end = m.row_count * m.query_bits // 8
    keys_end = words_end + (2 if m.short_key_order else 1) * 24_576
    b = scheme.restore(unpack(query[:words_end], m.row_count, m.query_bits), m.query_bits)
    digits_of_keys = numpy.frombuffer(query[words_end:keys_end], dtype="<u4").reshape(-1, len(DIGITS), N)
    require(bool((digits_of_keys < Q).all()), "a word of a key is Q or more")
    b2 = raised(unpack(query[keys_end:], m.group_count, m.query2_bits), m.query2_bits)
    return b, [list(key) for key in digits_of_keys], b2


def second_packs(m: SimpleNamespace, keys: Sequence[Sequence[Words]], b2: Numbers,
                 numbers: Words) -> list[tuple[Numbers, Numbers]]:
    """Mask and body of each pack of the group, as coefficients; keys: as a query has them; numbers: v[c]."""
    seed = bytes.fromhex(m.seed)
    products, hints = second_products(seed, b2, entries_of(m, numbers))
    key_mask = scheme.short_key_mask if m.short_key_order else scheme.key_mask
    key_masks = [key_mask(seed, k) for k in DIGITS]
    packs = []
    for first in range(0, m.group_columns, PACK):
        table, mask = chain(traces(hints[first:first + PACK], m.key_order), key_masks)
        packs.append((mask, packed_body(table, keys[-1], products[first:first + PACK])))
    return packs


def second_response(m: SimpleNamespace, packs: Sequence[tuple[Numbers, Numbers]]) -> bytes:
    masks = b"".join(pack(lowered(mask, m.mask2_bits), m.mask2_bits) for mask, _ in packs)
    words = numpy.concatenate([own_body[:PACK] for _, own_body in packs])[:m.group_columns]
    return masks + pack(lowered(words, m.response2_bits), m.response2_bits)
