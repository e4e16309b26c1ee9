"""What the data set scripts share: UTF-8 tab-separated rows on standard output, and errors in one line."""

import argparse
import os
import sys


def parser(description, value_bytes=None):
    """An argument parser; with `value_bytes`, one with that default for --value-bytes (0: never cut)."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if value_bytes is not None:
        cut = f"{value_bytes}" if value_bytes else "do not cut"
        made.add_argument(
            "--value-bytes", type=natural, default=value_bytes, metavar="N",
            help=f"cut values at N bytes, between two characters; 0 does not cut (default: {cut})")
    return made


def natural(text):
    """An integer that is at least 0, as a type for argparse."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return number


def fail(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def open_source(path, package):
    """Opens a file of a Debian package for reading, or ends the program and names the package."""
    try:
        return open(path, encoding="utf-8")
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}; "
             f"it belongs to the Debian package {package}: apt-get install {package}")


def cut(text, size):
    """The longest prefix of `text` with at most `size` bytes of UTF-8 (all of it when `size` is 0)."""
    data = text.encode()
    if size == 0 or len(data) <= size:
        return text
    # A character that the cut went through is incomplete at the end, and only there: drop it.
    return data[:size].decode(errors="ignore")


def write(rows, value_bytes=0):
    """Writes (key, value) pairs; runs of white space become one space, so no field holds a tab or newline."""
    lines = (f"{' '.join(key.split())}\t{cut(' '.join(value.split()), value_bytes)}\n"
             for key, value in rows)
    write_blocks(line.encode() for line in lines)


def write_blocks(blocks):
    """Writes blocks of bytes that are TSV already; ends quietly when the reader stops reading, as `head` does."""
    try:
        for block in blocks:
            sys.stdout.buffer.write(block)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"cannot write: {error.strerror}")
