"""The string formats of custom resource schemas.

Owns the list of formats that count (others are ignored) and a predicate for each, as
k8s.io/kube-openapi/pkg/validation/strfmt has them; some are laxer than their names say, and stay
so. A format's dashes do not matter: ``date-time`` is ``datetime``.
"""

import datetime as dt
import ipaddress
import re
import unicodedata
from collections.abc import Callable

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)", re.ASCII)
_GO_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_SCALA_DURATION = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_LONG_UNITS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_SHORT_UNITS = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_BASE64 = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_CARD = re.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}",
    re.ASCII,
)
_BYTE_255 = r"\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_RGB = re.compile(rf"rgb\({_BYTE_255},{_BYTE_255},{_BYTE_255}\)", re.ASCII)
_HEX_COLOR = re.compile("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_SSN = re.compile(r"\d{3}[- ]?\d{2}[- ]?\d{4}", re.ASCII)
_MAC = re.compile(  # of 6, 8 or 20 bytes
    r"[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}(?:(?:[0-9a-f]{2}\1){2}|(?:[0-9a-f]{2}\1){14})?[0-9a-f]{2}"
    r"|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?:(?:\.[0-9a-f]{4}){1}|(?:\.[0-9a-f]{4}){7})?"
    r"|[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40}",
    re.IGNORECASE | re.ASCII,
)
_SHORT_NAME = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LONG_NAME = re.compile(rf"{_SHORT_NAME}(?:\.{_SHORT_NAME})*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\x80-\U0010ffff-]+"
_ADDRESS = re.compile(rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[^"\\\r\n]|\\.)*")@{_ATOM}(?:\.{_ATOM})*')
_NAMED_ADDRESS = re.compile(r"[^<>@,;:\\\[\]()]*<([^<>]+)>\s*")


def find(name: str) -> Callable[[str], bool] | None:
    """Return the predicate of a format, None for one that is not checked."""
    return _FORMATS.get(name.replace("-", ""))


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        # Go has a year 0, which is a leap year
        return text.startswith("0000-") and _is_date(f"2000{text[4:]}")
    return True


def _is_date_time(text: str) -> bool:
    date, _, rest = text.lower().partition("t")
    clock = rest.partition("t")[0]
    found = _CLOCK.fullmatch(clock)
    if found is None or not _is_date(date):
        return False
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(text: str) -> bool:
    if _GO_DURATION.fullmatch(text):
        return True
    units = [unit.lower() for _, unit in _SCALA_DURATION.findall(text)]
    return any(unit in _SHORT_UNITS or unit.startswith(_LONG_UNITS) for unit in units)


def _is_request_uri(text: str) -> bool:
    """Mirror net/url.ParseRequestURI: a scheme or an absolute path, and no broken escapes."""
    if not text or any(c < " " or c == "\x7f" for c in text):
        return False
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    if not scheme and not rest.startswith("/"):
        return text == "*"
    if scheme and not rest.startswith("/"):
        return True  # opaque: mailto:x
    if re.search("%(?![0-9A-Fa-f]{2})", rest.partition("?")[0]):
        return False
    return not rest.startswith("//") or _is_authority(re.split("[/?]", rest[2:], maxsplit=1)[0])


def _is_authority(text: str) -> bool:
    host = text.rpartition("@")[2]
    if host.startswith("["):
        inside, bracket, port = host[1:].partition("]")
        return bool(bracket and inside) and re.fullmatch(r"(:\d*)?", port) is not None
    name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
    return re.fullmatch(r"\d*", port) is not None and not re.search(r'[\s<>"\[\]^`{|}\\]', name)


def _is_hostname(text: str) -> bool:
    if not text or len(text.encode()) > 255:
        return False
    parts = text.split(".")
    if any(len(p.encode()) > 63 for p in parts):
        return False
    return _is_bare_name(text) or _is_domain(parts)


def _is_bare_name(text: str) -> bool:
    # one label; a dash only after the first character
    rest = text[2:] if text[1:2] == "-" else text[1:]
    return _is_word(text[0]) and len(rest) <= 62 and all(map(_is_word, rest))


def _is_domain(parts: list[str]) -> bool:
    *labels, top = parts
    if not labels or not 2 <= len(top) <= 63 or not all(map(_is_letter, top)):
        return False
    return all(
        label
        and _is_word(label[0])
        and _is_word(label[-1])
        and all(c == "-" or _is_word(c) for c in label)
        for label in labels
    )


def _is_letter(char: str) -> bool:
    return unicodedata.category(char).startswith("L")


def _is_word(char: str) -> bool:
    return char in "0123456789" or unicodedata.category(char)[0] in "LS"


def _is_email(text: str) -> bool:
    named = _NAMED_ADDRESS.fullmatch(text)
    return _ADDRESS.fullmatch((named[1] if named else text).strip()) is not None


def _unpadded(text: str) -> str:
    """Return an address without the leading zeros that old Go versions let through."""
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=\d)", "", text)


def _is_ipv4(text: str) -> bool:
    return "." in text and _is_address(_unpadded(text))


def _is_ipv6(text: str) -> bool:
    return ":" in text and "%" not in text and _is_address(text)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or re.fullmatch(r"\d{1,3}", length, re.ASCII) is None or "%" in address:
        return False
    bits = 128 if ":" in address else 32
    return int(length) <= bits and _is_address(_unpadded(address))


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    values = [10 if d == "X" else int(d) for d in digits]
    return sum(weight * value for weight, value in enumerate(values, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch("[0-9]{13}", digits) is None:
        return False
    return sum(int(d) * (1, 3)[i % 2] for i, d in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    doubled = [int(d) * (2 if i % 2 else 1) for i, d in enumerate(reversed(digits))]
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _matcher(
    pattern: re.Pattern[str], *, longest: int = 0, exact: int = 0
) -> Callable[[str], bool]:
    def matches(text: str) -> bool:
        if (longest and len(text) > longest) or (exact and len(text) != exact):
            return False
        return pattern.fullmatch(text) is not None

    return matches


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    text = f"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{fourth}-?[0-9a-f]{{12}}"
    return _matcher(re.compile(text, re.IGNORECASE | re.ASCII))


_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matcher(re.compile("[0-9a-fA-F]{24}")),
    "byte": _matcher(_BASE64),
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _matcher(_HEX_COLOR),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": _matcher(_LONG_NAME, longest=253),
    "k8sshortname": _matcher(re.compile(_SHORT_NAME), longest=63),
    "mac": _matcher(_MAC),
    "password": lambda _: True,
    "rgbcolor": _matcher(_RGB),
    "ssn": _matcher(_SSN, exact=11),
    "uri": _is_request_uri,
    "uuid": _uuid("[0-9a-f]{4}", "[0-9a-f]{4}"),
    "uuid3": _uuid("3[0-9a-f]{3}", "[0-9a-f]{4}"),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
}
