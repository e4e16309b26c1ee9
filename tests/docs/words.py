"""The words and phrases that CONTRIBUTING.md, section "Words", replaces, and functions that find them in text."""
import bisect
import re

import comments

# What is found, and the cure. Each is a whole word or phrase, in any case.
CURES = {
    r"beside": "next to, compared with",
    r"(?:all|nothing|none|anything|everything) but": "all ... except, only",
    r"but for": "except, without",
    r"save for": "except",
    r"for want of": "because there is no",
    r"nobody": "no one; better: name the subject",
    r"(?<!there )(?:is|are|was|were) no\b(?! (?:longer|more|less|later|earlier|larger|smaller|better|slower|faster)\b)":
        "is not a, there is no",
    r"(?<!\bleft )(?<!\bleave )(?<!\bleaves )behind\b(?! (?:nginx|a proxy|a reverse proxy|a load balancer|proxies))":
        "after, below",
    r"likewise": "also",
    r"anew": "again",
    r"lest": "so that ... not",
    r"whosoever|whatsoever|thereof|therein|hitherto|forthwith": "a word of today",
    r"in vain": "without success",
    r"of old": "previous",
    r"be it": "whether it is",
    r"as it were|so to speak": "leave it out",
    r"for ever": "forever, without end",
    r"as good as": "practically, nearly",
    r"(?:by|for|of|to|from|with|than) who": "name the subject: by the thread that ...",
}
# Found in comments alone.
COMMENT_CURES = {
    r"once more": "again",
    r"so many": "this many",
    r"be had": "exist, be available",
}


def finders_of(cures):
    return [(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), cure) for words, cure in cures.items()]


FINDERS = finders_of(CURES)
# A sentence whose subject is a headless clause, and a comment that is one. Questions are not meant.
HEADLESS_WHO = re.compile(r"(?:^|(?<=[.!:] ))Who\b(?=[^.!?]*(?:[.!]|$))")
HEADLESS_WHAT = re.compile(r"What\b[^?]*$")
COMMENT_FINDERS = finders_of(CURES | COMMENT_CURES) + [(HEADLESS_WHO, "name the subject: a client that ...")]
HEADLESS_WHATS_MAX = 2  # in one file

PROSE_WIDTH = 120


def words_of(text):
    """Pairs of each phrase in the text that has a cure, and the cure."""
    return [(found[0], cure) for finder, cure in FINDERS for found in finder.finditer(text)]


def without_code(line):
    """The line with the text between backquotes replaced, and of the same length."""
    return re.sub(r"`[^`]*`", lambda code: "`" * len(code[0]), line)


def prose_of(markdown):
    """Pairs of the number and the text of each line of prose or of a table: no code, HTML comments or quoted code."""
    in_code = in_block = False  # the latter: what a program writes between comments
    for number, line in enumerate(markdown.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif line.startswith("<!-- "):
            in_block = line.startswith("<!-- begin: ") or line == "<!-- options -->"
        elif not in_code and not in_block and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "``", line)  # no code, no targets of links


def faults_of_document(name, markdown):
    """A line of text for each fault: a phrase with a cure, or a line of prose that is too wide."""
    faults = []
    lines = markdown.splitlines()
    for number, line in prose_of(markdown):
        faults += [f'{name}:{number}: "{words}": {cure}' for words, cure in words_of(line)]
        whole = lines[number - 1]
        # A table's row cannot be broken, and neither can a link that is a line.
        if len(whole) > PROSE_WIDTH and not whole.lstrip().startswith("|") and " " in whole[: PROSE_WIDTH + 1].strip():
            faults.append(f"{name}:{number}: {len(whole)} characters, of at most {PROSE_WIDTH}")
    return faults


# A string literal; or a comment, where quotes begin no literal.
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|//.*')


def strings_of(source):
    """Pairs of the number of a line of C++ and its string literals of several words, which users may see."""
    for number, line in enumerate(source.splitlines(), 1):
        for literal in LITERAL.findall(line):
            if " " in literal.strip():
                yield number, literal


def faults_of_source(name, source):
    return [f'{name}:{number}: "{words}": {cure}'
            for number, literal in strings_of(source) for words, cure in words_of(literal)]


def faults_of_comments(name, source):
    """A line of text for each fault in the comments of a source file of any kind: a phrase with a cure, also where it
    goes over the end of a line, or one headless "What" too many."""
    faults = []
    whats = []
    for comment in comments.comments_of(str(name), source):
        text = " ".join(without_code(line) for _, line in comment)
        starts = [0]  # where in the text each line begins
        for _, line in comment:
            starts.append(starts[-1] + len(line) + 1)
        for finder, cure in COMMENT_FINDERS:
            for found in finder.finditer(text):
                number, _ = comment[bisect.bisect_right(starts, found.start()) - 1]
                faults.append(f'{name}:{number}: "{found[0]}": {cure}')
        if HEADLESS_WHAT.match(text):
            whats.append(comment[0][0])
    whats.sort()
    if len(whats) > HEADLESS_WHATS_MAX:
        lines = ", ".join(map(str, whats))
        faults.append(f'{name}:{whats[HEADLESS_WHATS_MAX]}: "What": {len(whats)} comments begin with this clause, '
                      f"of at most {HEADLESS_WHATS_MAX} in a file: name the things (lines {lines})")
    return faults
