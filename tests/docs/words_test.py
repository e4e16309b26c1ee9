#!/usr/bin/env python3
"""Documents and messages have no words that CONTRIBUTING.md replaces, and documents no line of prose that is too wide.

  words_test.py SOURCE"""
import pathlib
import sys

import words

CODE_FOLDERS = ("src", "host", "client", "cuda")
CODE_SUFFIXES = {".cpp", ".h", ".cu", ".cuh"}


def documents_of(source):
    yield from sorted(source.glob("*.md"))
    for folder in ("docs", "client", "bench"):
        yield from sorted((source / folder).rglob("*.md"))


def check_words():
    """The reader itself, on text whose faults are known."""
    faults = []
    known = {
        "A table stands beside it.": ["beside"],
        "Everything but the key.": ["Everything but"],
        "It is no key; there is no key; it is no longer a key.": ["is no"],
        "It waits behind nginx, and behind the others.": ["behind"],
        "As it were, whatsoever it is.": ["whatsoever", "As it were"],
        "The server sends the answer.": [],
        "A besides b, behindhand, lesty.": [],
    }
    for text, expected in known.items():
        found = [phrase for phrase, _ in words.words_of(text)]
        if found != expected:
            faults.append(f"words_of({text!r}) is {found}, not {expected}")
    wide = "word " * 30
    page = (f"a `beside` b\n```\nbeside {wide}\n```\n| {wide} |\n{wide}\n[a](x#beside) nobody\n"
            f"<!-- begin: table -->\nbeside {wide}\n<!-- end: table -->\n")
    found = [fault.partition(":")[2] for fault in words.faults_of_document("page", page)]
    expected = ["6: 150 characters, of at most 120", '7: "nobody": no one; better: name the subject']
    if found != expected:
        faults.append(f"faults_of_document() is {found}, not {expected}")
    source = 'f("one");  // "beside it"\ng("it is no key", "a \\"but for\\" b");\n'
    found = [fault.partition('"')[2].partition('"')[0] for fault in words.faults_of_source("source", source)]
    if found != ["is no", "but for"]:
        faults.append(f"faults_of_source() finds {found}")
    return faults


def main():
    source = pathlib.Path(sys.argv[1])
    faults = check_words()
    for path in documents_of(source):
        faults += words.faults_of_document(path.relative_to(source), path.read_text(encoding="utf-8"))
    for folder in CODE_FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            if path.suffix in CODE_SUFFIXES:
                faults += words.faults_of_source(path.relative_to(source), path.read_text(encoding="utf-8"))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
