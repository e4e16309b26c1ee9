from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

import blindfuse
from proxy import Proxy

ITEMS: dict[str | bytes, str | bytes] = {f"word {i}": f"meaning {i}" for i in range(2000)}
ITEMS[b"\x00\xff\n\t"] = b"\xfe\x00\r\n"
ITEMS["Eule"] = "owl \N{OWL}"
ITEMS["empty"] = b""


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> blindfuse.Database:
    return blindfuse.Database.build(ITEMS, tmp_path_factory.mktemp("words") / "db", threads=1)


@pytest.fixture(scope="session")
def server(database: blindfuse.Database) -> Iterator[blindfuse.Server]:
    with database.serve(threads=1) as running:
        yield running


@pytest.fixture(scope="session")
def index_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[blindfuse.Server]:
    path = tmp_path_factory.mktemp("numbers") / "db"
    squares = (str(i * i) for i in range(500))
    with blindfuse.Database.build(squares, path, index=True).serve(threads=1) as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def words(server: blindfuse.Server, cache: Path) -> Iterator[blindfuse.Client]:
    with server.connect(cache=cache) as client:
        yield client


@pytest.fixture
def proxy(server: blindfuse.Server) -> Iterator[Proxy]:
    with Proxy(server.url) as between:
        yield between


@pytest.fixture
def held(proxy: Proxy, cache: Path) -> Iterator[tuple[blindfuse.Client, Proxy]]:
    """A client whose queries get no answers until the proxy's `may_answer` is set."""
    with blindfuse.connect(proxy.url, cache=cache) as client:
        client.sync()
        proxy.may_answer.clear()
        yield client, proxy
        proxy.may_answer.set()
