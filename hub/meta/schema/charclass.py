r"""The character classes of Go's regular expressions, as the inside of a Python class.

>>> perl("d"), posix("digit"), category("Zl")
('0-9', '0-9', '\\u2028-\\u2028')
"""

import functools
import itertools
import re
import sys
import unicodedata

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-\\~",
    "lower": "a-z",
    "print": " -\\~",
    "punct": "!-/:-@\\[-`{-\\~",
    "space": "\\t-\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_PERL = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\f\\r "}
_CODES = range(sys.maxunicode + 1)


def perl(letter: str) -> str | None:
    r"""Return the members of ``\d``, ``\w`` or ``\s`` (upper case: of all others)."""
    inside = _PERL.get(letter.lower())
    return complement(inside) if inside and letter.isupper() else inside


def posix(name: str) -> str | None:
    """Return the members of ``[:name:]``, None for an unknown one."""
    return _POSIX.get(name)


@functools.cache
def category(name: str) -> str | None:
    r"""Return the members of ``\p{name}`` for a general category, None for anything else."""
    if name == "Any":
        return "\\u0000-\\U0010ffff"
    if not re.fullmatch("[A-Z][a-z]?", name):
        return None
    return "".join(text for known, text in _categories().items() if known.startswith(name)) or None


@functools.cache
def _categories() -> dict[str, str]:
    parts: dict[str, list[str]] = {}
    for name, run in itertools.groupby(_CODES, lambda code: unicodedata.category(chr(code))):
        codes = list(run)
        parts.setdefault(name, []).append(f"{point(codes[0])}-{point(codes[-1])}")
    return {name: "".join(ranges) for name, ranges in parts.items()}


@functools.cache
def complement(inside: str) -> str:
    """Return the members of all but `inside`."""
    member = re.compile(f"[{inside}]")
    codes = [code for code in _CODES if not member.fullmatch(chr(code))]
    # codes of one range differ from their places by one number
    runs = itertools.groupby(enumerate(codes), lambda pair: pair[1] - pair[0])
    ranges = ([code for _, code in run] for _, run in runs)
    return "".join(f"{point(r[0])}-{point(r[-1])}" for r in ranges)


def point(code: int) -> str:
    """Return one character as an escape."""
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
