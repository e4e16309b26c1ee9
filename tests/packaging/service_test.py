#!/usr/bin/env python3
"""Does with a service's unit what systemd would: starts it as its user, waits for its word, asks, reloads, stops.

service_test.py UNIT URL_FILE
"""
import pathlib
import pwd
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile

TIMEOUT_S = 20


def setting(unit, name):
    return re.search(rf"^{name}=(.*)$", unit, re.MULTILINE)[1]


def become(user):
    account = pwd.getpwnam(user)
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups",
            "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


class NotifySocket:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0blindfuse-service-test")  # an abstract one, as systemd's may be
        self.socket.settimeout(TIMEOUT_S)

    def expect(self, *lines):
        message = self.socket.recv(4096).decode().splitlines()
        assert [line.partition("=")[0] for line in message] == [line.partition("=")[0] for line in lines], message
        for line, got in zip(lines, message):
            assert line in (got, got.partition("=")[0] + "=*"), f"expected {line}, got {got}"


def ask(url, key):
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(["blindfuse-client", "get", url, "--cache", cache, key], capture_output=True,
                              text=True, timeout=TIMEOUT_S)
    return done.returncode, done.stdout


def check(server, url_file, notify):
    notify.expect("READY=1")
    url = url_file.read_text().strip()
    answer = ask(url, "tea")
    assert answer == (0, "hot leaf juice\n"), answer
    assert ask(url, "water") == (3, ""), "a key that is not there"
    server.send_signal(signal.SIGHUP)
    notify.expect("RELOADING=1", "MONOTONIC_USEC=*")
    notify.expect("READY=1")
    assert ask(url, "tea") == answer, "after the reload"
    server.send_signal(signal.SIGTERM)
    notify.expect("STOPPING=1")
    status = server.wait(TIMEOUT_S)
    assert status == 0, f"stopped with status {status}"
    assert not url_file.exists(), "the file with the URL is still there"


def main():
    unit = pathlib.Path(sys.argv[1]).read_text()
    notify = NotifySocket()
    assert setting(unit, "Type") == "notify"
    assert setting(unit, "ExecReload") == "kill -HUP $MAINPID"
    command = become(setting(unit, "User")) + shlex.split(setting(unit, "ExecStart"))
    environment = {"PATH": "/usr/bin:/bin", "NOTIFY_SOCKET": "@blindfuse-service-test"}
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=log)
        try:
            check(server, pathlib.Path(sys.argv[2]), notify)
        except BaseException:
            server.kill()
            server.wait()
            log.seek(0)
            print(log.read(), file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
