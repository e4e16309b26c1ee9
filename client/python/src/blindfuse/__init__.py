"""Private look-ups: a server answers which value a key has, and learns neither the key nor whether it is there.

    import blindfuse
    words = blindfuse.connect("http://127.0.0.1:8080")
    words.get("serendipity")            # bytes, or None
    words.get_many(["owl", "nowl"])     # {'owl': b'...', 'nowl': None}
"""

import atexit

from ._blindfuse import QUERIES_PER_REQUEST, __version__, note_interpreter_ends
from ._client import Client
from ._connecting import aconnect, connect
from ._errors import (
    CacheError,
    InputError,
    BlindfuseError,
    ConnectionError,
    NotAskedError,
    ResourceError,
    ProtocolError,
    ServerBusyError,
    ServerError,
    SignatureError,
    SignerWarning,
    CancelledError,
)
from ._progress import Progress
from ._results import Answer, DatabaseInfo, Signer, SyncResult
from ._server import BuildReport, Database, Server, serve

# Daemon threads may still be in a look-up then.
atexit.register(note_interpreter_ends)
del atexit, note_interpreter_ends

__all__ = [
    "QUERIES_PER_REQUEST",
    "CacheError",
    "Answer",
    "InputError",
    "BlindfuseError",
    "BuildReport",
    "Client",
    "ConnectionError",
    "Database",
    "DatabaseInfo",
    "NotAskedError",
    "ResourceError",
    "Progress",
    "ProtocolError",
    "Server",
    "ServerBusyError",
    "ServerError",
    "SignatureError",
    "Signer",
    "SignerWarning",
    "CancelledError",
    "SyncResult",
    "__version__",
    "aconnect",
    "connect",
    "serve",
]
