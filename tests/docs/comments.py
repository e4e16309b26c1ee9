"""Reads the comments of source files, and the docstrings of Python.

A comment is a list of pairs, each the number and the text of a line. Comments on successive lines are one comment, so
that a phrase is found across the end of a line."""
import ast
import io
import re
import tokenize

# Each alternative without a group consumes text in which the signs of a comment mean nothing.
C_FAMILY = re.compile(
    r'R"(?P<delimiter>[^()\\\s]{0,16})\((?:.|\n)*?\)(?P=delimiter)"'
    r'|"(?:[^"\\\n]|\\(?:.|\n))*"'
    r"|(?<![0-9A-Za-z_])'(?:[^'\\\n]|\\.)*'"
    r"|/\*(?P<block>(?:.|\n)*?)\*/"
    r"|//(?P<line>(?:[^\\\n]|\\(?:.|\n))*)")
JAVASCRIPT = re.compile(
    r'"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)*'"
    r"|`(?:[^`\\]|\\(?:.|\n))*`"
    r"|/\*(?P<block>(?:.|\n)*?)\*/"
    r"|//(?P<line>.*)"
    r"|(?:(?<=[(,=:\[!&|?{};])|(?<=return))[ \t]*/(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/")
HTML = re.compile(r"<!--(?P<block>(?:.|\n)*?)-->")
# A number sign that begins a word begins a comment, outside of quotes that end on the same line.
NUMBER_SIGN = re.compile(r"""^(?:"(?:[^"\\]|\\.)*"|'[^']*'|(?<=\S)\#|[^#])*?(?:^|(?<=[\s;]))\#(?!!)(.*)""")


def joined(lines, alone):
    """Comments from pairs of a line's number and its text. alone: the numbers of lines that hold nothing else."""
    comments = []
    for number, text in lines:
        if comments and comments[-1][-1][0] == number - 1 and number in alone:
            comments[-1].append((number, text))
        else:
            comments.append([(number, text)])
    return comments


def signed_comments(grammar, source):
    """grammar: an expression with the groups `block`, `line` or both for the text of a comment."""
    lines, alone = [], set()
    number, read = 1, 0
    for found in grammar.finditer(source):
        texts = [text for name, text in found.groupdict().items() if name in ("block", "line")]
        text = next((text for text in texts if text is not None), None)
        if text is None:
            continue
        number += source.count("\n", read, found.start())
        read = found.start()
        line_start = source.rfind("\n", 0, found.start()) + 1
        if not source[line_start:found.start()].strip():
            alone.add(number)
        for offset, line in enumerate(text.split("\n")):
            lines.append((number + offset, line.strip(" \t*/!<\\")))
            if offset:
                alone.add(number + offset)
    return joined(lines, alone)


def number_sign_comments(source):
    lines, alone = [], set()
    for number, line in enumerate(source.split("\n"), 1):
        found = NUMBER_SIGN.match(line)
        if found:
            lines.append((number, found[1].strip(" #")))
            if line.lstrip().startswith("#"):
                alone.add(number)
    return joined(lines, alone)


def python_comments(source):
    lines, alone = [], set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            lines.append((token.start[0], token.string.strip("# ")))
            if token.line.lstrip().startswith("#"):
                alone.add(token.start[0])
    comments = joined(lines, alone)
    text = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                comments.append([(number, text[number - 1].strip(' "'))
                                 for number in range(first.lineno, first.end_lineno + 1)])
    return comments


READERS = {
    **dict.fromkeys((".h", ".cpp", ".cu", ".cuh", ".h.in", ".cpp.in"),
                    lambda source: signed_comments(C_FAMILY, source)),
    **dict.fromkeys((".js", ".mjs", ".ts", ".css"), lambda source: signed_comments(JAVASCRIPT, source)),
    ".html": lambda source: signed_comments(HTML, source),
    **dict.fromkeys((".py", ".pyi"), python_comments),
    **dict.fromkeys((".sh", ".cmake", ".txt", ".toml", ".conf", ".service", ".yml"), number_sign_comments),
}
SCRIPTS = (("python", python_comments), ("sh", number_sign_comments))


def reader_of(name, source):
    """The function that reads the comments of a file, by its name or by its first line, or None."""
    base = name.rpartition("/")[2]
    if base == "Makefile" or base.startswith("Containerfile"):
        return number_sign_comments
    for suffix in sorted(READERS, key=len, reverse=True):
        if base.endswith(suffix):
            return READERS[suffix]
    first = source.partition("\n")[0]
    if first.startswith("#!"):
        for program, reader in SCRIPTS:
            if re.search(rf"\b\w*{program}\d*\b", first.rpartition("/")[2]):
                return reader
    return None


def comments_of(name, source):
    """The comments of the source file of this name. None in a file of a kind that has no reader."""
    reader = reader_of(name, source)
    return reader(source) if reader else []
