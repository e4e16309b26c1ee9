#!/usr/bin/env python3
"""The browser's first answer compared with the native client's: each starts with nothing prepared, in turns, on the
same machine and of the same server. Prints as JSON the seconds of making a query (keystream and secret product), of the
server, of decoding, and of all; the median of each and their quotient."""

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "web"))
import web_testing  # noqa: E402

STAGES = ("prepare", "server", "decode", "total")

# A client of its own for each answer: nothing is prepared, but the hints are there. Then the same client again, which
# has prepared a query meanwhile.
ASK = """async ([url, key, another]) => {
  const {connect} = await import(url + 'client/blindfuse.js');
  const client = await connect(url, {prepareAhead: 1});
  await client.sync();
  const seconds = (answer) => ({prepare: answer.prepareSeconds, server: answer.serverSeconds,
                                decode: answer.decodeSeconds, total: answer.totalSeconds});
  const first = seconds(await client.lookUp(key));
  while (client.preparedCount === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const start = performance.now();
  await client.lookUp(another);
  const later = (performance.now() - start) / 1000;
  client.close();
  return {...first, later};
}"""


def native(arguments, url, key, cache):
    out = subprocess.run([arguments.client, "get", url, "--json", "--cache", cache, key], check=True,
                         stdout=subprocess.PIPE, timeout=300).stdout
    return json.loads(out)["seconds"]


def summary(samples):
    return {stage: {"median": statistics.median(values := [sample[stage] for sample in samples]),
                    "least": min(values), "most": max(values)} for stage in samples[0]}


@contextlib.contextmanager
def serving(arguments):
    """The URL of the server that is asked."""
    if arguments.url:
        yield arguments.url.rstrip("/") + "/"
        return
    with web_testing.Server(arguments.blindfuse, arguments.directory) as server:
        yield server.url


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("directory", type=pathlib.Path, nargs="?", help="a database to serve")
    asked.add_argument("--url", help="a server that runs already")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--keys", nargs=2, default=["serendipity", "privacy"])
    parser.add_argument("--blindfuse", default="build/bin/blindfuse", help="the operator's program")
    parser.add_argument("--client", default="build/bin/blindfuse-client", help="the client's program")
    parser.add_argument("--tools", type=pathlib.Path, default=pathlib.Path("build/web-tools"),
                        help="virtual environment with Playwright")
    arguments = parser.parse_args()
    web_testing.use_tools(arguments.tools)
    from playwright.sync_api import sync_playwright
    with tempfile.TemporaryDirectory() as cache, sync_playwright() as playwright, \
            serving(arguments) as url:
        browser = web_testing.launch(playwright)
        page = browser.new_page()
        # A file of the server's that does nothing by itself: the page would prepare queries too.
        page.goto(url + "client/blindfuse.d.ts")
        pairs = [(native(arguments, url, arguments.keys[0], cache), page.evaluate(ASK, [url, *arguments.keys]))
                 for _ in range(arguments.rounds + 1)][1:]  # the first one fetches and compiles
        browser.close()
    clients = {"native": summary([pair[0] for pair in pairs]), "browser": summary([pair[1] for pair in pairs])}
    print(json.dumps({
        "rounds": arguments.rounds, **clients,
        "browser_over_native": {stage: clients["browser"][stage]["median"] / clients["native"][stage]["median"]
                                for stage in STAGES}}, indent=2))


if __name__ == "__main__":
    main()
