#!/usr/bin/env python3
"""The documents' links to each other lead somewhere, in the source tree and where the package puts the documents. There
links into the source, which is not installed, are let be. The tests that docs/THREAT_MODEL.md names as evidence exist.

  links_test.py FOLDER   (with README.md, CONTRIBUTING.md, SECURITY.md, CHANGELOG.md and docs/)
"""
import pathlib
import re
import sys

# What documents name of the source; where such a folder is, its files have to be there.
SOURCE_FOLDERS = ("bench", "client", "cmake", "cuda", "src", "tests")


def prose_of(document):
    """A document without its code."""
    return re.sub(r"`[^`\n]+`", "", re.sub(r"^```.*?^```$", "", document, flags=re.MULTILINE | re.DOTALL))


def anchors_of(document):
    """What the headings of a document are called in links."""
    without_code = re.sub(r"^```.*?^```$", "", document, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def fault_of(folder, page, link):
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.is_relative_to(folder):
        return "leaves the documents"
    top = next(iter(target.relative_to(folder).parts), "")
    if top in SOURCE_FOLDERS and not (folder / top).exists():
        return None
    if not target.exists():
        return "leads nowhere"
    if anchor and target.suffix == ".md" and anchor not in anchors_of(target.read_text()):
        return "names a heading that is not there"
    return None


def missing_evidence(folder):
    """The tests that the threat model names, as `Suite.Name`, and that the source does not have."""
    named = set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", (folder / "docs/THREAT_MODEL.md").read_text())) - {"Suite.Name"}
    known = {".".join(found) for path in (folder / "tests").rglob("*.cpp")
             for found in re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE)}
    return named - known if known else set()


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    tops = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
    pages = [*(folder / top for top in tops), *sorted((folder / "docs").rglob("*.md"))]
    count = 0
    faults = []
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            if fault := fault_of(folder, page, link):
                faults.append(f"{page.relative_to(folder)}: {link} {fault}")
    faults += [f"docs/THREAT_MODEL.md: there is no test {name}" for name in sorted(missing_evidence(folder))]
    for fault in faults:
        print(fault)
    print(f"{count} links in {len(pages)} documents")
    return 1 if faults or count < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
