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


def check_words():
    """The reader itself, on text whose faults are known."""
    faults = []
    known = {
        "A table stands beside it.": ["beside"],
        "Everything but the key.": ["Everything but"],
        "It is no key; there is no key; it is no longer a key.": ["is no"],
        "It waits behind nginx, and behind the others.": ["behind"],
        "They leave behind files that were left behind.": [],
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
    "a.cpp": ("f();  // Everything\n      // but the key. But\ng();  // for a moment.\n", [(1, "Everything but")]),
    "a.cu": ("// Who waits, sees it. Who waits? Those who wait.\n__global__ void f();  // as good as\n",
             [(1, "Who"), (2, "as good as")]),
    "a.cuh": ("// A pack\n//\n// for so many bytes is to be had once more.\n",
              [(3, "so many"), (3, "be had"), (3, "once more")]),
    "a.h.in": ("// It lasts for ever.\n", [(1, "for ever")]),
    "a.py": ('''#!/usr/bin/env nobody
"""A script,
likewise a module."""
A = "nobody"  # a # nobody
def f():
    """Nothing
    but a docstring with `anew`."""
    g("""nobody""")
class B:
    "Left behind, or behind."
''', [(3, "likewise"), (4, "nobody"), (6, "Nothing but"), (10, "behind")]),
    "a.pyi": ("def f() -> int:\n    # set by who calls it\n    ...\n", [(2, "by who")]),
    "a.sh": ("#!/bin/sh\na=\"# nobody\" # anew\necho $# '# nobody' a#nobody; # It\n# is no key.\n",
             [(2, "anew"), (4, "is no")]),
    "a.js": ("const a = '// nobody', b = `// nobody\n`; // nobody\nc = d / e; // in vain\n"
             "f(/[\"/]/); /** Nobody\n * asks. */\n",
             [(2, "nobody"), (3, "in vain"), (4, "Nobody")]),
    "a.mjs": ("// nobody\n", [(1, "nobody")]),
    "a.ts": ("let a: string; // be it\n", [(1, "be it")]),
    "a.css": ("/* Beside the table. */\na { content: '/* beside */' }\n", [(1, "Beside")]),
    "a.html": ("<p>beside</p><!-- The page\n behind it -->\n", [(2, "behind")]),
    "Makefile": ("a: b ## all but c\n\t@echo '# beside'\n", [(1, "all but")]),
    "CMakeLists.txt": ("if(A) # save\n  # for B\n", [(1, "save for")]),
    "a.cmake": ('message("# beside") # beside\n', [(1, "beside")]),
    "script": ("#!/bin/bash\n# beside\n", [(2, "beside")]),
    "program": ("#!/usr/bin/env python3\n# beside\n", [(2, "beside")]),
    "text": ("# beside\n", []),
}


def check_comments():
    """The reader of comments, on a file of each kind whose faults are known."""
    faults = []
    for name, (text, expected) in COMMENTED.items():
        found = []
        for fault in words.faults_of_comments(name, text):
            place, _, rest = fault.partition(": ")
            found.append((int(place.rpartition(":")[2]), rest.split('"')[1]))
        if sorted(found) != sorted(expected):
            faults.append(f"faults_of_comments() finds {found} in {name}, not {expected}")
    what = "int a;  // What is a. What is b.\n\n"
    for text, expected in {what * 2: [], "// What is it?\n\n" + what * 2: [], what * 3: [5]}.items():
        found = [int(fault.split(":")[1]) for fault in words.faults_of_comments("a.h", text)]
        if found != expected:
            faults.append(f"faults_of_comments() finds {found} in {text!r}, not {expected}")
    return faults


def main():
    source = pathlib.Path(sys.argv[1])
    faults = check_words() + check_comments()
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
