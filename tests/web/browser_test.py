#!/usr/bin/env python3
"""The page that the server shows to browsers, in Chromium: with the real client against real servers, and, for what these
show too rarely or too briefly, with a stand-in for the client. Exits with 77, for "skipped", where Chromium, Playwright
or the page is missing."""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import web_testing
from web_testing import LyingServer, Proxy, Server, build_database, make_key

VALUES = [b"tea\thot leaf juice", b"coffee\thot bean juice", b"cocoa\thot chocolate", b"na\xc3\xafve\t\xc3\xa9t\xc3\xa9 \xe2\x98\x80",
          b"markup\t<b>bold</b><script>document.title='broken'</script>", b'menu\t{"drinks":["tea","coffee"],"open":true}']
PHONE = {"width": 320, "height": 640}
DESKTOP = {"width": 1280, "height": 900}
TIMEOUT_MS = 120_000

options = None  # of the command line


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from playwright.sync_api import sync_playwright
        cls.playwright = cls.enterClassContext(sync_playwright())
        cls.browser = web_testing.launch(cls.playwright)
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
                path=web_testing.FAKE_CLIENT, content_type="text/javascript"))
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


class RealClient(PageTest):
    def test_looks_words_up_and_asks_no_other_host(self):
        server = self.serve()
        self.assertIn(f"page: {server.url}", server.log_text())
        page = self.open(server.url)
        self.await_ready(page)
        self.assertEqual(self.look_up(page, "tea"), "hot leaf juice")
        self.assertEqual(self.look_up(page, "coffee"), "hot bean juice")
        self.assertEqual(self.look_up(page, "naïve"), "été ☀")
        self.assertEqual(self.look_up(page, "water"), "Not there.")
        self.assertTrue(all(url.startswith((server.url, "data:", "blob:" + server.url)) for url in self.requests), self.requests)
        self.assertEqual(self.complaints, [])

    def test_shows_the_bytes_that_went_out(self):
        page = self.open(self.serve().url)
        sent = []
        page.context.on("request", lambda request: sent.append(request.post_data_buffer)
                        if request.url.endswith("/queries") else None)
        self.await_ready(page)
        for key in ("tea", "water"):
            self.look_up(page, key)
        self.assertEqual(page.locator(".looks canvas").count(), 2)
        shown = [bytes.fromhex(text) for text in page.locator(".looks .hex").all_inner_texts()]
        self.assertEqual([body[:len(first)] for body, first in zip(sent, shown)], shown)
        self.assertEqual(page.locator(".looks .word").all_inner_texts(), ["tea", "water"])
        self.assertRegex(page.locator(".verdict").inner_text(), f"Both queries have {len(sent[0]):,} bytes")

    def test_takes_a_new_epoch_in_the_middle(self):
        database = build_database(options.blindfuse, VALUES, self.folder, "changing")
        server = self.serve("--grace-seconds", "0", "--watch-seconds", "1", database=database)
        page = self.open(server.url, expect_errors=True)
        self.await_ready(page)
        before = json.loads(server.get("v1/database")[1])["epoch"]
        self.assertEqual(self.look_up(page, "water"), "Not there.")
        build_database(options.blindfuse, [*VALUES, b"water\tcold"], self.folder, "changing")
        while server.get(f"v1/epochs/{before}/shards")[0] != 410:
            time.sleep(0.1)
        self.assertEqual(self.look_up(page, "water"), "cold")

    def test_says_when_the_server_has_gone_and_tries_again(self):
        server = self.serve()
        page = self.open(server.url, expect_errors=True)
        self.await_ready(page)
        server.stop()
        page.locator("#key").fill("tea")
        page.locator("#key").press("Enter")
        page.get_by_text("The server does not answer").wait_for()
        self.assert_accessible(page)
        self.serve(port=server.port)
        page.get_by_role("button", name="Try again").click()
        self.await_answer(page, "tea")
        self.assertEqual(page.locator("#answer .value").inner_text(), "hot leaf juice")

    def test_asks_for_an_api_key(self):
        keys = self.folder / "keys"
        key = subprocess.run([options.blindfuse, "api-key", "tester", "--file", keys], check=True, capture_output=True,
                             text=True, timeout=60).stdout.split()[-1]
        page = self.open(self.serve("--api-keys", str(keys)).url, expect_errors=True)
        page.get_by_text("This server wants an API key").wait_for()
        self.assert_accessible(page)
        page.get_by_role("textbox", name="API key").fill("what a key cannot be")
        page.get_by_role("button", name="Continue").click()
        page.get_by_text("The server does not know that one").wait_for()
        page.get_by_role("textbox", name="API key").fill("wrong")
        page.get_by_role("button", name="Continue").click()
        page.get_by_text("The server does not know that one").wait_for()
        page.get_by_role("textbox", name="API key").fill(key)
        page.get_by_role("textbox", name="API key").press("Enter")
        self.await_ready(page)
        self.assertEqual(self.look_up(page, "cocoa"), "hot chocolate")

    def test_works_behind_a_proxy_in_a_folder(self):
        proxy = self.enterContext(Proxy(self.serve()))
        page = self.open(proxy.url)
        self.await_ready(page)
        self.assertEqual(self.look_up(page, "tea"), "hot leaf juice")
        self.assertTrue(all(url.startswith((proxy.url, "data:", "blob:")) for url in self.requests), self.requests)

    def test_looks_numbers_up(self):
        database = build_database(options.blindfuse, VALUES, self.folder, "numbered", ["--index"])
        page = self.open(self.serve(database=database).url)
        self.await_ready(page)
        page.get_by_label("Number to look up").fill("not a number")
        page.get_by_role("button", name="Look up").click()
        page.get_by_text("This database has numbers for keys").wait_for()
        self.assertIn("hot bean juice", self.look_up(page, "1"))

    def test_looks_up_packed_responses(self):
        database = build_database(options.blindfuse, VALUES, self.folder, "packed", ["--mode", "packed"])
        page = self.open(self.serve(database=database).url)
        self.await_ready(page)
        self.assertEqual(self.look_up(page, "tea"), "hot leaf juice")
        self.assertEqual(self.look_up(page, "cocoa"), "hot chocolate")
        page.get_by_text("circular security").wait_for()

    def test_keeps_to_the_key_in_its_address(self):
        key = make_key(self.folder / "words.key")
        server = self.serve(database=build_database(
            options.blindfuse, VALUES, self.folder, "signed", ["--sign", self.folder / "words.key"]))
        page = self.open(f"{server.url}#server-key={key}")
        self.await_ready(page)
        self.assertEqual(self.look_up(page, "tea"), "hot leaf juice")
        says = page.locator("#signer").inner_text()
        self.assertIn(f"with the key {key}, which is the one in this page\u2019s address", says)
        self.assertIn("No key protects against the server that sent this page", says)
        self.assertIn(f"--server-key {key}", page.locator("#command").inner_text())
        self.assert_accessible(page)
        self.assertEqual(self.complaints, [])
        page.evaluate(f"location.hash = '#server-key={'0' * 64}'")  # the page loads again
        page.get_by_text("This database is not to be trusted").wait_for()
        self.assertIn("signed by another key", page.locator("#setup-text").inner_text())
        for wrong, message in {"server-key=": "64 digits", "server-key": "64 digits", "server_key=": "no setting server_key"}.items():
            self.open(f"{server.url}#{wrong}").locator("#setup-text", has_text=message).wait_for()

    def test_can_be_left_out(self):
        server = self.serve("--no-page")
        for path in ("", "page/page.js", "client/blindfuse.js"):
            self.assertEqual(server.get(path)[0], 404)
        self.assertNotIn("page:", server.log_text())


class ClientAlone(PageTest):
    """The client without the page: what a program of somebody else's sees of it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lines = [b"k%d\tv%d" % (i, i) + b"." * 300 for i in range(60_000)]
        cls.database = build_database(options.blindfuse, lines, cls.folder, "many", ["--mode", "hint"])

    def visit(self, replaced=None, url=None):
        """A page next to the client of the server, or of the one at `url`; some of the client's files are other
        ones."""
        context = self.browser.new_context()
        self.addCleanup(context.close)
        for name, body in (replaced or {}).items():
            context.route(f"**/client/{name}", lambda route, _, body=body: route.abort() if body is None else
                          route.fulfill(body=body, content_type="text/javascript"))
        page = context.new_page()
        page.goto((url or self.server.url) + "openapi.json")
        return page

    def file(self, name):
        return self.server.get(f"client/{name}")[1].decode()

    def run_in(self, page, script):
        """The result of `script`, which has `connect` and failed(function), the error of that one."""
        return page.evaluate("""async () => {
          const {connect} = await import(new URL('client/blindfuse.js', location));
          const failed = (work) => work().then(() => null, ({code, message, isOutdated}) => ({code, message, isOutdated}));
          %s
        }""" % script)

    def setUp(self):
        self.server = self.serve()

    def test_looks_many_keys_up(self):
        values, left = self.run_in(self.visit(), """
          const client = await connect('/');
          const values = await client.getMany(Array.from({length: 150}, (_, i) => 'k' + i));
          await client.prepare(0);
          return [values.map((value) => new TextDecoder().decode(value)), await failed(() => client.prepare(1000).then(() =>
            client.prepare(1)))];""")
        self.assertEqual(values, [f"v{i}" + "." * 300 for i in range(150)])
        self.assertEqual(left["code"], "input")

    def test_looks_up_packed_responses(self):
        lines = [b"k%d\tv%d" % (i, i) + b"." * 100 for i in range(500)]
        self.server = self.serve(database=build_database(options.blindfuse, lines, self.folder, "packed", ["--mode", "packed"]))
        mode, synced, ready, values = self.run_in(self.visit(), """
          const client = await connect('/', {prepareAhead: 0});
          const synced = await client.sync();
          await client.prepare(2);
          const ready = client.preparedCount;
          const values = await client.getMany([...Array.from({length: 70}, (_, i) => 'k' + 7 * i), 'nowhere']);
          return [client.info.mode, synced, ready, values.map((value) => value && new TextDecoder().decode(value))];""")
        self.assertEqual((mode, ready), ("packed", 2))
        self.assertEqual(synced["partCount"], synced["shardsFetched"])
        self.assertLess(synced["bytesFetched"], 50_000)
        self.assertEqual(values, [f"v{7 * i}" + "." * 100 for i in range(70)] + [None])
        refused = self.run_in(self.visit(), """
          return failed(async () => (await connect('/', {mode: 'hint'})).sync());""")
        self.assertEqual(refused["code"], "input")
        self.assertIn("(connect's mode)", refused["message"])

    def test_looks_up_packed_responses_of_two_levels(self):
        lines = [b"k%d\tv%d" % (i, i) for i in range(500)]
        for name, key in (("two", []), ("short", ["--short-key"])):
            with self.subTest(name):
                database = build_database(options.blindfuse, lines, self.folder, name, ["--levels", "2", "--shards", "5", *key])
                self.server = self.serve(database=database)
                values, took = self.run_in(self.visit(), """
                  const client = await connect('/');
                  const values = await client.getMany([...Array.from({length: 20}, (_, i) => 'k' + 7 * i), 'nowhere']);
                  const one = await client.lookUp('k1');
                  return [values.map((value) => value && new TextDecoder().decode(value)), one];""")
                self.assertEqual(values, [f"v{7 * i}" for i in range(20)] + [None])
                # The mask alone has 2048 numbers, in 4 to 6 KB; without the second level there is none.
                self.assertGreater(took["responseBytes"], 2048 * 15 // 8)

    def test_asks_for_several_keys_with_a_request(self):
        lines = [b"k%d\tv%d" % (i, i) for i in range(500)]
        database = build_database(options.blindfuse, lines, self.folder, "several", ["--keys-per-request", "16"])
        self.server = self.serve(database=database)
        page = self.visit()
        asked = []
        page.context.on("request", lambda request: asked.append(request.url) if request.url.endswith("/queries") else None)
        info, values, answers = self.run_in(page, """
          const client = await connect('/', {prepareAhead: 0});
          const text = (value) => value && new TextDecoder().decode(value);
          const values = await client.getMany([...Array.from({length: 69}, (_, i) => 'k' + 7 * i), 'nowhere']);
          const answers = await client.lookUpMany(['k1', 'nowhere', 'k1']);
          return [client.info, values.map(text), answers.map(({value, asked, queryBytes}) => [text(value), asked, queryBytes])];""")
        self.assertEqual((info["keysPerRequest"], info["bucketCount"]), (16, 32))
        self.assertEqual(values, [f"v{7 * i}" for i in range(69)] + [None])
        share = -(-info["queryBytes"] // 3)
        self.assertEqual(answers, [["v1", True, share], [None, True, share], ["v1", True, share]])
        self.assertEqual(len(asked), 5 + 1)

    def test_says_that_keys_were_not_asked_for(self):
        # Too rare to wait for: the worker says that of every second key.
        text = self.file("worker.js")
        given = "    return {...all, info, signer, prepared};"
        self.assertIn(given, text)
        page = self.visit({"worker.js": text.replace(given, """
          all.costs.forEach((cost, i) => {
            cost.asked = i % 2 === 0;
            if (!cost.asked) all.values[i] = null;
          });
        """ + given)})
        answers, error, name = self.run_in(page, """
          const client = await connect('/');
          const answers = await client.lookUpMany(['k0', 'k1', 'k2']);
          const thrown = await client.getMany(['k0', 'k1', 'k2', 'k3']).catch((error) => error);
          return [answers.map(({asked}) => asked), {code: thrown.code, message: thrown.message}, thrown.name];""")
        self.assertEqual(answers, [True, False, True])
        self.assertEqual((error["code"], name), ("not-asked", "NotAskedError"))
        self.assertRegex(error["message"], "^2 of 4 keys were not asked for")

    def test_asks_for_all_keys_before_it_says_that_an_answer_cannot_be_decoded(self):
        # Requests that stop would tell the server that a key before them lies in a shard with a damaged hint.
        text = self.file("worker.js")
        begun = "    const all = {values: [], costs: []};"
        self.assertIn(begun, text)
        page = self.visit({"worker.js": text.replace(begun, """
          if (hasAnswered) {
            for (const path of pathsUnder(folder).filter(isFixed)) core.FS.writeFile(`${folder}/${path}`, 'damaged');
          }
        """ + begun)})
        asked = []
        page.context.on("request", lambda request: asked.append(request.url) if request.url.endswith("/queries") else None)
        error = self.run_in(page, """
          const client = await connect('/', {prepareAhead: 0});
          await client.get('k0');
          return failed(() => client.getMany(Array.from({length: 150}, (_, i) => 'k' + i)));""")
        self.assertEqual(error["code"], "cache")
        self.assertEqual(len(asked), 1 + 10)  # of 16 keys at most: 4 for each 64, and 2 for the last

    def test_asks_for_all_keys_before_it_decodes_an_answer(self):
        # The queries of every 64 keys are prepared right before they are sent.
        page = self.visit()
        stages = self.run_in(page, """
          const stages = [];
          const onProgress = ({stage}) => stages.push(stage);
          const client = await connect('/', {prepareAhead: 0, onProgress});
          await client.getMany(Array.from({length: 150}, (_, i) => 'k' + i));
          return stages;""")
        last_prepared = len(stages) - 1 - stages[::-1].index("preparing-queries")
        self.assertGreater(stages.index("decoding-answers"), last_prepared)

    def test_finds_a_damaged_hint_before_it_asks(self):
        text = self.file("worker.js")
        begun = "    const all = {values: [], costs: []};"
        self.assertIn(begun, text)
        page = self.visit({"worker.js": text.replace(begun, """
          core.FS.writeFile(`${folder}/${pathsUnder(folder).filter(isFixed).at(-1)}`, 'damaged');
        """ + begun)})
        asked = []
        page.context.on("request", lambda request: asked.append(request.url) if request.url.endswith("/queries") else None)
        errors = self.run_in(page, """
          const client = await connect('/', {prepareAhead: 0});
          await client.sync();
          const errors = [];
          for (let i = 0; i < 8; ++i) errors.push(await failed(() => client.get('k' + i)));
          return errors;""")
        self.assertEqual([error["code"] for error in errors], ["cache"] * 8)
        self.assertEqual(asked, [])

    def test_does_not_copy_an_answer_that_is_too_long(self):
        text = self.file("core_module.js")
        failing = "throw {...reply.error,"
        self.assertIn(failing, text)
        size = 32 << 20
        # Not from Playwright, which takes a minute to bring so much to a busy browser.
        proxy = self.enterContext(Proxy(self.server, lambda path, _: b" " * size if path.endswith("/v1/database") else None))
        page = self.visit({"core_module.js": text.replace(
            failing, "reply.error.message += ` (heap: ${core.HEAPU8.length})`; " + failing)}, proxy.url)
        error = self.run_in(page, "return failed(() => connect(new URL('.', location).href));")
        self.assertEqual(error["code"], "protocol")
        self.assertIn("is longer than 65536 bytes", error["message"])
        self.assertLess(int(re.search(r"heap: (\d+)", error["message"])[1]), size)

    def test_stays_with_the_kind_of_database_that_it_saw_first(self):
        numbered = build_database(options.blindfuse, VALUES, self.folder, "numbered", ["--index"])
        page = self.visit()
        self.run_in(page, "window.client = await connect('/', {prepareAhead: 0}); await client.sync();")
        self.server.stop()
        self.serve(database=numbered, port=self.server.port)
        asked = []
        page.context.on("request", lambda request: asked.append(request.url) if request.url.endswith("/queries") else None)
        errors = self.run_in(page, """
          const ask = async () => [await failed(() => client.get('1')), await failed(() => client.get('k7'))];
          const errors = await ask();
          const stop = new AbortController();
          const stopped = failed(() => client.sync({signal: stop.signal}));
          stop.abort();  // the next worker knows nothing of what there was
          await stopped;
          return [...errors, ...await ask()];""")
        self.assertEqual([error["code"] for error in errors], ["protocol"] * 4)
        self.assertIn("connect again", errors[0]["message"])
        self.assertEqual(len(asked), 1)

    def test_starts_helpers_where_they_help(self):
        text = self.file("preparation.js")
        start = "this.worker = new Worker("
        self.assertIn(start, text)
        telling = text.replace(start, "new BroadcastChannel('helpers').postMessage('one more'); " + start)

        def count(ask):
            return self.run_in(self.visit({"preparation.js": telling}), """
              let started = 0;
              new BroadcastChannel('helpers').onmessage = () => started++;
              const client = await connect('/', {prepareAhead: 0});
              %s
              for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 10));
              return [started, Math.min(navigator.hardwareConcurrency, 4) - 1];""" % ask)

        started, others = count("")
        self.assertEqual(started, others)  # before the first query is wanted
        lines = [b"k%d\tv%d" % (i, i) for i in range(500)]
        self.server = self.serve(database=build_database(options.blindfuse, lines, self.folder, "alone", ["--mode", "packed"]))
        self.assertEqual(count("await client.prepare(3); await client.getText('k7');")[0], 0)

    def test_replaces_a_worker_that_broke(self):
        # As a module does that ran out of its stack.
        text = self.file("core_module.js")
        call = "succeeded = core._blindfuse_call("
        self.assertIn(call, text)
        page = self.visit({"core_module.js": text.replace(
            call, "if (request.op === 'beginLookUp' && keys[0][0] === 33) throw new Error('overflow'); " + call)})
        error, ready, value = self.run_in(page, """
          const client = await connect('/');
          await client.prepare(1);
          const error = await failed(() => client.get('!'));
          return [error, client.preparedCount, await client.getText('k7')];""")
        self.assertEqual((error["code"], ready, value[:2]), ("resource", 0, "v7"))
        self.assertIn("overflow", error["message"])

    def test_starts_over_after_a_preparation_that_failed(self):
        text = self.file("core_module.js")
        done = "  const from = core._blindfuse_reply()"
        self.assertIn(done, text)
        page = self.visit({"core_module.js": text.replace(done, """
          if (request.op === 'prepareHere' && !self.failedOnce) {
            self.failedOnce = true;
            throw {code: 'resource', message: 'once'};
          }""" + done)})
        error, value = self.run_in(page, """
          const client = await connect('/', {prepareAhead: 0});
          return [await failed(() => client.prepare(3)), await client.getText('k9')];""")
        self.assertEqual((error["code"], error["message"], value[:2]), ("resource", "once", "v9"))

    def test_does_not_work_with_files_of_another_build(self):
        text = self.file("worker.js")
        build = "'./build_id.js'"
        self.assertIn(build, text)
        page = self.visit({"worker.js": text.replace(build, "'./other_id.js'"),
                           "other_id.js": "export const buildId = 'other';"})
        error = self.run_in(page, "return failed(() => connect('/'));")
        self.assertEqual((error["code"], error["isOutdated"]), ("connection", True))

    def test_says_when_its_files_do_not_load(self):
        for name in ("worker.js", "blindfuse_core.js", "blindfuse_core.wasm"):
            with self.subTest(name):
                error = self.run_in(self.visit({name: None}), "return failed(() => connect('/'));")
                self.assertEqual(error["code"], "connection")

    def test_goes_on_with_a_download_that_broke(self):
        page = self.visit()
        pieces = []

        def hand_on(route):
            pieces.append(route.request.url)
            route.abort() if len(pieces) > 2 else route.continue_()

        page.context.route(re.compile(r"/hint\?"), hand_on)
        error = self.run_in(page, "window.client = await connect('/'); return failed(() => client.sync());")
        self.assertEqual((error or {}).get("code"), "connection", pieces)
        page.context.unroute_all()
        result = self.run_in(page, "client.close(); return (await connect('/')).sync();")
        self.assertLess(result["bytesFetched"], result["hintBytes"] / 2)

    def test_asks_a_busy_server_again(self):
        page = self.visit()
        asked = collections.Counter()

        def refuse_twice(route):
            request = f"{route.request.method} {route.request.url}"
            asked[request] += 1
            if asked[request] > 2:
                route.continue_()
            else:
                route.fulfill(status=(503, 429)[asked[request] - 1], headers={"Retry-After": "0"}, body="busy")

        page.context.route(re.compile(r"/v1/"), refuse_twice)
        value = self.run_in(page, "return (await connect('/')).getText('k7');")
        self.assertEqual(value, "v7" + "." * 300)
        self.assertTrue(all(count > 2 for count in asked.values()), asked)
        self.assertEqual([kind for kind in ("GET", "POST") if any(request.startswith(kind) for request in asked)],
                         ["GET", "POST"])

    def test_passes_over_a_wrong_answer_in_the_browsers_cache(self):
        # Which keeps hints and tables for a year, as the server allows.
        for what in ("/hint?", "/shards"):
            wrong = []

            def tamper(path, content, what=what, wrong=wrong):
                if what in path and not wrong:
                    wrong.append(path)
                    return bytes(len(content))
                return None

            proxy = self.enterContext(Proxy(self.server, tamper))
            context = self.browser.new_context()
            self.addCleanup(context.close)
            page = context.new_page()
            page.goto(proxy.url + "openapi.json")
            error, value = page.evaluate("""async (url) => {
              const {connect} = await import(url + 'client/blindfuse.js');
              const client = await connect(url, {prepareAhead: 0});
              const error = await client.sync().then(() => null, ({code}) => code);
              return [error, await client.getText('k1')];
            }""", proxy.url)
            self.assertEqual((error, len(wrong)), ("protocol", 1), what)
            self.assertEqual(value, "v1" + "." * 300)

    def test_tells_the_lies_of_a_server_apart(self):
        liar = LyingServer(self.server)
        proxy = self.enterContext(Proxy(self.server, liar.tamper))
        page = self.visit(url=proxy.url)

        def connect(**more):
            chosen = {"prepareAhead": 0, "serverKey": liar.key, **more}
            return page.evaluate("""async ([url, options]) => {
              const {connect, SignatureError} = await import(url + 'client/blindfuse.js');
              try {
                const {signer, signerWarning} = await connect(url, options);
                return [signer?.sequence ?? null, signerWarning];
              } catch (error) {
                return [error instanceof SignatureError && error.code, error.message];
              }
            }""", [proxy.url, chosen])

        messages = [connect()]
        liar.sign(5, liar.other_seed)
        messages.append(connect())
        liar.sign(5, sequence=6)
        messages.append(connect())
        self.assertEqual(connect(serverKey=None)[0], "signature")
        liar.sign(20)
        self.assertEqual(connect(), [20, None])
        liar.sign(10)
        messages.append(connect())
        self.assertEqual(connect(allowRollback=True), [10, None])
        liar.sign(20, since=7)
        messages.append(connect())
        names = ["is not signed", "by another key", "is wrong", "rolled back", "two databases of one number"]
        for (code, message), own in zip(messages, names, strict=True):
            self.assertEqual(code, "signature", message)
            self.assertEqual([name for name in names if name in message], [own])
            self.assertNotIn("--", message)
        self.assertIn("(connect's allowRollback)", messages[3][1])
        # Without a key it is told, and nothing is refused.
        self.assertIn("rolled back", (liar.sign(10), connect(serverKey=None))[1][1])
        liar.sign(30, liar.other_seed)
        self.assertIn(f"was signed by {liar.key}", connect(serverKey=None)[1])
        liar.send_plain()
        self.assertEqual(connect(serverKey=None)[0], None)
        self.assertIn("now is not signed", connect(serverKey=None)[1])

    def test_finds_a_lie_in_the_middle(self):
        liar = LyingServer(self.server)
        liar.sign(20)
        proxy = self.enterContext(Proxy(self.server, liar.tamper))
        page = self.visit(url=proxy.url)
        page.evaluate("""async ([url, serverKey]) => {
          const {connect} = await import(url + 'client/blindfuse.js');
          self.client = await connect(url, {prepareAhead: 0, serverKey});
          await self.client.getText('k1');
        }""", [proxy.url, liar.key])
        liar.sign(10)
        code = page.evaluate("self.client.sync().then(() => null, ({code}) => code)")
        self.assertEqual(code, "signature")
        self.assertEqual(page.evaluate("self.client.signer.sequence"), 20)
        liar.sign(21)
        self.assertEqual(page.evaluate("self.client.getText('k2')"), "v2" + "." * 300)

    def test_remembers_in_one_tab_what_another_has_seen(self):
        liar = LyingServer(self.server)
        proxy = self.enterContext(Proxy(self.server, liar.tamper))
        liar.sign(10)
        first = self.visit(url=proxy.url)
        script = """async ([url, serverKey]) => {
          const {connect} = await import(url + 'client/blindfuse.js');
          self.client = await connect(url, {prepareAhead: 0, serverKey});
          await self.client.sync();  // with the manifest of connect(); the next one fetches another
        }"""
        first.evaluate(script, [proxy.url, liar.key])
        second = first.context.new_page()
        second.goto(proxy.url + "openapi.json")
        liar.sign(5)
        refused = second.evaluate(f"async (asked) => ({script})(asked).then(() => null, ({{message}}) => message)",
                                  [proxy.url, liar.key])
        self.assertIn("rolled back", refused, "what was kept stays when hints are kept")
        liar.sign(20)
        second.evaluate(script, [proxy.url, liar.key])
        liar.sign(15)
        self.assertIn("rolled back", first.evaluate("self.client.sync().then(() => null, ({message}) => message)"))

    def test_says_when_the_browser_cannot_check_signatures(self):
        liar = LyingServer(self.server)
        liar.sign(20)
        proxy = self.enterContext(Proxy(self.server, liar.tamper))
        unable = "Object.defineProperty(self.crypto, 'subtle', {value: undefined});"
        page = self.visit({"signatures.js": self.file("signatures.js") + unable}, url=proxy.url)
        refused, checked, value = page.evaluate("""async ([url, serverKey]) => {
          const {connect} = await import(url + 'client/blindfuse.js');
          const refused = await connect(url, {serverKey}).catch(({code, message}) => [code, message]);
          const client = await connect(url);
          return [refused, client.signer.isChecked, await client.getText('k1')];
        }""", [proxy.url, liar.key])
        self.assertEqual(refused[0], "resource")
        self.assertIn("cannot check the database's signature", refused[1])
        self.assertEqual((checked, value), (False, "v1" + "." * 300))

    def test_keeps_of_downloads_that_broke_the_last_alone(self):
        kept = self.run_in(self.visit(), """
          const {HintStore} = await import('/client/hint_store.js');
          const isHint = (path) => path.endsWith('.hint');
          const files = (...paths) => new Map(paths.map((path) => [path, () => new Uint8Array(1)]));
          const store = new HintStore('http://any', 'persistent');
          await store.save(files('manifest.json', 'complete.hint'), isHint);
          await new HintStore('http://any', 'persistent').add(files('of_another_tab.hint'), isHint, isHint);
          for (const name of ['first', 'second', 'last']) {
            await store.add(files('complete.hint', name + '.hint'), isHint, isHint);
          }
          const kept = [];
          await new HintStore('http://any', 'persistent').load((path) => kept.push(path));
          return kept;""")
        self.assertEqual(sorted(kept), ["complete.hint", "last.hint", "manifest.json", "of_another_tab.hint"])

    def test_goes_on_in_memory_where_nothing_can_be_kept(self):
        store = self.file("hint_store.js")
        trouble = {"private browsing": "Object.defineProperty(self, 'indexedDB', {get() {"
                                       " throw new DOMException('insecure', 'SecurityError'); }});",
                   "room": "IDBObjectStore.prototype.put = () => {"
                           " throw new DOMException('full', 'QuotaExceededError'); };"}
        for word, broken in trouble.items():
            with self.subTest(word):
                # It is told after the answer, which does not wait for it.
                value, storage, reason = self.run_in(self.visit({"hint_store.js": broken + store}), """
                  const client = await connect('/');
                  const value = await client.getText('k7');
                  while (client.storageReason === null) await new Promise((resolve) => setTimeout(resolve, 10));
                  return [value, client.storage, client.storageReason];""")
                self.assertEqual(value, "v7" + "." * 300)
                self.assertEqual(storage, "memory")
                self.assertIn(word, reason)


class StandIn(PageTest):
    """Tests of the page with a client that may do anything."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.enterClassContext(Server(options.blindfuse, cls.database))
        cls.values = {"tea": "hot leaf juice", "json": '{"a":[1,2]}', "bytes": [0, 1, 2, 255] * 9, "empty": "",
                      "markup": "<b>bold</b><script>document.title='broken'</script>"}

    def show(self, expect_errors=False, context=None, **fake):
        return self.open(self.server.url, {"values": self.values, **fake}, expect_errors, **(context or {}))

    def test_shows_honest_progress(self):
        page = self.show(hold="fetching-hints")
        bar = page.get_by_role("progressbar", name="Downloading the hints")
        bar.wait_for()
        page.get_by_text("3.4 of 7.6 MB").wait_for()
        self.assertAlmostEqual(bar.evaluate("(bar) => bar.value / bar.max"), 0.45, places=2)
        self.assert_accessible(page)
        page = self.show(hold="preparing-queries")
        page.get_by_role("progressbar", name="Preparing a query").wait_for()
        page.get_by_text("10,598 of 23,552 rows").wait_for()

    def test_looks_up_what_was_asked_for_too_early(self):
        page = self.show(fetchMs=400)
        page.locator("#key").fill("tea")
        page.locator("#key").press("Enter")
        self.await_answer(page, "tea")

    def test_asks_before_a_large_download(self):
        page = self.show(info={"hintBytes": 123_000_000})
        button = page.get_by_role("button", name="Download 123 MB")
        button.wait_for()
        self.assert_accessible(page)
        button.press("Enter")
        self.await_ready(page)
        page.reload()
        self.await_ready(page)  # what was agreed to is not asked again

    def test_shows_values_of_all_kinds(self):
        page = self.show()
        self.await_ready(page)
        self.assertEqual(self.look_up(page, "json"), '{\n  "a": [\n    1,\n    2\n  ]\n}')
        self.assertTrue(self.look_up(page, "bytes").startswith("00 01 02 ff 00"))
        self.assert_accessible(page)
        self.assertIn("36 bytes that are no text", page.locator("#answer .note").inner_text())
        self.assertEqual(self.look_up(page, "empty"), "It is there, and its value is empty.")
        self.assertEqual(self.look_up(page, "markup"), self.values["markup"])
        self.assertNotEqual(page.title(), "broken")

    def test_says_what_is_wrong(self):
        for code, title in (("busy", "The server is busy"), ("connection", "The server does not answer"),
                            ("cache", "What this browser kept of the database is damaged"), ("resource", "This browser cannot do it"),
                            ("protocol", "That did not work")):
            page = self.show(lookUp=[{"code": code, "message": "so it is"}])
            self.await_ready(page)
            page.locator("#key").fill("tea")
            page.locator("#key").press("Enter")
            page.locator("#setup-title", has_text=title).wait_for()
            page.get_by_role("button", name="Try again").click()
            self.await_answer(page, "tea")
            self.assertFalse(page.locator("#setup").is_visible())

    def test_says_that_it_fetches_a_new_version(self):
        page = self.show(newEpoch=True, fetchMs=600)
        self.await_ready(page)
        page.locator("#key").fill("tea")
        page.locator("#key").press("Enter")
        page.get_by_text("The database has a new version").wait_for()
        page.get_by_role("progressbar", name="Downloading the hints").wait_for()
        self.await_answer(page, "tea")
        self.assertFalse(page.locator("#setup").is_visible())

    def test_says_what_secrecy_rests_on(self):
        for mode, other in (("hint", "packed"), ("packed", "hint")):
            with self.subTest(mode):
                page = self.show(info={"mode": mode}, nextInfo={"mode": other})
                self.await_ready(page)
                says = page.locator("#assumption")
                self.assertEqual("circular security" in says.inner_text(), mode == "packed")
                page.locator("#key").fill("tea")
                page.locator("#key").press("Enter")
                self.await_answer(page, "tea")
                self.assertEqual("circular security" in says.inner_text(), other == "packed")

    def test_says_who_signed(self):
        page = self.show()
        self.await_ready(page)
        self.assertFalse(page.locator("#signer").is_visible())
        signer = {"key": "ab" * 32, "sequence": 7, "time": 1795545000000, "isChecked": True}
        page = self.show(signer=signer)
        self.await_ready(page)
        says = page.locator("#signer").inner_text()
        self.assertIn(f"signed, as number 7 of 2026-11-24 18:30 UTC, with the key {'ab' * 32}.", says)
        self.assertIn("No key protects against the server that sent this page", says)
        page = self.show(signer={**signer, "isChecked": False}, signerWarning="it was another")
        self.await_ready(page)
        says = page.locator("#signer").inner_text()
        self.assertIn("This browser cannot check the signature.", says)
        self.assertIn("Warning: it was another.", says)
        self.assert_accessible(page)

    def test_says_when_nothing_is_kept(self):
        page = self.show(storage="memory")
        page.get_by_text("The next visit downloads again: it is a private window.").wait_for()

    def test_loads_again_what_did_not_load(self):
        context = self.browser.new_context()
        self.addCleanup(context.close)
        page = context.new_page()
        page.route("**/client/blindfuse.js", lambda route: route.abort())
        page.goto(self.server.url)
        page.get_by_text("The server does not answer").wait_for()
        page.unroute("**/client/blindfuse.js")
        page.get_by_role("button", name="Try again").click()
        self.await_ready(page)

    def test_says_when_the_browser_is_too_old(self):
        context = self.browser.new_context()
        self.addCleanup(context.close)
        page = context.new_page()
        page.add_init_script("delete window.WebAssembly")
        page.goto(self.server.url)
        page.get_by_text("This browser has no WebAssembly").wait_for()

    def test_wants_something_to_look_up(self):
        page = self.show()
        self.await_ready(page)
        page.get_by_role("button", name="Look up").click()
        page.get_by_text("Type a key first.").wait_for()
        self.assertEqual(page.locator("#answer").inner_text(), "")
        self.look_up(page, "tea")
        page.locator("#key").fill("")
        page.get_by_role("button", name="Look up").click()
        page.get_by_text("Type a key first.").wait_for()
        self.assertEqual(page.locator("#answer").inner_text(), "", "an answer to the key before stays")
        self.assertTrue(page.locator("#key").evaluate("(field) => field === document.activeElement"))
        self.assert_accessible(page)

    def test_works_with_the_keyboard_alone(self):
        page = self.show()
        self.await_ready(page)
        page.keyboard.press("Tab")
        page.keyboard.type("tea")
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.id"), "look-up")
        page.keyboard.press("Space")
        self.await_answer(page, "tea")
        self.assertEqual(page.locator("#answer").get_attribute("aria-live"), "polite")

    def test_is_accessible_on_every_screen(self):
        for scheme in ("light", "dark"):
            for viewport in (PHONE, {"width": 390, "height": 844}, DESKTOP):
                with self.subTest(scheme=scheme, viewport=viewport):
                    page = self.show(context={"color_scheme": scheme, "viewport": viewport, "reduced_motion": "reduce"})
                    self.await_ready(page)
                    self.assert_accessible(page)
                    for key in ("tea", "a word that is nowhere to be found"):
                        self.look_up(page, key)
                        self.assert_accessible(page)
                        self.assert_no_sideways_scrolling(page)

    def test_has_targets_for_fingers(self):
        page = self.show(context={"viewport": PHONE})
        self.await_ready(page)
        for target in page.locator("button:visible, input:visible, a:visible").all():
            box = target.bounding_box()
            self.assertGreaterEqual(round(box["height"]), 44, target.inner_text())
            self.assertGreaterEqual(round(box["width"]), 44, target.inner_text())

    def test_keeps_the_last_two(self):
        page = self.show()
        self.await_ready(page)
        for key in ("tea", "json", "empty"):
            self.look_up(page, key)
        self.assertEqual(page.locator(".looks .word").all_inner_texts(), ["json", "empty"])
        self.look_up(page, "empty")
        self.assertIn("You asked for the same twice", page.locator(".verdict").inner_text())


def has_page(blindfuse):
    with tempfile.TemporaryDirectory() as name:
        database = build_database(blindfuse, VALUES[:2], pathlib.Path(name))
        with Server(blindfuse, database) as server:
            return server.get()[0] == 200


def main():
    global options
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blindfuse", required=True, help="the program")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="virtual environment with Playwright and axe")
    parser.add_argument("tests", nargs="*", help="which tests, as in StandIn.test_keeps_the_last_two; all by default")
    options = parser.parse_args()
    web_testing.use_tools(options.tools)
    if not has_page(options.blindfuse):
        web_testing.skip("the server was built without its page")
    unittest.main(argv=[sys.argv[0], "-v", *options.tests])


if __name__ == "__main__":
    main()
