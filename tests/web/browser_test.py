#!/usr/bin/env python3
"""The page that the server shows to browsers, in Chromium: with the real client against real servers, and, for what these
show too rarely or too briefly, with a stand-in for the client. Exits with 77, for "skipped", where Chromium, Playwright
or the page is missing."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import web_testing
from client_alone import ClientAlone  # noqa: F401
from web_testing import DESKTOP, VALUES, PageTest, Proxy, Server, build_database, make_key

PHONE = {"width": 320, "height": 640}


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
        database = build_database(web_testing.options.blindfuse, VALUES, self.folder, "changing")
        server = self.serve("--grace-seconds", "0", "--watch-seconds", "1", database=database)
        page = self.open(server.url, expect_errors=True)
        self.await_ready(page)
        before = json.loads(server.get("v1/database")[1])["epoch"]
        self.assertEqual(self.look_up(page, "water"), "Not there.")
        build_database(web_testing.options.blindfuse, [*VALUES, b"water\tcold"], self.folder, "changing")
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
        key = subprocess.run([web_testing.options.blindfuse, "api-key", "tester", "--file", keys], check=True,
                             capture_output=True, text=True, timeout=60).stdout.split()[-1]
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
        database = build_database(web_testing.options.blindfuse, VALUES, self.folder, "numbered", ["--index"])
        page = self.open(self.serve(database=database).url)
        self.await_ready(page)
        page.get_by_label("Number to look up").fill("not a number")
        page.get_by_role("button", name="Look up").click()
        page.get_by_text("This database has numbers for keys").wait_for()
        self.assertIn("hot bean juice", self.look_up(page, "1"))

    def test_looks_up_packed_responses(self):
        database = build_database(web_testing.options.blindfuse, VALUES, self.folder, "packed", ["--mode", "packed"])
        page = self.open(self.serve(database=database).url)
        self.await_ready(page)
        self.assertEqual(self.look_up(page, "tea"), "hot leaf juice")
        self.assertEqual(self.look_up(page, "cocoa"), "hot chocolate")
        page.get_by_text("circular security").wait_for()

    def test_keeps_to_the_key_in_its_address(self):
        key = make_key(self.folder / "words.key")
        server = self.serve(database=build_database(
            web_testing.options.blindfuse, VALUES, self.folder, "signed", ["--sign", self.folder / "words.key"]))
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


class StandIn(PageTest):
    """Tests of the page with a client that may do anything."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.enterClassContext(Server(web_testing.options.blindfuse, cls.database))
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blindfuse", required=True, help="the program")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="virtual environment with Playwright and axe")
    parser.add_argument("tests", nargs="*", help="which tests, as in StandIn.test_keeps_the_last_two; all by default")
    web_testing.options = parser.parse_args()
    web_testing.use_tools(web_testing.options.tools)
    if not has_page(web_testing.options.blindfuse):
        web_testing.skip("the server was built without its page")
    unittest.main(argv=[sys.argv[0], "-v", *web_testing.options.tests])


if __name__ == "__main__":
    main()
