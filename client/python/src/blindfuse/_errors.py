"""The errors of a client. Every message is one line, and says what to do."""

from __future__ import annotations

import builtins


class BlindfuseError(Exception):
    """All errors of this package are of this class."""


class InputError(BlindfuseError, ValueError):
    """A key, an option or a URL is wrong; or the client is closed, or was made before a fork."""


class ProtocolError(BlindfuseError):
    """The answer did not come from a blindfuse server, or from one that this client understands. It was discarded."""


class SignatureError(ProtocolError):
    """The database is not signed as it has to be, or is older than one seen before. Nothing of it was used."""


class SignerWarning(UserWarning):
    """Without a server_key: the signer of the database changed, or there is none any more, or it was rolled back."""


class CacheError(BlindfuseError):
    """A hint on disk is missing, or is not what was downloaded."""


class ResourceError(BlindfuseError):
    """This machine lacks memory, or its disk failed."""


class ConnectionError(BlindfuseError, builtins.ConnectionError):
    """No server answers, the connection broke, or the call took too long."""


class ServerError(BlindfuseError):
    """The server answered with an error; the message holds its own words."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ServerBusyError(ServerError):
    """Status 503 or 429, again and again: the server is busy. `retry_after` seconds is what it asks for."""

    def __init__(self, message: str, status: int = 503, retry_after: int | None = None) -> None:
        super().__init__(message, status)
        self.retry_after = retry_after


class NotAskedError(BlindfuseError):
    """Each request is for several keys, and some keys of the call were not asked for, as others took the places.

    The number of requests does not depend on keys, so there was no further one. look_up() says which keys were not
    asked for. Ask for them with the keys of your next call, or alone if the server may see one more request. The same
    list would leave them out again.
    """


class CancelledError(BlindfuseError):
    """The call was stopped before it was done, as when its client was closed by another thread."""


_KINDS: dict[str, type[BlindfuseError]] = {
    "input": InputError,
    "protocol": ProtocolError,
    "signature": SignatureError,
    "cache": CacheError,
    "resource": ResourceError,
    "connection": ConnectionError,
    "not-asked": NotAskedError,
}

# Messages of the library that tell a person at the command line what helps.
_CURES = {
    "with: blindfuse-client sync --verify URL": "with sync(verify=True)",
    "name the file of yours with --api-key-file": "pass yours as api_key=",
    "with --cache": "with cache=",
    "http.api_key is": "api_key= is",
    "with --ca-file": "with ca_file=",
    "(an API key is read from --api-key-file)": "(pass an API key as api_key=)",
    "the option --proxy": "proxy=",
    "--hint-bytes-max": "hint_bytes_max=",
    "(--mode)": "(mode=)",
    "(--server-key)": "(server_key=)",
    "(--allow-rollback)": "(allow_rollback=True)",
    "with --timeout": "with timeout=",
    "--transfer-bytes-max": "transfer_bytes_max=",
}


def not_asked(count: int, key_count: int) -> NotAskedError:
    """The error when `count` of a call's keys were not asked for."""
    return NotAskedError(
        f"{count} of {key_count} keys {'was' if count == 1 else 'were'} not asked for, as others took the places in "
        "the requests: ask for them with the keys of your next call; look_up() says which they are"
    )


# The library's message for a number in a keyword database. Here numbers are of another type than keys.
_NOT_BY_NUMBER = "this database is asked by key, not by number"


def in_our_words(message: str) -> str:
    for words, cure in _CURES.items():
        message = message.replace(words, cure)
    return message


def from_native(kind: str, message: str, status: int | None, retry_after: int | None) -> Exception:
    """The exception for an error of the library; called by the extension module."""
    if message == _NOT_BY_NUMBER:
        return TypeError(f"{message}; give the key as str or bytes")
    message = in_our_words(message)
    if kind == "busy":
        return ServerBusyError(message, status or 503, retry_after)
    if kind == "server":
        return ServerError(message, status or 0)
    if kind == "cancelled":
        return CancelledError("the call was stopped before it was done")
    return _KINDS[kind](message)
