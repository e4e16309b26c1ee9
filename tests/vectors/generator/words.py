"""Words of the public matrix, and words packed into bits."""

import plain_scheme as scheme
from plain_scheme import pack, restore, round_words, sha256, unpack

from .inputs import U32, array, stream, stream_words, words_to_bytes


def check_chacha20():
    """RFC 8439."""
    key = bytes(range(32))
    block = scheme.chacha20(key, bytes.fromhex("000000090000004a00000000"), 1, 1)  # section 2.3.2
    assert words_to_bytes(block).hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e")
    text = (b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
            b"future, sunscreen would be it.")  # section 2.4.2
    stream = words_to_bytes(scheme.chacha20(key, bytes.fromhex("000000000000004a00000000"), 2, 1))
    assert bytes(a ^ b for a, b in zip(text, stream)).hex() == (
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
        "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
        "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
        "5af90bbf74a35be6b40b8eedf2785e42874d")


def public_matrix_file():
    seed = stream("vectors/matrix-seed", 32)
    cases = []
    for panel in (0, 1, 63, (1 << 25) - 1):
        for name, n in scheme.DIMENSIONS["hint"].items():
            words = scheme.public_panel(seed, n, panel).reshape(-1)
            cases.append({"lwe": name, "dimension": n, "panel": panel, "first_words": words[:16].tolist(),
                          "last_words": words[-16:].tolist(), "sha256": sha256(words_to_bytes(words)).hex()})
    return {"about": "Section 6: panels of the public matrix; sha256 is over all n * 256 bytes.",
            "seed": seed.hex(), "panels": cases}


def bit_packing_file():
    cases, bad = [], []
    for bits in range(1, 33):
        unit = 1 << (32 - bits)
        words = [0, 1, U32, U32 - 1, 1 << 31, (1 << 31) - 1, (1 << 31) + 1]
        if bits < 32:
            half = unit // 2
            # Ties above even (down), above odd (up), at the top (wraps to 0), and their neighbours.
            words += [half, 3 * half, 5 * half, 7 * half, half - 1, half + 1, 3 * half - 1,
                      3 * half + 1, (1 << 32) - half, (1 << 32) - half - 1, (1 << 32) - 3 * half]
        words = [x & U32 for x in words] + stream_words(f"vectors/packing/{bits}", 8)
        words = words[:len(words) // 2 * 2 - 1]  # an odd count leaves unused bits where it can
        numbers = round_words(array(words), bits)
        data = pack(numbers, bits)
        assert (unpack(data, len(words), bits) == numbers).all()
        cases.append({"bits": bits, "words": words, "numbers": numbers.tolist(), "packed": data.hex(),
                      "restored": restore(numbers, bits).tolist()})
        wrong = [("one byte too few", data[:-1]), ("one byte too many", data + b"\0")]
        used = len(words) * bits % 8
        if used:
            wrong.append(("highest unused bit is set", data[:-1] + bytes([data[-1] | 128])))
            wrong.append(("lowest unused bit is set", data[:-1] + bytes([data[-1] | 1 << used])))
        for why, packed in wrong:
            bad.append({"reason": why, "bits": bits, "count": len(words), "packed": packed.hex()})
    return {"about": "Section 7: words, rounded to numbers, packed, restored; bad holds packed "
                     "bytes that a reader of `count` numbers refuses.", "cases": cases, "bad": bad}
