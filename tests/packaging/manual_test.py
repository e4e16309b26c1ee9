#!/usr/bin/env python3
"""The manual pages and the example configuration name the options that the programs have, all and no others, and the pages
say of each what --help does."""
import argparse
import pathlib
import re
import subprocess
import sys

# Of each program: its commands, and the page that holds their options.
PAGES = {
    ("blindfuse", ""): "blindfuse.1",
    ("blindfuse", "plan"): "blindfuse-plan.1",
    ("blindfuse", "build"): "blindfuse-build.1",
    ("blindfuse", "inspect"): "blindfuse-inspect.1",
    ("blindfuse", "serve"): "blindfuse-serve.1",
    ("blindfuse", "api-key"): "blindfuse-api-key.1",
    ("blindfuse", "self-test"): "blindfuse-self-test.1",
    ("blindfuse-client", ""): "blindfuse-client.1",
    ("blindfuse-client", "get"): "blindfuse-client.1",
    ("blindfuse-client", "sync"): "blindfuse-client.1",
}
CONFIG_PAGE = "blindfuse.conf.5"


def help_of(programs, program, command):
    arguments = [programs / program, *([command] if command else []), "--help"]
    return subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=60).stdout


def options_of(text):
    """Each option of a --help with its default, None where none is shown."""
    options = {}
    for name, rest in re.findall(r"^  (?:-\w,)?--([a-z-]+)(.*)$", text, re.MULTILINE):
        shown = re.search(r"=(\S+) \(Env", rest)
        options[name] = shown[1] if shown else None
    return options


def sayings_of(text):
    """What a --help says of each option, as a page has it: its description, and its range."""
    sayings = {}
    name = None
    for line in text.splitlines():
        if option := re.match(r"  (?:-\w,)?--([a-z-]+)(.*)", line):
            name = option[1]
            before, env, description = option[2].partition("(Env:")
            limits = re.search(r" in \[(\d+) - (\d+)\]", before)
            sayings[name] = [description.partition(")")[2].strip() if env else before.strip()]
            if limits:
                sayings[name].append(f"{limits[1]} to {limits[2]}")
        elif name and line.startswith(" " * 20):
            sayings[name][0] = f"{sayings[name][0]} {line.strip()}".strip()
        else:
            name = None
    return sayings


def commands_of(text):
    return re.findall(r"^  ([a-z-]+) ", text.partition("Subcommands:")[2], re.MULTILINE)


def unescape(roff):
    for mark, meaning in ((r"\-", "-"), (r"\(dq", '"'), (r"\(aq", "'"), (r"\&", ""), (r"\fR", ""), (r"\fB", "")):
        roff = roff.replace(mark, meaning)
    return roff


def described_in(page):
    """What the tags of a page's lists name: options, or names of the configuration."""
    tags = re.findall(r"^\.TP\n(.*)$", unescape(page), re.MULTILINE)
    options = {name for tag in tags for name in re.findall(r"(?<![\w-])--([a-z-]+)", tag)}
    settings = {name for tag in tags for name in re.findall(r'^\.BI "([a-z-]+) = ', tag)}
    return options, settings


def paragraph_of(page, tag):
    """What a page says of an option, in one line."""
    found = re.search(rf"^\.TP\n.*?{tag}(?![\w-]).*\n((?:(?!\.TP|\.SH|\.SS).*\n)*)", unescape(page), re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def compare_sayings(where, page, text, prefix, names):
    faults = []
    for name, sayings in sayings_of(text).items():
        there = paragraph_of(page, prefix + name)
        faults += [f"{where} says of {name} {there!r}, and --help {saying!r}" for saying in sayings
                   if name in names and f"{saying}." not in there]
    return faults


def compare(where, there, expected):
    faults = [f"{where} does not describe {name}" for name in sorted(expected - there)]
    return faults + [f"{where} describes {name}, which there is not" for name in sorted(there - expected)]


def check_pages(programs, manual):
    faults = []
    expected = {}
    for (program, command), page in PAGES.items():
        text = help_of(programs, program, command)
        expected.setdefault(page, set()).update(options_of(text))
        if not command:
            known = {name for of, name in PAGES if of == program and name}
            faults += compare(f"the list of {program}'s pages", known, set(commands_of(text)))
        faults += compare_sayings(page, (manual / page).read_text(), text, "--",
                                  set(options_of(text)) - {"help", "version"})
    for page, options in expected.items():
        faults += compare(page, described_in((manual / page).read_text())[0], options)
    present = {path.name for path in manual.iterdir()}
    return faults + compare("the list of pages", set(expected) | {CONFIG_PAGE}, present)


def check_configuration(programs, manual, example):
    text = help_of(programs, "blindfuse", "serve")
    options = options_of(text)
    settings = set(options) - {"help", "config"} | {"directory"}
    page = (manual / CONFIG_PAGE).read_text()
    faults = compare(CONFIG_PAGE, described_in(page)[1], settings)
    faults += compare_sayings(CONFIG_PAGE, page, text, '^\\.BI "', settings)
    # A path is no default, and a service has no use for the file that says when it is ready.
    lines = re.findall(r"^(#?)([a-z-]+) = (.*)$", example.read_text(), re.MULTILINE)
    faults += compare(example.name, {name for _, name, _ in lines}, settings - {"ready-file"})
    for commented, name, value in lines:
        default = options.get(name)
        if commented and default is not None and value.strip('"') != default:
            faults.append(f"{example.name} shows {name} = {value}, and the default is {default}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of the built programs")
    parser.add_argument("--packaging", type=pathlib.Path, required=True, help="host/packaging")
    options = parser.parse_args()
    manual = options.packaging / "man"
    faults = check_pages(options.programs, manual)
    faults += check_configuration(options.programs, manual, options.packaging / "config/blindfuse.conf")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
