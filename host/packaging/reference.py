#!/usr/bin/env python3
"""Writes what the documents say of the programs' options, from --help-all: the manual pages' lists, docs/REFERENCE.md,
and the completion for bash.

What is written stands between the heading OPTIONS of a page and its next heading, and in docs/REFERENCE.md between
"<!-- options -->" and "<!-- end of options -->". The files of the completion are written whole."""
import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys

# The program and commands of each page.
PAGES = {
    "blindfuse.1": ("blindfuse", [""]),
    "blindfuse-plan.1": ("blindfuse", ["plan"]),
    "blindfuse-build.1": ("blindfuse", ["build"]),
    "blindfuse-inspect.1": ("blindfuse", ["inspect"]),
    "blindfuse-serve.1": ("blindfuse", ["serve"]),
    "blindfuse-keygen.1": ("blindfuse", ["keygen"]),
    "blindfuse-api-key.1": ("blindfuse", ["api-key"]),
    "blindfuse-self-test.1": ("blindfuse", ["self-test"]),
    "blindfuse-client.1": ("blindfuse-client", ["get", "sync"]),
}
CONFIG_PAGE = "blindfuse.conf.5"
REFERENCE = "REFERENCE.md"
# Options that a configuration file cannot set.
NOT_SETTINGS = ("help", "help-all", "config")
COMMON = ("help", "help-all", "version")


@dataclasses.dataclass
class Option:
    name: str
    letter: str  # "" if it has none
    value: str  # what stands for the value: "N", "a|b", "" of a flag
    text: str
    default: str  # "" if none is shown
    required: bool
    limits: str  # "0 to 7", "" if it has none
    variable: str
    group: str

    @property
    def choices(self):
        return self.value.split("|") if "|" in self.value else []


def help_of(programs, program, command):
    arguments = [programs / program, *([command] if command else []), "--help-all"]
    text = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=60).stdout
    # After the page of a program come those of its commands.
    return text.partition("\n\n\n")[0]


def commands_of(text):
    return re.findall(r"^  ([a-z-]+) ", text.partition("Commands:")[2].partition("\n\n")[0], re.MULTILINE)


def usage_of(text):
    """The command line of a page of --help-all, such as "blindfuse build --output DIR [OPTIONS] INPUT..."."""
    return " ".join(text.partition("Usage: ")[2].partition("\n\n")[0].split())


def options_of(text):
    """The options of a page of --help-all, in its order."""
    options = []
    group = ""
    for line in text.splitlines():
        if found := re.fullmatch(r"(\S.*):", line):
            group = found[1]
        elif found := re.fullmatch(r"  (?:-(\w), )?--([a-z-]+)(?: (\S+))?", line):
            options.append(Option(found[2], found[1] or "", found[3] or "", "", "", False, "", "", group))
        elif options and (found := re.fullmatch(r"      \[(?:(\d+ to \d+)(?:; )?)?([A-Z_]+)?\]", line)):
            options[-1].limits, options[-1].variable = found[1] or "", found[2] or ""
        elif options and line.startswith("      "):
            options[-1].text = f"{options[-1].text} {line.strip()}".strip()
        elif line and not line.startswith(" "):
            group = ""
    for option in options:
        if found := re.fullmatch(r"(.*) \(required\)", option.text):
            option.text, option.required = found[1], True
        elif option.value and (found := re.fullmatch(r"(.*) \(default: ([^ ()]+)\)", option.text)):
            option.text, option.default = found[1], found[2]
    return options


def facts(option):
    """What is said of an option after its description, as sentences."""
    said = []
    if option.required:
        said.append("Required.")
    if option.choices:
        said.append(f"One of {', '.join(option.choices)}.")
    if option.limits:
        said.append(f"From {option.limits}.")
    if option.default:
        said.append(f"Default: {option.default}.")
    return " ".join(said)


def roff(text):
    return text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace('"', r"\(dq")


def placeholder(option):
    return "NAME" if option.choices else option.value


def roff_option(option):
    name = rf"\-\-{roff(option.name)}"
    if option.letter:
        tag = rf'.BR \-{option.letter} ", " {name}'
    elif option.value:
        tag = f'.BI {name} " {placeholder(option)}"'
    else:
        tag = f".B {name}"
    return roff_entry(tag, option)


def roff_setting(option):
    name = roff(option.name)
    if option.value in ("", "N", "BYTES"):
        tag = f'.BI "{name} = " {option.value or "true"}'
    else:
        tag = rf'.BI "{name} = \(dq" {placeholder(option)} \(dq'
    return roff_entry(tag, option)


def roff_entry(tag, option):
    lines = [".TP", tag, roff(option.text) + "."]
    if said := facts(option):
        lines.append(roff(said))
    return "\n".join(lines) + "\n"


def roff_list(options, write=roff_option):
    """Entries under the headings of their groups."""
    parts = []
    group = None
    for option in options:
        if option.group != group:
            group = option.group
            parts.append(f".SS {group}\n")
        parts.append(write(option))
    return "".join(parts)


def between_headings(page, content):
    """The page with `content` in place of what follows the heading OPTIONS, to the next one."""
    head, mark, rest = page.partition(".SH OPTIONS\n")
    if not mark:
        raise ValueError("a page without OPTIONS")
    following = f"\n{rest}".find("\n.SH ")
    return head + mark + content + (rest[following:] if following >= 0 else "")


def command_list(programs, program, commands):
    pages = {command: options_of(help_of(programs, program, command)) for command in commands}
    if len(pages) == 1:
        return roff_list(pages[commands[0]])
    # A page of several commands lists the options of all, then those of each alone.
    shared = [option for option in pages[commands[0]]
              if all(any(other.name == option.name for other in options) for options in pages.values())]
    names = {option.name for option in shared}
    parts = [".SS All commands\n", *map(roff_option, shared)]
    for command, options in pages.items():
        parts += [f".SS {command}\n", *(roff_option(option) for option in options if option.name not in names)]
    return "".join(parts)


def settings(programs):
    return [option for option in options_of(help_of(programs, "blindfuse", "serve"))
            if option.name not in NOT_SETTINGS]


def config_list(programs):
    directory = ('.TP\n.BI "directory = \\(dq" DIRECTORY \\(dq\n'
                 "Database directory. Required, here or on the command line.\n")
    return directory + roff_list(settings(programs), roff_setting)


def markdown(text):
    return text.replace("<", "&lt;")


def markdown_list(options):
    lines = []
    for option in options:
        said = [", ".join(f"`{choice}`" for choice in option.choices) or option.limits]
        said.append("required" if option.required else option.default and f"default `{option.default}`")
        known = "; ".join(filter(None, said))
        lines.append(f"- `--{option.name}`{f' ({known})' if known else ''}: {markdown(option.text)}\n")
    return "".join(lines)


def reference_body(programs):
    parts = []
    printed = {}  # the options of a group, with the first command that has them
    for program, commands in PAGES.values():
        for command in filter(None, commands):
            page = help_of(programs, program, command)
            options = [option for option in options_of(page) if option.name not in COMMON]
            parts.append(f"\n### {program} {command}\n\n`{usage_of(page)}`\n")
            for group in dict.fromkeys(option.group for option in options):
                text = markdown_list(option for option in options if option.group == group)
                first = printed.setdefault(text, f"{program} {command}")
                known = first != f"{program} {command}"
                parts.append(f"\n{group}: those of `{first}`.\n" if known else f"\n{group}:\n\n{text}")
    return "".join(parts)


def between_comments(document, content):
    begin, end = "<!-- options -->\n", "<!-- end of options -->"
    head, mark, rest = document.partition(begin)
    _, end_mark, tail = rest.partition(end)
    if not mark or not end_mark:
        raise ValueError(f"a document without {begin.strip()} and {end.strip()}")
    return head + mark + content + "\n" + end_mark + tail


COMPLETION = """\
# Completion of PROGRAM for bash. Written by host/packaging/reference.py.
FUNCTION() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=
  # bash takes --option=value apart.
  [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD-2]}
  [[ $word == = ]] && word=
  case $COMP_CWORD:${COMP_WORDS[1]}:$before in
    1:*) words='COMMANDS' ;;
CASES\
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
# Where nothing fits, bash completes names of files.
complete -o default -F FUNCTION PROGRAM
"""


def completion(programs, program):
    page = help_of(programs, program, "")
    commands = commands_of(page)
    cases = ""
    for command in commands:
        options = options_of(help_of(programs, program, command))
        for option in options:
            if option.choices:
                cases += f"    *:{command}:--{option.name}) words='{' '.join(option.choices)}' ;;\n"
        others = [f"*:{command}:--{option.name}" for option in options if option.value and not option.choices]
        if others:
            cases += f"    {' | '.join(others)}) ;;\n"
        names = " ".join(f"--{option.name}" for option in options)
        cases += f"    *:{command}:*) [[ $word == -* ]] && words='{names}' ;;\n"
    first = [*commands, *(f"--{option.name}" for option in options_of(page))]
    names = {"PROGRAM": program, "FUNCTION": "_" + program.replace("-", "_"), "COMMANDS": " ".join(first), "CASES": cases}
    return re.sub("PROGRAM|FUNCTION|COMMANDS|CASES", lambda name: names[name[0]], COMPLETION)


def documents(programs, manual, docs):
    """Each document with its text as it should be."""
    for program in sorted({program for program, _ in PAGES.values()}):
        yield manual.parent / "completion" / program, completion(programs, program)
    for page, (program, commands) in PAGES.items():
        path = manual / page
        yield path, between_headings(path.read_text(encoding="utf-8"), command_list(programs, program, commands))
    path = manual / CONFIG_PAGE
    yield path, between_headings(path.read_text(encoding="utf-8"), config_list(programs))
    path = docs / REFERENCE
    yield path, between_comments(path.read_text(encoding="utf-8"), reference_body(programs))


def main():
    folder = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=folder / "../../build/bin",
                        help="folder of the built programs (default: build/bin)")
    options = parser.parse_args()
    for path, text in documents(options.programs, folder / "man", folder / "../../docs"):
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
