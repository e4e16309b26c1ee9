"""Servers and proxies before the real server, and both clients: the package, and the program of the same library."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Iterator
from urllib.parse import urlsplit

import pytest

import blindfuse
from front import CASES, KINDS, ConnectServer, Front
from proxy import CLOSE

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(params=["package", "program"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def look_up(client: str, url: str, cache: Path, **options: object) -> tuple[blindfuse.BlindfuseError | None, str]:
    """The error of the package, and the words of either client; or neither where the value is right."""
    if client == "program":
        command = [os.environ["BLINDFUSE_CLIENT"], "get", url, "word 7", f"--cache={cache}"]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.returncode) == ("meaning 7\n", 0) if not done.stderr else done.returncode in (1, 2)
        return None, done.stderr
    try:
        with blindfuse.connect(url, cache=cache, **options) as words:  # type: ignore[arg-type]
            assert words.get("word 7") == b"meaning 7"
    except blindfuse.BlindfuseError as error:
        return error, str(error)
    return None, ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_fronts(client: str, server: blindfuse.Server, cache: Path, name: str, kind: str) -> None:
    case = CASES[name]
    with Front(server.url, case, kind) as front:
        error, said = look_up(client, front.url, cache)
        assert not front.answers
        assert len(set(front.bodies)) == len(front.bodies), "a query was sent twice"
    if case.error is None or kind not in case.fails:
        assert said == ""
        return
    assert case.words in said
    if error is not None:
        assert type(error) is case.error
        assert getattr(error, "status", None) == case.status


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def tunnel(server: blindfuse.Server) -> Iterator[ConnectServer]:
    """A proxy for which every name is the server's."""
    with ConnectServer(ESTABLISHED, urlsplit(server.url).port) as proxy:
        yield proxy


def test_a_tunnel(client: str, tunnel: ConnectServer, cache: Path, environment: pytest.MonkeyPatch) -> None:
    # Only the proxy has a server of this name.
    assert look_up(client, "http://words.invalid", cache, proxy=f"http://{tunnel.address}") == (None, "")
    assert tunnel.heads == ["CONNECT words.invalid:80 HTTP/1.1\r\nHost: words.invalid:80\r\n\r\n"]


def test_a_user_of_a_proxy(client: str, tunnel: ConnectServer, cache: Path, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("http_proxy", f"http://al%20ice:p:w%40@{tunnel.address}/")
    assert look_up(client, "http://words.invalid:8080/", cache) == (None, "")
    (head,) = tunnel.heads
    assert f"\r\nProxy-Authorization: Basic {base64.b64encode(b'al ice:p:w@').decode()}\r\n" in head


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n", ""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 Fine\r\n\r\n", ""),
    ],
)
def test_unusual_tunnels(client: str, server: blindfuse.Server, cache: Path, answer: bytes, words: str) -> None:
    with ConnectServer(answer, urlsplit(server.url).port) as proxy:
        assert look_up(client, "http://words.invalid", cache, proxy=f"http://{proxy.address}") == (None, words)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 403 Filtered\r\n\r\n", "does not allow connections to words.invalid:80 (status 403)"),
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "asks for a user and a password"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno", "cannot reach words.invalid:80 (status 502)"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://x.invalid/\r\n\r\n", "with status 302; is it an HTTP proxy?"),
        (CLOSE, "no complete HTTP answer to CONNECT words.invalid:80"),
        (b"HTTP/1.1 200 O" + CLOSE, "no complete HTTP answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n" + CLOSE, "no complete HTTP answer"),
        (b"HTTP/1.1 200 OK\r\n" + 9000 * b"X: yyyyyyyy\r\n", "too long a head"),
        (4000 * b"HTTP/1.1 100 Continue\r\n\r\n", "too long a head"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "switches protocols"),
        (ESTABLISHED + b"HTTP/1.1 200 OK\r\n\r\n", "sent bytes before the server could"),
        (b"HTTP/1.1 200 OK\r\nX: ", "was not done in 2 s"),
        (b"", "was not done in 2 s"),
    ],
)
def test_broken_tunnels(client: str, cache: Path, answer: bytes, words: str) -> None:
    with ConnectServer(answer) as proxy:
        _, said = look_up(client, "http://words.invalid", cache, proxy=f"http://{proxy.address}", timeout=2)
        assert words in said
        assert proxy.address in said or "not done" in said
        assert len(proxy.heads) == 1


@pytest.mark.parametrize(
    ("url", "variables", "goes_through"),
    [
        ("http://words.invalid", {"http_proxy": "P"}, True),
        ("http://words.invalid", {"HTTP_PROXY": "P"}, False),  # a request of a CGI program can set it
        ("http://words.invalid", {"https_proxy": "P"}, False),
        ("https://words.invalid", {"HTTPS_PROXY": "P"}, True),
        ("https://words.invalid", {"https_proxy": "P", "HTTPS_PROXY": "http://wrong.invalid:1"}, True),
        ("https://words.invalid", {"http_proxy": "P"}, False),
        ("http://words.invalid", {"all_proxy": "P"}, True),
        ("https://words.invalid", {"ALL_PROXY": "P"}, True),
        ("http://words.invalid", {"http_proxy": "P", "all_proxy": "http://wrong.invalid:1"}, True),
        ("http://words.invalid", {"http_proxy": "", "all_proxy": "P"}, True),
        ("http://words.invalid", {"http_proxy": "P", "no_proxy": "*"}, False),
        ("http://words.invalid", {"http_proxy": "P", "NO_PROXY": "a.b, words.invalid"}, False),
        ("http://words.invalid", {"http_proxy": "P", "no_proxy": ".INVALID"}, False),
        ("http://words.invalid", {"http_proxy": "P", "no_proxy": "ords.invalid,words.invali"}, True),
        ("http://words.invalid", {"http_proxy": "P", "no_proxy": "", "NO_PROXY": "*"}, False),
        ("http://127.0.0.1:1", {"http_proxy": "P"}, False),
        ("http://127.9.9.9:1", {"all_proxy": "P"}, False),
        ("http://localhost:1", {"all_proxy": "P"}, False),
        ("http://[::1]:1", {"all_proxy": "P"}, False),
    ],
)
def test_variables(url: str, variables: dict[str, str], goes_through: bool, client: str, cache: Path,
                   environment: pytest.MonkeyPatch) -> None:
    with ConnectServer(b"HTTP/1.1 403 Filtered\r\n\r\n") as proxy:
        for name, value in variables.items():
            environment.setenv(name, f"http://{proxy.address}" if value == "P" else value)
        _, said = look_up(client, url, cache)
        assert said and len(proxy.heads) == goes_through
        if shutil.which("curl") and "words" in url:  # curl asks a proxy for this machine's addresses, too
            subprocess.run(["curl", "--silent", "--proxytunnel", url], stdout=subprocess.DEVNULL, timeout=60)
            assert len(proxy.heads) == 2 * goes_through, "curl does otherwise"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("socks5h://127.0.0.1:9050", "cannot use (socks5h://). Tor's HTTP proxy is at its HTTPTunnelPort"),
        ("socks5://127.0.0.1:9050", "cannot use (socks5://)"),
        ("https://127.0.0.1:3128", "cannot use (https://)"),
        ("127.0.0.1", "names a proxy without a port"),
        ("http://a b:80", "is not the address of a proxy"),
        ("http://u%zz@127.0.0.1:80", "two hex digits"),
        ("http://127.0.0.1:80/path", "names a proxy with a path"),
    ],
)
def test_proxies_that_cannot_be_used(client: str, value: str, words: str, server: blindfuse.Server, cache: Path,
                                     environment: pytest.MonkeyPatch) -> None:
    environment.setenv("all_proxy", value)
    error, said = look_up(client, "http://words.invalid", cache)
    assert "all_proxy" in said and words in said and "http://HOST:PORT" in said
    assert error is None or type(error) is blindfuse.InputError
    # This machine's servers need no proxy, and so none that can be used.
    assert look_up(client, server.url, cache) == (None, "")
    _, said = look_up(client, "http://words.invalid", cache, proxy=value)
    assert words in said and ("--proxy" in said) == (client == "program")


def test_an_empty_proxy(client: str, server: blindfuse.Server, cache: Path) -> None:
    _, said = look_up(client, server.url, cache, proxy="")
    assert "empty" in said


def test_a_proxy_that_is_not_there(client: str, cache: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        _, said = look_up(client, "http://words.invalid", cache, proxy=address)
        assert f"cannot connect to the proxy http://{address}" in said and "connection refused" in said


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
               "/CN=words.invalid", "-addext", "subjectAltName=DNS:words.invalid", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "cert.pem"


def test_tls_in_a_tunnel(client: str, database: blindfuse.Database, certificate: Path, cache: Path,
                         environment: pytest.MonkeyPatch) -> None:
    options = ["--tls-cert", str(certificate), "--tls-key", str(certificate.with_name("key.pem"))]
    with database.serve(arguments=options, threads=1) as server:
        with ConnectServer(ESTABLISHED, urlsplit(server.url).port) as proxy:
            environment.setenv("https_proxy", f"http://{proxy.address}")
            assert look_up(client, "https://words.invalid", cache, ca_file=certificate) == (None, "")
            assert [head.split("\r\n")[0] for head in proxy.heads] == ["CONNECT words.invalid:443 HTTP/1.1"]
            _, said = look_up(client, "https://other.invalid", cache, ca_file=certificate)
            assert "is for another name" in said
