"""Hostile clients: slow heads, half bodies, resets, answers that are not read, records that are not TLS, requests that
are none. Each goes on until it is told to stop, with one kind of visit after another, chosen at random."""

import base64
import collections
import os
import random
import socket
import ssl
import struct
import threading

# Between visits: this many clients come again and again, and leave the machine to the server.
PAUSE_SECONDS = 0.5


class Closed(Exception):
    """The server has closed the connection."""


class HostileClients:
    """visit_seconds: what a visit waits at most for the server to say or to end something."""
    def __init__(self, server, database, count, api_key, visit_seconds):
        self.server = server
        self.database = database
        self.api_key = api_key
        self.visit_seconds = visit_seconds
        self.query_bytes = database.query_bytes()
        self.context = ssl.create_default_context(cafile=database.folder / "cert.pem")
        self.stopping = threading.Event()
        self.visits = collections.Counter()
        self.threads = [threading.Thread(target=self.go_on, args=[random.Random(seed)], daemon=True)
                        for seed in range(count)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        """How many visits of each kind there were."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        return self.visits

    def go_on(self, chance):
        kinds = [send_slow_head, send_slow_body, send_half_a_body, reset_after_a_query, leave_hint_unread,
                 leave_answers_unread, read_hint_slowly, send_no_tls, break_a_record, send_nonsense, use_wrong_key,
                 say_nothing]
        while not self.stopping.is_set():
            kind = chance.choice(kinds)
            name = kind.__name__
            try:
                kind(Visit(self, chance))
            except TimeoutError:
                name += " (waited in vain)"
            except (OSError, Closed):
                name += " (closed)"  # by a server that is right to
            self.visits[name] += 1
            self.stopping.wait(chance.random() * 2 * PAUSE_SECONDS)


class Visit:
    """One connection at most."""
    def __init__(self, clients, chance):
        self.clients = clients
        self.chance = chance
        self.seconds = clients.visit_seconds
        self.socket = None

    def __del__(self):
        if self.socket is not None:
            self.socket.close()

    def connect(self, tls=True):
        self.socket = socket.create_connection(("127.0.0.1", self.clients.server.port), timeout=self.seconds)
        if tls and self.clients.server.scheme == "https":
            self.socket = self.clients.context.wrap_socket(self.socket, server_hostname="localhost")

    def send(self, data):
        self.socket.sendall(data)

    def pause(self, seconds):
        if self.clients.stopping.wait(seconds):
            raise Closed

    def send_slowly(self, data):
        for byte in data[:self.seconds]:
            self.send(bytes([byte]))
            self.pause(1)

    def read_to_the_end(self):
        while self.socket.recv(65536):
            pass

    def head(self, method, target, length=None, key=None, kind="application/octet-stream"):
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost",
                 f"Authorization: Bearer {key or self.clients.api_key}"]
        if length is not None:
            lines += [f"Content-Type: {kind}", f"Content-Length: {length}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def epoch(self):
        return f"/v1/epochs/{self.clients.database.epoch()}"

    def queries(self, count):
        """A head and a body that the server has to answer."""
        body = bytes(count * self.clients.query_bytes)
        return self.head("POST", f"{self.epoch()}/queries", len(body)), body

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def send_slow_head(visit):
    visit.connect()
    visit.send_slowly(visit.head("GET", "/v1/database"))


def send_slow_body(visit):
    visit.connect()
    head, body = visit.queries(4)
    visit.send(head + body[:-visit.seconds])
    visit.send_slowly(body[-visit.seconds:])


def send_half_a_body(visit):
    visit.connect()
    head, body = visit.queries(2)
    visit.send(head + body[:visit.chance.randrange(len(body))])


def reset_after_a_query(visit):
    visit.connect()
    visit.send(b"".join(visit.queries(1)))
    visit.pause(visit.chance.random() / 10)
    visit.reset()


def leave_hint_unread(visit):
    visit.connect()
    visit.send(visit.head("GET", f"{visit.epoch()}/hint"))
    visit.pause(visit.seconds)


def leave_answers_unread(visit):
    visit.connect()
    for _ in range(4):
        visit.send(b"".join(visit.queries(4)))
    visit.pause(visit.seconds)


def read_hint_slowly(visit):
    visit.connect()
    visit.send(visit.head("GET", f"{visit.epoch()}/hint"))
    for _ in range(visit.seconds):
        if not visit.socket.recv(100):
            raise Closed
        visit.pause(1)


def send_no_tls(visit):
    visit.connect(tls=False)
    visit.send(visit.chance.randbytes(visit.chance.randrange(1, 2000)))
    visit.read_to_the_end()


def break_a_record(visit):
    """After a good handshake, a record that does not authenticate."""
    visit.connect()
    os.write(visit.socket.fileno(), b"\x17\x03\x03" + struct.pack(">H", 64) + visit.chance.randbytes(64))
    visit.read_to_the_end()


def send_nonsense(visit):
    visit.connect()
    epoch = visit.epoch()
    visit.send(visit.chance.choice([
        visit.head("POST", f"{epoch}/queries", 1 << 40),
        visit.head("POST", f"{epoch}/queries", 3) + b"abc",
        visit.head("POST", f"{epoch}/queries", 14, kind="application/json") + b'{"queries":[1]',
        visit.head("POST", f"{epoch}/queries", 12, kind="application/json") + base64.b64encode(b"123456789"),
        visit.head("GET", f"{epoch}/shards?" + "x=1&" * 3000),
        visit.head("GET", "/v1/epochs/" + "0" * 64 + "/hint"),
        visit.head("DELETE", epoch),
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
        b"GET /" + b"a" * 100_000,
        b"\0" * 1000,
    ]))
    visit.read_to_the_end()


def use_wrong_key(visit):
    visit.connect()
    for _ in range(10):
        visit.send(visit.head("GET", f"{visit.epoch()}/hint", key=visit.chance.randbytes(16).hex()))
        if not visit.socket.recv(65536):
            raise Closed


def say_nothing(visit):
    visit.connect(tls=visit.chance.random() < 0.5)
    visit.read_to_the_end()
