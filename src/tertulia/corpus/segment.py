"""Where paragraphs and sentences end: a few rules that hold for most scripts.

- A blank line ends a paragraph (and with it the sentence); a single line break ends nothing.
- The full stops of scripts that need no space after them (`。` `！` `？` `।` `؟` and the like) always end a sentence.
- `.` `!` `?` `…` end one when white space follows (after closing quotes) and then anything but a lower-case letter:
  decimals, file names and `Yahoo! is` stay whole.
- `.` does not end one after a single letter (initials, `e.g.`, `z. B.`) or a usual abbreviation.
"""

from __future__ import annotations

import re

_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
_CLOSING = r"[\"'’”»›)\]}」』）】》〉]*"
_MAYBE_END = re.compile(rf"([.!?…。！？｡।॥؟۔։።፧]+){_CLOSING}(\s*)")  # one set in front: the search leaps to it
_LAST_WORD = re.compile(r"[^\W_]+$")

# Abbreviations that stand before a capital or a number in the middle of a sentence. Words that often *end* one
# (etc., no., art.) are left out on purpose: a missed boundary and a false one are equally wrong.
_LISTED = """
    mr mrs ms mx dr prof sr jr st messrs gen col maj capt lt sgt rev hon gov sen rep pres
    vs cf viz al approx fig figs eq eqs ref refs sec ch pp vol vols ed eds dept inc ltd corp
    jan feb apr jun jul aug sep sept oct nov dec
    bzw ca evtl ggf usw nr str bd hrsg vgl inkl mme mlle mgr sra srta dra ud uds núm sig dott ing av bv
"""
_ABBREVIATIONS = frozenset(_LISTED.split())


def segment(text: str) -> list[list[str]]:
    r"""Cut a text into paragraphs, and these into sentences, terminators included.

    >>> segment("Dr. Ruiz paid 3.50 euros. Why?\n\nNobody knows.")
    [['Dr. Ruiz paid 3.50 euros.', 'Why?'], ['Nobody knows.']]
    """
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    return [_sentences(paragraph) for paragraph in _PARAGRAPH_END.split(unix) if paragraph.strip()]


def _sentences(paragraph: str) -> list[str]:
    ends = [match.end() for match in _MAYBE_END.finditer(paragraph) if _ends_sentence(paragraph, match)]
    bounds = zip([0, *ends], [*ends, len(paragraph)], strict=True)
    return [piece for start, end in bounds if (piece := paragraph[start:end].strip())]


def _ends_sentence(paragraph: str, match: re.Match[str]) -> bool:
    mark, space = match.groups()
    if mark[-1] not in ".!?…":
        return True
    if not space or paragraph[match.end() : match.end() + 1].islower():
        return False
    if mark != ".":
        return True
    word = _LAST_WORD.search(paragraph, max(0, match.start() - 12), match.start())
    return word is None or not (word[0].lower() in _ABBREVIATIONS or (len(word[0]) == 1 and word[0].isalpha()))
