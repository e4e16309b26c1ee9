#!/usr/bin/env python3
"""Documents, messages and comments have no words that CONTRIBUTING.md replaces, and documents no line of prose that is
too wide.

  words_test.py SOURCE"""
import pathlib
import sys

import comments
import words

CODE_FOLDERS = ("src", "host", "client", "cuda")
CODE_SUFFIXES = {".cpp", ".h", ".cu", ".cuh"}
COMMENT_FOLDERS = CODE_FOLDERS + ("bench", "cmake", "docs", "tests")


def documents_of(source):
    yield from sorted(source.glob("*.md"))
    for folder in ("docs", "client", "bench"):
        yield from sorted((source / folder).rglob("*.md"))


def commented_of(source):
    """Pairs of each file whose comments are read, and its text."""
    yield from ((source / name, (source / name).read_text(encoding="utf-8")) for name in ("CMakeLists.txt", "Makefile"))
    for folder in COMMENT_FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            if path.is_file() and "corpus" not in path.parts:
                text = path.read_bytes()
                if comments.reader_of(path.name, text[:80].decode("utf-8", "replace")):
                    yield path, text.decode("utf-8")


# By the name of a file: its text, and the lines and the phrases that are faults of its comments. Strings are not read.
COMMENTED = {
    "a.h": ('''#include "nobody.h"  // a key; it is no
  // secret
// A table, as "good" as it
// stands beside `the nobody` key.
const char* a = "// anew", *b = R"x(" // anew
)x";  /* It waits
 * behind the others. */ char c = '"', d = 1'000'000 + e;  // lest
''', [(1, "is no"), (4, "beside"), (7, "behind"), (7, "lest")]),
    "a.py": ('''#!/usr/bin/env nobody
"""A script,
likewise a module."""
A = "nobody"  # a # nobody
def f():
    """Nothing
    but a docstring with `anew`."""
''', [(3, "likewise"), (4, "nobody"), (6, "Nothing but")]),
    "a.sh": ("#!/bin/sh\na=\"# nobody\" # anew\necho $# '# nobody' a#nobody; # It\n# is no key.\n",
             [(2, "anew"), (4, "is no")]),
    "a.js": ("const a = '// nobody', b = `// nobody\n`; // nobody\nf(/[\"/]/); /** Nobody\n * asks. */\n",
             [(2, "nobody"), (3, "Nobody")]),
    "a.html": ("<p>beside</p><!-- The page\n behind it -->\n", [(2, "behind")]),
    "Makefile": ("a: b ## all but c\n\t@echo '# beside'\n", [(1, "all but")]),
    "text": ("# beside\n", []),
}


def check_reader():
    """The reader itself, on a document and on a file of each kind of comment, whose faults are known."""
    page = f"a `beside` b\n```\nbeside\n```\n{'word ' * 30}\n[a](x#beside) nobody\n"
    found = [fault.partition(":")[2] for fault in words.faults_of_document("page", page)]
    if found != ["5: 150 characters, of at most 120", '6: "nobody": no one; better: name the subject']:
        yield f"faults_of_document() is {found}"
    for name, (text, expected) in COMMENTED.items():
        faults = [fault.partition(": ") for fault in words.faults_of_comments(name, text)]
        places = sorted((int(place.rpartition(":")[2]), rest.split('"')[1]) for place, _, rest in faults)
        if places != sorted(expected):
            yield f"faults_of_comments() finds {places} in {name}, not {expected}"


def main():
    source = pathlib.Path(sys.argv[1])
    faults = list(check_reader())
    for path in documents_of(source):
        faults += words.faults_of_document(path.relative_to(source), path.read_text(encoding="utf-8"))
    for folder in CODE_FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            if path.suffix in CODE_SUFFIXES:
                faults += words.faults_of_source(path.relative_to(source), path.read_text(encoding="utf-8"))
    for path, text in commented_of(source):
        faults += words.faults_of_comments(path.relative_to(source), text)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
