"""Rounded words, and what their receiver sees."""

from plain_scheme import pack, restore, round_words, unpack


def rounded_bytes(words, bits):
    data = pack(round_words(words, bits), bits)
    assert (restore(unpack(data, len(words), bits), bits) == restored(words, bits)).all()
    return data


def restored(words, bits):
    """What the receiver of rounded words sees."""
    return restore(round_words(words, bits), bits)
