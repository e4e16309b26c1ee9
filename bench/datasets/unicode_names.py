#!/usr/bin/env python3
"""The names of Unicode's characters as TSV: `U+1F600<tab>GRINNING FACE`.

Characters that UnicodeData.txt lists only as a range (ideographs, Hangul syllables) get the names that the
standard derives for them (section 4.8, rules NR1 and NR2). Code points without a name are left out:
controls, surrogates, private use. The data are those of Debian's package unicode-data."""

import os

import tsv

# Rule NR2: the name is the prefix and the code point. Ranges by the label that UnicodeData.txt gives them.
IDEOGRAPHS = {"CJK Ideograph": "CJK UNIFIED IDEOGRAPH-", "Tangut Ideograph": "TANGUT IDEOGRAPH-"}
NAMELESS = ("Private Use", "Plane ", "Non Private Use High Surrogate", "Low Surrogate")

# Rule NR1: a Hangul syllable is the arithmetic of its leading consonant, vowel and trailing consonant.
SYLLABLES, LEADS, VOWELS, TRAILS = 0xAC00, 0x1100, 0x1161, 0x11A7
VOWEL_COUNT, TRAIL_COUNT = 21, 28


def fields(path):
    with tsv.open_source(path, "unicode-data") as lines:
        for line in lines:
            line = line.partition("#")[0].strip()
            if line:
                yield [field.strip() for field in line.split(";")]


def derived_name(label, jamo):
    """A function from code points of the range named `label` to names; None when they have no names."""
    if label == "Hangul Syllable":
        def hangul(code):
            lead_vowel, trail = divmod(code - SYLLABLES, TRAIL_COUNT)
            lead, vowel = divmod(lead_vowel, VOWEL_COUNT)
            return ("HANGUL SYLLABLE " + jamo[LEADS + lead] + jamo[VOWELS + vowel]
                    + jamo.get(TRAILS + trail, ""))
        return hangul
    for start, prefix in IDEOGRAPHS.items():
        if label.startswith(start):
            return lambda code: f"{prefix}{code:04X}"
    if label.startswith(NAMELESS):
        return None
    tsv.fail(f"UnicodeData.txt has a range that this program does not know: {label}")


def names(unicode_data, jamo):
    first = 0
    for line in unicode_data:
        code, name = int(line[0], 16), line[1]
        if name.endswith(", First>"):
            first = code
        elif name.endswith(", Last>"):
            derive = derived_name(name[1:-len(", Last>")], jamo)
            if derive:
                yield from ((point, derive(point)) for point in range(first, code + 1))
        elif not name.startswith("<"):
            yield code, name


def main():
    parser = tsv.parser(__doc__)
    parser.add_argument("--data", default="/usr/share/unicode", metavar="DIR",
                        help="where UnicodeData.txt and Jamo.txt are (default: %(default)s)")
    arguments = parser.parse_args()

    jamo = {int(code, 16): short
            for code, short in fields(os.path.join(arguments.data, "Jamo.txt"))}
    unicode_data = fields(os.path.join(arguments.data, "UnicodeData.txt"))
    tsv.write((f"U+{code:04X}", name) for code, name in names(unicode_data, jamo))


if __name__ == "__main__":
    main()
