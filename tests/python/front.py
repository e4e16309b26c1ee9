"""Servers before the real one that speak HTTP in unusual ways, or break it: what they send is a table of bytes."""

from __future__ import annotations

import socket
import threading
from typing import NamedTuple

import blindfuse
from proxy import CLOSE, Proxy

# Parts of a request's first line.
KINDS = {"manifest": "GET /v1/database", "table": "/shards", "hint": "/hint?", "query": "POST "}

# <length>, <body>, <half> and <chunks> stand for what the real server answered.
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: <length>\r\n\r\n<body>"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"


class Case(NamedTuple):
    """The answers to the first requests of a kind. Later ones are the server's. Then what comes of a look-up."""

    answers: tuple[bytes, ...]
    error: type[blindfuse.BlindfuseError] | None = None  # none: it has its value
    words: str = ""
    status: int | None = None
    fails: tuple[str, ...] = tuple(KINDS)  # for these kinds of requests; it works for the others


def refusal(status: bytes, *headers: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\n%bContent-Length: 3\r\n\r\nno\n" % (status, b"".join(line + b"\r\n" for line in headers))


BUSY, TOO_MANY = (refusal(status, b"Retry-After: 0") for status in (b"503 Busy", b"429 Too Many Requests"))
_protocol, _connection, _server = blindfuse.ProtocolError, blindfuse.ConnectionError, blindfuse.ServerError

# RFC 9110 and 9112 call the first ones right.
CASES = {
    "100": Case((b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE,)),
    "102 twice": Case((2 * b"HTTP/1.1 102 Processing\r\n\r\n" + WHOLE,)),
    "103": Case((b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nRetry-After: 9\r\n\r\n" + WHOLE,)),
    "unknown 1xx": Case((b"HTTP/1.1 199 \r\nContent-Type: text/plain\r\n\r\n" + WHOLE,)),
    "chunks": Case((CHUNKED + b"\r\n<chunks>0\r\n\r\n",)),
    "chunk extensions": Case((CHUNKED + b'\r\n0003;a=b;c="d"\r\n<start>\r\n<other chunks>0;e\r\n\r\n',)),
    "trailers": Case((CHUNKED + b"Trailer: X\r\n\r\n<chunks>0\r\nX: y\r\nServer-Timing: db;dur=5\r\n\r\n",)),
    "until it closes": Case((b"HTTP/1.1 200 OK\r\n\r\n<body>" + CLOSE,)),
    "HTTP/1.0": Case((b"HTTP/1.0 200 OK\r\nContent-Length: <length>\r\n\r\n<body>" + CLOSE,)),
    "no reason": Case((b"HTTP/1.1 200 \r\ncontent-length:<length>  \r\n\r\n<body>",)),
    "busy": Case((BUSY, BUSY)),
    "too many": Case((TOO_MANY, BUSY, TOO_MANY)),
    # Clients and servers that disagree.
    "always busy": Case(6 * (BUSY,), blindfuse.ServerBusyError, "status 503", 503),
    "always too many": Case(6 * (TOO_MANY,), blindfuse.ServerBusyError, "status 429", 429),
    "forbidden": Case((refusal(b"403 Forbidden"),), _server, "status 403; ask the server's operator", 403),
    "unauthorized": Case((refusal(b"401 Unauthorized"),), _server, "status 401; ", 401),
    "broken": Case((refusal(b"500 Oh"),), _server, "status 500; try again later", 500),
    "bad gateway": Case((refusal(b"502 Bad Gateway"),), _server, "status 502; try again later", 502),
    "gateway timeout": Case((refusal(b"504 Gateway Timeout"),), _server, "status 504; try again later", 504),
    "redirect": Case((refusal(b"308 Moved", b"Location: https://new.invalid/words/v1/database"),), _protocol,
                     "a redirect to https://new.invalid/words. "),
    "no content": Case((b"HTTP/1.1 204 No Content\r\n\r\n",), _protocol, "status 204"),
    "switch": Case((b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + WHOLE,), _protocol, "switches protocols"),
    "line feeds alone": Case((WHOLE.replace(b"\r\n", b"\n"),), _protocol, "does not follow HTTP/1.1"),
    "two lengths": Case((b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",), _protocol,
                        "does not follow HTTP/1.1"),
    "no chunk": Case((CHUNKED + b"\r\nxyz\r\n",), _protocol, "does not follow HTTP/1.1"),
    "endless head": Case((b"HTTP/1.1 200 OK\r\n" + 9000 * b"X: yyyyyyyy\r\n" + CLOSE,), _protocol, "too long a head"),
    "endless 1xx": Case((4000 * b"HTTP/1.1 103 Early Hints\r\n\r\n" + CLOSE,), _protocol, "too long a head"),
    "endless trailers": Case((CHUNKED + b"\r\n<chunks>0\r\n" + 9000 * b"X: yyyyyyyy\r\n" + CLOSE,), _protocol,
                             "too long a head"),
    "no HTTP": Case((b"220 mail.invalid ESMTP\r\n" + CLOSE,), _connection, "no HTTP answer came"),
    "half a head": Case((b"HTTP/1.1 200 OK\r\nContent-Le" + CLOSE,), _connection, "broke; try again later"),
    # Hints are resumed, and the first request of a connection is not repeated.
    "half a body": Case((WHOLE.replace(b"<body>", b"<half>") + CLOSE,), _connection, "broke; try again later",
                        fails=("manifest", "table", "query")),
    "half a chunk": Case((CHUNKED + b"\r\nffffff\r\n<half>" + CLOSE,), _connection, "broke; try again later",
                         fails=("manifest", "table", "query")),
    "nothing": Case((CLOSE,), _connection, "no HTTP answer came", fails=("manifest",)),
}


class Front(Proxy):
    """Answers requests of one kind as a case says, and passes all others on."""

    def __init__(self, upstream: str, case: Case, kind: str) -> None:
        self.answers = list(case.answers)
        self.kind = kind
        super().__init__(upstream)

    def __enter__(self) -> Front:
        return self

    def written(self, request: str, status: int, kind: str, answer: bytes) -> bytes:
        if KINDS[self.kind] not in request or not self.answers:
            return super().written(request, status, kind, answer)
        pieces = [answer[at : at + 1000] for at in range(3, len(answer), 1000)]
        other = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        template = self.answers.pop(0)
        for name, value in (("length", b"%d" % len(answer)), ("half", answer[: len(answer) // 2]), ("body", answer),
                            ("chunks", b"3\r\n%b\r\n" % answer[:3] + other), ("start", answer[:3]),
                            ("other chunks", other)):
            # Values hold no such names: they are JSON and numbers.
            template = template.replace(b"<%b>" % name.encode(), value)
        return template


class ConnectServer:
    """An HTTP proxy that knows CONNECT alone, and one name. It answers `answer`, and then is a tunnel to `port` if
    there is one."""

    def __init__(self, answer: bytes, port: int | None = None) -> None:
        self.answer = answer
        self.port = port
        self.heads: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.listener.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._handle, args=(client,), daemon=True).start()

    def _handle(self, client: socket.socket) -> None:
        with client:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                byte = client.recv(1)
                if not byte:
                    return
                head += byte
            self.heads.append(head.decode())
            try:
                client.sendall(self.answer.removesuffix(CLOSE))
                if self.port is None:
                    if not self.answer.endswith(CLOSE):
                        client.recv(1)
                    return
                with socket.create_connection(("127.0.0.1", self.port)) as server:
                    up = threading.Thread(target=pump, args=(client, server))
                    up.start()
                    pump(server, client)
                    up.join()
            except OSError:
                pass  # the client gave up

    def __enter__(self) -> ConnectServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
