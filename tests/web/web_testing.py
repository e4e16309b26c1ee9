"""What the tests and the measurements of the page share: servers with small databases, and Debian's Chromium."""

import base64
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "protocol"))
import plain_ed25519  # noqa: E402

SKIPPED = 77
FAKE_CLIENT = pathlib.Path(__file__).with_name("fake_client.js")
VALUES = [b"tea\thot leaf juice", b"coffee\thot bean juice", b"cocoa\thot chocolate", b"na\xc3\xafve\t\xc3\xa9t\xc3\xa9 \xe2\x98\x80",
          b"markup\t<b>bold</b><script>document.title='broken'</script>", b'menu\t{"drinks":["tea","coffee"],"open":true}']
DESKTOP = {"width": 1280, "height": 900}
TIMEOUT_MS = 120_000

options = None  # of the command line


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def use_tools(tools):
    """Goes on in the virtual environment that has Playwright; skips where there is none, or no browser."""
    python = tools.resolve() / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() != tools.resolve():
        if not python.exists():
            skip(f"there is no {python} (`make test` installs it)")
        os.execv(python, [str(python), *sys.argv])
    try:
        import axe_playwright_python  # noqa: F401
        import playwright  # noqa: F401
    except ImportError as error:
        skip(f"{tools} is not complete: {error}")
    if chromium() is None:
        skip("there is no chromium")


def chromium():
    return shutil.which("chromium")


def launch(playwright):
    # Chromium refuses to run as root in its own sandbox, and containers may not give it one.
    return playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def build_database(blindfuse, lines, folder, name="words", options=()):
    source = folder / f"{name}.tsv"
    source.write_bytes(b"".join(line + b"\n" for line in lines))
    subprocess.run([blindfuse, "build", source, "--output", folder / name, *options], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    return folder / name


def make_key(path, seed=bytes([1]) * 32):
    """Writes the private key as RFC 8410 has it; gives the public one."""
    data = base64.b64encode(bytes.fromhex("302e020100300506032b657004220420") + seed).decode()
    path.write_text(f"-----BEGIN PRIVATE KEY-----\n{data}\n-----END PRIVATE KEY-----\n")
    return plain_ed25519.public_key(seed).hex()


class LyingServer:
    """What a proxy sends as the manifest instead of that of `server`: the same, signed as a test wants it."""

    seed, other_seed = bytes([1]) * 32, bytes([2]) * 32
    key = plain_ed25519.public_key(seed).hex()

    def __init__(self, server):
        self.members = json.loads(server.get("v1/database")[1])
        self.send_plain()

    @staticmethod
    def text_of(members):
        # A proxy promises as many bytes as its server has.
        return json.dumps(members).encode().ljust(4096)

    def send_plain(self):
        self.manifest = self.text_of(self.members)

    def sign(self, number, seed=seed, since=0, **changed):
        made = self.members | {"sequence": number, "time": since + number,
                               "signer": plain_ed25519.public_key(seed).hex()}
        text = json.dumps(made, sort_keys=True, separators=(",", ":"))
        made["signature"] = plain_ed25519.sign(seed, b"blindfuse/manifest/1" + text.encode()).hex()
        self.manifest = self.text_of(made | changed)

    def tamper(self, path, _):
        return self.manifest if path.endswith("/v1/database") else None


class Server:
    """`blindfuse serve`, until the end of the block; dies with this process, whatever becomes of it."""

    def __init__(self, blindfuse, database, *options, port=None):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", blindfuse, "serve", database, "--listen", f"127.0.0.1:{self.port}",
             "--access-log", *options], stdout=self.log, stderr=self.log)
        self.wait()

    def wait(self):
        for _ in range(600):
            with contextlib.suppress(OSError), urllib.request.urlopen(self.url + "health/ready", timeout=5):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("the server did not start:\n" + self.log_text())

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode()

    def get(self, path=""):
        """Status and body."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=90)
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Proxy:
    """A reverse proxy that has the server's root at /some/where/. tamper(path, content) gives what it sends instead of
    the content of a success, or None for that; the header of less still promises all of it."""

    PREFIX = "/some/where"

    def __init__(self, server, tamper=lambda path, content: None):
        class Handler(http.server.BaseHTTPRequestHandler):
            def forward(self):
                if not self.path.startswith(Proxy.PREFIX + "/"):
                    self.send_error(404)
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
                headers = {name: value for name, value in self.headers.items()
                           if name.lower() in ("accept-encoding", "authorization", "content-type", "range")}
                request = urllib.request.Request(server.url + self.path[len(Proxy.PREFIX) + 1:], body, headers,
                                                 method=self.command)
                try:
                    answer = urllib.request.urlopen(request, timeout=60)
                except urllib.error.HTTPError as error:
                    answer = error
                with answer:
                    content = answer.read()
                    if answer.status < 300 and (changed := tamper(self.path, content)) is not None:
                        content = changed
                    self.send_response(answer.status)
                    for name, value in answer.headers.items():
                        if name.lower() == "content-length":
                            value = str(max(int(value), len(content)))
                        if name.lower() not in ("connection", "keep-alive"):
                            self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)

            do_GET = do_HEAD = do_POST = forward

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}{Proxy.PREFIX}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from playwright.sync_api import sync_playwright
        cls.playwright = cls.enterClassContext(sync_playwright())
        cls.browser = launch(cls.playwright)
        cls.addClassCleanup(cls.browser.close)
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.database = build_database(options.blindfuse, VALUES, cls.folder)

    def serve(self, *arguments, database=None, port=None):
        return self.enterContext(Server(options.blindfuse, database or self.database, *arguments, port=port))

    def open(self, url, fake=None, expect_errors=False, **context):
        """The page at `url`; with `fake`, its client is the stand-in, which does as that says."""
        context = self.browser.new_context(**{"viewport": DESKTOP, **context})
        self.addCleanup(context.close)
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        self.requests, self.complaints = [], []
        context.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        # Violations of the policy, and exceptions; a server that does not answer is in the console, too.
        page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" and not expect_errors else None)
        if fake is not None:
            context.route("**/client/blindfuse.js", lambda route: route.fulfill(
                path=FAKE_CLIENT, content_type="text/javascript"))
            page.add_init_script(f"window.fakeClient = {json.dumps(fake)}")
        page.goto(url)
        return page

    def await_ready(self, page):
        page.locator("#status", has_text="Ready.").wait_for()

    def look_up(self, page, key):
        """The text that the page shows for a key, typed and sent with the keyboard."""
        page.locator("#key").fill(key)
        page.locator("#key").press("Enter")
        self.await_answer(page, key)
        return page.locator("#answer .value, #answer pre, #answer .note").first.inner_text()

    def await_answer(self, page, key):
        """Waits for the answer, and for what the server saw of it, which is shown a moment later."""
        whole = re.compile(f"^{re.escape(key)}$")
        page.locator("#answer h2", has_text=whole).wait_for()
        page.locator(".looks .word").last.filter(has_text=whole).wait_for()

    def assert_accessible(self, page):
        from axe_playwright_python.sync_playwright import Axe
        # Colours of what is still fading in are not its colours.
        page.evaluate("Promise.allSettled(document.getAnimations().map((animation) => animation.finished))")
        violations = Axe().run(page).response["violations"]
        self.assertEqual([(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in violations], [])

    def assert_no_sideways_scrolling(self, page):
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0)
