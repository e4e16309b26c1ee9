"""The client for browsers without the page: what a program of somebody else's sees of it. browser_test.py runs this."""

import collections
import re

import web_testing
from web_testing import VALUES, LyingServer, PageTest, Proxy, build_database


class ClientAlone(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lines = [b"k%d\tv%d" % (i, i) + b"." * 300 for i in range(60_000)]
        cls.database = build_database(web_testing.options.blindfuse, lines, cls.folder, "many", ["--mode", "hint"])

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

    def changed(self, name, old, new):
        """A file of the client, with `new` in the place of `old`."""
        text = self.file(name)
        self.assertIn(old, text)
        return {name: text.replace(old, new)}

    def lying_server(self):
        liar = LyingServer(self.server)
        return liar, self.enterContext(Proxy(self.server, liar.tamper))

    def queries_of(self, page):
        """The requests for queries of this page, as they come."""
        asked = []
        page.context.on("request", lambda request: asked.append(request.url) if request.url.endswith("/queries") else None)
        return asked

    def serve_lines(self, count, name, *how, end=b""):
        lines = [b"k%d\tv%d" % (i, i) + end for i in range(count)]
        self.server = self.serve(database=build_database(web_testing.options.blindfuse, lines, self.folder, name, how))

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
        self.serve_lines(500, "packed", "--mode", "packed", end=b"." * 100)
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
        for name, key in (("two", []), ("short", ["--short-key"])):
            with self.subTest(name):
                self.serve_lines(500, name, "--levels", "2", "--shards", "5", *key)
                values, took = self.run_in(self.visit(), """
                  const client = await connect('/');
                  const values = await client.getMany([...Array.from({length: 20}, (_, i) => 'k' + 7 * i), 'nowhere']);
                  const one = await client.lookUp('k1');
                  return [values.map((value) => value && new TextDecoder().decode(value)), one];""")
                self.assertEqual(values, [f"v{7 * i}" for i in range(20)] + [None])
                # The mask alone has 2048 numbers, in 4 to 6 KB; without the second level there is none.
                self.assertGreater(took["responseBytes"], 2048 * 15 // 8)

    def test_asks_for_several_keys_with_a_request(self):
        self.serve_lines(500, "several", "--keys-per-request", "16")
        page = self.visit()
        asked = self.queries_of(page)
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
        given = "    return {...all, info, signer, prepared};"
        page = self.visit(self.changed("worker.js", given, """
          all.costs.forEach((cost, i) => {
            cost.asked = i % 2 === 0;
            if (!cost.asked) all.values[i] = null;
          });
        """ + given))
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
        begun = "    const all = {values: [], costs: []};"
        page = self.visit(self.changed("worker.js", begun, """
          if (hasAnswered) {
            for (const path of pathsUnder(folder).filter(isFixed)) core.FS.writeFile(`${folder}/${path}`, 'damaged');
          }
        """ + begun))
        asked = self.queries_of(page)
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
        begun = "    const all = {values: [], costs: []};"
        page = self.visit(self.changed("worker.js", begun, """
          core.FS.writeFile(`${folder}/${pathsUnder(folder).filter(isFixed).at(-1)}`, 'damaged');
        """ + begun))
        asked = self.queries_of(page)
        errors = self.run_in(page, """
          const client = await connect('/', {prepareAhead: 0});
          await client.sync();
          const errors = [];
          for (let i = 0; i < 8; ++i) errors.push(await failed(() => client.get('k' + i)));
          return errors;""")
        self.assertEqual([error["code"] for error in errors], ["cache"] * 8)
        self.assertEqual(asked, [])

    def test_does_not_copy_an_answer_that_is_too_long(self):
        failing = "throw {...reply.error,"
        size = 32 << 20
        # Not from Playwright, which takes a minute to bring so much to a busy browser.
        proxy = self.enterContext(Proxy(self.server, lambda path, _: b" " * size if path.endswith("/v1/database") else None))
        page = self.visit(self.changed(
            "core_module.js", failing, "reply.error.message += ` (heap: ${core.HEAPU8.length})`; " + failing), proxy.url)
        error = self.run_in(page, "return failed(() => connect(new URL('.', location).href));")
        self.assertEqual(error["code"], "protocol")
        self.assertIn("is longer than 65536 bytes", error["message"])
        self.assertLess(int(re.search(r"heap: (\d+)", error["message"])[1]), size)

    def test_stays_with_the_kind_of_database_that_it_saw_first(self):
        numbered = build_database(web_testing.options.blindfuse, VALUES, self.folder, "numbered", ["--index"])
        page = self.visit()
        self.run_in(page, "window.client = await connect('/', {prepareAhead: 0}); await client.sync();")
        self.server.stop()
        self.serve(database=numbered, port=self.server.port)
        asked = self.queries_of(page)
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
        start = "this.worker = new Worker("
        telling = self.changed("preparation.js", start,
                               "new BroadcastChannel('helpers').postMessage('one more'); " + start)

        def count(ask):
            return self.run_in(self.visit(telling), """
              let started = 0;
              new BroadcastChannel('helpers').onmessage = () => started++;
              const client = await connect('/', {prepareAhead: 0});
              %s
              for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 10));
              return [started, Math.min(navigator.hardwareConcurrency, 4) - 1];""" % ask)

        started, others = count("")
        self.assertEqual(started, others)  # before the first query is wanted
        self.serve_lines(500, "alone", "--mode", "packed")
        self.assertEqual(count("await client.prepare(3); await client.getText('k7');")[0], 0)

    def test_replaces_a_worker_that_broke(self):
        # As a module does that ran out of its stack.
        call = "succeeded = core._blindfuse_call("
        page = self.visit(self.changed(
            "core_module.js", call, "if (request.op === 'beginLookUp' && keys[0][0] === 33) throw new Error('overflow'); " + call))
        error, ready, value = self.run_in(page, """
          const client = await connect('/');
          await client.prepare(1);
          const error = await failed(() => client.get('!'));
          return [error, client.preparedCount, await client.getText('k7')];""")
        self.assertEqual((error["code"], ready, value[:2]), ("resource", 0, "v7"))
        self.assertIn("overflow", error["message"])

    def test_starts_over_after_a_preparation_that_failed(self):
        done = "  const from = core._blindfuse_reply()"
        page = self.visit(self.changed("core_module.js", done, """
          if (request.op === 'prepareHere' && !self.failedOnce) {
            self.failedOnce = true;
            throw {code: 'resource', message: 'once'};
          }""" + done))
        error, value = self.run_in(page, """
          const client = await connect('/', {prepareAhead: 0});
          return [await failed(() => client.prepare(3)), await client.getText('k9')];""")
        self.assertEqual((error["code"], error["message"], value[:2]), ("resource", "once", "v9"))

    def test_does_not_work_with_files_of_another_build(self):
        page = self.visit(self.changed("worker.js", "'./build_id.js'", "'./other_id.js'")
                          | {"other_id.js": "export const buildId = 'other';"})
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
            route.continue_() if asked[request] > 2 else route.fulfill(
                status=(503, 429)[asked[request] - 1], headers={"Retry-After": "0"}, body="busy")

        page.context.route(re.compile(r"/v1/"), refuse_twice)
        value = self.run_in(page, "return (await connect('/')).getText('k7');")
        self.assertEqual(value, "v7" + "." * 300)
        self.assertTrue(all(count > 2 for count in asked.values()), asked)
        self.assertEqual({request.split()[0] for request in asked}, {"GET", "POST"})

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
            page = self.visit(url=proxy.url)
            error, value = page.evaluate("""async (url) => {
              const {connect} = await import(url + 'client/blindfuse.js');
              const client = await connect(url, {prepareAhead: 0});
              const error = await client.sync().then(() => null, ({code}) => code);
              return [error, await client.getText('k1')];
            }""", proxy.url)
            self.assertEqual((error, len(wrong)), ("protocol", 1), what)
            self.assertEqual(value, "v1" + "." * 300)

    def test_tells_the_lies_of_a_server_apart(self):
        liar, proxy = self.lying_server()
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
        names = ["is not signed", "by another key", "is wrong", "rolled back", "with the same sequence number"]
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
        liar, proxy = self.lying_server()
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
