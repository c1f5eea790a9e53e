"""Header fields between the wire and ours, for every codec.

Wire: latin-1 bytes in order, names in any case. Ours: a dict with lower-case names, repeated fields
joined with ", " (cookies with "; ", impersonation's with a line feed: a group's name may hold a
comma). Outgoing fields are checked for line breaks, so that no value
can start a field of its own.
"""

from collections.abc import Iterable
from email.utils import formatdate

from hub.clock import Clock
from hub.http.codec import HeaderList

_BREAKS = frozenset("\r\n\0")


class DateHeader:
    """The Date header's text, formatted once a second."""

    __slots__ = ("_clock", "_second", "_text")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = -1
        self._text = ""

    def text(self) -> str:
        """Return the current IMF-fixdate."""
        second = int(self._clock.now().timestamp())
        if second != self._second:
            self._second = second
            self._text = formatdate(second, usegmt=True)
        return self._text


def add_field(fields: dict[str, str], name: str, value: str) -> None:
    """Put a received field into `fields`, joined to an earlier one of its name."""
    earlier = fields.get(name)
    if earlier is None:
        fields[name] = value
    else:
        fields[name] = f"{earlier}{_separator(name)}{value}"


def _separator(name: str) -> str:
    if name == "cookie":
        return "; "
    return "\n" if name.startswith("impersonate-") else ", "


def check_fields(headers: HeaderList) -> None:
    """Raise ValueError when a field to be sent would break out of its line."""
    for name, value in headers:
        if not _BREAKS.isdisjoint(name) or not _BREAKS.isdisjoint(value):
            raise ValueError(f"header {name!r} holds a line break: encode the value first")


def has_body(status: int) -> bool:
    """Say whether a response of this status has a body at all (RFC 9110, 6.4.1 and 8.6)."""
    return status >= 200 and status not in {204, 304}


def encode_fields(headers: HeaderList) -> list[tuple[bytes, bytes]]:
    """Return `headers` as an HTTP/2 library takes them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def split_pseudo(
    fields: Iterable[tuple[bytes, bytes]],
) -> tuple[dict[str, str], dict[str, str]]:
    """Part an HTTP/2 field block into pseudo fields (":path") and ours.

    `:authority` becomes `host`.
    """
    pseudo: dict[str, str] = {}
    headers: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name.startswith(":"):
            pseudo[name] = value
        else:
            add_field(headers, name, value)
    if ":authority" in pseudo:
        headers["host"] = pseudo[":authority"]
    return pseudo, headers


def content_length(headers: dict[str, str]) -> int | None:
    """Return the announced body length; None when there is none that can be read."""
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
