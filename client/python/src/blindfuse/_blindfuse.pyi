"""The extension module: the C++ client library without Python's lock. See client/python/native."""

from typing import Callable, NoReturn

# Called with the stage's number, how much is done, and of how much (0: unknown).
_Report = Callable[[int, int, int], None]

__version__: str
QUERIES_PER_REQUEST: int

class ProcessToken:
    @staticmethod
    def current() -> ProcessToken: ...
    def is_current(self) -> bool: ...

class Stop:
    def __init__(self) -> None: ...
    def request(self) -> None: ...
    def __reduce__(self) -> NoReturn: ...

class Session:
    def close(self) -> None: ...
    def get(self, key: bytes | int, progress: _Report | None, stop: Stop | None) -> bytes | None: ...
    def look_up(
        self, keys: list[bytes] | list[int], progress: _Report | None, stop: Stop | None
    ) -> list[tuple[bytes | None, int, int, float, float, float, float, int, bool]]: ...
    def sync(
        self, verify: bool, progress: _Report | None, stop: Stop | None
    ) -> tuple[str, int, int, int, int, int, float]: ...
    def database(
        self, progress: _Report | None, stop: Stop | None
    ) -> tuple[str, bool, int, int, str, str, int, int, int, int, int, float, int, int]: ...
    def prepare(self, count: int, progress: _Report | None, stop: Stop | None) -> None: ...
    def prepared_count(self) -> int: ...
    def waiting_count(self) -> int: ...
    def signer(self) -> tuple[str, int, int, str]: ...
    def __reduce__(self) -> NoReturn: ...

def connect(
    url: str,
    cache: str,
    threads: int,
    prepare: int,
    timeout_s: int,
    ca_file: str,
    api_key: str,
    proxy: str,
    mode: str,
    hint_bytes_max: int,
    transfer_bytes_max: int,
    hint_memory_bytes_max: int,
    server_key: str,
    allow_rollback: bool,
    progress: _Report | None,
    stop: Stop | None,
) -> Session: ...
def note_interpreter_ends() -> None: ...
