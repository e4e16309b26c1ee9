#!/usr/bin/env python3
"""The licence is said wherever a part of blindfuse goes by itself: in the tree, in the Python package, in each file of the
page for browsers, in the images of containers, and in the Debian package's copyright file.

  licence_test.py --source FOLDER
  licence_test.py --copyright FILE
"""
import argparse
import hashlib
import pathlib
import sys

# Of the text at https://www.apache.org/licenses/LICENSE-2.0.txt.
APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
HOLDER = "Copyright the blindfuse authors"
IDENTIFIER = "SPDX-License-Identifier: Apache-2.0"
TOP_LINES = 3  # of a file: where its licence is looked for


def faults_of_copyright(text):
    """https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"""
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        fields = {}
        for line in paragraph.splitlines():
            if line[:1] in (" ", "\t"):
                fields[name] += "\n" + line
            else:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        paragraphs.append(fields)
    if not paragraphs[0].get("Format", "").endswith("/copyright-format/1.0/"):
        yield "the first paragraph names no format"
    everything = [fields for fields in paragraphs if fields.get("Files") == "*"]
    if [(fields.get("Copyright"), fields.get("License")) for fields in everything] != \
            [("the blindfuse authors", "Apache-2.0")]:
        yield "Files: * is not of the blindfuse authors under Apache-2.0"
    texts = {fields["License"].partition("\n")[0]: fields["License"] for fields in paragraphs
             if "License" in fields and "Files" not in fields}
    for name in ("Apache-2.0", "BSD-3-clause", "BSL-1.0", "Expat"):
        if name not in texts:
            yield f"the text of {name} is missing"
    # Debian's policy, 12.5: a common licence is named by its place, and not written out.
    if "/usr/share/common-licenses/Apache-2.0" not in texts.get("Apache-2.0", ""):
        yield "where Debian has the text of Apache-2.0 is not said"
    if "TERMS AND CONDITIONS FOR USE" in text:
        yield "the text of Apache-2.0 is written out"


def faults_of_source(folder):
    if hashlib.sha256((folder / "LICENSE").read_bytes()).hexdigest() != APACHE_2_0:
        yield "LICENSE is not the text of the Apache License, Version 2.0"
    if HOLDER not in (folder / "NOTICE").read_text():
        yield f"NOTICE does not say: {HOLDER}"
    for name in ("LICENSE", "NOTICE"):
        if (folder / "client/python" / name).read_bytes() != (folder / name).read_bytes():
            yield f"client/python/{name} is not {name}: copy it"
    for name in ("Containerfile", "Containerfile.cuda"):
        image = (folder / "host/packaging/container" / name).read_text().rpartition("\nFROM ")[2]
        if 'LABEL org.opencontainers.image.licenses="Apache-2.0"' not in image:
            yield f"the image of {name} has no label with the licence"
    web = folder / "client/web"
    sent = [*web.glob("*.js"), *web.glob("*.d.ts"), web / "core/licence.js", *(web / "page").iterdir()]
    for path in sorted(sent):
        top = "\n".join(path.read_text().splitlines()[:TOP_LINES])
        if HOLDER not in top or IDENTIFIER not in top:
            yield f'{path.relative_to(folder)} does not begin with "{HOLDER}. {IDENTIFIER}"'
    if len(sent) < 15:
        yield f"only {len(sent)} files of the page were found"
    for fault in faults_of_copyright((folder / "host/packaging/debian/copyright").read_text()):
        yield f"host/packaging/debian/copyright: {fault}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--source", type=pathlib.Path)
    which.add_argument("--copyright", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.source:
        faults = list(faults_of_source(arguments.source))
    else:
        faults = list(faults_of_copyright(arguments.copyright.read_text()))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
