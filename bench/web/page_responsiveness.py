#!/usr/bin/env python3
"""How long the page keeps a browser's main thread busy, and when it has its first answer: serves a database, opens the
page in Chromium, looks keys up, and prints as JSON what took longer than 50 ms, which is what a person begins to
notice, and the milliseconds from opening the page until it is ready and until the first key was answered. With
`--words` a database of that many keys is built; with DIRECTORY that one is served. For comparison, how busy the same
browser is with a text without any script: starting a browser's first page takes a processor a while, whatever is on
it."""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "web"))
import web_testing  # noqa: E402

OBSERVE = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) longTasks.push({start_ms: task.startTime, ms: task.duration});
}).observe({type: 'longtask', buffered: true});
"""


def measure(page, url, keys):
    page.add_init_script(OBSERVE)
    phases = {}

    def end_of(phase):
        page.wait_for_timeout(200)  # the browser reports a task after it is over
        tasks = page.evaluate("longTasks.splice(0)")
        phases[phase] = {"long_tasks": len(tasks), "longest_ms": max((task["ms"] for task in tasks), default=0)}

    page.goto(url)
    # Agrees to a large download, if it is asked.
    ready = page.locator("#status", has_text="Ready.")
    ready.or_(page.get_by_role("button", name="Download")).first.wait_for()
    if not ready.is_visible():
        page.get_by_role("button", name="Download").click()
        ready.wait_for()
    phases["ready_ms"] = page.evaluate("performance.now()")
    end_of("until_ready")
    for key in keys:
        page.locator("#key").fill(key)
        page.locator("#key").press("Enter")
        page.locator(".looks .word").last.filter(has_text=key).wait_for()
    end_of("look_ups")
    return phases


# Asks the moment that the page is ready, as somebody does who has typed meanwhile.
ASK_WHEN_READY = """
window.moments = {};
new MutationObserver(() => {
  const status = document.querySelector('#status')?.textContent ?? '';
  const reached = ['Ready', 'Answered'].find((word) => status.startsWith(word));
  if (!reached || reached in window.moments) return;
  window.moments[reached] = performance.now();
  if (reached === 'Ready') {
    document.querySelector('#key').value = KEY;
    document.querySelector('#search').requestSubmit();
  }
}).observe(document, {subtree: true, childList: true, characterData: true});
"""


def measure_opening(page, url, key):
    page.add_init_script(ASK_WHEN_READY.replace("KEY", json.dumps(key)))
    page.goto(url)
    page.locator("#status", has_text="Answered").wait_for()
    moments = page.evaluate("moments")
    return {"ready_ms": moments["Ready"], "first_answer_ms": moments["Answered"]}


def measure_plain(page, url):
    page.add_init_script(OBSERVE)
    page.goto(url + "client/blindfuse.d.ts")
    page.wait_for_timeout(1000)
    tasks = page.evaluate("longTasks")
    return {"long_tasks": len(tasks), "longest_ms": max((task["ms"] for task in tasks), default=0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", type=pathlib.Path, help="a database to serve")
    parser.add_argument("--words", type=int, default=100_000, help="keys of the database that is built without one")
    parser.add_argument("--keys", nargs="+", default=[f"word{i}" for i in range(10)], help="what is looked up")
    parser.add_argument("--rounds", type=int, default=10, help="new browsers for each")
    parser.add_argument("--blindfuse", default="build/bin/blindfuse", help="the program")
    parser.add_argument("--tools", type=pathlib.Path, default=pathlib.Path("build/web-tools"),
                        help="virtual environment with Playwright")
    options = parser.parse_args()
    web_testing.use_tools(options.tools)
    from playwright.sync_api import sync_playwright
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        database = options.directory
        if database is None:
            lines = [b"word%d\t%s" % (i, b"x" * 200) for i in range(options.words)]
            database = web_testing.build_database(options.blindfuse, lines, pathlib.Path(folder))
        with web_testing.Server(options.blindfuse, database) as server:
            rounds = []
            for _ in range(options.rounds):
                figures = {}
                for name, take in (("plain", measure_plain),
                                   ("page", lambda page, url: measure(page, url, options.keys)),
                                   ("opening", lambda page, url: measure_opening(page, url, options.keys[0]))):
                    browser = web_testing.launch(playwright)
                    page = browser.new_page()
                    page.set_default_timeout(600_000)
                    figures[name] = take(page, server.url)
                    browser.close()
                rounds.append(figures)
            print(json.dumps(rounds, indent=1))


if __name__ == "__main__":
    main()
