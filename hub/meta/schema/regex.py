r"""Go's regular expressions (RE2), for Python's engine.

Owns the translation; Go's syntax is checked while it is read, so that a CRD with a pattern Go
refuses is refused here as well, in Go's words. What differs: ``$`` and ``\z`` mean the very end,
classes like ``\d`` are ASCII, ``\pL`` and ``[[:alpha:]]`` exist, look-around and back references do
not, flags may stand anywhere. Two parts of RE2 are refused: scripts (``\p{Greek}``), and repeating
what stands before a bare flag (``a(?i)*``).

Python's engine backtracks where RE2 does not: a pattern can be slow, so lengths are checked first.

>>> bool(compile_go(r"^a$").search("a\n"))
False
>>> bool(compile_go(r"^\p{Lu}[[:digit:]]+$").search("É7"))
True
"""

import enum
import functools
import re
import sys

from hub.meta.schema import charclass

_CONTROL = {"a": 0x07, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_MAX_REPEAT = 1000
_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_GROUP = re.compile(r"\(\?(?:P?<(?P<name>[^>]*)>|(?P<flags>[imsU]*(?:-[imsU]+)?)(?P<end>[:)]))")
_HEX = re.compile(r"x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
_OCTAL = re.compile(r"[1-7][0-7]{1,2}|0[0-7]{0,2}")
_PROPERTY = re.compile(r"[pP](?:\{(\^?)(\w+)\}|(\w))")
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]")
_ANCHORS = {"A": "(?:\\A)", "z": "(?:\\Z)", "b": "(?a:\\b)", "B": "(?a:\\B)"}


class PatternError(ValueError):
    """A pattern Go would not compile; the message is Go's."""


@functools.lru_cache(maxsize=4096)
def compile_go(pattern: str) -> re.Pattern[str]:
    """Return the pattern compiled; `search` is Go's ``MatchString``. Raises `PatternError`."""
    translated = _Translator(pattern).translate()
    try:
        return re.compile(translated)
    except (re.error, OverflowError, RecursionError) as e:
        raise _error(str(e), pattern) from e


class _Last(enum.Enum):
    """What stands to the left: only an atom can be repeated."""

    NOTHING = 0
    ATOM = 1
    REPEAT = 2


class _Translator:
    """Reads a pattern once, left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._out: list[str] = []
        self._groups: list[tuple[list[str], str]] = []  # of each open one: flags before it, its own
        self._flags: list[str] = []  # flags switched on inside this group, each a group of its own
        self._last = _Last.NOTHING
        self._operator = ""

    def translate(self) -> str:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if self._groups:
            raise _error("missing closing )", self._text)
        return "".join(self._out) + ")" * len(self._flags)

    def _step(self, char: str) -> None:
        if char == "\\":
            self._escape()
        elif char == "[":
            self._class()
        elif char == "(":
            self._group()
        elif char == ")":
            self._close()
        elif char in "*+?":
            self._repeat(char)
        elif char == "{" and (found := _REPEAT.match(self._text, self._at)):
            self._counted(found)
        elif char == "|":
            again = "".join(f"(?{flags}:" for flags in self._flags)
            self._emit(f"{')' * len(self._flags)}|{again}", 1, _Last.NOTHING)
        else:
            self._emit(self._plain(char), 1)

    def _plain(self, char: str) -> str:
        if char == "$":
            return "(?:$)" if self._is_multiline() else "(?:\\Z)"
        if char == "^":
            return "(?:^)"  # a group, since Go lets anchors be repeated
        return char if char == "." else re.escape(char)

    def _is_multiline(self) -> bool:
        flags = [flag for before, own in self._groups for flag in (*before, own)]
        for flag in reversed([*flags, *self._flags]):  # the innermost that says so
            on, _, off = flag.partition("-")
            if "m" in on + off:
                return "m" in on
        return False

    def _emit(self, text: str, width: int, last: _Last = _Last.ATOM) -> None:
        self._out.append(text)
        self._at += width
        self._last = last

    def _repeat(self, operator: str) -> None:
        is_lazy = self._text[self._at + len(operator) :][:1] == "?"
        whole = operator + "?" * is_lazy
        if self._last is _Last.NOTHING:
            raise _error("missing argument to repetition operator", whole)
        if self._last is _Last.REPEAT:
            raise _error("invalid nested repetition operator", self._operator + whole)
        self._operator = whole
        self._emit(self._operator, len(self._operator), _Last.REPEAT)

    def _counted(self, found: re.Match[str]) -> None:
        low, high = int(found[1]), int(found[3] or 0)
        if max(low, high) > _MAX_REPEAT or (found[3] and high < low):
            raise _error("invalid repeat count", found[0])
        self._repeat(found[0])

    def _group(self) -> None:
        if self._text[self._at + 1 :][:1] != "?":
            self._open("(", 1)
            return
        found = _GROUP.match(self._text, self._at)
        if found is None:
            is_name = self._text[self._at :].startswith(("(?P<",))
            code = "invalid named capture" if is_name else "invalid or unsupported Perl syntax"
            raise _error(code, self._text[self._at :] if is_name else self._text[self._at :][:3])
        if found["name"] is not None:
            if not re.fullmatch(r"\w+", found["name"], re.ASCII):
                raise _error("invalid named capture", found[0])
            self._open("(", len(found[0]))
            return
        flags = _python_flags(found["flags"])
        if found["end"] == ":":
            self._open(f"(?{flags}:", len(found[0]), flags)
        else:  # from here to the end of the group
            self._flags += [flags] if flags else []
            self._emit(f"(?{flags}:" if flags else "", len(found[0]), _Last.NOTHING)

    def _open(self, text: str, width: int, flags: str = "") -> None:
        self._groups.append((self._flags, flags))
        self._out.append(text)
        self._at += width
        self._flags, self._last = [], _Last.NOTHING

    def _close(self) -> None:
        if not self._groups:
            raise _error("unexpected )", self._text)
        self._emit(")" * (len(self._flags) + 1), 1)
        self._flags, _ = self._groups.pop()

    def _escape(self) -> None:
        rest = self._text[self._at + 1 :]
        if rest[:1] == "Q":
            literal, end, _ = rest[1:].partition("\\E")
            self._emit(re.escape(literal), 2 + len(literal) + len(end))
        elif rest[:1] in _ANCHORS:
            self._emit(_ANCHORS[rest[0]], 2)
        else:
            inside, width, _ = _class_escape(rest)
            self._emit(f"[{inside}]", 1 + width)

    def _class(self) -> None:
        start = self._at
        self._at += 1
        negation = "^" if self._text[self._at :][:1] == "^" else ""
        self._at += len(negation)
        members: list[str] = []
        while not (members and self._text[self._at :][:1] == "]"):
            if self._at >= len(self._text):
                raise _error("missing closing ]", self._text[start:])
            members.append(self._member())
        self._emit(f"[{negation}{''.join(members)}]", 1)

    def _member(self) -> str:
        if found := _POSIX_CLASS.match(self._text, self._at):
            inside = charclass.posix(found[2])
            if inside is None:
                raise _error("invalid character class range", found[0])
            self._at = found.end()
            return charclass.complement(inside) if found[1] else inside
        start = self._at
        low, low_code = self._single()
        if low_code < 0 or self._text[self._at :][:1] != "-":
            return low
        if self._text[self._at + 1 :][:1] in ("]", ""):
            return low
        self._at += 1
        high, high_code = self._single()
        if high_code < low_code:
            raise _error("invalid character class range", self._text[start : self._at])
        return f"{low}-{high}"

    def _single(self) -> tuple[str, int]:
        """Return a member of a class with its code, or a set of them and -1."""
        char = self._text[self._at]
        if char != "\\":
            self._at += 1
            return charclass.point(ord(char)), ord(char)
        inside, width, code = _class_escape(self._text[self._at + 1 :])
        self._at += 1 + width
        return inside, code


def _class_escape(rest: str) -> tuple[str, int, int]:
    """Return the inside of a class for the escape `rest` begins with, its width, its code or -1."""
    if not rest:
        raise _error("trailing backslash at end of expression", "")
    if inside := charclass.perl(rest[0]):
        return inside, 1, -1
    if found := _PROPERTY.match(rest):
        return _property(found), len(found[0]), -1
    if found := _HEX.match(rest):
        return _single_code(int(found[1] or found[2], 16), found[0])
    if found := _OCTAL.match(rest):
        return _single_code(int(found[0], 8), found[0])
    if rest[0] in _CONTROL:
        return _single_code(_CONTROL[rest[0]], rest[0])
    if rest[0].isascii() and not rest[0].isalnum():
        return _single_code(ord(rest[0]), rest[0])
    raise _error("invalid escape sequence", f"\\{rest[0]}")


def _single_code(code: int, text: str) -> tuple[str, int, int]:
    if code > sys.maxunicode:
        raise _error("invalid escape sequence", f"\\{text}")
    return charclass.point(code), len(text), code


def _property(found: re.Match[str]) -> str:
    inside = charclass.category(found[2] or found[3])
    if inside is None:
        raise _error("invalid character class range", f"\\{found[0]}")
    is_negated = (found[0][0] == "P") != bool(found[1])
    return charclass.complement(inside) if is_negated else inside


def _python_flags(flags: str) -> str:
    # U (ungreedy) changes what is captured, never whether there is a match
    on, _, off = flags.replace("U", "").partition("-")
    return f"{on}-{off}" if off else on


def _error(code: str, shown: str) -> PatternError:
    return PatternError(f"error parsing regexp: {code}: `{shown}`")
