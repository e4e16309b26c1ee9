#!/usr/bin/env python3
"""The manual pages, docs/REFERENCE.md and the completion for bash have the options that the programs have, as
host/packaging/reference.py writes them. Bash completes with them, and each command has a page. The example
configuration names all options of `serve`, with their defaults."""
import argparse
import importlib.util
import pathlib
import re
import subprocess
import sys


def load_reference(packaging):
    spec = importlib.util.spec_from_file_location("reference", packaging / "reference.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def compare(where, there, expected):
    faults = [f"{where} does not have {name}" for name in sorted(expected - there)]
    return faults + [f"{where} has {name}, which does not exist" for name in sorted(there - expected)]


def check_documents(reference, programs, manual, docs):
    faults = []
    for path, expected in reference.documents(programs, manual, docs):
        if path.read_text(encoding="utf-8") != expected:
            faults.append(f"{path.name} differs from --help-all: run host/packaging/reference.py after a build")
    return faults


def check_pages(reference, programs, manual):
    pages = {path.name for path in manual.iterdir()}
    faults = compare("the folder of manual pages", pages, {*reference.PAGES, reference.CONFIG_PAGE})
    for program in ("blindfuse", "blindfuse-client"):
        commands = set(reference.commands_of(reference.help_of(programs, program, "")))
        paged = {command for of, several in reference.PAGES.values() if of == program for command in several}
        faults += compare(f"the list of {program}'s pages", paged - {""}, commands)
    return faults


def check_configuration(reference, programs, example):
    settings = {option.name: option for option in reference.settings(programs)}
    # A path is not a default, and a service has no use for the file that says when it is ready.
    lines = re.findall(r"^(#?)([a-z-]+) = (.*)$", example.read_text(encoding="utf-8"), re.MULTILINE)
    faults = compare(example.name, {name for _, name, _ in lines}, {*settings, "directory"} - {"ready-file"})
    for commented, name, value in lines:
        default = settings[name].default if name in settings else ""
        if commented and default and value.strip('"') != default:
            faults.append(f"{example.name} shows {name} = {value}, and the default is {default}")
    return faults


def check_completion(packaging):
    """What bash offers for the last word of a line."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "_${1//-/_}"; echo "${COMPREPLY[*]}"'
    faults = []
    for line, expected in {
        "blindfuse bui": "build",
        "blindfuse --ver": "--version",
        "blindfuse serve --tls": "--tls-cert --tls-key",
        "blindfuse build words.tsv --out": "--output",
        "blindfuse build --mode p": "packed",
        "blindfuse build --mode = p": "packed",
        "blindfuse build --output --s": "",  # a folder
        "blindfuse serve wor": "",
        "blindfuse-client s": "sync",
        "blindfuse-client get http://x --server-k": "--server-key",
    }.items():
        words = line.split()
        offered = subprocess.run(["bash", "-c", script, "bash", packaging / "completion" / words[0], *words],
                                 capture_output=True, text=True, timeout=60)
        if (offered.stdout.strip(), offered.stderr) != (expected, ""):
            faults.append(f"bash completes {line!r} with {offered.stdout.strip()!r}{offered.stderr}, not {expected!r}")
    return faults


def check_parser(reference):
    """The reader of --help-all, on a page that is written by hand."""
    page = (
        "Make tea.\n\nUsage: teapot fill --kind green|black [OPTIONS] CUP\n\nArguments:\n  CUP   What to fill\n\nLeaves:\n"
        "  --leaves N\n      Leaves a pot (default: 3)\n      [1 to 9; TEAPOT_LEAVES]\n"
        "  --kind green|black\n      Which tea, for\n      whom (required)\n\nOther options:\n  -h, --help\n      Show this help\n")
    make = reference.Option
    expected = [
        make("leaves", "", "N", "Leaves a pot", "3", False, "1 to 9", "TEAPOT_LEAVES", "Leaves"),
        make("kind", "", "green|black", "Which tea, for whom", "", True, "", "", "Leaves"),
        make("help", "h", "", "Show this help", "", False, "", "", "Other options"),
    ]
    read = reference.options_of(page)
    return [] if read == expected else [f"options_of() reads {read}, not {expected}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of the built programs")
    parser.add_argument("--packaging", type=pathlib.Path, required=True, help="host/packaging")
    options = parser.parse_args()
    reference = load_reference(options.packaging)
    manual = options.packaging / "man"
    faults = check_parser(reference)
    faults += check_pages(reference, options.programs, manual)
    faults += check_completion(options.packaging)
    faults += check_documents(reference, options.programs, manual, options.packaging / "../../docs")
    faults += check_configuration(reference, options.programs, options.packaging / "config/blindfuse.conf")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
