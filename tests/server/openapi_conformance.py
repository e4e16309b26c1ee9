#!/usr/bin/env python3
"""Runs schemathesis, with all of its checks, against a server: what /openapi.json says must be true of every request
that it can think of. Exits with 77, for "skipped", where schemathesis is not installed (`make test` installs it)."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

# What a schema cannot say: a range of shards that runs backwards or beyond the last, a range of bytes beyond the end, a
# body that is not a whole number of queries. Everything else that the document allows has to be accepted.
CONFIG = """
[parameters]
"path.epoch" = "{epoch}"

[[operations]]
include-path = "/v1/epochs/{{epoch}}/hint"
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 400, 416]

[[operations]]
include-path = "/v1/epochs/{{epoch}}/shards"
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 416]

[[operations]]
include-path = "/v1/epochs/{{epoch}}/queries"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400]
"""


def wait_for(path, server):
    for _ in range(600):
        if path.exists():
            return path.read_text().strip()
        if server.poll() is not None:
            sys.exit("the server did not start")
        time.sleep(0.1)
    sys.exit("the server did not start in a minute")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blindfuse", required=True, help="the program")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="virtual environment with schemathesis")
    parser.add_argument("--max-examples", default="40")
    arguments = parser.parse_args()
    schemathesis = arguments.tools.resolve() / "bin" / "st"
    if not schemathesis.exists():
        print(f"skipped: there is no {schemathesis}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "drinks.tsv").write_text("tea\thot\ncoffee\tbitter\n")
        database = folder / "drinks"
        subprocess.run([arguments.blindfuse, "build", folder / "drinks.tsv", "--output", database], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", arguments.blindfuse, "serve", database, "--listen",
                                   "127.0.0.1:0", "--ready-file", folder / "url"])
        try:
            url = wait_for(folder / "url", server)
            with urllib.request.urlopen(url + "/v1/database") as answer:
                epoch = json.load(answer)["epoch"]
            (folder / "schemathesis.toml").write_text(CONFIG.format(epoch=epoch))
            result = subprocess.run([schemathesis, "--config-file", folder / "schemathesis.toml", "run",
                                     url + "/openapi.json", "--checks", "all", "--phases",
                                     "examples,coverage,fuzzing", "--max-examples", arguments.max_examples,
                                     "--seed", "1", "--no-color"], cwd=folder)
        finally:
            server.terminate()
            status = server.wait(timeout=60)
        sys.exit(result.returncode or status)


if __name__ == "__main__":
    main()
