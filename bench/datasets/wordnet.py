#!/usr/bin/env python3
"""The English dictionary as TSV: every word of WordNet with its definitions.

The key is the word as the index files have it: lower case, spaces for underscores. The value lists the
definitions of each part of speech in sense order, the most frequent sense first, without the examples:

    dog<tab>n. a member of the genus Canis ...; a dull unattractive ...; v. go after with the intent to catch

A value that would be longer than --value-bytes ends with the last definition that fits, and with an ellipsis.

The data are those of Debian's package wordnet-base."""

import os
import re

import tsv

# The suffix of WordNet's files, and what a dictionary prints for it.
PARTS_OF_SPEECH = [("noun", "n."), ("verb", "v."), ("adj", "adj."), ("adv", "adv.")]

# Examples stand in quotes after the definition, nearly always after a semicolon.
EXAMPLE = re.compile(r'\s*[;:,]\s*"')


def records(path):
    """The lines of a WordNet file without its licence, whose lines start with a space."""
    with tsv.open_source(path, "wordnet-base") as lines:
        yield from (line for line in lines if not line.startswith(" "))


def definitions(path):
    """Maps the offset of each synset of a data file to its definition."""
    found = {}
    for line in records(path):
        fields, _, gloss = line.partition("|")
        gloss = gloss.strip()
        definition = EXAMPLE.split(gloss, maxsplit=1)[0].strip(" ;")
        found[fields[:8]] = definition or gloss
    return found


def senses(path):
    """Pairs of a word and the offsets of its synsets, from an index file."""
    for line in records(path):
        fields = line.split()
        count = int(fields[2])
        yield fields[0].replace("_", " "), fields[-count:]


DATA = "/usr/share/wordnet"  # of the Debian package wordnet-base
ELLIPSIS = " \u2026"


def shortened(meanings, size):
    """The definitions in one text of at most `size` bytes, as many as fit (all when `size` is 0). Of a first definition
    that does not fit, as many words as do."""
    text = "; ".join(meanings)
    if size == 0 or len(text.encode()) <= size:
        return text
    room = size - len(ELLIPSIS.encode())
    whole = [end for end in range(1, len(meanings)) if len("; ".join(meanings[:end]).encode()) <= room]
    if whole:
        return "; ".join(meanings[:whole[-1]]) + ELLIPSIS
    words = tsv.cut(text, room)
    return words.rpartition(" ")[0].rstrip(" ,;:") + ELLIPSIS


def main():
    arguments = tsv.parser(__doc__, value_bytes=256).parse_args()

    meanings = {}
    for suffix, label in PARTS_OF_SPEECH:
        definition = definitions(os.path.join(DATA, f"data.{suffix}"))
        for word, offsets in senses(os.path.join(DATA, f"index.{suffix}")):
            first, *others = (definition[offset] for offset in offsets)
            meanings.setdefault(word, []).extend([f"{label} {first}", *others])
    tsv.write((word, shortened(meanings[word], arguments.value_bytes)) for word in sorted(meanings))


if __name__ == "__main__":
    main()
