"""A server between a client and the real one, which counts and holds what passes; and others."""

from __future__ import annotations

import http.client
import http.server
import threading
import urllib.parse

CLOSE = b"<close>"  # at the end of bytes after which the connection is closed


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def do_GET(self) -> None:
        self._pass_on(b"")

    def do_POST(self) -> None:
        self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

    def _pass_on(self, body: bytes) -> None:
        self.request_text = f"{self.command} {self.path}"
        self.server.requests.append(self.request_text)
        if self.command == "POST":
            self.server.bodies.append(body)
            self.server.asked.set()
            self.server.may_answer.wait(60)
        status, kind, answer = self.server.answer(self.command, self.path, body, dict(self.headers))
        written = self.server.written(self.request_text, status, kind, answer)
        self.close_connection = written.endswith(CLOSE)
        self.wfile.write(written.removesuffix(CLOSE))

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Proxy(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urllib.parse.urlsplit(upstream or "")
        self.requests: list[str] = []
        self.bodies: list[bytes] = []  # of requests for values
        self.asked = threading.Event()  # for values
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self.thread.start()

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that did not wait for its answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def queries(self) -> int:
        """How many requests asked for values."""
        return sum(request.startswith("POST") for request in self.requests)

    def answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection(self.upstream.netloc, timeout=60)
        kept = {name: value for name, value in headers.items() if name in ("Content-Type", "Range", "Authorization")}
        connection.request(method, path, body or None, kept)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, response.headers["Content-Type"], answer

    def written(self, request: str, status: int, kind: str, answer: bytes) -> bytes:
        """The bytes that go to the client."""
        return b"HTTP/1.1 %d Any\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (
            status, kind.encode(), len(answer)) + answer

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *error: object) -> None:
        self.may_answer.set()
        self.shutdown()
        self.server_close()
        self.thread.join()


class Page(Proxy):
    """Answers the same, whatever it is asked."""

    def __init__(self, body: bytes, status: int = 200, kind: str = "text/html") -> None:
        self.page = (status, kind, body)
        super().__init__()

    def answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str, bytes]:
        return self.page
