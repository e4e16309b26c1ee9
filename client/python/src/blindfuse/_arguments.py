"""Checks of arguments: each returns what the extension module takes."""

from __future__ import annotations

import math
import os

from ._errors import InputError

_TIMEOUT_MAX_S = 86400


def number(name: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}= takes an int, not {type(value).__name__}")
    if not least <= value <= most:
        raise InputError(f"{name}={value} is out of range; it takes {least} to {most}")
    return value


def seconds(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"timeout= takes a number of seconds, not {type(value).__name__}")
    if not 0 < value <= _TIMEOUT_MAX_S:
        raise InputError(f"timeout={value} is out of range; it takes seconds, above 0 and up to {_TIMEOUT_MAX_S}")
    return math.ceil(value)


def path(name: str, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}= takes a path, not {type(value).__name__}")
    path: object = os.fspath(value)
    if not isinstance(path, str):
        raise TypeError(f"{name}= takes a path that is text; os.fsdecode() makes it so")
    if not path or "\0" in path:
        raise InputError(f"{name}= is not a path; leave it out for the default")
    return os.path.expanduser(path)


def mode(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"mode= takes a str, not {type(value).__name__}")
    if value not in ("hint", "packed"):
        raise InputError(f"mode={value!r} is not a mode; it takes 'hint', 'packed', or None for either")
    return value


def server_key(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"server_key= takes a str, not {type(value).__name__}")
    if len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise InputError("server_key= is not a public key: 64 digits 0-9 and a-f")
    return value


def text(name: str, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name}= takes a str, not {type(value).__name__}")
    if not value:
        raise InputError(f"{name}= is empty; leave it out where there is none")
    return value
