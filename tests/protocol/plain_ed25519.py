"""Ed25519 in plain Python, written from RFC 8032, section 5.1, and independent of the programs. For tests: it is slow, and
its time depends on the key."""

from __future__ import annotations

import hashlib

P = 2**255 - 19  # of the field
L = 2**252 + 27742317777372353535851937790883648493  # the order of the base point
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # a square root of -1

Point = tuple[int, int]  # affine coordinates of a point of -x^2 + y^2 = 1 + D x^2 y^2
NEUTRAL: Point = (0, 1)


def add(a: Point, b: Point) -> Point:
    product = D * a[0] * b[0] * a[1] * b[1] % P
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, -1, P)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, P)
    return x % P, y % P


def multiply(scalar: int, point: Point) -> Point:
    result = NEUTRAL
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def encode(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def decode(data: bytes) -> Point | None:
    """None for what is not a point [5.1.3]."""
    number = int.from_bytes(data, "little")
    y, sign = number & 2**255 - 1, number >> 255
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT % P
    if x * x % P != square or x == 0 and sign:
        return None
    return (x if x & 1 == sign else P - x), y


BASE_Y = 4 * pow(5, -1, P) % P
_base = decode(BASE_Y.to_bytes(32, "little"))
assert _base is not None
BASE: Point = _base


def _hash(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def _secret(seed: bytes) -> tuple[int, bytes]:
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little") & (2**254 - 8) | 2**254
    return scalar, digest[32:]


def public_key(seed: bytes) -> bytes:
    """[5.1.5]; seed: the 32 bytes of the private key."""
    return encode(multiply(_secret(seed)[0], BASE))


def sign(seed: bytes, message: bytes) -> bytes:
    """[5.1.6]"""
    scalar, prefix = _secret(seed)
    r = _hash(prefix, message) % L
    point = encode(multiply(r, BASE))
    k = _hash(point, public_key(seed), message) % L
    return point + ((r + k * scalar) % L).to_bytes(32, "little")


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """[5.1.7], without cofactors."""
    if len(key) != 32 or len(signature) != 64:
        return False
    a, r = decode(key), decode(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    k = _hash(signature[:32], key, message) % L
    return multiply(s, BASE) == add(r, multiply(k, a))
