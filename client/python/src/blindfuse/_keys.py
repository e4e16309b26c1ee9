"""From what a caller takes for a key to the bytes or the number that the library asks for."""

from __future__ import annotations

import operator
from typing import Sequence, SupportsIndex, TypeVar, Union

from ._errors import InputError

Key = Union[str, bytes, SupportsIndex]
AnyKey = TypeVar("AnyKey", bound=Key)

# Larger numbers are in no database. They are asked for all the same, so that the server cannot tell them apart.
_INDEX_MAX = 2**64 - 1
_INDEX_DIGITS_MAX = 20


# The library decides, when it asks, if the database is asked by number: another thread may have gone on to another
# database meanwhile. Messages do not repeat keys.


def native_key(key: Key) -> bytes | int:
    return _number(key) if _is_number(key) else _bytes(key)


def native_keys(keys: Sequence[Key]) -> list[bytes] | list[int]:
    """With a number among them, all as numbers."""
    if any(map(_is_number, keys)):
        return [_number(key) for key in keys]
    return [_bytes(key) for key in keys]


def _is_number(key: object) -> bool:
    return not isinstance(key, (str, bytes, bool)) and hasattr(type(key), "__index__")


def _bytes(key: Key) -> bytes:
    if isinstance(key, bytes):
        return bytes(key)
    if isinstance(key, str):
        try:
            return key.encode()
        except UnicodeEncodeError:
            raise InputError("a key is not text that UTF-8 can hold; give its bytes") from None
    raise _wrong_type(key)


def _number(key: Key) -> int:
    if isinstance(key, (str, bytes)):
        return _number_in(_bytes(key))
    if not _is_number(key):
        raise _wrong_type(key)
    number = operator.index(key)
    if number < 0:
        raise InputError("a database is asked by number as 0, 1, 2, ...; negative ones do not count from its end")
    return min(number, _INDEX_MAX)


def _number_in(text: bytes) -> int:
    """As the library reads it in an index database."""
    if not text.isdigit() or (len(text) > 1 and text.startswith(b"0")):
        raise TypeError(
            "some of these keys are numbers and some are text that is none: "
            "a database is asked by key, not by number, or else by number alone; give all as the one or the other"
        )
    return min(int(text), _INDEX_MAX) if len(text) <= _INDEX_DIGITS_MAX else _INDEX_MAX


def _wrong_type(key: object) -> TypeError:
    return TypeError(f"a key is str or bytes, or in an index database int, not {type(key).__name__}; convert it")
